//! Where the time between being runnable and running went, by the tracepoints.

use std::collections::{BTreeMap, BTreeSet};

use fairground::event::Event;
use fairground::value::{TaskId, TgId};

use super::Parts;
use super::episode::{Episode, Start};
use crate::host::TraceLine;

/// Who may have to wait for quota.
pub(super) struct Quota<'a> {
    /// The task's group and those above it.
    pub groups: &'a [TgId],
    /// A task leaves its queue on its own way to user space (6.18). One that is woken while its
    /// group is throttled waits for its turn, not for quota.
    pub per_task: bool,
}

impl Quota<'_> {
    /// The nearest group whose quota was used up where the task had to leave its CPU.
    pub fn took_it_off(&self, e: &Episode) -> Option<TgId> {
        let mut groups = self.groups.iter().copied();
        groups.find(|tg| e.throttled.contains(tg))
    }
}

/// Time in which a task waited on one CPU.
struct Stay {
    cpu: u32,
    from: u64,
    to: u64,
}

/// Where a task waited in between, one after the other; it runs, or is, on `last` in the end.
fn stays(e: &Episode, last: u32, (from, end): (u64, u64)) -> Vec<Stay> {
    let mut cpu = e.moves.first().map_or(last, |first| first.from.0);
    let mut at = from;
    let mut stays = Vec::new();
    for moved in &e.moves {
        let to = moved.at_ns.clamp(at, end.max(at));
        stays.push(Stay { cpu, from: at, to });
        (cpu, at) = (moved.to.0, to);
    }
    stays.push(Stay {
        cpu,
        from: at,
        to: end,
    });
    stays
}

/// The wait, gone through in the order of events: each moment is either one of waiting for quota
/// or of somebody else's running, so the parts add up to the whole.
struct Wait<'a> {
    stays: Vec<Stay>,
    quota: &'a Quota<'a>,
    /// It runs when its groups have quota again, not when it is its turn.
    for_quota: bool,
    running: BTreeMap<u32, Option<TaskId>>,
    throttled: BTreeSet<(u32, TgId)>,
    at: u64,
    others: BTreeMap<Option<TaskId>, u64>,
    by_group: BTreeMap<TgId, u64>,
}

impl Wait<'_> {
    /// The nearest group that keeps the task from running on `cpu`.
    fn kept_by(&self, cpu: u32) -> Option<TgId> {
        let mut groups = self.quota.groups.iter().copied();
        let throttled = |tg: &TgId| self.throttled.contains(&(cpu, *tg));
        groups.find(|tg| self.for_quota && throttled(tg))
    }

    /// Accounts for the time up to `to`, in which nothing has happened.
    fn up_to(&mut self, to: u64) {
        for i in 0..self.stays.len() {
            let stay = &self.stays[i];
            let ns = to.min(stay.to).saturating_sub(self.at.max(stay.from));
            let cpu = stay.cpu;
            if ns == 0 {
                continue;
            }
            let sum = match self.kept_by(cpu) {
                Some(tg) => self.by_group.entry(tg).or_default(),
                None => {
                    let who = self.running.get(&cpu).copied().flatten();
                    self.others.entry(who).or_default()
                }
            };
            *sum += ns;
        }
        self.at = self.at.max(to);
    }

    fn event(&mut self, at: u64, event: Event) {
        match event {
            Event::Switch { cpu, next, .. } => {
                self.running.insert(cpu.0, next);
            }
            Event::Throttle {
                cpu,
                tg,
                throttled: true,
            } => {
                self.throttled.insert((cpu.0, tg));
            }
            Event::Throttle { cpu, tg, .. } => {
                let kept = self.kept_by(cpu.0).is_some();
                self.throttled.remove(&(cpu.0, tg));
                // What came before the wait is not about it.
                let stay = self.stays.iter().find(|s| s.from < at && at <= s.to);
                let here = stay.is_some_and(|stay| stay.cpu == cpu.0);
                // Let go, it is on its queue again and waits for its turn.
                let on_queue = self.quota.per_task && here && self.kept_by(cpu.0).is_none();
                self.for_quota &= !(kept && on_queue);
            }
            _ => {}
        }
    }
}

/// What the tracepoints say about the time between; waits for locks and lines are not in it, and
/// choosing is not told apart from sending. Who has not run waits until the run is over.
pub(super) fn parts(
    lines: &[(u64, TraceLine)],
    e: &Episode,
    quota: &Quota<'_>,
    ended_ns: u64,
) -> Parts {
    let mut parts = Parts::default();
    let queued_at = e.enqueued.map_or(e.start_ns, |(at, _)| at.max(e.start_ns));
    let end = match e.switched_in {
        Some((_, at, _)) => at,
        None => ended_ns.max(queued_at),
    };
    // Steps are told as wholes: an entry on a queue may be told later than the switch.
    let queued_at = queued_at.min(end.max(e.start_ns));
    parts.sending_ns = queued_at - e.start_ns;
    parts.queued_ns = end.saturating_sub(queued_at);
    let on = match (e.switched_in, e.enqueued, e.start) {
        (Some((_, _, cpu)), ..) | (None, Some((_, cpu)), _) => cpu,
        (None, None, Start::Preempted { cpu, .. }) => cpu,
        (None, None, _) => return parts,
    };
    let taken_off = quota.took_it_off(e).is_some();
    let mut wait = Wait {
        stays: stays(e, on, (queued_at, end)),
        quota,
        for_quota: taken_off || !quota.per_task,
        running: BTreeMap::new(),
        throttled: BTreeSet::new(),
        at: queued_at,
        others: BTreeMap::new(),
        by_group: BTreeMap::new(),
    };
    // They come by steps, and a step of one CPU may begin later and be told before that of another.
    let mut lines: Vec<&TraceLine> = lines.iter().map(|(_, line)| line).collect();
    lines.retain(|line| line.at_ns <= end);
    lines.sort_by_key(|line| line.at_ns);
    for line in lines {
        wait.up_to(line.at_ns);
        wait.event(line.at_ns, line.event);
    }
    wait.up_to(end);
    parts.others = wait.others.into_iter().collect();
    parts
        .others
        .sort_by_key(|(task, ns)| (std::cmp::Reverse(*ns), *task));
    parts.throttled = wait.by_group.into_iter().collect();
    parts
}

#[cfg(test)]
mod tests {
    use fairground::event::Migration;
    use fairground::value::Cpu;

    use super::*;
    use crate::explain::Move;

    fn throttle(cpu: u32, tg: TgId, throttled: bool) -> Event {
        Event::Throttle {
            cpu: Cpu(cpu),
            tg,
            throttled,
        }
    }

    fn switch(cpu: u32, next: Option<TaskId>) -> Event {
        Event::Switch {
            cpu: Cpu(cpu),
            prev: None,
            prev_runnable: false,
            next,
        }
    }

    fn lines<const N: usize>(events: [(u64, u32, Event); N]) -> [(u64, TraceLine); N] {
        events.map(|(at_ns, cpu, event)| (0, TraceLine::new(at_ns, cpu, event)))
    }

    fn preempted(at: u64, throttled: Vec<TgId>, in_at: u64, on: u32) -> Episode {
        Episode {
            start: Start::Preempted { by: None, cpu: 0 },
            start_ns: at,
            start_event: 0,
            enqueued: None,
            throttled,
            moves: Vec::new(),
            switched_in: Some((4, in_at, on)),
            instead_of: None,
            preempts: false,
            out: None,
        }
    }

    /// Throttled on CPU 0, pulled to CPU 1 while that was so, and running there 10 ns later.
    #[test]
    fn what_a_task_waited_for_before_it_was_moved_counts() {
        let (other, tg) = (TaskId(1), TgId(1));
        let lines = lines([
            (5, 1, switch(1, Some(other))),
            (10, 0, throttle(0, tg, true)),
            (10, 0, switch(0, None)),
            (95, 1, switch(1, None)),
            (100, 1, switch(1, Some(TaskId(0)))),
        ]);
        let mut episode = preempted(10, vec![tg], 100, 1);
        episode.moves.push(Move {
            at_ns: 90,
            from: Cpu(0),
            to: Cpu(1),
            why: Migration::Balance,
        });
        let quota = Quota {
            groups: &[tg],
            per_task: false,
        };
        let parts = parts(&lines, &episode, &quota, 100);
        assert_eq!(parts.queued_ns, 90);
        assert_eq!(parts.throttled, [(tg, 80)]);
        assert_eq!(parts.others, [(None, 5), (Some(other), 5)]);
    }

    /// Two groups of the task at once: no moment is counted twice. When both have let go it waits
    /// for its turn, though one is throttled again (6.18); before, that kept it too.
    #[test]
    fn parts_add_up_to_the_wait() {
        let (other, inner, outer) = (TaskId(1), TgId(2), TgId(1));
        let lines = lines([
            (0, 0, throttle(0, inner, true)),
            (5, 0, throttle(0, inner, false)),
            (5, 0, switch(0, Some(TaskId(0)))),
            (10, 0, throttle(0, inner, true)),
            (10, 0, switch(0, Some(other))),
            (20, 0, throttle(0, outer, true)),
            (30, 0, throttle(0, inner, false)),
            (50, 0, throttle(0, outer, false)),
            (60, 0, throttle(0, inner, true)),
            (100, 0, switch(0, Some(TaskId(0)))),
        ]);
        let episode = preempted(10, vec![inner], 100, 0);
        for (per_task, kept, turn) in [(true, 20, 50), (false, 60, 10)] {
            let quota = Quota {
                groups: &[inner, outer],
                per_task,
            };
            assert_eq!(quota.took_it_off(&episode), Some(inner));
            let parts = parts(&lines, &episode, &quota, 100);
            assert_eq!(parts.throttled, [(outer, 20), (inner, kept)]);
            assert_eq!(parts.others, [(Some(other), turn)]);
        }
    }

    /// The step in which the task itself got the other CPU is told before what happened earlier on
    /// the CPU where it waits.
    #[test]
    fn steps_that_are_told_late_count_when_they_happened() {
        let (first, second) = (TaskId(1), TaskId(2));
        let lines = lines([
            (0, 0, switch(0, Some(first))),
            (30, 0, switch(0, Some(TaskId(0)))),
            (20, 0, switch(0, Some(second))),
        ]);
        let groups = &[];
        let quota = Quota {
            groups,
            per_task: true,
        };
        let parts = parts(&lines, &preempted(10, Vec::new(), 30, 0), &quota, 30);
        assert_eq!(parts.others, [(Some(first), 10), (Some(second), 10)]);
    }

    /// Woken while its group is throttled it is queued all the same since 6.18.
    #[test]
    fn who_is_woken_into_a_throttled_group_waits_for_its_turn() {
        let (other, tg) = (TaskId(1), TgId(1));
        let lines = lines([
            (0, 0, switch(0, Some(other))),
            (5, 0, throttle(0, tg, true)),
            (30, 0, switch(0, Some(TaskId(0)))),
        ]);
        let mut episode = preempted(10, Vec::new(), 30, 0);
        episode.start = Start::New {
            event: 0,
            cpu: 0,
            by: None,
            by_timer: false,
        };
        for per_task in [true, false] {
            let quota = Quota {
                groups: &[tg],
                per_task,
            };
            let parts = parts(&lines, &episode, &quota, 30);
            let turn = (parts.others, parts.throttled);
            let expected = match per_task {
                true => (vec![(Some(other), 20)], vec![]),
                false => (vec![], vec![(tg, 20)]),
            };
            assert_eq!(turn, expected);
        }
    }
}

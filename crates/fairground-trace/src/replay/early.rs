//! How much of what a group's threads compute a replay does earlier than it was done, though the
//! threads had been awake, and waiting for a CPU or for quota, since before (`crate::replay`).
//! Units: nanoseconds; times from the start of the recording.
//!
//! A replay blocks only where the recording did. A worker that has more to do than its quota lets
//! it never sleeps, so nothing says when its work came: one request that takes long and a hundred
//! that come while it waits look the same. Given more CPU time, a replay does all of it at once.
//! What is done before it was done in the recording, by no more than the thread had waited since
//! its last wake-up, may so not have been there to do. A thread that was woken earlier than in the
//! recording is not meant: its waker was there.

use fairground_sim::workload::program::Born;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::derive::{Derived, Logs};
use crate::event::{Event, State};
use crate::walk::{Fact, Walk};

/// Less than this is how exact a replay is at home, not work ahead of its time: a choice, the tick
/// of 100 Hz. A group takes 5 ms of its quota at a time, and is found without any at a tick.
const EARLY_NS: u64 = 10_000_000;

/// A group's computing, and what of it may be done too early.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// The group.
    pub path: String,
    /// What its threads, and those of the groups below, compute in the recording.
    pub computed_ns: u64,
    /// The part that is done earlier.
    pub early_ns: u64,
    /// By how much, at the most.
    pub most_ns: u64,
}

/// A stretch in which a thread had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stint {
    /// Its end.
    to: u64,
    /// What the thread has computed by then.
    done: u64,
    /// How long it had waited since its last wake-up.
    waited: u64,
}

/// When each thread computed what, by its id.
#[derive(Clone, Debug, Default)]
pub(super) struct Course(FxHashMap<u32, Vec<Stint>>);

/// What is known of a thread so far.
#[derive(Clone, Copy, Default)]
struct Waiting {
    since: Option<u64>,
    waited: u64,
}

impl Course {
    /// Of what happens inside `window`; of the threads in `ends` until then.
    pub fn of(
        events: &[Event],
        cpus: u32,
        window: (u64, u64),
        ends: Option<&FxHashMap<u32, u64>>,
    ) -> Self {
        let mut course: FxHashMap<u32, Vec<Stint>> = FxHashMap::default();
        let mut waiting: FxHashMap<u32, Waiting> = FxHashMap::default();
        Walk::to(events, cpus, window.1, |threads, fact| match fact {
            Fact::Ran {
                thread, from, to, ..
            } => {
                let tid = threads[thread].tid;
                let end = ends.and_then(|ends| ends.get(&tid)).copied();
                let to = to.min(end.unwrap_or(window.1)).min(window.1);
                let ran = to.saturating_sub(from.max(window.0));
                if ran > 0 {
                    let stints = course.entry(tid).or_default();
                    stints.push(Stint {
                        to: to - window.0,
                        done: stints.last().map_or(0, |last| last.done) + ran,
                        waited: waiting.get(&tid).map_or(0, |w| w.waited),
                    });
                }
            }
            Fact::Woken { thread, .. } => {
                waiting.insert(threads[thread].tid, Waiting::default());
            }
            Fact::Runnable { thread, at, .. }
            | Fact::Out {
                thread,
                at,
                state: State::Runnable,
                ..
            } => waiting.entry(threads[thread].tid).or_default().since = Some(at),
            Fact::In { thread, at, .. } => {
                let now = waiting.entry(threads[thread].tid).or_default();
                let waited = now.since.take().map_or(0, |since| at.saturating_sub(since));
                now.waited += waited;
            }
            _ => {}
        });
        Self(course)
    }

    fn computed(&self, tid: u32) -> u64 {
        let last = self.0.get(&tid).and_then(|stints| stints.last());
        last.map_or(0, |last| last.done)
    }

    /// What of a thread's computing `replay` does early, and by how much at the most. `all_done`:
    /// it does all of it, in as much time of its CPUs.
    fn early(&self, replay: &Self, tid: u32, all_done: bool) -> (u64, u64) {
        let stints = |course: &Self| course.0.get(&tid).cloned().unwrap_or_default();
        let (recorded, replayed) = (stints(self), stints(replay));
        let (all, own) = (self.computed(tid), replay.computed(tid).max(1));
        // Other CPUs may be faster: what is done is a share of all.
        let done = |ns: u64| match all_done {
            true => (u128::from(ns) * u128::from(all) / u128::from(own)) as u64,
            false => ns,
        };
        let (mut i, mut j, mut from) = (0, 0, 0);
        let (mut early, mut most) = (0, 0);
        while let (Some(a), Some(b)) = (recorded.get(i), replayed.get(j)) {
            let to = a.done.min(done(b.done));
            let then = a.to.saturating_sub(a.done - to);
            let now = b.to.saturating_sub(done(b.done) - to);
            let before = then.saturating_sub(now).min(a.waited);
            if to > from && before >= EARLY_NS {
                early += to - from;
                most = most.max(before);
            }
            i += usize::from(a.done <= to);
            j += usize::from(done(b.done) <= to);
            from = from.max(to);
        }
        (early, most)
    }

    /// What of a thread's computing could be done early, and by how much at the most.
    fn waited(&self, tid: u32) -> (u64, u64) {
        let (mut late, mut most, mut from) = (0, 0, 0);
        for stint in self.0.get(&tid).into_iter().flatten() {
            if stint.waited >= EARLY_NS {
                late += stint.done - from;
                most = most.max(stint.waited);
            }
            from = stint.done;
        }
        (late, most)
    }
}

/// Whose a replay is.
pub(super) struct Whose<'a> {
    /// What ran.
    pub derived: &'a Derived,
    /// Whose.
    pub logs: &'a Logs,
    /// As what each task began: its group.
    pub born: &'a [Born],
}

impl Whose<'_> {
    /// What each group does early in `replay`, beside the `recorded` course; threads in `undone`
    /// have not done all.
    pub fn early(&self, recorded: &Course, replay: &Course, undone: &FxHashSet<u32>) -> Vec<Early> {
        self.by_group(recorded, |tid| {
            recorded.early(replay, tid, !undone.contains(&tid))
        })
    }

    /// What each group could do early, were it given more CPU time.
    pub fn waited(&self, recorded: &Course) -> Vec<Early> {
        self.by_group(recorded, |tid| recorded.waited(tid))
    }

    fn by_group(&self, recorded: &Course, of: impl Fn(u32) -> (u64, u64)) -> Vec<Early> {
        let groups = &self.derived.workload.cgroups;
        let mut all: Vec<Early> = groups
            .iter()
            .map(|group| Early {
                path: group.path.clone(),
                ..Early::default()
            })
            .collect();
        let mut seen = FxHashSet::default();
        for born in self.born.iter().filter(|born| born.cgroup != 0) {
            let thread = self.derived.threads[born.template as usize];
            let tid = self.logs.threads[thread].tid;
            if !seen.insert(tid) {
                continue;
            }
            let (early_ns, most_ns) = of(tid);
            let mut group = born.cgroup;
            while group != 0 {
                let sum = &mut all[group as usize];
                sum.computed_ns += recorded.computed(tid);
                sum.early_ns += early_ns;
                sum.most_ns = sum.most_ns.max(most_ns);
                group = groups[group as usize].parent;
            }
        }
        all.into_iter().skip(1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Kind};

    const MS: u64 = 1_000_000;

    /// One thread on one CPU: when it is woken, gets the CPU, and leaves it asleep or not, in ms.
    fn course(happens: &[(u64, char)], window: (u64, u64)) -> Course {
        let events: Vec<Event> = happens.iter().map(|(ms, what)| event(*ms, *what)).collect();
        Course::of(&events, 1, (window.0 * MS, window.1 * MS), None)
    }

    fn event(ms: u64, what: char) -> Event {
        let (prev, next, state) = match what {
            '+' => (0, 7, State::Runnable),
            '-' => (7, 0, State::Runnable),
            _ => (7, 0, State::Blocked(b'S')),
        };
        let kind = match what {
            'w' => Kind::Wakeup {
                tid: 7,
                prio: 120,
                cpu: 0,
            },
            _ => Kind::Switch {
                prev,
                state,
                next,
                prev_prio: 120,
                next_prio: 120,
            },
        };
        Event {
            at_ns: ms * MS,
            cpu: 0,
            tid: if what == 'w' { 0 } else { prev },
            context: Context::Interrupt,
            kind,
        }
    }

    /// 50 ms of each 100 ms, awake throughout: nobody knows when the work came.
    const THROTTLED: [(u64, char); 7] = [
        (0, 'w'),
        (0, '+'),
        (50, '-'),
        (100, '+'),
        (150, '-'),
        (200, '+'),
        (250, 's'),
    ];

    #[test]
    fn work_after_a_wait_that_is_done_sooner_is_early() {
        let recorded = course(&THROTTLED, (0, 300));
        assert_eq!(recorded.computed(7), 150 * MS);
        let raised = [(0, 'w'), (0, '+'), (80, '-'), (100, '+'), (170, 's')];
        let replay = course(&raised, (0, 300));
        // From 50 to 80 ms, and all from 100 ms on.
        assert_eq!(
            recorded.early(&replay, 7, true),
            (100 * MS, 80 * MS),
            "the last 70 ms are done by 170 and not by 250"
        );
        assert_eq!(recorded.early(&recorded, 7, true), (0, 0));
        assert_eq!(recorded.waited(7), (100 * MS, 100 * MS));
        // Later is not early.
        assert_eq!(replay.early(&recorded, 7, true), (0, 0));
    }

    #[test]
    fn what_a_wake_up_begins_is_never_early() {
        let slept = [
            (0, 'w'),
            (0, '+'),
            (50, 's'),
            (100, 'w'),
            (100, '+'),
            (150, 's'),
        ];
        let sooner = [
            (0, 'w'),
            (0, '+'),
            (50, 's'),
            (60, 'w'),
            (60, '+'),
            (110, 's'),
        ];
        let recorded = course(&slept, (0, 200));
        let replay = course(&sooner, (0, 200));
        assert_eq!(recorded.early(&replay, 7, true), (0, 0));
        assert_eq!(recorded.waited(7), (0, 0));
    }

    #[test]
    fn a_faster_cpu_does_the_same_share_of_all() {
        let recorded = course(&THROTTLED, (0, 300));
        // Twice as fast: the same quota is twice the work.
        let fast = [(0, 'w'), (0, '+'), (50, '-'), (100, '+'), (125, 's')];
        let replay = course(&fast, (0, 300));
        let all = recorded.early(&replay, 7, true);
        assert_eq!(all, (100 * MS, 100 * MS));
        // Of one that was stopped, half of the work by then is the half that was recorded first.
        assert_eq!(recorded.early(&replay, 7, false), (0, 0));
    }
}

//! Recordings of some processes, as of `perf record` without `-a`: of all others they only have
//! that one of them came next on a CPU, or woke one of these, or was woken by one. When it left a
//! CPU is in no event, so nothing of what it did is known.

use rustc_hash::FxHashMap;

use crate::event::{Event, Kind};
use crate::recording::{Recording, number_of};

/// Fewer switches say nothing.
const FEW: u64 = 32;
/// Where all are recorded, one is missing now and then.
const ONE_OF: u64 = 20;

impl Recording {
    /// Says so if only some processes were recorded, and takes the CPU time of the others, which
    /// would be all up to the next event, for that of nobody.
    pub(crate) fn note_processes(&mut self) {
        if !self.said.is_empty() || self.sampled {
            return;
        }
        let strangers = Strangers::of(&self.events);
        if !self.of_processes && !strangers.show() && !lead_nowhere(&self.events, self.cpus) {
            return;
        }
        let others = match strangers.threads() {
            0 => String::new(),
            n => {
                strangers.leave_out(&mut self.events);
                let others = number_of(n, "other thread shows", "other threads show");
                format!("; {others} in it, of unknown CPU time, which counts as idle")
            }
        };
        self.left_out.notes.push(format!(
            "only some processes were recorded, without the idle task: what others did is missing, \
             with most of the wake-ups, so waiting is not to be believed; record all CPUs (`perf \
             record -a`){others}"
        ));
    }
}

/// Threads of which no switch away from a CPU is recorded.
struct Strangers {
    /// How often each of them came.
    came: FxHashMap<u32, u64>,
    switches: u64,
    /// The idle task leaves its CPUs.
    idle_leaves: bool,
}

impl Strangers {
    fn of(events: &[Event]) -> Self {
        let mut came: FxHashMap<u32, u64> = FxHashMap::default();
        let (mut switches, mut idle_leaves) = (0, false);
        for event in events {
            // Wake-ups are recorded for the sake of who is woken, too.
            came.entry(event.tid).or_default();
            match event.kind {
                Kind::Switch { prev, next, .. } => {
                    switches += 1;
                    idle_leaves |= prev == 0;
                    *came.entry(next).or_default() += 1;
                }
                Kind::Waking { tid, .. } | Kind::Wakeup { tid, .. } => {
                    came.entry(tid).or_default();
                }
                _ => {}
            }
        }
        for event in events {
            match event.kind {
                Kind::Switch { prev: known, .. } | Kind::Exit { tid: known } => {
                    came.remove(&known);
                }
                Kind::Fork { child, .. } | Kind::WakeupNew { tid: child, .. } => {
                    came.remove(&child);
                    came.remove(&event.tid);
                }
                _ => {}
            }
        }
        came.remove(&0);
        Self {
            came,
            switches,
            idle_leaves,
        }
    }

    /// Whether they are too many to have come by losses. Who came once may be there still.
    fn show(&self) -> bool {
        let again: u64 = self.came.values().filter(|n| **n > 1).sum();
        !self.idle_leaves && self.switches >= FEW && again * ONE_OF > self.switches
    }

    fn threads(&self) -> u64 {
        self.came.len() as u64
    }

    /// Each of them is nobody that is known, and what is done to one is left out.
    fn leave_out(&self, events: &mut Vec<Event>) {
        let is = |tid: u32| self.came.contains_key(&tid);
        events.retain(|event| match event.kind {
            Kind::Waking { tid, .. } | Kind::Wakeup { tid, .. } | Kind::Migrate { tid, .. } => {
                !is(tid)
            }
            _ => true,
        });
        for event in events {
            if is(event.tid) {
                event.tid = 0;
            }
            if let Kind::Switch { next, .. } = &mut event.kind
                && is(*next)
            {
                *next = 0;
            }
        }
    }
}

/// Whether most switches to others lead to nothing, and the idle task does nothing either.
fn lead_nowhere(events: &[Event], cpus: u32) -> bool {
    let mut next: Vec<Option<u32>> = vec![None; cpus as usize];
    let (mut switches, mut nowhere) = (0_u64, 0_u64);
    for event in events.iter().filter(|e| e.kind != Kind::On) {
        if event.tid == 0 {
            return false;
        }
        let slot = &mut next[event.cpu as usize];
        nowhere += u64::from(slot.is_some_and(|next| next != event.tid));
        *slot = None;
        if let Kind::Switch { next, .. } = event.kind {
            switches += 1;
            *slot = Some(next);
        }
    }
    switches >= FEW && nowhere * 4 > switches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, State};
    use crate::measure::measure;

    fn switch(at_ns: u64, prev: u32, next: u32) -> Event {
        let (prev_prio, next_prio) = (120, 120);
        let kind = Kind::Switch {
            prev,
            prev_prio,
            state: State::Blocked(b'S'),
            next,
            next_prio,
        };
        Event {
            at_ns,
            cpu: 0,
            tid: prev,
            context: Context::Unknown,
            kind,
        }
    }

    /// Threads 1 and 2 take turns; 9, of which nothing else is recorded, comes in every fourth.
    /// Interrupts of the idle task wake them, which is recorded for their sake.
    fn with_stranger() -> Vec<Event> {
        let (tid, prio, cpu) = (1, 120, 0);
        let turn = |n: u64| {
            let at = n * 1000;
            let next = if n % 4 == 3 { 9 } else { 1 };
            let wakeup = Event {
                kind: Kind::Wakeup { tid, prio, cpu },
                ..switch(at + 900, 0, 0)
            };
            [switch(at + 100, 1, 2), switch(at + 200, 2, next), wakeup]
        };
        (0..40).flat_map(turn).collect()
    }

    fn noted(events: Vec<Event>, of_processes: bool) -> Recording {
        let mut r = Recording::new("test");
        for event in events {
            assert!(r.push(event));
        }
        r.of_processes = of_processes;
        r.note_processes();
        r
    }

    #[test]
    fn who_is_only_seen_to_come_gets_no_time_and_it_is_said() {
        let r = noted(with_stranger(), false);
        let told = r.left_out.text();
        assert!(told.contains("only some processes were recorded"), "{told}");
        assert!(told.contains("1 other thread shows in it"), "{told}");
        let m = measure(&r.events, 1, r.span(), None);
        assert!(!m.threads.contains_key(&9) && m.threads.contains_key(&2));
        // With so few of them only the recorder can know.
        let few = || (0..8).flat_map(|n| [switch(n * 10, 1, 2), switch(n * 10 + 5, 2, 9)]);
        assert_eq!(noted(few().collect(), false).left_out.text(), "");
        let told = noted(few().collect(), true).left_out.text();
        assert!(told.contains("record all CPUs"), "{told}");
    }

    #[test]
    fn where_the_idle_task_leaves_all_was_recorded() {
        let mut events = with_stranger();
        events.push(switch(50_000, 0, 1));
        let r = noted(events, false);
        assert_eq!(r.left_out.text(), "");
        let m = measure(&r.events, 1, r.span(), None);
        assert!(m.threads.contains_key(&9));
    }

    #[test]
    fn a_recording_of_some_processes_has_switches_that_lead_nowhere() {
        let all = |n: u64| [switch(n * 100, 1, 2), switch(n * 100 + 50, 2, 1)];
        let all: Vec<Event> = (0..20).flat_map(all).collect();
        assert!(!lead_nowhere(&all, 2));
        let mut some: Vec<Event> = (0..40).map(|n| switch(n * 100, 1, 2)).collect();
        assert!(lead_nowhere(&some, 2));
        some[39].tid = 0;
        assert!(!lead_nowhere(&some, 2), "the idle task is there");
    }
}

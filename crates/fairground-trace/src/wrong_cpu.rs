//! Events with the number of a CPU on which they were not: each of the few events of that CPU is of
//! a thread that was on one other CPU before and after, and was not moved in between, or is a
//! wake-up of a thread by a CPU that had nothing to do with it. One such number would make a
//! machine of hundreds of CPUs. An idle CPU may really have one event, so without such a
//! contradiction all are kept.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{Event, Kind};
use crate::recording::{Recording, list_of, number_of};

/// A CPU with more events than that is there.
const FEW: u64 = 3;
/// And in a recording with fewer events for each of these all may have few.
const TIMES: u64 = 100;

impl Recording {
    /// Leaves out such events; a note says so.
    pub(crate) fn leave_out_wrong_cpus(&mut self) {
        if !self.said.is_empty() {
            return;
        }
        let wrong = wrong(&self.events, self.cpus);
        if wrong.is_empty() {
            return;
        }
        let before = self.events.len();
        self.events.retain(|e| !wrong.contains(&e.cpu));
        let mut cpus: Vec<u32> = wrong.into_iter().collect();
        cpus.sort_unstable();
        self.left_out.notes.push(format!(
            "{} left out: the trace contradicts that {} was on CPU {}",
            number_of(
                (before - self.events.len()) as u64,
                "event was",
                "events were"
            ),
            if before - self.events.len() == 1 {
                "it"
            } else {
                "each"
            },
            list_of(&cpus)
        ));
        self.cpus = self.stated_cpus.max(self.cpus_needed());
    }
}

/// CPUs all of whose events are contradicted.
fn wrong(events: &[Event], cpus: u32) -> FxHashSet<u32> {
    let mut counts = vec![0_u64; cpus as usize];
    for event in events {
        counts[event.cpu as usize] += 1;
    }
    let few = |n: u64| (1..=FEW).contains(&n) && n * TIMES <= events.len() as u64;
    let mut wrong: FxHashSet<u32> = (0..cpus).filter(|cpu| few(counts[*cpu as usize])).collect();
    if wrong.is_empty() {
        return wrong;
    }
    let mut last = Sightings::default();
    // Of events in question: who, and where that thread was before; open until it is seen again.
    let mut open: FxHashMap<u32, (u32, Option<u32>)> = FxHashMap::default();
    for event in events {
        let suspect = wrong.contains(&event.cpu);
        if suspect && !last.wakes_from_nowhere(event) {
            let Some(who) = subject(event).filter(|who| !open.contains_key(who)) else {
                wrong.remove(&event.cpu);
                continue;
            };
            open.insert(who, (event.cpu, last.on.get(&who).copied()));
            continue;
        }
        if suspect {
            continue;
        }
        for who in seen(event).into_iter().flatten() {
            if let Some((cpu, before)) = open.remove(&who)
                && before != Some(event.cpu)
            {
                wrong.remove(&cpu);
            }
        }
        if let Kind::Migrate { tid, to, .. } = event.kind {
            if let Some((cpu, _)) = open.remove(&tid) {
                wrong.remove(&cpu);
            }
            wrong.remove(&to);
        }
        last.see(event);
    }
    for (cpu, _) in open.into_values() {
        wrong.remove(&cpu);
    }
    wrong
}

/// Who was on a CPU by an event, if not only the idle task.
fn subject(event: &Event) -> Option<u32> {
    seen(event).into_iter().flatten().next()
}

fn seen(event: &Event) -> [Option<u32>; 2] {
    let some = |tid: u32| Some(tid).filter(|tid| *tid != 0);
    match event.kind {
        Kind::Switch { prev, next, .. } => [some(prev), some(next)],
        _ => [some(event.tid), None],
    }
}

/// Where threads were last.
#[derive(Default)]
struct Sightings {
    on: FxHashMap<u32, u32>,
    /// From which CPU each was woken last.
    woken_by: FxHashMap<u32, u32>,
}

impl Sightings {
    fn see(&mut self, event: &Event) {
        for who in seen(event).into_iter().flatten() {
            self.on.insert(who, event.cpu);
        }
        if let Kind::Waking { tid, .. } = event.kind {
            self.woken_by.insert(tid, event.cpu);
        }
    }

    /// A wake-up is done by the CPU that began it, or by the one that it goes to.
    fn wakes_from_nowhere(&self, event: &Event) -> bool {
        let Kind::Wakeup { tid, cpu, .. } = event.kind else {
            return false;
        };
        let began = self.woken_by.get(&tid);
        cpu != event.cpu && began.is_some_and(|began| *began != event.cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, State};

    fn event(at_ns: u64, cpu: u32, tid: u32, kind: Kind) -> Event {
        let context = Context::Unknown;
        Event {
            at_ns,
            cpu,
            tid,
            context,
            kind,
        }
    }

    fn switch(at_ns: u64, cpu: u32, prev: u32, next: u32) -> Event {
        let (prev_prio, next_prio) = (120, 120);
        let kind = Kind::Switch {
            prev,
            prev_prio,
            state: State::Blocked(b'S'),
            next,
            next_prio,
        };
        event(at_ns, cpu, prev, kind)
    }

    /// Thread 7 on CPU 0 wakes 8, which runs on CPU 1, for a hundred times.
    fn usual() -> Vec<Event> {
        let (tid, prio, cpu) = (8, 120, 1);
        let turn = |n: u64| {
            let at = n * 1000;
            [
                switch(at, 0, 0, 7),
                event(at + 1, 0, 7, Kind::Waking { tid, prio, cpu }),
                event(at + 2, 1, 0, Kind::Wakeup { tid, prio, cpu }),
                switch(at + 3, 1, 0, 8),
                switch(at + 4, 1, 8, 0),
                switch(at + 5, 0, 7, 0),
            ]
        };
        (0..100).flat_map(turn).collect()
    }

    fn read(events: Vec<Event>) -> Recording {
        let mut r = Recording::new("test");
        for event in events {
            assert!(r.push(event));
        }
        r.leave_out_wrong_cpus();
        r
    }

    #[test]
    fn an_event_on_a_cpu_where_it_cannot_have_been_is_left_out_and_told() {
        // The switches of either thread, its own act, and its wake-up.
        for wrong in 300..306 {
            let mut events = usual();
            events[wrong].cpu = 40;
            let before = events.len();
            let r = read(events);
            assert_eq!((r.cpus, r.events.len()), (2, before - 1), "{wrong}");
            let told = "1 event was left out: the trace contradicts that it was on CPU 40\n";
            assert_eq!(r.left_out.text(), told);
        }
    }

    #[test]
    fn a_cpu_with_few_events_is_kept_where_they_may_have_been() {
        let (tid, prio, cpu) = (8, 120, 1);
        let keeps = |more: Vec<Event>| {
            let mut events = usual();
            events.splice(300..300, more);
            assert_eq!(read(events).cpus, 41);
        };
        // An interrupt of an idle CPU; a thread that nobody has seen elsewhere; one that goes there
        // and comes back; one that is moved there.
        keeps(vec![event(50_000, 40, 0, Kind::Waking { tid, prio, cpu })]);
        keeps(vec![switch(50_000, 40, 0, 9)]);
        keeps(vec![switch(50_000, 40, 0, 8), switch(50_001, 40, 8, 0)]);
        let (from, to) = (1, 40);
        keeps(vec![
            event(50_000, 0, 0, Kind::Migrate { tid, from, to }),
            switch(50_001, 40, 0, 8),
        ]);
        let mut r = read(usual());
        r.states_cpus(64);
        r.leave_out_wrong_cpus();
        assert_eq!(r.cpus, 64);
    }
}

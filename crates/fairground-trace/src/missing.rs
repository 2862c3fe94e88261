//! When a thread got its CPU where that switch is missing: `sched_stat_runtime` says how long the
//! current thread has run since the last such event, or since it got there if it is the first one.
//! It comes at each tick and as the thread leaves. Where switches and wake-ups are complete nothing
//! is taken from it. Times are in nanoseconds.

use rustc_hash::FxHashMap;

use crate::event::{Context, Event, Kind};
use crate::raw::ours::RUNTIME;
use crate::recording::{Place, Recording};

impl Recording {
    /// Says since when threads ran whose switches are missing, where `sched_stat_runtime` has it.
    pub(crate) fn find_missing(&mut self) {
        let found = find(self);
        if found > 0 {
            self.left_out.other_events.remove(RUNTIME);
            let note = format!("{RUNTIME} says when {found} of the missing switches were");
            self.left_out.notes.push(note);
        }
    }
}

/// What is known of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Who runs, once anything is known, and since when.
    current: Option<u32>,
    since_ns: u64,
    /// The last event.
    last_ns: u64,
    /// Who is not thought to run and has run, by the first such event, and since when.
    found: Option<(u32, u64)>,
    /// Who came by a switch that is missing: after the first time, before the second.
    came: Option<(u32, u64, u64)>,
}

/// Where the walk would put a switch no earlier than at the next event, says since when the thread
/// ran; how many of these.
fn find(recording: &mut Recording) -> u64 {
    let mut ran = std::mem::take(&mut recording.ran).all;
    if ran.is_empty() {
        return 0;
    }
    ran.sort_by_key(|(at, ..)| at.at_ns);
    let mut ran = ran.into_iter().peekable();
    let mut cpus = vec![Cpu::default(); recording.cpus as usize];
    let mut threads = Threads::default();
    let mut found: Vec<Event> = Vec::new();
    let mut on = |cpu: u32, tid: u32, at_ns: u64| {
        found.push(Event {
            at_ns,
            cpu,
            tid,
            context: Context::Unknown,
            kind: Kind::On,
        });
    };
    for event in &recording.events {
        // Of one time, the thread leaves its CPU after it was said how long it has run.
        while let Some((at, tid, ns)) = ran.next_if(|(at, ..)| at.at_ns <= event.at_ns) {
            let cpu = cpus.get_mut(at.cpu as usize);
            if let Some(since) = cpu.and_then(|cpu| cpu.ran(at.at_ns, tid, ns, &threads)) {
                on(at.cpu, tid, since);
            }
        }
        let Some(cpu) = cpus.get_mut(event.cpu as usize) else {
            continue;
        };
        if let Some(since) = cpu.comes(event, &threads) {
            on(event.cpu, event.tid, since);
        }
        cpu.runs(event.tid, event.at_ns);
        if let Kind::Switch { next, .. } = event.kind {
            cpu.came = None;
            cpu.runs(next, event.at_ns);
        }
        threads.see(event);
    }
    let n = found.len();
    if n > 0 {
        recording.events.append(&mut found);
        // Those of one time stay in this order: what was known comes first.
        recording.events.sort_by_key(|e| e.at_ns);
    }
    n as u64
}

impl Cpu {
    fn runs(&mut self, tid: u32, at_ns: u64) {
        if self.current.replace(tid) != Some(tid) {
            self.since_ns = at_ns;
        }
        self.last_ns = at_ns;
    }

    /// `tid` had run here for so long: since when, if it came by a switch that is missing.
    fn ran(&mut self, at_ns: u64, tid: u32, ns: u64, threads: &Threads) -> Option<u64> {
        let since = at_ns.saturating_sub(ns);
        if let Some((came, after, before)) = self.came.take() {
            return (came == tid && since < before).then_some(since.max(after));
        }
        let known = self.current.is_some_and(|current| current != tid);
        let first = self.found.is_none_or(|(before, _)| before != tid);
        if known && first {
            let since = since.max(self.last_ns).max(threads.last_ns(tid));
            self.found = Some((tid, since));
        }
        None
    }

    /// Who is not thought to run executes an event: since when it has run, if that is known
    /// already and the walk does not know it by a wake-up.
    fn comes(&mut self, event: &Event, threads: &Threads) -> Option<u64> {
        let found = self.found.take();
        let (tid, at_ns) = (event.tid, event.at_ns);
        let missing = self.current.is_some_and(|current| current != tid);
        if !missing || tid == 0 || threads.waits(event, self) {
            return None;
        }
        let after = threads.last_ns(tid);
        match found.filter(|(found, _)| *found == tid) {
            Some((_, since)) => (after..at_ns).contains(&since).then_some(since),
            None => {
                self.came = Some((tid, after.max(self.last_ns), at_ns));
                None
            }
        }
    }
}

/// What is known of threads.
#[derive(Clone, Debug, Default)]
struct Threads {
    /// The last event that was of or about each.
    last_ns: FxHashMap<u32, u64>,
    /// Where each was woken to or moved, and when, unless it has run since.
    woken: FxHashMap<u32, Place>,
}

impl Threads {
    fn last_ns(&self, tid: u32) -> u64 {
        self.last_ns.get(&tid).copied().unwrap_or(0)
    }

    /// Whether the walk knows since when the thread of `event` waits for that CPU, idle since then.
    fn waits(&self, event: &Event, cpu: &Cpu) -> bool {
        let woken = self.woken.get(&event.tid);
        let here = woken.is_some_and(|w| w.cpu == event.cpu && w.at_ns >= cpu.since_ns);
        here && cpu.current == Some(0)
    }

    fn see(&mut self, event: &Event) {
        let at_ns = event.at_ns;
        self.woken.remove(&event.tid);
        self.last_ns.insert(event.tid, at_ns);
        match event.kind {
            Kind::Switch { prev, next, .. } => {
                for tid in [prev, next] {
                    self.woken.remove(&tid);
                    self.last_ns.insert(tid, at_ns);
                }
            }
            Kind::Waking { tid, .. } => drop(self.last_ns.insert(tid, at_ns)),
            Kind::Wakeup { tid, cpu, .. } | Kind::WakeupNew { tid, cpu, .. } => {
                self.last_ns.insert(tid, at_ns);
                self.woken.insert(tid, Place { at_ns, cpu });
            }
            Kind::Migrate { tid, to, .. } => {
                self.last_ns.insert(tid, at_ns);
                if let Some(place) = self.woken.get_mut(&tid) {
                    place.cpu = to;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::State;
    use crate::measure::measure;

    fn event(at_ns: u64, tid: u32, kind: Kind) -> Event {
        let (cpu, context) = (0, Context::Unknown);
        Event {
            at_ns,
            cpu,
            tid,
            context,
            kind,
        }
    }

    fn switch(at_ns: u64, prev: u32, next: u32) -> Event {
        let (prev_prio, next_prio) = (120, 120);
        let state = State::Blocked(b'S');
        let kind = Kind::Switch {
            prev,
            prev_prio,
            state,
            next,
            next_prio,
        };
        event(at_ns, prev, kind)
    }

    fn waking(at_ns: u64, by: u32) -> Event {
        let (tid, prio, cpu) = (9, 120, 1);
        event(at_ns, by, Kind::Waking { tid, prio, cpu })
    }

    /// CPU time of threads 1 and 2, and how many switches were found.
    fn measured(events: &[Event], ran: &[(u64, u32, u64)]) -> ([u64; 2], u64) {
        let mut r = Recording::new("test");
        for event in events {
            assert!(r.push(*event));
        }
        for (at_ns, tid, ns) in ran {
            let (at_ns, cpu) = (*at_ns, 0);
            r.ran.see(Place { at_ns, cpu }, *tid, *ns);
        }
        let found = find(&mut r);
        let m = measure(&r.events, 2, r.span(), None);
        let of = |tid| m.threads.get(&tid).map_or(0, |t| t.cpu_ns);
        ([of(1), of(2)], found)
    }

    #[test]
    fn who_came_by_a_missing_switch_has_run_as_long_as_it_is_said() {
        let mut events = vec![switch(100, 1, 0), switch(500, 1, 0), switch(900, 2, 0)];
        let ran = [(99, 1, 70), (300, 1, 80), (499, 1, 199), (899, 2, 300)];
        assert_eq!(measured(&events, &[]), ([0, 0], 0));
        // From 220 and from 599 on.
        assert_eq!(measured(&events, &ran), ([280, 301], 2));
        // The thread wakes another one before it is said how long it has run.
        events.insert(2, waking(700, 2));
        assert_eq!(measured(&events, &ran), ([280, 301], 2));
        // In text of microseconds both may have the same time.
        let same = ran.map(|(at, tid, ns)| (at + 1, tid, ns + 1));
        assert_eq!(measured(&events, &same), ([280, 301], 2));
        // It cannot have run before the CPU was idle.
        let ran = [(899, 2, 800)];
        assert_eq!(measured(&events, &ran), ([0, 400], 1));
    }

    #[test]
    fn nothing_is_taken_where_switches_or_wake_ups_are_there() {
        let (tid, prio, cpu) = (1, 120, 0);
        let wakeup = Kind::Wakeup { tid, prio, cpu };
        let events = [
            switch(100, 0, 2),
            switch(200, 2, 0),
            event(300, 0, wakeup),
            switch(500, 1, 0),
            switch(600, 0, 2),
            switch(600, 2, 0),
            switch(900, 0, 2),
        ];
        let ran = [(199, 2, 150), (499, 1, 90), (600, 2, 5), (700, 2, 50)];
        assert_eq!(measured(&events, &ran), measured(&events, &[]));
        assert_eq!(measured(&events, &ran).1, 0);
    }
}

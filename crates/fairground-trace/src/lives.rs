//! Ids of threads are used again. Who comes after another one with the same id is another thread,
//! with CPU time, names and a birth of its own, so it gets an id of its own, beyond those of the
//! kernel. All that follows keeps its books by these; people and other tools are told the kernel's
//! ([`crate::event::Names::kernel_id`]).
//!
//! A thread is over where a switch says that it has died, and where another one is created with its
//! id, as then its death was lost: the same rules as in [`crate::walk`].

use rustc_hash::FxHashMap;

use crate::event::{Kind, State};
use crate::names::Life;
use crate::recording::Recording;
use crate::told;

/// The kernel has no ids from here on (`PID_MAX_LIMIT`).
const BEYOND: u32 = 1 << 22;

/// Who has an id of the kernel that may be used again: all so far, in order.
#[derive(Debug, Default)]
struct Owners {
    lives: Vec<Life>,
    /// The last of them has died.
    over: bool,
}

struct Ids {
    /// Only ids whose owner dies or is created meanwhile.
    of: FxHashMap<u32, Owners>,
    /// The next that is free; `None` if there are no more.
    next: Option<u32>,
}

/// Gives threads that share an id of the kernel ids of their own.
pub fn apart(recording: &mut Recording) {
    recording.names.sort();
    // Ids of simulated tasks are not used again.
    if told::is_told(&recording.events) {
        return;
    }
    let mut ids = Ids::of(recording);
    if ids.of.is_empty() {
        return;
    }
    for event in &mut recording.events {
        let at = event.at_ns;
        let by_switch = matches!(event.kind, Kind::Switch { .. } | Kind::Exit { .. });
        // A switch says itself who leaves.
        let current = event.tid;
        if !by_switch {
            event.tid = ids.heard(current, at);
        }
        match &mut event.kind {
            Kind::Switch {
                prev, state, next, ..
            } => {
                let leaves = *prev;
                *prev = ids.heard(leaves, at);
                *next = ids.heard(*next, at);
                event.tid = ids.now(current);
                if *state == State::Dead {
                    ids.dies(leaves, &recording.names);
                }
            }
            Kind::Waking { tid, .. }
            | Kind::Wakeup { tid, .. }
            | Kind::WakeupNew { tid, .. }
            | Kind::Migrate { tid, .. } => *tid = ids.heard(*tid, at),
            Kind::Fork { parent, child } => {
                *parent = ids.heard(*parent, at);
                *child = ids.created(*child, at);
            }
            Kind::Exit { tid } => {
                *tid = ids.heard(*tid, at);
                event.tid = ids.now(current);
            }
            Kind::On | Kind::Told(_) => {}
        }
    }
    ids.tell(recording);
}

impl Ids {
    fn of(recording: &Recording) -> Self {
        let mut of: FxHashMap<u32, Owners> = FxHashMap::default();
        let mut most = BEYOND - 1;
        for event in &recording.events {
            most = most.max(event.tid);
            match event.kind {
                Kind::Switch {
                    prev, state, next, ..
                } => {
                    most = most.max(prev).max(next);
                    if state == State::Dead && prev != 0 {
                        of.entry(prev).or_default();
                    }
                }
                Kind::Fork { parent, child } => {
                    most = most.max(parent).max(child);
                    of.entry(child).or_default();
                }
                Kind::Waking { tid, .. }
                | Kind::Wakeup { tid, .. }
                | Kind::WakeupNew { tid, .. }
                | Kind::Migrate { tid, .. }
                | Kind::Exit { tid } => most = most.max(tid),
                Kind::On | Kind::Told(_) => {}
            }
        }
        of.remove(&0);
        let next = most.checked_add(1);
        Self { of, next }
    }

    /// The own id of who has this one of the kernel now.
    fn now(&self, tid: u32) -> u32 {
        let last = self.of.get(&tid).and_then(|owners| owners.lives.last());
        last.map_or(tid, |life| life.id)
    }

    /// The same of one that is heard of: after a death it is another one.
    fn heard(&mut self, tid: u32, at: u64) -> u32 {
        let Some(owners) = self.of.get_mut(&tid) else {
            return tid;
        };
        if owners.over || owners.lives.is_empty() {
            owners.begin(tid, at, &mut self.next);
        }
        owners.lives.last_mut().map_or(tid, |life| {
            life.to_ns = at;
            life.id
        })
    }

    fn created(&mut self, tid: u32, at: u64) -> u32 {
        if let Some(owners) = self.of.get_mut(&tid) {
            owners.begin(tid, at, &mut self.next);
        }
        self.now(tid)
    }

    fn dies(&mut self, tid: u32, names: &crate::event::Names) {
        self.end(tid, names);
        if let Some(owners) = self.of.get_mut(&tid) {
            owners.over = true;
        }
    }

    /// A process has the id of its first thread, which lives as long as the others.
    fn end(&mut self, tid: u32, names: &crate::event::Names) {
        let process = names.process(tid).map(|process| self.now(process));
        let last = self.of.get_mut(&tid).and_then(|o| o.lives.last_mut());
        if let Some(life) = last {
            life.process = process;
        }
    }

    fn tell(mut self, recording: &mut Recording) {
        let living = self.of.iter().filter(|(_, owners)| !owners.over);
        let living: Vec<u32> = living.map(|(tid, _)| *tid).collect();
        for tid in living {
            self.end(tid, &recording.names);
        }
        for (tid, owners) in &self.of {
            match owners.lives[..] {
                [] => {}
                [life] => recording.names.see_process(*tid, life.process.unwrap_or(0)),
                _ => recording.names.split(*tid, &owners.lives),
            }
        }
    }
}

impl Owners {
    /// The first one keeps the kernel's id.
    fn begin(&mut self, tid: u32, at: u64, next: &mut Option<u32>) {
        let id = match self.lives.len() {
            0 => Some(tid),
            _ => std::mem::replace(next, next.and_then(|id| id.checked_add(1))),
        };
        // No more ids: all that come are taken for the one before.
        let Some(id) = id else {
            return;
        };
        self.over = false;
        self.lives.push(Life {
            id,
            process: None,
            from_ns: at,
            to_ns: at,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::derive::Attributes;
    use crate::measure::measure;
    use crate::open;
    use crate::recording::Recording;

    fn read(text: &str) -> Recording {
        open::read(text.as_bytes(), &mut |_| {}).unwrap()
    }

    fn switch(us: u32, prev: (&str, u32), state: char, next: (&str, u32)) -> String {
        let (prev, prev_tid) = prev;
        let (next, next_tid) = next;
        format!(
            "last {prev_tid} [000] 1.{us:06}: sched:sched_switch: prev_comm={prev} \
             prev_pid={prev_tid} prev_prio=120 prev_state={state} ==> next_comm={next} \
             next_pid={next_tid} next_prio=120\n"
        )
    }

    /// Thread 7 runs for 100 us, changes its name and dies; another one with its id runs for 50.
    fn twice() -> Recording {
        let idle = ("swapper/0", 0);
        let forked = "sh 9 [001] 1.000300: sched:sched_process_fork: comm=sh pid=9 \
                      child_comm=sh child_pid=7\n";
        read(
            &[
                switch(0, idle, 'R', ("sh", 7)),
                switch(40, ("sh", 7), 'R', ("x", 8)),
                switch(50, ("x", 8), 'S', ("sh", 7)),
                switch(110, ("first", 7), 'X', idle),
                forked.to_string(),
                switch(310, idle, 'R', ("sh", 7)),
                switch(360, ("second", 7), 'X', idle),
            ]
            .concat(),
        )
    }

    #[test]
    fn who_has_the_id_of_another_one_is_another_thread() {
        let r = twice();
        let m = measure(&r.events, 2, r.span(), None);
        let later = 1 << 22;
        let of = [7, 8, later].map(|tid| m.threads[&tid].cpu_ns);
        assert_eq!(of, [100_000, 10_000, 50_000]);
        assert_eq!(
            (r.names.id(7), r.names.id(later)),
            ("7".into(), "7 #2".into())
        );
        assert_eq!((r.names.kernel_id(7), r.names.kernel_id(later)), (7, 7));
        assert_eq!(
            (r.names.get(7), r.names.get(later)),
            ("first".into(), "second".into())
        );
        // Who is named by its id is the first one.
        let known = Attributes::parse("[[thread]]\ntids = [7]\nslice_us = 3000\n").unwrap();
        assert!(known.of(7, "first").is_some() && known.of(later, "last").is_none());
    }

    #[test]
    fn each_has_the_name_and_the_id_that_it_had_then() {
        let r = twice();
        let mut out = Vec::new();
        crate::export::write(&r, crate::export::Format::Csv, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let about: Vec<(&str, &str)> = text
            .lines()
            .filter_map(|l| {
                let mut words = l.split(',').skip(4);
                Some((words.next()?, words.next()?))
            })
            .filter(|(tid, _)| *tid == "7")
            .collect();
        assert_eq!(about, [("7", "sh"), ("7", "first"), ("7", "second")]);
        let again = read(&{
            let mut out = Vec::new();
            crate::export::write(&r, crate::export::Format::Text, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        });
        assert_eq!(again.events, r.events);
    }

    #[test]
    fn a_death_that_was_lost_shows_by_the_next_birth() {
        let r = twice();
        let text = [
            switch(0, ("swapper/0", 0), 'R', ("a", 7)),
            switch(10, ("a", 7), 'S', ("b", 8)),
            "b 8 [000] 1.000020: sched:sched_process_fork: comm=b pid=8 child_comm=b child_pid=7\n"
                .into(),
        ];
        let lost = read(&text.concat());
        assert!(lost.names.is_later(1 << 22) && r.names.is_later(1 << 22));
        assert_eq!(lost.names.get(7), "a");
    }
}

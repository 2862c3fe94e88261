//! Who executed events, where the columns in front of them do not say it: perf writes -1 for
//! threads that have exited, and `-F pid` names the process.

use rustc_hash::FxHashMap;

use super::line::UNKNOWN;
use crate::event::Kind;
use crate::recording::Recording;

/// The columns are not to be believed if they name another thread than the switches do, in more
/// than one of so many.
const ONE_OF: usize = 100;

/// Nor if all of so many switches from a thread, or more, name one other: in a recording of few
/// processes with threads these are few of all.
const ALL_OF: u32 = 3;

/// What the columns name as a thread leaves its CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    last: u32,
    same: u32,
    differ: bool,
}

impl Named {
    fn see(&mut self, tid: u32) {
        self.differ |= self.same > 0 && self.last != tid;
        self.last = tid;
        self.same += 1;
    }

    fn is_all(self, prev: u32) -> bool {
        self.last != prev && !self.differ && self.same >= ALL_OF
    }
}

/// Takes threads from the switches of their CPU where it must.
pub fn mend(recording: &mut Recording) {
    let (mut switches, mut others, mut unknown) = (0, 0, 0);
    let mut named: FxHashMap<u32, Named> = FxHashMap::default();
    for event in &recording.events {
        unknown += usize::from(event.tid == UNKNOWN);
        if let Kind::Switch { prev, .. } = event.kind {
            switches += 1;
            if event.tid != UNKNOWN {
                others += usize::from(event.tid != prev);
                named.entry(prev).or_default().see(event.tid);
            }
        }
    }
    let other = |(prev, named): (&u32, &Named)| named.is_all(*prev);
    let all = others * ONE_OF > switches || named.iter().any(other);
    if !all && unknown == 0 {
        return;
    }
    // Before a switch ran whom it takes from the CPU; after the last one, whom that gave it to.
    let mut current: Vec<Option<u32>> = vec![None; recording.cpus as usize];
    let mut left: Vec<Option<u32>> = vec![None; recording.cpus as usize];
    for event in &recording.events {
        if let Kind::Switch { next, .. } = event.kind {
            left[event.cpu as usize] = Some(next);
        }
    }
    for event in recording.events.iter_mut().rev() {
        let cpu = event.cpu as usize;
        if let Kind::Switch { prev, .. } = event.kind {
            current[cpu] = Some(prev);
        }
        if all || event.tid == UNKNOWN {
            event.tid = current[cpu].or(left[cpu]).unwrap_or(0);
        }
    }
    if all {
        recording.left_out.notes.push(format!(
            "its first columns name another thread than {others} of {switches} sched_switch do, \
             as with `perf script -F pid`: who ran is taken from these; add tid"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event, State};

    #[test]
    fn one_thread_that_always_has_another_name_is_enough() {
        let switch = |(n, (tid, prev)): (usize, (u32, u32))| Event {
            at_ns: n as u64,
            cpu: 0,
            tid,
            context: Context::Unknown,
            kind: Kind::Switch {
                prev,
                prev_prio: 120,
                state: State::Blocked(b'S'),
                next: 0,
                next_prio: 120,
            },
        };
        let with = |pairs: &[(u32, u32)]| {
            let usual = std::iter::repeat_n((7, 7), 1000);
            let mut r = Recording::new("test");
            let all = usual.chain(pairs.iter().copied()).enumerate().map(switch);
            all.for_each(|event| assert!(r.push(event)));
            mend(&mut r);
            r
        };
        let few = with(&[(7, 8), (7, 8), (7, 8)]);
        assert!(
            few.left_out
                .text()
                .contains("another thread than 3 of 1003")
        );
        assert_eq!(few.events[1002].tid, 8);
        // Who takes over the id of its process by execve had its own before.
        let mixed = with(&[(7, 8), (8, 8), (7, 8)]);
        assert_eq!(mixed.left_out.text(), "");
    }
}

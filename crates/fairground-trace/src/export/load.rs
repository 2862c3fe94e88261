//! How many threads run on or wait for each CPU, whenever that changes.

use crate::event::State;
use crate::recording::Recording;
use crate::walk::{Fact, Walk};

/// A change: when (ns), on which CPU, and how many since then.
pub type Change = (u64, u32, u32);

/// All changes in order of time.
pub fn changes(recording: &Recording) -> Vec<Change> {
    let cpus = recording.cpus;
    let mut count = vec![0_u32; cpus as usize];
    let mut on: Vec<Option<u32>> = Vec::new();
    let mut changes: Vec<Change> = Vec::new();
    Walk::over(&recording.events, cpus, |threads, fact| {
        on.resize(threads.len(), None);
        let (thread, to, at) = match fact {
            Fact::Runnable { thread, cpu, at }
            | Fact::In {
                thread, cpu, at, ..
            } => (thread, Some(cpu), at),
            Fact::Migrated { thread, to, at } if on[thread].is_some() => (thread, Some(to), at),
            Fact::Out {
                thread,
                at,
                state: State::Blocked(_) | State::Dead,
                ..
            } => (thread, None, at),
            _ => return,
        };
        if on[thread] == to {
            return;
        }
        if let Some(from) = on[thread] {
            count[from as usize] -= 1;
            changes.push((at, from, count[from as usize]));
        }
        if let Some(to) = to.filter(|to| *to < cpus) {
            count[to as usize] += 1;
            changes.push((at, to, count[to as usize]));
        }
        on[thread] = to.filter(|to| *to < cpus);
    });
    changes
}

//! What the threads of an rt-app file share, made when an event first names it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::names::by_index;
use crate::workload::program::Workload;

/// Numbers of all things, by their names. A condition variable and a mutex may have one name.
#[derive(Default)]
pub(super) struct Objects {
    mutexes: BTreeMap<String, u32>,
    conds: BTreeMap<String, u32>,
    timers: BTreeMap<String, u32>,
    barriers: BTreeMap<String, u32>,
    /// Threads that meet at each barrier.
    parties: Vec<u32>,
    /// Tasks that name a barrier.
    met: BTreeSet<String>,
}

fn number(names: &mut BTreeMap<String, u32>, name: &str) -> u32 {
    let next = names.len() as u32;
    *names.entry(name.to_owned()).or_insert(next)
}

impl Objects {
    pub(super) fn mutex(&mut self, name: &str) -> u32 {
        number(&mut self.mutexes, name)
    }

    pub(super) fn cond(&mut self, name: &str) -> u32 {
        number(&mut self.conds, name)
    }

    pub(super) fn timer(&mut self, name: &str) -> u32 {
        number(&mut self.timers, name)
    }

    /// A barrier is a condition variable and a mutex of its own: their numbers.
    pub(super) fn barrier(&mut self, name: &str) -> (u32, u32) {
        let barrier = number(&mut self.barriers, name);
        self.parties.resize(self.barriers.len(), 0);
        (barrier, self.mutex(&format!("of barrier {name}")))
    }

    /// `threads` of a task meet at a barrier.
    pub(super) fn meet(&mut self, barrier: u32, task: &str, threads: u32) {
        self.parties[barrier as usize] += threads;
        self.met.insert(task.to_owned());
    }

    /// Whether a task names a barrier.
    pub(super) fn meets(&self, task: &str) -> bool {
        self.met.contains(task)
    }

    /// Adds all of them to the workload.
    pub(super) fn declare(self, w: &mut Workload) {
        w.n_mutexes = self.mutexes.len() as u32;
        w.n_futexes = self.conds.len() as u32;
        w.n_timers = self.timers.len() as u32;
        w.barriers = self.parties;
        w.labels.mutexes = by_index(&self.mutexes);
        w.labels.futexes = by_index(&self.conds);
        w.labels.barriers = by_index(&self.barriers);
    }
}

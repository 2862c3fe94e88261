//! When threads of a replay have done what was recorded. Units: nanoseconds.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::derive::cut::{cut_ns, done_mark};
use crate::derive::{Derived, Logs};
use crate::event::Kind;
use crate::recording::Recording;
use crate::walk::ThreadId;

/// When they have.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// Of threads that go on: when, by thread id.
    pub going_on: FxHashMap<u32, u64>,
    /// Of all that have: when, by thread id.
    pub at: FxHashMap<u32, u64>,
    /// All that have.
    pub threads: FxHashSet<ThreadId>,
}

impl Done {
    /// From when each mark was first passed.
    pub fn of(logs: &Logs, derived: &Derived, passed: &[Option<u64>]) -> Self {
        let mut done = Self::default();
        for (template, thread) in (0..).zip(&derived.threads) {
            let mark = done_mark(template) as usize;
            let Some(at) = passed.get(mark).copied().flatten() else {
                continue;
            };
            let tid = logs.threads[*thread].tid;
            done.threads.insert(*thread);
            done.at.insert(tid, at);
            if cut_ns(&logs.logs[*thread]).is_some() {
                done.going_on.insert(tid, at);
            }
        }
        done
    }

    /// Ids of threads that have not.
    pub fn undone(&self, logs: &Logs, derived: &Derived) -> FxHashSet<u32> {
        let undone = |thread: &&ThreadId| {
            !logs.told && derived.ops[**thread] > 0 && !self.threads.contains(*thread)
        };
        let threads = derived.threads.iter().filter(undone);
        threads.map(|thread| logs.threads[*thread].tid).collect()
    }

    /// When the last one had: those that do not go on, when they left their CPUs.
    pub fn last(&self, events: &Recording) -> u64 {
        let ends = |kind: &Kind| match kind {
            Kind::Switch { prev, .. } => *prev != 0 && !self.going_on.contains_key(prev),
            _ => false,
        };
        let left = events.events.iter().rfind(|e| ends(&e.kind));
        let left = left.map_or(0, |e| e.at_ns);
        self.going_on.values().copied().fold(left, u64::max)
    }
}

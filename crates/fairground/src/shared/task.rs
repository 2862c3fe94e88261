//! What other CPUs may read of a task without its queue.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::Relaxed;
use crate::value::TaskId;

/// `[any]` One task's words that wakers read and write. Whoever uses them reports the touch, of
/// several at once.
#[derive(Debug)]
pub struct TaskShared {
    /// The CPU it is on or last was on (`task_cpu`).
    pub cpu: AtomicU32,
    /// Its slot there; meaningful only under that queue's lock and while `queued`.
    pub slot: AtomicU32,
    /// An `Rq` keeps it.
    pub queued: AtomicBool,
    /// It runs now.
    pub on_cpu: AtomicBool,
    /// `recent_used_cpu`.
    pub recent_used_cpu: AtomicU32,
    /// Times it woke somebody else than the last time (own task as waker).
    pub wakee_flips: AtomicU32,
    /// Whom it woke last.
    pub last_wakee: AtomicU32,
    /// When `wakee_flips` was last halved, jiffies.
    pub wakee_flip_decay: AtomicU64,
}

impl TaskShared {
    /// Takes over whom another task has woken, and how often it changed.
    pub(crate) fn wakes_like(&self, other: &Self) {
        self.wakee_flips
            .store(other.wakee_flips.load(Relaxed), Relaxed);
        self.last_wakee
            .store(other.last_wakee.load(Relaxed), Relaxed);
        self.wakee_flip_decay
            .store(other.wakee_flip_decay.load(Relaxed), Relaxed);
    }
}

impl Default for TaskShared {
    fn default() -> Self {
        Self {
            cpu: AtomicU32::new(0),
            slot: AtomicU32::new(0),
            queued: AtomicBool::new(false),
            on_cpu: AtomicBool::new(false),
            recent_used_cpu: AtomicU32::new(0),
            wakee_flips: AtomicU32::new(0),
            last_wakee: AtomicU32::new(TaskId::NONE.0),
            wakee_flip_decay: AtomicU64::new(0),
        }
    }
}

//! What other CPUs may read of a task without its queue.

use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

use super::Relaxed;
use crate::value::TaskId;

/// Who keeps a task (`p->on_rq`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnRq {
    /// No `Rq`: the host has it.
    No,
    /// An `Rq`, that of its CPU.
    Queued,
    /// It is on its way from one to another (`TASK_ON_RQ_MIGRATING`), in the hands of a CPU that
    /// will have queued it in a moment: wait.
    Migrating,
}

/// `[any]` One task's words that wakers read and write. Whoever uses them reports the touch, of
/// several at once.
#[derive(Debug)]
pub struct TaskShared {
    /// The CPU it is on or last was on (`task_cpu`).
    pub cpu: AtomicU32,
    /// Its slot there; meaningful only under that queue's lock and while it is queued.
    pub slot: AtomicU32,
    on_rq: AtomicU8,
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
    /// Who keeps it. Whoever sees that the host has it sees also what was done to it before.
    #[inline]
    #[must_use]
    pub fn on_rq(&self) -> OnRq {
        match self.on_rq.load(Acquire) {
            0 => OnRq::No,
            1 => OnRq::Queued,
            _ => OnRq::Migrating,
        }
    }

    /// Says who keeps it from now on: the holder of the queue that has it does, and has parked it
    /// before it says [`OnRq::No`].
    #[inline]
    pub fn set_on_rq(&self, on_rq: OnRq) {
        self.on_rq.store(on_rq as u8, Release);
    }

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
            on_rq: AtomicU8::new(OnRq::No as u8),
            on_cpu: AtomicBool::new(false),
            recent_used_cpu: AtomicU32::new(0),
            wakee_flips: AtomicU32::new(0),
            last_wakee: AtomicU32::new(TaskId::NONE.0),
            wakee_flip_decay: AtomicU64::new(0),
        }
    }
}

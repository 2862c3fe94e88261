//! What tasks wait on: an object of user memory with those that wait for it in the kernel.

use std::collections::VecDeque;

use fairground::value::TaskId;

use crate::cache::{LineId, Ps, Resource};

/// Which table.
#[derive(Clone, Copy)]
pub(super) enum Table {
    Sem,
    Futex,
    Mutex,
    Barrier,
    Service,
    /// A futex of a task's own, on which it waits for an answer.
    Own,
}

/// One object that tasks wait on.
#[derive(Debug, Default)]
pub struct Waitable {
    /// Semaphore: its value. Mutex: its state. Barrier: arrived.
    pub value: u32,
    /// Who waits, the next to be woken first.
    pub waiters: VecDeque<TaskId>,
    /// In user memory.
    pub line: Option<LineId>,
    /// In the kernel.
    pub bucket: Bucket,
}

/// The hash bucket of an object (`futex_hash_bucket`).
#[derive(Debug, Default)]
pub(super) struct Bucket {
    pub line: Option<LineId>,
    pub lock: Resource,
    /// Since when nobody else can take the lock.
    pub held_since: Ps,
    /// Who is counted and has not queued yet.
    pub coming: u32,
}

//! What a walk over a recording says, in order. Times are in nanoseconds on the recording's clock.

use crate::event::{State, Told};

/// A thread of the recording. Ids of the kernel are used again; these are not.
pub type ThreadId = usize;

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// `thread` used a CPU.
    Ran {
        /// Who.
        thread: ThreadId,
        /// Where.
        cpu: u32,
        /// From.
        from: u64,
        /// To.
        to: u64,
    },
    /// `thread` got a CPU.
    In {
        /// Who.
        thread: ThreadId,
        /// Where.
        cpu: u32,
        /// When.
        at: u64,
        /// It had waited since then after a wake-up; `None`: after a preemption, or not known.
        woken: Option<u64>,
        /// The recording does not have the switch.
        inferred: bool,
    },
    /// `thread` left its CPU.
    Out {
        /// Who.
        thread: ThreadId,
        /// Where.
        cpu: u32,
        /// When.
        at: u64,
        /// How.
        state: State,
    },
    /// A sleeping `thread` was woken.
    Woken {
        /// Who.
        thread: ThreadId,
        /// When the wake-up began.
        at: u64,
        /// By whom.
        by: Waker,
        /// The CPU that executed it.
        cpu: u32,
    },
    /// A woken `thread` is on a run queue.
    Runnable {
        /// Who.
        thread: ThreadId,
        /// Where.
        cpu: u32,
        /// When.
        at: u64,
    },
    /// A thread was created.
    Forked {
        /// By whom, if that is known.
        parent: Option<ThreadId>,
        /// Who.
        child: ThreadId,
        /// When.
        at: u64,
    },
    /// A thread moved while it waited for a CPU.
    Migrated {
        /// Who.
        thread: ThreadId,
        /// To which CPU.
        to: u32,
        /// When.
        at: u64,
    },
    /// Somebody has changed the priority of a thread since it was last seen.
    Reniced {
        /// Who.
        thread: ThreadId,
        /// Its priority now: 120 is nice 0.
        prio: i16,
        /// When that was first seen.
        at: u64,
    },
    /// What a running thread did.
    Told {
        /// Who.
        thread: ThreadId,
        /// When.
        at: u64,
        /// What.
        what: Told,
    },
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A thread, by an operation of its own.
    Thread(ThreadId),
    /// Perhaps a thread, perhaps an interrupt that met it.
    Perhaps(ThreadId),
    /// An interrupt.
    Interrupt,
    /// The recording does not have it.
    Unseen,
}

//! What a thread did, step by step, as the log of a recording has it. Times are in nanoseconds.

use crate::act::Act;
use crate::event::Timer;
use crate::walk::{ThreadId, Waker};

/// What a thread did, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It used a CPU for so long; waiting for one does not count.
    Run(u64),
    /// It woke a thread, or an interrupt that met it did.
    Wake {
        /// Whom.
        thread: ThreadId,
        /// Whether it may have been an interrupt.
        perhaps: bool,
        /// When.
        at: u64,
    },
    /// It created a thread.
    Fork(ThreadId),
    /// It went to sleep and may have released this thread before: one that had woken it, was
    /// preempted by it, and so needed no wake-up.
    Release(ThreadId),
    /// The other side of [`Step::Release`]: here it goes on after the preemption.
    Released(ThreadId),
    /// It left its CPU, runnable, though nobody had come to it since it got there: at a tick, or by
    /// itself (`sched_yield`).
    Left(u64),
    /// It gave up its CPU by a call (`sched_yield`).
    Yield,
    /// It began to do this with others, as it says itself.
    Act(Act),
    /// Here it is first seen with another nice value.
    Nice(i8),
    /// Here it is first seen on a second CPU.
    Moved,
    /// It slept.
    Block(Block),
}

/// A sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// From.
    pub from: u64,
    /// To, and what ended it; `None`: it lasts until the end.
    pub woken: Option<(u64, Waker)>,
    /// The timer that it set before, and when.
    pub timer: Option<(u64, Timer)>,
    /// A part of what it began to do with others ([`Step::Act`]).
    pub in_act: bool,
}

impl Block {
    /// Whether its timer ended it: nobody else wakes whom only a timer wakes.
    #[must_use]
    pub fn timed_out(&self) -> Option<(u64, Timer)> {
        let (at, _) = self.woken?;
        self.timer.filter(|(_, timer)| at >= timer.soft_ns)
    }
}

//! Whether and how a wake-up preempts, and how it reaches another CPU.

/// `WAKEUP_PREEMPTION` and `PREEMPT_SHORT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeupPreemption {
    /// Never.
    Off,
    /// When the woken entity is the better pick.
    On,
    /// Also against slice protection if its slice is shorter (6.12 and later).
    OnShorterSlice,
}

/// `NEXT_BUDDY`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextBuddy {
    /// Off, the default.
    Off,
    /// A woken entity is preferred at the next pick.
    On,
}

/// `TTWU_QUEUE`: wake-ups of CPUs that share no cache go through a remote list and an IPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TtwuQueue {
    /// The waker always takes the remote queue's lock.
    Direct,
    /// Across caches, or to an idle CPU, the remote CPU enqueues.
    Remote,
}

impl TtwuQueue {
    /// Whether the target CPU enqueues the task itself: `share_cache` with the waker's CPU,
    /// `same` CPU, `empty` queue there (`ttwu_queue_cond`).
    #[inline]
    pub fn queues(self, share_cache: bool, same: bool, empty: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Direct => false,
            Self::Remote => !share_cache || (!same && empty()),
        }
    }
}

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

impl WakeupPreemption {
    /// Whether a wake-up preempts at all.
    #[inline]
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether a shorter slice counts against protection (`PREEMPT_SHORT`).
    #[inline]
    #[must_use]
    pub const fn by_slice(self) -> bool {
        matches!(self, Self::OnShorterSlice)
    }
}

/// `NEXT_BUDDY` and `PICK_BUDDY`: who is preferred at the next pick of a queue, if eligible.
///
/// Source: "sched/fair: Untangle NEXT_BUDDY and pick_next_task()", Peter Zijlstra, 6.14.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextBuddy {
    /// Nobody (6.6 to 6.13).
    Off,
    /// A group one of whose tasks has gone to sleep (6.14 and later, and CFS).
    Group,
    /// That, and a woken entity.
    On,
}

impl NextBuddy {
    /// Whether the pick looks at the buddy.
    #[inline]
    #[must_use]
    pub const fn is_picked(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether a wake-up makes its entity the buddy.
    #[inline]
    #[must_use]
    pub const fn marks_woken(self) -> bool {
        matches!(self, Self::On)
    }
}

/// `TTWU_QUEUE`: wake-ups of CPUs that share no cache go through a remote list and an IPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TtwuQueue {
    /// The waker always takes the remote queue's lock.
    Direct,
    /// Across caches the remote CPU enqueues (up to 5.19).
    CrossCache,
    /// Across caches, or to an idle CPU, the remote CPU enqueues (6.0 and later).
    Remote,
}

impl TtwuQueue {
    /// Whether the target CPU enqueues the task itself: `share_cache` with the waker's CPU,
    /// `same` CPU, `empty` queue there (`ttwu_queue_cond`).
    #[inline]
    pub fn queues(self, share_cache: bool, same: bool, empty: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Direct => false,
            Self::CrossCache => !share_cache,
            Self::Remote => !share_cache || (!same && empty()),
        }
    }
}

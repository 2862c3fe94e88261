//! What a wake-up does to a running task of `SCHED_IDLE`, or one of a group with `cpu.idle`.
//!
//! Sources: "sched/fair: Make SCHED_IDLE entity be preempted in strict hierarchy", Tianchen Ding,
//! 2024, for 6.12; "sched: Cancel the slice protection of the idle entity", Zihan Zhou, 2025, for
//! 6.15.

/// Who gives way to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdlePreemption {
    /// A task of `SCHED_IDLE` to any other task, whatever their groups, before entities are
    /// compared; the queue still chooses (up to 6.11).
    Tasks,
    /// Of two entities that compete, the idle one; the queue still chooses (6.12 to 6.12.22, 6.13
    /// and 6.14 as they were released).
    Entities,
    /// The same, and its protection ends (6.15 and later, and stable kernels of April 2025).
    Unprotected,
}

impl IdlePreemption {
    /// Whether the tasks' policies are compared before anything else.
    #[inline]
    #[must_use]
    pub const fn compares_tasks(self) -> bool {
        matches!(self, Self::Tasks)
    }

    /// Whether the idle entity loses its protection.
    #[inline]
    #[must_use]
    pub const fn ends_protection(self) -> bool {
        matches!(self, Self::Unprotected)
    }
}

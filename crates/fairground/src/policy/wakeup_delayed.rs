//! What a wake-up does if a delayed sleeper is in the way of its preemption.
//!
//! A wake-up preempts if the woken entity is whom the queue would pick. That pick can be a delayed
//! sleeper, who is not to run but to leave.
//!
//! Source: changelog "sched/fair: Fix wakeup_preempt_fair() vs delayed dequeue" (Vincent Guittot,
//! 2026-04-22; in 6.18-stable since May 2026). Observed on 6.18.44: a trace of five tasks that
//! sleep, with the vruntime and deadline of each read every 5 ms. Where a delayed sleeper was the
//! pick and the woken task the next, it preempted.

/// What becomes of a delayed sleeper whom a wake-up finds first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeupDelayed {
    /// It stays, and the woken entity does not preempt (6.12).
    Blocks,
    /// It leaves, and the next one is looked at (6.18 as recorded).
    Leaves,
}

impl WakeupDelayed {
    /// Whether it leaves.
    #[inline]
    #[must_use]
    pub const fn leaves(self) -> bool {
        matches!(self, Self::Leaves)
    }
}

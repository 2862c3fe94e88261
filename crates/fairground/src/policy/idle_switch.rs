//! An idle CPU that is asked to reschedule and finds its queue empty.
//!
//! Source: "sched/core: Introduce SM_IDLE and an idle re-entry fast-path in __schedule()", K.
//! Prateek Nayak, 2024, for 6.12.

/// What such a CPU does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleSwitch {
    /// It asks the classes, so looks for work as when it runs dry; its idle period begins anew (up
    /// to 6.11).
    Chooses,
    /// It stays idle (6.12 and later).
    Stays,
}

impl IdleSwitch {
    /// Whether the idle task goes on without a choice.
    #[inline]
    #[must_use]
    pub const fn stays(self) -> bool {
        matches!(self, Self::Stays)
    }
}

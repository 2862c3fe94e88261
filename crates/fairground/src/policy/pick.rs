//! Whom to pick: the two generations of the fair class.
//!
//! Sources: Documentation/scheduler/sched-eevdf.rst and sched-design-CFS.rst.

use crate::task::SchedEntity;

/// The rule of the pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// Earliest virtual deadline among the eligible (6.6 and later).
    Eevdf,
    /// Least virtual run time (up to 6.5).
    Cfs,
}

/// The reference point of a queue's virtual time.
///
/// Nothing but lines depends on it: keys are relative to it, and so are their sums. Sources:
/// "sched/fair: Fix zero_vruntime tracking" and the change that introduced `zero_vruntime`, Peter
/// Zijlstra, 2025, for 6.19 and the stable kernels of January 2026 (6.18.4, 6.12.64).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VruntimeBase {
    /// The least virtual run time, written whenever the running entity is charged (up to 6.18 as
    /// released; always with CFS).
    Least,
    /// The mean, moved whenever it is computed (6.18.4 and later).
    Mean,
}

impl VruntimeBase {
    /// Whether charging the running entity moves it.
    #[inline]
    #[must_use]
    pub const fn moves_with_charge(self) -> bool {
        matches!(self, Self::Least)
    }
}

impl Pick {
    /// Whether entities have requests, deadlines and lag; only virtual run time otherwise.
    #[inline]
    #[must_use]
    pub const fn by_deadline(self) -> bool {
        matches!(self, Self::Eevdf)
    }

    /// What the tree of a queue is sorted by, virtual ns.
    #[inline]
    #[must_use]
    pub const fn order(self, se: &SchedEntity) -> u64 {
        match self {
            Self::Eevdf => se.deadline,
            Self::Cfs => se.vruntime,
        }
    }
}

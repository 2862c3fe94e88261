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

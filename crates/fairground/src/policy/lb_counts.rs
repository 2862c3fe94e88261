//! Which tasks of a queue balancing counts, and moves: those that sleep there, too?
//!
//! Sources: "sched/fair: Use the new cfs_rq.h_nr_runnable" and "sched/fair: Do not try to migrate
//! delayed dequeue task", Vincent Guittot, December 2024, for 6.14. Of that series stable 6.12 has
//! the counter only.

/// What a delayed sleeper is to balancing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LbCounts {
    /// A task like others (`h_nr_queued`; 6.12 and 6.13).
    Queued,
    /// None (`h_nr_runnable`), and it is moved only where load is to be evened out.
    Runnable,
}

impl LbCounts {
    /// Whether a delayed sleeper counts, and may be moved though it is not load that is evened out.
    #[inline]
    #[must_use]
    pub const fn sleepers(self) -> bool {
        matches!(self, Self::Queued)
    }
}

//! Which of two groups with equally many idle CPUs a new task goes to (patch
//! `idlest-util-tiebreak`).
//!
//! Source: "sched/fair: update_pick_idlest() Select group with lowest group_util when idle_cpus
//! are equal", Peter Puhov, 2020, for 5.9; `nr_running` is the alternative of its review.

/// The tie-break of the slow path among groups that have room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdlestTie {
    /// The group seen first keeps the place (up to 5.8).
    FirstGroup,
    /// Lowest utilisation.
    GroupUtil,
    /// Fewest running tasks.
    NrRunning,
}

impl IdlestTie {
    /// Whether a candidate with equally many idle CPUs replaces the best one so far.
    /// Each side is `(group_util, sum_nr_running)`.
    #[inline]
    #[must_use]
    pub const fn replaces(self, best: (u64, u32), candidate: (u64, u32)) -> bool {
        match self {
            Self::FirstGroup => false,
            Self::GroupUtil => candidate.0 < best.0,
            Self::NrRunning => candidate.1 < best.1,
        }
    }
}

/// Which CPUs of a group the slow path looks at.
///
/// Source: "sched/fair: Only update stats for allowed CPUs when looking for dst group", Adam Li,
/// 2025, for 6.19, in stable kernels of July 2026 (6.18.39, and older ones).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdlestStats {
    /// All: CPUs that the task may not use make a group look idle or loaded, too.
    AllCpus,
    /// Those that the task may use. The group's size and capacity are those of all.
    Allowed,
}

impl IdlestStats {
    /// Whether only allowed CPUs are looked at.
    #[inline]
    #[must_use]
    pub const fn only_allowed(self) -> bool {
        matches!(self, Self::Allowed)
    }
}

//! In which order a wake-up looks for an idle CPU in the target's cache domain.
//!
//! Sources: "sched/fair: Merge select_idle_core/cpu()", Mel Gorman, 2021, for 5.12; "sched/fair:
//! Bring back select_idle_smt(), but differently", Rik van Riel, 2021, for 5.13; "sched/fair: Avoid
//! a second scan of target in select_idle_cpu", Mel Gorman, 2021, for 5.15; "sched/fair: Scan
//! cluster before scanning LLC in wake-up path", Barry Song and Yicong Yang, 2023, for 6.7.

/// The order of `select_idle_sibling` once target, previous and recently used CPU are not idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleSearch {
    /// All cores for an idle one, if there is said to be one; then CPUs from the target on; then
    /// the threads of the target's core (up to 5.11).
    CoreCpuThread,
    /// A thread of the previous CPU's core if no core is said to be idle; then one pass for cores
    /// and CPUs, from after the target on (up to 6.6).
    ThreadThenScan,
    /// The same, the target's cluster first (6.7 and later).
    ClusterFirst,
}

impl IdleSearch {
    /// Whether cores and CPUs are looked at in passes of their own.
    #[inline]
    #[must_use]
    pub const fn has_passes(self) -> bool {
        matches!(self, Self::CoreCpuThread)
    }

    /// Whether a CPU of the target's cluster is better than another one of its cache.
    #[inline]
    #[must_use]
    pub const fn knows_clusters(self) -> bool {
        matches!(self, Self::ClusterFirst)
    }
}

//! How uneven nodes may be before tasks are spread over them.
//!
//! Sources: "sched/fair: Rework find_idlest_group()", Vincent Guittot, 5.5; "sched/fair: Allow a
//! small load imbalance between low utilisation SD_NUMA domains", Mel Gorman, 5.6; "sched/fair:
//! Adjust the allowed NUMA imbalance when SD_NUMA spans multiple LLCs", Mel Gorman, 5.18.

/// Least imbalance that a pair of tasks is allowed to make.
const NUMA_IMBALANCE_MIN: u32 = 2;

/// What is tolerated between nodes with room to spare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumaImbalance {
    /// Nothing (before 5.5).
    None,
    /// A new task stays while its node has an idle CPU; balancing leaves nodes alone that run two
    /// tasks at most (5.6 to 5.10).
    LocalIdle,
    /// A node keeps as many tasks as the topology says (`imb_numa_nr`, 5.18 and later).
    ImbNumaNr,
}

impl NumaImbalance {
    /// Whether a new task stays on the local node, where `local_idle` CPUs idle and `nr_running`
    /// tasks run that may be `keeps`; on the other one `idle` CPUs do.
    #[inline]
    #[must_use]
    pub const fn stays(self, local_idle: u32, idle: u32, nr_running: u32, keeps: u32) -> bool {
        match self {
            Self::None => false,
            Self::LocalIdle => local_idle > 0,
            Self::ImbNumaNr => {
                nr_running < keeps && local_idle.abs_diff(idle) <= NUMA_IMBALANCE_MIN
            }
        }
    }

    /// Whether balancing tolerates an imbalance of `tasks`, if the source runs `src_running` and
    /// the destination would run `dst_running` of the `keeps` that it may.
    #[inline]
    #[must_use]
    pub const fn tolerates(
        self,
        tasks: i64,
        src_running: u32,
        dst_running: u32,
        keeps: u32,
    ) -> bool {
        match self {
            Self::None => false,
            Self::LocalIdle => src_running <= NUMA_IMBALANCE_MIN,
            Self::ImbNumaNr => dst_running <= keeps && tasks <= NUMA_IMBALANCE_MIN as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_task_stays_by_each_kernels_rule() {
        let stays = |rule: NumaImbalance, local_idle| rule.stays(local_idle, 60, 40, 16);
        assert!(stays(NumaImbalance::LocalIdle, 1));
        assert!(!stays(NumaImbalance::LocalIdle, 0));
        assert!(
            !stays(NumaImbalance::ImbNumaNr, 20),
            "it has more than it keeps"
        );
        assert!(NumaImbalance::ImbNumaNr.stays(60, 62, 3, 16));
        assert!(!NumaImbalance::None.stays(60, 60, 0, 16));
    }

    #[test]
    fn balancing_looks_at_the_source_or_at_the_destination() {
        assert!(NumaImbalance::LocalIdle.tolerates(9, 2, 40, 1));
        assert!(!NumaImbalance::LocalIdle.tolerates(1, 3, 1, 16));
        assert!(NumaImbalance::ImbNumaNr.tolerates(2, 30, 16, 16));
        assert!(!NumaImbalance::ImbNumaNr.tolerates(3, 2, 1, 16));
    }
}

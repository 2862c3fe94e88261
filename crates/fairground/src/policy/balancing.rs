//! Details of load balancing that changed between kernels.

use super::Throttle;

/// What `sched_balance_rq` may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadBalance {
    /// `sysctl_sched_nr_migrate`: most tasks looked at under one lock.
    pub nr_migrate: u32,
    /// A newly idle CPU pulls one task at most (`CONFIG_PREEMPTION`, as distributions build
    /// with `PREEMPT_DYNAMIC`).
    pub newidle_moves_one: bool,
    /// Tasks that have had more than their share are moved only after a failed attempt ("sched:
    /// Prioritize migrating eligible tasks in sched_balance_rq()", Hao Jia, for 6.14).
    pub eligible_first: bool,
}

impl LoadBalance {
    /// Whether an attempt after `failed` failures in a row passes by tasks that are not eligible.
    #[inline]
    #[must_use]
    pub const fn prefers_eligible(self, failed: u32) -> bool {
        self.eligible_first && failed == 0
    }
}

impl Throttle {
    /// Whether a throttled queue keeps its tasks from being moved away, besides keeping others
    /// from being moved to it.
    #[inline]
    #[must_use]
    pub const fn pins_waiting_tasks(self) -> bool {
        matches!(self, Self::WholeQueue)
    }
}

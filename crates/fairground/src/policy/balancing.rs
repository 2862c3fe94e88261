//! Details of load balancing that changed between kernels.

/// What `sched_balance_rq` may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadBalance {
    /// `sysctl_sched_nr_migrate`: most tasks looked at under one lock.
    pub nr_migrate: u32,
}

//! Limits of newly-idle balancing.

/// When a CPU that runs dry looks for work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newidle {
    /// `sched_migration_cost`, ns: a CPU that idles shorter than this on average does not look.
    pub migration_cost_ns: u64,
    /// Attempts are made in proportion to their recent success, by a random number
    /// (`NI_RANDOM`, 6.19 and stable kernels since).
    pub proportional: bool,
}

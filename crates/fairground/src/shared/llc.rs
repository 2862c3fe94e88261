//! What the CPUs of one last-level cache share (`sched_domain_shared`).

use core::sync::atomic::{AtomicBool, AtomicU32};

/// Words of one last-level cache domain.
#[derive(Debug, Default)]
pub struct LlcShared {
    /// CPUs that are not in tickless idle.
    pub nr_busy_cpus: AtomicU32,
    /// A whole core was seen idle.
    pub has_idle_cores: AtomicBool,
    /// Scan budget of `select_idle_cpu`, from utilisation.
    pub nr_idle_scan: AtomicU32,
}

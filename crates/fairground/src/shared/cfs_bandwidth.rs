//! A group's quota: the global pool that its queues draw from.
//!
//! Changed only while `Lock::Bandwidth` of the group is held, so plain load-then-store on the
//! atomics is enough.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

/// `cfs_bandwidth` of a task group. Times in ns.
#[derive(Debug)]
pub struct CfsBandwidth {
    /// Runtime of each period; `u64::MAX` = no limit.
    pub quota: AtomicU64,
    /// Length of a period.
    pub period: AtomicU64,
    /// Unused runtime that may be carried over.
    pub burst: AtomicU64,
    /// Runtime left in the pool.
    pub runtime: AtomicI64,
    /// Runtime at the last refill, to see how much of a burst was used.
    pub runtime_snap: AtomicI64,
    /// The period timer runs.
    pub period_active: AtomicBool,
    /// Nobody used runtime in the last period.
    pub idle: AtomicBool,
    /// The slack timer runs.
    pub slack_started: AtomicBool,
    /// When the current period ends.
    pub period_expires: AtomicU64,
    /// Source of `TgCpu::throttled_seq`.
    pub next_seq: AtomicU64,
    /// Queues that are throttled now.
    pub nr_throttled_cpus: AtomicU64,
    /// `cpu.stat`: periods in which the group was active.
    pub nr_periods: AtomicU64,
    /// `cpu.stat`: periods with throttling.
    pub nr_throttled: AtomicU64,
    /// `cpu.stat`: sum of the throttled time of all queues.
    pub throttled_time: AtomicU64,
    /// `cpu.stat`: periods in which a burst was used.
    pub nr_burst: AtomicU64,
    /// `cpu.stat`: runtime used beyond the quota.
    pub burst_time: AtomicU64,
    /// `cpu.stat` `usage`: runtime charged to the group's tasks.
    pub usage: AtomicU64,
}

/// `quota` of a group without a limit.
pub const RUNTIME_INF: u64 = u64::MAX;

impl Default for CfsBandwidth {
    fn default() -> Self {
        Self {
            quota: AtomicU64::new(RUNTIME_INF),
            period: AtomicU64::new(100_000_000),
            burst: AtomicU64::new(0),
            runtime: AtomicI64::new(0),
            runtime_snap: AtomicI64::new(0),
            period_active: AtomicBool::new(false),
            idle: AtomicBool::new(false),
            slack_started: AtomicBool::new(false),
            period_expires: AtomicU64::new(0),
            next_seq: AtomicU64::new(1),
            nr_throttled_cpus: AtomicU64::new(0),
            nr_periods: AtomicU64::new(0),
            nr_throttled: AtomicU64::new(0),
            throttled_time: AtomicU64::new(0),
            nr_burst: AtomicU64::new(0),
            burst_time: AtomicU64::new(0),
            usage: AtomicU64::new(0),
        }
    }
}

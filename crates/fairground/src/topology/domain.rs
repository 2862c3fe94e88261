//! A scheduling domain: one level of one CPU's hierarchy.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::value::{CpuMask, GroupId};

/// What the CPUs of a domain share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DomainKind {
    /// One core's threads (`SMT`).
    Smt,
    /// A cluster of cores (`CLS`).
    Cluster,
    /// A last-level cache (`MC`).
    Mc,
    /// A package or node (`PKG`).
    Pkg,
    /// NUMA nodes within one distance.
    Numa,
}

impl DomainKind {
    /// The name in `/sys/kernel/debug/sched/domains`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smt => "SMT",
            Self::Cluster => "CLS",
            Self::Mc => "MC",
            Self::Pkg => "PKG",
            Self::Numa => "NUMA",
        }
    }

    /// Whether CPUs whose domains of the level differ may share groups.
    pub(super) const fn overlaps(self) -> bool {
        matches!(self, Self::Numa)
    }
}

/// What balancing and placement do at a level; the kernel's `SD_*` flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one SD_ flag of the kernel"
)]
pub struct SdFlags {
    /// `SD_LOAD_BALANCE` of old kernels; periodic balancing happens here.
    pub balance: bool,
    /// `SD_BALANCE_NEWIDLE`.
    pub balance_newidle: bool,
    /// `SD_BALANCE_EXEC`.
    pub balance_exec: bool,
    /// `SD_BALANCE_FORK`.
    pub balance_fork: bool,
    /// `SD_WAKE_AFFINE`.
    pub wake_affine: bool,
    /// `SD_SHARE_CPUCAPACITY`: threads of one core.
    pub share_cpucapacity: bool,
    /// `SD_SHARE_LLC`.
    pub share_llc: bool,
    /// `SD_CLUSTER`.
    pub cluster: bool,
    /// `SD_SERIALIZE`: one balancing run at a time in the machine.
    pub serialize: bool,
    /// `SD_PREFER_SIBLING`, the flag of the child that makes groups spread.
    pub prefer_sibling: bool,
    /// `SD_OVERLAP`: groups overlap.
    pub overlap: bool,
    /// `SD_NUMA`.
    pub numa: bool,
    /// `SD_ASYM_CPUCAPACITY`: CPUs of the domain differ in capacity.
    pub asym_cpucapacity: bool,
}

/// One level of one CPU's hierarchy.
#[derive(Debug)]
pub struct SchedDomain {
    /// What it is.
    pub kind: DomainKind,
    /// Its index among the CPU's domains, 0 = smallest.
    pub level: u32,
    /// All CPUs of the domain.
    pub span: CpuMask,
    /// Number of CPUs of the domain (`span_weight`).
    pub weight: u32,
    /// The groups, starting with the one that holds this CPU, in ring order.
    pub groups: Vec<GroupId>,
    /// Behaviour.
    pub flags: SdFlags,
    /// Shortest and longest balancing interval, ms.
    pub min_interval_ms: u64,
    /// See `min_interval_ms`.
    pub max_interval_ms: u64,
    /// How much rarer a busy CPU balances.
    pub busy_factor: u32,
    /// Imbalance that is left alone, per cent (117 = 17 %).
    pub imbalance_pct: u32,
    /// Failed attempts before cache-hot tasks are moved.
    pub cache_nice_tries: u32,
    /// Tasks by which NUMA nodes may differ.
    pub imb_numa_nr: u32,
    /// NUMA distance of this level; 10 below NUMA.
    pub distance: u32,
    /// The words that change.
    pub state: SdState,
}

/// What changes in a domain; written by the CPU it belongs to, or by the one that balances idle
/// CPUs on its behalf.
#[derive(Debug, Default)]
pub struct SdState {
    /// Last balance, jiffies.
    pub last_balance: AtomicU64,
    /// Current interval, ms.
    pub balance_interval_ms: AtomicU64,
    /// Attempts in a row that moved nothing.
    pub nr_balance_failed: AtomicU32,
    /// Longest recent newly-idle balance here, ns.
    pub max_newidle_lb_cost: AtomicU64,
    /// When that was last decayed, jiffies.
    pub last_decay_max_lb_cost: AtomicU64,
    /// Newly-idle attempts, and successes, of the current window of the random variant.
    pub newidle_call: AtomicU32,
    /// See `newidle_call`.
    pub newidle_success: AtomicU32,
    /// Success ratio of newly-idle balancing, of 1024.
    pub newidle_ratio: AtomicU32,
    /// Mean time of a scan for an idle CPU, ns; kept only where the scan is limited by it
    /// (`SIS_PROP`).
    pub avg_scan_cost: AtomicU64,
    /// `SD_SERIALIZE` in progress (on CPU 0's domain of the level).
    pub balancing: AtomicBool,
    /// Statistics as in `/proc/schedstat`: attempts, balanced, failed, gained, by idle type
    /// (busy, idle, newly idle).
    pub lb_count: [AtomicU64; 3],
    /// See `lb_count`.
    pub lb_balanced: [AtomicU64; 3],
    /// See `lb_count`.
    pub lb_failed: [AtomicU64; 3],
    /// See `lb_count`.
    pub lb_gained: [AtomicU64; 3],
    /// See `lb_count`: of the gained those whose data was likely still in caches.
    pub lb_hot_gained: [AtomicU64; 3],
    /// See `lb_count`: no group was busier; a group was, but none of its queues.
    pub lb_nobusyg: [AtomicU64; 3],
    /// See `lb_nobusyg`.
    pub lb_nobusyq: [AtomicU64; 3],
    /// See `lb_count`: sums of imbalances found, by what they count (`MigrationType`).
    pub lb_imbalance: [[AtomicU64; 4]; 3],
    /// Wake-ups that took the waking CPU as the better of two.
    pub ttwu_move_affine: AtomicU64,
    /// Active balancing: times the stopper looked for a task to push here, found one, found none.
    pub alb_count: AtomicU64,
    /// See `alb_count`.
    pub alb_pushed: AtomicU64,
    /// See `alb_count`.
    pub alb_failed: AtomicU64,
}

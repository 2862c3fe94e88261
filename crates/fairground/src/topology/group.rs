//! A sched group: the CPUs of a child domain, seen as one unit of balancing.

use core::sync::atomic::{AtomicBool, AtomicU64};

use crate::value::{Cpu, CpuMask};

/// One group of a domain.
#[derive(Debug)]
pub struct SchedGroup {
    /// Its CPUs.
    pub span: CpuMask,
    /// Number of CPUs (`group_weight`).
    pub weight: u32,
    /// Number of cores (`cores`).
    pub cores: u32,
    /// CPUs that may balance on behalf of the group (`group_balance_mask`).
    pub balance_mask: CpuMask,
    /// The group is one core's threads (`SD_SHARE_CPUCAPACITY` of its own domain).
    pub smt: bool,
    /// The group's own domain wants its tasks spread to siblings (`SD_PREFER_SIBLING`).
    pub prefer_sibling: bool,
    /// The words that change.
    pub state: GroupState,
}

impl SchedGroup {
    /// A group over `span`: one core's threads or not, preferring siblings or not.
    pub(super) fn new(
        span: CpuMask,
        balance_mask: CpuMask,
        smt_of: &[CpuMask],
        [smt, prefer_sibling]: [bool; 2],
    ) -> Self {
        let cores = span
            .iter()
            .filter(|cpu| smt_of[cpu.idx()].and(&span).first() == Some(*cpu))
            .count();
        Self {
            span,
            weight: span.weight(),
            cores: cores as u32,
            balance_mask,
            smt,
            prefer_sibling,
            state: GroupState::default(),
        }
    }

    /// The CPU that balances for the group if none of it is idle (`group_balance_cpu`).
    #[must_use]
    pub fn balance_cpu(&self) -> Cpu {
        self.balance_mask.first().unwrap_or_default()
    }

    /// Lowest CPU, by which records name a group.
    #[must_use]
    pub fn first_cpu(&self) -> Cpu {
        self.span.first().unwrap_or_default()
    }
}

/// How busy a group is: the idlest first, for placement; the one to help most last, for balancing.
/// The numbers are those of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum GroupType {
    /// Room for more tasks.
    #[default]
    HasSpare = 0,
    /// All capacity is used and nobody is short of it.
    FullyBusy = 1,
    /// A task does not fit its CPU.
    MisfitTask = 2,
    /// One core with several busy threads, seen from an idle CPU.
    SmtBalance = 3,
    /// A preferred CPU is idle elsewhere. Never set here: priorities of CPUs are not modelled.
    AsymPacking = 4,
    /// Affinity spoilt an earlier attempt to spread tasks within the group.
    Imbalanced = 5,
    /// Tasks wait although they would not fit.
    Overloaded = 6,
}

/// `sched_group_capacity`.
#[derive(Debug, Default)]
pub struct GroupState {
    /// Sum of the CPUs' capacities.
    pub capacity: AtomicU64,
    /// Smallest and largest capacity of a CPU.
    pub min_capacity: AtomicU64,
    /// See `min_capacity`.
    pub max_capacity: AtomicU64,
    /// When to compute it again, jiffies.
    pub next_update: AtomicU64,
    /// Affinity kept a task from being moved out of the group below (`sgc->imbalance`).
    pub imbalance: AtomicBool,
}

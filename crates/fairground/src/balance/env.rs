//! What one balancing attempt is about: who pulls, why, how much, and what was seen on the way.
//!
//! Loads are in units of unscaled weight (1024 = nice 0), utilisation and runnable time in
//! capacity units (1024 = one CPU at full speed), counts in tasks or CPUs.

use crate::policy::{LbSmt, NumaImbalance};
use crate::shared::Relaxed;
use crate::system::System;
use crate::topology::{GroupType, SchedDomain, SchedGroup};
use crate::value::{Cpu, CpuMask, GroupId};

/// Tasks looked at under one lock before a pause (`SCHED_NR_MIGRATE_BREAK`).
pub const NR_MIGRATE_BREAK: u32 = 32;

/// In what state the pulling CPU is (`cpu_idle_type`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IdleType {
    /// It runs tasks.
    Busy,
    /// It idles.
    Idle,
    /// It is about to idle.
    NewlyIdle,
}

impl IdleType {
    /// Index into the statistics of a domain: busy, idle, newly idle.
    #[inline]
    #[must_use]
    pub const fn idx(self) -> usize {
        self as usize
    }

    /// Whether the CPU has nothing to run, now or in a moment.
    #[inline]
    #[must_use]
    pub const fn is_idle(self) -> bool {
        !matches!(self, Self::Busy)
    }
}

/// What `LbEnv::imbalance` counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MigrationType {
    /// Load: both sides are overloaded.
    Load,
    /// Utilisation: this side has room, the other is overloaded.
    Util,
    /// Tasks: both have room.
    Task,
    /// One task that is too big for its CPU.
    Misfit,
}

/// What a group looks like (`sg_lb_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SgLbStats {
    /// Load per capacity, times 1024; only computed for overloaded groups.
    pub avg_load: u64,
    /// Sum of the CPUs' load.
    pub group_load: u64,
    /// Capacity for fair tasks.
    pub group_capacity: u64,
    /// Sum of the CPUs' utilisation, the greater of average and estimate.
    pub group_util: u64,
    /// Sum of the CPUs' runnable averages.
    pub group_runnable: u64,
    /// Tasks of all classes.
    pub sum_nr_running: u32,
    /// Runnable fair tasks.
    pub sum_h_nr_running: u32,
    /// Idle CPUs.
    pub idle_cpus: u32,
    /// CPUs.
    pub group_weight: u32,
    /// How busy it is.
    pub group_type: GroupType,
    /// Busy threads share a core, and the pulling CPU is idle.
    pub smt_balance: bool,
    /// Load of the biggest task that does not fit; 0 = none.
    pub misfit_task_load: u64,
}

impl SgLbStats {
    /// The busiest group before one was seen: any group with a task is busier.
    pub const NONE: Self = Self {
        avg_load: 0,
        group_load: 0,
        group_capacity: 0,
        group_util: 0,
        group_runnable: 0,
        sum_nr_running: 0,
        sum_h_nr_running: 0,
        idle_cpus: u32::MAX,
        group_weight: 0,
        group_type: GroupType::HasSpare,
        smt_balance: false,
        misfit_task_load: 0,
    };
}

/// What a domain looks like (`sd_lb_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SdLbStats {
    /// The busiest group so far.
    pub busiest: Option<GroupId>,
    /// The group of the pulling CPU.
    pub local: Option<GroupId>,
    /// Sum of the groups' load.
    pub total_load: u64,
    /// Sum of the groups' capacity.
    pub total_capacity: u64,
    /// Sum of the groups' utilisation.
    pub total_util: u64,
    /// Load per capacity of the domain, times 1024; computed where needed.
    pub avg_load: u64,
    /// Tasks should spread over groups, as the busiest group's own domain prefers.
    pub prefer_sibling: bool,
    /// The busiest group.
    pub busiest_stat: SgLbStats,
    /// The local group.
    pub local_stat: SgLbStats,
}

impl Default for SdLbStats {
    fn default() -> Self {
        Self {
            busiest: None,
            local: None,
            total_load: 0,
            total_capacity: 0,
            total_util: 0,
            avg_load: 0,
            prefer_sibling: false,
            busiest_stat: SgLbStats::NONE,
            local_stat: SgLbStats::default(),
        }
    }
}

/// The group to pull from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusiestGroup {
    /// The group.
    pub group: GroupId,
    /// What the imbalance counts.
    pub migration_type: MigrationType,
    /// How much to move. As in the kernel a difference of idle CPUs can wrap: it is then huge, or
    /// -1 between NUMA nodes.
    pub imbalance: i64,
}

/// One balancing attempt (`lb_env`).
#[derive(Clone, Copy, Debug)]
pub struct LbEnv<'a> {
    /// The domain, one of the owner's.
    pub sd: &'a SchedDomain,
    /// The CPU that balances. Other CPUs may have fewer domains, or others at the level of `sd`, so
    /// what is below or above it is looked for among those of this CPU.
    pub owner: Cpu,
    /// What it tolerates if it spans nodes.
    pub numa: NumaImbalance,
    /// What the threads of a core count.
    pub smt: LbSmt,
    /// Room is counted in utilisation within a cache, too.
    pub util_in_cache: bool,
    /// It is the CPU's largest domain.
    pub at_root: bool,
    /// The pulling CPU: the owner, or another of its group for tasks that may not go to it.
    pub dst_cpu: Cpu,
    /// The CPU pulled from; means something once a busiest queue was found.
    pub src_cpu: Cpu,
    /// Its capacity for fair tasks.
    pub dst_capacity: u64,
    /// CPUs that take part.
    pub cpus: CpuMask,
    /// Why the CPU pulls.
    pub idle: IdleType,
    /// What `imbalance` counts.
    pub migration_type: MigrationType,
    /// What is left to move; can be negative.
    pub imbalance: i64,
    /// CPUs of the local group that could take a task whose affinity excludes `dst_cpu`; empty
    /// while newly idle.
    pub dst_grpmask: CpuMask,
    /// One of those, once such a task was met (`LBF_DST_PINNED`).
    pub new_dst_cpu: Option<Cpu>,
    /// No task seen so far may leave (`LBF_ALL_PINNED`).
    pub all_pinned: bool,
    /// Some task may not go to `dst_cpu` (`LBF_SOME_PINNED`).
    pub some_pinned: bool,
    /// There is more to do after a pause (`LBF_NEED_BREAK`).
    pub need_break: bool,
    /// The stopper moves one task (`LBF_ACTIVE_LB`).
    pub active_lb: bool,
    /// The task looked at last is cache-hot.
    pub hot: bool,
    /// Tasks looked at.
    pub loops: u32,
    /// Pause after this many.
    pub loop_break: u32,
    /// Stop after this many.
    pub loop_max: u32,
}

impl<'a> LbEnv<'a> {
    /// An attempt of `dst_cpu` in its domain `level`, among the CPUs of the domain in `allowed`.
    #[must_use]
    pub fn new(
        sys: &'a System,
        level: usize,
        dst_cpu: Cpu,
        idle: IdleType,
        allowed: &CpuMask,
    ) -> Self {
        let domains = sys.topology.domains(dst_cpu);
        let sd = &domains[level];
        let dst_grpmask = match idle {
            IdleType::NewlyIdle => CpuMask::empty(),
            _ => sys.topology.group(sd.groups[0]).span,
        };
        Self {
            sd,
            owner: dst_cpu,
            numa: sys.features.numa_imbalance,
            smt: sys.features.load_balance.smt,
            util_in_cache: sys.features.load_balance.util_in_cache,
            at_root: level + 1 == domains.len(),
            dst_cpu,
            src_cpu: dst_cpu,
            dst_capacity: capacity_of(sys, dst_cpu),
            cpus: sd.span.and(allowed),
            idle,
            migration_type: MigrationType::Load,
            imbalance: 0,
            dst_grpmask,
            new_dst_cpu: None,
            all_pinned: false,
            some_pinned: false,
            need_break: false,
            active_lb: false,
            hot: false,
            loops: 0,
            loop_break: NR_MIGRATE_BREAK,
            loop_max: 0,
        }
    }

    /// The group of the pulling CPU.
    #[must_use]
    pub fn local_group(&self, sys: &'a System) -> &'a SchedGroup {
        sys.topology.group(self.sd.groups[0])
    }
}

/// Capacity of `cpu` for fair tasks (`capacity_of`).
#[inline]
pub(super) fn capacity_of(sys: &System, cpu: Cpu) -> u64 {
    sys.cpu[cpu.idx()].capacity.load(Relaxed)
}

/// Whether a capacity is noticeably (by more than 5 %) greater than another.
#[inline]
pub(super) const fn capacity_greater(one: u64, other: u64) -> bool {
    one * 1024 > other * 1078
}

/// Whether the capacity of `cpu` for fair tasks is noticeably below its full one
/// (`check_cpu_capacity`).
#[inline]
pub(super) fn reduced_capacity(sys: &System, cpu: Cpu, sd: &SchedDomain) -> bool {
    let full = u64::from(sys.topology.places[cpu.idx()].capacity);
    capacity_of(sys, cpu) * u64::from(sd.imbalance_pct) < full * 100
}

/// Which time counts as use of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UtilOf {
    /// In which tasks ran.
    Running,
    /// In which they waited, too (`boost`).
    Runnable,
}

/// Utilisation of `cpu` by fair tasks, as it was or is expected, at most its capacity
/// (`cpu_util_cfs`).
#[inline]
pub(super) fn cpu_util_cfs(sys: &System, cpu: Cpu, of: UtilOf) -> u64 {
    let words = &sys.cpu[cpu.idx()];
    let mut util = words.util_avg.load(Relaxed);
    if of == UtilOf::Runnable {
        util = util.max(words.runnable_avg.load(Relaxed));
    }
    let util = util.max(u64::from(words.util_est.load(Relaxed)));
    util.min(u64::from(sys.topology.places[cpu.idx()].capacity))
}

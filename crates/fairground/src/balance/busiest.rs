//! Which group and which queue to pull from, and whether this CPU is the one to do it.
//!
//! Nothing here changes more than the attempt's own record. Sources as in `imbalance`; choosing an
//! idle core first "sched/fair: Do not use idle SMT CPU for load balancing", Ricardo Neri, and
//! Swapnil Sapkal, Shrikanth Hegde, 2023, for 6.6-6.8; busy cores "sched/fair: Determine active
//! load balance for SMT sched groups", Tim Chen, 2023, for 6.6.

use super::env::{
    BusiestGroup, IdleType, LbEnv, MigrationType, SdLbStats, SgLbStats, UtilOf, capacity_greater,
    capacity_of, cpu_util_cfs, reduced_capacity,
};
use super::imbalance::{calculate_imbalance, domain_avg_load, sibling_imbalance};
use super::stats::update_sd_lb_stats;
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{cfs_rq as cf, rq as f};
use crate::policy::LbSmt;
use crate::select::read_root_cfs;
use crate::shared::Relaxed;
use crate::topology::{GroupType, SchedGroup, Topology};
use crate::value::{Cpu, GroupId};

/// Looks at all groups of the domain and names the one to pull from; `env` then holds the unit and
/// the amount. `None` = balanced (`sched_balance_find_src_group`).
#[doc(alias = "find_busiest_group")]
pub fn sched_balance_find_src_group<H: Host>(
    cx: &mut Cx<H>,
    env: &mut LbEnv<'_>,
) -> Option<BusiestGroup> {
    let mut sds = update_sd_lb_stats(cx, env);
    find_busiest(env, &mut sds, &cx.sys.topology)
}

/// The decision from the numbers of all groups.
pub fn find_busiest(
    env: &mut LbEnv<'_>,
    sds: &mut SdLbStats,
    top: &Topology,
) -> Option<BusiestGroup> {
    env.imbalance = 0;
    let group = sds.busiest?;
    if !worth_pulling(env, sds, top) {
        return None;
    }
    calculate_imbalance(env, sds, top);
    (env.imbalance != 0).then_some(BusiestGroup {
        group,
        migration_type: env.migration_type,
        imbalance: env.imbalance,
    })
}

/// Whether the busiest group is enough busier than the local one.
fn worth_pulling(env: &LbEnv<'_>, sds: &mut SdLbStats, top: &Topology) -> bool {
    let (local, busiest) = (sds.local_stat, sds.busiest_stat);
    match busiest.group_type {
        GroupType::MisfitTask | GroupType::AsymPacking | GroupType::Imbalanced => return true,
        _ if local.group_type > busiest.group_type => return false,
        _ => {}
    }
    if local.group_type == GroupType::Overloaded {
        if local.avg_load >= busiest.avg_load {
            return false;
        }
        sds.avg_load = domain_avg_load(sds);
        if local.avg_load >= sds.avg_load {
            return false;
        }
        if 100 * busiest.avg_load <= u64::from(env.sd.imbalance_pct) * local.avg_load {
            return false;
        }
    }
    let spread = sds.prefer_sibling && local.group_type == GroupType::HasSpare;
    if spread && sibling_imbalance(env, sds, top) > 1 {
        return true;
    }
    if busiest.group_type == GroupType::Overloaded {
        return true;
    }
    if !env.idle.is_idle() {
        return false; // an idle CPU can pull
    }
    if busiest.group_type == GroupType::SmtBalance && smt_differs(top, sds.local, sds.busiest) {
        return true;
    }
    let even = busiest.group_weight > 1 && local.idle_cpus <= busiest.idle_cpus.wrapping_add(1);
    !even && busiest.sum_h_nr_running != 1
}

impl SdLbStats {
    /// Adds what a group looks like, and remembers the group if it is local or the busiest yet.
    /// The local group comes first.
    pub fn account(&mut self, env: &LbEnv<'_>, top: &Topology, id: GroupId, sgs: &SgLbStats) {
        let group = top.group(id);
        if group.span.has(env.dst_cpu) {
            self.local = Some(id);
            self.local_stat = *sgs;
        } else if self.is_busier(env, top, group, sgs) {
            self.busiest = Some(id);
            self.busiest_stat = *sgs;
        }
        self.total_load += sgs.group_load;
        self.total_capacity += sgs.group_capacity;
        self.total_util += sgs.group_util;
    }

    /// All groups were seen: takes over what the busiest group's domain prefers.
    pub fn finish(&mut self, top: &Topology) {
        self.prefer_sibling = self.busiest.is_some_and(|id| top.group(id).prefer_sibling);
    }

    /// Whether a group is busier than the busiest one so far (`update_sd_pick_busiest`).
    fn is_busier(
        &self,
        env: &LbEnv<'_>,
        top: &Topology,
        group: &SchedGroup,
        sgs: &SgLbStats,
    ) -> bool {
        let asym = env.sd.flags.asym_cpucapacity;
        let state = &group.state;
        if sgs.sum_h_nr_running == 0 {
            return false;
        }
        if asym && sgs.group_type == GroupType::MisfitTask {
            let bigger = capacity_greater(env.dst_capacity, state.max_capacity.load(Relaxed));
            if !bigger || self.local_stat.group_type != GroupType::HasSpare {
                return false; // a task that would not fit here either
            }
        }
        if sgs.group_type != self.busiest_stat.group_type {
            return sgs.group_type > self.busiest_stat.group_type;
        }
        let before = self.busiest.map(|id| top.group(id));
        match self.busier_of_type(env.smt, before, group, sgs) {
            Verdict::Yes => return true,
            Verdict::No => return false,
            Verdict::YesUnlessDowngrade => {}
        }
        let downgrade = sgs.group_type <= GroupType::FullyBusy
            && capacity_greater(state.min_capacity.load(Relaxed), env.dst_capacity);
        !(asym && downgrade)
    }

    /// Between two groups of one type.
    fn busier_of_type(
        &self,
        smt: LbSmt,
        before: Option<&SchedGroup>,
        group: &SchedGroup,
        sgs: &SgLbStats,
    ) -> Verdict {
        let best = &self.busiest_stat;
        match sgs.group_type {
            GroupType::Overloaded => Verdict::plain(sgs.avg_load > best.avg_load),
            GroupType::Imbalanced | GroupType::AsymPacking => Verdict::No,
            GroupType::MisfitTask => Verdict::plain(sgs.misfit_task_load > best.misfit_task_load),
            GroupType::SmtBalance if sgs.idle_cpus != 0 || best.idle_cpus != 0 => {
                Verdict::unless_downgrade(fewer_idle(sgs, best))
            }
            // The average is 0 unless overloaded: the first one stays, unless it is no core.
            GroupType::SmtBalance | GroupType::FullyBusy => {
                let tie = sgs.avg_load == best.avg_load;
                let takes_last = smt.takes_last_of_busy() && !before.is_some_and(|g| g.smt);
                let busier = sgs.avg_load > best.avg_load || (tie && takes_last);
                Verdict::unless_downgrade(busier)
            }
            // A core with one task has nothing to give to a CPU without siblings.
            GroupType::HasSpare => match before {
                Some(before) if smt.knows_cores() && before.smt != group.smt => {
                    Verdict::plain(!(group.smt && sgs.sum_h_nr_running <= 1))
                }
                _ => Verdict::unless_downgrade(fewer_idle(sgs, best)),
            },
        }
    }
}

/// The answer of a comparison; CPUs of greater capacity may still be left alone.
enum Verdict {
    Yes,
    No,
    YesUnlessDowngrade,
}

impl Verdict {
    const fn plain(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    const fn unless_downgrade(yes: bool) -> Self {
        if yes {
            Self::YesUnlessDowngrade
        } else {
            Self::No
        }
    }
}

/// Fewer idle CPUs, or as many and more tasks.
const fn fewer_idle(sgs: &SgLbStats, best: &SgLbStats) -> bool {
    sgs.idle_cpus < best.idle_cpus
        || (sgs.idle_cpus == best.idle_cpus && sgs.sum_nr_running > best.sum_nr_running)
}

/// Whether one of two groups is a core with several threads and the other is not.
fn smt_differs(top: &Topology, a: Option<GroupId>, b: Option<GroupId>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => top.group(a).smt != top.group(b).smt,
        _ => false,
    }
}

/// The queue of `group` to pull from (`sched_balance_find_src_rq`).
#[doc(alias = "find_busiest_queue")]
pub fn sched_balance_find_src_rq<H: Host>(
    cx: &mut Cx<H>,
    env: &LbEnv<'_>,
    group: GroupId,
) -> Option<Cpu> {
    let sys = cx.sys;
    let mut best = Best {
        cpu: None,
        load: 0,
        capacity: 1,
        count: 0,
    };
    let sleepers = cx.features().load_balance.counts.sleepers();
    cx.host.begin_scan();
    for cpu in sys.topology.group(group).span.and(&env.cpus).iter() {
        cx.host.next_turn();
        let nr = sys.cpu[cpu.idx()].h_nr(sleepers);
        let fields = if nr == 0 {
            cf::NR_QUEUED
        } else {
            cf::NR_QUEUED | cf::AVG
        };
        read_root_cfs(cx, cpu, fields);
        if nr == 0 {
            continue;
        }
        cx.read_rq(cpu, f::CAPACITY);
        let capacity = capacity_of(sys, cpu);
        let one_of_bigger =
            env.sd.flags.asym_cpucapacity && !capacity_greater(env.dst_capacity, capacity);
        if one_of_bigger && nr == 1 {
            continue; // would only end in moving a task to a slower CPU
        }
        best.consider(cx, env, cpu, nr, capacity);
    }
    cx.host.end_scan();
    best.cpu
}

/// The busiest queue so far.
struct Best {
    cpu: Option<Cpu>,
    /// Its load, utilisation or misfit load.
    load: u64,
    capacity: u64,
    count: u32,
}

impl Best {
    fn consider<H: Host>(
        &mut self,
        cx: &mut Cx<H>,
        env: &LbEnv<'_>,
        cpu: Cpu,
        nr: u32,
        capacity: u64,
    ) {
        let sys = cx.sys;
        let words = &sys.cpu[cpu.idx()];
        let better = match env.migration_type {
            MigrationType::Load => {
                let load = words.load_avg.load(Relaxed);
                let too_big =
                    nr == 1 && load as i64 > env.imbalance && !reduced_capacity(sys, cpu, env.sd);
                let better = !too_big && load * self.capacity > self.load * capacity;
                if better {
                    (self.load, self.capacity) = (load, capacity);
                }
                better
            }
            MigrationType::Util => {
                let util = cpu_util_cfs(sys, cpu, UtilOf::Runnable);
                let better = nr > 1 && util > self.load;
                if better {
                    self.load = util;
                }
                better
            }
            MigrationType::Task => nr > self.count,
            MigrationType::Misfit => {
                cx.read_rq(cpu, f::MISFIT);
                let load = words.misfit_task_load.load(Relaxed);
                let better = load > self.load;
                if better {
                    self.load = load;
                }
                better
            }
        };
        if better {
            self.count = nr;
            self.cpu = Some(cpu);
        }
    }
}

/// Whether `dst_cpu` is the one of its group that balances this domain (`should_we_balance`): when
/// newly idle, unless work has come meanwhile; else the first CPU of an idle core, or the first
/// idle CPU, or the group's own balancer if none idles.
pub fn should_we_balance<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>) -> bool {
    let sys = cx.sys;
    if !env.cpus.has(env.dst_cpu) {
        return false;
    }
    if env.idle == IdleType::NewlyIdle {
        cx.read_rq(env.dst_cpu, f::NR_RUNNING | f::TTWU_PENDING);
        let words = &sys.cpu[env.dst_cpu.idx()];
        let work = words.nr_running.load(Relaxed) > 0 || words.ttwu_pending.load(Relaxed);
        return !work;
    }
    let group = env.local_group(sys);
    let by_cores = env.smt.knows_cores() && !env.sd.flags.share_cpucapacity;
    let mut left = group.balance_mask.and(&env.cpus);
    let mut idle_thread = None;
    let mut from = 0;
    while let Some(cpu) = left.next_from(from) {
        from = cpu.0 + 1;
        if !cx.idle_cpu(cpu) {
            continue;
        }
        if by_cores && !is_core_idle(cx, cpu) {
            idle_thread = idle_thread.or(Some(cpu));
            left = left.and_not(&sys.topology.smt_of[cpu.idx()]);
            continue;
        }
        return cpu == env.dst_cpu;
    }
    idle_thread.unwrap_or_else(|| group.balance_cpu()) == env.dst_cpu
}

/// Whether all other threads of the core idle.
fn is_core_idle<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> bool {
    let sys = cx.sys;
    for sibling in sys.topology.smt_of[cpu.idx()].iter() {
        if sibling == cpu {
            continue;
        }
        if !cx.idle_cpu(sibling) {
            return false;
        }
    }
    true
}

/// Whether the running task of `src_cpu` should be pushed by its stopper after nothing else could
/// be moved (`need_active_balance`).
pub fn need_active_balance<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>) -> bool {
    let failed = env.sd.state.nr_balance_failed.load(Relaxed);
    let counts_tasks = env.migration_type == MigrationType::Task;
    let rule = cx.features().load_balance.active;
    rule.insists(counts_tasks, failed, env.sd.cache_nice_tries) || voluntary_active_balance(cx, env)
}

/// The same without regard to failures: there is too little of the CPU for what runs there.
pub(super) fn voluntary_active_balance<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>) -> bool {
    let sys = cx.sys;
    if env.migration_type == MigrationType::Misfit {
        return true;
    }
    cx.read_rq(env.src_cpu, f::CAPACITY);
    let one = sys.cpu[env.src_cpu.idx()].h_nr(cx.features().load_balance.counts.sleepers()) == 1;
    let src_capacity = capacity_of(sys, env.src_cpu) * u64::from(env.sd.imbalance_pct);
    env.idle.is_idle()
        && one
        && reduced_capacity(sys, env.src_cpu, env.sd)
        && src_capacity < env.dst_capacity * 100
}

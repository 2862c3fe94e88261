//! What the groups of a domain look like now.
//!
//! Reads the published words of every CPU of the domain. Writes three hints that others read: the
//! capacity of the local group, whether anybody in the machine has a task to give, and how far a
//! wake-up should search in this cache.

use super::env::{
    IdleType, LbEnv, SdLbStats, SgLbStats, UtilOf, capacity_of, cpu_util_cfs, reduced_capacity,
};
use super::imbalance::avg_load;
use crate::cx::Cx;
use crate::fair::others::capacity_left;
use crate::host::Host;
use crate::place::{Access, Fields, Func, Kind, Object, cfs_rq as cf, rq as f, sd as d, sg as s};
use crate::select::read_root_cfs;
use crate::shared::Relaxed;
use crate::topology::{GroupType, SchedDomain, SchedGroup};
use crate::value::{Cpu, GroupId, SCHED_CAPACITY_SCALE};

/// Looks at all groups (`update_sd_lb_stats`).
pub fn update_sd_lb_stats<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>) -> SdLbStats {
    cx.span(Func::UpdateSdLbStats, |cx| {
        let sys = cx.sys;
        let object = Object {
            kind: Kind::Sd,
            a: env.owner.0,
            b: env.sd.level,
        };
        cx.touch(object, d::FIXED, Access::Read);
        let mut sds = SdLbStats::default();
        let mut overloaded = false;
        cx.host.begin_scan();
        for &id in &env.sd.groups {
            let group = sys.topology.group(id);
            let local = group.span.has(env.dst_cpu);
            if local {
                refresh_capacity(cx, env, group);
            }
            let sgs = update_sg_lb_stats(cx, env, id, local, &mut overloaded);
            sds.account(env, &sys.topology, id, &sgs);
        }
        cx.host.end_scan();
        sds.finish(&sys.topology);
        if env.at_root {
            cx.sys.rd.set_overloaded(overloaded, cx.host);
        }
        update_idle_cpu_scan(cx, env, sds.total_util);
        sds
    })
}

/// Looks at one group (`update_sg_lb_stats`). `overloaded` is set if somebody has a task to give.
fn update_sg_lb_stats<H: Host>(
    cx: &mut Cx<H>,
    env: &LbEnv<'_>,
    id: GroupId,
    local: bool,
    overloaded: &mut bool,
) -> SgLbStats {
    let sys = cx.sys;
    let group = sys.topology.group(id);
    touch_group(cx, id, s::FIXED | s::CAPACITY | s::IMBALANCE, Access::Read);
    let sleepers = cx.features().load_balance.counts.sleepers();
    let mut sgs = SgLbStats {
        group_weight: group.weight,
        group_capacity: group.state.capacity.load(Relaxed),
        ..SgLbStats::default()
    };
    for cpu in group.span.and(&env.cpus).iter() {
        let words = &sys.cpu[cpu.idx()];
        cx.host.next_turn();
        read_root_cfs(cx, cpu, cf::AVG | cf::NR_QUEUED);
        let load = words.load_avg.load(Relaxed);
        let h_nr = words.h_nr(sleepers);
        let nr_running = words.nr_running.load(Relaxed);
        sgs.group_load += load;
        sgs.group_util += cpu_util_cfs(sys, cpu, UtilOf::Running);
        sgs.group_runnable += words.runnable_avg.load(Relaxed);
        sgs.sum_h_nr_running += h_nr;
        sgs.sum_nr_running += nr_running;
        let reads = rq_reads(env, local, nr_running, h_nr);
        cx.read_rq(cpu, reads);
        if nr_running == 0 && words.idle_cpu() {
            sgs.idle_cpus += 1;
            continue;
        }
        *overloaded |= nr_running > 1;
        if reads.intersects(f::MISFIT) {
            let misfit = words.misfit_task_load.load(Relaxed);
            *overloaded |= misfit > sgs.misfit_task_load;
            sgs.misfit_task_load = sgs.misfit_task_load.max(misfit);
        } else if reads.intersects(f::CAPACITY) && reduced_capacity(sys, cpu, env.sd) {
            // The only task of a CPU that another class or interrupts use too.
            sgs.misfit_task_load = sgs.misfit_task_load.max(load);
        }
    }
    let imbalanced = group.state.imbalance.load(Relaxed);
    sgs.classify(env, group, local, imbalanced);
    cx.host.group_seen();
    sgs
}

/// Which words of a CPU's `rq` are read: the idle test only of a CPU without tasks, and of others
/// whether a task there does not get what it wants.
#[inline]
fn rq_reads(env: &LbEnv<'_>, local: bool, nr_running: u32, h_nr: u32) -> Fields {
    if nr_running == 0 {
        f::NR_RUNNING | f::CURR | f::TTWU_PENDING
    } else if local {
        f::NR_RUNNING
    } else if env.sd.flags.asym_cpucapacity {
        f::NR_RUNNING | f::MISFIT
    } else if env.idle.is_idle() && h_nr == 1 {
        f::NR_RUNNING | f::CAPACITY
    } else {
        f::NR_RUNNING
    }
}

impl SgLbStats {
    /// Derives type and average from the sums. `imbalanced`: affinity spoilt an earlier attempt
    /// to spread tasks inside the group.
    pub fn classify(&mut self, env: &LbEnv<'_>, group: &SchedGroup, local: bool, imbalanced: bool) {
        let pct = u64::from(env.sd.imbalance_pct);
        let by_cores = env.smt.knows_cores() && !local;
        self.smt_balance = by_cores && env.idle.is_idle() && group.smt && self.sum_h_nr_running > 1;
        self.group_type = if self.is_overloaded(pct) {
            GroupType::Overloaded
        } else if imbalanced {
            GroupType::Imbalanced
        } else if self.smt_balance {
            GroupType::SmtBalance
        } else if self.misfit_task_load != 0 {
            GroupType::MisfitTask
        } else if self.has_capacity(pct) {
            GroupType::HasSpare
        } else {
            GroupType::FullyBusy
        };
        self.avg_load = match self.group_type {
            GroupType::Overloaded => avg_load(self),
            _ => 0,
        };
    }

    /// More tasks than CPUs, and they use or want more than the capacity with its margin
    /// (`group_is_overloaded`).
    const fn is_overloaded(&self, pct: u64) -> bool {
        self.sum_nr_running > self.group_weight
            && (self.group_capacity * 100 < self.group_util * pct
                || self.group_capacity * pct < self.group_runnable * 100)
    }

    /// Fewer tasks than CPUs, or they use and want less (`group_has_capacity`).
    const fn has_capacity(&self, pct: u64) -> bool {
        self.sum_nr_running < self.group_weight
            || (self.group_capacity * pct >= self.group_runnable * 100
                && self.group_capacity * 100 > self.group_util * pct)
    }
}

/// Computes the local group's capacity again: at each balance of an idle or busy CPU, and when it
/// is due for a newly idle one.
fn refresh_capacity<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>, group: &SchedGroup) {
    let jiffies = cx.jiffies();
    let due = jiffies >= group.state.next_update.load(Relaxed);
    if env.idle != IdleType::NewlyIdle || due {
        update_group_capacity(cx, env.sd, env.owner, jiffies);
    }
}

/// Sums up the capacities of the group of `cpu` in `sd`, which is one of its domains, from the
/// groups of the domain below or from the CPUs (`update_group_capacity`).
pub fn update_group_capacity<H: Host>(cx: &mut Cx<H>, sd: &SchedDomain, cpu: Cpu, jiffies: u64) {
    let sys = cx.sys;
    let id = sd.groups[0];
    let group = sys.topology.group(id);
    let (mut sum, mut min, mut max) = (0, u64::MAX, 0);
    let mut add = |capacity: u64, least: u64, most: u64| {
        sum += capacity;
        min = min.min(least);
        max = max.max(most);
    };
    let below = (sd.level as usize).checked_sub(1);
    match below.map(|level| &sys.topology.domains(cpu)[level]) {
        Some(child) if !child.flags.numa => {
            for &id in &child.groups {
                touch_group(cx, id, s::CAPACITY, Access::Read);
                let state = &sys.topology.group(id).state;
                let [c, l, m] = [&state.capacity, &state.min_capacity, &state.max_capacity];
                add(c.load(Relaxed), l.load(Relaxed), m.load(Relaxed));
            }
        }
        Some(_) => {
            for cpu in group.span.iter() {
                cx.read_rq(cpu, f::CAPACITY);
                let capacity = capacity_of(sys, cpu).max(1);
                add(capacity, capacity, capacity);
            }
        }
        None => {
            debug_assert_eq!(group.weight, 1, "a lowest domain has groups of a CPU");
            // `update_cpu_capacity`
            if cx.features().other_classes.age_with_blocked_load() {
                cx.read_rq(cpu, f::OTHERS);
            }
            let capacity = capacity_left(cx, cpu);
            cx.touch(Object::rq(cpu), f::CAPACITY, Access::Write);
            sys.cpu[cpu.idx()].capacity.store(capacity, Relaxed);
            add(capacity, capacity, capacity);
        }
    }
    let interval = super::interval::sd_balance_interval(
        sd.state.balance_interval_ms.load(Relaxed),
        sd.busy_factor,
        None,
        cx.features().hz,
        sys.nr_cpus(),
    );
    touch_group(cx, id, s::CAPACITY, Access::Write);
    group.state.capacity.store(sum, Relaxed);
    group.state.min_capacity.store(min, Relaxed);
    group.state.max_capacity.store(max, Relaxed);
    group.state.next_update.store(jiffies + interval, Relaxed);
}

/// Tells wake-ups how far to search in this cache; not while newly idle, which is too often for a
/// shared word (`update_idle_cpu_scan`).
fn update_idle_cpu_scan<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>, sum_util: u64) {
    let sys = cx.sys;
    if !cx.features().scan_budget.is_published() || env.idle == IdleType::NewlyIdle {
        return;
    }
    let Some(llc) = sys.topology.llc_domain(env.dst_cpu) else {
        return;
    };
    if llc.weight != env.sd.weight {
        return;
    }
    let limit = idle_scan_limit(sum_util, llc.weight, env.sd.imbalance_pct);
    let id = sys.topology.llc_of[env.dst_cpu.idx()];
    sys.llc[id.idx()].set_nr_idle_scan(id, limit, cx.host);
}

/// CPUs a wake-up may look at in a cache of `weight` CPUs that are used `sum_util` in all.
///
/// The fraction falls with the square of the mean utilisation `x`, and reaches 0 where the cache
/// counts as overloaded, at `x = 100 / pct`:
///
/// ```text
/// limit = weight * (1 - (x * pct / 100)^2)        x of 1024
/// ```
///
/// Source: "sched/fair: Introduce SIS_UTIL to search idle CPU based on sum of util_avg", Chen Yu,
/// 2022, for 6.0.
#[must_use]
pub fn idle_scan_limit(sum_util: u64, weight: u32, pct: u32) -> u32 {
    let (weight, pct) = (u64::from(weight), u64::from(pct));
    let mean = sum_util / weight.max(1);
    let used = mean * mean * pct * pct / (10_000 * SCHED_CAPACITY_SCALE);
    let free = SCHED_CAPACITY_SCALE - used.min(SCHED_CAPACITY_SCALE);
    (free * weight / SCHED_CAPACITY_SCALE) as u32
}

fn touch_group<H: Host>(cx: &mut Cx<H>, id: GroupId, fields: Fields, access: Access) {
    let object = Object {
        kind: Kind::Sg,
        a: id.0,
        b: 0,
    };
    cx.touch(object, fields, access);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_where_the_cache_is_overloaded() {
        assert_eq!(idle_scan_limit(0, 16, 117), 16);
        assert_eq!(idle_scan_limit(16 * 512, 16, 117), 10);
        assert_eq!(idle_scan_limit(16 * 875, 16, 117), 0);
        assert_eq!(idle_scan_limit(16 * 1024, 16, 117), 0);
    }
}

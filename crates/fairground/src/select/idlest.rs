//! The idlest group, then the idlest CPU, level by level: placement of new and exec-ing tasks
//! (`sched_balance_find_dst_cpu`).
//!
//! Sources: changelogs of 5.5 ("rework find_idlest_group()"), 5.9 (tie-break, see
//! `policy/idlest.rs`), 5.12 and 5.18 (`imb_numa_nr`: how many tasks a node keeps).

use super::Wakee;
use super::group_stats::{GroupLoad, group_load, max_capacity};
use super::probe::{available_idle_cpu, cpu_load, sched_idle_cpu};
use super::{balances, touch_domain};
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Func, rq};
use crate::policy::{IdlestTie, NumaImbalance};
use crate::shared::Relaxed;
use crate::task::WakeKind;
use crate::topology::{GroupType, SchedDomain, SchedGroup};
use crate::value::{Cpu, SCHED_CAPACITY_SCALE};

/// The CPU for a task, from the domain `sd` of the calling CPU downwards.
pub(super) fn find_dst_cpu<H: Host>(
    cx: &mut Cx<H>,
    sd: &SchedDomain,
    wakee: &Wakee,
    prev: Cpu,
    kind: WakeKind,
) -> Cpu {
    if !sd.span.intersects(wakee.allowed) {
        return prev;
    }
    cx.span(Func::FindIdlestCpu, |cx| {
        let mut cpu = cx.cpu;
        let mut found = cpu;
        let mut next = Some(sd);
        while let Some(sd) = next {
            touch_domain(cx, cpu, sd);
            next = child(cx, cpu, sd);
            if !balances(sd.flags, kind) {
                continue;
            }
            let Some(group) = find_dst_group(cx, sd, wakee, cpu) else {
                continue;
            };
            found = find_dst_group_cpu(cx, group, wakee, cpu);
            if found != cpu {
                // On, below this level, in the domains of the CPU that was found.
                cpu = found;
                next = highest_below(cx, cpu, sd.weight, kind);
            }
        }
        found
    })
}

fn child<'a, H: Host>(cx: &Cx<'a, H>, cpu: Cpu, sd: &SchedDomain) -> Option<&'a SchedDomain> {
    let below = (sd.level as usize).checked_sub(1)?;
    cx.sys.topology.domains(cpu).get(below)
}

/// The highest domain of `cpu` smaller than `weight` up to which all balance tasks of this kind.
fn highest_below<'a, H: Host>(
    cx: &mut Cx<'a, H>,
    cpu: Cpu,
    weight: u32,
    kind: WakeKind,
) -> Option<&'a SchedDomain> {
    let mut found = None;
    for sd in cx.sys.topology.domains(cpu) {
        touch_domain(cx, cpu, sd);
        if weight <= sd.weight {
            break;
        }
        if balances(sd.flags, kind) {
            found = Some(sd);
        }
    }
    found
}

/// The group that the task should go to; `None` = the one with `this` in it.
fn find_dst_group<'a, H: Host>(
    cx: &mut Cx<'a, H>,
    sd: &SchedDomain,
    wakee: &Wakee,
    this: Cpu,
) -> Option<&'a SchedGroup> {
    let topology = &cx.sys.topology;
    let (tie, numa) = (cx.features().idlest_tie, cx.features().numa_imbalance);
    let mut local: Option<(&SchedGroup, GroupLoad)> = None;
    let mut idlest: Option<(&SchedGroup, GroupLoad)> = None;
    cx.host.begin_scan();
    for &id in &sd.groups {
        let group: &SchedGroup = topology.group(id);
        if !group.span.intersects(wakee.allowed) {
            continue;
        }
        let load = group_load(cx, sd, id, wakee);
        if group.span.has(this) {
            local = Some((group, load));
        } else if is_idler(idlest.as_ref(), group, &load, tie) {
            idlest = Some((group, load));
        }
    }
    cx.host.end_scan();
    let (idlest, idlest_load) = idlest?;
    let Some((local, local_load)) = local else {
        return Some(idlest);
    };
    let leaves = match local_load.group_type.cmp(&idlest_load.group_type) {
        core::cmp::Ordering::Less => false,
        core::cmp::Ordering::Greater => true,
        core::cmp::Ordering::Equal => match local_load.group_type {
            GroupType::Overloaded | GroupType::FullyBusy => {
                is_much_less_loaded(sd, &local_load, &idlest_load)
            }
            GroupType::MisfitTask => max_capacity(local) < max_capacity(idlest),
            GroupType::HasSpare => {
                let allowed_here = local.span.and(wakee.allowed).weight();
                has_more_room(numa, sd, &local_load, &idlest_load, allowed_here)
            }
            GroupType::Imbalanced | GroupType::AsymPacking | GroupType::SmtBalance => false,
        },
    };
    leaves.then_some(idlest)
}

/// Whether a group beats the best one so far (`update_pick_idlest`).
fn is_idler(
    best: Option<&(&SchedGroup, GroupLoad)>,
    group: &SchedGroup,
    load: &GroupLoad,
    tie: IdlestTie,
) -> bool {
    let Some((best_group, best)) = best else {
        // The start of the search is an overloaded group of the largest load that 32 bits hold;
        // only an overloaded group can fail to beat that.
        let beats = load.group_type < GroupType::Overloaded;
        return beats || load.avg_load < u64::from(u32::MAX);
    };
    if load.group_type != best.group_type {
        return load.group_type < best.group_type;
    }
    match load.group_type {
        GroupType::Overloaded | GroupType::FullyBusy => load.avg_load < best.avg_load,
        GroupType::MisfitTask => max_capacity(group) > max_capacity(best_group),
        GroupType::HasSpare if load.idle_cpus == best.idle_cpus => {
            tie.replaces((best.util, best.nr_running), (load.util, load.nr_running))
        }
        GroupType::HasSpare => load.idle_cpus > best.idle_cpus,
        GroupType::Imbalanced | GroupType::AsymPacking | GroupType::SmtBalance => false,
    }
}

/// Whether the other group is less loaded by more than the domain tolerates; between nodes,
/// staying gets the same advance once more.
fn is_much_less_loaded(sd: &SchedDomain, local: &GroupLoad, idlest: &GroupLoad) -> bool {
    let pct = u64::from(sd.imbalance_pct);
    let margin = SCHED_CAPACITY_SCALE * pct.saturating_sub(100) / 100;
    if sd.flags.numa && idlest.avg_load + margin >= local.avg_load {
        return false;
    }
    idlest.avg_load < local.avg_load + margin && 100 * local.avg_load > pct * idlest.avg_load
}

/// Whether the other group has more idle CPUs; between nodes not while the local one has fewer
/// tasks than it may keep, which is at most the CPUs of it that the task may use.
fn has_more_room(
    numa: NumaImbalance,
    sd: &SchedDomain,
    local: &GroupLoad,
    idlest: &GroupLoad,
    allowed: u32,
) -> bool {
    if sd.flags.numa {
        let keeps = allowed.min(sd.imb_numa_nr);
        if numa.stays(local.idle_cpus, idlest.idle_cpus, local.nr_running, keeps) {
            return false;
        }
    }
    local.idle_cpus < idlest.idle_cpus
}

/// The CPU of a group that wakes up fastest, of equals the one that became idle last; if none is
/// idle the least loaded one (`sched_balance_find_dst_group_cpu`).
fn find_dst_group_cpu<H: Host>(
    cx: &mut Cx<H>,
    group: &SchedGroup,
    wakee: &Wakee,
    this: Cpu,
) -> Cpu {
    if group.weight == 1 {
        return group.first_cpu();
    }
    let (mut least_loaded, mut min_load) = (this, u64::MAX);
    let mut idle = None;
    // Exit latency as published: 0 = no idle state chosen, else ns plus one.
    let (mut min_latency, mut latest) = (u64::MAX, 0);
    cx.host.begin_scan();
    for cpu in group.span.and(wakee.allowed).iter() {
        cx.host.next_turn();
        if sched_idle_cpu(cx, cpu) {
            idle = Some(cpu);
            break;
        }
        if available_idle_cpu(cx, cpu) {
            cx.read_rq(cpu, rq::AVG_IDLE);
            let words = &cx.sys.cpu[cpu.idx()];
            let stamp = words.idle_stamp.load(Relaxed);
            let latency = words.idle_exit_latency.load(Relaxed);
            if latency != 0 && latency < min_latency {
                (min_latency, latest, idle) = (latency, stamp, Some(cpu));
            } else if (latency == 0 || latency == min_latency) && stamp > latest {
                (latest, idle) = (stamp, Some(cpu));
            }
        } else if idle.is_none() {
            let load = cpu_load(cx, cpu);
            if load < min_load {
                (least_loaded, min_load) = (cpu, load);
            }
        }
    }
    cx.host.end_scan();
    idle.unwrap_or(least_loaded)
}

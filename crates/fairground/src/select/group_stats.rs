//! How busy a group of CPUs is, for the slow path of placement.
//!
//! Source: "sched/fair: Rework load_balance()" and "rework find_idlest_group()", Vincent Guittot,
//! 2019, for 5.5 (changelogs).

use super::Wakee;
use super::probe::{capacity_of, read_root_cfs};
use crate::cx::Cx;
use crate::fair::h_load::peek_task_h_load;
use crate::host::Host;
use crate::math::fits_capacity;
use crate::math::pelt::util_est_value;
use crate::place::{Access, Kind, Object, cfs_rq, rq, sg};
use crate::shared::Relaxed;
use crate::topology::{GroupType, SchedDomain, SchedGroup};
use crate::value::{Cpu, GroupId, SCHED_CAPACITY_SCALE};

/// Sums over the CPUs of a group, from which its type follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupLoad {
    /// Its type.
    pub group_type: GroupType,
    /// CPUs of the group.
    pub weight: u32,
    /// Idle CPUs.
    pub idle_cpus: u32,
    /// Tasks of all classes.
    pub nr_running: u32,
    /// Runnable fair tasks.
    pub h_nr_running: u32,
    /// Capacity for fair tasks.
    pub capacity: u64,
    /// Load.
    pub load: u64,
    /// Utilisation.
    pub util: u64,
    /// Runnable average.
    pub runnable: u64,
    /// Load per capacity; only of groups without room.
    pub avg_load: u64,
    /// The task fits none of its CPUs.
    pub misfit: bool,
}

impl GroupLoad {
    /// The type by the sums; `imbalanced` = affinity left an imbalance below, `pct` = what the
    /// domain tolerates (117 = 17 %).
    #[must_use]
    pub fn classify(&self, imbalanced: bool, pct: u32) -> GroupType {
        let pct = u64::from(pct);
        let crowded = self.capacity * pct < self.runnable * 100;
        let used_up = self.capacity * 100 < self.util * pct;
        let room = self.capacity * 100 > self.util * pct;
        if self.nr_running > self.weight && (used_up || crowded) {
            GroupType::Overloaded
        } else if imbalanced {
            GroupType::Imbalanced
        } else if self.misfit {
            GroupType::MisfitTask
        } else if self.nr_running < self.weight || !crowded && room {
            GroupType::HasSpare
        } else {
            GroupType::FullyBusy
        }
    }
}

/// The state of a group as it would be without the task (`update_sg_wakeup_stats`).
pub(super) fn group_load<H: Host>(
    cx: &mut Cx<H>,
    sd: &SchedDomain,
    id: GroupId,
    wakee: &Wakee,
) -> GroupLoad {
    let group = cx.sys.topology.group(id);
    let mut out = GroupLoad {
        weight: group.weight,
        misfit: sd.flags.asym_cpucapacity,
        ..GroupLoad::default()
    };
    let looked_at = match cx.features().idlest_stats.only_allowed() {
        true => group.span.and(wakee.allowed),
        false => group.span,
    };
    for cpu in looked_at.iter() {
        cx.host.next_turn();
        add_cpu(cx, &mut out, cpu, wakee);
    }
    touch_group(cx, id);
    out.capacity = group.state.capacity.load(Relaxed);
    let imbalanced = group.state.imbalance.load(Relaxed);
    out.group_type = out.classify(imbalanced, sd.imbalance_pct);
    if matches!(out.group_type, GroupType::FullyBusy | GroupType::Overloaded) {
        out.avg_load = out.load * SCHED_CAPACITY_SCALE / out.capacity.max(1);
    }
    out
}

/// The largest capacity of a CPU of the group.
pub(super) fn max_capacity(group: &SchedGroup) -> u64 {
    group.state.max_capacity.load(Relaxed)
}

fn add_cpu<H: Host>(cx: &mut Cx<H>, out: &mut GroupLoad, cpu: Cpu, wakee: &Wakee) {
    cx.read_rq(cpu, rq::NR_RUNNING);
    read_root_cfs(cx, cpu, cfs_rq::AVG | cfs_rq::NR_QUEUED);
    let words = &cx.sys.cpu[cpu.idx()];
    let here = wakee.contributes_to(cpu);
    let queued_here = u32::from(here && wakee.on_rq);
    let nr_running = words.nr_running.load(Relaxed).saturating_sub(queued_here);
    let h_nr = words.h_nr(cx.features().load_balance.counts.sleepers());

    out.load += load_without(cx, cpu, wakee);
    out.util += util_without(cx, cpu, wakee);
    let own_runnable = if here { wakee.avg.runnable_avg } else { 0 };
    out.runnable += words
        .runnable_avg
        .load(Relaxed)
        .saturating_sub(own_runnable);
    out.nr_running += nr_running;
    out.h_nr_running += h_nr.saturating_sub(queued_here);
    if nr_running == 0 && is_idle_without(cx, cpu, queued_here) {
        out.idle_cpus += 1;
    }
    if out.misfit && fits_capacity(wakee.util_est(), capacity_of(cx, cpu)) {
        out.misfit = false;
    }
}

/// The rest of the idle test of a CPU without other tasks (`idle_cpu_without`): who runs there may
/// be the exec-ing task itself.
fn is_idle_without<H: Host>(cx: &mut Cx<H>, cpu: Cpu, queued_here: u32) -> bool {
    let words = &cx.sys.cpu[cpu.idx()];
    cx.read_rq(cpu, rq::CURR);
    if !words.curr_is_idle.load(Relaxed) && queued_here == 0 {
        return false;
    }
    cx.read_rq(cpu, rq::TTWU_PENDING);
    !words.ttwu_pending.load(Relaxed)
}

fn load_without<H: Host>(cx: &mut Cx<H>, cpu: Cpu, wakee: &Wakee) -> u64 {
    let load = cx.sys.cpu[cpu.idx()].load_avg.load(Relaxed);
    if wakee.contributes_to(cpu) {
        load.saturating_sub(peek_task_h_load(cx, wakee.unlocked()))
    } else {
        load
    }
}

fn util_without<H: Host>(cx: &Cx<H>, cpu: Cpu, wakee: &Wakee) -> u64 {
    let words = &cx.sys.cpu[cpu.idx()];
    let mut util = words.util_avg.load(Relaxed);
    let mut estimate = u64::from(words.util_est.load(Relaxed));
    if wakee.contributes_to(cpu) {
        util = util.saturating_sub(wakee.avg.util_avg);
        if wakee.on_rq {
            estimate = estimate.saturating_sub(util_est_value(wakee.avg.util_est));
        }
    }
    let capacity = cx.sys.topology.places[cpu.idx()].capacity;
    util.max(estimate).min(u64::from(capacity))
}

fn touch_group<H: Host>(cx: &mut Cx<H>, id: GroupId) {
    let object = Object {
        kind: Kind::Sg,
        a: id.0,
        b: 0,
    };
    let fields = sg::FIXED | sg::CAPACITY | sg::IMBALANCE;
    cx.touch(object, fields, Access::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typ(nr_running: u32, util: u64, runnable: u64) -> GroupType {
        let sums = GroupLoad {
            weight: 4,
            capacity: 4096,
            nr_running,
            util,
            runnable,
            ..GroupLoad::default()
        };
        sums.classify(false, 117)
    }

    #[test]
    fn types_follow_from_counts_then_from_averages() {
        assert_eq!(typ(3, 4096, 9000), GroupType::HasSpare);
        assert_eq!(typ(4, 3500, 4000), GroupType::HasSpare);
        assert_eq!(typ(4, 3501, 4000), GroupType::FullyBusy);
        assert_eq!(typ(5, 3501, 4000), GroupType::Overloaded);
        assert_eq!(typ(5, 3400, 4793), GroupType::Overloaded);
        assert_eq!(typ(4, 3400, 4793), GroupType::FullyBusy);
    }
}

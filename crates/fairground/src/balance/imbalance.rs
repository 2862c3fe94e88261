//! How much to move, and in which unit.
//!
//! Source: "sched/fair: rework load_balance", Vincent Guittot, 2019, for 5.5; spreading by cores
//! "sched/fair: Implement prefer sibling imbalance calculation between asymmetric groups", Tim
//! Chen, 2023, for 6.6.

use super::env::{LbEnv, MigrationType, SdLbStats, SgLbStats};
use crate::topology::{GroupType, SchedGroup, Topology};
use crate::value::SCHED_CAPACITY_SCALE;

/// Sets the unit and the amount to move from the busiest group; amount 0 = nothing
/// (`calculate_imbalance`).
pub(super) fn calculate_imbalance(env: &mut LbEnv<'_>, sds: &mut SdLbStats, top: &Topology) {
    let busiest = sds.busiest_stat;
    let (unit, amount) = match busiest.group_type {
        GroupType::MisfitTask if env.sd.flags.asym_cpucapacity => (MigrationType::Misfit, 1),
        GroupType::MisfitTask => (MigrationType::Load, busiest.misfit_task_load as i64),
        GroupType::AsymPacking => (MigrationType::Task, i64::from(busiest.sum_h_nr_running)),
        GroupType::SmtBalance | GroupType::Imbalanced => (MigrationType::Task, 1),
        _ if sds.local_stat.group_type == GroupType::HasSpare => fill_spare(env, sds, top),
        _ => (MigrationType::Load, even_load(sds)),
    };
    env.migration_type = unit;
    env.imbalance = amount;
}

/// The local group has room: fill it without overloading it or emptying the busiest one.
fn fill_spare(env: &LbEnv<'_>, sds: &SdLbStats, top: &Topology) -> (MigrationType, i64) {
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    let in_util = env.util_in_cache || !env.sd.flags.share_llc;
    if busiest.group_type > GroupType::FullyBusy && in_util {
        let room = local.group_capacity.saturating_sub(local.group_util);
        if env.idle.is_idle() && room == 0 {
            return (MigrationType::Task, 1);
        }
        return (MigrationType::Util, room as i64);
    }
    let mut tasks = if busiest.group_weight == 1 || sds.prefer_sibling {
        sibling_imbalance(env, sds, top)
    } else {
        // The kernel subtracts unsigned 32-bit counts, so fewer idle CPUs here than there give a
        // huge number rather than nothing.
        i64::from(local.idle_cpus.wrapping_sub(busiest.idle_cpus))
    };
    if env.sd.flags.numa {
        tasks = adjust_numa_imbalance(env, tasks, local, busiest);
    }
    (MigrationType::Task, tasks >> 1)
}

/// Both groups are, or will be, overloaded: bring neither across the average of the domain. The
/// domain's average may lie above the busiest group's; that difference wraps and the other counts.
fn even_load(sds: &mut SdLbStats) -> i64 {
    if sds.local_stat.group_type < GroupType::Overloaded {
        sds.local_stat.avg_load = avg_load(&sds.local_stat);
        if sds.local_stat.avg_load >= sds.busiest_stat.avg_load {
            return 0;
        }
        sds.avg_load = domain_avg_load(sds);
        if sds.local_stat.avg_load >= sds.avg_load {
            return 0;
        }
    }
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    let above = busiest.avg_load.wrapping_sub(sds.avg_load);
    let below = sds.avg_load.wrapping_sub(local.avg_load);
    let above = above.wrapping_mul(busiest.group_capacity);
    let below = below.wrapping_mul(local.group_capacity);
    (above.min(below) / SCHED_CAPACITY_SCALE) as i64
}

/// Load per capacity, times 1024.
pub(super) fn avg_load(sgs: &SgLbStats) -> u64 {
    sgs.group_load * SCHED_CAPACITY_SCALE / sgs.group_capacity.max(1)
}

/// Load per capacity of the whole domain, times 1024.
pub(super) fn domain_avg_load(sds: &SdLbStats) -> u64 {
    sds.total_load * SCHED_CAPACITY_SCALE / sds.total_capacity.max(1)
}

/// Tasks by which the busiest group exceeds what would be even (`sibling_imbalance`).
///
/// With as many cores on both sides it is the difference. With `a` cores here and `b` there, even
/// is the same number of tasks for each core; moving `x` tasks from `n_b` to `n_a` reaches that at
/// `x = (a n_b - b n_a) / (a + b)`, and the answer is twice that, rounded, as it will be halved.
pub(super) fn sibling_imbalance(env: &LbEnv<'_>, sds: &SdLbStats, top: &Topology) -> i64 {
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    if !env.smt.knows_cores() {
        return i64::from(busiest.sum_nr_running.saturating_sub(local.sum_nr_running));
    }
    if !env.idle.is_idle() || busiest.sum_nr_running == 0 {
        return 0;
    }
    let cores = |id| top_group(top, id).map_or(1, |g: &SchedGroup| i64::from(g.cores));
    let (here, there) = (cores(sds.local), cores(sds.busiest));
    let (n_here, n_there) = (
        i64::from(local.sum_nr_running),
        i64::from(busiest.sum_nr_running),
    );
    if here == there {
        return (n_there - n_here).max(0);
    }
    let apart = (here * n_there - there * n_here).max(0);
    let even = (2 * apart + here + there) / (here + there);
    if even <= 1 && n_here == 0 && n_there > 1 {
        return 2; // an empty group is worth using
    }
    even
}

fn top_group(top: &Topology, id: Option<crate::value::GroupId>) -> Option<&SchedGroup> {
    id.map(|id| top.group(id))
}

/// What is left of an imbalance of `tasks` between nodes: nothing, while few tasks run and a pair
/// of them could be communicating (`adjust_numa_imbalance`). The kernel takes the imbalance as 32
/// bits, so a wrapped one is negative here.
fn adjust_numa_imbalance(
    env: &LbEnv<'_>,
    tasks: i64,
    local: &SgLbStats,
    busiest: &SgLbStats,
) -> i64 {
    let tasks = i64::from(tasks as i32);
    let (src, dst) = (busiest.sum_nr_running, local.sum_nr_running + 1);
    if env.numa.tolerates(tasks, src, dst, env.sd.imb_numa_nr) {
        return 0;
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_crossed_by_neither_side() {
        let group = |group_load, avg_load| SgLbStats {
            group_load,
            avg_load,
            group_capacity: 1024,
            group_type: GroupType::Overloaded,
            ..SgLbStats::default()
        };
        let mut sds = SdLbStats {
            local_stat: group(1024, 1024),
            busiest_stat: group(4096, 4096),
            avg_load: 2048,
            ..SdLbStats::default()
        };
        assert_eq!(even_load(&mut sds), 1024);
        sds.avg_load = 4000;
        assert_eq!(even_load(&mut sds), 96);
    }
}

//! Weights: of tasks, of groups, and that of a group's entity from the states around it.

use std::collections::BTreeSet;

use fairground::math::shares::calc_group_shares;
use fairground::math::weight::nice_to_weight;

use super::records::{Kind, Record};
use super::reweight::reweighted;
use super::{NEAR_NS, Replay};
use crate::truth::case::{Case, PolicyWords, Shares, Step, TaskWords, each_step};
use crate::workload::program::Cgroup;

/// Weight of `SCHED_IDLE` and of a `cpu.idle` group.
const IDLE_WEIGHT: u64 = 3;
/// Weight of a group that says nothing else.
const DEFAULT_SHARES: u64 = 1024;
/// States of a queue from which a weight may follow.
const RECENT: usize = 3;
/// More sums of weights are not told apart.
const SUMS_MAX: usize = 32;
/// A write to a group's file is done up to this much after its time (the writer must wake).
const WRITTEN_NS: i64 = 1_000_000;

/// Weights that a task has at some time.
fn of_task(task: &TaskWords) -> BTreeSet<u64> {
    if task.policy == PolicyWords::Idle {
        return [IDLE_WEIGHT].into();
    }
    let mut all = BTreeSet::from([u64::from(nice_to_weight(task.nice))]);
    each_step(&task.program, &mut |step| {
        if let Step::SetNice(nice) = step {
            all.insert(u64::from(nice_to_weight(*nice)));
        }
    });
    all
}

/// Sums that the weights of tasks may have.
pub(super) fn sums<'a>(tasks: impl Iterator<Item = &'a TaskWords>) -> BTreeSet<u64> {
    let mut sums = BTreeSet::from([0]);
    for task in tasks {
        let with = |sum: &u64| {
            of_task(task)
                .into_iter()
                .map(move |w| sum + w)
                .collect::<Vec<_>>()
        };
        sums = sums.iter().flat_map(with).take(SUMS_MAX).collect();
    }
    sums
}

/// Shares that the group at `path` may have at `t_ns`: as made, or as written since.
fn shares_at(case: &Case, path: &str, t_ns: i64) -> Vec<u64> {
    let group = case.cgroups.iter().find(|g| g.path == path);
    let idle = group.is_some_and(|g| g.idle.is_some_and(|i| i.is_set()));
    let made = match group.and_then(|g| g.shares.as_ref()) {
        _ if idle => IDLE_WEIGHT,
        Some(Shares::Idle(_)) => IDLE_WEIGHT,
        Some(Shares::Number(n)) => *n,
        None => DEFAULT_SHARES,
    };
    let late_ns = case.sampler.map_or(0, |s| s.every_us as i64 * 1000) + WRITTEN_NS;
    let mut possible = vec![made];
    for write in case.events.iter().filter(|w| w.cgroup == path) {
        let at_ns = write.at_us as i64 * 1000;
        let number = || write.value.text().parse().unwrap_or(DEFAULT_SHARES);
        let shares = match (write.file.as_str(), write.value.text().as_str()) {
            ("cpu.idle", "1") => IDLE_WEIGHT,
            ("cpu.idle", _) => DEFAULT_SHARES,
            ("cpu.shares", _) => number(),
            ("cpu.weight", _) => Cgroup::shares_of_weight(number()),
            _ => continue,
        };
        if t_ns < at_ns - NEAR_NS {
            break;
        }
        if t_ns > at_ns + late_ns {
            possible.clear();
        }
        possible.push(shares);
    }
    possible
}

impl Replay<'_> {
    /// Whether the weight of a group entity follows from one of the last states of its queue, with
    /// what another CPU had published, or was about to publish, then.
    pub(super) fn weight(&self, all: &[Record], index: usize) -> bool {
        let to = &all[index];
        let shares = shares_at(self.case, &to.id, to.t_ns);
        let queue = |r: &&Record| r.kind == Kind::Queue && r.id == to.id;
        let own = |r: &&Record| r.cpu == to.cpu;
        let before = || all[..index].iter().rev().filter(queue);
        let mut after = all[index..].iter().filter(queue);
        let recent: Vec<&Record> = before().filter(own).take(RECENT).collect();
        let mut published: BTreeSet<u64> = recent
            .iter()
            .map(|r| r.tg_load_avg.wrapping_sub(r.contrib))
            .collect();
        let other = before()
            .filter(|r| !own(r))
            .take(2)
            .chain(after.find(|r| !own(r)));
        published.extend(other.flat_map(|r| [r.contrib, r.avg.load_avg]));
        recent.iter().any(|r| {
            let weight = |others: &u64| {
                let total = others.wrapping_add(r.contrib);
                let after = reweighted(all, r).unwrap_or(r.avg);
                let loads = [r.avg.load_avg, after.load_avg];
                let mut states = loads
                    .iter()
                    .flat_map(|load| [(r.weight, *load), (0, *load)]);
                states.any(|(queue_weight, load)| {
                    let of = |shares: &u64| {
                        calc_group_shares(*shares << 10, queue_weight, load, total, r.contrib)
                    };
                    shares.iter().any(|shares| to.weight == of(shares))
                })
            };
            published.iter().any(weight)
        })
    }
}

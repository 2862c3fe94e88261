//! Verifies load tracking: what the queues of a group have published is the group's load; the list
//! of queues with load is whole, children first; the words for wakers are the owner's; and the
//! averages of a queue are not below the sum of those of its queued entities, brought to the same
//! time, within what rounding can take.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use fairground::math::pelt::update_load_avg_se;
use fairground::math::weight::{LoadWeight, scale_load_down};
use fairground::rq::{CfsRq, Rq};
use fairground::value::{CfsId, TgId};

use super::queues::members;
use super::{Verdict, holds};
use crate::machine::Sim;
use crate::workload::program::Op;

const PUBLISHED: &str = "published contributions sum to the group's load";
const LEAVES: &str = "the list of queues with load is whole";
const WORDS: &str = "a group's words for wakers are its queue's";
const PELT: &str = "a queue is not below the sum of its members";

pub(super) fn check_groups(sim: &Sim<'_>) -> Verdict {
    for (tg, group) in sim.sys.tg.iter().enumerate().skip(1) {
        let contributions: u64 = sim
            .rqs
            .iter()
            .filter_map(|rq| Some(&rq.cfs[rq.cfs_of(TgId(tg as u32))?.idx()]))
            .map(|q| q.tg_load_avg_contrib)
            .sum();
        let load = group.peek_load_avg();
        holds!(
            PUBLISHED,
            contributions as i64 == load,
            "group {tg}: {contributions}, {load}"
        );
    }
    Ok(())
}

/// Queues whose load has come so near to 2^32 units of its sum that the kernel's comparison in 32
/// bits (see the engine's `at_least`) may have cut it: their load is no measure any more.
#[derive(Debug, Default)]
pub struct Overflowed(BTreeSet<(u32, u32)>);

/// Load from which on that may have happened between two looks: 2^32 / 47742 is 89 962.
const OVERFLOW: u64 = 60_000;

impl Overflowed {
    fn note(&mut self, queue: &CfsRq, of: (u32, u32)) -> bool {
        let weight = scale_load_down(queue.load.weight);
        if weight.max(queue.avg.load_avg) >= OVERFLOW {
            self.0.insert(of);
        }
        self.0.contains(&of)
    }
}

pub(super) fn check_queues(sim: &Sim<'_>, rq: &Rq, overflowed: &mut Overflowed) -> Verdict {
    leaves(rq)?;
    let greatest = greatest_weight(sim);
    for (n, queue) in rq.cfs.iter().enumerate() {
        let of = (rq.cpu.0, queue.tg.0);
        let avg = &queue.avg;
        let loaded = avg.load_avg > 0 || avg.util_avg > 0 || queue.nr_queued > 0;
        // A throttled queue is off the list: its load stands still.
        let listed = queue.on_list || queue.throttle_count > 0 || !loaded;
        holds!(LEAVES, listed, "{of:?} has load, but is not on the list");
        if let Some(slot) = queue.se {
            let words = sim.sys.tg[queue.tg.idx()].cpu(rq.cpu);
            let told = (
                words.queue_load_avg.load(Relaxed),
                words.se_load_avg.load(Relaxed),
            );
            let is = (avg.load_avg, rq.se[slot.idx()].avg.load_avg);
            holds!(WORDS, told == is, "{of:?}: {told:?}, not {is:?}");
        }
        let cut = overflowed.note(queue, of);
        sums(rq, n, greatest, cut, of)?;
    }
    Ok(())
}

fn leaves(rq: &Rq) -> Verdict {
    let (mut seen, mut prev, mut at) = (Vec::new(), None, rq.leaf_head);
    while let Some(id) = at {
        let queue = &rq.cfs[id.idx()];
        let of = (rq.cpu.0, queue.tg.0);
        let linked = queue.on_list && queue.leaf_prev == prev;
        holds!(LEAVES, linked, "{of:?}: its links");
        let first = id == CfsId::ROOT || !seen.contains(&queue.parent);
        holds!(LEAVES, first, "{of:?} stands behind its parent");
        seen.push(id);
        (prev, at) = (at, queue.leaf_next);
    }
    let listed = rq.cfs.iter().filter(|q| q.on_list).count();
    holds!(
        LEAVES,
        seen.len() == listed,
        "CPU {}: {} of {listed}",
        rq.cpu.0,
        seen.len()
    );
    Ok(())
}

fn sums(rq: &Rq, n: usize, greatest: u64, cut: bool, of: (u32, u32)) -> Verdict {
    let queue = &rq.cfs[n];
    let now = queue.avg.last_update_time;
    let (mut load, mut util, mut count) = (0, 0, 0);
    for slot in members(rq, CfsId(n as u32)) {
        let se = &rq.se[slot.idx()];
        let mut avg = se.avg;
        // Ahead of its queue only by less than a window, which changes no average.
        if avg.last_update_time == 0 || avg.last_update_time > now {
            continue;
        }
        let runnable = match se.my_q {
            Some(_) => se.runnable_weight,
            None => u64::from(!se.sched_delayed),
        };
        let weight = scale_load_down(se.load.weight);
        let running = queue.curr == Some(slot);
        update_load_avg_se(now, &mut avg, true, runnable, running, weight);
        load += avg.load_avg;
        util += avg.util_avg;
        count += 1;
    }
    let is = (queue.avg.load_avg, queue.avg.util_avg);
    let slack = (slack(count, greatest), slack(count, 1024));
    let fits = (cut || is.0 + slack.0 >= load) && is.1 + slack.1 >= util;
    holds!(
        PELT,
        fits,
        "{of:?}: (load, util) {is:?}, members {:?}",
        (load, util)
    );
    Ok(())
}

/// What rounding can take from a queue. An average is a sum divided by 46718 to 47742, depending on
/// how much of the present window is over; where one is made from the other at different points
/// of the window (a sleeper that is removed, an entity that follows its queue), the result is
/// off by up to 1024 / 46718 of it, and that halves only every 32 ms. Four such of a full entity
/// of the greatest weight that the workload knows are allowed for, and two units for each member.
const fn slack(count: u64, greatest: u64) -> u64 {
    8 + 2 * count + 4 * greatest * 1024 / 46718
}

/// Unscaled weight of the heaviest entity that there may be.
fn greatest_weight(sim: &Sim<'_>) -> u64 {
    let tasks = sim.workload.templates.iter().map(|t| t.nice);
    let steps = sim.workload.programs.iter().flat_map(|p| &p.ops);
    let set = steps.filter_map(|op| match op {
        Op::SetNice(nice) | Op::SetPolicy { nice, .. } => Some(*nice),
        _ => None,
    });
    let nice = tasks.chain(set).min().unwrap_or(0);
    let groups = sim.sys.tg.iter().map(|tg| tg.shares.load(Relaxed));
    let task = LoadWeight::from_nice(nice).weight;
    scale_load_down(groups.fold(task, u64::max))
}

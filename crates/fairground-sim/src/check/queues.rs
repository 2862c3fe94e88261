//! Verifies each queue against a recount from its entities up: numbers of entities and tasks at
//! every level, the sum of the weights, the tree and what its nodes cache, the sums of virtual
//! time, and that the lags of all queued entities sum to zero within the rounding of the mean.

use fairground::math::eevdf::entity_key;
use fairground::math::weight::scale_load_down;
use fairground::rq::{HigherClass, Rq};
use fairground::task::Policy;
use fairground::value::{CfsId, SeId};

use super::{Verdict, holds};
use crate::machine::Sim;

const COUNTS: &str = "counts equal a recount";
const WEIGHTS: &str = "a queue weighs as much as its entities";
const TREE: &str = "the tree holds the queued entities";
const VTIME: &str = "virtual time is the weighted mean";
const LAGS: &str = "lags sum to zero";

pub(super) fn check(sim: &Sim<'_>, rq: &Rq) -> Verdict {
    for (n, queue) in rq.cfs.iter().enumerate() {
        let members = members(rq, CfsId(n as u32));
        let of = (rq.cpu.0, queue.tg.0);
        counts(rq, n, &members, of)?;
        let weight: u64 = members.iter().map(|m| rq.se[m.idx()].load.weight).sum();
        let kept = queue.load.weight;
        holds!(WEIGHTS, kept == weight, "{of:?}: {kept}, not {weight}");
        tree(sim, rq, n, &members, of)?;
        lags(rq, n, &members, of)?;
    }
    let real_time = sim.cpus[rq.cpu.idx()].rt.waiting().count() as u32
        + u32::from(matches!(rq.higher, Some(HigherClass::RealTime(_))));
    let above = real_time + u32::from(rq.stopper);
    let (running, queued) = (rq.nr_running, rq.cfs[0].h_nr_queued + above);
    holds!(
        COUNTS,
        running == queued,
        "CPU {}: nr_running {running} of {queued}",
        rq.cpu.0
    );
    current(rq)
}

/// The entities that are queued on `cfs`, the running one included.
pub(super) fn members(rq: &Rq, cfs: CfsId) -> Vec<SeId> {
    let queued = |s: &usize| rq.se[*s].on_rq && rq.se[*s].cfs_rq == cfs;
    (0..rq.se.len())
        .filter(queued)
        .map(|s| SeId(s as u32))
        .collect()
}

fn counts(rq: &Rq, n: usize, members: &[SeId], of: (u32, u32)) -> Verdict {
    let queue = &rq.cfs[n];
    let entities = queue.nr_queued as usize;
    holds!(
        COUNTS,
        entities == members.len(),
        "{of:?}: nr_queued {entities} of {}",
        members.len()
    );
    let (mut queued, mut runnable, mut idle) = (0, 0, 0);
    for slot in members {
        let se = &rq.se[slot.idx()];
        if let Some(own) = se.my_q {
            let own = &rq.cfs[own.idx()];
            queued += own.h_nr_queued;
            runnable += own.h_nr_runnable;
            idle += if own.idle {
                own.h_nr_queued
            } else {
                own.h_nr_idle
            };
            let empty = own.nr_queued == 0;
            let alive = !empty || se.sched_delayed;
            holds!(
                COUNTS,
                alive,
                "{of:?}: group {} is queued, but empty",
                own.tg.0
            );
        } else {
            let body = rq.body[slot.idx()].as_ref();
            holds!(
                COUNTS,
                body.is_some(),
                "{of:?}: slot {} is queued, but free",
                slot.0
            );
            queued += 1;
            runnable += u32::from(!se.sched_delayed);
            idle += u32::from(body.is_some_and(|b| b.policy == Policy::Idle));
        }
    }
    let kept = (queue.h_nr_queued, queue.h_nr_runnable, queue.h_nr_idle);
    let is = (queued, runnable, idle);
    holds!(
        COUNTS,
        kept == is,
        "{of:?}: (queued, runnable, idle) {kept:?}, not {is:?}"
    );
    Ok(())
}

fn tree(sim: &Sim<'_>, rq: &Rq, n: usize, members: &[SeId], of: (u32, u32)) -> Verdict {
    let queue = &rq.cfs[n];
    if let Err(what) = rq.nodes.check(&queue.tree) {
        return Err((TREE, format!("{of:?}: {what}")));
    }
    let waiting = members.iter().filter(|m| queue.curr != Some(**m));
    holds!(
        TREE,
        queue.tree.len() as usize == waiting.clone().count(),
        "{of:?}: its number"
    );
    for slot in waiting {
        holds!(
            TREE,
            rq.nodes.contains(slot.0),
            "{of:?}: slot {} is missing",
            slot.0
        );
        let (key, se) = (rq.nodes.key(slot.0), &rq.se[slot.idx()]);
        let order = sim.sys.features.pick.order(se);
        let is = (order, se.vruntime, se.slice_ns);
        let kept = (key.order, key.vruntime, key.slice);
        holds!(
            TREE,
            kept == is,
            "{of:?}: slot {} {kept:?}, not {is:?}",
            slot.0
        );
    }
    Ok(())
}

/// With keys `k` and unscaled weights `w`, the mean is `floor(sum w k / W)`, so what the lags
/// `w (mean - k)` sum to is above `-W` and at most 0. The sum must be computed from what the queue
/// keeps, and that must be what its entities carry.
fn lags(rq: &Rq, n: usize, members: &[SeId], of: (u32, u32)) -> Verdict {
    let queue = &rq.cfs[n];
    let key = |s: &SeId| {
        let se = &rq.se[s.idx()];
        let key = entity_key(se.vruntime, queue.zero_vruntime);
        (key, scale_load_down(se.load.weight))
    };
    let mut all = queue.avg_vruntime;
    let (mut sum, mut load) = (0i128, 0i128);
    for slot in members {
        let (k, w) = key(slot);
        if queue.curr == Some(*slot) {
            all = all.with(k, w);
        }
        sum += i128::from(k) * i128::from(w);
        load += i128::from(w);
    }
    let kept = (i128::from(all.sum), i128::from(all.load));
    holds!(
        VTIME,
        kept == (sum, load),
        "{of:?}: {kept:?}, not {:?}",
        (sum, load)
    );
    let mean = i128::from(all.mean_key());
    let lags: i128 = members
        .iter()
        .map(key)
        .map(|(k, w)| i128::from(w) * (mean - i128::from(k)))
        .sum();
    let zero = lags <= 0 && lags > -load.max(1);
    holds!(LAGS, zero, "{of:?}: {lags} with a weight of {load}");
    Ok(())
}

/// The running entity of each level is the one above the running task, and of no other queue.
fn current(rq: &Rq) -> Verdict {
    let mut want = vec![None; rq.cfs.len()];
    let mut at = rq.curr;
    while let Some(slot) = at {
        let se = &rq.se[slot.idx()];
        want[se.cfs_rq.idx()] = Some(slot);
        at = se.parent;
    }
    for (queue, want) in rq.cfs.iter().zip(want) {
        let is = queue.curr;
        holds!(
            TREE,
            is == want,
            "{:?}: {is:?} runs, not {want:?}",
            (rq.cpu.0, queue.tg.0)
        );
    }
    Ok(())
}

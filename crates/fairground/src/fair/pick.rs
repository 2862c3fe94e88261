//! Who runs next, on one queue.

use super::cfs_rules;
use super::task::dequeue_entities;
use super::vtime::{entity_eligible, queued_curr, sums};
use crate::cx::Cx;
use crate::fair::Dequeue;
use crate::host::Host;
use crate::math::eevdf::{self, deadline_before};
use crate::place::{Access, Func, cfs_rq as fq, se as fse};
use crate::rq::Rq;
use crate::value::{CfsId, SeId};

/// The entity of `cfs` that runs next; `None` if that was a delayed sleeper, which has left now:
/// then somebody has to choose again from the root.
pub(crate) fn pick_next_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> Option<SeId> {
    let outer = cx.host.enter(Func::PickEevdf);
    let by_deadline = cx.features().pick.by_deadline();
    let buddy = rq.cfs[cfs.idx()]
        .next
        .filter(|_| by_deadline && cx.features().next_buddy.is_picked())
        .filter(|next| entity_eligible(rq, cfs, *next));
    let se = match buddy {
        Some(next) => Some(next),
        None if by_deadline => pick_eevdf(cx, rq, cfs, true),
        None => cfs_rules::pick_next(cx, rq, cfs),
    };
    touch_pick(cx, rq, cfs, se);
    cx.host.leave(outer);
    let se = se?;
    if rq.se[se.idx()].sched_delayed {
        dequeue_entities(cx, rq, se, Dequeue::SLEEP | Dequeue::DELAYED);
        return None;
    }
    Some(se)
}

/// The eligible entity with the earliest virtual deadline, the running one included.
///
/// With `protect` the running entity is kept while it is eligible and protected. Of equal
/// deadlines the one that was queued first wins, and any queued one wins over the running one.
pub(crate) fn pick_eevdf<H: Host>(cx: &Cx<H>, rq: &Rq, cfs: CfsId, protect: bool) -> Option<SeId> {
    let q = &rq.cfs[cfs.idx()];
    let curr = queued_curr(rq, cfs);
    let first = rq.nodes.first(&q.tree).map(SeId);
    if q.nr_queued == 1 {
        return curr.or(first);
    }
    let (all, v0) = (sums(rq, cfs), q.zero_vruntime);
    let eligible = |vruntime: u64| eevdf::entity_eligible(&all, v0, vruntime);
    let curr = curr.filter(|c| eligible(rq.se[c.idx()].vruntime));
    let protects = |c: SeId| cx.features().run_to_parity.protects(&rq.se[c.idx()]);
    if protect && curr.is_some_and(protects) {
        return curr;
    }
    let best = rq.nodes.pick_earliest_eligible(&q.tree, eligible).map(SeId);
    match (best, curr) {
        (Some(b), Some(c)) if deadline_before(rq.se[c.idx()].deadline, rq.se[b.idx()].deadline) => {
            curr
        }
        (Some(_), _) => best,
        // The mean is never before all entities, so somebody is eligible; if not, take the first.
        (None, _) => curr.or(first),
    }
}

/// What the choice of `picked` has looked at. One entity alone is not compared with anybody, and a
/// protected one stays without a look at the tree.
fn touch_pick<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId, picked: Option<SeId>) {
    cx.touch(
        rq.cfs_object(cfs),
        fq::TASKS_TIMELINE
            | fq::AVG_VRUNTIME
            | fq::MIN_VRUNTIME
            | fq::CURR
            | fq::NEXT
            | fq::NR_QUEUED,
        Access::Read,
    );
    let q = &rq.cfs[cfs.idx()];
    let by_deadline = cx.features().pick.by_deadline();
    let alone = by_deadline && q.nr_queued == 1;
    let fields = fse::DEADLINE | fse::VRUNTIME | fse::LOAD | fse::MIN_VRUNTIME | fse::VLAG;
    let mut stays = alone;
    if let Some(curr) = q.curr {
        let reads = if alone {
            fse::ON_RQ
        } else {
            fields | fse::ON_RQ
        };
        cx.touch(rq.se_object(curr), reads, Access::Read);
        let parity = cx.features().run_to_parity;
        stays |= by_deadline && picked == Some(curr) && parity.protects(&rq.se[curr.idx()]);
    }
    if let Some(first) = rq.nodes.first(&q.tree).filter(|_| !stays) {
        cx.touch(rq.se_object(SeId(first)), fields, Access::Read);
    }
}

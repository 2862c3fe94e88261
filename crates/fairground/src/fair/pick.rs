//! Who runs next, on one queue.

use super::cfs_rules;
use super::task::dequeue_entities;
use super::vtime::{entity_eligible, sums_with};
use crate::cx::Cx;
use crate::fair::Dequeue;
use crate::host::Host;
use crate::math::eevdf::{self, deadline_before};
use crate::place::{Access, Func, cfs_rq as fq, se as fse};
use crate::policy::Features;
use crate::rq::{CfsRq, Rq};
use crate::task::SchedEntity;
use crate::value::{CfsId, SeId};

/// The entity of `cfs` that runs next; `None` if that was a delayed sleeper, which has left now:
/// then somebody has to choose again from the root.
pub(crate) fn pick_next_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> Option<SeId> {
    let outer = cx.host.enter(Func::PickEevdf);
    let features = &cx.sys.features;
    let q = &rq.cfs[cfs.idx()];
    let curr = q.curr.map(|c| (c, &rq.se[c.idx()]));
    let se = if features.pick.by_deadline() {
        let buddy = eligible_buddy(features, rq, cfs);
        buddy.or_else(|| pick_among(features, rq, q, curr, true))
    } else {
        cfs_rules::pick_next(cx, rq, cfs)
    };
    touch_pick(cx, rq, q, curr, se);
    cx.host.leave(outer);
    let se = se?;
    if rq.se[se.idx()].sched_delayed {
        dequeue_entities(cx, rq, se, Dequeue::SLEEP | Dequeue::DELAYED);
        return None;
    }
    Some(se)
}

/// The buddy of a queue that is picked before all others: if it is eligible.
#[inline(always)]
pub(crate) fn eligible_buddy(features: &Features, rq: &Rq, cfs: CfsId) -> Option<SeId> {
    let next = rq.cfs[cfs.idx()].next?;
    (features.next_buddy.is_picked() && entity_eligible(rq, cfs, next)).then_some(next)
}

/// The eligible entity with the earliest virtual deadline, the running one included.
///
/// With `protect` the running entity is kept while it is eligible and protected. Of equal
/// deadlines the one that was queued first wins, and any queued one wins over the running one.
#[inline(always)]
pub(crate) fn pick_eevdf(features: &Features, rq: &Rq, cfs: CfsId, protect: bool) -> Option<SeId> {
    let q = &rq.cfs[cfs.idx()];
    let curr = q.curr.map(|c| (c, &rq.se[c.idx()]));
    pick_among(features, rq, q, curr, protect)
}

/// [`pick_eevdf`] of the queue `q`, of which `curr` runs.
#[inline(always)]
fn pick_among(
    features: &Features,
    rq: &Rq,
    q: &CfsRq,
    curr: Option<(SeId, &SchedEntity)>,
    protect: bool,
) -> Option<SeId> {
    let curr = curr.filter(|(_, se)| se.on_rq);
    let first = rq.nodes.first(&q.tree).map(SeId);
    if q.nr_queued == 1 {
        return curr.map(|c| c.0).or(first);
    }
    let all = sums_with(q, curr.map(|c| c.1));
    let eligible = |vruntime: u64| eevdf::entity_eligible(&all, q.zero_vruntime, vruntime);
    let queued = || rq.nodes.pick_earliest_eligible(&q.tree, eligible).map(SeId);
    let Some((c, se)) = curr.filter(|(_, se)| eligible(se.vruntime)) else {
        // The mean is never before all entities, so somebody is eligible; if not, take the first.
        return queued().or(first);
    };
    if protect && features.run_to_parity.protects(se) {
        return Some(c);
    }
    let better = |b: &SeId| !deadline_before(se.deadline, rq.se[b.idx()].deadline);
    queued().filter(better).or(Some(c))
}

/// What the choice of `picked` has looked at. One entity alone is not compared with anybody, and a
/// protected one stays without a look at the tree.
#[inline(always)]
fn touch_pick<H: Host>(
    cx: &mut Cx<H>,
    rq: &Rq,
    q: &CfsRq,
    curr: Option<(SeId, &SchedEntity)>,
    picked: Option<SeId>,
) {
    cx.touch(
        q.object(rq.cpu),
        fq::TASKS_TIMELINE
            | fq::AVG_VRUNTIME
            | fq::MIN_VRUNTIME
            | fq::CURR
            | fq::NEXT
            | fq::NR_QUEUED,
        Access::Read,
    );
    let by_deadline = cx.features().pick.by_deadline();
    let alone = by_deadline && q.nr_queued == 1;
    let fields = fse::DEADLINE | fse::VRUNTIME | fse::LOAD | fse::MIN_VRUNTIME | fse::VLAG;
    let mut stays = alone;
    if let Some((curr, se)) = curr {
        let reads = if alone {
            fse::ON_RQ
        } else {
            fields | fse::ON_RQ
        };
        cx.touch(se.object(rq.cpu), reads, Access::Read);
        let parity = cx.features().run_to_parity;
        stays |= by_deadline && picked == Some(curr) && parity.protects(se);
    }
    if let Some(first) = rq.nodes.first(&q.tree).filter(|_| !stays) {
        cx.touch(rq.se_object(SeId(first)), fields, Access::Read);
    }
}

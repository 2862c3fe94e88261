//! A queue's virtual time, and its tree.
//!
//! Read `math/eevdf.rs` first. The reference `zero_vruntime` of the keys follows the mean
//! whenever the mean is computed, and at each tick, so keys stay small. The answers do not depend
//! on where it is: kernels before 6.18.4 keep it at their `min_vruntime` with equal results.

use crate::math::eevdf::{self, AvgVruntime, entity_key};
use crate::math::weight::scale_load_down;
use crate::policy::Pick;
use crate::rq::{CfsRq, Rq};
use crate::task::SchedEntity;
use crate::tree::Key;
use crate::value::{CfsId, SeId};

/// Unscaled weight of an entity in virtual-time sums.
#[inline]
fn weight(se: &SchedEntity) -> u64 {
    scale_load_down(se.load.weight)
}

/// The running entity of `cfs` if it is still queued.
#[inline]
pub(crate) fn queued_curr(rq: &Rq, cfs: CfsId) -> Option<SeId> {
    rq.cfs[cfs.idx()].curr.filter(|c| rq.se[c.idx()].on_rq)
}

/// The sums of a queue with its running entity.
#[inline]
pub(crate) fn sums(rq: &Rq, cfs: CfsId) -> AvgVruntime {
    let q = &rq.cfs[cfs.idx()];
    sums_with(q, queued_curr(rq, cfs).map(|c| &rq.se[c.idx()]))
}

/// The sums of a queue with `curr`, its running entity if that is still queued.
#[inline]
pub(crate) fn sums_with(q: &CfsRq, curr: Option<&SchedEntity>) -> AvgVruntime {
    match curr {
        Some(se) => q
            .avg_vruntime
            .with(entity_key(se.vruntime, q.zero_vruntime), weight(se)),
        None => q.avg_vruntime,
    }
}

/// The queue's virtual time; moves the reference there.
#[inline(always)]
pub(crate) fn avg_vruntime(rq: &mut Rq, cfs: CfsId) -> u64 {
    avg_vruntime_of(rq, cfs).0
}

/// [`avg_vruntime`], and the weight of which it is the mean.
#[inline(always)]
pub(crate) fn avg_vruntime_of(rq: &mut Rq, cfs: CfsId) -> (u64, i64) {
    let q = &mut rq.cfs[cfs.idx()];
    let curr = q.curr.map(|c| &rq.se[c.idx()]).filter(|se| se.on_rq);
    let all = sums_with(q, curr);
    let mean = all.mean_key();
    q.avg_vruntime.shift(mean);
    q.zero_vruntime = q.zero_vruntime.wrapping_add(mean as u64);
    (q.zero_vruntime, all.load)
}

/// Whether `se` of `cfs` has received no more than its due.
#[inline]
pub(crate) fn entity_eligible(rq: &Rq, cfs: CfsId, se: SeId) -> bool {
    let v0 = rq.cfs[cfs.idx()].zero_vruntime;
    eevdf::entity_eligible(&sums(rq, cfs), v0, rq.se[se.idx()].vruntime)
}

/// Puts an entity that does not run into the tree.
#[inline(always)]
pub(crate) fn tree_insert(rq: &mut Rq, cfs: CfsId, id: SeId, pick: Pick) {
    let (q, se) = (&mut rq.cfs[cfs.idx()], &rq.se[id.idx()]);
    q.avg_vruntime
        .add(entity_key(se.vruntime, q.zero_vruntime), weight(se));
    let key = Key {
        order: pick.order(se),
        vruntime: se.vruntime,
        slice: se.slice_ns,
    };
    rq.nodes.insert(&mut q.tree, id.0, key);
}

/// Takes an entity out of the tree; its vruntime and weight must be those of the insertion.
#[inline(always)]
pub(crate) fn tree_remove(rq: &mut Rq, cfs: CfsId, id: SeId) {
    let (q, se) = (&mut rq.cfs[cfs.idx()], &rq.se[id.idx()]);
    rq.nodes.remove(&mut q.tree, id.0);
    q.avg_vruntime
        .remove(entity_key(se.vruntime, q.zero_vruntime), weight(se));
}

/// Gives a queued entity, running or not, another slice (ns).
#[inline]
pub(crate) fn set_slice(rq: &mut Rq, id: SeId, slice_ns: u64) {
    let se = &mut rq.se[id.idx()];
    if se.slice_ns == slice_ns {
        return;
    }
    se.slice_ns = slice_ns;
    if rq.nodes.contains(id.0) {
        rq.nodes.set_slice(id.0, slice_ns);
    }
}

/// Shortest slice among the queued entities, running one included, ns; `u64::MAX` of none.
#[inline]
#[must_use]
pub fn cfs_rq_min_slice(rq: &Rq, cfs: CfsId) -> u64 {
    let tree = rq.nodes.min_slice(&rq.cfs[cfs.idx()].tree);
    let curr = queued_curr(rq, cfs).map(|c| rq.se[c.idx()].slice_ns);
    tree.unwrap_or(u64::MAX).min(curr.unwrap_or(u64::MAX))
}

/// Longest slice among the queued entities, running one included, ns; 0 of none.
#[inline]
#[must_use]
pub fn cfs_rq_max_slice(rq: &Rq, cfs: CfsId) -> u64 {
    let tree = rq.nodes.max_slice(&rq.cfs[cfs.idx()].tree);
    let curr = queued_curr(rq, cfs).map(|c| rq.se[c.idx()].slice_ns);
    tree.unwrap_or(0).max(curr.unwrap_or(0))
}

//! One entity on one queue: charging, placing, queueing, weighing.

use crate::cx::Cx;
use crate::fair::{Dequeue, Enqueue};
use crate::host::Host;
use crate::rq::Rq;
use crate::value::{CfsId, SeId};

/// Charges the running entity of `cfs` up to `rq.clock.task`; may set `rq.need_resched`.
pub fn update_curr<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

/// Joins an entity to its queue.
pub fn enqueue_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId, flags: Enqueue) {
    let _ = (cx, rq, cfs, se, flags);
}

/// Takes an entity off; false if it stays as a delayed sleeper.
pub fn dequeue_entity<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    se: SeId,
    flags: Dequeue,
) -> bool {
    let _ = (cx, rq, cfs, se, flags);
    false
}

/// Makes `se` the running entity of `cfs`.
pub fn set_next_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId, first: bool) {
    let _ = (cx, rq, cfs, se, first);
}

/// Ends the run of `se`, back into the tree if it is still queued.
pub fn put_prev_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId) {
    let _ = (cx, rq, cfs, se);
}

/// Changes the weight (load units) of an entity, queued or not, keeping its lag.
pub fn reweight_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId, weight: u64) {
    let _ = (cx, rq, cfs, se, weight);
}

/// Shortest slice among the queued entities, running one included, ns.
pub fn cfs_rq_min_slice(rq: &Rq, cfs: CfsId) -> u64 {
    let _ = (rq, cfs);
    0
}

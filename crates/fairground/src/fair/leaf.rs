//! The list of queues with load, children before parents (`leaf_cfs_rq_list`).

use crate::cx::Cx;
use crate::host::Host;
use crate::rq::Rq;
use crate::value::CfsId;

/// Adds a queue and those above it.
pub fn list_add_leaf_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

/// Removes a queue.
pub fn list_del_leaf_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

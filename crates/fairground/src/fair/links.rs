//! Neighbours in the tree, whose links change when somebody joins or leaves.
//!
//! They are other entities' lines, which their CPU has to fetch again if another CPU has linked.

use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, se as fse};
use crate::rq::Rq;
use crate::value::SeId;

/// An entity has been linked into the tree, or is about to be linked out.
///
/// In a search tree the parent of a new leaf is its neighbour in order, and so is the parent or the
/// child of one that leaves and has not both children. With three entities that is all; the upper
/// nodes of a larger tree, whose shape differs from the kernel's, are left out.
#[inline]
pub(super) fn touch_tree<H: Host>(cx: &mut Cx<H>, rq: &Rq, id: SeId) {
    let order = match cx.features().pick.by_deadline() {
        true => fse::DEADLINE,
        false => fse::VRUNTIME,
    };
    let (before, after) = (rq.nodes.prev(id.0), rq.nodes.next(id.0));
    if let Some(linked) = before.or(after) {
        let links = fse::RUN_NODE | fse::MIN_VRUNTIME;
        cx.touch_mixed(rq.se_object(SeId(linked)), order, links);
    }
    if let (Some(_), Some(other)) = (before, after) {
        cx.touch(
            rq.se_object(SeId(other)),
            order | fse::RUN_NODE,
            Access::Read,
        );
    }
}

//! Neighbours whose links change when somebody joins or leaves: in the tree, and on `cfs_tasks`.
//!
//! They are other entities' lines, which their CPU has to fetch again if another CPU has linked.

use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, rq as frq, se as fse};
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

/// A task that joins the queue comes to the front of `cfs_tasks` (`account_entity_enqueue`).
#[inline]
pub(super) fn link_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    cx.touch(rq.object(), frq::CFS_TASKS, Access::Update);
    if let Some(first) = rq.lb_order.front() {
        cx.touch(rq.se_object(first), fse::GROUP_NODE, Access::Write);
    }
    cx.touch(rq.se_object(task), fse::GROUP_NODE, Access::Write);
    rq.lb_order.push_front(task);
}

/// A task that leaves the queue leaves `cfs_tasks` (`account_entity_dequeue`).
#[inline]
pub(super) fn unlink_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    cx.touch(rq.se_object(task), fse::GROUP_NODE, Access::Update);
    let (before, after) = (rq.lb_order.before(task), rq.lb_order.after(task));
    if before.is_none() || after.is_none() {
        cx.touch(rq.object(), frq::CFS_TASKS, Access::Write);
    }
    for neighbour in [before, after].into_iter().flatten() {
        cx.touch(rq.se_object(neighbour), fse::GROUP_NODE, Access::Write);
    }
    rq.lb_order.remove(task);
}

/// A task that is picked, or could not be moved, goes to the front (`list_move`).
#[inline]
pub(crate) fn move_front<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    unlink_task(cx, rq, task);
    link_task(cx, rq, task);
}

/// A task that could not be moved goes to the back, where balancing takes from the front
/// (`list_move_tail`).
#[inline]
pub(crate) fn move_back<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    unlink_task(cx, rq, task);
    cx.touch(rq.object(), frq::CFS_TASKS, Access::Update);
    if let Some(last) = rq.lb_order.back() {
        cx.touch(rq.se_object(last), fse::GROUP_NODE, Access::Write);
    }
    cx.touch(rq.se_object(task), fse::GROUP_NODE, Access::Write);
    rq.lb_order.push_back(task);
}

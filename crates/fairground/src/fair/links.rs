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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{Fields, Object};
    use crate::policy::Features;
    use crate::sched;
    use crate::task::Prev;
    use crate::testing::Bench;
    use crate::value::TgId;
    use alloc::vec::Vec;

    /// Slots whose link is written since `from`, and whether the head of the list is.
    fn written(bench: &Bench, from: usize) -> (Vec<u32>, bool) {
        let of = |object: Object, field: Fields| {
            bench.host.touches[from..].iter().any(|(o, f, access)| {
                *o == object && f.intersects(field) && *access != Access::Read
            })
        };
        let rq = &bench.rqs[0];
        let slots = (0..rq.se.len() as u32).map(SeId);
        let links = slots.filter(|slot| of(rq.se_object(*slot), fse::GROUP_NODE));
        (
            links.map(|slot| slot.0).collect(),
            of(rq.object(), frq::CFS_TASKS),
        )
    }

    fn order(bench: &Bench) -> Vec<u32> {
        bench.rqs[0].lb_order.iter().map(|slot| slot.0).collect()
    }

    /// A doubly linked list with a head: who joins writes the head and the first, who leaves its
    /// neighbours.
    #[test]
    fn neighbours_on_the_list_of_tasks_are_written() {
        let mut bench = Bench::new(1, Features::default());
        for _ in 0..4 {
            let _ = bench.start(0, TgId::ROOT);
        }
        assert_eq!(order(&bench), [3, 2, 1, 0]);
        let from = bench.host.touches.len();
        let _ = bench.start(0, TgId::ROOT);
        assert_eq!(written(&bench, from), ([3, 4].into(), true));
        // From the midst to the front.
        let from = bench.host.touches.len();
        bench.on(0, |cx, rq| move_front(cx, rq, SeId(2)));
        assert_eq!(order(&bench), [2, 4, 3, 1, 0]);
        assert_eq!(written(&bench, from), ([1, 2, 3, 4].into(), true));
        // Out of the midst, where the head is not a neighbour.
        let from = bench.host.touches.len();
        bench.on(0, |cx, rq| unlink_task(cx, rq, SeId(3)));
        assert_eq!(written(&bench, from), ([1, 3, 4].into(), false));
        bench.on(0, |cx, rq| link_task(cx, rq, SeId(3)));
        let from = bench.host.touches.len();
        bench.on(0, |cx, rq| move_back(cx, rq, SeId(3)));
        assert_eq!(order(&bench), [2, 4, 1, 0, 3]);
        assert_eq!(written(&bench, from), ([0, 2, 3].into(), true));
    }

    /// Only who is queued is on the list: a sleeper that has left is not.
    #[test]
    fn who_leaves_the_queue_leaves_the_list() {
        let mut bench = Bench::new(1, Features::default());
        for _ in 0..2 {
            let _ = bench.start(0, TgId::ROOT);
        }
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        let runs = bench.rqs[0].curr.expect("one runs");
        assert_eq!(order(&bench)[0], runs.0, "picked last");
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Sleeps));
        assert_eq!(order(&bench), [bench.rqs[0].curr.expect("the other").0]);
    }
}

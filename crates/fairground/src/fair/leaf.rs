//! The list of queues with load, children before parents (`leaf_cfs_rq_list`).
//!
//! A queue whose load has not decayed is on the list, and so are all queues above it. A new one is
//! put directly before its parent, which makes the list a post-order walk of the tree: whatever
//! is below a queue stands in one piece directly before it. So one look at the neighbour says
//! whether a queue has children on the list.

use crate::cx::Cx;
use crate::host::Host;
use crate::math::pelt::SchedAvg;
use crate::place::{Access, cfs_rq as q, rq as r, tg as t};
use crate::rq::Rq;
use crate::value::CfsId;

/// Adds a queue and those above it: one walk up to the first that is there, then each that is
/// missing, from below, directly before that one.
pub fn list_add_leaf_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    cx.touch(rq.cfs_object(cfs), q::ON_LIST, Access::Read);
    let mut there = cfs;
    while !rq.cfs[there.idx()].on_list {
        if there == CfsId::ROOT {
            insert(cx, rq, there, None);
            break;
        }
        let parent = rq.cfs[there.idx()].parent;
        look_up_parent(cx, rq, there, parent);
        there = parent;
    }
    let mut missing = cfs;
    while missing != there {
        insert(cx, rq, missing, Some(there));
        missing = rq.cfs[missing.idx()].parent;
    }
}

/// The way from a queue to the one above is `tg->parent->cfs_rq[cpu]`.
fn look_up_parent<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId, parent: CfsId) {
    let group = |cfs: CfsId| &cx.sys.tg[rq.cfs[cfs.idx()].tg.idx()];
    cx.host
        .touch(rq.cfs_object(cfs), q::TG | q::RQ, Access::Read);
    cx.host.touch(group(cfs).object(), t::TREE, Access::Read);
    group(parent).look_up_queue(rq.cpu, cx.host);
    cx.host
        .touch(rq.cfs_object(parent), q::ON_LIST, Access::Read);
}

/// Removes a queue.
pub fn list_del_leaf_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let queue = &mut rq.cfs[cfs.idx()];
    if !queue.on_list {
        return;
    }
    queue.on_list = false;
    let (prev, next) = (queue.leaf_prev.take(), queue.leaf_next.take());
    cx.touch(
        rq.cfs_object(cfs),
        q::ON_LIST | q::LEAF_NODE,
        Access::Update,
    );
    set_next(cx, rq, prev, next);
    set_prev(cx, rq, next, prev);
}

/// Whether nothing of the queue's load is left, so that it may leave the list.
///
/// What it has published counts too: it is only taken back by an update, which a queue off the
/// list does not get (rule of 2025, by decision).
pub(crate) fn cfs_rq_is_decayed<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId) -> bool {
    let (object, queue) = (rq.cfs_object(cfs), &rq.cfs[cfs.idx()]);
    cx.touch(object, q::LOAD, Access::Read);
    if queue.load.weight != 0 {
        return false;
    }
    cx.touch(object, q::AVG, Access::Read);
    if !load_avg_is_decayed(&queue.avg) || child_on_list(cx, rq, cfs) {
        return false;
    }
    if !cx.features().load.leaf_published {
        return true;
    }
    cx.touch(object, q::TG_CONTRIB, Access::Read);
    queue.tg_load_avg_contrib == 0
}

pub(super) fn load_avg_is_decayed(avg: &SchedAvg) -> bool {
    let decayed = avg.load_sum == 0 && avg.util_sum == 0 && avg.runnable_sum == 0;
    debug_assert!(
        !decayed || (avg.load_avg == 0 && avg.util_avg == 0 && avg.runnable_avg == 0),
        "an average without a sum"
    );
    decayed
}

/// Whether the neighbour's group is one below (`child_cfs_rq_on_list`).
fn child_on_list<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId) -> bool {
    cx.touch(rq.cfs_object(cfs), q::LEAF_NODE | q::TG, Access::Read);
    let Some(before) = rq.cfs[cfs.idx()].leaf_prev else {
        return false;
    };
    let before_queue = &rq.cfs[before.idx()];
    cx.touch(rq.cfs_object(before), q::TG, Access::Read);
    let group = &cx.sys.tg[before_queue.tg.idx()];
    cx.touch(group.object(), t::TREE, Access::Read);
    before_queue.parent == cfs
}

/// Puts `cfs` before `next`, or at the end.
fn insert<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, next: Option<CfsId>) {
    let prev = match next {
        Some(next) => rq.cfs[next.idx()].leaf_prev,
        None => last(rq),
    };
    cx.touch(rq.cfs_object(cfs), q::ON_LIST | q::LEAF_NODE, Access::Write);
    let queue = &mut rq.cfs[cfs.idx()];
    queue.on_list = true;
    queue.leaf_prev = prev;
    queue.leaf_next = next;
    set_next(cx, rq, prev, Some(cfs));
    set_prev(cx, rq, next, Some(cfs));
}

fn set_next<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, of: Option<CfsId>, next: Option<CfsId>) {
    match of {
        Some(of) => {
            cx.touch(rq.cfs_object(of), q::LEAF_NODE, Access::Write);
            rq.cfs[of.idx()].leaf_next = next;
        }
        None => {
            cx.touch(rq.object(), r::LEAF_LIST, Access::Write);
            rq.leaf_head = next;
        }
    }
}

fn set_prev<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, of: Option<CfsId>, prev: Option<CfsId>) {
    if let Some(of) = of {
        cx.touch(rq.cfs_object(of), q::LEAF_NODE, Access::Write);
        rq.cfs[of.idx()].leaf_prev = prev;
    }
}

/// The last of the list. The root is there whenever anything is; without it, a walk.
fn last(rq: &Rq) -> Option<CfsId> {
    let mut last = rq.leaf_head?;
    while let Some(next) = rq.cfs[last.idx()].leaf_next {
        last = next;
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::bandwidth::set_bandwidth;
    use crate::fair::group::ensure_cfs;
    use crate::fair::throttle::{throttle_cfs_rq, unthrottle_cfs_rq};
    use crate::policy::Features;
    use crate::testing::{Bench, TestHost};
    use crate::value::TgId;
    use alloc::vec::Vec;

    fn list(rq: &Rq) -> Vec<u32> {
        let next = |cfs: &CfsId| rq.cfs[cfs.idx()].leaf_next;
        core::iter::successors(rq.leaf_head, next)
            .map(|cfs| cfs.0)
            .collect()
    }

    /// A queue that decays on the list has those above it there, too, once it is let go.
    #[test]
    fn the_branch_of_a_queue_that_is_unthrottled_is_whole() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        bench.sys.open_group(tg);
        let set = |cx: &mut Cx<TestHost>, rqs: &mut Vec<Rq>| {
            set_bandwidth(cx, rqs, tg, Some(1_000_000), 100_000_000, 0)
        };
        assert_eq!(bench.call(0, set), Ok(()));
        bench.on(0, |cx, rq| {
            let cfs = ensure_cfs(cx, rq, tg);
            rq.cfs[cfs.idx()].runtime_remaining = -10_000_000;
            assert!(throttle_cfs_rq(cx, rq, cfs));
            list_add_leaf_cfs_rq(cx, rq, cfs);
            list_del_leaf_cfs_rq(cx, rq, CfsId::ROOT);
            assert_eq!(list(rq), [cfs.0]);
            rq.cfs[cfs.idx()].runtime_remaining = 1;
            unthrottle_cfs_rq(cx, rq, cfs);
            assert_eq!(list(rq), [cfs.0, 0]);
        });
    }

    #[test]
    fn children_stand_directly_before_their_parent() {
        let mut bench = Bench::new(1, Features::default());
        let a = bench.sys.add_group(TgId::ROOT);
        let (b, c) = (bench.sys.add_group(a), bench.sys.add_group(a));
        let d = bench.sys.add_group(TgId::ROOT);
        for tg in [b, c, d] {
            bench.sys.open_group(tg);
        }
        bench.on(0, |cx, rq| {
            let [b, c, d] = [b, c, d].map(|tg| ensure_cfs(cx, rq, tg));
            let a = rq.cfs[b.idx()].parent;
            list_add_leaf_cfs_rq(cx, rq, b);
            assert_eq!(list(rq), [b.0, a.0, 0]);
            list_add_leaf_cfs_rq(cx, rq, d);
            list_add_leaf_cfs_rq(cx, rq, c);
            list_add_leaf_cfs_rq(cx, rq, c);
            assert_eq!(list(rq), [b.0, c.0, a.0, d.0, 0]);
            assert!(!cfs_rq_is_decayed(cx, rq, a) && cfs_rq_is_decayed(cx, rq, c));
            list_del_leaf_cfs_rq(cx, rq, c);
            assert!(!cfs_rq_is_decayed(cx, rq, a));
            list_del_leaf_cfs_rq(cx, rq, b);
            assert!(cfs_rq_is_decayed(cx, rq, a));
            assert_eq!(list(rq), [a.0, d.0, 0]);
        });
    }

    #[test]
    fn a_published_contribution_keeps_it_on_the_list() {
        let mut bench = Bench::new(1, Features::default());
        for (published, decayed) in [(1, false), (0, true)] {
            bench.on(0, |cx, rq| {
                rq.cfs[0].tg_load_avg_contrib = published;
                assert_eq!(cfs_rq_is_decayed(cx, rq, CfsId::ROOT), decayed);
            });
        }
    }
}

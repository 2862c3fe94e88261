//! What throttling means for the queues below: all of a hierarchy on one CPU are visited.
//!
//! The kernel has a queue for every group and CPU, used or not, and visits all of them; here only
//! those exist in which something was once queued. For the others only the touches are reported.

use super::throttle_clock::{go_on, stop};
use super::{Enqueue, leaf, limbo, task};
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, Fields, Func, Kind, Object, cfs_rq as f, rq as r, tg};
use crate::rq::Rq;
use crate::value::{CfsId, TgId};

/// Counts one more throttled queue above all queues at and below `tg`, parents first.
pub(super) fn tg_throttle_down<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) -> Walked {
    let mut walked = Walked::default();
    walk_tg_tree_from(cx, rq, tg, Way::ThrottleDown, &mut walked);
    walked
}

/// Counts one less, children first; queues that may run again do.
pub(super) fn tg_unthrottle_up<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) -> Walked {
    let mut walked = Walked::default();
    walk_tg_tree_from(cx, rq, tg, Way::UnthrottleUp, &mut walked);
    walked
}

/// What a walk came by.
#[derive(Clone, Copy, Default)]
pub(super) struct Walked {
    /// Groups visited.
    pub groups: u32,
    /// Tasks that were taken out of limbo.
    pub tasks: u32,
}

/// What is done with a group: before those below it, or after them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ThrottleDown,
    UnthrottleUp,
}

/// Groups nest as deep as a host likes, and a kernel's stack is small: so there is no recursion,
/// and the way back is found by the parents.
fn walk_tg_tree_from<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    from: TgId,
    way: Way,
    walked: &mut Walked,
) {
    let sys = cx.sys;
    let outer = cx.host.enter(Func::WalkTgTree);
    // Every walk but the first is entered from a walk.
    let (mut at, mut inner) = (from, outer);
    loop {
        if way == Way::ThrottleDown {
            throttle_down(cx, rq, at);
        }
        let group = &sys.tg[at.idx()];
        cx.touch(group.object(), tg::CHILDREN, Access::Read);
        if let Some(&child) = group.children.last() {
            inner = cx.host.enter(Func::WalkTgTree);
            at = child;
            continue;
        }
        // Up, until there is another one beside.
        loop {
            if way == Way::UnthrottleUp {
                walked.tasks += unthrottle_up(cx, rq, at);
            }
            walked.groups += 1;
            if at == from {
                cx.host.leave(outer);
                return;
            }
            cx.host.leave(inner);
            // The next one, and the way up.
            let group = &sys.tg[at.idx()];
            cx.touch(group.object(), tg::TREE, Access::Read);
            let parent = group.parent.unwrap_or(from);
            if let Some(beside) = child_before(&sys.tg[parent.idx()].children, at) {
                inner = cx.host.enter(Func::WalkTgTree);
                at = beside;
                break;
            }
            at = parent;
        }
    }
}

/// The child before `at`. They are in the order in which they were made, so by number.
fn child_before(children: &[TgId], at: TgId) -> Option<TgId> {
    let n = children.partition_point(|child| *child < at);
    debug_assert_eq!(children.get(n), Some(&at));
    children[..n].last().copied()
}

fn throttle_down<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, id: TgId) {
    let outer = cx.host.enter(Func::TgThrottleDown);
    let stopped = f::NR_QUEUED | f::ON_LIST;
    if let Some(cfs) = visit(cx, rq, id, stopped) {
        throttle_queue(cx, rq, cfs);
    }
    cx.host.leave(outer);
}

fn unthrottle_up<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, id: TgId) -> u32 {
    let outer = cx.host.enter(Func::TgUnthrottleUp);
    // What says that a queue has decayed begins with its weight.
    let tasks = match visit(cx, rq, id, f::LOAD | f::ON_LIST) {
        Some(cfs) => unthrottle_queue(cx, rq, cfs),
        None => 0,
    };
    cx.host.leave(outer);
    tasks
}

/// A queue of the subtree is visited; its counts and clocks are updated, `reads` are read. In the
/// kernel it exists whether it was ever used or not.
fn visit<H: Host>(cx: &mut Cx<H>, rq: &Rq, id: TgId, reads: Fields) -> Option<CfsId> {
    const UPDATES: Fields = f::THROTTLE_COUNT.union(f::THROTTLED_CLOCK_PELT);
    cx.sys.tg[id.idx()].look_up_queue(rq.cpu, cx.host);
    let queue = Object {
        kind: Kind::CfsRq,
        a: rq.cpu.0,
        b: id.0,
    };
    cx.touch(rq.object(), r::CLOCK, Access::Read);
    cx.touch_mixed(queue, reads, UPDATES);
    rq.cfs_of(id)
}

fn throttle_queue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let per_task = cx.sys.features.throttle.is_per_task();
    let queue = &mut rq.cfs[cfs.idx()];
    queue.throttle_count += 1;
    let count = queue.throttle_count;
    publish(rq, cfs);
    if count > 1 {
        return;
    }
    let queue = &mut rq.cfs[cfs.idx()];
    debug_assert!(queue.limbo.is_none());
    let empty = queue.nr_queued == 0;
    if empty || !per_task {
        leaf::list_del_leaf_cfs_rq(cx, rq, cfs);
        stop(rq, cfs);
    }
}

/// Answers how many tasks have come out of limbo.
fn unthrottle_queue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> u32 {
    let queue = &mut rq.cfs[cfs.idx()];
    // A queue that was made while its parent was throttled has taken over the count.
    debug_assert!(queue.throttle_count > 0);
    queue.throttle_count = queue.throttle_count.saturating_sub(1);
    let count = queue.throttle_count;
    publish(rq, cfs);
    if count > 0 {
        return 0;
    }
    go_on(rq, cfs);
    let mut tasks = 0;
    // The first that comes may throttle the queue anew: its own quota can have run out, or its
    // runtime have expired, while it stood still for one above. Then the others wait on.
    let mut waiting = rq.cfs[cfs.idx()].limbo.take();
    while let Some(first) = waiting
        && rq.cfs[cfs.idx()].throttle_count == 0
    {
        waiting = limbo::release(rq, first);
        task::enqueue_task_fair(cx, rq, first, Enqueue::WAKEUP);
        tasks += 1;
    }
    debug_assert!(rq.cfs[cfs.idx()].limbo.is_none());
    rq.cfs[cfs.idx()].limbo = waiting;
    if !leaf::cfs_rq_is_decayed(cx, rq, cfs) {
        leaf::list_add_leaf_cfs_rq(cx, rq, cfs);
    }
    tasks
}

fn publish(rq: &Rq, cfs: CfsId) {
    let queue = &rq.cfs[cfs.idx()];
    queue.words.publish_throttle(queue.throttle_count);
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policy::Features;
    use crate::testing::Bench;

    fn touched(bench: &Bench, field: Fields) -> Vec<u32> {
        let touches = bench.host.touches.iter();
        let groups =
            touches.filter(|(object, fields, _)| object.kind == Kind::Tg && *fields == field);
        groups.map(|(object, ..)| object.a).collect()
    }

    #[test]
    fn a_walk_goes_down_and_comes_back_the_way_it_went() {
        let mut bench = Bench::new(1, Features::default());
        let a = bench.sys.add_group(TgId::ROOT);
        let b = bench.sys.add_group(a);
        let beside = bench.sys.add_group(TgId::ROOT);
        let c = bench.sys.add_group(a);
        let d = bench.sys.add_group(b);
        let e = bench.sys.add_group(b);
        let _ = bench.sys.add_group(beside);
        for walk in [tg_throttle_down, tg_unthrottle_up] {
            bench.host.touches.clear();
            bench.host.entered.clear();
            let walked = bench.on(0, |cx, rq| walk(cx, rq, a));
            assert_eq!((walked.groups, walked.tasks), (5, 0));
            assert_eq!(touched(&bench, tg::CHILDREN), [a, c, b, e, d].map(|g| g.0));
            assert_eq!(touched(&bench, tg::TREE), [c, e, d, b].map(|g| g.0));
        }
        // Children first on the way up: the last walk's visits, by the queue that each looks at.
        let touches = bench.host.touches.iter();
        let queues = touches.filter(|(object, fields, _)| {
            object.kind == Kind::CfsRq && fields.intersects(f::THROTTLE_COUNT)
        });
        let mut visited: Vec<u32> = queues.map(|(object, ..)| object.b).collect();
        visited.dedup();
        assert_eq!(visited, [c, e, d, b, a].map(|g| g.0));
    }

    #[test]
    fn a_deep_hierarchy_needs_no_deep_stack() {
        let mut bench = Bench::new(1, Features::default());
        let mut tg = TgId::ROOT;
        for _ in 0..30_000 {
            tg = bench.sys.add_group(tg);
        }
        let walked = bench.on(0, |cx, rq| tg_throttle_down(cx, rq, TgId(1)));
        assert_eq!(walked.groups, 30_000);
    }
}

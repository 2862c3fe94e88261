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

fn walk_tg_tree_from<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    from: TgId,
    way: Way,
    walked: &mut Walked,
) {
    let outer = cx.host.enter(Func::WalkTgTree);
    if way == Way::ThrottleDown {
        throttle_down(cx, rq, from);
    }
    let sys = cx.sys;
    let group = &sys.tg[from.idx()];
    cx.touch(group.object(), tg::CHILDREN, Access::Read);
    for &child in group.children.iter().rev() {
        walk_tg_tree_from(cx, rq, child, way, walked);
        // The next one, and the way up.
        cx.touch(sys.tg[child.idx()].object(), tg::TREE, Access::Read);
    }
    if way == Way::UnthrottleUp {
        walked.tasks += unthrottle_up(cx, rq, from);
    }
    walked.groups += 1;
    cx.host.leave(outer);
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
    const UPDATES: Fields = f::THROTTLE_COUNT.and(f::THROTTLED_CLOCK_PELT);
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
    let now = rq.clock.clock;
    let queue = &mut rq.cfs[cfs.idx()];
    queue.throttle_count += 1;
    let count = queue.throttle_count;
    publish(rq, cfs);
    if count > 1 {
        return;
    }
    let queue = &mut rq.cfs[cfs.idx()];
    debug_assert_eq!(queue.throttled_clock_self, 0);
    debug_assert!(queue.limbo.is_none());
    let empty = queue.nr_queued == 0;
    if !per_task && !empty {
        queue.throttled_clock_self = now;
    }
    if empty || !per_task {
        leaf::list_del_leaf_cfs_rq(cx, rq, cfs);
        stop(rq, cfs);
    }
}

/// Answers how many tasks have come out of limbo.
fn unthrottle_queue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> u32 {
    let now = rq.clock.clock;
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
    let queue = &mut rq.cfs[cfs.idx()];
    let since = core::mem::take(&mut queue.throttled_clock_self);
    if since > 0 {
        queue.throttled_clock_self_time += now - since;
    }
    let mut tasks = 0;
    while let Some(waiting) = limbo::pop(rq, cfs) {
        task::enqueue_task_fair(cx, rq, waiting, Enqueue::WAKEUP);
        tasks += 1;
    }
    if !leaf::cfs_rq_is_decayed(rq, cfs) {
        leaf::list_add_leaf_cfs_rq(cx, rq, cfs);
    }
    tasks
}

fn publish(rq: &Rq, cfs: CfsId) {
    let queue = &rq.cfs[cfs.idx()];
    queue.words.publish_throttle(queue.throttle_count);
}

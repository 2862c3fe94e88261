//! What throttling means for the queues below: all of a hierarchy on one CPU are visited.
//!
//! The kernel has a queue for every group and CPU, used or not, and visits all of them; here only
//! those exist in which something was once queued. For the others only the touches are reported.

use super::throttle_clock::{go_on, stop};
use super::{Enqueue, leaf, limbo, task};
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, Fields, Func, Kind, Object, cfs_rq as f, tg};
use crate::rq::Rq;
use crate::value::{CfsId, TgId};

/// Counts one more throttled queue above all queues at and below `tg`, parents first.
pub(super) fn tg_throttle_down<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) {
    let outer = cx.host.enter(Func::TgThrottleDown);
    if let Some(cfs) = visit(cx, rq, tg) {
        throttle_down(cx, rq, cfs);
    }
    cx.host.leave(outer);
    let sys = cx.sys;
    for &child in sys.tg[tg.idx()].children.iter().rev() {
        tg_throttle_down(cx, rq, child);
    }
}

/// Counts one less, children first; queues that may run again do.
pub(super) fn tg_unthrottle_up<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) {
    let sys = cx.sys;
    for &child in sys.tg[tg.idx()].children.iter().rev() {
        tg_unthrottle_up(cx, rq, child);
    }
    let outer = cx.host.enter(Func::TgUnthrottleUp);
    if let Some(cfs) = visit(cx, rq, tg) {
        unthrottle_up(cx, rq, cfs);
    }
    cx.host.leave(outer);
}

const VISITED: Fields = f::THROTTLE_COUNT
    .and(f::ON_LIST)
    .and(f::THROTTLED_CLOCK)
    .and(f::THROTTLED_CLOCK_PELT);

fn visit<H: Host>(cx: &mut Cx<H>, rq: &Rq, id: TgId) -> Option<CfsId> {
    let (kind, a, b) = (Kind::Tg, id.0, 0);
    let group = Object { kind, a, b };
    cx.touch(group, tg::TREE | tg::CFS_ARRAYS, Access::Read);
    let cfs = rq.cfs_of(id);
    // In the kernel the queue exists whether it was ever used or not.
    let queue = Object {
        kind: Kind::CfsRq,
        a: rq.cpu.0,
        b: id.0,
    };
    cx.touch(queue, f::TG | f::RQ, Access::Read);
    cx.touch(queue, VISITED, Access::Update);
    cfs
}

fn throttle_down<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
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

fn unthrottle_up<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let now = rq.clock.clock;
    let queue = &mut rq.cfs[cfs.idx()];
    // A queue that was made while its parent was throttled has taken over the count.
    debug_assert!(queue.throttle_count > 0);
    queue.throttle_count = queue.throttle_count.saturating_sub(1);
    let count = queue.throttle_count;
    publish(rq, cfs);
    if count > 0 {
        return;
    }
    go_on(rq, cfs);
    let queue = &mut rq.cfs[cfs.idx()];
    let since = core::mem::take(&mut queue.throttled_clock_self);
    if since > 0 {
        queue.throttled_clock_self_time += now - since;
    }
    while let Some(waiting) = limbo::pop(rq, cfs) {
        task::enqueue_task_fair(cx, rq, waiting, Enqueue::WAKEUP);
    }
    if !leaf::cfs_rq_is_decayed(rq, cfs) {
        leaf::list_add_leaf_cfs_rq(cx, rq, cfs);
    }
}

fn publish(rq: &Rq, cfs: CfsId) {
    let queue = &rq.cfs[cfs.idx()];
    queue.words.publish_throttle(queue.throttle_count);
}

//! A queue's own runtime: charged while its tasks run, drawn from the pool in slices, given back
//! when the queue empties. All in ns.

use super::expiry;
use super::resched::resched_curr;
use super::throttle::throttle_cfs_rq;
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, Func, cfs_rq as f};
use crate::rq::Rq;
use crate::shared::{BANDWIDTH_SLICE, MIN_CFS_RQ_RUNTIME};
use crate::value::CfsId;

/// Charges `delta` ns of execution to the queue. The running task should give way if nothing can be
/// drawn: the queue is throttled when it is put.
#[inline]
pub fn account_cfs_rq_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, delta: u64) {
    if is_enabled(cx, rq, cfs) {
        charge(cx, rq, cfs, delta);
    }
}

/// Throttles the queue if it is out of runtime; true if it is throttled now.
#[inline]
pub fn check_cfs_rq_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> bool {
    is_enabled(cx, rq, cfs) && check_enabled(cx, rq, cfs)
}

#[inline(never)]
fn check_enabled<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> bool {
    cx.touch(rq.cfs_object(cfs), f::RUNTIME_REMAINING, Access::Read);
    if rq.cfs[cfs.idx()].runtime_remaining > 0 {
        return false;
    }
    // A task of a throttled queue can be forced to run, by a change of its parameters.
    rq.cfs[cfs.idx()].throttled || throttle_cfs_rq(cx, rq, cfs)
}

/// An idle queue gives back what it does not need.
pub fn return_cfs_rq_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    if !is_enabled(cx, rq, cfs) || rq.cfs[cfs.idx()].nr_queued > 0 {
        return;
    }
    let queue = &mut rq.cfs[cfs.idx()];
    let slack = queue.runtime_remaining - MIN_CFS_RQ_RUNTIME as i64;
    if slack <= 0 {
        return;
    }
    queue.runtime_remaining -= slack;
    let (sys, tg, own) = (cx.sys, queue.tg, queue.runtime_expires);
    let expiry = sys.features.quota_expiry;
    cx.touch(rq.cfs_object(cfs), f::RUNTIME_REMAINING, Access::Update);
    sys.tg[tg.idx()].with_pool(cx.host, |pool| {
        expiry::give_back(pool, expiry, own, slack as u64);
    });
}

/// Runtime for a queue that gets its first entity; no runtime, no run.
pub(super) fn check_first_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let queue = &rq.cfs[cfs.idx()];
    // While one of its entities runs, put_prev_entity will see to it.
    if queue.curr.is_some() || !is_enabled(cx, rq, cfs) || rq.cfs[cfs.idx()].throttled {
        return;
    }
    charge(cx, rq, cfs, 0);
    if rq.cfs[cfs.idx()].runtime_remaining <= 0 {
        throttle_cfs_rq(cx, rq, cfs);
    }
}

#[inline]
fn is_enabled<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId) -> bool {
    if !cx.sys.bandwidth_used() {
        return false;
    }
    cx.touch(rq.cfs_object(cfs), f::RUNTIME_ENABLED, Access::Read);
    rq.cfs[cfs.idx()].runtime_enabled
}

fn charge<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, delta: u64) {
    let outer = cx.host.enter(Func::AccountRuntime);
    cx.touch(rq.cfs_object(cfs), f::RUNTIME_REMAINING, Access::Update);
    rq.cfs[cfs.idx()].runtime_remaining -= delta as i64;
    expiry::expire_cfs_rq_runtime(cx, rq, cfs);
    let queue = &mut rq.cfs[cfs.idx()];
    if queue.runtime_remaining <= 0 && !queue.throttled {
        let (sys, tg, lacks) = (cx.sys, queue.tg, (queue.runtime_remaining, BANDWIDTH_SLICE));
        let (expiry, own) = (sys.features.quota_expiry, &mut queue.runtime_expires);
        let amount =
            sys.tg[tg.idx()].with_pool(cx.host, |pool| expiry::draw(pool, expiry, own, lacks));
        queue.runtime_remaining += amount as i64;
        if queue.runtime_remaining <= 0 && queue.curr.is_some() {
            resched_curr(cx, rq);
        }
    }
    cx.host.leave(outer);
}

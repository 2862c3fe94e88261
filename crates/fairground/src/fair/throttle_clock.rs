//! The clocks of a throttled queue: load-tracking time that stands still, and throttled time.
//!
//! A queue that may not run should not look idle to load tracking: its clock stops. Up to 6.17 it
//! stops as soon as the queue is throttled; since 6.18 only when the last task has left, because
//! until then tasks still run (in the kernel) and are tracked.

use super::leaf;
use super::propagate::update_idle_cfs_rq_clock_pelt;
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, cfs_rq as f};
use crate::rq::Rq;
use crate::value::CfsId;

/// The load-tracking clock of a queue, ns: that of its CPU without the time it spent throttled.
#[inline]
#[must_use]
pub fn cfs_rq_clock_pelt(rq: &Rq, cfs: CfsId) -> u64 {
    rq.cfs[cfs.idx()].clock_pelt(&rq.clock)
}

/// The last entity has left a queue (call with `nr_queued == 0`, at the end of
/// `dequeue_entity`): publishes the idle time stamp of its load-tracking clock, which stops if the
/// queue is throttled, and takes it off the leaf list then.
pub fn queue_emptied<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let object = rq.cfs_object(cfs);
    update_idle_cfs_rq_clock_pelt(cx, rq, cfs);
    if rq.cfs[cfs.idx()].throttle_count > 0 && cx.features().throttle.is_per_task() {
        leaf::list_del_leaf_cfs_rq(cx, rq, cfs);
        stop(rq, cfs);
        cx.touch(object, f::THROTTLED_CLOCK_PELT, Access::Update);
    }
}

/// A queue has got its first entity, its runtime has been seen to.
pub(super) fn queue_filled<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    if rq.cfs[cfs.idx()].throttle_count == 0 {
        return;
    }
    cx.touch(
        rq.cfs_object(cfs),
        f::THROTTLE_COUNT | f::THROTTLED_CLOCK | f::THROTTLED_CLOCK_PELT,
        Access::Update,
    );
    if cx.sys.features.throttle.is_per_task() {
        go_on(rq, cfs);
    } else {
        record_throttle_clock(rq, cfs);
    }
}

/// A task is dequeued from a throttled hierarchy by `Dequeue::THROTTLE`: its throttled time
/// begins. Called for each level that the task leaves.
pub fn record_throttle_clock(rq: &mut Rq, cfs: CfsId) {
    let now = rq.clock.clock;
    let queue = &mut rq.cfs[cfs.idx()];
    if queue.throttle_count == 0 {
        return;
    }
    if queue.throttled && queue.throttled_clock == 0 {
        queue.throttled_clock = now;
    }
}

/// Stops the load-tracking clock.
pub(super) fn stop(rq: &mut Rq, cfs: CfsId) {
    let now = rq.clock.pelt();
    let queue = &mut rq.cfs[cfs.idx()];
    queue.throttled_clock_pelt = now;
    queue.pelt_clock_throttled = true;
}

/// Lets it go on where it stopped.
pub(super) fn go_on(rq: &mut Rq, cfs: CfsId) {
    let now = rq.clock.pelt();
    let queue = &mut rq.cfs[cfs.idx()];
    if queue.pelt_clock_throttled {
        queue.throttled_clock_pelt_time += now - queue.throttled_clock_pelt;
        queue.pelt_clock_throttled = false;
    }
}

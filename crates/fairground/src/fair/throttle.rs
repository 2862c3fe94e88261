//! Throttling: what one queue does when its runtime is spent, and when it has some again.

use crate::cx::Cx;
use crate::fair::Dequeue;
use crate::host::Host;
use crate::rq::Rq;
use crate::task::Resched;
use crate::value::{CfsId, SeId};

/// Charges `delta` ns of execution to the queue.
pub fn account_cfs_rq_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, delta: u64) {
    let _ = (cx, rq, cfs, delta);
}

/// A queue that was empty has got its first entity (call with `nr_queued == 1`, before
/// `list_add_leaf_cfs_rq`): throttles it if there is no runtime, and lets its load-tracking clock
/// go on.
pub fn check_enqueue_throttle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

/// Throttles the queue if it is out of runtime; true if it is throttled now.
pub fn check_cfs_rq_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> bool {
    let _ = (cx, rq, cfs);
    false
}

/// An idle queue gives back what it does not need.
pub fn return_cfs_rq_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

/// Throttles a queue; false if it found runtime after all.
pub fn throttle_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> bool {
    let _ = (cx, rq, cfs);
    false
}

/// Lets a queue run again.
pub fn unthrottle_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

/// The load-tracking clock of a queue: stands still while it is throttled.
pub fn cfs_rq_clock_pelt(rq: &Rq, cfs: CfsId) -> u64 {
    let _ = (rq, cfs);
    0
}

/// The last entity has left a queue (call with `nr_queued == 0`, at the end of
/// `dequeue_entity`): publishes the idle time stamp of its load-tracking clock, which stops if the
/// queue is throttled, and takes it off the leaf list then.
pub fn queue_emptied<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

/// A task is dequeued from a throttled hierarchy by `Dequeue::THROTTLE`: its throttled time
/// begins. Called for each level that the task leaves.
pub fn record_throttle_clock(rq: &mut Rq, cfs: CfsId) {
    let _ = (rq, cfs);
}

/// A new queue takes over the quota of its group and the throttle state of its parent.
pub fn init_throttle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let _ = (cx, rq, cfs);
}

/// A task whose `body.throttled` is set is enqueued: true if its hierarchy is throttled too, so
/// that it was put in limbo instead (6.18). Any other task is enqueued as usual, and throttles
/// itself when it is picked.
pub fn enqueue_throttled_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> bool {
    let _ = (cx, rq, task);
    false
}

/// A task that is in limbo (`body.throttled`) leaves: `dequeue_task_fair` calls this instead of
/// everything else (6.18).
pub fn dequeue_throttled_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Dequeue) {
    let _ = (cx, rq, task, flags);
}

/// A task of a throttled hierarchy was picked: it shall throttle itself at the return to user
/// space (6.18).
pub fn task_throttle_setup_work<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let _ = (cx, rq, task);
}

/// The running task returns to user space with that work pending.
pub fn throttle_cfs_rq_work<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Resched {
    let _ = (cx, rq);
    Resched::No
}

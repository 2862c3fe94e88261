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

/// A queue that was empty gets its first entity.
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

/// A new queue takes over the throttle state of its parent.
pub fn init_throttle(rq: &mut Rq, cfs: CfsId) {
    let _ = (rq, cfs);
}

/// A task is enqueued into a throttled hierarchy: true if it was put in limbo instead (6.18).
pub fn enqueue_throttled_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> bool {
    let _ = (cx, rq, task);
    false
}

/// A task that is in limbo leaves (6.18).
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

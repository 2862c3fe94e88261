//! Estimated utilisation of tasks and of the CPU (`UTIL_EST`).

use crate::cx::Cx;
use crate::host::Host;
use crate::rq::Rq;
use crate::value::SeId;

/// Adds the estimate of a task that is enqueued.
pub fn util_est_enqueue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let _ = (cx, rq, task);
}

/// Subtracts it.
pub fn util_est_dequeue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let _ = (cx, rq, task);
}

/// Updates the estimate of a task that goes to sleep.
pub fn util_est_update<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, sleep: bool) {
    let _ = (cx, rq, task, sleep);
}

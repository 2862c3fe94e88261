//! A task joins, leaves, is picked or put back: the walk through all levels.

use crate::cx::Cx;
use crate::fair::{Dequeue, Enqueue};
use crate::host::Host;
use crate::rq::Rq;
use crate::task::{Policy, Resched};
use crate::value::SeId;

/// Enqueues a task at every level; a delayed sleeper is made runnable again.
pub fn enqueue_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Enqueue) {
    let _ = (cx, rq, task, flags);
}

/// Dequeues a task at every level; false if it stays as a delayed sleeper.
pub fn dequeue_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Dequeue) -> bool {
    let _ = (cx, rq, task, flags);
    false
}

/// Picks the next task, puts `prev` and sets the new one (common levels are left alone); `None`,
/// with `prev` not put, if there is none.
pub fn pick_next_task_fair<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    prev: Option<SeId>,
) -> Option<SeId> {
    let _ = (cx, rq, prev);
    None
}

/// Puts `prev` at every level.
pub fn put_prev_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: SeId) {
    let _ = (cx, rq, prev);
}

/// Sets `next` as the running one at every level.
pub fn set_next_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, next: SeId, first: bool) {
    let _ = (cx, rq, next, first);
}

/// Gives a task that is on no queue back to the host.
pub fn block_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let _ = (cx, rq, task);
}

/// Changes policy and nice value of a task in the keeping of `rq` (`reweight_task`,
/// `set_user_nice`).
pub fn set_task_weight<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    task: SeId,
    policy: Policy,
    nice: i8,
) -> Resched {
    let _ = (cx, rq, task, policy, nice);
    Resched::No
}

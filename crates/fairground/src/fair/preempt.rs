//! Whether the running task gives way: wake-up, tick, yield, fork.

use crate::cx::Cx;
use crate::host::Host;
use crate::rq::Rq;
use crate::task::{Resched, WakeKind};
use crate::value::SeId;

/// Whether a task that was just enqueued preempts the running one (`check_preempt_wakeup_fair`).
pub fn wakeup_preempt_fair<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    woken: SeId,
    kind: WakeKind,
) -> Resched {
    let _ = (cx, rq, woken, kind);
    Resched::No
}

/// The tick for the running task at every level.
pub fn task_tick_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Resched {
    let _ = (cx, rq);
    Resched::No
}

/// `sched_yield` of the running task.
pub fn yield_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    let _ = (cx, rq);
}

/// After a change of weight.
pub fn prio_changed_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> Resched {
    let _ = (cx, rq, task);
    Resched::No
}

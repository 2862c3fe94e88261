//! Active balancing: pushing the running task to another CPU.

use crate::cx::Cx;
use crate::host::{Host, Rqs};

/// The stopper of the busiest CPU moves one task to `rq.push_cpu` (`active_load_balance_cpu_stop`).
pub fn active_load_balance_push<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

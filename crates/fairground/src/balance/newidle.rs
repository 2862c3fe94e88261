//! Balancing of a CPU that runs dry.

use crate::cx::Cx;
use crate::host::{Host, Rqs};
use crate::rq::Rq;
/// Stamps the beginning of the idle period; whether looking for work is worth its cost.
pub fn newidle_wanted<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> bool {
    let _ = (cx, rq);
    false
}

/// Looks for work in the domains of the executing CPU, whose queue is unlocked; tasks pulled.
pub fn sched_balance_newidle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) -> u32 {
    let _ = (cx, rqs);
    0
}

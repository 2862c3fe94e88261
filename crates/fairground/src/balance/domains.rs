//! Periodic balancing of one CPU over its domains.

use crate::cx::Cx;
use crate::host::{Host, Rqs};

/// At the tick: asks for the softirq when a balance is due, and kicks the idle balancer.
pub fn sched_balance_trigger<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

/// The softirq: idle balancing on behalf of others if asked for, then the own domains.
pub fn sched_balance_softirq<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

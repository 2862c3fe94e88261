//! Quota: the pool of a group, its period and slack timers.

use crate::cx::Cx;
use crate::host::{Host, Rqs};
use crate::value::TgId;

/// `cpu.max` and `cpu.max.burst` (ns) are written.
pub fn set_bandwidth<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    tg: TgId,
    quota: Option<u64>,
    period: u64,
    burst: u64,
) {
    let _ = (cx, rqs, tg, quota, period, burst);
}

/// The period timer of a group has fired: refill, count, distribute, restart or stop.
pub fn period_timer<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, tg: TgId) {
    let _ = (cx, rqs, tg);
}

/// The slack timer of a group has fired: distribute what was returned.
pub fn slack_timer<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, tg: TgId) {
    let _ = (cx, rqs, tg);
}

/// Takes up runtime that another CPU has granted to queues of this one (`Kick::Unthrottle`).
pub fn unthrottle_kicked<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

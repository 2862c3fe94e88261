//! Balancing on behalf of idle CPUs whose tick is stopped.

use crate::cx::Cx;
use crate::host::{Host, Rqs};

/// The CPU stops its tick: it joins `nohz.idle_cpus_mask`.
pub fn nohz_balance_enter_idle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

/// The CPU starts its tick again (it leaves the mask at its first busy tick).
pub fn nohz_tick_restart<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

/// The kicked CPU takes over: raises the softirq with its flags.
pub fn nohz_csd_func<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

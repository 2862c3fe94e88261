//! Asking for a switch.

use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, rq as f};
use crate::rq::Rq;
use crate::task::Resched;

/// Asks for a switch on the CPU of `rq` (`resched_curr`): once, until it happens. The flag is in
/// words of the running task, which its own CPU reads all the time, so it is written only once.
/// The host is told when the queue is released ([`Cx::with_rq`]).
pub(crate) fn resched_curr<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    cx.touch(rq.object(), f::NEED_RESCHED, Access::Read);
    if rq.need_resched {
        return;
    }
    rq.need_resched = true;
    cx.touch(rq.object(), f::NEED_RESCHED, Access::Rmw);
}

/// Acts on an answer about the queue that gave it.
pub(crate) fn resched_if<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, answer: Resched) {
    if answer.is_yes() {
        resched_curr(cx, rq);
    }
}

/// After a queue event with a fresh clock that asked for a switch: the switch need not read the
/// clock again (`rq_clock_skip_update` in `wakeup_preempt`).
pub(crate) fn skip_clock(rq: &mut Rq) {
    rq.skip_clock |= rq.need_resched;
}

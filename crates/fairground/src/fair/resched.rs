//! Asking for a switch.

use super::limbo::is_throttled;
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, Object, rq as f, task as ft};
use crate::rq::Rq;
use crate::task::Resched;
use crate::value::Cpu;

/// Asks for a switch on the CPU of `rq` (`resched_curr`): once, until it happens.
///
/// The flag is in the `thread_info` of the task that runs there, which its own CPU reads at every
/// return to user space, so it is read before it is written. The own CPU sets the bit; another one
/// has to know at the same moment whether the idle loop there polls the word
/// (`set_nr_and_not_polling`), which on x86 is a loop around compare-and-exchange. The host is told
/// when the queue is released ([`Cx::with_rq`]) and decides whether an interrupt is needed.
pub(crate) fn resched_curr<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    cx.touch(rq.object(), f::CURR, Access::Read);
    let curr = rq.curr_object();
    cx.touch(curr, ft::THREAD_INFO, Access::Read);
    if !rq.need_resched {
        rq.need_resched = true;
        set_flag(cx, rq.cpu, curr);
    }
}

#[inline(never)]
fn set_flag<H: Host>(cx: &mut Cx<H>, cpu: Cpu, curr: Object) {
    let how = if cpu == cx.cpu {
        Access::Rmw
    } else {
        Access::CasLoop
    };
    cx.touch(curr, ft::THREAD_INFO, how);
}

/// Acts on an answer about the queue that gave it.
pub(crate) fn resched_if<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, answer: Resched) {
    if answer.is_yes() {
        resched_curr(cx, rq);
    }
}

/// After a queue event with a fresh clock that asked for a switch: the switch need not read the
/// clock again (`rq_clock_skip_update` in `wakeup_preempt`). Not in the midst of a switch away from
/// a task that has left: that switch reads the clock itself, and it is the next one that would not.
pub(crate) fn skip_clock(rq: &mut Rq) {
    let goes_on = match rq.curr {
        Some(curr) => rq.se[curr.idx()].on_rq || is_throttled(rq, curr),
        None => rq.is_idle(),
    };
    rq.skip_clock |= rq.need_resched && goes_on;
}

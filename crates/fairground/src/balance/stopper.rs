//! The stopper as a task that is woken and sleeps: what it does is in
//! [`sched::stop`](crate::sched).

use super::newidle::account_idle_period;
use crate::cx::Cx;
use crate::fair::resched::{resched_curr, skip_clock};
use crate::fair::task::add_nr_running;
use crate::host::{Host, Kick, StopWork};
use crate::place::{Access, rq as frq};
use crate::rq::Rq;

/// Asks for `work` on the CPU of `rq`: its stopper is woken (`stop_one_cpu`). As any woken task it
/// counts, which may make the machine overloaded, and takes the CPU at the next switch.
pub(crate) fn wake_stopper<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, work: StopWork) {
    if !core::mem::replace(&mut rq.stopper, true) {
        add_nr_running(cx, rq, 1);
        // Whom of a class between the host runs gets the CPU back, with what was asked of it.
        if rq.higher.is_none() {
            resched_curr(cx, rq);
            // The interrupt is that of the request.
            rq.resched_sent = true;
            skip_clock(rq);
        }
        account_idle_period(cx, rq);
    }
    cx.host.kick(rq.cpu, Kick::Stop(work));
}

/// The stopper sleeps: it has nothing left to do.
pub(crate) fn stopper_sleeps<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if core::mem::take(&mut rq.stopper) {
        cx.touch(rq.object(), frq::NR_RUNNING, Access::Update);
        rq.nr_running = rq.nr_running.saturating_sub(1);
    }
}

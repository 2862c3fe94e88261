//! Entry points: what a host calls on behalf of a CPU.
//!
//! ```text
//! running task blocks, is preempted, exits   schedule
//! somebody is woken                          wake_queued, or select_cpu then enqueue_woken
//! a task is created                          sched_fork, then select_cpu and enqueue_woken
//! tick                                       sched_tick
//! IPI or softirq that was asked for          run_kick
//! timer that was asked for                   run_timer
//! return to user space                       exit_to_user
//! system calls on scheduling                 sched_yield, set_affinity, set_nice, set_slice,
//!                                            set_group
//! the tick stops, or goes on                 nohz_enter_idle, nohz_exit_idle
//! ```
//!
//! Each call is made with no queue locked and locks at most one at a time. A wake-up is several
//! calls because on a real machine the choice of a CPU and the enqueueing there are two moments:
//! another CPU can act in between.

mod attributes;
mod stop;
mod switch;
mod wake;

pub use attributes::{
    Moved, set_affinity, set_affinity_parked, set_group, set_group_parked, set_nice, set_shares,
    set_slice,
};
pub use stop::run_stopper;
pub use switch::{exit_to_user, sched_yield, schedule};
pub use wake::{
    EnqueueAt, enqueue_woken, sched_exec, sched_fork, sched_ttwu_pending, select_cpu, ttwu_on_cpu,
    ttwu_queue_wakelist, wake_queued,
};

use crate::balance::{domains, nohz};
use crate::cx::Cx;
use crate::fair::resched::{resched_curr, resched_if, skip_clock};
use crate::fair::{bandwidth, preempt};
use crate::host::{Host, Kick, Timer};
use crate::place::Func;
use crate::rq::Rqs;

/// The periodic tick of the executing CPU: charges the running task, asks for a switch if its
/// time is up, and starts periodic and idle balancing when due.
pub fn sched_tick<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let outer = cx.host.enter(Func::SchedTick);
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        if rq.curr.is_some() && preempt::task_tick_fair(cx, rq).is_yes() {
            resched_curr(cx, rq);
        }
    });
    domains::sched_balance_trigger(cx, rqs);
    cx.host.leave(outer);
}

/// Work that another CPU, or this one, asked for with [`Host::kick`]. The stopper's kinds of work
/// ([`Kick::ActiveBalance`], [`Kick::Migrate`]) go to [`run_stopper`], queued wake-ups to
/// [`sched_ttwu_pending`], instead.
pub fn run_kick<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, work: Kick) {
    match work {
        Kick::IdleBalance => cx.span(Func::NohzCsd, |cx| nohz::nohz_csd_func(cx, rqs)),
        Kick::BalanceSoftirq => cx.span(Func::BalanceSoftirq, |cx| {
            domains::sched_balance_softirq(cx, rqs);
        }),
        Kick::Unthrottle => cx.span(Func::CsdUnthrottle, |cx| {
            bandwidth::unthrottle_kicked(cx, rqs);
        }),
        Kick::Wakeups | Kick::ActiveBalance | Kick::Migrate => {
            debug_assert!(false, "{work:?} has an entry point of its own");
        }
    }
}

/// A timer that the engine asked for has fired.
pub fn run_timer<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, timer: Timer) {
    match timer {
        Timer::Period(tg) => bandwidth::period_timer(cx, rqs, tg),
        Timer::Slack(tg) => bandwidth::slack_timer(cx, rqs, tg),
    }
}

/// The executing CPU is idle and stops its tick.
pub fn nohz_enter_idle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    cx.span(Func::NohzEnterIdle, |cx| {
        nohz::nohz_balance_enter_idle(cx, rqs);
    });
}

/// The executing CPU starts its tick again.
pub fn nohz_exit_idle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    nohz::nohz_tick_restart(cx, rqs);
}

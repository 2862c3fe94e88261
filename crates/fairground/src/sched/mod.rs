//! Entry points: what a host calls on behalf of a CPU.
//!
//! ```text
//! running task blocks, is preempted, exits   schedule; after an exit task_dead
//! one that does not run is stopped or ended  deactivate_task, task_dead
//! somebody is woken                          wake_queued, or select_cpu then ttwu_queue
//! a task is created                          sched_fork, then select_cpu and enqueue_woken
//! tick                                       sched_tick
//! IPI or softirq that was asked for          run_kick
//! timer that was asked for                   run_timer
//! return to user space                       exit_to_user
//! system calls on scheduling                 sched_yield, set_affinity, set_nice, set_slice,
//!                                            set_group; with the host: set_nice_parked,
//!                                            set_slice_parked, set_affinity_parked,
//!                                            set_group_parked
//! cpu.weight, cpu.idle, cpu.max of a group   set_cpu_weight, set_idle, set_bandwidth
//! a group is to have its queue on a CPU       online_group
//! an idle CPU stops its tick                 nohz_enter_idle
//! real-time tasks of the host                enqueue_higher, dequeue_higher, switch_to_higher,
//!                                            switch_from_higher, resched_higher,
//!                                            System::charge_higher
//! ```
//!
//! Each call is made with no queue locked and locks at most one at a time. A wake-up is several
//! calls because on a real machine the choice of a CPU and the enqueueing there are two moments:
//! another CPU can act in between.

mod attributes;
mod deactivate;
mod higher;
mod inquire;
mod stop;
mod switch;
mod wake;

pub use attributes::{
    Moved, WeightError, online_group, set_affinity, set_affinity_parked, set_cpu_weight, set_group,
    set_group_parked, set_idle, set_nice, set_nice_parked, set_shares, set_slice, set_slice_parked,
};
pub use deactivate::{Deactivated, deactivate_task};
pub use higher::{
    HigherComes, ToRunning, dequeue_higher, enqueue_higher, resched_higher, switch_from_higher,
    switch_to_higher,
};
pub use inquire::{
    TaskState, cpu_util, task_sched_runtime, task_state, task_util, task_util_parked, with_task,
};
pub use stop::run_stopper;
pub use switch::{exit_to_user, sched_yield, schedule, task_dead};
pub use wake::{
    EnqueueAt, enqueue_woken, sched_exec, sched_fork, sched_ttwu_pending, select_cpu, ttwu_on_cpu,
    ttwu_queue, ttwu_queue_wakelist, wake_queued,
};

pub use crate::fair::bandwidth::{
    BandwidthError, MAX_CFS_RUNTIME_NS, MAX_PERIOD_NS, MIN_BANDWIDTH_NS, align_period,
    set_bandwidth,
};
pub use crate::math::pelt::task_util_est;
pub use crate::math::weight::{CGROUP_WEIGHT_DFL, CGROUP_WEIGHT_MAX, CGROUP_WEIGHT_MIN};

use crate::balance::{domains, nohz, trigger};
use crate::cx::Cx;
use crate::fair::others::update_rt_rq_load_avg;
use crate::fair::resched::{resched_curr, resched_if, skip_clock};
use crate::fair::{bandwidth, hrtick, preempt};
use crate::host::{Host, KickWork, Timer};
use crate::place::Func;
use crate::rq::{HigherClass, Rqs};

/// The rest of a call that was cut where it waits for words that other CPUs read and write at the
/// same time: it goes on, by [`go_on`], when it has them.
#[must_use = "the call is not over"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Later {
    /// The tick's look at balancing.
    Trigger(trigger::Step),
    /// The flags of a kicked idle balancer.
    TakeFlags,
    /// The idle balancer begins, with what it was asked for.
    IdleCpus(u32),
    /// It goes on with the next idle CPU.
    Round(nohz::Round),
    /// What it has found.
    Balanced(nohz::Balanced),
}

impl Later {
    /// Whether interrupts are off meanwhile.
    #[must_use]
    pub fn irqs_off(self) -> bool {
        matches!(self, Self::Trigger(_) | Self::TakeFlags)
    }
}

/// The periodic tick of the executing CPU: charges the running task, asks for a switch if its
/// time is up, and starts periodic and idle balancing when due.
#[doc(alias = "scheduler_tick")]
pub fn sched_tick<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let rest = begin_tick(cx, rqs);
    finish(cx, rqs, rest);
}

/// First part of [`sched_tick`]; `Some(rest)` must be passed to [`go_on`] until it returns `None`.
#[must_use = "the call is not over"]
pub fn begin_tick<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) -> Option<Later> {
    let outer = cx.host.enter(Func::SchedTick);
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        // What has waited since the last tick waits no longer.
        if rq.need_resched_lazy {
            resched_curr(cx, rq);
        }
        if rq.curr.is_some() && preempt::task_tick_fair(cx, rq).is_yes() {
            resched_curr(cx, rq);
        }
        if matches!(rq.higher, Some(HigherClass::RealTime(_))) {
            update_rt_rq_load_avg(cx, rq, true);
        }
    });
    let mut step = Some(trigger::Step::Begin);
    if !trigger::may_wait(cx) {
        step = trigger::sched_balance_trigger(cx, rqs, trigger::Step::Begin);
    }
    cx.host.leave(outer);
    step.map(Later::Trigger)
}

/// Work that another CPU, or this one, asked for with [`Host::kick`]
/// ([`Kick::Run`](crate::host::Kick::Run)).
pub fn run_kick<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, work: KickWork) {
    let rest = begin_kick(cx, rqs, work);
    finish(cx, rqs, rest);
}

/// First part of [`run_kick`]; `Some(rest)` must be passed to [`go_on`] until it returns `None`.
#[must_use = "the call is not over"]
pub fn begin_kick<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    work: KickWork,
) -> Option<Later> {
    match work {
        KickWork::IdleBalance => {
            cx.span(Func::NohzCsd, nohz::nohz_csd_func);
            return Some(Later::TakeFlags);
        }
        KickWork::BalanceSoftirq => {
            let flags = cx.span(Func::BalanceSoftirq, |cx| {
                domains::sched_balance_softirq(cx, rqs)
            });
            return flags.map(Later::IdleCpus);
        }
        KickWork::Unthrottle => cx.span(Func::CsdUnthrottle, |cx| {
            bandwidth::unthrottle_kicked(cx, rqs);
        }),
        KickWork::Hrtick => hrtick::hrtick_kicked(cx, rqs),
    }
    None
}

/// The executing CPU has what `rest` waited for; what is left after that.
#[must_use = "the call is not over"]
pub fn go_on<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, rest: Later) -> Option<Later> {
    let outer = cx.host.reenter(match rest {
        Later::Trigger(_) => Func::SchedTick,
        Later::TakeFlags => Func::NohzCsd,
        Later::IdleCpus(_) | Later::Round(_) | Later::Balanced(_) => Func::BalanceSoftirq,
    });
    let next = match rest {
        Later::Trigger(step) => trigger::sched_balance_trigger(cx, rqs, step).map(Later::Trigger),
        Later::TakeFlags => {
            nohz::take_flags(cx, rqs);
            None
        }
        Later::IdleCpus(_) | Later::Round(_) | Later::Balanced(_) => {
            let outer = cx.host.reenter(Func::NohzIdleBalance);
            let next = balance_for_idle(cx, rqs, rest);
            cx.host.leave(outer);
            next
        }
    };
    cx.host.leave(outer);
    next
}

/// A part of the idle balancer's round.
fn balance_for_idle<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    rest: Later,
) -> Option<Later> {
    match rest {
        Later::IdleCpus(flags) => Some(Later::Round(nohz::balance_idle_cpus(cx, flags))),
        Later::Round(round) => match nohz::balance_next(cx, rqs, round) {
            nohz::Next::Cpu(round) => Some(Later::Round(round)),
            nohz::Next::Done(found) => Some(Later::Balanced(found)),
            nohz::Next::GivesWay => None,
        },
        Later::Balanced(found) => {
            nohz::end_idle_cpus(cx, found);
            None
        }
        Later::Trigger(_) | Later::TakeFlags => None,
    }
}

fn finish<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, rest: Option<Later>) {
    let mut rest = rest;
    while let Some(later) = rest {
        rest = go_on(cx, rqs, later);
    }
}

/// A timer that the engine asked for has fired. [`Timer::Hrtick`] is delivered on the CPU that it
/// names, which is the one that has set it; the timers of a group on any, best on that which has.
pub fn run_timer<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, timer: Timer) {
    match timer {
        Timer::Period(tg) => bandwidth::period_timer(cx, rqs, tg),
        Timer::Slack(tg) => bandwidth::slack_timer(cx, rqs, tg),
        Timer::Hrtick(cpu) => {
            debug_assert_eq!(cpu, cx.cpu, "set on the own CPU only");
            hrtick::hrtick(cx, rqs);
        }
    }
}

/// The executing CPU is idle and stops its tick. When it starts it again there is nothing to tell:
/// the CPU counts as idle until its first busy tick, so that short bursts of work do not move the
/// shared words.
pub fn nohz_enter_idle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    cx.span(Func::NohzEnterIdle, |cx| {
        nohz::nohz_balance_enter_idle(cx, rqs);
    });
}

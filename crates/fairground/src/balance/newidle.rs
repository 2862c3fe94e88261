//! Balancing of a CPU that runs dry.
//!
//! A CPU that is about to idle pays for a search with time in which nobody needs it, as long as
//! the search is shorter than it will be idle: both are estimated by averages.

use super::balance_rq::{sched_balance_rq, touch_sd};
use super::domains::update_blocked;
use super::env::IdleType;
use super::interval::update_next_balance;
use super::nohz::nohz_newidle_balance;
use crate::cx::Cx;
use crate::fair::misfit::update_misfit_status;
use crate::host::Host;
use crate::place::{Access, Func, rq as frq, sd as fsd};
use crate::rq::{Rq, Rqs};
use crate::shared::Relaxed;
use crate::topology::SchedDomain;

/// Stamps the beginning of the idle period; whether looking for work is worth its cost. The CPU
/// then calls [`sched_balance_newidle`] with its queue unlocked.
pub fn newidle_wanted<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> bool {
    let (sys, cpu) = (cx.sys, rq.cpu);
    let outer = cx.host.enter(Func::Newidle);
    update_misfit_status(cx, rq, None);
    cx.touch(rq.object(), frq::TTWU_PENDING, Access::Read);
    let woken = sys.cpu[cpu.idx()].ttwu_pending.load(Relaxed);
    if !woken {
        // Before the search, so that its time counts as idle time.
        rq.idle_stamp = rq.clock.clock;
        cx.touch(rq.object(), frq::AVG_IDLE, Access::Update);
    }
    let wanted = !woken && search_pays(cx, rq);
    cx.host.leave(outer);
    wanted
}

/// Looks for work in the domains of the executing CPU, whose queue is unlocked; tasks pulled, or
/// 1 if one arrived in the meantime.
#[doc(alias = "newidle_balance")]
pub fn sched_balance_newidle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) -> u32 {
    let outer = cx.host.enter(Func::Newidle);
    let (sys, cpu) = (cx.sys, cx.cpu);
    let avg_idle_ns = cx.with_rq_lockless(rqs, cpu, |_, rq| rq.avg_idle);
    let mut next_balance = cx.jiffies() + u64::from(sys.features.hz);
    let mut search = Search {
        since: cx.host.clock(),
        cost_ns: 0,
        pulled: 0,
        goes_on: true,
    };
    update_blocked(cx, rqs, cpu);
    if !sys.features.newidle.gate.counts_blocked_walk() {
        search.since = cx.host.clock();
    }
    for sd in sys.topology.domains(cpu) {
        let read = fsd::FIXED | fsd::LAST_BALANCE | fsd::NEWIDLE;
        touch_sd(cx, cpu, sd.level as usize, read, Access::Read);
        update_next_balance(sys, sd, &mut next_balance);
        let cost_ns = sd.state.max_newidle_lb_cost.load(Relaxed);
        if !sys
            .features
            .newidle
            .goes_on(avg_idle_ns, search.cost_ns, cost_ns)
        {
            break;
        }
        if sd.flags.balance_newidle {
            try_level(cx, rqs, sd, &mut search);
        }
        if search.pulled > 0 || !search.goes_on {
            break;
        }
    }
    let pulled = cx.with_rq(rqs, cpu, |cx, rq| conclude(cx, rq, &search, next_balance));
    cx.host.leave(outer);
    pulled
}

/// A wake-up ends an idle period: take it into the average, which newly-idle balancing compares
/// with its cost.
pub(crate) fn account_idle_period<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if rq.idle_stamp == 0 {
        return;
    }
    cx.touch(rq.object(), frq::AVG_IDLE, Access::Update);
    let idle_ns = rq.clock.clock.saturating_sub(rq.idle_stamp);
    let cost_ns = cx.sys.cpu[rq.cpu.idx()].max_idle_balance_cost(rq.cpu, cx.host);
    let newidle = cx.features().newidle;
    rq.avg_idle = newidle.average_idle(rq.avg_idle, idle_ns, cost_ns);
    rq.idle_stamp = 0;
}

/// Keeps what a search at this level costs at most, which decays by about 1 % a second, and its
/// rate of success; true if the cost has decayed.
pub(super) fn update_newidle_cost(
    sd: &SchedDomain,
    cost_ns: u64,
    success: u32,
    now: u64,
    hz: u32,
) -> bool {
    let state = &sd.state;
    if cost_ns > 0 {
        update_newidle_stats(sd, success);
    }
    let max = state.max_newidle_lb_cost.load(Relaxed);
    if cost_ns > max {
        state.max_newidle_lb_cost.store(cost_ns, Relaxed);
        state.last_decay_max_lb_cost.store(now, Relaxed);
    } else if now > state.last_decay_max_lb_cost.load(Relaxed) + u64::from(hz) {
        state.max_newidle_lb_cost.store(max * 253 / 256, Relaxed);
        state.last_decay_max_lb_cost.store(now, Relaxed);
        return true;
    }
    false
}

/// One search over the levels.
struct Search {
    /// Until when its cost was counted, ns.
    since: u64,
    cost_ns: u64,
    pulled: u32,
    goes_on: bool,
}

/// Whether the machine has something to pull and the CPU is idle long enough for the smallest
/// domain. If not, the CPU may still promise to decay blocked load.
fn search_pays<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> bool {
    let sys = cx.sys;
    let mut next_balance = cx.jiffies() + u64::from(sys.features.hz);
    if let Some(sd) = sys.topology.domains(rq.cpu).first() {
        let cost_ns = sd.state.max_newidle_lb_cost.load(Relaxed);
        let overloaded = || sys.rd.is_overloaded(cx.host);
        if sys.features.newidle.looks(rq.avg_idle, cost_ns, overloaded) {
            return true;
        }
        let read = fsd::LAST_BALANCE | fsd::NEWIDLE;
        touch_sd(cx, rq.cpu, 0, read, Access::Read);
        update_next_balance(sys, sd, &mut next_balance);
    }
    advance_next_balance(cx, rq, next_balance);
    nohz_newidle_balance(cx, rq);
    false
}

/// Tries one level, unless chance says that its recent success is not worth it.
fn try_level<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    sd: &SchedDomain,
    search: &mut Search,
) {
    let (sys, cpu) = (cx.sys, cx.cpu);
    let level = sd.level as usize;
    let ratio = sd.state.newidle_ratio.load(Relaxed);
    let Some(weight) = sys.features.newidle.dice(ratio, || cx.host.random()) else {
        update_newidle_stats(sd, 0);
        touch_sd(cx, cpu, level, fsd::NEWIDLE, Access::Write);
        return;
    };
    let attempt = sched_balance_rq(cx, rqs, cpu, level, IdleType::NewlyIdle);
    search.goes_on = attempt.goes_on;
    search.pulled = attempt.pulled;
    let now_ns = cx.host.clock();
    let cost_ns = now_ns.saturating_sub(search.since);
    search.since = now_ns;
    search.cost_ns += cost_ns;
    let success = if attempt.pulled > 0 { weight } else { 0 };
    let now = cx.jiffies();
    update_newidle_cost(sd, cost_ns, success, now, sys.features.hz);
    touch_sd(cx, cpu, level, fsd::NEWIDLE, Access::Update);
}

/// With the queue locked again: what the search cost and whether the CPU still goes idle.
fn conclude<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, search: &Search, next_balance: u64) -> u32 {
    let words = &cx.sys.cpu[rq.cpu.idx()];
    if search.cost_ns > words.max_idle_balance_cost(rq.cpu, cx.host) {
        words.set_max_idle_balance_cost(rq.cpu, search.cost_ns, cx.host);
    }
    let mut pulled = search.pulled;
    if pulled == 0 && rq.cfs[0].h_nr_queued > 0 {
        pulled = 1;
    }
    advance_next_balance(cx, rq, next_balance);
    if pulled > 0 {
        rq.idle_stamp = 0;
    } else {
        nohz_newidle_balance(cx, rq);
    }
    pulled
}

fn advance_next_balance<H: Host>(cx: &mut Cx<H>, rq: &Rq, next_balance: u64) {
    let words = &cx.sys.cpu[rq.cpu.idx()];
    if words.next_balance(rq.cpu, cx.host) > next_balance {
        words.set_next_balance(rq.cpu, next_balance, cx.host);
    }
}

/// Counts an attempt over a window of 512 to 1024 of them.
fn update_newidle_stats(sd: &SchedDomain, success: u32) {
    let state = &sd.state;
    let call = state.newidle_call.load(Relaxed) + 1;
    let good = state.newidle_success.load(Relaxed) + success;
    let full = call >= 1024;
    if full {
        state.newidle_ratio.store(good, Relaxed);
    }
    let halve = u32::from(full);
    state.newidle_call.store(call >> halve, Relaxed);
    state.newidle_success.store(good >> halve, Relaxed);
}

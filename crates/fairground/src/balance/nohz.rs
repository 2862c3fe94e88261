//! Balancing on behalf of idle CPUs whose tick is stopped (`CONFIG_NO_HZ_COMMON`).
//!
//! ```text
//! a CPU stops its tick            nohz_balance_enter_idle: joins nohz.idle_cpus_mask
//! its first busy tick after that  nohz_balance_exit_idle: leaves it
//! any busy tick                   `trigger`: flags for one idle CPU, and an IPI if it had none
//! that CPU                        nohz_csd_func, softirq, nohz_idle_balance: the domains of
//!                                 every idle CPU, its own last
//! ```
//!
//! Not modelled: capacity taken by interrupts, asymmetric packing, housekeeping masks.

use super::domains::{sched_balance_domains, update_blocked};
use super::env::IdleType;
use super::interval::msecs_to_jiffies;
use crate::cx::Cx;
use crate::host::{Host, Kick, KickWork};
use crate::place::{Access, Func, rq as frq};
use crate::rq::{Rq, Rqs};
use crate::shared::{Relaxed, nohz_kick};
use crate::value::Cpu;

/// Time after which blocked load is decayed again, ms (the half-life of load tracking).
const LOAD_AVG_PERIOD_MS: u64 = 32;

/// The CPU stops its tick: it joins `nohz.idle_cpus_mask`, until its first busy tick
/// (`super::trigger`).
pub fn nohz_balance_enter_idle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let (sys, cpu) = (cx.sys, cx.cpu);
    if sys.topology.domains(cpu).is_empty() {
        return;
    }
    let entered = cx.with_rq_lockless(rqs, cpu, |cx, rq| {
        cx.touch(rq.object(), frq::BLOCKED, Access::Write);
        cx.touch(rq.object(), frq::NOHZ_TICK, Access::Read);
        rq.has_blocked_load = true;
        let entered = !core::mem::replace(&mut rq.nohz_tick_stopped, true);
        if entered {
            cx.touch(rq.object(), frq::NOHZ_TICK, Access::Write);
        }
        rq.publish(sys);
        entered
    });
    if entered {
        sys.nohz.set_idle(cpu, true, cx.host);
        count_busy(cx, cpu, false);
        sys.nohz.set_needs_update(true, cx.host);
    }
    sys.nohz.set_has_blocked(true, cx.host);
}

/// The kicked CPU reaches for its flags. Others may still add to them until it has the line.
pub(crate) fn nohz_csd_func<H: Host>(cx: &mut Cx<H>) {
    let cpu = cx.cpu;
    cx.sys.cpu[cpu.idx()].reach_nohz_flags(cpu, Access::CasLoop, cx.host);
}

/// It takes them, and raises the softirq if it is still idle
/// ([`IlbCsd`](crate::policy::IlbCsd)). A kick that comes twice finds none: then nothing is to be
/// done, and a promise to decay (`NEWILB`) stands.
pub(crate) fn take_flags<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let (sys, cpu) = (cx.sys, cx.cpu);
    let words = &sys.cpu[cpu.idx()];
    if words.nohz_flags() & nohz_kick::MASK == 0 {
        return;
    }
    let flags = words.clear_nohz_flags(nohz_kick::MASK | nohz_kick::NEWILB);
    cx.with_rq_lockless(rqs, cpu, |cx, rq| {
        rq.idle_balance = cx.idle_cpu(cpu);
        cx.touch(rq.object(), frq::IDLE_BALANCE, Access::Write);
        let asked = rq.need_resched && sys.features.ilb_csd.checks_resched();
        if rq.idle_balance && !asked {
            rq.nohz_idle_balance = flags;
            cx.host.kick(cpu, Kick::Run(KickWork::BalanceSoftirq));
        }
    });
}

/// In the softirq: what this CPU was asked to do for others; 0 = nothing.
pub(super) fn nohz_idle_balance(rq: &mut Rq) -> u32 {
    let flags = core::mem::take(&mut rq.nohz_idle_balance);
    if rq.idle_balance { flags } else { 0 }
}

/// In the idle loop: decays the blocked load of the idle CPUs if this one promised to when it
/// ran dry, and nobody has asked for more.
pub(crate) fn nohz_run_idle_balance<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    let words = &cx.sys.cpu[cpu.idx()];
    words.reach_nohz_flags(cpu, Access::CasLoop, cx.host);
    let flags = words.clear_nohz_flags(nohz_kick::NEWILB);
    if flags == nohz_kick::NEWILB && !need_resched(cx, rqs) {
        cx.span(Func::NohzIdleBalance, |cx| {
            begin_idle_cpus(cx);
            let mut round = balance_idle_cpus(cx, nohz_kick::STATS);
            loop {
                match balance_next(cx, rqs, round) {
                    Next::Cpu(rest) => round = rest,
                    Next::Done(found) => return end_idle_cpus(cx, found),
                    Next::GivesWay => return,
                }
            }
        });
    }
}

/// A CPU goes idle without having found work: it promises to decay blocked load if that is due
/// and it expects to be idle long enough.
pub(super) fn nohz_newidle_balance<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    let sys = cx.sys;
    if rq.avg_idle < sys.features.newidle.migration_cost_ns {
        return;
    }
    if !sys.nohz.has_blocked(cx.host) || cx.jiffies() < sys.nohz.next_blocked(cx.host) {
        return;
    }
    let words = &sys.cpu[rq.cpu.idx()];
    words.reach_nohz_flags(rq.cpu, Access::CasLoop, cx.host);
    words.or_nohz_flags(nohz_kick::NEWILB);
}

/// The first busy tick after idling: leaves the mask. That `NOHZ_TICK` is read, the trigger has
/// reported with what else it reads.
pub(super) fn nohz_balance_exit_idle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if !rq.nohz_tick_stopped {
        return;
    }
    rq.nohz_tick_stopped = false;
    cx.touch(rq.object(), frq::NOHZ_TICK, Access::Write);
    cx.sys.nohz.set_idle(rq.cpu, false, cx.host);
    count_busy(cx, rq.cpu, true);
    rq.publish(cx.sys);
}

/// Keeps `nr_busy_cpus` of the last-level cache; a CPU with a cache of its own has none.
fn count_busy<H: Host>(cx: &mut Cx<H>, cpu: Cpu, busy: bool) {
    let topology = &cx.sys.topology;
    if topology.llc_domain(cpu).is_some() {
        let llc = topology.llc_of[cpu.idx()];
        cx.sys.llc[llc.idx()].count_busy(llc, busy, cx.host);
    }
}

/// What is asked for is about to be done: cleared first, so that a CPU that becomes idle from now
/// on sets it again.
pub(super) fn begin_idle_cpus<H: Host>(cx: &mut Cx<H>) {
    cx.sys.nohz.begin_clear(cx.host);
}

/// A balance for every idle CPU of the mask, this one last so that the others get a chance to pull
/// (`_nohz_idle_balance`). It is a round of many small pieces: interrupts come between them, and
/// one of those may bring the next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Round {
    flags: u32,
    /// CPUs behind this one that are done with.
    done: u32,
    /// Jiffies at the beginning.
    began: u64,
    found: Balanced,
}

/// The words that [`begin_idle_cpus`] has written are seen.
pub(crate) fn balance_idle_cpus<H: Host>(cx: &mut Cx<H>, flags: u32) -> Round {
    let (sys, began) = (cx.sys, cx.jiffies());
    let stats = flags & nohz_kick::STATS != 0;
    sys.nohz.end_clear(stats, flags & nohz_kick::NEXT != 0);
    sys.nohz.reach_idle_cpus(cx.host);
    Round {
        flags,
        done: 0,
        began,
        found: Balanced::default(),
    }
}

/// How a round goes on.
pub(crate) enum Next {
    /// With the next CPU.
    Cpu(Round),
    /// There is none left.
    Done(Balanced),
    /// Not at all: this CPU has got work to do, and has said that balancing is still due.
    GivesWay,
}

/// The next idle CPU of a round.
pub(crate) fn balance_next<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    mut round: Round,
) -> Next {
    let (sys, this_cpu) = (cx.sys, cx.cpu);
    let stats = round.flags & nohz_kick::STATS != 0;
    while let Some(cpu) = next_idle(cx, &mut round) {
        if !read_idle_cpu(cx, cpu) {
            continue;
        }
        let busy = sys.features.ilb_csd.checks_resched() || !sys.cpu[this_cpu.idx()].idle_cpu();
        if busy && need_resched(cx, rqs) {
            if round.flags & nohz_kick::NEXT != 0 {
                sys.nohz.set_needs_update(true, cx.host);
            }
            if stats || round.found.has_blocked {
                sys.nohz.set_has_blocked(true, cx.host);
            }
            return Next::GivesWay;
        }
        if stats {
            round.found.has_blocked |= update_nohz_stats(cx, rqs, cpu);
        }
        let due = balance_one(cx, rqs, cpu, round.flags);
        let next = &mut round.found.next_balance;
        *next = Some(next.map_or(due, |next| next.min(due)));
        return Next::Cpu(round);
    }
    let farthest = round.began + 60 * u64::from(sys.features.hz);
    let found = &mut round.found;
    found.next_balance = found.next_balance.map(|next| next.min(farthest));
    if stats {
        let period = msecs_to_jiffies(LOAD_AVG_PERIOD_MS, sys.features.hz);
        found.next_blocked = Some(round.began + period);
    }
    Next::Done(round.found)
}

fn need_resched<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) -> bool {
    let cpu = cx.cpu;
    cx.with_rq_lockless(rqs, cpu, |_, rq| rq.need_resched)
}

/// The next CPU of the mask, as it is now, that a round has not come to.
fn next_idle<H: Host>(cx: &Cx<H>, round: &mut Round) -> Option<Cpu> {
    let (mask, n) = (cx.sys.nohz.idle_cpus(), cx.sys.topology.nr_cpus() as u32);
    let start = (cx.cpu.0 + 1) % n;
    let behind = |cpu: Cpu| (cpu.0 + n - start) % n;
    let from = start + round.done;
    let next = match from < n {
        true => mask.next_from(from).or_else(|| mask.next_from(0)),
        false => mask.next_from(from - n),
    };
    let next = next.filter(|cpu| round.done < n && behind(*cpu) >= round.done)?;
    round.done = behind(next) + 1;
    Some(next)
}

/// What a balance for the idle has found, to be published when it is over.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Balanced {
    next_balance: Option<u64>,
    next_blocked: Option<u64>,
    has_blocked: bool,
}

/// A balance for the idle is over.
pub(crate) fn end_idle_cpus<H: Host>(cx: &mut Cx<H>, found: Balanced) {
    let nohz = &cx.sys.nohz;
    if let Some(next) = found.next_balance {
        nohz.set_next_balance(next, cx.host);
    }
    if let Some(next) = found.next_blocked {
        nohz.set_next_blocked(next, cx.host);
    }
    if found.has_blocked {
        nohz.set_has_blocked(true, cx.host);
    }
}

/// Balances for one idle CPU if that is due; when the next one is, jiffies.
fn balance_one<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, cpu: Cpu, flags: u32) -> u64 {
    let words = &cx.sys.cpu[cpu.idx()];
    if cx.jiffies() >= words.next_balance(cpu, cx.host) {
        cx.with_rq(rqs, cpu, |cx, rq| cx.update_rq_clock(rq));
        if flags & nohz_kick::BALANCE != 0 {
            sched_balance_domains(cx, rqs, cpu, IdleType::Idle);
        }
    }
    words.next_balance(cpu, cx.host)
}

/// Decays the blocked load of an idle CPU; whether some is left.
fn update_nohz_stats<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, cpu: Cpu) -> bool {
    cx.read_rq(cpu, frq::BLOCKED);
    let words = &cx.sys.cpu[cpu.idx()];
    if !words.has_blocked_load.load(Relaxed) || !words.nohz_tick_stopped.load(Relaxed) {
        return false;
    }
    if cx.jiffies() <= words.last_blocked_update.load(Relaxed) {
        return true;
    }
    update_blocked(cx, rqs, cpu);
    words.has_blocked_load.load(Relaxed)
}

/// The core exports it, so a profile has it apart from its callers.
pub(super) fn read_idle_cpu<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> bool {
    cx.span(Func::IdleCpu, |cx| cx.idle_cpu(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Features, IlbCsd};
    use crate::sched::run_kick;
    use crate::testing::Bench;

    /// As one that watches its flags is woken.
    #[test]
    fn a_cpu_that_was_asked_to_switch_balances_only_by_the_newer_rule() {
        for (rule, kicks) in [(IlbCsd::ChecksResched, 0), (IlbCsd::IdleOnly, 1)] {
            let mut bench = Bench::nodes(1, 2, Features::default());
            bench.sys.features.ilb_csd = rule;
            bench.on(0, |_, rq| rq.need_resched = true);
            bench.sys.cpu[0].or_nohz_flags(nohz_kick::BALANCE);
            bench.call(0, |cx, rqs| run_kick(cx, rqs, KickWork::IdleBalance));
            assert_eq!(bench.sys.cpu[0].nohz_flags(), 0, "the flags are gone");
            assert_eq!(bench.host.kicks.len(), kicks, "{rule:?}");
        }
    }

    #[test]
    fn a_kick_that_comes_twice_does_its_work_once() {
        let mut bench = Bench::nodes(1, 2, Features::default());
        bench.on(0, |_, _| ());
        bench.sys.cpu[0].or_nohz_flags(nohz_kick::STATS);
        for promised in [0, nohz_kick::NEWILB] {
            bench.sys.cpu[0].or_nohz_flags(promised);
            bench.call(0, |cx, rqs| run_kick(cx, rqs, KickWork::IdleBalance));
            assert_eq!(bench.sys.cpu[0].nohz_flags(), promised);
        }
        let softirq = Kick::Run(KickWork::BalanceSoftirq);
        assert_eq!(bench.host.kicks, [(Cpu(0), softirq)]);
        assert_eq!(bench.rqs[0].nohz_idle_balance, nohz_kick::STATS);
    }
}

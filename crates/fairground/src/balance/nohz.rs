//! Balancing on behalf of idle CPUs whose tick is stopped (`CONFIG_NO_HZ_COMMON`).
//!
//! ```text
//! a CPU stops its tick            nohz_balance_enter_idle: joins nohz.idle_cpus_mask
//! its first busy tick after that  nohz_balancer_kick -> nohz_balance_exit_idle: leaves it
//! any busy tick                   nohz_balancer_kick: is there reason to balance for the idle?
//!                                 kick_ilb: flags for one idle CPU, and an IPI if it had none
//! that CPU                        nohz_csd_func, softirq, nohz_idle_balance: the domains of
//!                                 every idle CPU, its own last
//! ```
//!
//! Not modelled: capacity taken by interrupts or real-time tasks (`check_cpu_capacity` never
//! fires), asymmetric packing, housekeeping masks.

use super::domains::{sched_balance_domains, update_blocked};
use super::env::IdleType;
use crate::cx::Cx;
use crate::host::{Host, Kick};
use crate::place::{Access, Func, Kind, Object, rq as frq};
use crate::rq::{Rq, Rqs};
use crate::shared::{Relaxed, nohz_kick};
use crate::value::Cpu;

/// Time after which blocked load is decayed again, ms (the half-life of load tracking).
const LOAD_AVG_PERIOD_MS: u64 = 32;

/// The CPU stops its tick: it joins `nohz.idle_cpus_mask`.
pub fn nohz_balance_enter_idle<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let (sys, cpu) = (cx.sys, cx.cpu);
    if sys.topology.domains(cpu).is_empty() {
        return;
    }
    let rq = rqs.rq(cpu);
    cx.touch(rq.object(), frq::NOHZ_STATE, Access::Update);
    rq.has_blocked_load = true;
    let entered = !core::mem::replace(&mut rq.nohz_tick_stopped, true);
    rq.publish(sys);
    if entered {
        sys.nohz.set_idle(cpu, true, cx.host);
        count_busy(cx, cpu, false);
        sys.nohz.set_needs_update(true, cx.host);
    }
    sys.nohz.set_has_blocked(true, cx.host);
}

/// The CPU starts its tick again. It stays in the mask until its first busy tick
/// (`nohz_balancer_kick`), so that short bursts of work do not move the shared words.
pub fn nohz_tick_restart<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let _ = (cx, rqs);
}

/// At a tick: is there reason to balance for the idle CPUs, and whom to ask.
pub(crate) fn nohz_balancer_kick<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if rq.idle_balance {
        return;
    }
    let (sys, now) = (cx.sys, cx.jiffies());
    nohz_balance_exit_idle(cx, rq);
    if sys.nohz.nr_cpus(cx.host) == 0 {
        return;
    }
    let mut flags = 0;
    if sys.nohz.has_blocked(cx.host) && now > sys.nohz.next_blocked(cx.host) {
        flags = nohz_kick::STATS;
    }
    if now >= sys.nohz.next_balance(cx.host) && wants_balance(cx, rq) {
        flags = nohz_kick::STATS | nohz_kick::BALANCE;
    }
    if sys.nohz.needs_update(cx.host) {
        flags |= nohz_kick::NEXT;
    }
    if flags != 0 {
        cx.span(Func::KickIlb, |cx| kick_ilb(cx, flags));
    }
}

/// The kicked CPU takes its flags, and raises the softirq if it is still idle.
pub fn nohz_csd_func<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let (sys, cpu) = (cx.sys, cx.cpu);
    let all = nohz_kick::MASK | nohz_kick::NEWILB;
    let flags = sys.cpu[cpu.idx()].clear_nohz_flags(cpu, all, cx.host);
    debug_assert!(flags & nohz_kick::MASK != 0, "an IPI comes with flags");
    let rq = rqs.rq(cpu);
    cx.touch(
        rq.object(),
        frq::CURR | frq::NR_RUNNING | frq::TTWU_PENDING,
        Access::Read,
    );
    rq.idle_balance = sys.cpu[cpu.idx()].idle_cpu();
    if rq.idle_balance {
        rq.nohz_idle_balance = flags;
        cx.host.kick(cpu, Kick::BalanceSoftirq);
    }
}

/// In the softirq: balances on behalf of others if this CPU was asked to. True if so.
pub(super) fn nohz_idle_balance<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) -> bool {
    let rq = rqs.rq(cx.cpu);
    let flags = core::mem::take(&mut rq.nohz_idle_balance);
    if flags == 0 || !rq.idle_balance {
        return false;
    }
    cx.span(Func::NohzIdleBalance, |cx| {
        balance_idle_cpus(cx, rqs, flags)
    });
    true
}

/// In the idle loop: decays the blocked load of the idle CPUs if this one promised to when it
/// ran dry, and nobody has asked for more.
pub(crate) fn nohz_run_idle_balance<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    let flags = cx.sys.cpu[cpu.idx()].clear_nohz_flags(cpu, nohz_kick::NEWILB, cx.host);
    if flags == nohz_kick::NEWILB && !rqs.rq(cpu).need_resched {
        cx.span(Func::NohzIdleBalance, |cx| {
            balance_idle_cpus(cx, rqs, nohz_kick::STATS);
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
    let _ = sys.cpu[rq.cpu.idx()].or_nohz_flags(rq.cpu, nohz_kick::NEWILB, cx.host);
}

/// The first busy tick after idling: leaves the mask. That `NOHZ_STATE` is read, the trigger has
/// reported with what else it reads.
fn nohz_balance_exit_idle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if !rq.nohz_tick_stopped {
        return;
    }
    rq.nohz_tick_stopped = false;
    cx.touch(rq.object(), frq::NOHZ_STATE, Access::Write);
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

/// Whether the state of this CPU is reason for a balance for the idle ones; in the kernel's order.
fn wants_balance<H: Host>(cx: &mut Cx<H>, rq: &Rq) -> bool {
    cx.touch(rq.object(), frq::NR_RUNNING, Access::Read);
    if rq.nr_running >= 2 {
        return true;
    }
    if cx.sys.traits.asym_capacity {
        // Cache use does not matter there, only whether a task is too big for its CPU.
        cx.touch(rq.object(), frq::MISFIT, Access::Read);
        return rq.misfit_task_load != 0;
    }
    let topology = &cx.sys.topology;
    if topology.llc_domain(rq.cpu).is_none() {
        return false;
    }
    let llc = topology.llc_of[rq.cpu.idx()];
    cx.sys.llc[llc.idx()].nr_busy_cpus(llc, cx.host) > 1
}

/// Gives `flags` to an idle CPU (founding change 001), with an IPI if it had none.
fn kick_ilb<H: Host>(cx: &mut Cx<H>, flags: u32) {
    let sys = cx.sys;
    if flags & nohz_kick::BALANCE != 0 {
        // No other CPU asks before the next jiffy; refreshing statistics does not count.
        let next = cx.jiffies() + 1;
        sys.nohz.set_next_balance(next, cx.host);
    }
    let Some(ilb) = find_new_ilb(cx) else { return };
    let words = &sys.cpu[ilb.idx()];
    sys.nohz.kicks.fetch_add(1, Relaxed);
    if sys.features.ilb_kick.looks_first() && words.nohz_flags(ilb, cx.host) & flags == flags {
        sys.nohz.redundant_kicks.fetch_add(1, Relaxed);
        return;
    }
    let before = words.or_nohz_flags(ilb, flags, cx.host);
    if before & flags == flags {
        sys.nohz.redundant_kicks.fetch_add(1, Relaxed);
    }
    if before & nohz_kick::MASK == 0 {
        cx.host.kick(ilb, Kick::IdleBalance);
    }
}

/// An idle CPU of the mask other than this one.
fn find_new_ilb<H: Host>(cx: &mut Cx<H>) -> Option<Cpu> {
    let sys = cx.sys;
    let mask = sys.nohz.idle_cpus(cx.host);
    let start = sys.features.ilb_pick.start(cx.cpu);
    for cpu in mask.iter_wrap(start) {
        if cpu == cx.cpu {
            continue;
        }
        if read_idle_cpu(cx, cpu) {
            return Some(cpu);
        }
    }
    None
}

/// Balances, as `flags` say, for every idle CPU of the mask, this one last so that the others
/// get a chance to pull; stops when this CPU gets work to do (`_nohz_idle_balance`).
fn balance_idle_cpus<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, flags: u32) {
    let (sys, this_cpu, now) = (cx.sys, cx.cpu, cx.jiffies());
    let stats = flags & nohz_kick::STATS != 0;
    // Cleared first: a CPU that becomes idle from now on sets them again.
    if stats {
        sys.nohz.set_has_blocked(false, cx.host);
    }
    if flags & nohz_kick::NEXT != 0 {
        sys.nohz.set_needs_update(false, cx.host);
    }
    let mut has_blocked = false;
    let mut next_balance = None;
    let mask = sys.nohz.idle_cpus(cx.host);
    for cpu in mask.iter_wrap(Cpu(this_cpu.0 + 1)) {
        if !read_idle_cpu(cx, cpu) {
            continue;
        }
        if !sys.cpu[this_cpu.idx()].idle_cpu() && rqs.rq(this_cpu).need_resched {
            if flags & nohz_kick::NEXT != 0 {
                sys.nohz.set_needs_update(true, cx.host);
            }
            if stats || has_blocked {
                sys.nohz.set_has_blocked(true, cx.host);
            }
            return;
        }
        if stats {
            has_blocked |= update_nohz_stats(cx, rqs, cpu);
        }
        let due = balance_one(cx, rqs, cpu, flags);
        next_balance = Some(next_balance.map_or(due, |next: u64| next.min(due)));
    }
    if let Some(next) = next_balance {
        sys.nohz
            .set_next_balance(next.min(now + 60 * u64::from(sys.features.hz)), cx.host);
    }
    if stats {
        let later = ms_to_jiffies(cx, LOAD_AVG_PERIOD_MS);
        sys.nohz.set_next_blocked(now + later, cx.host);
    }
    if has_blocked {
        sys.nohz.set_has_blocked(true, cx.host);
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
    cx.read_rq(cpu, frq::NOHZ_STATE);
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
fn read_idle_cpu<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> bool {
    let object = Object {
        kind: Kind::Rq,
        a: cpu.0,
        b: 0,
    };
    let fields = frq::CURR | frq::NR_RUNNING | frq::TTWU_PENDING;
    cx.span(Func::IdleCpu, |cx| {
        cx.touch(object, fields, Access::Read);
        cx.sys.cpu[cpu.idx()].idle_cpu()
    })
}

/// Jiffies that last at least `ms`.
pub(super) fn ms_to_jiffies<H: Host>(cx: &Cx<H>, ms: u64) -> u64 {
    (ms * u64::from(cx.sys.features.hz)).div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Features, IlbKick, IlbPick};
    use crate::testing::Bench;
    use crate::topology::{CpuPlace, Machine, Topology};

    const FLAGS: u32 = nohz_kick::STATS | nohz_kick::BALANCE;

    /// Four CPUs with one cache; 1 and 3 are in tickless idle, 0 is busy.
    fn bench(features: Features) -> Bench {
        let cpus = (0..4).map(|core| CpuPlace {
            core,
            cluster: core,
            capacity: 1024,
            ..CpuPlace::default()
        });
        let topology = Topology::build(&Machine {
            cpus: cpus.collect(),
            ..Machine::default()
        });
        let mut bench = Bench::with(topology, features);
        for cpu in 0..4 {
            bench.on(cpu, |_, _| ());
        }
        for cpu in [1, 3] {
            bench.call(cpu, nohz_balance_enter_idle);
        }
        bench
    }

    fn count(bench: &Bench, access: Access) -> usize {
        let flags = |t: &&(Object, crate::place::Fields, Access)| {
            t.0.kind == Kind::Rq && t.1 == frq::NOHZ_FLAGS && t.2 == access
        };
        bench.host.touches.iter().filter(flags).count()
    }

    fn kick_three_times(ilb_kick: IlbKick) -> Bench {
        let mut bench = bench(Features {
            ilb_kick,
            ..Features::default()
        });
        bench.host.touches.clear();
        for _ in 0..3 {
            bench.on(0, |cx, _| kick_ilb(cx, FLAGS));
        }
        assert_eq!(bench.host.kicks, [(Cpu(1), Kick::IdleBalance)], "one IPI");
        assert_eq!(bench.sys.nohz.kicks.load(Relaxed), 3);
        assert_eq!(bench.sys.nohz.redundant_kicks.load(Relaxed), 2);
        bench
    }

    #[test]
    fn redundant_kicks_are_written_always() {
        let bench = kick_three_times(IlbKick::Always);
        assert_eq!(count(&bench, Access::CasLoop), 3);
        assert_eq!(count(&bench, Access::Read), 0);
    }

    #[test]
    fn redundant_kicks_are_skipped() {
        let bench = kick_three_times(IlbKick::SkipRedundant);
        assert_eq!(count(&bench, Access::CasLoop), 1);
        assert_eq!(count(&bench, Access::Read), 3);
    }

    #[test]
    fn a_kick_that_adds_a_bit_is_written() {
        let mut bench = bench(Features::default());
        bench.on(0, |cx, _| kick_ilb(cx, nohz_kick::STATS));
        bench.on(0, |cx, _| kick_ilb(cx, FLAGS));
        assert_eq!(bench.sys.nohz.redundant_kicks.load(Relaxed), 0);
        assert_eq!(bench.host.kicks.len(), 1, "the first owns the IPI");
        bench.call(1, nohz_csd_func);
        assert_eq!(bench.rqs[1].nohz_idle_balance, FLAGS);
        assert_eq!(bench.host.kicks[1], (Cpu(1), Kick::BalanceSoftirq));
    }

    #[test]
    fn the_search_may_start_at_the_kicker() {
        let mut bench = bench(Features {
            ilb_pick: IlbPick::Wrap,
            ..Features::default()
        });
        bench.on(2, |cx, _| kick_ilb(cx, FLAGS));
        assert_eq!(bench.host.kicks, [(Cpu(3), Kick::IdleBalance)]);
    }

    #[test]
    fn idle_cpus_are_counted_once_each_way() {
        let mut bench = bench(Features::default());
        let busy = |b: &mut Bench| b.sys.llc[0].nr_busy_cpus(LLC, &mut b.host);
        bench.call(1, nohz_balance_enter_idle);
        assert_eq!(bench.sys.nohz.nr_cpus(&mut bench.host), 2);
        assert_eq!(busy(&mut bench), 2);
        for _ in 0..2 {
            bench.on(1, nohz_balance_exit_idle);
        }
        assert_eq!(bench.sys.nohz.nr_cpus(&mut bench.host), 1);
        assert_eq!(busy(&mut bench), 3);
        assert_eq!(
            bench.sys.nohz.idle_cpus(&mut bench.host).first(),
            Some(Cpu(3))
        );
    }

    const LLC: crate::value::LlcId = crate::value::LlcId(0);
}

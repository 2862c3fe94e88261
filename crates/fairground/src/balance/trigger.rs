//! The tick's look at balancing: for this CPU, and on behalf of the idle ones.
//!
//! All CPUs tick at one instant, and what each asks for depends on words that all read and some
//! write. Each has them when its load is answered, and acts on what they are then, so the trigger
//! is cut where it waits: a host that has time between the pieces calls them one by one
//! ([`Later`](crate::sched::Later)).

use super::env::reduced_capacity;
use super::nohz::{nohz_balance_exit_idle, read_idle_cpu};
use crate::cx::Cx;
use crate::host::{Host, Kick, KickWork};
use crate::place::{Access, Fields, Func, cfs_rq as cf, rq as frq};
use crate::rq::{Rq, Rqs};
use crate::shared::nohz_kick;
use crate::value::{CfsId, Cpu};

/// What the trigger does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It begins: looks at the own queue, and reaches for the words of `nohz`.
    Begin,
    /// It has them: is there reason to ask (`nohz_balancer_kick`)?
    Decide,
    /// It asks for `flags` and has the mask of the idle: whom?
    Pick {
        /// `NOHZ_*` bits.
        flags: u32,
    },
    /// It has seen that `ilb` is idle, and reaches for its flags, on a line that has perhaps gone
    /// on to somebody else since.
    Reach {
        /// `NOHZ_*` bits.
        flags: u32,
        /// Who is asked.
        ilb: Cpu,
    },
    /// It has read the flags of `ilb`: is there anything new to ask for?
    Look {
        /// `NOHZ_*` bits.
        flags: u32,
        /// Who is asked.
        ilb: Cpu,
    },
    /// It has loaded the flags of `ilb`, and reaches for them to swap them.
    Swap {
        /// `NOHZ_*` bits.
        flags: u32,
        /// Who is asked.
        ilb: Cpu,
    },
    /// It has the line of the flags of `ilb`, and sets its own, if they are still those `seen`.
    Ask {
        /// `NOHZ_*` bits.
        flags: u32,
        /// Who is asked.
        ilb: Cpu,
        /// The flags when they were loaded.
        seen: u32,
    },
}

/// Where `sched_balance_trigger` of a tick begins: by [`Step::Begin`] if others may read and write
/// the same words meanwhile, or as a whole, because nobody is idle, or this CPU itself.
pub(crate) fn may_wait<H: Host>(cx: &Cx<H>) -> bool {
    let (sys, cpu) = (cx.sys, cx.cpu);
    let shares = sys.nohz.anybody() && !sys.topology.domains(cpu).is_empty();
    shares && !sys.cpu[cpu.idx()].idle_cpu()
}

/// One step of `sched_balance_trigger`; the next one.
pub(crate) fn sched_balance_trigger<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    step: Step,
) -> Option<Step> {
    let outer = match step {
        Step::Begin => cx.host.enter(Func::BalanceTrigger),
        _ => cx.host.reenter(Func::BalanceTrigger),
    };
    let cpu = cx.cpu;
    let next = match step {
        Step::Begin => cx.with_rq_lockless(rqs, cpu, begin),
        Step::Decide => cx.with_rq_lockless(rqs, cpu, nohz_balancer_kick),
        Step::Pick { .. }
        | Step::Reach { .. }
        | Step::Look { .. }
        | Step::Swap { .. }
        | Step::Ask { .. } => {
            let outer = cx.host.reenter(Func::KickIlb);
            let next = kick_ilb(cx, step);
            cx.host.leave(outer);
            next
        }
    };
    cx.host.leave(outer);
    next
}

/// Asks for the softirq when a balance of this CPU is due.
fn begin<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Option<Step> {
    let (sys, cpu) = (cx.sys, cx.cpu);
    let words = &sys.cpu[cpu.idx()];
    let idle_test = frq::CURR | frq::NR_RUNNING;
    rq.idle_balance = words.idle_cpu();
    cx.touch(rq.object(), frq::IDLE_BALANCE, Access::Write);
    if sys.topology.domains(cpu).is_empty() {
        cx.touch(rq.object(), idle_test, Access::Read);
        return None;
    }
    // The state of the tick is looked at by a busy CPU only.
    let tick = if rq.idle_balance {
        Fields(0)
    } else {
        frq::NOHZ_TICK
    };
    let due = words.next_balance_and(cpu, idle_test | tick, cx.host);
    if cx.jiffies() >= due {
        cx.host.kick(cpu, Kick::Run(KickWork::BalanceSoftirq));
    }
    if rq.idle_balance {
        return None;
    }
    nohz_balance_exit_idle(cx, rq);
    (sys.nohz.nr_cpus(cx.host) > 0).then_some(Step::Decide)
}

/// Is there reason to balance for the idle CPUs? Then reaches for who they are.
fn nohz_balancer_kick<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Option<Step> {
    let (sys, now) = (cx.sys, cx.jiffies());
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
    if flags == 0 {
        return None;
    }
    cx.span(Func::KickIlb, |cx| {
        if flags & nohz_kick::BALANCE != 0 {
            sys.nohz.begin_next_balance(cx.host);
        }
        sys.nohz.reach_idle_cpus(cx.host);
    });
    Some(Step::Pick { flags })
}

/// Whether the state of this CPU is reason for a balance for the idle ones; in the kernel's order.
fn wants_balance<H: Host>(cx: &mut Cx<H>, rq: &Rq) -> bool {
    cx.touch(rq.object(), frq::NR_RUNNING, Access::Read);
    if rq.nr_running >= 2 {
        return true;
    }
    if is_squeezed(cx, rq) {
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

/// Whether a fair task has to share this CPU with tasks of a higher class.
fn is_squeezed<H: Host>(cx: &mut Cx<H>, rq: &Rq) -> bool {
    let Some(lowest) = cx.sys.topology.domains(rq.cpu).first() else {
        return false;
    };
    cx.touch(rq.cfs_object(CfsId::ROOT), cf::NR_QUEUED, Access::Read);
    let root = &rq.cfs[0];
    let sleepers = cx.features().load_balance.counts.sleepers();
    let tasks = if sleepers {
        root.h_nr_queued
    } else {
        root.h_nr_runnable
    };
    if tasks == 0 {
        return false;
    }
    cx.touch(rq.object(), frq::CAPACITY, Access::Read);
    reduced_capacity(cx.sys, rq.cpu, lowest)
}

/// Gives flags to an idle CPU (patch `ilb-skip-redundant`), with an IPI if it had none.
fn kick_ilb<H: Host>(cx: &mut Cx<H>, step: Step) -> Option<Step> {
    let sys = cx.sys;
    match step {
        Step::Begin | Step::Decide => None,
        Step::Pick { flags } => {
            if flags & nohz_kick::BALANCE != 0 {
                // No other CPU asks before the next jiffy; refreshing statistics does not count.
                let next = cx.jiffies() + 1;
                sys.nohz.end_next_balance(next);
            }
            let ilb = find_new_ilb(cx)?;
            Some(Step::Reach { flags, ilb })
        }
        Step::Reach { flags, ilb } => {
            let looks_first = sys.features.ilb_kick.looks_first();
            let (how, next) = match looks_first {
                true => (Access::Read, Step::Look { flags, ilb }),
                false => (Access::CasLoad, Step::Swap { flags, ilb }),
            };
            sys.cpu[ilb.idx()].reach_nohz_flags(ilb, how, cx.host);
            Some(next)
        }
        Step::Look { flags, ilb } => {
            let words = &sys.cpu[ilb.idx()];
            if words.nohz_flags() & flags == flags {
                sys.nohz.count_kick(true);
                return None;
            }
            words.reach_nohz_flags(ilb, Access::CasLoad, cx.host);
            Some(Step::Swap { flags, ilb })
        }
        Step::Swap { flags, ilb } => {
            let words = &sys.cpu[ilb.idx()];
            let seen = words.nohz_flags();
            words.reach_nohz_flags(ilb, Access::CasSwap, cx.host);
            Some(Step::Ask { flags, ilb, seen })
        }
        Step::Ask { flags, ilb, seen } => {
            if !sys.cpu[ilb.idx()].swap_nohz_flags(seen, flags) {
                // What a failed swap brings is what the next one expects.
                return Some(Step::Swap { flags, ilb });
            }
            sys.nohz.count_kick(seen & flags == flags);
            if seen & nohz_kick::MASK == 0 {
                cx.host.kick(ilb, Kick::Run(KickWork::IdleBalance));
            }
            None
        }
    }
}

/// An idle CPU of the mask other than this one.
fn find_new_ilb<H: Host>(cx: &mut Cx<H>) -> Option<Cpu> {
    let sys = cx.sys;
    let mask = sys.nohz.idle_cpus();
    let start = sys.features.ilb_pick.start(cx.cpu);
    cx.host.begin_scan();
    let found = mask.iter_wrap(start).find(|&cpu| {
        cx.host.next_turn();
        cpu != cx.cpu && read_idle_cpu(cx, cpu)
    });
    cx.host.end_scan();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::nohz::nohz_balance_enter_idle;
    use crate::place::{Kind, Object};
    use crate::policy::{Features, IlbKick, IlbPick};
    use crate::sched::run_kick;
    use crate::shared::Relaxed;
    use crate::testing::{Bench, TestHost};

    const FLAGS: u32 = nohz_kick::STATS | nohz_kick::BALANCE;

    /// Four CPUs with one cache; 1 and 3 are in tickless idle, 0 is busy.
    fn bench(features: Features) -> Bench {
        let mut bench = Bench::nodes(1, 4, features);
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

    /// All that a CPU does to give `flags`.
    fn kick(cx: &mut Cx<TestHost>, flags: u32) {
        let mut step = Some(Step::Pick { flags });
        while let Some(now) = step {
            step = kick_ilb(cx, now);
        }
    }

    fn kick_three_times(ilb_kick: IlbKick) -> Bench {
        let mut bench = bench(Features {
            ilb_kick,
            ..Features::default()
        });
        bench.host.touches.clear();
        for _ in 0..3 {
            bench.on(0, |cx, _| kick(cx, FLAGS));
        }
        assert_eq!(
            bench.host.kicks,
            [(Cpu(1), Kick::Run(KickWork::IdleBalance))],
            "one IPI"
        );
        assert_eq!(bench.sys.nohz.kicks.load(Relaxed), 3);
        assert_eq!(bench.sys.nohz.redundant_kicks.load(Relaxed), 2);
        bench
    }

    #[test]
    fn redundant_kicks_are_written_always() {
        let bench = kick_three_times(IlbKick::Always);
        assert_eq!(count(&bench, Access::CasSwap), 3);
        assert_eq!(count(&bench, Access::CasLoad), 3);
        assert_eq!(count(&bench, Access::Read), 0);
    }

    #[test]
    fn redundant_kicks_are_skipped() {
        let bench = kick_three_times(IlbKick::SkipRedundant);
        assert_eq!(count(&bench, Access::CasSwap), 1);
        assert_eq!(count(&bench, Access::Read), 3);
    }

    #[test]
    fn a_swap_fails_if_another_came_between() {
        let mut bench = bench(Features {
            ilb_kick: IlbKick::Always,
            ..Features::default()
        });
        let mut step = Some(Step::Pick { flags: FLAGS });
        while !matches!(step, Some(Step::Ask { .. })) {
            bench.on(0, |cx, _| step = kick_ilb(cx, step.take().unwrap()));
        }
        bench.on(2, |cx, _| kick(cx, nohz_kick::STATS));
        assert_eq!(bench.sys.nohz.kicks.load(Relaxed), 1, "one is over");
        bench.host.touches.clear();
        while let Some(now) = step {
            bench.on(0, |cx, _| step = kick_ilb(cx, now));
        }
        assert_eq!(count(&bench, Access::CasSwap), 1, "once more");
        assert_eq!(count(&bench, Access::CasLoad), 0);
        assert_eq!(bench.host.kicks.len(), 1, "the other one owns the IPI");
        assert_eq!(bench.sys.cpu[1].nohz_flags(), FLAGS);
        assert_eq!(bench.sys.nohz.kicks.load(Relaxed), 2);
        assert_eq!(bench.sys.nohz.redundant_kicks.load(Relaxed), 0);
    }

    #[test]
    fn a_kick_that_adds_a_bit_is_written() {
        let mut bench = bench(Features::default());
        bench.on(0, |cx, _| kick(cx, nohz_kick::STATS));
        bench.on(0, |cx, _| kick(cx, FLAGS));
        assert_eq!(bench.sys.nohz.redundant_kicks.load(Relaxed), 0);
        assert_eq!(bench.host.kicks.len(), 1, "the first owns the IPI");
        bench.call(1, |cx, rqs| run_kick(cx, rqs, KickWork::IdleBalance));
        assert_eq!(bench.rqs[1].nohz_idle_balance, FLAGS);
        assert_eq!(
            bench.host.kicks[1],
            (Cpu(1), Kick::Run(KickWork::BalanceSoftirq))
        );
    }

    #[test]
    fn the_search_may_start_at_the_kicker() {
        let mut bench = bench(Features {
            ilb_pick: IlbPick::Wrap,
            ..Features::default()
        });
        bench.on(2, |cx, _| kick(cx, FLAGS));
        assert_eq!(
            bench.host.kicks,
            [(Cpu(3), Kick::Run(KickWork::IdleBalance))]
        );
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
        assert_eq!(bench.sys.nohz.idle_cpus().first(), Some(Cpu(3)));
    }

    const LLC: crate::value::LlcId = crate::value::LlcId(0);
}

//! Periodic balancing of one CPU over its domains.
//!
//! The tick asks for the softirq when the earliest domain is due; the softirq balances every
//! domain that is, from the smallest up. Jiffies are those of [`Features`](crate::policy).

use super::balance_rq::{sched_balance_rq, touch_sd};
use super::env::IdleType;
use super::interval::{Pace, get_sd_balance_interval};
use super::newidle::update_newidle_cost;
use super::nohz;
use crate::cx::Cx;
use crate::fair::blocked::update_blocked_averages;
use crate::host::Host;
use crate::place::{Access, Func, rq as frq, sd as fsd};
use crate::rq::Rqs;
use crate::shared::Relaxed;
use crate::system::System;
use crate::topology::SchedDomain;
use crate::value::Cpu;

/// The softirq: the own domains, unless this CPU was asked to balance for the idle ones, of whom it
/// is one. Then what it was asked for.
#[doc(alias = "run_rebalance_domains")]
pub fn sched_balance_softirq<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) -> Option<u32> {
    let cpu = cx.cpu;
    let (idle, flags) = cx.with_rq_lockless(rqs, cpu, |cx, rq| {
        cx.touch(rq.object(), frq::IDLE_BALANCE, Access::Read);
        let idle = if rq.idle_balance {
            IdleType::Idle
        } else {
            IdleType::Busy
        };
        (idle, nohz::nohz_idle_balance(rq))
    });
    if flags != 0 {
        cx.span(Func::NohzIdleBalance, nohz::begin_idle_cpus);
        return Some(flags);
    }
    update_blocked(cx, rqs, cpu);
    sched_balance_domains(cx, rqs, cpu, idle);
    None
}

/// How soon an idle CPU balances again, or one that is as good as that.
fn pace_of(sys: &System, cpu: Cpu, idle: bool) -> Pace {
    let sched_idle = sys.features.sched_idle_cpu && sys.cpu[cpu.idx()].sched_idle_cpu();
    match idle || sched_idle {
        true => Pace::Idle,
        false => Pace::Busy,
    }
}

/// Balances every domain of `cpu` that is due.
pub(super) fn sched_balance_domains<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    cpu: Cpu,
    idle: IdleType,
) {
    let outer = cx.host.enter(Func::BalanceDomains);
    let sys = cx.sys;
    let mut turn = Turn {
        idle,
        pace: pace_of(sys, cpu, idle.is_idle()),
        goes_on: true,
        next_balance: cx.jiffies() + 60 * u64::from(sys.features.hz),
        due_found: false,
    };
    let mut need_decay = false;
    let mut max_cost_ns = 0;
    for sd in sys.topology.domains(cpu) {
        let level = sd.level as usize;
        touch_sd(cx, cpu, level, fsd::NEWIDLE, Access::Read);
        let now = cx.jiffies();
        need_decay = update_newidle_cost(sd, 0, 0, now, sys.features.hz);
        if need_decay {
            touch_sd(cx, cpu, level, fsd::NEWIDLE, Access::Write);
        }
        max_cost_ns += sd.state.max_newidle_lb_cost.load(Relaxed);
        // Another CPU of the group balances this level; but the costs go on decaying.
        if !turn.goes_on {
            if need_decay {
                continue;
            }
            break;
        }
        balance_level(cx, rqs, cpu, sd, &mut turn);
    }
    let words = &sys.cpu[cpu.idx()];
    if need_decay {
        let cost_ns = sys.features.newidle.migration_cost_ns.max(max_cost_ns);
        words.set_max_idle_balance_cost(cpu, cost_ns, cx.host);
    }
    if turn.due_found {
        words.set_next_balance(cpu, turn.next_balance, cx.host);
    }
    cx.host.leave(outer);
}

/// Ages the load of what sleeps on `cpu` (`sched_balance_update_blocked_averages`).
pub(super) fn update_blocked<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, cpu: Cpu) {
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        update_blocked_averages(cx, rq);
    });
}

/// State of one walk over the domains.
struct Turn {
    idle: IdleType,
    pace: Pace,
    goes_on: bool,
    next_balance: u64,
    due_found: bool,
}

fn balance_level<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    cpu: Cpu,
    sd: &SchedDomain,
    turn: &mut Turn,
) {
    let sys = cx.sys;
    let level = sd.level as usize;
    touch_sd(cx, cpu, level, fsd::FIXED | fsd::LAST_BALANCE, Access::Read);
    let last = &sd.state.last_balance;
    let mut interval = get_sd_balance_interval(sys, sd, turn.pace);
    let asks = sd.flags.serialize && cx.features().load_balance.serialize.at_each_look();
    if !asks || sys.nohz.try_start_serialized(cx.host) {
        if cx.jiffies() >= last.load(Relaxed) + interval {
            let attempt = sched_balance_rq(cx, rqs, cpu, level, turn.idle);
            turn.goes_on = attempt.goes_on;
            if attempt.pulled > 0 {
                // Tasks may have gone to another CPU of the group, so look again.
                let words = &sys.cpu[cpu.idx()];
                let idle = words.idle_cpu();
                turn.idle = if idle { IdleType::Idle } else { IdleType::Busy };
                turn.pace = pace_of(sys, cpu, idle);
            }
            last.store(cx.jiffies(), Relaxed);
            touch_sd(cx, cpu, level, fsd::LAST_BALANCE, Access::Write);
            interval = get_sd_balance_interval(sys, sd, turn.pace);
        }
        if asks {
            sys.nohz.end_serialized(cx.host);
        }
    }
    let next = last.load(Relaxed) + interval;
    if next < turn.next_balance {
        turn.next_balance = next;
        turn.due_found = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::IdleType;
    use crate::place::{Kind, nohz as fnohz};
    use crate::policy::{Features, LbSerialize};
    use crate::testing::{Bench, TestHost};

    /// The level between two nodes.
    const NUMA: usize = 1;

    fn two_nodes(serialize: LbSerialize) -> Bench {
        let mut features = Features::default();
        features.load_balance.serialize = serialize;
        let mut bench = Bench::nodes(2, 2, features);
        bench.host.now = 10_000_000_000;
        for cpu in 0..4 {
            bench.on(cpu, |_, _| ());
        }
        let sd = &bench.sys.topology.domains(Cpu(0))[NUMA];
        assert!(sd.flags.serialize);
        bench
    }

    /// How often CPU 0 takes the word in `f`.
    fn takes(bench: &mut Bench, f: impl FnOnce(&mut Cx<TestHost>, &mut [crate::rq::Rq])) -> usize {
        bench.host.touches.clear();
        bench.call(0, |cx, rqs| f(cx, rqs));
        let word = |t: &&(crate::place::Object, crate::place::Fields, Access)| {
            t.0.kind == Kind::Nohz && t.1 == fnohz::BALANCE_RUNNING && t.2 == Access::Rmw
        };
        bench.host.touches.iter().filter(word).count()
    }

    #[test]
    fn the_word_of_nodes_is_taken_by_rule() {
        let rules = [
            (LbSerialize::EachLook, [1, 1, 0]),
            (LbSerialize::WhenDue, [1, 0, 0]),
            (LbSerialize::NewidleToo, [1, 0, 1]),
        ];
        for (rule, expect) in rules {
            let mut bench = two_nodes(rule);
            let look = |cx: &mut Cx<TestHost>, rqs: &mut [crate::rq::Rq]| {
                sched_balance_domains(cx, rqs, Cpu(0), IdleType::Idle);
            };
            let due = takes(&mut bench, look);
            let again = takes(&mut bench, look);
            let newidle = takes(&mut bench, |cx, rqs| {
                sched_balance_rq(cx, rqs, Cpu(0), NUMA, IdleType::NewlyIdle);
            });
            assert_eq!([due, again, newidle], expect, "{rule:?}");
        }
    }

    #[test]
    fn who_begins_while_another_is_at_it_leaves_it() {
        let mut bench = two_nodes(LbSerialize::NewidleToo);
        let searched = |bench: &mut Bench| {
            bench.host.entered.clear();
            takes(bench, |cx, rqs| {
                sched_balance_rq(cx, rqs, Cpu(0), NUMA, IdleType::NewlyIdle);
            });
            bench.host.entered.contains(&Func::UpdateSdLbStats)
        };
        let (from, to) = (bench.host.now, bench.host.now + 20_000);
        assert!(bench.sys.nohz.try_start_serialized(&mut bench.host));
        assert!(!searched(&mut bench), "held");
        bench.host.now = to;
        bench.sys.nohz.end_serialized(&mut bench.host);
        for (now, free) in [(from, false), (to - 1, false), (to, true)] {
            bench.host.now = now;
            assert_eq!(searched(&mut bench), free, "{}", now - from);
        }
    }
}

//! `schedule`: from the task that runs to the one that runs next.

use super::higher::runs_higher;
use super::resched_if;
use crate::balance::{newidle, nohz};
use crate::cx::Cx;
use crate::event::Event;
use crate::fair::task::touch_task;
use crate::fair::{Dequeue, hrtick, links, load, preempt, task, throttle};
use crate::host::Host;
use crate::place::{Access, Func, rq as frq, task as ftask};
use crate::rq::{Rq, Rqs};
use crate::select::update_idle_core;
use crate::shared::{OnRq, Relaxed};
use crate::task::{Prev, Switch, Task};
use crate::value::{Cpu, SeId};

/// Chooses who runs next on the executing CPU; `prev` says what becomes of the one that runs now.
///
/// A task that leaves goes back to the host (`Host::park`) before this returns, unless it sleeps
/// and stays queued as a delayed sleeper; then it goes back when it is picked, or is found by
/// [`wake_queued`](super::wake_queued). One that has exited goes on to [`task_dead`]. A CPU that
/// would run dry first looks for work elsewhere, with its queue unlocked; if it idles, the idle
/// loop begins with what that search has left.
///
/// While a task of a higher class runs here this is the wrong call: it then changes nothing, and
/// answers that this task goes on. The right ones are
/// [`switch_from_higher`](super::switch_from_higher) and
/// [`switch_to_higher`](super::switch_to_higher).
#[doc(alias = "__schedule")]
pub fn schedule<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, prev: Prev) -> Switch {
    let outer = cx.host.enter(Func::Schedule);
    let cpu = cx.cpu;
    let first = cx.with_rq(rqs, cpu, |cx, rq| begin(cx, rq, prev));
    let done = match first {
        First::Switched(switch) => switch,
        First::Dry { look_elsewhere } => {
            let mut look_elsewhere = look_elsewhere;
            loop {
                let found = look_elsewhere && newidle::sched_balance_newidle(cx, rqs) > 0;
                match cx.with_rq(rqs, cpu, |cx, rq| finish(cx, rq, found)) {
                    First::Switched(switch) => break switch,
                    First::Dry {
                        look_elsewhere: again,
                    } => look_elsewhere = again,
                }
            }
        }
    };
    cx.host.leave(outer);
    if done.next.is_none() {
        cx.span(Func::NohzRunIdle, |cx| nohz::nohz_run_idle_balance(cx, rqs));
    }
    done
}

/// The end of a task that is with the host (`task_dead_fair`): its load leaves the queue on which
/// it was last. One that has exited came with [`Host::park`], within the [`schedule`] that was told
/// of its exit ([`Prev::Exits`]); whoever keeps it must not wake it, but pass it here, from any
/// CPU.
///
/// Any other may end so too: one that sleeps, one from a list of remote wake-ups, one that was
/// never started, or one that [`deactivate_task`](super::deactivate_task) has taken off its queue.
/// After that its id may be given to a new task ([`Task::new`]).
pub fn task_dead<H: Host>(cx: &mut Cx<H>, mut task: Task) {
    let shared = &cx.sys.task[task.body.id.idx()];
    debug_assert_ne!(shared.on_rq(), OnRq::Queued, "a queue keeps it");
    let cpu = Cpu(shared.cpu.load(Relaxed));
    cx.span(Func::TaskDead, |cx| {
        load::remove_entity_load_avg(cx, &mut task, cpu);
    });
}

/// The running task offers its place (`sched_yield`). The host calls [`schedule`] next.
pub fn sched_yield<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    cx.span(Func::YieldTask, |cx| {
        cx.with_rq(rqs, cpu, |cx, rq| {
            // Nobody to give way to: not even the clock is read.
            if rq.curr.is_some() && rq.nr_running > 1 {
                let charges = preempt::yield_charges(cx, rq);
                if charges {
                    cx.update_rq_clock(rq);
                }
                preempt::yield_task_fair(cx, rq);
                rq.skip_clock |= charges;
            }
        });
    });
}

/// The running task is about to return to user space: a task of a throttled group takes itself
/// off the queue now (6.18) and asks for a switch, and what could wait until now is asked for
/// ([`Preemption::Lazy`](crate::policy::Preemption)).
///
/// From 6.18 on, so by default, nothing else stops it: without this call a quota does nothing. If a
/// switch is asked for, by then or by this, it comes first, and the call is made again when the
/// task has the CPU once more. A host without user mode calls it before any task's code goes on,
/// after whatever interrupted it.
pub fn exit_to_user<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    let (pending, asks) = cx.with_rq_lockless(rqs, cpu, |_, rq| {
        let running = rq.curr.and_then(|c| rq.body[c.idx()].as_ref());
        rq.need_resched |= core::mem::take(&mut rq.need_resched_lazy);
        // First the switch; the rest when the task has the CPU again (`exit_to_user_mode_loop`).
        let pending = !rq.need_resched && running.is_some_and(|b| b.throttle_work);
        let asks = rq.need_resched && !rq.resched_sent;
        rq.resched_sent |= asks;
        (pending, asks)
    });
    if asks {
        cx.host.resched(cpu);
    }
    if !pending {
        return;
    }
    cx.span(Func::ThrottleWork, |cx| {
        cx.with_rq(rqs, cpu, |cx, rq| {
            cx.update_rq_clock(rq);
            let answer = throttle::throttle_cfs_rq_work(cx, rq);
            resched_if(cx, rq, answer);
        });
    });
}

enum First {
    Switched(Switch),
    Dry { look_elsewhere: bool },
}

fn begin<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: Prev) -> First {
    // Else two classes would have the CPU.
    debug_assert!(rq.higher.is_none(), "a task of a higher class runs");
    if rq.higher.is_some() {
        let id = runs_higher(rq);
        return First::Switched(Switch { prev: id, next: id });
    }
    if !core::mem::take(&mut rq.skip_clock) {
        cx.update_rq_clock(rq);
    }
    cx.touch(rq.object(), frq::CURR | frq::NR_RUNNING, Access::Read);
    hrtick::hrtick_clear(cx, rq);
    if rq.curr.is_none() && rq.nr_running == 0 && cx.features().idle_switch.stays() {
        clear_tsk_need_resched(cx, rq);
        let (prev, next) = (None, None);
        return First::Switched(Switch { prev, next });
    }
    deactivate(cx, rq, prev);
    // Not `nr_running`: the entity of a group whose tasks have left may be queued still.
    if rq.cfs[0].nr_queued > 0 {
        let before = rq.curr;
        if let Some(next) = task::pick_next_task_fair(cx, rq, before) {
            return First::Switched(switch_to(cx, rq, before, Some(next)));
        }
    }
    clear_need_resched(rq);
    First::Dry {
        look_elsewhere: newidle::newidle_wanted(cx, rq),
    }
}

/// The running fair task leaves the queue if it does not stay runnable.
pub(super) fn deactivate<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: Prev) {
    let flags = match prev {
        Prev::Runnable => return,
        Prev::Sleeps => Dequeue::SLEEP,
        Prev::Stops | Prev::Exits => Dequeue::SLEEP | Dequeue::SPECIAL,
    };
    if let Some(curr) = rq.curr {
        let id = rq.task_id(curr);
        touch_task(cx, id, ftask::STATE, Access::Update);
        task::dequeue_task_fair(cx, rq, curr, flags);
    }
}

/// After the search. What it `found` may not be able to run: a task whose group is throttled as
/// soon as it arrives, or a delayed sleeper. Then the CPU has run dry once more.
fn finish<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, found: bool) -> First {
    cx.update_rq_clock(rq);
    let prev = rq.curr;
    let next = if rq.cfs[0].nr_queued > 0 {
        task::pick_next_task_fair(cx, rq, prev)
    } else {
        None
    };
    if next.is_none() && found && cx.features().newidle.looks_again() {
        return First::Dry {
            look_elsewhere: newidle::newidle_wanted(cx, rq),
        };
    }
    if next.is_none() {
        if let Some(prev) = prev {
            task::put_prev_task_fair(cx, rq, prev);
        }
        hrtick::hrtick_idle(cx, rq);
        rq.enter_idle();
    }
    First::Switched(switch_to(cx, rq, prev, next))
}

/// Makes `next` current, and gives `prev` to the host if it left the queue.
pub(super) fn switch_to<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    prev: Option<SeId>,
    next: Option<SeId>,
) -> Switch {
    let out = Switch {
        prev: prev.map(|s| rq.task_id(s)),
        next: next.map(|s| rq.task_id(s)),
    };
    clear_tsk_need_resched(cx, rq);
    rq.curr = next;
    let order = cx.features().load_balance.order;
    if let Some(next) = next.filter(|_| order.pick_reorders(prev == next)) {
        links::move_front(cx, rq, next);
    }
    if next.is_none() {
        update_idle_core(cx, rq.cpu);
    }
    if prev == next {
        return out;
    }
    let runnable = prev.is_some_and(|p| stays_runnable(rq, p));
    tell(cx, rq, out, runnable);
    if let Some(slot) = prev {
        block_if_gone(cx, rq, slot);
    }
    out
}

/// Whether a task that is switched out can go on: it waits, if only for the runtime of its group.
pub(super) fn stays_runnable(rq: &Rq, slot: SeId) -> bool {
    let throttled = rq.body[slot.idx()].as_ref().is_some_and(|b| b.throttled);
    throttled || (rq.se[slot.idx()].on_rq && !rq.se[slot.idx()].sched_delayed)
}

/// Who was switched out goes to the host if it has left the queue.
pub(super) fn block_if_gone<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, slot: SeId) {
    if !rq.se[slot.idx()].on_rq && !stays_runnable(rq, slot) {
        task::block_task(cx, rq, slot);
    }
}

/// A switch between two different tasks, one of which may be the idle task, is counted, told, and
/// seen in who is on a CPU.
pub(super) fn tell<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, switch: Switch, prev_runnable: bool) {
    rq.nr_switches += 1;
    cx.touch(rq.object(), frq::CURR | frq::NR_SWITCHES, Access::Update);
    cx.host.event(Event::Switch {
        cpu: rq.cpu,
        prev: switch.prev,
        prev_runnable,
        next: switch.next,
    });
    for (id, runs) in [(switch.next, true), (switch.prev, false)] {
        let Some(id) = id else { continue };
        cx.sys.task[id.idx()].on_cpu.store(runs, Relaxed);
        touch_task(cx, id, ftask::ON_CPU | ftask::THREAD, Access::Write);
    }
}

/// `clear_tsk_need_resched` of the task that is switched out, whether it was set or not.
pub(super) fn clear_tsk_need_resched<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    cx.touch(rq.curr_object(), ftask::THREAD_INFO, Access::Rmw);
    clear_need_resched(rq);
}

/// After the choice (`clear_tsk_need_resched`): what was asked for until now has been heeded, and
/// what was noticed while choosing was noticed in time. So is the clock that a switch need not have
/// read (the end of `__schedule`): the next one reads it.
fn clear_need_resched(rq: &mut Rq) {
    rq.need_resched = false;
    rq.need_resched_lazy = false;
    rq.resched_sent = false;
    rq.skip_clock = false;
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::policy::{Features, IdleSwitch};
    use crate::rq::HigherClass;
    use crate::sched::{self, HigherComes, ToRunning};
    use crate::task::{Prev, Switch, WakeKind};
    use crate::testing::Bench;
    use crate::value::{Cpu, TgId};

    /// Two tasks, of which the first runs and has had more than its share when it leaves: a sleep
    /// would be delayed.
    fn leaves(prev: Prev) -> Bench {
        let mut bench = Bench::new(1, Features::default());
        for _ in 0..2 {
            bench.start(0, TgId::ROOT);
        }
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        bench.host.now += 5_000_000;
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, prev));
        bench
    }

    #[test]
    fn only_a_sleep_is_delayed() {
        for (prev, parked) in [(Prev::Sleeps, 0), (Prev::Stops, 1), (Prev::Exits, 1)] {
            let bench = leaves(prev);
            assert_eq!(bench.host.parked.len(), parked, "{prev:?}");
            assert_eq!(bench.rqs[0].cfs[0].nr_queued as usize, 2 - parked);
        }
    }

    /// `exit_to_user_mode_loop` serves a request for a switch before other work.
    #[test]
    fn who_is_to_give_way_waits_for_quota_only_when_it_has_the_cpu_again() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        for _ in 0..2 {
            bench.start(0, tg);
        }
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        let runs = bench.rqs[0].curr.expect("one runs").idx();
        let set = |bench: &mut Bench, lazy| {
            bench.rqs[0].need_resched_lazy = lazy;
            bench.rqs[0].body[runs]
                .as_mut()
                .expect("a task")
                .throttle_work = true;
            bench.call(0, sched::exit_to_user);
            let left = bench.rqs[0].body[runs]
                .as_ref()
                .expect("a task")
                .throttle_work;
            (left, bench.rqs[0].need_resched)
        };
        assert_eq!(set(&mut bench, true), (true, true));
        bench.rqs[0].need_resched = false;
        assert!(!set(&mut bench, false).0);
    }

    /// A mistake of the host's, which debug assertions find.
    #[test]
    fn a_call_while_a_real_time_task_runs_changes_nothing() {
        let mut bench = Bench::new(1, Features::default());
        bench.start(0, TgId::ROOT);
        let id = bench.sys.add_task(TgId::ROOT);
        let _ = bench.call(0, |cx, rqs| {
            let (comes, waits) = (HigherComes::Woken, ToRunning::Waits);
            sched::enqueue_higher(cx, rqs, Cpu(0), id, comes, waits);
            sched::switch_to_higher(cx, rqs, Prev::Runnable, id)
        });
        let wrong =
            AssertUnwindSafe(|| bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Sleeps)));
        let goes_on = Switch {
            prev: Some(id),
            next: Some(id),
        };
        let answer = (!cfg!(debug_assertions)).then_some(goes_on);
        assert_eq!(catch_unwind(wrong).ok(), answer);
        let rq = &bench.rqs[0];
        assert_eq!(
            (rq.higher, rq.curr),
            (Some(HigherClass::RealTime(id)), None)
        );
        let switch = bench.call(0, |cx, rqs| {
            sched::switch_from_higher(cx, rqs, Prev::Sleeps)
        });
        assert_eq!((switch.prev, bench.rqs[0].nr_running), (Some(id), 1));
        assert!(switch.next.is_some());
    }

    #[test]
    fn an_idle_cpu_that_is_asked_in_vain_keeps_its_idle_period() {
        for (idle_switch, begun_anew) in [(IdleSwitch::Stays, 0), (IdleSwitch::Chooses, 5_000_000)]
        {
            let mut bench = leaves(Prev::Exits);
            bench.sys.features.idle_switch = idle_switch;
            let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Exits));
            let since = bench.rqs[0].idle_stamp;
            assert!(bench.rqs[0].curr.is_none() && since > 0);
            bench.host.now += 5_000_000;
            let switch = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
            assert_eq!((switch.prev, switch.next), (None, None));
            assert_eq!(bench.rqs[0].idle_stamp - since, begun_anew);
        }
    }

    #[test]
    fn who_was_stopped_is_woken_as_a_sleeper() {
        let mut bench = leaves(Prev::Stops);
        let mut task = bench.host.parked.pop().expect("at once");
        let (id, kind) = (task.body.id, WakeKind::Wake);
        bench.call(0, |cx, rqs| {
            assert!(!sched::wake_queued(cx, rqs, id, kind));
            let placed = sched::select_cpu(cx, &mut task, None, kind);
            assert_eq!(placed.cpu, Cpu(0));
            sched::enqueue_woken(cx, rqs, task, placed, kind);
        });
        assert_eq!(bench.rqs[0].nr_running, 2);
    }
}

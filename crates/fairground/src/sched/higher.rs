//! Classes above the fair one, which the host picks and runs: real-time and deadline tasks.
//!
//! The host has their queues, order and turns. What the fair class has to know of them is here: how
//! many are queued on a CPU, that one of them runs, and for how long.
//!
//! ```text
//! one is woken, or comes from another CPU     enqueue_higher on the CPU that the host has chosen
//! one that does not run leaves for another    dequeue_higher
//! one takes the CPU, from whomever            switch_to_higher
//! none is left to run                         switch_from_higher
//! ```

use super::switch::{block_if_gone, clear_tsk_need_resched, deactivate, stays_runnable, tell};
use crate::balance::newidle::account_idle_period;
use crate::balance::{newidle, nohz};
use crate::cx::Cx;
use crate::event::Event;
use crate::fair::others::update_rt_rq_load_avg;
use crate::fair::resched::{resched_curr, skip_clock};
use crate::fair::task::add_nr_running;
use crate::fair::{hrtick, links, task};
use crate::host::Host;
use crate::place::{Access, Func, rq as frq, task as ftask};
use crate::rq::{HigherClass, Rq, Rqs};
use crate::select::update_idle_core;
use crate::shared::{OnRq, Relaxed};
use crate::task::{Prev, Switch};
use crate::value::{Cpu, TaskId};

/// How a task of a higher class comes to a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HigherComes {
    /// It was woken.
    Woken,
    /// It is new.
    New,
    /// The host has moved it here.
    Moved,
}

/// What a queued task of a higher class means to another of these classes that runs there; a fair
/// task gives way to any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToRunning {
    /// It is to run at once.
    Preempts,
    /// It waits for its turn.
    Waits,
}

/// A task of a higher class is queued on `cpu`, by the executing CPU.
///
/// One that was a fair task has left its queue before
/// ([`deactivate_task`](super::deactivate_task)); only if it runs on `cpu` it leaves by the
/// [`switch_to_higher`] that follows, with [`Prev::Stops`]. Its load goes with
/// [`task_dead`](super::task_dead); if it becomes a fair one again, it comes as a new one.
pub fn enqueue_higher<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    cpu: Cpu,
    id: TaskId,
    comes: HigherComes,
    to_running: ToRunning,
) {
    let outer = cx.host.enter(Func::TtwuDoActivate);
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        let shared = &cx.sys.task[id.idx()];
        debug_assert!(
            shared.on_rq() != OnRq::Queued || rq.curr.is_some_and(|slot| rq.task_id(slot) == id),
            "a fair queue keeps it"
        );
        shared.cpu.store(cpu.0, Relaxed);
        add_nr_running(cx, rq, 1);
        if to_running == ToRunning::Preempts || rq.higher.is_none() {
            resched_curr(cx, rq);
        }
        skip_clock(rq);
        match comes {
            HigherComes::Woken => {
                cx.host.event(Event::Wakeup { task: id, cpu });
                account_idle_period(cx, rq);
            }
            HigherComes::New => cx.host.event(Event::WakeupNew { task: id, cpu }),
            HigherComes::Moved => {}
        }
    });
    cx.host.leave(outer);
}

/// A task of a higher class that waits on `cpu` leaves that queue.
pub fn dequeue_higher<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, cpu: Cpu) {
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        sub_nr_running(cx, rq);
    });
}

/// The executing CPU is asked for a switch for reasons of the host's: the turn of a task of a
/// higher class is over, or fair tasks are to run for a while.
pub fn resched_higher<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| resched_curr(cx, rq));
}

/// The executing CPU goes over to `next`, a queued task of a higher class, from whoever has it;
/// what becomes of that one is `prev`.
#[must_use = "who was switched out may have to be told"]
pub fn switch_to_higher<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    prev: Prev,
    next: TaskId,
) -> Switch {
    let cpu = cx.cpu;
    let outer = cx.host.enter(Func::Schedule);
    let switch = cx.with_rq(rqs, cpu, |cx, rq| {
        if !core::mem::take(&mut rq.skip_clock) {
            cx.update_rq_clock(rq);
        }
        hrtick::hrtick_clear(cx, rq);
        take_over(cx, rq, prev, next)
    });
    cx.host.leave(outer);
    switch
}

fn take_over<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: Prev, next: TaskId) -> Switch {
    let (from, slot) = (runs_higher(rq), rq.curr);
    if from.is_some() {
        put_higher(cx, rq, prev);
    } else {
        deactivate(cx, rq, prev);
        if let Some(slot) = slot {
            task::put_prev_task_fair(cx, rq, slot);
        }
        // What the CPU did until now was nothing of this class.
        update_rt_rq_load_avg(cx, rq, false);
    }
    let switch = Switch {
        prev: from.or(slot.map(|slot| rq.task_id(slot))),
        next: Some(next),
    };
    clear_tsk_need_resched(cx, rq);
    rq.curr = None;
    rq.higher = Some(HigherClass::RealTime(next));
    if switch.prev != switch.next {
        let runnable = slot.map_or(prev == Prev::Runnable, |slot| stays_runnable(rq, slot));
        tell(cx, rq, switch, runnable);
    }
    // A running task that leaves the fair class for a higher one goes to the host, too.
    if let Some(slot) = slot {
        block_if_gone(cx, rq, slot);
    }
    switch
}

/// The executing CPU goes from a task of a higher class, of which it has none any more that is to
/// run, to whom the fair queue picks, having looked for work elsewhere if it has run dry. What
/// becomes of the former is `prev`.
#[must_use = "the host must run the task"]
pub fn switch_from_higher<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    prev: Prev,
) -> Switch {
    let cpu = cx.cpu;
    let outer = cx.host.enter(Func::Schedule);
    let first = cx.with_rq(rqs, cpu, |cx, rq| {
        if !core::mem::take(&mut rq.skip_clock) {
            cx.update_rq_clock(rq);
        }
        put_higher(cx, rq, prev);
        // As `balance_fair` has it: the queue, not what it gives. With only delayed sleepers left
        // the CPU goes idle without a search.
        match rq.cfs[0].nr_queued == 0 && newidle::newidle_wanted(cx, rq) {
            true => None,
            false => Some(hand_back(cx, rq, prev)),
        }
    });
    end_switch(cx, rqs, outer, first, |cx, rq| hand_back(cx, rq, prev))
}

/// The end of a switch from a class above, within which the host is since `outer`: to whom the
/// queue gave in the `first` look, or else `again` after a search. What is found and cannot run is
/// left.
pub(super) fn end_switch<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    outer: Func,
    first: Option<Switch>,
    again: impl FnOnce(&mut Cx<H>, &mut Rq) -> Switch,
) -> Switch {
    let switch = match first {
        Some(switch) => switch,
        None => {
            let cpu = cx.cpu;
            newidle::sched_balance_newidle(cx, rqs);
            cx.with_rq(rqs, cpu, |cx, rq| {
                cx.update_rq_clock(rq);
                again(cx, rq)
            })
        }
    };
    cx.host.leave(outer);
    if switch.next.is_none() {
        cx.span(Func::NohzRunIdle, |cx| nohz::nohz_run_idle_balance(cx, rqs));
    }
    switch
}

/// From the higher class to whom the queue picks.
fn hand_back<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: Prev) -> Switch {
    let next = if rq.cfs[0].nr_queued > 0 {
        task::pick_next_task_fair(cx, rq, None)
    } else {
        None
    };
    if let Some(next) = next.filter(|_| cx.features().load_balance.order.pick_reorders(false)) {
        links::move_front(cx, rq, next);
    }
    clear_tsk_need_resched(cx, rq);
    let from = runs_higher(rq);
    (rq.higher, rq.curr) = (None, next);
    if next.is_none() {
        hrtick::hrtick_idle(cx, rq);
        rq.enter_idle();
        update_idle_core(cx, rq.cpu);
    }
    let switch = Switch {
        prev: from,
        next: next.map(|slot| rq.task_id(slot)),
    };
    tell(cx, rq, switch, prev == Prev::Runnable);
    switch
}

/// From the stopper back to the task that it has interrupted.
pub(super) fn go_on<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, id: TaskId) -> Switch {
    rq.higher = Some(HigherClass::RealTime(id));
    update_rt_rq_load_avg(cx, rq, false);
    Switch {
        prev: Some(id),
        next: Some(id),
    }
}

/// The task of a higher class that runs here.
pub(super) fn runs_higher(rq: &Rq) -> Option<TaskId> {
    match rq.higher {
        Some(HigherClass::RealTime(id)) => Some(id),
        Some(HigherClass::Stop) | None => None,
    }
}

/// The task of a higher class that runs here is put back into the host's queue, or leaves it
/// (`put_prev_task_rt`).
pub(super) fn put_higher<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: Prev) {
    update_rt_rq_load_avg(cx, rq, true);
    if prev != Prev::Runnable {
        sub_nr_running(cx, rq);
    }
    if let Some(id) = runs_higher(rq) {
        task::touch_task(cx, id, ftask::STATE, Access::Read);
    }
}

fn sub_nr_running<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    cx.touch(rq.object(), frq::NR_RUNNING, Access::Update);
    debug_assert!(
        rq.nr_running > rq.cfs[0].h_nr_queued,
        "nobody of a higher class is here"
    );
    // A call too many must not take away a fair task's place in the count.
    rq.nr_running = rq.nr_running.saturating_sub(1).max(rq.cfs[0].h_nr_queued);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::stats::update_group_capacity;
    use crate::fair::blocked::update_blocked_averages;
    use crate::host::StopWork;
    use crate::policy::Features;
    use crate::sched;
    use crate::testing::Bench;
    use crate::value::TgId;

    const MS: u64 = 1_000_000;

    /// A real-time task of the host's, queued on CPU 0.
    fn real_time(bench: &mut Bench) -> TaskId {
        let id = bench.sys.add_task(TgId::ROOT);
        bench.call(0, |cx, rqs| {
            enqueue_higher(cx, rqs, Cpu(0), id, HigherComes::Woken, ToRunning::Waits);
        });
        id
    }

    fn to_higher(bench: &mut Bench, prev: Prev, next: TaskId) -> Switch {
        bench.call(0, |cx, rqs| switch_to_higher(cx, rqs, prev, next))
    }

    fn from_higher(bench: &mut Bench, prev: Prev) -> Switch {
        bench.call(0, |cx, rqs| switch_from_higher(cx, rqs, prev))
    }

    /// A fair task that becomes a real-time one where it runs, and later a fair one again.
    #[test]
    fn who_leaves_the_fair_class_while_it_runs_goes_to_the_host_and_takes_its_load_along() {
        let mut bench = Bench::new(1, Features::default());
        let id = bench.start(0, TgId::ROOT);
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        bench.host.now += 30 * MS;
        bench.call(0, |cx, rqs| {
            enqueue_higher(cx, rqs, Cpu(0), id, HigherComes::Moved, ToRunning::Waits);
        });
        let switch = to_higher(&mut bench, Prev::Stops, id);
        assert_eq!((switch.prev, switch.next), (Some(id), Some(id)));
        assert_eq!(bench.rqs[0].cfs[0].h_nr_queued, 0);
        assert_eq!(bench.sys.task[id.idx()].on_rq(), OnRq::No);
        let task = bench.host.parked.pop().expect("it is with the host");
        assert_eq!(task.body.id, id);
        assert!(task.se.avg.util_avg > 0);
        bench.call(0, |cx, _| sched::task_dead(cx, task));
        bench.host.now += MS;
        let switch = from_higher(&mut bench, Prev::Sleeps);
        assert_eq!((switch.prev, switch.next), (Some(id), None));
        assert_eq!(bench.rqs[0].nr_running, 0);
    }

    #[test]
    fn a_fair_task_waits_for_the_real_time_one_and_is_not_charged() {
        let mut bench = Bench::new(1, Features::default());
        let fair = bench.start(0, TgId::ROOT);
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        bench.host.now += MS;
        bench.host.rescheds.clear();
        let id = real_time(&mut bench);
        assert_eq!(bench.host.rescheds, [Cpu(0)]);
        assert_eq!(bench.rqs[0].nr_running, 2);
        let switch = to_higher(&mut bench, Prev::Runnable, id);
        assert_eq!((switch.prev, switch.next), (Some(fair), Some(id)));
        let told = bench.host.events.last();
        assert!(matches!(
            told,
            Some(Event::Switch {
                prev_runnable: true,
                ..
            })
        ));
        // Nor does another fair one preempt it, or the CPU look idle.
        bench.host.now += 3 * MS;
        bench.start(0, TgId::ROOT);
        assert!(!bench.rqs[0].need_resched && !bench.sys.cpu[0].idle_cpu());
        assert!(bench.sys.task[id.idx()].on_cpu.load(Relaxed));
        bench.host.now += MS;
        let switch = from_higher(&mut bench, Prev::Sleeps);
        assert_eq!(switch.prev, Some(id));
        assert!(switch.next.is_some() && bench.rqs[0].higher.is_none());
        assert_eq!(bench.rqs[0].nr_running, 2);
        let slot = bench.sys.task[fair.idx()].slot.load(Relaxed) as usize;
        assert_eq!(bench.rqs[0].se[slot].sum_exec_runtime, MS);
    }

    #[test]
    fn who_sleeps_when_a_real_time_task_takes_over_goes_to_the_host() {
        let mut bench = Bench::new(1, Features::default());
        bench.start(0, TgId::ROOT);
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        let id = real_time(&mut bench);
        let _ = to_higher(&mut bench, Prev::Sleeps, id);
        assert_eq!((bench.host.parked.len(), bench.rqs[0].nr_running), (1, 1));
        let switch = from_higher(&mut bench, Prev::Exits);
        assert_eq!((switch.next, bench.rqs[0].nr_running), (None, 0));
        assert!(bench.rqs[0].is_idle() && bench.sys.cpu[0].idle_cpu());
    }

    #[test]
    fn what_real_time_tasks_use_is_taken_off_the_capacity_and_comes_back() {
        let mut bench = Bench::nodes(1, 2, Features::default());
        let id = real_time(&mut bench);
        let _ = to_higher(&mut bench, Prev::Runnable, id);
        for _ in 0..32 {
            bench.host.now += MS;
            bench.call(0, sched::sched_tick);
        }
        let capacity = |bench: &mut Bench| {
            bench.call(0, |cx, _| {
                let sd = &cx.sys.topology.domains(Cpu(0))[0];
                update_group_capacity(cx, sd, Cpu(0), 1);
                let group = cx.sys.topology.group(sd.groups[0]);
                let own = cx.sys.cpu[0].capacity.load(Relaxed);
                assert_eq!(group.state.capacity.load(Relaxed), own);
                own
            })
        };
        // 32 ms are the half-life of the average.
        let left = capacity(&mut bench);
        assert!((490..=534).contains(&left), "{left}");
        let _ = from_higher(&mut bench, Prev::Sleeps);
        // As the stopped tick leaves it.
        bench.rqs[0].has_blocked_load = true;
        bench.on(0, update_blocked_averages);
        assert!(bench.rqs[0].has_blocked_load);
        bench.host.now += 1000 * MS;
        bench.on(0, |cx, rq| {
            cx.update_rq_clock(rq);
            update_blocked_averages(cx, rq);
        });
        assert!(!bench.rqs[0].has_blocked_load);
        assert_eq!(capacity(&mut bench), 1024);
    }

    #[test]
    fn the_stopper_hands_back_to_whom_it_interrupts() {
        let mut bench = Bench::nodes(1, 2, Features::default());
        bench.start(0, TgId::ROOT);
        let id = real_time(&mut bench);
        let _ = to_higher(&mut bench, Prev::Runnable, id);
        let switch = bench.call(0, |cx, rqs| sched::run_stopper(cx, rqs, StopWork::Migrate));
        assert_eq!((switch.prev, switch.next), (Some(id), Some(id)));
        assert_eq!(bench.rqs[0].higher, Some(HigherClass::RealTime(id)));
        assert_eq!(bench.rqs[0].curr, None);
    }

    #[test]
    fn one_real_time_task_follows_another() {
        let mut bench = Bench::new(1, Features::default());
        let [a, b] = [(); 2].map(|()| real_time(&mut bench));
        let _ = to_higher(&mut bench, Prev::Runnable, a);
        let switch = to_higher(&mut bench, Prev::Runnable, b);
        assert_eq!((switch.prev, switch.next), (Some(a), Some(b)));
        assert_eq!((bench.rqs[0].nr_running, bench.rqs[0].nr_switches), (2, 2));
        let switch = to_higher(&mut bench, Prev::Sleeps, a);
        assert_eq!((switch.prev, bench.rqs[0].nr_running), (Some(b), 1));
        bench.call(0, |cx, rqs| dequeue_higher(cx, rqs, Cpu(0)));
        assert_eq!(bench.rqs[0].nr_running, 0);
    }
}

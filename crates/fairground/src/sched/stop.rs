//! The stopper: work that needs the running task out of the way.

use super::higher;
use super::switch::switch_to;
use crate::balance::stopper::stopper_sleeps;
use crate::balance::{active, newidle};
use crate::cx::Cx;
use crate::event::{Event, Migration};
use crate::fair::keep::{attach_moved, detach_for_move, is_movable};
use crate::fair::{hrtick, links, task};
use crate::host::{Host, StopWork};
use crate::place::{Access, Func, task as ftask};
use crate::rq::{HigherClass, Rq, Rqs};
use crate::select::update_idle_core;
use crate::shared::{OnRq, Relaxed};
use crate::task::{Placed, Prev, Switch};
use crate::value::{Cpu, SeId, TaskId};

/// Runs the stopper on the executing CPU: puts the running task back into its queue, does
/// `work`, and picks again, having looked for work elsewhere if the CPU has run dry. One run does
/// all that was asked for with that kind of work.
///
/// A task of a higher class that it interrupts gets the CPU back, and a switch that was asked for
/// is still to come. From a fair task or the idle one it goes to whom the fair queue picks, and the
/// request is spent: a host in whose own queue a task waits for this CPU switches to that next.
pub fn run_stopper<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    work: StopWork,
) -> Switch {
    let cpu = cx.cpu;
    let outer = cx.host.enter(Func::Schedule);
    let (prev, below) = cx.with_rq(rqs, cpu, put_off);
    cx.host.leave(outer);
    match work {
        StopWork::ActiveBalance => active::active_load_balance_push(cx, rqs),
        StopWork::Migrate => migrate_disallowed(cx, rqs),
    }
    let outer = cx.host.enter(Func::Schedule);
    let first = cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        stopper_sleeps(cx, rq);
        if let Some(id) = below {
            return Some(higher::go_on(cx, rq, id));
        }
        // A sleeper that is still queued counts (`balance_fair`), though it will not be picked.
        match rq.cfs[0].nr_queued == 0 && newidle::newidle_wanted(cx, rq) {
            true => None,
            false => Some(go_on(cx, rq, prev)),
        }
    });
    higher::end_switch(cx, rqs, outer, first, |cx, rq| go_on(cx, rq, prev))
}

/// The stopper takes the CPU from the fair task that runs, or else from one of a class between.
fn put_off<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> (Option<(SeId, TaskId)>, Option<TaskId>) {
    // The switch to the stopper is one like any other.
    if !core::mem::take(&mut rq.skip_clock) {
        cx.update_rq_clock(rq);
    }
    hrtick::hrtick_clear(cx, rq);
    let (prev, below) = (rq.curr, higher::runs_higher(rq));
    if let Some(slot) = prev {
        task::put_prev_task_fair(cx, rq, slot);
    }
    if below.is_some() {
        higher::put_higher(cx, rq, Prev::Runnable);
    }
    // The switch to the stopper heeds what was asked of the task that ran.
    cx.touch(rq.curr_object(), ftask::THREAD_INFO, Access::Rmw);
    let out = prev.map(|slot| (slot, rq.task_id(slot)));
    if out.is_some() || below.is_some() {
        rq.curr = None;
        rq.higher = Some(HigherClass::Stop);
    }
    (out, below)
}

/// From the stopper to whom the queue picks; `prev` ran before it.
fn go_on<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: Option<(SeId, TaskId)>) -> Switch {
    rq.higher = None;
    let next = if rq.cfs[0].nr_queued > 0 {
        task::pick_next_task_fair(cx, rq, None)
    } else {
        None
    };
    // The one that ran may have left for another CPU, and even have been pulled back by the search:
    // then it has been switched out. If it has stayed, this is its switch.
    let is_here = |(slot, id): &(SeId, TaskId)| {
        let stayed = cx.sys.task[id.idx()].on_cpu.load(Relaxed);
        stayed && rq.body[slot.idx()].as_ref().is_some_and(|b| b.id == *id)
    };
    let here = prev.filter(is_here).map(|(slot, _)| slot);
    let order = cx.features().load_balance.order;
    if let Some(next) = next.filter(|_| order.pick_reorders(false)) {
        // Also whom the stopper has interrupted.
        links::move_front(cx, rq, next);
    }
    let out = switch_to(cx, rq, here, next);
    if next.is_none() {
        hrtick::hrtick_idle(cx, rq);
        rq.enter_idle();
        if here.is_none() {
            // From the stopper to the idle task.
            update_idle_core(cx, rq.cpu);
            rq.nr_switches += 1;
            cx.host.event(Event::Switch {
                cpu: rq.cpu,
                prev: None,
                prev_runnable: false,
                next: None,
            });
        }
    }
    Switch {
        prev: prev.map(|(_, id)| id),
        ..out
    }
}

/// Moves away every task of the executing CPU that is not allowed here any more, or that wants to
/// replace its image elsewhere.
fn migrate_disallowed<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let outer = cx.host.enter(Func::MigrationStop);
    let from = cx.cpu;
    loop {
        let moved = cx.with_rq(rqs, from, |cx, rq| {
            let (slot, to, why) = next_to_move(cx, rq)?;
            detach_for_move(cx, rq, slot, to).map(|task| (task, to, why))
        });
        let Some((task, to, why)) = moved else { break };
        let placed = Placed {
            cpu: to,
            migrated: true,
        };
        cx.with_rq(rqs, placed.cpu, |cx, rq| {
            cx.update_rq_clock(rq);
            attach_moved(cx, rq, task, from, why);
        });
    }
    cx.host.leave(outer);
}

fn next_to_move<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Option<(SeId, Cpu, Migration)> {
    let replaces_image = rq.exec_dest.take();
    if let Some((slot, to)) = replaces_image.and_then(|(id, to)| still_goes(cx, rq, id, to)) {
        return Some((slot, to, Migration::Placement));
    }
    let (cpu, all) = (rq.cpu, cx.sys.cpus());
    let (slot, allowed, chosen) = rq.body.iter().enumerate().find_map(|(slot, body)| {
        let (slot, body) = (SeId(slot as u32), body.as_ref()?);
        let goes = !body.cpus_allowed.has(cpu) && is_movable(rq, slot);
        goes.then(|| (slot, body.cpus_allowed.and(&all), body.dest_cpu))
    })?;
    let to = match chosen {
        Some(to) if allowed.has(to) => to,
        // The host gave it its mask, and then this CPU.
        _ => cx.sys.cpu[cx.cpu.idx()].any_and_distribute(&allowed)?,
    };
    Some((slot, to, Migration::Affinity))
}

/// The slot of a task that asked for CPU `to`, if it is still here, can be moved, and may be there
/// (`migration_cpu_stop`, `is_cpu_allowed`).
fn still_goes<H: Host>(cx: &Cx<H>, rq: &Rq, id: TaskId, to: Cpu) -> Option<(SeId, Cpu)> {
    let shared = &cx.sys.task[id.idx()];
    let here = shared.on_rq() == OnRq::Queued && shared.cpu.load(Relaxed) == rq.cpu.0;
    let slot = SeId(shared.slot.load(Relaxed));
    let slot = rq.slot_of(id, slot).filter(|_| here)?;
    let body = rq.body[slot.idx()].as_ref()?;
    (body.cpus_allowed.has(to) && is_movable(rq, slot)).then_some((slot, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Features, LbOrder};
    use crate::sched;
    use crate::testing::Bench;
    use crate::value::{CpuMask, TaskId, TgId};

    /// `n` tasks on CPU 0 of two, the first of which runs.
    fn crowd(n: usize) -> (Bench, alloc::vec::Vec<TaskId>) {
        let mut bench = Bench::new(2, Features::default());
        let ids = (0..n).map(|_| bench.start(0, TgId::ROOT)).collect();
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        (bench, ids)
    }

    /// CPU 0 of two, on which a task replaces its image and waits for the stopper, and two others.
    fn replaces_its_image() -> (Bench, alloc::vec::Vec<TaskId>) {
        let (mut bench, ids) = crowd(3);
        let curr = bench.rqs[0].curr_task();
        assert_eq!(curr, Some(ids[0]));
        // What the search would find on a machine with domains.
        bench.rqs[0].exec_dest = Some((ids[0], Cpu(1)));
        (bench, ids)
    }

    fn cpu_of(bench: &Bench, id: TaskId) -> u32 {
        bench.sys.task[id.idx()].cpu.load(Relaxed)
    }

    #[test]
    fn who_replaces_its_image_goes_where_it_may_be_when_the_stopper_comes() {
        for (allowed, cpu) in [(CpuMask::first_n(2), 1), (CpuMask::first_n(1), 0)] {
            let (mut bench, ids) = replaces_its_image();
            let moved = bench.call(0, |cx, rqs| sched::set_affinity(cx, rqs, ids[0], allowed));
            assert_eq!(moved, sched::Moved::Stays);
            let _ = bench.call(0, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
            assert_eq!(cpu_of(&bench, ids[0]), cpu);
        }
    }

    #[test]
    fn the_next_in_its_slot_stays() {
        let (mut bench, ids) = replaces_its_image();
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Exits));
        let next = bench.start(0, TgId::ROOT);
        let slot = |bench: &Bench, id: TaskId| bench.sys.task[id.idx()].slot.load(Relaxed);
        assert_eq!(slot(&bench, next), slot(&bench, ids[0]));
        let _ = bench.call(0, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
        assert_eq!((cpu_of(&bench, next), bench.rqs[0].nr_running), (0, 3));
    }

    /// Kicks of one kind may be merged, so one run does all that was asked for.
    #[test]
    fn a_request_that_is_void_does_not_hide_another() {
        let (mut bench, ids) = replaces_its_image();
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Sleeps));
        let curr = bench.rqs[0].curr_task().expect("two are left");
        assert_ne!(curr, ids[0]);
        let elsewhere: CpuMask = core::iter::once(Cpu(1)).collect();
        let moved = bench.call(0, |cx, rqs| sched::set_affinity(cx, rqs, curr, elsewhere));
        assert_eq!(moved, sched::Moved::Asked);
        let _ = bench.call(0, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
        assert_eq!(cpu_of(&bench, curr), 1);
    }

    /// `balance_fair` for the stopper's own `schedule`: it stamps the beginning of the idle time.
    #[test]
    fn a_cpu_that_the_stopper_leaves_dry_looks_for_work() {
        let (mut bench, ids) = crowd(1);
        let elsewhere: CpuMask = core::iter::once(Cpu(1)).collect();
        let moved = bench.call(0, |cx, rqs| sched::set_affinity(cx, rqs, ids[0], elsewhere));
        assert_eq!(moved, sched::Moved::Asked);
        bench.host.events.clear();
        let switch = bench.call(0, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
        assert_eq!((switch.prev, switch.next), (Some(ids[0]), None));
        assert_eq!(bench.rqs[1].nr_running, 1);
        assert_ne!(bench.rqs[0].idle_stamp, 0);
        assert!(bench.host.entered.contains(&Func::Newidle));
        let idles = |e: &Event| matches!(e, Event::Switch { next: None, .. });
        assert!(bench.host.events.iter().any(idles));
    }

    /// `enqueue_task_stop`: with the task that runs it is the second one, so others look for work.
    #[test]
    fn the_stopper_counts_from_its_wake_up_until_it_sleeps() {
        let (mut bench, ids) = crowd(1);
        let elsewhere: CpuMask = core::iter::once(Cpu(1)).collect();
        assert!(!bench.sys.rd.overloaded.load(Relaxed));
        let _ = bench.call(0, |cx, rqs| sched::set_affinity(cx, rqs, ids[0], elsewhere));
        let rq = &bench.rqs[0];
        assert_eq!((rq.nr_running, rq.cfs[0].h_nr_queued), (2, 1));
        assert!(rq.need_resched && bench.sys.rd.overloaded.load(Relaxed));
        let _ = bench.call(0, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
        let rq = &bench.rqs[0];
        assert_eq!(
            (rq.nr_running, rq.need_resched, rq.skip_clock),
            (0, false, false)
        );
        // One that nobody has woken does not count.
        let _ = bench.call(1, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
        assert_eq!(bench.rqs[1].nr_running, 1);
    }

    /// Nobody is left to run, but somebody sleeps in the queue: enough for `balance_fair`.
    #[test]
    fn delayed_sleepers_keep_a_cpu_from_looking_for_work() {
        let (mut bench, ids) = crowd(2);
        let elsewhere: CpuMask = core::iter::once(Cpu(1)).collect();
        bench.host.now += 20_000_000;
        // Far over its share, so it stays as a delayed sleeper.
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Sleeps));
        assert_eq!(bench.rqs[0].cfs[0].nr_queued, 2);
        assert_eq!(bench.rqs[0].curr_task(), Some(ids[1]));
        let moved = bench.call(0, |cx, rqs| sched::set_affinity(cx, rqs, ids[1], elsewhere));
        assert_eq!(moved, sched::Moved::Asked);
        bench.host.entered.clear();
        let switch = bench.call(0, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
        assert_eq!((switch.next, cpu_of(&bench, ids[1])), (None, 1));
        assert!(!bench.host.entered.contains(&Func::Newidle));
        assert_eq!(bench.rqs[0].cfs[0].nr_queued, 0, "it has left after all");
    }

    /// `put_prev_set_next_task` returns where nobody else was chosen; the stopper is somebody else.
    #[test]
    fn who_is_picked_again_keeps_its_place_but_after_the_stopper() {
        let (mut bench, _) = crowd(2);
        let runs = bench.rqs[0].curr.expect("one runs");
        let newest = bench.rqs[0].lb_order.iter().find(|s| *s != runs).unwrap();
        bench.rqs[0].lb_order.move_front(newest);
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        let first = |bench: &Bench| bench.rqs[0].lb_order.iter().next();
        assert_eq!(
            (bench.rqs[0].curr, first(&bench)),
            (Some(runs), Some(newest))
        );
        bench.rqs[0].lb_order.move_front(newest);
        let _ = bench.call(0, |cx, rqs| run_stopper(cx, rqs, StopWork::Migrate));
        assert_eq!(first(&bench), bench.rqs[0].curr);
        let runs = bench.rqs[0].curr.expect("one runs");
        let other = bench.rqs[0].lb_order.iter().find(|s| *s != runs).unwrap();
        bench.rqs[0].lb_order.move_front(other);
        bench.sys.features.load_balance.order = LbOrder::ColdestPick;
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        assert_eq!((bench.rqs[0].curr, first(&bench)), (Some(runs), Some(runs)));
    }
}

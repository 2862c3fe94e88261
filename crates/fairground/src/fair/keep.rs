//! Tasks that come into a queue's keeping, and those that leave it for another CPU.

use super::limbo::is_throttled;
use super::preempt::wakeup_preempt_fair;
use super::resched::{resched_curr, resched_if, skip_clock};
use super::task::{dequeue_task_fair, enqueue_task_fair};
use super::{Dequeue, Enqueue, Migrates, group, load};
use crate::cx::Cx;
use crate::event::{Event, Migration};
use crate::host::Host;
use crate::rq::Rq;
use crate::shared::{OnRq, Relaxed};
use crate::task::{Task, WakeKind};
use crate::value::{Cpu, SeId};

/// Takes a task into the keeping of `rq`, on its group's queue.
pub(crate) fn adopt<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, mut task: Task) -> SeId {
    let cfs = group::ensure_cfs(cx, rq, task.body.tg);
    let parent = rq.cfs[cfs.idx()].se;
    task.se.cfs_rq = cfs;
    task.se.parent = parent;
    task.se.depth = parent.map_or(0, |p| rq.se[p.idx()].depth + 1);
    let shared = &cx.sys.task[task.body.id.idx()];
    debug_assert_ne!(shared.on_rq(), OnRq::Queued, "a queue has it already");
    let slot = rq.take_in(task);
    shared.cpu.store(rq.cpu.0, Relaxed);
    shared.slot.store(slot.0, Relaxed);
    shared.set_on_rq(OnRq::Queued);
    slot
}

/// Whether a task that does not run can go to another CPU: it is queued, or waits in limbo for the
/// runtime of its group, which counts as queued.
pub(crate) fn is_movable(rq: &Rq, slot: SeId) -> bool {
    rq.se[slot.idx()].on_rq || is_throttled(rq, slot)
}

/// Takes a task that is [movable](is_movable) off `rq` for another CPU; the caller attaches it
/// there.
pub(crate) fn detach_for_move<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    slot: SeId,
    to: Cpu,
) -> Option<Task> {
    dequeue_task_fair(cx, rq, slot, Dequeue::MOVE);
    let mut out = rq.give_out(slot)?;
    let id = out.body.id;
    load::migrate_task_rq_fair(cx, &mut out, rq.cpu, Migrates::FromQueue);
    out.se.nr_migrations += 1;
    group::set_task_cpu(cx, id, out.body.tg, to);
    let shared = &cx.sys.task[id.idx()];
    shared.set_on_rq(OnRq::Migrating);
    shared.on_cpu.store(false, Relaxed);
    Some(out)
}

/// Puts a moved task on `rq` (`attach_task`): enqueues it, and preempts if it is the better pick.
pub(crate) fn attach_moved<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    task: Task,
    from: Cpu,
    why: Migration,
) {
    let id = task.body.id;
    cx.host.event(Event::Migrate {
        task: id,
        from,
        to: rq.cpu,
        why,
    });
    let slot = adopt(cx, rq, task);
    enqueue_task_fair(cx, rq, slot, Enqueue::MIGRATED);
    if rq.curr.is_none() {
        // Also for a delayed sleeper, or who waits for quota: the CPU finds that it stays idle.
        if rq.is_idle() {
            resched_curr(cx, rq);
        }
    } else {
        let answer = wakeup_preempt_fair(cx, rq, slot, WakeKind::Wake);
        resched_if(cx, rq, answer);
    }
    skip_clock(rq);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Features;
    use crate::sched;
    use crate::task::Prev;
    use crate::testing::Bench;
    use crate::value::TgId;

    /// Else other CPUs would take it for busy until the sleeper wakes up.
    #[test]
    fn an_idle_cpu_that_gets_a_delayed_sleeper_is_asked_to_look() {
        let mut bench = Bench::new(2, Features::default());
        for _ in 0..2 {
            bench.start(0, TgId::ROOT);
        }
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        // It has more than its share, so its sleep is delayed.
        bench.host.now += 5_000_000;
        let asleep = bench.rqs[0].curr.expect("one runs");
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Sleeps));
        assert!(bench.rqs[0].se[asleep.idx()].sched_delayed);
        bench.host.rescheds.clear();
        bench.call(0, |cx, rqs| {
            let task = cx.with_rq(rqs, Cpu(0), |cx, rq| {
                detach_for_move(cx, rq, asleep, Cpu(1))
            });
            cx.with_rq(rqs, Cpu(1), |cx, rq| {
                cx.update_rq_clock(rq);
                attach_moved(cx, rq, task.unwrap(), Cpu(0), Migration::Balance);
            });
        });
        assert!(bench.rqs[1].need_resched);
        let switch = bench.call(1, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        assert_eq!((switch.next, bench.rqs[1].nr_running), (None, 0));
    }

    /// What is pulled in the midst of a switch is charged from there on: the switch reads the clock
    /// itself, and the next one must read it again.
    #[test]
    fn a_pull_of_a_cpu_that_runs_dry_leaves_the_next_switch_its_clock() {
        let mut bench = Bench::new(2, Features::default());
        let ids = [0, 1].map(|cpu| bench.start(cpu, TgId::ROOT));
        let _ = bench.call(1, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        bench.host.now += 100_000;
        bench.call(1, |cx, rqs| {
            let waits = SeId(cx.sys.task[ids[0].idx()].slot.load(Relaxed));
            let task = cx.with_rq(rqs, Cpu(0), |cx, rq| detach_for_move(cx, rq, waits, Cpu(1)));
            cx.with_rq(rqs, Cpu(1), |cx, rq| {
                cx.update_rq_clock(rq);
                let leaves = rq.curr.expect("one runs");
                dequeue_task_fair(cx, rq, leaves, Dequeue::SLEEP | Dequeue::SPECIAL);
                attach_moved(cx, rq, task.unwrap(), Cpu(0), Migration::Balance);
                assert!(rq.need_resched && !rq.skip_clock);
            });
        });
    }
}

//! Changes of a task's parameters while an `Rq` keeps it.

use super::preempt::prio_changed_fair;
use super::reweight::{reweight_entity, reweight_parked};
use super::task::{
    dequeue_task_fair, enqueue_task_fair, put_prev_task_fair, set_next_task_fair, touch_task,
};
use crate::cx::Cx;
use crate::fair::{Dequeue, Enqueue, SetNext};
use crate::host::Host;
use crate::place::{Access, task as ftask};
use crate::rq::Rq;
use crate::task::{Policy, Resched, Task, TaskBody};
use crate::value::{Cpu, CpuMask, SeId};

/// Changes policy and nice value of a task in the keeping of `rq` (`reweight_task`,
/// `set_user_nice`).
pub fn set_task_weight<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    task: SeId,
    policy: Policy,
    nice: i8,
) -> Resched {
    let nice = nice.clamp(-20, 19);
    let load = policy.load(nice);
    let body = rq.body[task.idx()].as_ref();
    let (before, same_policy) = body.map_or((nice, true), |b| (b.nice, b.policy == policy));
    if same_policy && nice == before {
        return Resched::No;
    }
    while_off_queue(cx, rq, task, |cx, rq| {
        if let Some(body) = rq.body[task.idx()].as_mut() {
            body.policy = policy;
            body.nice = nice;
        }
        let cfs = rq.se[task.idx()].cfs_rq;
        reweight_entity(cx, rq, cfs, task, load.weight);
        rq.se[task.idx()].load = load;
    });
    // A priority that stays is no change of one (`check_class_changed`).
    if nice == before || (rq.curr == Some(task) && nice < before) {
        return Resched::No;
    }
    prio_changed_fair(cx, rq, task)
}

/// Changes policy and nice value of a task that is with the host and was last on the CPU of `rq`.
pub fn set_parked_weight<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    task: &mut Task,
    policy: Policy,
    nice: i8,
) {
    let nice = nice.clamp(-20, 19);
    let load = policy.load(nice);
    task.body.policy = policy;
    task.body.nice = nice;
    reweight_parked(cx, rq, task, load.weight);
    task.se.load = load;
}

/// Gives a task in the keeping of `rq` its own slice (`sched_setattr`, `sched_runtime`), clamped
/// to 0.1 .. 100 ms; `None` returns to the default. It counts from the next request on. An
/// idle-policy task has none.
pub fn set_task_slice<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, slice_ns: Option<u64>) {
    let base = cx.features().tunables.base_slice_ns;
    let takes = |body: &TaskBody| body.policy.takes_slice();
    // What is asked for, not what it is clamped to, is compared; for the default that is 0, which
    // no slice is (`__sched_setscheduler`).
    let same = slice_ns.unwrap_or(0) == rq.se[task.idx()].slice_ns;
    if same || !rq.body[task.idx()].as_deref().is_some_and(takes) {
        return;
    }
    while_off_queue(cx, rq, task, |_, rq| {
        rq.se[task.idx()].set_slice(slice_ns, base);
    });
}

/// Sets the CPUs that a task in the keeping of `rq` may use, and the one of them to go to
/// (`__do_set_cpus_allowed`). One that runs or waits leaves its queue and comes back, as for any
/// change.
pub fn set_task_cpus<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    task: SeId,
    allowed: CpuMask,
    dest_cpu: Option<Cpu>,
) {
    while_off_queue(cx, rq, task, |cx, rq| {
        if let Some(body) = rq.body[task.idx()].as_mut() {
            touch_task(cx, body.id, ftask::ALLOWED, Access::Write);
            body.cpus_allowed = allowed;
            body.dest_cpu = dest_cpu;
        }
    });
}

/// Takes a task, which may run, off its queue, changes it, and puts it back.
fn while_off_queue<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    task: SeId,
    change: impl FnOnce(&mut Cx<H>, &mut Rq),
) {
    let throttled = rq.body[task.idx()].as_ref().is_some_and(|b| b.throttled);
    let queued = rq.se[task.idx()].on_rq || throttled;
    let running = rq.curr == Some(task);
    if queued {
        dequeue_task_fair(cx, rq, task, Dequeue::SAVE);
    }
    if running {
        put_prev_task_fair(cx, rq, task);
    }
    change(cx, rq);
    if queued {
        enqueue_task_fair(cx, rq, task, Enqueue::RESTORE);
    }
    if running {
        set_next_task_fair(cx, rq, task, SetNext::RunsOn);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use crate::place::Func;
    use crate::policy::Features;
    use crate::sched::{self, Moved};
    use crate::shared::Relaxed;
    use crate::task::{Placed, Policy, Prev, WakeKind};
    use crate::testing::Bench;
    use crate::value::{Cpu, CpuMask, TgId};

    #[test]
    fn an_idle_task_takes_no_slice() {
        let mut bench = Bench::new(1, Features::default());
        let base_ns = bench.sys.features.tunables.base_slice_ns;
        for (policy, expected_ns) in [
            (Policy::Normal, 300_000),
            (Policy::Batch, 300_000),
            (Policy::Idle, base_ns),
        ] {
            let mut task = bench.task(TgId::ROOT);
            task.set_scheduler(policy, 0);
            task.set_slice(Some(300_000), base_ns);
            assert_eq!(task.se.slice_ns, expected_ns, "{policy:?}");
            task.set_slice(None, base_ns);
            let placed = Placed {
                cpu: Cpu(0),
                migrated: false,
            };
            let id = task.body.id;
            bench.call(0, |cx, rqs| {
                sched::sched_fork(cx, rqs, &mut task, None);
                sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
                assert!(sched::set_slice(cx, rqs, id, Some(300_000)));
            });
            let slot = bench.sys.task[id.idx()].slot.load(Relaxed) as usize;
            assert_eq!(bench.rqs[0].se[slot].slice_ns, expected_ns, "{policy:?}");
        }
    }

    /// Whoever changes the CPUs of a task that waits makes it leave its queue and come back, as a
    /// task that changes its own.
    #[test]
    fn a_task_comes_back_to_its_queue_when_its_cpus_change() {
        let mut bench = Bench::new(2, Features::default());
        for _ in 0..2 {
            bench.start(0, TgId::ROOT);
        }
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        let runs = bench.rqs[0].curr.expect("one runs");
        let ids: Vec<_> = (bench.rqs[0].body.iter().flatten().map(|b| b.id)).collect();
        let times = |bench: &Bench, func| bench.host.entered.iter().filter(|f| **f == func).count();
        for (id, moves) in ids.iter().flat_map(|id| [(*id, 1), (*id, 0)]) {
            bench.host.entered.clear();
            // The second time nothing changes (`__set_cpus_allowed_ptr_locked`).
            let one = CpuMask::first_n(1);
            let moved = bench.call(0, |cx, rqs| sched::set_affinity(cx, rqs, id, one));
            assert_eq!(moved, Moved::Stays);
            assert_eq!(times(&bench, Func::DequeueTask), moves);
            assert_eq!(times(&bench, Func::EnqueueTask), moves);
            assert_eq!(
                (bench.rqs[0].curr, bench.rqs[0].nr_running),
                (Some(runs), 2)
            );
        }
    }

    /// `set_user_nice` returns before it takes the task off its queue.
    #[test]
    fn the_same_nice_value_changes_nothing() {
        let mut bench = Bench::new(1, Features::default());
        let id = bench.start(0, TgId::ROOT);
        for (nice, times) in [(0, 0), (5, 1), (5, 0)] {
            bench.host.entered.clear();
            let kept = bench.call(0, |cx, rqs| {
                sched::set_nice(cx, rqs, id, Policy::Normal, nice)
            });
            let off = bench.host.entered.iter();
            let off = off.filter(|f| **f == Func::DequeueTask).count();
            assert_eq!((kept, off), (true, times), "{nice}");
        }
    }
}

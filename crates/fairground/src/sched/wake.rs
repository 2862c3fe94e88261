//! Waking a task, and starting a new one: choose a CPU, then enqueue there.

use super::attributes::on_its_queue;
use super::{resched_curr, resched_if, skip_clock};
use crate::balance::newidle::account_idle_period;
use crate::balance::stopper::wake_stopper;
use crate::cx::Cx;
use crate::event::{Event, Migration};
use crate::fair::keep::adopt;
use crate::fair::place::task_fork_fair;
use crate::fair::task::touch_task;
use crate::fair::{Enqueue, Migrates, group, load, preempt, task};
use crate::host::{Host, Kick, StopWork};
use crate::place::{Access, Func, Object, rq as frq, task as ftask};
use crate::rq::{Rq, Rqs};
use crate::select::{select_task_rq, select_task_rq_fair};
use crate::shared::{OnRq, Relaxed, TaskShared};
use crate::task::{Placed, Task, WakeKind};
use crate::value::{Cpu, SeId, TaskId};

/// Who enqueues a woken task.
#[must_use = "somebody has to enqueue it"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EnqueueAt {
    /// The waker, by [`enqueue_woken`].
    Waker,
    /// The target CPU, by [`sched_ttwu_pending`]: the host keeps the task on that CPU's list. The
    /// CPU has been kicked already, before the list has the task. So a host whose CPUs run in
    /// parallel holds the lock of that list from before the call that gives this answer until the
    /// task is on it, or sends the IPI only then; else the IPI can find the list empty, and the
    /// wake-up is lost. [`ttwu_queue`] does it in the right order.
    Target,
}

/// A wake-up of a task that an `Rq` keeps: a delayed sleeper becomes runnable where it is
/// (`ttwu_runnable`, or the short way if it is the waker's own CPU on which it runs). False if no
/// `Rq` keeps it: then the host has the task and goes on with [`select_cpu`].
///
/// A task that runs and is about to sleep is kept, so the answer is yes; but that it then does not
/// sleep is the host's business. What is to become of it is in [`Prev`](crate::task::Prev), which
/// is fixed before `schedule` takes the queue's lock. A kernel looks at the task's state once more
/// there. A host with CPUs in parallel has a lock of its own for each task: it holds it from the
/// decision to sleep until [`schedule`](super::schedule) has returned, and for the whole of a
/// wake-up; who was woken before it is held does not sleep.
#[doc(alias = "try_to_wake_up")]
#[doc(alias = "ttwu_runnable")]
#[must_use = "a task that no queue keeps is still asleep"]
pub fn wake_queued<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    kind: WakeKind,
) -> bool {
    let shared = &cx.sys.task[id.idx()];
    if shared.on_rq() == OnRq::No {
        return false;
    }
    let outer = cx.host.enter(Func::TryToWakeUp);
    let cpu = Cpu(shared.cpu.load(Relaxed));
    let waking = Event::Waking {
        task: id,
        prev_cpu: cpu,
    };
    if cpu == cx.cpu && shared.on_cpu.load(Relaxed) {
        // `p == current`: nobody else can see it half asleep, so no lock.
        cx.host.event(waking);
        touch_task(cx, id, ftask::STATE, Access::Update);
        cx.host.event(Event::Wakeup { task: id, cpu });
        cx.host.leave(outer);
        return true;
    }
    touch_task(cx, id, ftask::STATE | ftask::PI_LOCK, Access::Rmw);
    cx.host.event(waking);
    let kept = on_its_queue(cx, rqs, id, |cx, rq, slot| {
        if rq.se[slot.idx()].sched_delayed {
            task::enqueue_task_fair(cx, rq, slot, Enqueue::DELAYED);
        }
        if !cx.sys.task[id.idx()].on_cpu.load(Relaxed) {
            wakeup_preempt(cx, rq, slot, kind);
        }
        touch_task(cx, id, ftask::STATE, Access::Write);
        let cpu = rq.cpu;
        cx.host.event(Event::Wakeup { task: id, cpu });
    });
    cx.host.leave(outer);
    kept.is_some()
}

/// A wake-up of a task that has left its queue but is still being switched out on its CPU
/// (`p->on_cpu`): that CPU may be asked to enqueue it when it is done, without choosing another
/// one. [`EnqueueAt::Target`]: it has been asked, and the host keeps the task on its list; what a
/// host with CPUs in parallel owes is there.
/// [`EnqueueAt::Waker`]: the waker has to wait until the task is off, then [`select_cpu`].
pub fn ttwu_on_cpu<H: Host>(cx: &mut Cx<H>, id: TaskId) -> EnqueueAt {
    let cpu = Cpu(cx.sys.task[id.idx()].cpu.load(Relaxed));
    let share = cx.sys.topology.share_cache(cx.cpu, cpu);
    let features = cx.features();
    let (list, nr) = (features.ttwu_queue, &cx.sys.cpu[cpu.idx()].nr_running);
    let queue = features
        .ttwu_on_cpu
        .queues(list, share, cpu == cx.cpu, || nr.load(Relaxed));
    if !queue {
        return EnqueueAt::Waker;
    }
    let outer = cx.host.enter(Func::TryToWakeUp);
    touch_task(cx, id, ftask::STATE | ftask::PI_LOCK, Access::Rmw);
    cx.host.event(Event::Waking {
        task: id,
        prev_cpu: cpu,
    });
    touch_task(cx, id, ftask::ON_CPU, Access::Read);
    cx.span(Func::TtwuQueue, |cx| put_on_wake_list(cx, id, cpu));
    cx.host.leave(outer);
    EnqueueAt::Target
}

/// The CPU for a task that is with the host: asleep (`Wake`, `Sync`), new (`Fork`), or replacing
/// its image (`Exec`). `waker` is the task that has the executing CPU, also where an interrupt that
/// came to it wakes (its habits and its load are looked at, as the kernel's `current`); `None` if
/// the CPU is idle. The task's load leaves the CPU it slept on if another one is chosen.
#[doc(alias = "select_task_rq")]
pub fn select_cpu<H: Host>(
    cx: &mut Cx<H>,
    task: &mut Task,
    waker: Option<TaskId>,
    kind: WakeKind,
) -> Placed {
    debug_assert!(may_run(cx, task), "cpus_allowed has no CPU of the machine");
    let outer = cx.host.enter(Func::TryToWakeUp);
    let id = task.body.id;
    let prev = Cpu(cx.sys.task[id.idx()].cpu.load(Relaxed));
    if kind.is_wakeup() {
        touch_task(cx, id, ftask::STATE | ftask::PI_LOCK, Access::Rmw);
        cx.host.event(Event::Waking {
            task: id,
            prev_cpu: prev,
        });
    }
    let cpu = select_task_rq(cx, task, prev, waker, kind);
    let migrated = cpu != prev;
    if migrated {
        set_task_cpu(cx, task, prev, cpu, kind);
    }
    cx.host.leave(outer);
    Placed { cpu, migrated }
}

/// The end of a wake-up, after [`select_cpu`] (`ttwu_queue`): the executing CPU enqueues the task,
/// or puts it `on_list`, the host's list of wake-ups of the CPU `placed`, and kicks that one, in
/// this order. No queue is locked meanwhile, and a lock of the list itself need be held for no
/// longer than it takes to put something on it.
pub fn ttwu_queue<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    task: Task,
    placed: Placed,
    kind: WakeKind,
    on_list: impl FnOnce(&mut H, (Task, Placed, WakeKind)),
) {
    let (id, cpu) = (task.body.id, placed.cpu);
    if !queues_on_list(cx, cpu) {
        return enqueue_woken(cx, rqs, task, placed, kind);
    }
    cx.span(Func::TtwuQueue, |cx| {
        on_list(cx.host, (task, placed, kind));
        put_on_wake_list(cx, id, cpu);
    });
}

/// Whether the waker or the chosen CPU enqueues (`ttwu_queue_wakelist`), for hosts that let time
/// pass between this and the rest; others call [`ttwu_queue`]. With [`EnqueueAt::Target`] the
/// target has been asked by [`Kick::Wakeups`]; see there what a host with CPUs in parallel owes.
pub fn ttwu_queue_wakelist<H: Host>(cx: &mut Cx<H>, id: TaskId, cpu: Cpu) -> EnqueueAt {
    if !queues_on_list(cx, cpu) {
        return EnqueueAt::Waker;
    }
    cx.span(Func::TtwuQueue, |cx| put_on_wake_list(cx, id, cpu));
    EnqueueAt::Target
}

fn queues_on_list<H: Host>(cx: &Cx<H>, cpu: Cpu) -> bool {
    let share = cx.sys.topology.share_cache(cx.cpu, cpu);
    cx.features().ttwu_queue.queues(share, cpu == cx.cpu, || {
        cx.sys.cpu[cpu.idx()].nr_running.load(Relaxed) == 0
    })
}

/// The words of a wake-up by list, and the kick.
fn put_on_wake_list<H: Host>(cx: &mut Cx<H>, id: TaskId, cpu: Cpu) {
    let rq = Object::rq(cpu);
    cx.touch(rq, frq::NR_RUNNING, Access::Read);
    cx.touch(rq, frq::TTWU_PENDING, Access::Write);
    cx.touch(rq, frq::WAKE_LIST, Access::CasLoop);
    touch_task(cx, id, ftask::WAKE_ENTRY, Access::Write);
    cx.sys.cpu[cpu.idx()].ttwu_pending.store(true, Relaxed);
    cx.host.kick(cpu, Kick::Wakeups);
}

/// Enqueues a task that was placed on `cpu`, from the executing CPU.
#[doc(alias = "wake_up_new_task")]
#[doc(alias = "ttwu_do_activate")]
pub fn enqueue_woken<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    task: Task,
    placed: Placed,
    kind: WakeKind,
) {
    let new = kind == WakeKind::Fork;
    let outer = cx.host.enter(if new {
        Func::WakeUpNewTask
    } else {
        Func::TtwuDoActivate
    });
    cx.with_rq(rqs, placed.cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        activate_woken(cx, rq, task, placed, kind);
    });
    cx.host.leave(outer);
}

/// The executing CPU enqueues the tasks of its remote wake-up list, under one lock.
pub fn sched_ttwu_pending<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    tasks: &mut alloc::collections::VecDeque<(Task, Placed, WakeKind)>,
) {
    let outer = cx.host.enter(Func::TtwuPending);
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        cx.touch(rq.object(), frq::WAKE_LIST, Access::Rmw);
        while let Some((task, placed, _)) = tasks.pop_front() {
            touch_task(cx, task.body.id, ftask::WAKE_ENTRY, Access::Read);
            // That the waker was about to sleep is forgotten on the way.
            activate_woken(cx, rq, task, placed, WakeKind::Wake);
        }
        cx.touch(rq.object(), frq::TTWU_PENDING, Access::Write);
        cx.sys.cpu[cpu.idx()].ttwu_pending.store(false, Relaxed);
    });
    cx.host.leave(outer);
}

/// Prepares a new task as a child of `parent`, which runs on the executing CPU (`None`: of nobody):
/// first averages, that CPU as where it comes from, and whom the parent has woken, which it has
/// with the copy of the parent's `task_struct`. Of nobody it has woken nobody, whoever had its id
/// before. The host sets policy, nice value, slice and
/// affinity (a new task may use all CPUs; of a mask this keeps the CPUs of the machine) before, and
/// calls [`select_cpu`] and [`enqueue_woken`]
/// with `Fork` after.
///
/// By decision (`place_new`) the child gets its place in virtual time here, beside the parent.
#[doc(alias = "copy_process")]
pub fn sched_fork<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    child: &mut Task,
    parent: Option<TaskId>,
) {
    child.body.cpus_allowed = child.body.cpus_allowed.and(&cx.sys.cpus());
    debug_assert!(may_run(cx, child), "cpus_allowed has no CPU of the machine");
    let outer = cx.host.enter(Func::Fork);
    load::init_entity_runnable_average(&mut child.se);
    let shared = &cx.sys.task[child.body.id.idx()];
    debug_assert_ne!(shared.on_rq(), OnRq::Queued, "a queue keeps it");
    shared.cpu.store(cx.cpu.0, Relaxed);
    shared.recent_used_cpu.store(cx.cpu.0, Relaxed);
    if let Some(parent) = parent {
        shared.wakes_like(&cx.sys.task[parent.idx()]);
        if cx.features().place.places_at_fork() {
            place_at_fork(cx, rqs, child);
        }
    } else {
        shared.wakes_like(&TaskShared::default());
    }
    touch_task(
        cx,
        child.body.id,
        ftask::CPU | ftask::PRIO | ftask::STATE,
        Access::Write,
    );
    cx.host.leave(outer);
}

fn place_at_fork<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, child: &mut Task) {
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        task_fork_fair(cx, rq, child);
    });
}

/// `execve` of the running task: the CPU it had better run on, if another one. The stopper is
/// asked to move it there. It has nothing in caches to lose, having just given up its image.
pub fn sched_exec<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) -> Option<Cpu> {
    let cpu = cx.cpu;
    let to = cx.with_rq_lockless(rqs, cpu, exec_elsewhere)?;
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        wake_stopper(cx, rq, StopWork::Migrate);
    });
    Some(to)
}

fn exec_elsewhere<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Option<Cpu> {
    let (cpu, slot) = (rq.cpu, rq.curr?);
    let mut task = Task {
        body: rq.body[slot.idx()].take()?,
        se: rq.se[slot.idx()].clone(),
    };
    let id = task.body.id;
    let outer = cx.host.enter(Func::SchedExec);
    touch_task(cx, id, ftask::PI_LOCK, Access::Rmw);
    let to = select_task_rq_fair(cx, &mut task, cpu, Some(id), WakeKind::Exec);
    cx.host.leave(outer);
    rq.body[slot.idx()] = Some(task.body);
    if to == cpu {
        return None;
    }
    rq.exec_dest = Some((id, to));
    Some(to)
}

fn may_run<H: Host>(cx: &Cx<H>, task: &Task) -> bool {
    !task.body.cpus_allowed.and(&cx.sys.cpus()).is_empty()
}

fn set_task_cpu<H: Host>(cx: &mut Cx<H>, task: &mut Task, from: Cpu, to: Cpu, kind: WakeKind) {
    let id = task.body.id;
    if kind.is_wakeup() {
        load::migrate_task_rq_fair(cx, task, from, Migrates::FromSleep);
        task.se.nr_migrations += 1;
        cx.host.event(Event::Migrate {
            task: id,
            from,
            to,
            why: Migration::Placement,
        });
    }
    group::set_task_cpu(cx, id, task.body.tg, to);
}

fn activate_woken<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    task: Task,
    placed: Placed,
    kind: WakeKind,
) {
    let id = task.body.id;
    debug_assert_eq!(placed.cpu, rq.cpu, "another CPU was chosen for it");
    // Its affinity has changed since the CPU was chosen: then no queue had it to move it from.
    if !task.body.cpus_allowed.has(rq.cpu) {
        wake_stopper(cx, rq, StopWork::Migrate);
    }
    let slot = adopt(cx, rq, task);
    touch_task(cx, id, ftask::STATE, Access::Write);
    if kind == WakeKind::Fork {
        load::post_init_entity_util_avg(cx, rq, slot);
        task::enqueue_task_fair(cx, rq, slot, Enqueue::INITIAL);
        cx.host.event(Event::WakeupNew {
            task: id,
            cpu: rq.cpu,
        });
        wakeup_preempt(cx, rq, slot, kind);
        return;
    }
    let mut flags = Enqueue::WAKEUP;
    if placed.migrated {
        flags = flags | Enqueue::MIGRATED;
    }
    task::enqueue_task_fair(cx, rq, slot, flags);
    wakeup_preempt(cx, rq, slot, kind);
    cx.host.event(Event::Wakeup {
        task: id,
        cpu: rq.cpu,
    });
    account_idle_period(cx, rq);
}

fn wakeup_preempt<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, woken: SeId, kind: WakeKind) {
    if rq.curr.is_none() {
        // A higher class gives way to no fair task.
        if rq.is_idle() {
            resched_curr(cx, rq);
        }
    } else {
        let answer = preempt::wakeup_preempt_fair(cx, rq, woken, kind);
        resched_if(cx, rq, answer);
    }
    skip_clock(rq);
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policy::Features;
    use crate::system::System;
    use crate::testing::Bench;
    use crate::value::TgId;

    /// Another CPU takes a task off its queue while this one waits for the lock.
    struct Leaves<'a> {
        rqs: &'a mut Vec<Rq>,
        sys: &'a System,
        id: TaskId,
    }

    impl Rqs for Leaves<'_> {
        fn rq(&mut self, cpu: Cpu) -> &mut Rq {
            self.sys.task[self.id.idx()].set_on_rq(OnRq::No);
            &mut self.rqs[cpu.idx()]
        }
    }

    /// Its slot is another's by then, or not on this queue at all.
    #[test]
    fn a_task_that_leaves_while_its_waker_waits_for_the_queue_is_not_woken_there() {
        let mut bench = Bench::new(2, Features::default());
        let id = bench.start(0, TgId::ROOT);
        let other = bench.start(1, TgId::ROOT);
        let slot = bench.sys.task[other.idx()].slot.load(Relaxed);
        let words = &bench.sys.task[id.idx()];
        words.cpu.store(1, Relaxed);
        for stale in [slot, 99] {
            bench.sys.task[id.idx()].slot.store(stale, Relaxed);
            bench.sys.task[id.idx()].set_on_rq(OnRq::Queued);
            bench.host.events.clear();
            let woken = bench.call(0, |cx, rqs| {
                let sys = cx.sys;
                wake_queued(cx, &mut Leaves { rqs, sys, id }, id, WakeKind::Wake)
            });
            assert!(!woken);
            let woke = |e: &Event| matches!(e, Event::Wakeup { .. });
            assert!(!bench.host.events.iter().any(woke));
        }
    }

    /// They come with the copy of the parent's `task_struct`.
    #[test]
    fn a_child_has_its_parents_wake_up_partners() {
        let mut bench = Bench::new(1, Features::default());
        let parent = bench.start(0, TgId::ROOT);
        let words = &bench.sys.task[parent.idx()];
        words.wakee_flips.store(7, Relaxed);
        words.last_wakee.store(3, Relaxed);
        words.wakee_flip_decay.store(11, Relaxed);
        for (of, flips) in [(Some(parent), 7), (None, 0)] {
            let mut child = bench.task(TgId::ROOT);
            // Left by who had the id before.
            let words = &bench.sys.task[child.body.id.idx()];
            words.wakee_flips.store(5, Relaxed);
            words.last_wakee.store(parent.0, Relaxed);
            bench.call(0, |cx, rqs| sched_fork(cx, rqs, &mut child, of));
            let words = &bench.sys.task[child.body.id.idx()];
            assert_eq!(words.wakee_flips.load(Relaxed), flips);
            if of.is_some() {
                assert_eq!(words.last_wakee.load(Relaxed), 3);
                assert_eq!(words.wakee_flip_decay.load(Relaxed), 11);
            } else {
                assert_eq!(words.last_wakee.load(Relaxed), TaskId::NONE.0);
            }
        }
    }
}

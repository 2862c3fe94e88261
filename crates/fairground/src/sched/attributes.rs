//! System calls and control files that change how tasks and groups are scheduled.

use super::stop::next_allowed;
use super::{resched_curr, resched_if};
use crate::cx::Cx;
use crate::event::Migration;
use crate::fair::keep::{attach_moved, detach_for_move, is_movable};
use crate::fair::{group, load, task};
use crate::host::{Host, Kick};
use crate::place::{Access, Func, Kind, Object, tg as ftg};
use crate::rq::Rqs;
use crate::shared::Relaxed;
use crate::task::{Policy, Task, TaskBody};
use crate::value::{Cpu, CpuMask, SeId, TaskId, TgId};

/// What a change of affinity did to a task that an `Rq` keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// It may stay.
    Stays,
    /// It was queued, and is on another CPU now.
    To(Cpu),
    /// It runs; the stopper of its CPU was asked to move it.
    Asked,
}

/// Sets the allowed CPUs of a task that is with the host. The mask holds a CPU of the machine.
pub fn set_affinity_parked(task: &mut Task, allowed: CpuMask) {
    task.body.cpus_allowed = allowed;
}

/// Sets the allowed CPUs of a task that an `Rq` keeps (`set_cpus_allowed_ptr`).
pub fn set_affinity<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    allowed: CpuMask,
) -> Moved {
    let outer = cx.host.enter(Func::SetAffinity);
    let from = Cpu(cx.sys.task[id.idx()].cpu.load(Relaxed));
    let moving = cx.with_rq(rqs, from, |cx, rq| {
        cx.update_rq_clock(rq);
        let slot = SeId(cx.sys.task[id.idx()].slot.load(Relaxed));
        let same = |body: &TaskBody| body.cpus_allowed == allowed;
        if rq.body[slot.idx()].as_deref().is_some_and(same) {
            return Err(Moved::Stays);
        }
        task::set_task_cpus(cx, rq, slot, allowed);
        if allowed.has(from) {
            return Err(Moved::Stays);
        }
        if rq.curr == Some(slot) || !is_movable(rq, slot) {
            cx.host.kick(from, Kick::Migrate);
            return Err(Moved::Asked);
        }
        let to = next_allowed(rq, &allowed.and(&cx.sys.cpus())).ok_or(Moved::Stays)?;
        detach_for_move(cx, rq, slot, to)
            .map(|task| (task, to))
            .ok_or(Moved::Stays)
    });
    let out = match moving {
        Err(answer) => answer,
        Ok((task, to)) => {
            cx.with_rq(rqs, to, |cx, rq| {
                cx.update_rq_clock(rq);
                attach_moved(cx, rq, task, from, Migration::Affinity);
            });
            Moved::To(to)
        }
    };
    cx.host.leave(outer);
    out
}

/// Sets policy and nice value of a task that an `Rq` keeps (`set_user_nice`, `sched_setscheduler`);
/// for one with the host use [`set_nice_parked`].
pub fn set_nice<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    policy: Policy,
    nice: i8,
) {
    let outer = cx.host.enter(Func::SetNice);
    on_its_queue(cx, rqs, id, |cx, rq, slot| {
        let answer = task::set_task_weight(cx, rq, slot, policy, nice);
        resched_if(cx, rq, answer);
    });
    cx.host.leave(outer);
}

/// Sets policy and nice value of a task that is with the host. Its lag and its load count by its
/// weight, and a queue still has its load on account, so that queue is locked.
pub fn set_nice_parked<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    task: &mut Task,
    policy: Policy,
    nice: i8,
) {
    let outer = cx.host.enter(Func::SetNice);
    let cpu = Cpu(cx.sys.task[task.body.id.idx()].cpu.load(Relaxed));
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        task::set_parked_weight(cx, rq, task, policy, nice);
    });
    cx.host.leave(outer);
}

/// Sets the slice (ns; `None` = default) of a task that an `Rq` keeps, from its next request on.
pub fn set_slice<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    slice_ns: Option<u64>,
) {
    let outer = cx.host.enter(Func::SetScheduler);
    on_its_queue(cx, rqs, id, |cx, rq, slot| {
        task::set_task_slice(cx, rq, slot, slice_ns);
    });
    cx.host.leave(outer);
}

/// Moves a task that an `Rq` keeps to another group, which is open (`System::open_group`).
pub fn set_group<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, id: TaskId, to: TgId) {
    let outer = cx.host.enter(Func::MoveGroup);
    on_its_queue(cx, rqs, id, |cx, rq, slot| {
        let answer = group::move_task(cx, rq, slot, to);
        if rq.curr == Some(slot) {
            resched_curr(cx, rq);
        }
        resched_if(cx, rq, answer);
    });
    cx.host.leave(outer);
}

/// Moves a task that is with the host to another group: its load leaves the old group's queue.
pub fn set_group_parked<H: Host>(cx: &mut Cx<H>, task: &mut Task, to: TgId) {
    let cpu = Cpu(cx.sys.task[task.body.id.idx()].cpu.load(Relaxed));
    if task.se.avg.last_update_time != 0 {
        load::remove_entity_load_avg(cx, task, cpu);
        task.se.avg.last_update_time = 0;
    }
    task.body.tg = to;
}

/// Writes a group's weight (load units, see [`math::weight`](crate::math::weight)) and refreshes
/// its entities, one CPU after the other.
pub fn set_shares<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, tg: TgId, shares: u64) {
    let outer = cx.host.enter(Func::SetShares);
    cx.touch(
        Object {
            kind: Kind::Tg,
            a: tg.0,
            b: 0,
        },
        ftg::SHARES,
        Access::Write,
    );
    cx.sys.tg[tg.idx()].shares.store(shares, Relaxed);
    for cpu in cx.sys.cpus().iter() {
        // A CPU on which nothing of the group ever was has nothing to refresh.
        if cx.sys.tg[tg.idx()].words(cpu).is_none() {
            continue;
        }
        cx.with_rq(rqs, cpu, |cx, rq| {
            cx.update_rq_clock(rq);
            group::set_shares(cx, rq, tg);
        });
    }
    cx.host.leave(outer);
}

fn on_its_queue<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    f: impl FnOnce(&mut Cx<H>, &mut crate::rq::Rq, SeId),
) {
    let cpu = Cpu(cx.sys.task[id.idx()].cpu.load(Relaxed));
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        let slot = SeId(cx.sys.task[id.idx()].slot.load(Relaxed));
        f(cx, rq, slot);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Features;
    use crate::sched;
    use crate::task::{Placed, Prev, WakeKind};
    use crate::testing::Bench;

    const HERE: Placed = Placed {
        cpu: Cpu(0),
        migrated: false,
    };

    fn start(bench: &mut Bench, tg: TgId) -> TaskId {
        let mut task = bench.task(tg);
        let id = task.body.id;
        bench.call(0, |cx, rqs| {
            sched::sched_fork(cx, &mut task, None);
            sched::enqueue_woken(cx, rqs, task, HERE, WakeKind::Fork);
        });
        id
    }

    fn switch(bench: &mut Bench, prev: Prev) {
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, prev));
    }

    /// A task of `tg` that has waited for 5 ms while another ran, and sleeps with what it is owed.
    fn sleeper(bench: &mut Bench, tg: TgId) -> Task {
        start(bench, tg);
        start(bench, tg);
        switch(bench, Prev::Runnable);
        bench.host.now += 5_000_000;
        switch(bench, Prev::Runnable);
        switch(bench, Prev::Sleeps);
        bench.host.parked.pop().expect("owed service, so not kept")
    }

    /// Else it would be owed as many ns of a heavy task as it was of a light one, and its queue
    /// would lose the load of others when it leaves.
    #[test]
    fn lag_and_load_of_a_sleeper_follow_its_weight() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        let mut task = sleeper(&mut bench, tg);
        let cfs = bench.rqs[0].cfs_of(tg).expect("made").idx();
        let (vlag, load) = (task.se.vlag, task.se.avg.load_avg);
        let rest = bench.rqs[0].cfs[cfs].avg.load_avg - load;
        assert!(vlag > 1_000_000 && load > 1000, "{vlag} {load}");
        for (nice, weight) in [(-20, 88761), (19, 15), (0, 1024)] {
            bench.call(0, |cx, rqs| {
                set_nice_parked(cx, rqs, &mut task, Policy::Normal, nice);
            });
            let (se, queue) = (&task.se, &bench.rqs[0].cfs[cfs]);
            assert_eq!((task.body.nice, se.load.weight >> 10), (nice, weight));
            let owed = vlag * 1024 / weight as i64;
            assert!((se.vlag - owed).abs() <= owed / 100, "{} {owed}", se.vlag);
            let full = load * weight / 1024;
            let off = se.avg.load_avg.abs_diff(full);
            assert!(off <= full / 100, "{} {full}", se.avg.load_avg);
            assert_eq!(queue.avg.load_avg, rest + se.avg.load_avg);
            let published = queue.words.queue_load_avg.load(Relaxed);
            assert_eq!(published, queue.avg.load_avg);
        }
    }

    /// A new task, and one that has left its queue, are on no account; the first has full load.
    #[test]
    fn a_parked_task_on_no_account_leaves_the_queue_alone() {
        let mut bench = Bench::new(1, Features::default());
        let mut gone = sleeper(&mut bench, TgId::ROOT);
        bench.call(0, |cx, _| set_group_parked(cx, &mut gone, TgId::ROOT));
        let mut new = bench.task(TgId::ROOT);
        bench.call(0, |cx, _| sched::sched_fork(cx, &mut new, None));
        // The queue takes note of what has left.
        bench.on(0, crate::fair::blocked::update_blocked_averages);
        let before = bench.rqs[0].cfs[0].avg.load_avg;
        for task in [&mut gone, &mut new] {
            bench.call(0, |cx, rqs| {
                set_nice_parked(cx, rqs, task, Policy::Idle, 0);
            });
            assert_eq!(task.body.policy, Policy::Idle);
            assert!((1..=3).contains(&task.se.avg.load_avg));
        }
        assert_eq!(bench.rqs[0].cfs[0].avg.load_avg, before);
    }
}

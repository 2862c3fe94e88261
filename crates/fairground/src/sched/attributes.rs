//! System calls and control files that change how tasks and groups are scheduled.

use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::fence;

use super::resched_if;
use crate::balance::stopper::wake_stopper;
use crate::cx::Cx;
use crate::event::Migration;
use crate::fair::keep::{attach_moved, detach_for_move, is_movable};
use crate::fair::{group, task};
use crate::host::{Host, StopWork};
use crate::math::weight::{
    CGROUP_WEIGHT_MAX, CGROUP_WEIGHT_MIN, MAX_SHARES, MIN_SHARES, scale_load, shares_from_cgroup,
};
use crate::place::{Access, Func, Kind, Object, tg as ftg};
use crate::rq::{Rq, Rqs};
use crate::shared::{OnRq, Relaxed};
use crate::system::System;
use crate::task::{Policy, Task, TaskBody};
use crate::value::{Cpu, CpuMask, SeId, TaskId, TgId};

/// What a change of affinity did to a task that an `Rq` keeps.
#[must_use = "it may not have changed"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// It may stay where it is, or has this mask already.
    Stays,
    /// It was queued, and is on another CPU now.
    To(Cpu),
    /// It runs; the stopper of its CPU was asked to move it.
    Asked,
    /// No `Rq` keeps it, and nothing was changed: go on with [`set_affinity_parked`].
    Parked,
    /// The mask has no CPU of the machine, and nothing was changed (`EINVAL`).
    NoCpu,
}

/// Sets the allowed CPUs of a task that is with the host, those of them that the machine has; `cpu`
/// executes. False, and nothing was changed, if it has none (`EINVAL`).
#[must_use = "it may have been refused"]
pub fn set_affinity_parked(sys: &System, cpu: Cpu, task: &mut Task, allowed: CpuMask) -> bool {
    let allowed = allowed.and(&sys.cpus());
    if allowed.is_empty() {
        return false;
    }
    if task.body.cpus_allowed != allowed {
        task.body.cpus_allowed = allowed;
        task.body.dest_cpu = sys.cpu[cpu.idx()].any_and_distribute(&allowed);
    }
    true
}

/// Sets the allowed CPUs of a task that an `Rq` keeps, those of them that the machine has
/// (`set_cpus_allowed_ptr`).
#[doc(alias = "set_cpus_allowed_ptr")]
#[doc(alias = "sched_setaffinity")]
pub fn set_affinity<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    allowed: CpuMask,
) -> Moved {
    let allowed = allowed.and(&cx.sys.cpus());
    if allowed.is_empty() {
        return Moved::NoCpu;
    }
    let outer = cx.host.enter(Func::SetAffinity);
    let moving = on_its_queue(cx, rqs, id, |cx, rq, slot| {
        let from = rq.cpu;
        let same = |body: &TaskBody| body.cpus_allowed == allowed;
        if rq.body[slot.idx()].as_deref().is_some_and(same) {
            return Err(Moved::Stays);
        }
        // Chosen before it is known whether it must go.
        let dest_cpu = cx.sys.cpu[cx.cpu.idx()].any_and_distribute(&allowed);
        task::set_task_cpus(cx, rq, slot, allowed, dest_cpu);
        if allowed.has(from) {
            return Err(Moved::Stays);
        }
        if rq.curr == Some(slot) || !is_movable(rq, slot) {
            wake_stopper(cx, rq, StopWork::Migrate);
            return Err(Moved::Asked);
        }
        let to = dest_cpu.ok_or(Moved::Stays)?;
        detach_for_move(cx, rq, slot, to)
            .map(|task| (task, from, to))
            .ok_or(Moved::Stays)
    });
    let out = match moving {
        None => Moved::Parked,
        Some(Err(answer)) => answer,
        Some(Ok((task, from, to))) => {
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

/// Sets policy and nice value (clamped to -20..=19, as `setpriority(2)` does) of a task that an
/// `Rq` keeps (`set_user_nice`, `sched_setscheduler`); for one with the host use
/// [`set_nice_parked`]. False if no `Rq` keeps it: nothing was changed.
#[doc(alias = "set_user_nice")]
#[doc(alias = "sched_setscheduler")]
#[must_use = "a task that no queue keeps has not changed"]
pub fn set_nice<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    policy: Policy,
    nice: i8,
) -> bool {
    let outer = cx.host.enter(Func::SetNice);
    let kept = on_its_queue(cx, rqs, id, |cx, rq, slot| {
        let answer = task::set_task_weight(cx, rq, slot, policy, nice);
        resched_if(cx, rq, answer);
    });
    cx.host.leave(outer);
    kept.is_some()
}

/// Sets policy and nice value (clamped to -20..=19) of a task that is with the host. Its lag and
/// its load count by its weight, and a queue still has its load on account, so that queue is
/// locked. If that load has decayed away meanwhile, what takes its place stays there until the
/// queue has a task again, as in the kernel, which ages neither.
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

/// Sets the slice (ns; `None` = default) of a task that an `Rq` keeps, from its next request on;
/// for one with the host use [`set_slice_parked`]. False if no `Rq` keeps it: nothing was changed.
/// Nor is anything changed of a `SCHED_IDLE` task, which takes no slice
/// ([`Policy::takes_slice`]), though the answer is true.
///
/// A task that may call this at will can gain time: one that alternated 0.1 and 100 ms was measured
/// to get up to 96 % of a CPU beside an equal one; as in Linux, as far as known.
#[doc(alias = "sched_setattr")]
#[must_use = "a task that no queue keeps has not changed"]
pub fn set_slice<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    slice_ns: Option<u64>,
) -> bool {
    let outer = cx.host.enter(Func::SetScheduler);
    let kept = on_its_queue(cx, rqs, id, |cx, rq, slot| {
        task::set_task_slice(cx, rq, slot, slice_ns);
    });
    cx.host.leave(outer);
    kept.is_some()
}

/// Sets the slice of a task that is with the host, as [`set_slice`] does of others. No queue counts
/// it, so none is locked. It is cut to 0.1 to 100 ms, too.
pub fn set_slice_parked(sys: &System, task: &mut Task, slice_ns: Option<u64>) {
    task.set_slice(slice_ns, sys.features.tunables.base_slice_ns);
}

/// Moves a task that an `Rq` keeps to another group, which is open
/// ([`System::open_group`](crate::system::System::open_group)): others have no words for a CPU, and
/// that panics. For a task with the host use [`set_group_parked`]. False if no `Rq` keeps
/// it: nothing was changed.
#[doc(alias = "sched_move_task")]
#[must_use = "a task that no queue keeps has not changed"]
pub fn set_group<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    to: TgId,
) -> bool {
    debug_assert!(cx.sys.tg[to.idx()].is_open(), "System::open_group first");
    let outer = cx.host.enter(Func::MoveGroup);
    let kept = on_its_queue(cx, rqs, id, |cx, rq, slot| {
        // Whoever is there already is not moved (`cgroup_migrate_prepare_dst`).
        if rq.body[slot.idx()].as_ref().is_some_and(|b| b.tg != to) {
            let answer = group::move_task(cx, rq, slot, to);
            resched_if(cx, rq, answer);
        }
    });
    cx.host.leave(outer);
    kept.is_some()
}

/// Moves a task that is with the host to another group, which is open as for [`set_group`]. A queue
/// may have its load on account, so that of the CPU where it was last is locked: the load goes over
/// to the new group's queue there at once, and ages with it while the task sleeps.
pub fn set_group_parked<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    task: &mut Task,
    to: TgId,
) {
    debug_assert!(cx.sys.tg[to.idx()].is_open(), "System::open_group first");
    if task.body.tg == to {
        return;
    }
    let outer = cx.host.enter(Func::MoveGroup);
    let cpu = Cpu(cx.sys.task[task.body.id.idx()].cpu.load(Relaxed));
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        group::move_parked_task(cx, rq, task, to);
    });
    cx.host.leave(outer);
}

/// Why a write to a control file of a group changed nothing.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightError {
    /// The number is outside of its range (`ERANGE`).
    OutOfRange,
    /// The root has no such file (`EINVAL`).
    Root,
    /// An idle group ([`set_idle`]) has the weight of one (`EINVAL`).
    Idle,
}

impl core::fmt::Display for WeightError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::OutOfRange => "a number out of range",
            Self::Root => "the root group has no such file",
            Self::Idle => "an idle group has no weight of its own",
        })
    }
}

impl core::error::Error for WeightError {}

/// Writes a group's `cpu.weight`, 1..=10000, 100 = that of a new group (`cpu_weight_write_u64`).
///
/// # Errors
/// Another number, or a group that [`set_shares`] refuses; nothing was changed.
pub fn set_cpu_weight<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    tg: TgId,
    weight: u64,
) -> Result<(), WeightError> {
    if !(CGROUP_WEIGHT_MIN..=CGROUP_WEIGHT_MAX).contains(&weight) {
        return Err(WeightError::OutOfRange);
    }
    set_shares(cx, rqs, tg, scale_load(shares_from_cgroup(weight)))
}

/// Writes a group's weight, scaled: 1024 << 10 is that of nice 0, see
/// [`math::weight`](crate::math::weight). [`set_cpu_weight`] takes what control files do. It is
/// held between [`MIN_SHARES`] and [`MAX_SHARES`], and the group's entities are refreshed, one CPU
/// after the other (`sched_group_set_shares`).
///
/// # Errors
/// The root, which has no weight, or an idle group ([`set_idle`]), which has that of one; nothing
/// was changed.
#[doc(alias = "sched_group_set_shares")]
pub fn set_shares<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    tg: TgId,
    shares: u64,
) -> Result<(), WeightError> {
    let group = &cx.sys.tg[tg.idx()];
    if tg == TgId::ROOT {
        return Err(WeightError::Root);
    }
    if group.idle.load(Relaxed) {
        return Err(WeightError::Idle);
    }
    let shares = shares.clamp(scale_load(MIN_SHARES), scale_load(MAX_SHARES));
    if group.shares.load(Relaxed) == shares {
        return Ok(());
    }
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
    group.shares.store(shares, Relaxed);
    on_its_queues(cx, rqs, tg, |cx, rq| group::set_shares(cx, rq, tg));
    cx.host.leave(outer);
    Ok(())
}

/// Writes a group's `cpu.idle`: its tasks count as `SCHED_IDLE` beside those of other groups, and
/// it weighs as little as one; without it as much as a new group (`sched_group_set_idle`).
///
/// # Errors
/// The root, which cannot be idle.
#[doc(alias = "sched_group_set_idle")]
pub fn set_idle<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    tg: TgId,
    idle: bool,
) -> Result<(), WeightError> {
    let group = &cx.sys.tg[tg.idx()];
    if tg == TgId::ROOT {
        return Err(WeightError::Root);
    }
    if group.idle.load(Relaxed) != idle {
        group.set_idle(idle);
        on_its_queues(cx, rqs, tg, |cx, rq| group::set_idle(cx, rq, tg, idle));
    }
    Ok(())
}

/// Makes the queue of a group on `cpu`, and of those above it, which otherwise comes with the first
/// task of the group there and then allocates (`online_fair_sched_group`). The group is open, as
/// for [`set_group`]. Nothing if it is there already.
pub fn online_group<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, tg: TgId, cpu: Cpu) {
    debug_assert!(cx.sys.tg[tg.idx()].is_open(), "System::open_group first");
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        let _ = group::ensure_cfs(cx, rq, tg);
    });
}

/// Runs `f` with each queue of a group, one CPU after the other. A CPU on which nothing of it ever
/// was has nothing to refresh.
fn on_its_queues<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    tg: TgId,
    mut f: impl FnMut(&mut Cx<H>, &mut Rq),
) {
    // What was stored in the group comes first: who makes a queue that is not seen here sees it.
    fence(SeqCst);
    for cpu in cx.sys.cpus().iter() {
        if cx.sys.tg[tg.idx()].words(cpu).is_none() {
            continue;
        }
        cx.with_rq(rqs, cpu, |cx, rq| {
            cx.update_rq_clock(rq);
            f(cx, rq);
        });
    }
}

/// Runs `f` with the queue that keeps a task, and its slot there; `None` if none does
/// (`task_rq_lock`).
///
/// Only under the lock is it certain which one that is: meanwhile the task may have moved, or left,
/// and somebody else may have its slot. A task between two queues is waited for, else its waker
/// would look for it among the host's.
pub(super) fn on_its_queue<H: Host, R: Rqs + ?Sized, T>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    f: impl FnOnce(&mut Cx<H>, &mut Rq, SeId) -> T,
) -> Option<T> {
    let shared = &cx.sys.task[id.idx()];
    let mut f = Some(f);
    loop {
        match shared.on_rq() {
            OnRq::No => return None,
            OnRq::Queued => {}
            OnRq::Migrating => {
                core::hint::spin_loop();
                continue;
            }
        }
        let cpu = Cpu(shared.cpu.load(Relaxed));
        let done = cx.with_rq(rqs, cpu, |cx, rq| {
            let slot = rq.slot_of(id, SeId(shared.slot.load(Relaxed)))?;
            cx.update_rq_clock(rq);
            f.take().map(|f| f(cx, rq, slot))
        });
        if done.is_some() {
            return done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::Migrates;
    use crate::fair::load::migrate_task_rq_fair;
    use crate::policy::Features;
    use crate::sched;
    use crate::task::{Prev, WakeKind};
    use crate::testing::Bench;

    fn switch(bench: &mut Bench, prev: Prev) {
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, prev));
    }

    /// A task of `tg` that has waited for 5 ms while another ran, and sleeps with what it is owed.
    fn sleeper(bench: &mut Bench, tg: TgId) -> Task {
        bench.start(0, tg);
        bench.start(0, tg);
        switch(bench, Prev::Runnable);
        bench.host.now += 5_000_000;
        switch(bench, Prev::Runnable);
        switch(bench, Prev::Sleeps);
        bench.host.parked.pop().expect("owed service, so not kept")
    }

    /// The group that it is in, and the slice that it has: the task does not leave its queue. A
    /// slice is compared before it is clamped, and the default with 0.
    #[test]
    fn what_is_so_already_is_not_done_again() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        let id = bench.start(0, tg);
        switch(&mut bench, Prev::Runnable);
        let mut leaves =
            |change: &dyn Fn(&mut Cx<crate::testing::TestHost>, &mut alloc::vec::Vec<Rq>)| {
                bench.host.entered.clear();
                bench.call(0, |cx, rqs| change(cx, rqs));
                bench.host.entered.contains(&Func::DequeueTask)
            };
        assert!(!leaves(&|cx, rqs| assert!(set_group(cx, rqs, id, tg))));
        assert!(leaves(&|cx, rqs| assert!(set_group(
            cx,
            rqs,
            id,
            TgId::ROOT
        ))));
        for (slice_ns, changes) in [
            (Some(3_000_000), true),
            (Some(3_000_000), false),
            (Some(200_000_000), true),
            (Some(200_000_000), true),
            (Some(100_000_000), false),
            (None, true),
            (None, true),
        ] {
            let left = leaves(&|cx, rqs| assert!(set_slice(cx, rqs, id, slice_ns)));
            assert_eq!(left, changes, "{slice_ns:?}");
        }
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

    /// The slot of a sleeper may be another task's by now.
    #[test]
    fn a_change_of_a_parked_task_changes_nobody() {
        let mut bench = Bench::new(2, Features::default());
        let to = bench.sys.add_group(TgId::ROOT);
        bench.sys.open_group(to);
        let asleep = sleeper(&mut bench, TgId::ROOT).body.id;
        let other = bench.start(0, TgId::ROOT);
        let slot_of = |id: TaskId| bench.sys.task[id.idx()].slot.load(Relaxed) as usize;
        let slot = slot_of(other);
        assert_eq!(slot, slot_of(asleep));
        let (new, base) = (
            bench.sys.add_task(TgId::ROOT),
            bench.rqs[0].se[slot].slice_ns,
        );
        for id in [asleep, new] {
            bench.call(0, |cx, rqs| {
                assert!(!set_nice(cx, rqs, id, Policy::Normal, 19));
                assert!(!set_slice(cx, rqs, id, Some(300_000)));
                assert!(!set_group(cx, rqs, id, to));
                let moved = set_affinity(cx, rqs, id, CpuMask::of(Cpu(1)));
                assert_eq!(moved, Moved::Parked);
            });
        }
        for none in [CpuMask::empty(), CpuMask::of(Cpu(7))] {
            let moved = bench.call(0, |cx, rqs| set_affinity(cx, rqs, other, none));
            assert_eq!(moved, Moved::NoCpu);
        }
        let (rq, all) = (&bench.rqs[0], bench.sys.cpus());
        let body = rq.body[slot].as_deref().expect("kept");
        assert_eq!((body.id, body.nice, body.tg), (other, 0, TgId::ROOT));
        assert_eq!((body.cpus_allowed, rq.se[slot].slice_ns), (all, base));
        bench.call(0, |cx, rqs| {
            assert!(set_nice(cx, rqs, other, Policy::Normal, 19));
            assert!(set_slice(cx, rqs, other, Some(300_000)));
            assert!(set_group(cx, rqs, other, to));
        });
        let body = bench.rqs[0].body[slot].as_deref().expect("kept");
        assert_eq!((body.id, body.nice, body.tg), (other, 19, to));
    }

    /// A new task, and one that has left its queue, are on no account; the first has full load.
    #[test]
    fn a_parked_task_on_no_account_leaves_the_queue_alone() {
        let mut bench = Bench::new(1, Features::default());
        let mut gone = sleeper(&mut bench, TgId::ROOT);
        let left = Migrates::FromSleep;
        bench.call(0, |cx, _| migrate_task_rq_fair(cx, &mut gone, Cpu(0), left));
        let mut new = bench.task(TgId::ROOT);
        bench.call(0, |cx, rqs| sched::sched_fork(cx, rqs, &mut new, None));
        // The queue takes note of what has left.
        bench.on(0, crate::fair::blocked::update_blocked_averages);
        let before = bench.rqs[0].cfs[0].avg.load_avg;
        let other = bench.sys.add_group(TgId::ROOT);
        bench.sys.open_group(other);
        for task in [&mut gone, &mut new] {
            bench.call(0, |cx, rqs| set_group_parked(cx, rqs, task, other));
            assert_eq!((task.body.tg, task.se.avg.last_update_time), (other, 0));
            bench.call(0, |cx, rqs| {
                set_nice_parked(cx, rqs, task, Policy::Idle, 0);
            });
            assert_eq!(task.body.policy, Policy::Idle);
            assert!((1..=3).contains(&task.se.avg.load_avg));
        }
        assert_eq!(bench.rqs[0].cfs[0].avg.load_avg, before);
    }

    /// Else the new group would have nothing of it until it wakes, and it would not age meanwhile.
    #[test]
    fn a_sleeper_that_changes_its_group_takes_its_load_there_at_once() {
        let mut bench = Bench::new(1, Features::default());
        let [a, b] = [(); 2].map(|()| bench.sys.add_group(TgId::ROOT));
        bench.sys.open_group(b);
        let mut task = sleeper(&mut bench, a);
        let util_of = |bench: &Bench, tg: TgId| {
            let rq = &bench.rqs[0];
            rq.cfs_of(tg).map_or(0, |q| rq.cfs[q.idx()].avg.util_avg)
        };
        let (own, whole) = (task.se.avg.util_avg, util_of(&bench, TgId::ROOT));
        let before = util_of(&bench, a);
        assert!(own > 50 && whole > own, "{own} {whole}");
        bench.call(0, |cx, rqs| set_group_parked(cx, rqs, &mut task, b));
        assert_eq!(task.body.tg, b);
        for (tg, util) in [(a, before - own), (b, own), (TgId::ROOT, whole)] {
            assert!(util_of(&bench, tg).abs_diff(util) <= 2, "{tg:?} {util}");
        }
        let rq = &bench.rqs[0];
        for tg in [a, b] {
            let queue = &rq.cfs[rq.cfs_of(tg).expect("made").idx()];
            let published = bench.sys.tg[tg.idx()].peek_load_avg();
            assert_eq!(published, queue.tg_load_avg_contrib as i64, "{tg:?}");
        }
        // Asleep for three half-lives.
        bench.host.now += 96_000_000;
        let (id, kind) = (task.body.id, WakeKind::Wake);
        bench.call(0, |cx, rqs| {
            let placed = sched::select_cpu(cx, &mut task, None, kind);
            sched::enqueue_woken(cx, rqs, task, placed, kind);
        });
        let slot = bench.sys.task[id.idx()].slot.load(Relaxed) as usize;
        let now = bench.rqs[0].se[slot].avg.util_avg;
        assert!(now.abs_diff(own / 8) <= 3, "{now} of {own}");
    }

    fn weight(bench: &Bench, tg: TgId) -> u64 {
        let rq = &bench.rqs[0];
        let cfs = rq.cfs_of(tg).expect("made");
        let se = rq.cfs[cfs.idx()].se.expect("a group");
        rq.se[se.idx()].load.weight
    }

    #[test]
    fn a_weight_is_that_of_the_control_file() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        bench.start(0, tg);
        let mut set = |tg, weight| {
            let done = bench.call(0, |cx, rqs| set_cpu_weight(cx, rqs, tg, weight));
            (done, bench.sys.tg[tg.idx()].shares.load(Relaxed))
        };
        for (weight, shares) in [(1, 10), (100, 1024), (33, 338), (10_000, 102_400)] {
            assert_eq!(set(tg, weight), (Ok(()), shares << 10));
        }
        for refused in [0, 10_001, u64::MAX] {
            assert_eq!(
                set(tg, refused),
                (Err(WeightError::OutOfRange), 102_400 << 10)
            );
        }
        assert_eq!(set(TgId::ROOT, 100).0, Err(WeightError::Root));
    }

    #[test]
    fn shares_are_held_in_their_range_and_an_idle_group_has_none() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        bench.start(0, tg);
        let set = |bench: &mut Bench, tg, shares| {
            bench.call(0, |cx, rqs| set_shares(cx, rqs, tg, shares))
        };
        let shares = |bench: &Bench| bench.sys.tg[tg.idx()].shares.load(Relaxed);
        for (written, held) in [
            (0, MIN_SHARES << 10),
            (1 << 20, 1 << 20),
            (u64::MAX, MAX_SHARES << 10),
            (3 << 20, 3 << 20),
        ] {
            assert_eq!(set(&mut bench, tg, written), Ok(()));
            assert_eq!(shares(&bench), held);
        }
        assert!(weight(&bench, tg) > 2 << 20);
        let idle = |bench: &mut Bench, tg, on| bench.call(0, |cx, rqs| set_idle(cx, rqs, tg, on));
        // It was not idle, so it keeps its weight.
        assert_eq!(idle(&mut bench, tg, false), Ok(()));
        assert_eq!(shares(&bench), 3 << 20);
        assert_eq!(idle(&mut bench, tg, true), Ok(()));
        assert_eq!(set(&mut bench, tg, 3 << 20), Err(WeightError::Idle));
        assert_eq!((shares(&bench), weight(&bench, tg)), (3 << 10, 3 << 10));
        let root = &bench.rqs[0].cfs[0];
        assert_eq!((root.h_nr_idle, root.h_nr_queued), (1, 1));
        assert_eq!(idle(&mut bench, tg, false), Ok(()));
        assert_eq!(shares(&bench), 1 << 20);
        assert_eq!(bench.rqs[0].cfs[0].h_nr_idle, 0);
        assert_eq!(idle(&mut bench, TgId::ROOT, true), Err(WeightError::Root));
        assert_eq!(set(&mut bench, TgId::ROOT, 1 << 20), Err(WeightError::Root));
    }
}

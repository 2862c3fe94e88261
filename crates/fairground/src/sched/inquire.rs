//! What a host asks about a task: `clock_gettime(CLOCK_THREAD_CPUTIME_ID)`, `getpriority`,
//! `sched_getaffinity`, the state in `/proc`. And how much of a CPU is used.
//!
//! Utilisation is in capacity units (1024 = one CPU at full speed), of which a smaller CPU has
//! fewer. CPUs have one frequency here, so there is nothing to scale by it.

use super::attributes::on_its_queue;
use super::deactivate::runs;
use crate::cx::Cx;
use crate::fair::curr::update_curr;
use crate::host::Host;
use crate::math::pelt;
use crate::math::weight::scale_load_down;
use crate::rq::{Rq, Rqs};
use crate::shared::Relaxed;
use crate::task::{SchedEntity, Task, TaskBody};
use crate::value::{CfsId, Cpu, SeId, TaskId};

/// Where a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// It runs there, or is being switched out.
    Running(Cpu),
    /// It waits for that CPU.
    Queued(Cpu),
    /// It sleeps, but is still queued there until it has made up for what it had too much.
    Delayed(Cpu),
    /// It waits there for the runtime of its group, or of one above.
    Throttled(Cpu),
    /// No `Rq` keeps it, so the host has it: asleep, stopped, exited, not started yet, or woken and
    /// on the list of remote wake-ups of a CPU.
    Parked,
}

/// Where a task is. With CPUs in parallel it may be elsewhere as soon as this returns, unless the
/// host holds what keeps it there.
#[must_use]
pub fn task_state<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, id: TaskId) -> TaskState {
    let state = on_its_queue(cx, rqs, id, |cx, rq, slot| {
        let se = &rq.se[slot.idx()];
        let in_limbo = rq.body[slot.idx()].as_ref().is_some_and(|b| b.throttled);
        // Up to 6.17 the queues of a throttled group are off their CPU, with all that is on them.
        let off =
            !cx.features().throttle.is_per_task() && rq.cfs[se.cfs_rq.idx()].throttled_hierarchy();
        if runs(cx, rq, id, slot) {
            TaskState::Running(rq.cpu)
        } else if se.sched_delayed {
            TaskState::Delayed(rq.cpu)
        } else if in_limbo || off {
            TaskState::Throttled(rq.cpu)
        } else {
            TaskState::Queued(rq.cpu)
        }
    });
    state.unwrap_or(TaskState::Parked)
}

/// Utilisation of `cpu` by fair tasks until now, or what those that are queued are expected to need
/// if that is more; at most the capacity of the CPU (`cpu_util_cfs`). A task that has slept there
/// and was woken elsewhere counts until the CPU next updates its load.
///
/// Nothing is written to the averages, so no decision depends on who asks.
#[must_use]
pub fn cpu_util<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, cpu: Cpu) -> u64 {
    let full = u64::from(cx.sys.topology.places[cpu.idx()].capacity);
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        let root = &rq.cfs[CfsId::ROOT.idx()];
        let mut avg = root.avg;
        pelt::update_load_avg_cfs_rq(
            root.clock_pelt(&rq.clock),
            &mut avg,
            scale_load_down(root.load.weight),
            root.h_nr_runnable.into(),
            root.curr.is_some(),
        );
        avg.util_avg.max(avg.util_est.into()).min(full)
    })
}

/// Utilisation of a task that an `Rq` keeps, until now (`task_util`). `None` if none does: then it
/// is [`task_util_parked`]. What the task is expected to need when it wakes is
/// [`task_util_est`](super::task_util_est) of its `se.avg`.
///
/// Nothing is written to the averages. As load tracking does, this stands still while the task's
/// group is throttled.
#[must_use]
pub fn task_util<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, id: TaskId) -> Option<u64> {
    on_its_queue(cx, rqs, id, |_, rq, slot| {
        let se = &rq.se[slot.idx()];
        util_until_now(rq, se.cfs_rq, se, Some(slot))
    })
}

/// Utilisation until now of a task that is with the host, for which its queue is locked: of a
/// sleeper it decays by the clock of the CPU where it was last.
#[must_use]
pub fn task_util_parked<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, task: &Task) -> u64 {
    let cpu = Cpu(cx.sys.task[task.body.id.idx()].cpu.load(Relaxed));
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        match rq.cfs_of(task.body.tg) {
            Some(cfs) => util_until_now(rq, cfs, &task.se, None),
            None => task.se.avg.util_avg,
        }
    })
}

/// Of a task on the account of `cfs`; one that is on nobody's (new, or on its way) does not age.
fn util_until_now(rq: &Rq, cfs: CfsId, se: &SchedEntity, slot: Option<SeId>) -> u64 {
    let mut avg = se.avg;
    if avg.last_update_time == 0 {
        return avg.util_avg;
    }
    let queue = &rq.cfs[cfs.idx()];
    let runnable = se.on_rq && !se.sched_delayed;
    pelt::update_load_avg_se(
        queue.clock_pelt(&rq.clock),
        &mut avg,
        se.on_rq,
        runnable.into(),
        slot.is_some() && queue.curr == slot,
        scale_load_down(se.load.weight),
    );
    avg.util_avg
}

/// How long the task has run until now, ns (`task_sched_runtime`); a running one is charged first.
/// `None` if no `Rq` keeps it: then it is `se.sum_exec_runtime` of the task that the host has.
pub fn task_sched_runtime<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
) -> Option<u64> {
    on_its_queue(cx, rqs, id, |cx, rq, slot| {
        if rq.curr == Some(slot) {
            let cfs = rq.se[slot.idx()].cfs_rq;
            update_curr(cx, rq, cfs);
        }
        rq.se[slot.idx()].sum_exec_runtime
    })
}

/// Shows `look` the task under the lock of the queue that keeps it: nice value, policy, affinity,
/// group and slice. `None` if none does: then the host has the task ([`TaskState::Parked`]).
///
/// A task that is kept need not be awake: a delayed sleeper and one that waits for quota are kept
/// too. [`task_state`] tells which.
pub fn with_task<H: Host, R: Rqs + ?Sized, T>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
    look: impl FnOnce(&SchedEntity, &TaskBody) -> T,
) -> Option<T> {
    on_its_queue(cx, rqs, id, |_, rq, slot| {
        let body = rq.body[slot.idx()].as_deref()?;
        Some(look(&rq.se[slot.idx()], body))
    })?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Features;
    use crate::sched::{schedule, set_nice};
    use crate::task::{Policy, Prev};
    use crate::testing::Bench;
    use crate::value::TgId;

    #[test]
    fn a_running_task_is_charged_until_now_and_shows_what_it_is() {
        let mut bench = Bench::new(1, Features::default());
        let [first, second] = [(); 2].map(|()| bench.start(0, TgId::ROOT));
        bench.call(0, |cx, rqs| {
            assert!(set_nice(cx, rqs, second, Policy::Batch, 7));
            let _ = schedule(cx, rqs, Prev::Runnable);
        });
        let rq = &bench.rqs[0];
        let runs = |id| rq.curr == rq.slot_of(id, rq.curr.unwrap());
        let (running, waiting) = match runs(first) {
            true => (first, second),
            false => (second, first),
        };
        bench.host.now += 1_500_000;
        bench.call(0, |cx, rqs| {
            assert_eq!(task_sched_runtime(cx, rqs, running), Some(1_500_000));
            assert_eq!(task_sched_runtime(cx, rqs, waiting), Some(0));
            let what = with_task(cx, rqs, second, |_, body| (body.policy, body.nice));
            assert_eq!(what, Some((Policy::Batch, 7)));
        });
    }
    /// What is told is what an update at that time finds, and being asked changes nothing.
    #[test]
    fn utilisation_is_that_of_now_for_who_runs_waits_and_sleeps() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        let [first, second] = [(); 2].map(|()| bench.start(0, tg));
        let _ = bench.call(0, |cx, rqs| schedule(cx, rqs, Prev::Runnable));
        let runs = bench.rqs[0].curr_task().expect("one runs");
        let waits = if runs == first { second } else { first };
        let told = |bench: &mut Bench| {
            bench.call(0, |cx, rqs| {
                let of = [runs, waits].map(|id| task_util(cx, rqs, id));
                (cpu_util(cx, rqs, Cpu(0)), of)
            })
        };
        let before = told(&mut bench);
        bench.host.now += 200_000_000;
        let averages = |bench: &Bench| {
            let of_task = bench.rqs[0].se.iter().map(|se| se.avg);
            let of_queue = bench.rqs[0].cfs.iter().map(|cfs| cfs.avg);
            of_task.chain(of_queue).collect::<alloc::vec::Vec<_>>()
        };
        let unchanged = averages(&bench);
        let (of_cpu, of) = told(&mut bench);
        assert_eq!(averages(&bench), unchanged);
        assert!(of_cpu > 950 && before.0 < 800, "{before:?} {of_cpu}");
        assert!(of[0] > Some(950) && of[1] < before.1[1], "{of:?}");
        bench.call(0, crate::sched::sched_tick);
        assert_eq!(told(&mut bench), (of_cpu, of));
        // Both sleep: half is left after 32 periods of 1024 us, and nothing at the end.
        let _ = bench.call(0, |cx, rqs| schedule(cx, rqs, Prev::Stops));
        let _ = bench.call(0, |cx, rqs| schedule(cx, rqs, Prev::Stops));
        let task = bench.host.parked.remove(0);
        let parked = |bench: &mut Bench| {
            let util = bench.call(0, |cx, rqs| task_util_parked(cx, rqs, &task));
            (util, bench.call(0, |cx, rqs| cpu_util(cx, rqs, Cpu(0))))
        };
        let full = parked(&mut bench);
        bench.host.now += 32 * 1_048_576;
        let half = parked(&mut bench);
        assert!(half.0.abs_diff(full.0 / 2) <= 8, "{full:?} {half:?}");
        assert!(half.1.abs_diff(full.1 / 2) <= 8, "{full:?} {half:?}");
        bench.host.now += 3_000_000_000;
        assert_eq!(parked(&mut bench), (0, 0));
    }
}

//! What a host asks about a task that a queue keeps: `clock_gettime(CLOCK_THREAD_CPUTIME_ID)`,
//! `getpriority`, `sched_getaffinity`.

use super::attributes::on_its_queue;
use crate::cx::Cx;
use crate::fair::curr::update_curr;
use crate::host::Host;
use crate::rq::Rqs;
use crate::task::{SchedEntity, TaskBody};
use crate::value::TaskId;

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
/// group and slice. `None` if none does: then the host has the task, asleep or on the list of its
/// remote wake-ups.
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
}

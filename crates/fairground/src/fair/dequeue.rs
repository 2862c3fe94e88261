//! A task leaves, at every level.

use super::buddy::{Buddy, se_is_idle, set_buddy};
use super::counts::Counts;
use super::entity::{cfs_rq_min_slice, dequeue_entity};
use super::hrtick::hrtick_update;
use super::task::{block_task, stops_at_throttled, touch_task, update_levels_above};
use super::throttle;
use super::util_est::{util_est_dequeue, util_est_update};
use crate::cx::Cx;
use crate::fair::{Dequeue, QueueChange};
use crate::host::Host;
use crate::place::{Access, Func, cfs_rq as fq, rq as frq, task as ft};
use crate::policy::UtilEstUpdate;
use crate::rq::Rq;
use crate::value::{CfsId, SeId};

/// Dequeues a task at every level; false if it stays as a delayed sleeper.
pub fn dequeue_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Dequeue) -> bool {
    let outer = cx.host.enter(Func::DequeueTask);
    let left = leave(cx, rq, task, flags);
    cx.host.leave(outer);
    left
}

fn leave<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Dequeue) -> bool {
    let sleeps = flags.has(Dequeue::SLEEP);
    if rq.body[task.idx()].as_ref().is_some_and(|b| b.throttled) {
        throttle::dequeue_throttled_task(cx, rq, task, flags);
        return true;
    }
    touch_task(cx, rq.task_id(task), ft::PRIO, Access::Read);
    if !rq.se[task.idx()].sched_delayed {
        util_est_dequeue(cx, rq, task);
    }
    let first = cx.features().load.util_est_update == UtilEstUpdate::BeforeDequeue;
    if first {
        util_est_update(cx, rq, task, sleeps);
    }
    let left = dequeue_entities(cx, rq, task, flags);
    if !first && rq.body[task.idx()].is_some() {
        util_est_update(cx, rq, task, sleeps);
    }
    if left {
        hrtick_update(cx, rq, QueueChange::Left);
    }
    left
}

/// Takes `first`, a task or the entity of a group that has nothing runnable, off its queue, and
/// the groups above that become empty by it. False if `first` is a task that stays as a delayed
/// sleeper.
pub(crate) fn dequeue_entities<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    first: SeId,
    flags: Dequeue,
) -> bool {
    let is_task = rq.se[first.idx()].my_q.is_none();
    let (sleeps, delayed) = (flags.has(Dequeue::SLEEP), flags.has(Dequeue::DELAYED));
    let was_idle_only = is_idle_only(rq);
    let throttles = flags.has(Dequeue::THROTTLE);
    let mut counts = Counts::default();
    if is_task {
        counts.queued = 1;
        counts.idle = u32::from(se_is_idle(rq, first));
        counts.runnable = u32::from(sleeps || delayed || !rq.se[first.idx()].sched_delayed);
    }
    // At each level, whether or not the task's entity was the last one there.
    let leave = |counts: &mut Counts, rq: &mut Rq, cfs: CfsId| {
        counts.leave(rq, cfs);
        if throttles && rq.cfs[cfs.idx()].throttled_hierarchy() {
            throttle::record_throttle_clock(rq, cfs);
        }
    };
    let (mut at, mut flags, mut slice) = (Some(first), flags, None);
    while let Some(id) = at {
        let cfs = rq.se[id.idx()].cfs_rq;
        if !dequeue_entity(cx, rq, cfs, id, flags) {
            if is_task && id == first {
                return false;
            }
            slice = Some(cfs_rq_min_slice(rq, cfs));
            break;
        }
        cx.touch_mixed(rq.cfs_object(cfs), fq::IDLE, fq::NR_QUEUED);
        leave(&mut counts, rq, cfs);
        if stops_at_throttled(cx, rq, cfs) {
            return finish(cx, rq, first, is_task && delayed);
        }
        at = rq.se[id.idx()].parent;
        if rq.cfs[cfs.idx()].nr_queued > 0 {
            slice = Some(cfs_rq_min_slice(rq, cfs));
            // The next pick should stay in this group, as its task has given up some of its time.
            if let Some(group) = at.filter(|_| sleeps && may_be_buddy(cx, rq, cfs)) {
                set_buddy(rq, group, Buddy::Next);
            }
            break;
        }
        flags = (flags | Dequeue::SLEEP).without(Dequeue::DELAYED | Dequeue::SPECIAL);
    }
    if update_levels_above(cx, rq, at, slice, counts, leave) {
        cx.touch(rq.object(), frq::NR_RUNNING, Access::Update);
        rq.nr_running -= counts.queued;
        if !was_idle_only && is_idle_only(rq) {
            // Look early for something better to do.
            let now = cx.jiffies();
            cx.sys.cpu[rq.cpu.idx()].set_next_balance(rq.cpu, now, cx.host);
        }
    }
    finish(cx, rq, first, is_task && delayed)
}

/// A delayed sleeper that has left goes to the host, unless it is the task that still runs.
fn finish<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, first: SeId, delayed_task: bool) -> bool {
    if delayed_task && rq.curr != Some(first) {
        block_task(cx, rq, first);
    }
    true
}

#[inline]
fn may_be_buddy<H: Host>(cx: &Cx<H>, rq: &Rq, cfs: crate::value::CfsId) -> bool {
    cx.features().throttle.is_per_task() || !rq.cfs[cfs.idx()].throttled_hierarchy()
}

/// Only work of the idle policy is queued.
#[inline]
fn is_idle_only(rq: &Rq) -> bool {
    rq.nr_running > 0 && rq.nr_running == rq.cfs[0].h_nr_idle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Features;
    use crate::shared::Relaxed;
    use crate::testing::Bench;
    use crate::value::TgId;

    /// Another task stays in the group below, so its entity does not leave the limited group.
    #[test]
    fn throttled_time_begins_where_the_entity_stays_too() {
        let mut bench = Bench::new(1, Features::default());
        let limited = bench.sys.add_group(TgId::ROOT);
        let below = bench.sys.add_group(limited);
        let [first, _] = [(); 2].map(|()| bench.start(0, below));
        let slot = SeId(bench.sys.task[first.idx()].slot.load(Relaxed));
        bench.on(0, |cx, rq| {
            let [upper, lower] = [limited, below].map(|tg| rq.cfs_of(tg).unwrap());
            for cfs in [upper, lower] {
                rq.cfs[cfs.idx()].throttle_count = 1;
            }
            rq.cfs[upper.idx()].throttled = true;
            let now = rq.clock.clock;
            assert!(dequeue_entities(
                cx,
                rq,
                slot,
                Dequeue::SLEEP | Dequeue::THROTTLE
            ));
            assert_eq!(rq.cfs[lower.idx()].nr_queued, 1);
            assert_eq!(rq.cfs[upper.idx()].throttled_clock, now);
        });
    }
}

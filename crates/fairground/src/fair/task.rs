//! A task joins, leaves, is picked or put back: the walk through all levels.

pub use super::change::{set_parked_weight, set_task_cpus, set_task_slice, set_task_weight};
pub use super::dequeue::dequeue_task_fair;

pub(crate) use super::dequeue::dequeue_entities;

use super::buddy::se_is_idle;
use super::counts::Counts;
use super::entity::{
    cfs_rq_min_slice, enqueue_entity, put_prev_entity, requeue_delayed_entity, set_next_entity,
    update_curr_inlined,
};
use super::group::update_cfs_group;
use super::hrtick::{hrtick_start_fair, hrtick_update};
use super::load::{se_update_runnable, update_load_avg};
use super::misfit::update_misfit_status;
use super::pick::pick_next_entity;
use super::util_est::util_est_enqueue;
use super::{throttle, vtime};
use crate::cx::Cx;
use crate::fair::{Enqueue, QueueChange, SetNext, UpdateLoad};
use crate::host::Host;
use crate::place::{Access, Func, Kind, Object, cfs_rq as fq, rq as frq, se as fse, task as ft};
use crate::rq::Rq;
use crate::shared::OnRq;
use crate::value::{CfsId, SeId, TaskId};

/// Enqueues a task at every level; a delayed sleeper is made runnable again.
///
/// Groups that were empty join their queue with the shortest slice of what they hold. Above the
/// first group that is queued already, only counts, loads and slices change.
pub fn enqueue_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Enqueue) {
    let outer = cx.host.enter(Func::EnqueueTask);
    enqueue_levels(cx, rq, task, flags);
    if !flags.has(Enqueue::DELAYED) {
        hrtick_update(cx, rq, QueueChange::Joined);
    }
    cx.host.leave(outer);
}

fn enqueue_levels<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Enqueue) {
    let throttled = rq.body[task.idx()].as_ref().is_some_and(|b| b.throttled);
    touch_task(cx, rq.task_id(task), ft::PRIO, Access::Read);
    if throttled && throttle::enqueue_throttled_task(cx, rq, task) {
        return;
    }
    let delayed = rq.se[task.idx()].sched_delayed;
    if !delayed || flags.has(Enqueue::DELAYED) {
        util_est_enqueue(cx, rq, task);
    }
    if flags.has(Enqueue::DELAYED) {
        requeue_delayed_entity(cx, rq, task);
        return;
    }
    let woken = flags.has(Enqueue::WAKEUP);
    let mut counts = Counts {
        queued: 1,
        runnable: u32::from(woken || !delayed),
        idle: u32::from(se_is_idle(rq, task)),
    };
    let (mut flags, mut slice) = (flags, None);
    let mut at = Some(task);
    while let Some(id) = at {
        if rq.se[id.idx()].on_rq {
            if rq.se[id.idx()].sched_delayed {
                requeue_delayed_entity(cx, rq, id);
            }
            break;
        }
        if let Some(slice) = slice {
            let se = &mut rq.se[id.idx()];
            se.slice_ns = slice;
            se.custom_slice = true;
        }
        let cfs = rq.se[id.idx()].cfs_rq;
        enqueue_entity(cx, rq, cfs, id, flags);
        slice = Some(cfs_rq_min_slice(rq, cfs));
        cx.touch_mixed(rq.cfs_object(cfs), fq::IDLE, fq::NR_QUEUED);
        counts.join(rq, cfs);
        if stops_at_throttled(cx, rq, cfs) {
            return;
        }
        flags = Enqueue::WAKEUP;
        at = rq.se[id.idx()].parent;
    }
    if !update_levels_above(cx, rq, at, slice, counts, Counts::join) {
        return;
    }
    add_nr_running(cx, rq, 1);
}

/// Whether the walk ends at `cfs`, because it was taken off its parent as a whole (up to 6.17).
#[inline]
pub(crate) fn stops_at_throttled<H: Host>(cx: &Cx<H>, rq: &Rq, cfs: CfsId) -> bool {
    rq.cfs[cfs.idx()].throttled && !cx.features().throttle.is_per_task()
}

/// Refreshes the levels from `at` up, whose entities stay queued; false if a throttled queue ends
/// the walk.
pub(crate) fn update_levels_above<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    mut at: Option<SeId>,
    mut slice: Option<u64>,
    mut counts: Counts,
    count: impl Fn(&mut Counts, &mut Rq, CfsId),
) -> bool {
    while let Some(id) = at {
        let cfs = rq.se[id.idx()].cfs_rq;
        update_load_avg(cx, rq, cfs, id, UpdateLoad::TG);
        se_update_runnable(rq, id);
        update_cfs_group(cx, rq, id);
        if let Some(slice) = slice {
            vtime::set_slice(rq, id, slice);
        }
        cx.touch_mixed(rq.cfs_object(cfs), fq::IDLE, fq::NR_QUEUED);
        cx.touch(rq.se_object(id), fse::SLICE, Access::Write);
        slice = Some(cfs_rq_min_slice(rq, cfs));
        count(&mut counts, rq, cfs);
        if stops_at_throttled(cx, rq, cfs) {
            return false;
        }
        at = rq.se[id.idx()].parent;
    }
    true
}

/// So many more; the second one makes the machine overloaded, which newly idle CPUs look at.
pub(crate) fn add_nr_running<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, count: u32) {
    cx.touch(rq.object(), frq::NR_RUNNING, Access::Update);
    let before = rq.nr_running;
    rq.nr_running += count;
    if before < 2 && rq.nr_running >= 2 {
        cx.sys.rd.set_overloaded(true, cx.host);
    }
}

/// Picks the next task, puts `prev` and sets the new one (common levels are left alone); `None`,
/// with `prev` not put, if there is none. Does not change `rq.curr`.
///
/// Delayed sleepers that are met leave: they go to the host. Only `prev` itself, if it was one,
/// stays in its slot (not `on_rq` any more) for the caller to give to [`block_task`].
pub fn pick_next_task_fair<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    prev: Option<SeId>,
) -> Option<SeId> {
    let outer = cx.host.enter(Func::PickNextTask);
    let next = pick_task_fair(cx, rq);
    match (prev, next) {
        (Some(prev), Some(next)) if prev != next => {
            switch_levels(cx, rq, prev, next);
            hrtick_start_fair(cx, rq, next);
            update_misfit_status(cx, rq, Some(next));
        }
        (None, Some(next)) => {
            set_next_task_fair(cx, rq, next, SetNext::Picked);
            hrtick_start_fair(cx, rq, next);
            update_misfit_status(cx, rq, Some(next));
        }
        _ => {}
    }
    cx.host.leave(outer);
    next
}

/// The choice from the root down.
fn pick_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Option<SeId> {
    'again: loop {
        let mut cfs = CfsId::ROOT;
        let mut throttled = false;
        loop {
            if rq.cfs[cfs.idx()].nr_queued == 0 {
                debug_assert!(cfs == CfsId::ROOT, "a queued group holds something");
                return None;
            }
            if vtime::queued_curr(rq, cfs).is_some() {
                update_curr_inlined(cx, rq, cfs);
            }
            if throttle::check_cfs_rq_runtime(cx, rq, cfs) {
                if !cx.features().throttle.is_per_task() {
                    continue 'again;
                }
                throttled = true;
            }
            let Some(se) = pick_next_entity(cx, rq, cfs) else {
                continue 'again;
            };
            match rq.se[se.idx()].my_q {
                Some(below) => cfs = below,
                None => {
                    if throttled {
                        throttle::task_throttle_setup_work(cx, rq, se);
                    }
                    return Some(se);
                }
            }
        }
    }
}

/// Puts `prev` and sets `next` on the levels that they do not share, and on the one where their
/// ways part.
fn switch_levels<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: SeId, next: SeId) {
    let (mut p, mut n) = (prev, next);
    loop {
        let (put, set) = (&rq.se[p.idx()], &rq.se[n.idx()]);
        let (from, to) = (put.cfs_rq, set.cfs_rq);
        let (p_depth, n_depth) = (put.depth, set.depth);
        if n_depth <= p_depth {
            put_prev_entity(cx, rq, from, p);
            p = rq.se[p.idx()].parent.unwrap_or(p);
        }
        if n_depth >= p_depth {
            set_next_entity(cx, rq, to, n, SetNext::Picked);
            n = rq.se[n.idx()].parent.unwrap_or(n);
        }
        if from == to {
            return;
        }
    }
}

/// Puts `prev` at every level.
pub fn put_prev_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, prev: SeId) {
    let mut at = Some(prev);
    while let Some(id) = at {
        put_prev_entity(cx, rq, rq.se[id.idx()].cfs_rq, id);
        at = rq.se[id.idx()].parent;
    }
}

/// Sets `next` as the running one at every level.
pub fn set_next_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, next: SeId, why: SetNext) {
    let mut at = Some(next);
    while let Some(id) = at {
        let cfs = rq.se[id.idx()].cfs_rq;
        set_next_entity(cx, rq, cfs, id, why);
        // A queue that starts to run needs some runtime.
        throttle::account_cfs_rq_runtime(cx, rq, cfs, 0);
        at = rq.se[id.idx()].parent;
    }
}

/// Gives a task that is on no queue back to the host.
pub fn block_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let Some(out) = rq.give_out(task) else {
        return;
    };
    let id = out.body.id;
    touch_task(cx, id, ft::STATE, Access::Write);
    cx.host.park(out);
    // Who sees this goes to the host for it.
    cx.sys.task[id.idx()].set_on_rq(OnRq::No);
}

#[inline]
pub(crate) fn touch_task<H: Host>(
    cx: &mut Cx<H>,
    id: TaskId,
    fields: crate::place::Fields,
    access: Access,
) {
    let task = Object {
        kind: Kind::Task,
        a: id.0,
        b: 0,
    };
    cx.touch(task, fields, access);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Features;
    use crate::shared::Relaxed;
    use crate::testing::Bench;

    /// A queue whose quota is renewed comes back with all its tasks.
    #[test]
    fn whoever_passes_one_makes_the_machine_overloaded() {
        for (counts, overloaded) in [([1, 0], false), ([1, 1], true), ([0, 3], true)] {
            let mut bench = Bench::new(1, Features::default());
            bench.on(0, |cx, rq| {
                for count in counts {
                    add_nr_running(cx, rq, count);
                }
            });
            assert_eq!(
                bench.sys.rd.overloaded.load(Relaxed),
                overloaded,
                "{counts:?}"
            );
        }
    }
}

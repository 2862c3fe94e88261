//! Load averages of entities and queues: update, attach, detach.
//!
//! Read `math/pelt.rs` first. A queue's averages are the sum of those of its entities, kept as one
//! number that ages by itself; so an entity that comes or goes is added or subtracted once, and
//! then both age in step. What this file adds to the arithmetic is *when*: see
//! [`update_load_avg`]. How a group's change reaches the levels above is in `propagate.rs`, how
//! a task leaves that is asleep in `removed.rs`.
//!
//! Units as in `math/pelt.rs`; times are the PELT clock of the queue, ns.

use super::propagate::{add_tg_cfs_propagate, propagate_entity_cfs_rq, propagate_entity_load_avg};
use crate::cx::Cx;
use crate::fair::UpdateLoad;
use crate::host::Host;
use crate::math::pelt::{self, PELT_MIN_DIVIDER, Passed, SchedAvg, get_pelt_divider};
use crate::math::weight::scale_load_down;
use crate::place::{Access, Fields, Func, cfs_rq as q, se as e};
use crate::rq::{CfsRq, Rq};
use crate::shared::Removed;
use crate::task::SchedEntity;
use crate::value::{CfsId, Cpu, SCHED_CAPACITY_SCALE, SeId};

pub use super::propagate::update_tg_load_avg;
pub use super::removed::{migrate_task_rq_fair, remove_entity_load_avg, sync_entity_load_avg};

/// Ages entity and queue to now, takes over what the group below changed, attaches or detaches.
///
/// A task whose `last_update_time` is 0 is on no queue's account: it is new, or came from another
/// CPU or group. It is not aged, and [`UpdateLoad::ATTACH`] attaches it. A group's entity is
/// attached, with nothing, when it is made.
#[inline(never)]
pub fn update_load_avg<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    se: SeId,
    flags: UpdateLoad,
) {
    update_load_avg_inlined(cx, rq, cfs, se, flags);
}

/// [`update_load_avg`] without a call: for the tick, which does little else.
#[inline(always)]
pub(crate) fn update_load_avg_inlined<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    se: SeId,
    flags: UpdateLoad,
) {
    let outer = cx.host.enter(Func::UpdateLoadAvg);
    let (queue, entity) = (&mut rq.cfs[cfs.idx()], &mut rq.se[se.idx()]);
    let now = queue.clock_pelt(&rq.clock);
    let below = entity.my_q;
    let attached = entity.avg.last_update_time != 0 || below.is_some();
    let entity_changed = attached && {
        let running = queue.curr == Some(se);
        age_entity(cx, rq.cpu, entity, now, running, &mut rq.passed)
    };
    let mut changed = age_queue(cx, rq.cpu, queue, now, &mut rq.passed);
    if let Some(below) = below {
        let gcfs = &rq.cfs[below.idx()];
        if gcfs.propagate {
            propagate_entity_load_avg(cx, rq, cfs, se, below);
            publish_load(rq, cfs, se);
            changed = true;
        } else {
            cx.touch(gcfs.object(rq.cpu), q::PROPAGATE, Access::Read);
            if entity_changed {
                publish_entity_load(gcfs, entity);
            }
        }
    }
    let publishes = if !attached && flags.has(UpdateLoad::ATTACH) {
        attach_entity_load_avg(cx, rq, cfs, se);
        true
    } else if flags.has(UpdateLoad::DETACH) {
        detach_entity_load_avg(cx, rq, cfs, se);
        true
    } else {
        changed && flags.has(UpdateLoad::TG)
    };
    if publishes {
        update_tg_load_avg(cx, rq, cfs);
    }
    cx.host.leave(outer);
}

/// Lets wakers see the load averages that a change of `se` on its queue `cfs` may have touched: the
/// queue's, and, of a group, its entity's.
#[inline]
pub(crate) fn publish_load(rq: &Rq, cfs: CfsId, se: SeId) {
    publish_queue_load(&rq.cfs[cfs.idx()]);
    let entity = &rq.se[se.idx()];
    if let Some(below) = entity.my_q {
        publish_entity_load(&rq.cfs[below.idx()], entity);
    }
}

/// Lets wakers see the load average of a queue. No touch, here and below: it is a word of a
/// structure that was just reported as written.
#[inline]
pub(crate) fn publish_queue_load(queue: &CfsRq) {
    queue.words.publish_queue_load(queue.avg.load_avg);
}

/// Lets wakers see the load average of the entity of a group, whose queue is `below`.
#[inline]
fn publish_entity_load(below: &CfsRq, entity: &SchedEntity) {
    below.words.publish_entity_load(entity.avg.load_avg);
}

/// Ages a queue to `now` and subtracts what left it asleep. True if its averages changed.
#[inline]
pub(crate) fn update_cfs_rq_load_avg<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    now: u64,
    cfs: CfsId,
) -> bool {
    age_queue(cx, rq.cpu, &mut rq.cfs[cfs.idx()], now, &mut rq.passed)
}

/// [`update_cfs_rq_load_avg`] of a queue of `cpu`. Inlined, as [`age_entity`]: an update is both in
/// a row, for each level, and most of what a tick or a switch does.
#[inline(always)]
fn age_queue<H: Host>(
    cx: &mut Cx<H>,
    cpu: Cpu,
    queue: &mut CfsRq,
    now: u64,
    passed: &mut Passed,
) -> bool {
    const OWN: Fields = q::LOAD.union(q::NR_QUEUED).union(q::CURR).union(q::REMOVED);
    // Of the clock, which stands still while the queue is throttled.
    const CLOCK: Fields = q::RQ
        .union(q::THROTTLE_COUNT)
        .union(q::THROTTLED_CLOCK_PELT);
    const READS: Fields = OWN.union(CLOCK);
    const AVG: Fields = q::AVG.union(q::AVG_LAST_UPDATE);
    let object = queue.object(cpu);
    let removed = queue.words.take_removed(object, cx.host);
    if removed.is_none() && !pelt::is_due(now, &queue.avg) {
        cx.touch(object, READS | q::AVG_LAST_UPDATE, Access::Read);
        return false;
    }
    let mut changed = removed.is_some();
    if let Some(removed) = removed {
        subtract_removed(queue, removed);
    }
    let weight = scale_load_down(queue.load.weight);
    let runnable = u64::from(queue.h_nr_runnable);
    let running = queue.curr.is_some();
    let avg = &mut queue.avg;
    let aged = pelt::update_load_avg_cfs_rq_with(now, avg, weight, runnable, running, passed);
    if aged {
        cx.host.call(Func::AccumulateSum);
    }
    changed |= aged;
    if changed {
        publish_queue_load(queue);
    }
    queue.words.set_last_update_time(queue.avg.last_update_time);
    cx.touch_mixed(object, READS, AVG);
    changed
}

/// Its sums were counted from another queue's periods. They are made again from the averages, in
/// the phase of this queue, so that from now on both divide by the same number.
#[inline(never)]
pub fn attach_entity_load_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId) {
    cx.touch(rq.se_object(se), e::AVG, Access::Update);
    cx.touch(rq.cfs_object(cfs), q::AVG | q::PROPAGATE, Access::Update);
    let queue = &rq.cfs[cfs.idx()].avg;
    let divider = get_pelt_divider(queue);
    let entity = &mut rq.se[se.idx()];
    let weight = se_weight(entity);
    let avg = &mut entity.avg;
    avg.last_update_time = queue.last_update_time;
    avg.period_contrib = queue.period_contrib;
    avg.util_sum = (avg.util_avg * divider) as u32;
    avg.runnable_sum = avg.runnable_avg * divider;
    let load_sum = avg.load_avg * divider;
    // At least 1: an entity that is attached has some load, however light it is.
    avg.load_sum = if weight < load_sum {
        load_sum / weight
    } else {
        1
    };
    let added = *avg;
    let queue = &mut rq.cfs[cfs.idx()];
    enqueue_load_avg(&mut queue.avg, entity);
    queue.avg.util_avg += added.util_avg;
    queue.avg.util_sum = queue.avg.util_sum.wrapping_add(added.util_sum);
    queue.avg.runnable_avg += added.runnable_avg;
    queue.avg.runnable_sum += added.runnable_sum;
    add_tg_cfs_propagate(queue, added.load_sum as i64);
    publish_queue_load(queue);
}

/// Subtracts them.
#[inline(never)]
pub fn detach_entity_load_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId) {
    cx.touch(rq.se_object(se), e::AVG, Access::Read);
    cx.touch(rq.cfs_object(cfs), q::AVG | q::PROPAGATE, Access::Update);
    let (queue, entity) = (&mut rq.cfs[cfs.idx()], &rq.se[se.idx()]);
    dequeue_load_avg(&mut queue.avg, entity);
    let gone = &entity.avg;
    sub_util(&mut queue.avg, gone.util_avg, gone.util_sum);
    sub_runnable(&mut queue.avg, gone.runnable_avg, gone.runnable_sum);
    add_tg_cfs_propagate(queue, -(gone.load_sum as i64));
    publish_queue_load(queue);
}

/// Adds only the load part (reweighting).
pub fn enqueue_load_avg(queue: &mut SchedAvg, entity: &SchedEntity) {
    queue.load_avg += entity.avg.load_avg;
    queue.load_sum += se_weight(entity) * entity.avg.load_sum;
}

/// Subtracts only the load part.
pub fn dequeue_load_avg(queue: &mut SchedAvg, entity: &SchedEntity) {
    let sum = se_weight(entity) * entity.avg.load_sum;
    sub_load(queue, entity.avg.load_avg, sum);
}

/// Refreshes `runnable_weight` of a group entity from its queue.
#[inline]
pub fn se_update_runnable(rq: &mut Rq, se: SeId) {
    if let Some(below) = rq.se[se.idx()].my_q {
        rq.se[se.idx()].runnable_weight = u64::from(rq.cfs[below.idx()].h_nr_runnable);
    }
}

/// First averages of a new task.
///
/// Its load starts full, or it would be taken for weightless; its utilisation follows in
/// [`post_init_entity_util_avg`]. A group starts with nothing, as its queue is empty.
pub fn init_entity_runnable_average(se: &mut SchedEntity) {
    se.avg = SchedAvg::default();
    if se.my_q.is_none() {
        se.avg.load_avg = scale_load_down(se.load.weight);
    }
}

/// First utilisation of a new task, from what its queue has left.
///
/// It is half of what the CPU has spare, so that a series of forks comes to 1/2, 3/4, 7/8 of
/// the CPU and not to more than it has; but not above the task's share, by weight, of what the
/// others of its queue use. The averages are attached when it is enqueued, as its
/// `last_update_time` is 0.
pub fn post_init_entity_util_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let entity = &rq.se[task.idx()];
    let cfs = entity.cfs_rq;
    cx.touch(rq.cfs_object(cfs), q::AVG, Access::Read);
    cx.touch(rq.se_object(task), e::AVG, Access::Update);
    let queue = &rq.cfs[cfs.idx()].avg;
    let part = cx.features().init_util;
    let weight = entity.load.weight;
    let spare = (rq.clock.capacity as i64 - queue.util_avg as i64) / 2;
    let avg = &mut rq.se[task.idx()].avg;
    if spare > 0 {
        avg.util_avg = if queue.util_avg == 0 {
            spare as u64
        } else {
            let part = part.part_of(queue.util_avg, queue.load_avg, weight);
            part.min(spare as u64)
        };
    }
    avg.runnable_avg = avg.util_avg;
}

/// A task joins the group that its `cfs_rq` belongs to.
pub fn attach_task_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let cfs = rq.se[task.idx()].cfs_rq;
    // Aged first (`ATTACH_AGE_LOAD`).
    update_load_avg(cx, rq, cfs, task, UpdateLoad::NONE);
    attach_entity_load_avg(cx, rq, cfs, task);
    update_tg_load_avg(cx, rq, cfs);
    propagate_entity_cfs_rq(cx, rq, task);
}

/// A task leaves its group; nothing to do if it was never attached.
pub fn detach_task_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    if rq.se[task.idx()].avg.last_update_time == 0 {
        return;
    }
    let cfs = rq.se[task.idx()].cfs_rq;
    update_load_avg(cx, rq, cfs, task, UpdateLoad::NONE);
    detach_entity_load_avg(cx, rq, cfs, task);
    update_tg_load_avg(cx, rq, cfs);
    propagate_entity_cfs_rq(cx, rq, task);
}

/// Unscaled weight of an entity (`se_weight`).
#[inline]
pub(crate) fn se_weight(se: &SchedEntity) -> u64 {
    scale_load_down(se.load.weight)
}

/// Ages one entity; `running` = it is its queue's current one. True if its averages changed.
#[inline(always)]
fn age_entity<H: Host>(
    cx: &mut Cx<H>,
    cpu: Cpu,
    se: &mut SchedEntity,
    now: u64,
    running: bool,
    passed: &mut Passed,
) -> bool {
    const READS: Fields = e::LOAD.union(e::ON_RQ).union(e::RUNNABLE_WEIGHT);
    let object = se.object(cpu);
    if !pelt::is_due(now, &se.avg) {
        // Less than a unit of time has passed: nothing but the stamp is looked at.
        cx.touch(object, e::AVG | e::ON_RQ | e::RUNNABLE_WEIGHT, Access::Read);
        return false;
    }
    let weight = se_weight(se);
    let runnable = match se.my_q {
        _ if se.sched_delayed => 0,
        None => u64::from(se.on_rq),
        Some(_) => se.runnable_weight,
    };
    let (avg, on_rq) = (&mut se.avg, se.on_rq);
    let changed = pelt::update_load_avg_se_with(now, avg, on_rq, runnable, running, weight, passed);
    if changed {
        cx.host.call(Func::AccumulateSum);
    }
    cx.touch_mixed(object, READS, e::AVG);
    changed
}

/// Takes tasks that left asleep off the averages. Their sums are not known any more, only their
/// averages: a sum is about the average times the divider.
#[inline(never)]
fn subtract_removed(queue: &mut CfsRq, removed: Removed) {
    let avg = &mut queue.avg;
    let divider = get_pelt_divider(avg);
    sub_load(avg, removed.load, removed.load * divider);
    sub_util(avg, removed.util, (removed.util * divider) as u32);
    sub_runnable(avg, removed.runnable, removed.runnable * divider);
    // The load sum of the group's entity counts time, not weight: their part of it is estimated
    // by the time they were runnable.
    let runnable_sum = (removed.runnable * divider) as i64;
    add_tg_cfs_propagate(queue, (-runnable_sum) >> pelt::CAPACITY_SHIFT);
}

/// `load -= ...`, not below zero; then see [`at_least`].
#[inline]
pub(crate) fn sub_load(avg: &mut SchedAvg, load_avg: u64, load_sum: u64) {
    avg.load_avg = avg.load_avg.saturating_sub(load_avg);
    avg.load_sum = avg.load_sum.saturating_sub(load_sum);
    avg.load_sum = at_least(avg.load_sum, avg.load_avg);
}

/// The same for utilisation.
#[inline]
pub(crate) fn sub_util(avg: &mut SchedAvg, util_avg: u64, util_sum: u32) {
    avg.util_avg = avg.util_avg.saturating_sub(util_avg);
    avg.util_sum = avg.util_sum.saturating_sub(util_sum);
    avg.util_sum = at_least(u64::from(avg.util_sum), avg.util_avg) as u32;
}

/// The same for the runnable part.
#[inline]
pub(crate) fn sub_runnable(avg: &mut SchedAvg, runnable_avg: u64, runnable_sum: u64) {
    avg.runnable_avg = avg.runnable_avg.saturating_sub(runnable_avg);
    avg.runnable_sum = avg.runnable_sum.saturating_sub(runnable_sum);
    avg.runnable_sum = at_least(avg.runnable_sum, avg.runnable_avg);
}

/// A sum is not below what its average stands for.
///
/// Rounding can make the sum of the parts greater than the sum of the whole. A sum that reaches 0
/// before its average would let a queue count as decayed which still has load. The kernel
/// compares in 32 bits, for sums of 64 bits too: above 2^32 (some 88 nice-0 tasks on one queue)
/// the upper half is lost, and this does the same.
#[inline]
pub(crate) fn at_least(sum: u64, avg: u64) -> u64 {
    let least = avg.wrapping_mul(PELT_MIN_DIVIDER) as u32;
    u64::from((sum as u32).max(least))
}

const _: () = assert!(SCHED_CAPACITY_SCALE == 1 << pelt::CAPACITY_SHIFT);

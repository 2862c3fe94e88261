//! One entity on one queue: joining, leaving, running.
//!
//! What an entity carries while it is on no queue is its lag (and, if it was only interrupted,
//! the rest of its request); what it carries on a queue is its vruntime and deadline.

pub use super::curr::update_curr;
pub use super::reweight::reweight_entity;
pub use super::vtime::cfs_rq_min_slice;

use super::buddy::clear_buddies;
use super::curr::set_protect_slice;
use super::group::update_cfs_group;
use super::leaf::list_add_leaf_cfs_rq;
use super::load::{se_update_runnable, update_load_avg};
use super::place::place_entity;
use super::vtime::{avg_vruntime, entity_eligible, tree_insert, tree_remove};
use super::{cfs_rules, throttle};
use crate::cx::Cx;
use crate::fair::{Dequeue, Enqueue, UpdateLoad};
use crate::host::Host;
use crate::math::eevdf::entity_lag;
use crate::place::{Access, Func, cfs_rq as fq, se as fse};
use crate::rq::Rq;
use crate::value::{CfsId, SeId};

/// Joins an entity to its queue.
pub fn enqueue_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, flags: Enqueue) {
    let running = rq.cfs[cfs.idx()].curr == Some(id);
    // The running entity has to be placed before it is charged, the others after V has moved.
    if running {
        place_entity(cx, rq, cfs, id, flags);
    }
    update_curr(cx, rq, cfs);
    update_load_avg(cx, rq, cfs, id, UpdateLoad::TG | UpdateLoad::ATTACH);
    se_update_runnable(rq, id);
    update_cfs_group(cx, rq, id);
    if !running {
        place_entity(cx, rq, cfs, id, flags);
    }
    cx.touch(
        rq.cfs_object(cfs),
        fq::LOAD | fq::NR_QUEUED | fq::AVG_VRUNTIME | fq::TASKS_TIMELINE,
        Access::Update,
    );
    cx.touch(
        rq.se_object(id),
        fse::ON_RQ | fse::RUN_NODE | fse::EXEC_START | fse::MIN_VRUNTIME,
        Access::Write,
    );
    let q = &mut rq.cfs[cfs.idx()];
    let se = &mut rq.se[id.idx()];
    q.load.add(se.load.weight);
    q.nr_queued += 1;
    let first = q.nr_queued == 1;
    if flags.has(Enqueue::MIGRATED) {
        se.exec_start = 0;
    }
    se.on_rq = true;
    if !running {
        tree_insert(rq, cfs, id, cx.sys.features.pick);
    }
    if first {
        throttle::check_enqueue_throttle(cx, rq, cfs);
        list_add_leaf_cfs_rq(cx, rq, cfs);
    }
}

/// Takes an entity off; false if it stays as a delayed sleeper.
pub fn dequeue_entity<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    id: SeId,
    flags: Dequeue,
) -> bool {
    update_curr(cx, rq, cfs);
    clear_buddies(rq, cfs, id);
    let features = &cx.sys.features;
    let sleeps = flags.has(Dequeue::SLEEP);
    if delays(cx, rq, cfs, id, flags) {
        update_load_avg(cx, rq, cfs, id, UpdateLoad::NONE);
        set_delayed(cx, rq, id);
        return false;
    }
    let detach = flags.has(Dequeue::MOVE) && !flags.has(Dequeue::SAVE);
    let action = if detach && rq.se[id.idx()].my_q.is_none() {
        UpdateLoad::TG | UpdateLoad::DETACH
    } else {
        UpdateLoad::TG
    };
    update_load_avg(cx, rq, cfs, id, action);
    se_update_runnable(rq, id);
    if features.pick.by_deadline() {
        update_entity_lag(cx, rq, cfs, id);
        let se = &mut rq.se[id.idx()];
        if features.place.rel_deadline && !sleeps {
            se.deadline = se.deadline.wrapping_sub(se.vruntime);
            se.rel_deadline = true;
        }
    }
    account_dequeue(cx, rq, cfs, id);
    if !features.pick.by_deadline() && !sleeps {
        cfs_rules::make_relative(rq, cfs, id);
    }
    throttle::return_cfs_rq_runtime(cx, rq, cfs);
    update_cfs_group(cx, rq, id);
    if !features.pick.by_deadline() && (!flags.has(Dequeue::SAVE) || flags.has(Dequeue::MOVE)) {
        cfs_rules::update_min_vruntime(cx, rq, cfs);
    }
    if flags.has(Dequeue::DELAYED) {
        clear_delayed(cx, rq, id);
        let se = &mut rq.se[id.idx()];
        se.vlag = features.delay_dequeue.lag_after(se.vlag);
    }
    if rq.cfs[cfs.idx()].nr_queued == 0 {
        throttle::queue_emptied(cx, rq, cfs);
    }
    true
}

/// Whether an entity that is told to leave stays instead: it sleeps, it has had more than its
/// due, and nothing demands that it is gone.
#[inline]
fn delays<H: Host>(cx: &Cx<H>, rq: &Rq, cfs: CfsId, id: SeId, flags: Dequeue) -> bool {
    if flags.has(Dequeue::DELAYED) {
        debug_assert!(rq.se[id.idx()].sched_delayed);
        return false;
    }
    if !flags.has(Dequeue::SLEEP) || flags.has(Dequeue::SPECIAL) || flags.has(Dequeue::THROTTLE) {
        return false;
    }
    debug_assert!(!rq.se[id.idx()].sched_delayed);
    let features = cx.features();
    features.pick.by_deadline() && features.delay_dequeue.delays() && !entity_eligible(rq, cfs, id)
}

fn account_dequeue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId) {
    cx.touch(
        rq.cfs_object(cfs),
        fq::LOAD | fq::NR_QUEUED | fq::AVG_VRUNTIME | fq::TASKS_TIMELINE | fq::NEXT,
        Access::Update,
    );
    cx.touch(
        rq.se_object(id),
        fse::ON_RQ | fse::RUN_NODE | fse::VLAG | fse::DEADLINE | fse::VRUNTIME,
        Access::Update,
    );
    if rq.cfs[cfs.idx()].curr != Some(id) {
        tree_remove(rq, cfs, id);
    }
    let se = &mut rq.se[id.idx()];
    se.on_rq = false;
    let q = &mut rq.cfs[cfs.idx()];
    q.load.sub(se.load.weight);
    q.nr_queued -= 1;
}

/// Notes the lag of a queued entity, within its limits.
#[inline]
pub(crate) fn update_entity_lag<H: Host>(cx: &Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId) {
    let v = avg_vruntime(rq, cfs);
    let tick_ns = cx.features().tick_ns();
    let se = &mut rq.se[id.idx()];
    se.vlag = entity_lag(v, se.vruntime, se.slice_ns, tick_ns, &se.load);
}

/// A delayed sleeper is runnable again where it is. Lag earned by sleeping is cut, by decision:
/// then it has to be placed anew.
pub(crate) fn requeue_delayed_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, id: SeId) {
    let cfs = rq.se[id.idx()].cfs_rq;
    debug_assert!(rq.se[id.idx()].on_rq);
    if cx.features().delay_dequeue.cuts_lag() {
        update_entity_lag(cx, rq, cfs, id);
        if rq.se[id.idx()].vlag > 0 {
            let pick = cx.features().pick;
            let running = rq.cfs[cfs.idx()].curr == Some(id);
            rq.cfs[cfs.idx()].nr_queued -= 1;
            if !running {
                tree_remove(rq, cfs, id);
            }
            rq.se[id.idx()].vlag = 0;
            place_entity(cx, rq, cfs, id, Enqueue::NONE);
            if !running {
                tree_insert(rq, cfs, id, pick);
            }
            rq.cfs[cfs.idx()].nr_queued += 1;
        }
    }
    update_load_avg(cx, rq, cfs, id, UpdateLoad::NONE);
    clear_delayed(cx, rq, id);
}

/// From now on `id` is a delayed sleeper. A task does not count as runnable any more; a group
/// without tasks never did.
fn set_delayed<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, id: SeId) {
    rq.se[id.idx()].sched_delayed = true;
    count_runnable(cx, rq, id, false);
}

fn clear_delayed<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, id: SeId) {
    rq.se[id.idx()].sched_delayed = false;
    count_runnable(cx, rq, id, true);
}

fn count_runnable<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, id: SeId, up: bool) {
    cx.touch(rq.se_object(id), fse::ON_RQ, Access::Write);
    if rq.se[id.idx()].my_q.is_some() {
        return;
    }
    let whole_queue = !cx.features().throttle.is_per_task();
    let mut at = Some(id);
    while let Some(id) = at {
        let cfs = rq.se[id.idx()].cfs_rq;
        cx.touch(rq.cfs_object(cfs), fq::NR_QUEUED, Access::Update);
        let q = &mut rq.cfs[cfs.idx()];
        if up {
            q.h_nr_runnable += 1;
        } else {
            q.h_nr_runnable -= 1;
        }
        // A queue that was taken off its parent as a whole has taken its counts with it.
        if whole_queue && q.throttled {
            return;
        }
        at = rq.se[id.idx()].parent;
    }
}

/// Makes `id` the running entity of `cfs`. `first` = it was picked just now, and is protected.
pub fn set_next_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, first: bool) {
    let outer = cx.host.enter(Func::SetNextEntity);
    clear_buddies(rq, cfs, id);
    let queued = rq.se[id.idx()].on_rq;
    cx.touch(
        rq.cfs_object(cfs),
        fq::CURR | fq::TASKS_TIMELINE | fq::AVG_VRUNTIME | fq::NEXT,
        Access::Update,
    );
    cx.touch(
        rq.se_object(id),
        fse::ON_RQ | fse::RUN_NODE | fse::EXEC_START | fse::SUM_EXEC | fse::VLAG,
        Access::Update,
    );
    if queued {
        tree_remove(rq, cfs, id);
        update_load_avg(cx, rq, cfs, id, UpdateLoad::TG);
        if first {
            set_protect_slice(cx, rq, cfs, id);
        }
    }
    let now = rq.clock.task;
    let se = &mut rq.se[id.idx()];
    se.exec_start = now;
    se.prev_sum_exec_runtime = se.sum_exec_runtime;
    debug_assert!(rq.cfs[cfs.idx()].curr.is_none());
    rq.cfs[cfs.idx()].curr = Some(id);
    cx.host.leave(outer);
}

/// Ends the run of `id`, back into the tree if it is still queued.
pub fn put_prev_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId) {
    let outer = cx.host.enter(Func::PutPrevEntity);
    if rq.se[id.idx()].on_rq {
        update_curr(cx, rq, cfs);
    }
    throttle::check_cfs_rq_runtime(cx, rq, cfs);
    cx.touch(
        rq.cfs_object(cfs),
        fq::CURR | fq::TASKS_TIMELINE | fq::AVG_VRUNTIME,
        Access::Update,
    );
    cx.touch(rq.se_object(id), fse::ON_RQ | fse::RUN_NODE, Access::Update);
    if rq.se[id.idx()].on_rq {
        tree_insert(rq, cfs, id, cx.sys.features.pick);
        update_load_avg(cx, rq, cfs, id, UpdateLoad::NONE);
    }
    rq.cfs[cfs.idx()].curr = None;
    cx.host.leave(outer);
}

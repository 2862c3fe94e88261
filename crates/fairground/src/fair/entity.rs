//! One entity on one queue: joining, leaving, running.
//!
//! What an entity carries while it is on no queue is its lag (and, if it was only interrupted,
//! the rest of its request); what it carries on a queue is its vruntime and deadline.

pub use super::curr::update_curr;
pub(crate) use super::curr::update_curr_inlined;
pub use super::reweight::reweight_entity;
pub use super::vtime::{cfs_rq_max_slice, cfs_rq_min_slice};

use super::buddy::clear_buddies;
use super::curr::set_protect_slice;
use super::group::update_cfs_group;
use super::leaf::list_add_leaf_cfs_rq;
use super::load::{se_update_runnable, update_load_avg};
use super::place::place_entity;
use super::vtime::{avg_vruntime, entity_eligible, tree_insert, tree_remove};
use super::{cfs_rules, links, throttle};
use crate::cx::Cx;
use crate::fair::{Dequeue, Enqueue, SetNext, UpdateLoad};
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
    let (first, is_task) = (q.nr_queued == 1, se.my_q.is_none());
    if flags.has(Enqueue::MIGRATED) {
        se.exec_start = 0;
    }
    se.on_rq = true;
    if is_task {
        links::link_task(cx, rq, id);
    }
    if !running {
        tree_insert(rq, cfs, id, cx.sys.features.pick);
        links::touch_tree(cx, rq, id);
    }
    if first {
        rq.cfs[cfs.idx()].words.publish_queued(true);
        throttle::check_enqueue_throttle(cx, rq, cfs);
        let throttled = rq.cfs[cfs.idx()].throttled_hierarchy();
        if cx.features().throttle.joins_leaf_list(throttled) {
            list_add_leaf_cfs_rq(cx, rq, cfs);
        }
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
        cfs_rules::update_min_vruntime(rq, cfs);
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
    cx.features().delays_dequeue() && !entity_eligible(rq, cfs, id)
}

fn account_dequeue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId) {
    cx.touch(
        rq.cfs_object(cfs),
        fq::LOAD
            | fq::NR_QUEUED
            | fq::AVG_VRUNTIME
            | fq::MIN_VRUNTIME
            | fq::TASKS_TIMELINE
            | fq::NEXT,
        Access::Update,
    );
    cx.touch(
        rq.se_object(id),
        fse::ON_RQ | fse::RUN_NODE | fse::VLAG | fse::DEADLINE | fse::VRUNTIME,
        Access::Update,
    );
    if rq.cfs[cfs.idx()].curr != Some(id) {
        links::touch_tree(cx, rq, id);
        tree_remove(rq, cfs, id);
    }
    let se = &mut rq.se[id.idx()];
    se.on_rq = false;
    let is_task = se.my_q.is_none();
    let q = &mut rq.cfs[cfs.idx()];
    q.load.sub(se.load.weight);
    q.nr_queued -= 1;
    if q.nr_queued == 0 {
        q.words.publish_queued(false);
    }
    if is_task {
        links::unlink_task(cx, rq, id);
    }
}

/// Notes the lag of a queued entity, within its limits.
#[inline(always)]
pub(crate) fn update_entity_lag<H: Host>(cx: &Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId) {
    let v = avg_vruntime(rq, cfs);
    let features = cx.features();
    let own_ns = rq.se[id.idx()].slice_ns;
    let longest = || cfs_rq_max_slice(rq, cfs);
    let limit_ns = features.lag_limit.ns(own_ns, longest, features.tick_ns());
    let se = &mut rq.se[id.idx()];
    se.vlag = entity_lag(v, se.vruntime, limit_ns, &se.load);
}

/// A delayed sleeper is runnable again where it is. Lag earned by sleeping is cut, by decision:
/// then it has to be placed again.
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

/// Makes `id` the running entity of `cfs`.
pub fn set_next_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, why: SetNext) {
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
        links::touch_tree(cx, rq, id);
        tree_remove(rq, cfs, id);
        update_load_avg(cx, rq, cfs, id, UpdateLoad::TG);
    }
    let (queue, se) = (&mut rq.cfs[cfs.idx()], &mut rq.se[id.idx()]);
    debug_assert!(queue.curr.is_none());
    if queued && (why == SetNext::Picked || cx.sys.features.run_to_parity.renews()) {
        let min_slice = rq.nodes.min_slice(&queue.tree);
        set_protect_slice(&cx.sys.features, se, min_slice);
    }
    se.exec_start = rq.clock.task;
    se.prev_sum_exec_runtime = se.sum_exec_runtime;
    queue.curr = Some(id);
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
        links::touch_tree(cx, rq, id);
        update_load_avg(cx, rq, cfs, id, UpdateLoad::NONE);
    }
    rq.cfs[cfs.idx()].curr = None;
    cx.host.leave(outer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Lab, Spec, nice};
    use crate::policy::{DelayDequeue, Features, LagLimit};
    use crate::value::TaskId;

    const MS: u64 = 1_000_000;

    fn delay(delay_dequeue: DelayDequeue) -> Lab {
        Lab::new(Features {
            delay_dequeue,
            ..Features::default()
        })
    }

    /// Task 0 runs `ms` while task 1 waits, then sleeps; whether it left at once.
    fn overdraw(lab: &mut Lab, ms: u64) -> bool {
        lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.host.now += ms * MS; // no tick in between
        lab.tick_at += ms * MS;
        assert_eq!(lab.rq.curr_task(), Some(TaskId(0)));
        lab.sleep()
    }

    #[test]
    fn lag_survives_sleep() {
        let mut lab = delay(DelayDequeue::Off);
        assert!(overdraw(&mut lab, 1));
        let lag = lab.host.parked[0].se.vlag;
        assert_eq!(lag, -(MS as i64) / 2, "1 ms ahead of one that has had none");
        lab.run(100 * MS);
        let slot = lab.wake(TaskId(0));
        assert_eq!(lab.rq.curr_task(), Some(TaskId(1)));
        lab.with(|cx, rq| update_entity_lag(cx, rq, CfsId::ROOT, slot));
        let kept = lab.rq.se[slot.idx()].vlag;
        assert!((kept - lag).abs() <= 1, "{kept} for {lag}");
    }

    /// Lags in ms of a task that has run 60 ms with a slice of 1 ms, and of one with 10 ms that has
    /// waited: 30 ms each without a limit.
    fn lags_of_extremes(lag_limit: LagLimit) -> [i64; 2] {
        let mut lab = Lab::new(Features {
            lag_limit,
            ..Features::default()
        });
        let mut spawn = |ms: u64| {
            let slice_ns = Some(ms * MS);
            let spec = Spec {
                slice_ns,
                ..Spec::default()
            };
            lab.spawn(spec, Enqueue::WAKEUP)
        };
        let slots = [spawn(1), spawn(10)];
        lab.host.now += 60 * MS; // no tick in between
        lab.with(|cx, rq| update_curr(cx, rq, CfsId::ROOT));
        slots.map(|slot| {
            lab.with(|cx, rq| update_entity_lag(cx, rq, CfsId::ROOT, slot));
            lab.rq.se[slot.idx()].vlag / MS as i64
        })
    }

    #[test]
    fn the_longest_slice_queued_and_a_tick_limit_the_lag() {
        let tick_ms = (Features::default().tick_ns() / MS) as i64;
        let longest = 10 + tick_ms;
        assert_eq!(
            lags_of_extremes(LagLimit::LongestSlice),
            [-longest, longest]
        );
        assert_eq!(lags_of_extremes(LagLimit::OwnSlice), [-tick_ms.max(2), 20]);
    }

    #[test]
    fn a_delayed_sleeper_leaves_when_it_is_picked() {
        let mut lab = delay(DelayDequeue::KeepZero);
        assert!(!overdraw(&mut lab, 1));
        assert_eq!((lab.rq.nr_running, lab.rq.cfs[0].h_nr_queued), (2, 2));
        assert_eq!(lab.rq.cfs[0].h_nr_runnable, 1);
        assert!(lab.host.parked.is_empty());
        lab.run(20 * MS);
        assert_eq!((lab.rq.nr_running, lab.rq.cfs[0].h_nr_queued), (1, 1));
        assert_eq!(lab.rq.cfs[0].h_nr_runnable, 1);
        let se = &lab.host.parked[0].se;
        assert!(!se.sched_delayed && se.vlag <= 0);
        assert!(lab.slot(TaskId(0)).is_none());
    }

    #[test]
    fn a_delayed_sleeper_that_wakes_goes_on_where_it_is() {
        let mut lab = delay(DelayDequeue::KeepZero);
        overdraw(&mut lab, 1);
        let slot = lab.wake(TaskId(0));
        let se = &lab.rq.se[slot.idx()];
        assert!(se.on_rq && !se.sched_delayed);
        assert_eq!(lab.rq.cfs[0].h_nr_runnable, 2);
    }

    #[test]
    fn the_last_one_to_sleep_is_not_delayed() {
        let mut lab = delay(DelayDequeue::KeepZero);
        lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.run(10 * MS);
        assert!(lab.sleep());
        assert_eq!((lab.rq.nr_running, lab.rq.curr), (0, None));
        assert_eq!(lab.host.parked.len(), 1);
    }

    #[test]
    fn two_delayed_sleepers_leave_with_the_running_one() {
        // Task 1 sleeps with lag left, so task 0, delayed, is all that is queued: it is picked,
        // and leaves.
        let mut lab = delay(DelayDequeue::KeepZero);
        overdraw(&mut lab, 2);
        lab.sleep();
        assert_eq!((lab.rq.nr_running, lab.rq.curr), (0, None));
        assert_eq!(lab.host.parked.len(), 2);
    }

    #[test]
    fn lags_sum_to_zero() {
        let mut lab = Lab::new(Features::default());
        for n in [0, 5, -5, 10, 19, -20] {
            lab.spawn(nice(n), Enqueue::INITIAL);
        }
        for _ in 0..200 {
            lab.run(2_345_678);
            lab.with(|cx, rq| update_curr(cx, rq, CfsId::ROOT));
            let v = avg_vruntime(&mut lab.rq, CfsId::ROOT);
            let (mut lags, mut load) = (0i128, 0i128);
            for se in lab.rq.se.iter().filter(|se| se.on_rq) {
                let weight = i128::from(se.load.weight >> 10);
                lags += weight * i128::from(v.wrapping_sub(se.vruntime) as i64);
                load += weight;
            }
            // V is rounded down, by less than one.
            assert!(lags <= 0 && lags > -load, "{lags} of {load}");
        }
    }
}

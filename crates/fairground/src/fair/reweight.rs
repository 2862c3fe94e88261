//! Changing the weight of an entity.

use super::load::{dequeue_load_avg, enqueue_load_avg, publish_load, publish_queue_load};
use super::place::place_entity;
use super::vtime::{avg_vruntime, tree_insert, tree_remove};
use super::{curr, entity};
use crate::cx::Cx;
use crate::fair::Enqueue;
use crate::host::Host;
use crate::math::eevdf::rescale;
use crate::math::pelt::get_pelt_divider;
use crate::math::weight::scale_load_down;
use crate::place::{Access, Func, cfs_rq as fq, se as fse};
use crate::policy::Reweight;
use crate::rq::Rq;
use crate::task::{SchedEntity, Task};
use crate::value::{CfsId, SeId};

/// Changes the weight (load units) of an entity, queued or not, keeping its lag and the rest of
/// its request as service (see [`rescale`]).
///
/// Where that leaves it in virtual time is a decision ([`Reweight`]). A running entity that is
/// placed again stays counted in the queue's virtual time meanwhile, with the new weight.
pub fn reweight_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, weight: u64) {
    let outer = cx.host.enter(Func::ReweightEntity);
    let (queue, se) = (&rq.cfs[cfs.idx()], &rq.se[id.idx()]);
    let mut fields = fq::LOAD | fq::NR_QUEUED | fq::AVG;
    if se.on_rq {
        fields = fields | fq::AVG_VRUNTIME | fq::MIN_VRUNTIME;
    }
    cx.touch(queue.object(rq.cpu), fields, Access::Update);
    cx.touch(se.object(rq.cpu), fse::LOAD | fse::AVG, Access::Update);
    let pick = cx.features().pick;
    let (queued, running) = (se.on_rq, queue.curr == Some(id));
    let mut left = None;
    if queued {
        curr::update_curr(cx, rq, cfs);
        if pick.by_deadline() {
            left = Some(leave_virtual_time(cx, rq, cfs, id, running));
        }
        if !running {
            tree_remove(rq, cfs, id);
        }
    }
    let (queue, se) = (&mut rq.cfs[cfs.idx()], &mut rq.se[id.idx()]);
    let old = se.load.weight;
    if queued {
        queue.nr_queued -= 1;
        queue.load.sub(old);
    }
    dequeue_load_avg(&mut queue.avg, se);
    rescale_entity(se, weight);
    enqueue_load_avg(&mut queue.avg, se);
    publish_load(rq, cfs, id);
    if queued {
        if let Some(left) = left {
            come_back(cx, rq, cfs, id, &left);
            let rest = left.protected.map(|rest| rescale(rest, old, weight));
            let parity = cx.features().run_to_parity;
            parity.reweighted(&mut rq.se[id.idx()], rest);
        }
        let queue = &mut rq.cfs[cfs.idx()];
        queue.load.add(weight);
        queue.nr_queued += 1;
        if !running {
            tree_insert(rq, cfs, id, pick);
        }
    }
    cx.host.leave(outer);
}

/// The same for a task that is with the host (`reweight_task_fair` of one that sleeps); `rq` is
/// that of the CPU it was last on.
///
/// If its load is still on the account of its group's queue there, the queue's part of it is
/// replaced: by that of the averages as they are, as in the kernel, which ages neither here.
pub fn reweight_parked<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: &mut Task, weight: u64) {
    let outer = cx.host.enter(Func::ReweightEntity);
    let se = &mut task.se;
    cx.touch(se.object(rq.cpu), fse::LOAD | fse::AVG, Access::Update);
    let attached = se.avg.last_update_time != 0;
    let queue = rq.cfs_of(task.body.tg).filter(|_| attached);
    match queue.map(|cfs| &mut rq.cfs[cfs.idx()]) {
        Some(queue) => {
            cx.touch(queue.object(rq.cpu), fq::LOAD | fq::AVG, Access::Update);
            dequeue_load_avg(&mut queue.avg, se);
            rescale_entity(se, weight);
            enqueue_load_avg(&mut queue.avg, se);
            publish_queue_load(queue);
        }
        None => {
            // A task that was never enqueued has no sum yet; its load is full.
            let new = se.avg.load_sum == 0 && se.avg.load_avg != 0;
            rescale_entity(se, weight);
            if new {
                se.avg.load_avg = scale_load_down(weight);
            }
        }
    }
    cx.host.leave(outer);
}

/// Gives an entity that is in no tree another weight, and scales what counts by it: lag, a deadline
/// that is relative, load.
#[inline(always)]
fn rescale_entity(se: &mut SchedEntity, weight: u64) {
    let old = se.load.weight;
    se.vlag = rescale(se.vlag, old, weight);
    if se.rel_deadline {
        se.deadline = rescale(se.deadline as i64, old, weight) as u64;
    }
    se.load.set(weight);
    let divider = get_pelt_divider(&se.avg);
    se.avg.load_avg = scale_load_down(weight) * se.avg.load_sum / divider;
}

/// An entity whose weight changes, out of virtual time.
struct Left {
    /// The queue's virtual time, from which lag and deadline are measured; `None`: it will be
    /// placed as one that joins, and its deadline is relative to its vruntime.
    mean: Option<u64>,
    /// What is left of the protection of a running entity, virtual ns of its old weight.
    protected: Option<i64>,
}

/// Keeps lag and deadline relative to the virtual time.
#[inline(always)]
fn leave_virtual_time<H: Host>(
    cx: &Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    id: SeId,
    running: bool,
) -> Left {
    entity::update_entity_lag(cx, rq, cfs, id);
    let keeps_mean = cx.features().reweight == Reweight::KeepsMean;
    let mean = keeps_mean.then(|| avg_vruntime(rq, cfs));
    let parity = cx.features().run_to_parity;
    let se = &mut rq.se[id.idx()];
    let rest = se.vprot.wrapping_sub(se.vruntime) as i64;
    let protected = (running && parity.protects(se)).then_some(rest);
    se.deadline = se.deadline.wrapping_sub(mean.unwrap_or(se.vruntime));
    se.rel_deadline = true;
    Left { mean, protected }
}

/// Gives the entity its vruntime and deadline by what it has kept.
#[inline(always)]
fn come_back<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, left: &Left) {
    let Some(mean) = left.mean else {
        return place_entity(cx, rq, cfs, id, Enqueue::NONE);
    };
    let se = &mut rq.se[id.idx()];
    se.vruntime = mean.wrapping_sub(se.vlag as u64);
    se.deadline = mean.wrapping_add(se.deadline);
    se.rel_deadline = false;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::eevdf::vruntime_before;
    use crate::math::weight::{LoadWeight, calc_delta_fair};
    use crate::policy::{Features, LagLimit, PROFILES};
    use crate::sched;
    use crate::shared::Relaxed;
    use crate::task::Prev;
    use crate::testing::Bench;
    use crate::value::TgId;

    /// The vruntime of a group's entity that loses its weight, as random calls under `linux-6.9`
    /// had it: the bound of lag, times what its weight was, by what it is.
    #[test]
    fn below_2048_a_change_of_weight_scales_lag_that_keeps_its_pace() {
        for profile in PROFILES {
            let features = Features::of_profile(profile);
            if !features.pick.by_deadline() {
                continue;
            }
            let limit_ns = match features.lag_limit {
                LagLimit::OwnSlice => 2 * 46_000_000,
                LagLimit::LongestSlice => 46_000_000 + features.tick_ns(),
            };
            let mut bench = Bench::new(1, features);
            bench.start(0, TgId::ROOT);
            bench.start(0, TgId::ROOT);
            let switch = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
            let runs = switch.next.expect("two are queued");
            let slot = SeId(bench.sys.task[runs.idx()].slot.load(Relaxed));
            bench.rqs[0].se[slot.idx()].set_slice(Some(46_000_000), 0);
            let mut set = |weight, later| {
                bench.host.now += later;
                bench.on(0, |cx, rq| {
                    reweight_entity(cx, rq, CfsId::ROOT, slot, weight)
                });
                let (rq, se) = (&bench.rqs[0], &bench.rqs[0].se[slot.idx()]);
                let ahead = se.vruntime.wrapping_sub(rq.cfs[0].zero_vruntime) as i64;
                (se.vlag, ahead)
            };
            set(1729, 0);
            let limit = calc_delta_fair(limit_ns, &LoadWeight::new(1729)) as i64;
            assert_eq!(limit, calc_delta_fair(limit_ns, &LoadWeight::new(2)) as i64);
            // More than it may owe.
            let (vlag, ahead) = set(2, 200_000_000);
            assert_eq!(vlag, rescale(-limit, 1729, 2));
            assert!(ahead >= 864 * limit, "{ahead}");
            assert_eq!(set(1729, 0).0, rescale(-limit, 2, 1729), "cut first");
        }
    }

    /// A heavy and a light task of a queue; whether the heavy one, which runs with service due to
    /// it, has more due after its weight has changed back and forth, and whether the queue's
    /// virtual time has moved.
    fn after_changes_back_and_forth(reweight: Reweight) -> (bool, bool) {
        let features = Features {
            reweight,
            ..Features::default()
        };
        let mut bench = Bench::new(1, features);
        bench.start(0, TgId::ROOT);
        bench.start(0, TgId::ROOT);
        let schedule = |bench: &mut Bench| {
            let switch = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
            switch
                .next
                .or(bench.rqs[0].curr_task())
                .expect("two are queued")
        };
        let first = schedule(&mut bench);
        // Less than an entity may be owed.
        bench.host.now += 1_500_000;
        let runs = schedule(&mut bench);
        assert_ne!(first, runs);
        let slot = SeId(bench.sys.task[runs.idx()].slot.load(Relaxed));
        let set = |bench: &mut Bench, weight| {
            bench.on(0, |cx, rq| {
                reweight_entity(cx, rq, CfsId::ROOT, slot, weight);
                (avg_vruntime(rq, CfsId::ROOT), rq.se[slot.idx()].vruntime)
            })
        };
        let (heavy, light) = (8 << 20, 2 << 20);
        let (mean, before) = set(&mut bench, heavy);
        let mut last = (mean, before);
        for _ in 0..8 {
            set(&mut bench, light);
            last = set(&mut bench, heavy);
        }
        let more_due = vruntime_before(last.1.wrapping_add(1000), before);
        // Each change rounds by a ns.
        let moved = last.0.wrapping_sub(mean) as i64;
        (more_due, moved.abs() > 1000)
    }

    #[test]
    fn the_mean_stays_or_a_running_entity_is_due_more_with_each_change() {
        let (more_due, moved) = after_changes_back_and_forth(Reweight::KeepsMean);
        assert!(!more_due && !moved);
        let (more_due, moved) = after_changes_back_and_forth(Reweight::AsJoining);
        assert!(more_due && moved);
    }
}

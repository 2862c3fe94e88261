//! Changing the weight of an entity.

use super::load::{dequeue_load_avg, enqueue_load_avg, publish_load};
use super::place::place_entity;
use super::vtime::{tree_insert, tree_remove};
use super::{curr, entity};
use crate::cx::Cx;
use crate::fair::Enqueue;
use crate::host::Host;
use crate::math::eevdf::rescale;
use crate::math::pelt::get_pelt_divider;
use crate::math::weight::scale_load_down;
use crate::place::{Access, Func, cfs_rq as fq, se as fse};
use crate::rq::Rq;
use crate::value::{CfsId, SeId};

/// Changes the weight (load units) of an entity, queued or not, keeping its lag and the rest of
/// its request as service (see [`rescale`]).
///
/// A running entity stays counted in the queue's virtual time, with the new weight, while it is
/// placed again; so does the kernel.
pub fn reweight_entity<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, weight: u64) {
    let outer = cx.host.enter(Func::ReweightEntity);
    let (queue, se) = (&rq.cfs[cfs.idx()], &rq.se[id.idx()]);
    let read = fq::LOAD | fq::NR_QUEUED | fq::AVG;
    cx.touch(queue.object(rq.cpu), read, Access::Update);
    cx.touch(se.object(rq.cpu), fse::LOAD | fse::AVG, Access::Update);
    let pick = cx.features().pick;
    let (queued, running) = (se.on_rq, queue.curr == Some(id));
    let mut protected = None;
    if queued {
        curr::update_curr(cx, rq, cfs);
        if pick.by_deadline() {
            protected = leave_virtual_time(cx, rq, cfs, id, running);
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
    se.vlag = rescale(se.vlag, old, weight);
    if se.rel_deadline {
        se.deadline = rescale(se.deadline as i64, old, weight) as u64;
    }
    let protected = protected.map(|rest| rescale(rest, old, weight));
    se.load.set(weight);
    let divider = get_pelt_divider(&se.avg);
    se.avg.load_avg = scale_load_down(weight) * se.avg.load_sum / divider;
    enqueue_load_avg(&mut queue.avg, se);
    publish_load(rq, cfs, id);
    if queued {
        if pick.by_deadline() {
            place_entity(cx, rq, cfs, id, Enqueue::NONE);
            let parity = cx.features().run_to_parity;
            parity.reweighted(&mut rq.se[id.idx()], protected);
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

/// Keeps lag and deadline relative to the virtual time; answers the rest of the protection of a
/// running entity.
#[inline(always)]
fn leave_virtual_time<H: Host>(
    cx: &Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    id: SeId,
    running: bool,
) -> Option<i64> {
    entity::update_entity_lag(cx, rq, cfs, id);
    let parity = cx.features().run_to_parity;
    let se = &mut rq.se[id.idx()];
    let rest = se.vprot.wrapping_sub(se.vruntime) as i64;
    let protected = (running && parity.protects(se)).then_some(rest);
    se.deadline = se.deadline.wrapping_sub(se.vruntime);
    se.rel_deadline = true;
    protected
}

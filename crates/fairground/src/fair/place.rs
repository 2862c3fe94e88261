//! Where an entity joins a queue in virtual time.

use super::cfs_rules;
use super::entity::update_curr;
use super::vtime::avg_vruntime_of;
use crate::cx::Cx;
use crate::fair::Enqueue;
use crate::host::Host;
use crate::math::eevdf::place_lag;
use crate::math::weight::{calc_delta_fair, scale_load_down};
use crate::place::{Access, Func, cfs_rq as fq, se as fse};
use crate::rq::Rq;
use crate::task::{Policy, Task};
use crate::value::{CfsId, SeId};

/// Gives an entity that is about to join `cfs` its vruntime (and deadline).
pub(crate) fn place_entity<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    id: SeId,
    flags: Enqueue,
) {
    let outer = cx.host.enter(Func::PlaceEntity);
    touch_avg_vruntime(cx, rq, cfs);
    cx.touch(rq.cfs_object(cfs), fq::LOAD | fq::NR_QUEUED, Access::Read);
    cx.touch(
        rq.se_object(id),
        fse::VRUNTIME | fse::DEADLINE | fse::VLAG | fse::SLICE | fse::LOAD,
        Access::Update,
    );
    if cx.features().pick.by_deadline() {
        place_by_lag(cx, rq, cfs, id, flags);
    } else {
        cfs_rules::place(cx, rq, cfs, id, flags);
    }
    cx.host.leave(outer);
}

/// The words of a queue's virtual time are read, and written where the base moves to the mean
/// whenever that is computed (`avg_vruntime`).
#[inline]
pub(crate) fn touch_avg_vruntime<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId) {
    let (features, sums) = (cx.features(), fq::AVG_VRUNTIME | fq::MIN_VRUNTIME);
    if features.pick.by_deadline() && !features.vruntime_base.moves_with_charge() {
        cx.touch_mixed(rq.cfs_object(cfs), fq::CURR, sums);
    } else {
        cx.touch(rq.cfs_object(cfs), fq::CURR | sums, Access::Read);
    }
}

/// Gives a new task its place at fork, beside its parent, which runs on this CPU
/// (`task_fork_fair`, up to 6.11). With deadlines it is placed anew as it joins its queue, so all
/// that is left is that the parent is charged.
pub(crate) fn task_fork_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, child: &mut Task) {
    let Some(parent) = rq.curr else {
        return;
    };
    let cfs = rq.se[parent.idx()].cfs_rq;
    update_curr(cx, rq, cfs);
    cx.touch(
        rq.cfs_object(cfs),
        fq::MIN_VRUNTIME | fq::LOAD | fq::NR_QUEUED | fq::CURR,
        Access::Read,
    );
    if !cx.features().pick.by_deadline() {
        let idle = child.body.policy == Policy::Idle;
        cfs_rules::place_beside(cx, rq, parent, &mut child.se, idle);
    }
}

/// With deadlines: at the lag it left with, as it will be measured once the entity has joined;
/// then one request ahead, or what was left of the request when it was interrupted.
fn place_by_lag<H: Host>(cx: &Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, flags: Enqueue) {
    let features = &cx.sys.features;
    let (v, load) = avg_vruntime_of(rq, cfs);
    let queued = rq.cfs[cfs.idx()].nr_queued;
    let se = &mut rq.se[id.idx()];
    if !se.custom_slice {
        se.slice_ns = features.tunables.base_slice_ns;
    }
    let mut lag = 0;
    if features.place.lag && queued > 0 && se.vlag != 0 {
        lag = place_lag(se.vlag, load, scale_load_down(se.load.weight));
    }
    se.vruntime = v.wrapping_sub(lag as u64);
    if se.rel_deadline {
        se.rel_deadline = false;
        se.deadline = se.deadline.wrapping_add(se.vruntime);
        return;
    }
    let mut request = calc_delta_fair(se.slice_ns, &se.load);
    if flags.has(Enqueue::INITIAL) && features.place.halves_first_request() {
        request /= 2;
    }
    se.deadline = se.vruntime.wrapping_add(request);
}

//! Charging the running entity: execution, virtual time, deadline.

use super::resched::resched_curr_lazy;
use super::throttle::account_cfs_rq_runtime;
use super::vtime::sums_with;
use super::{buddy, cfs_rules};
use crate::cx::Cx;
use crate::host::Host;
use crate::math::eevdf::{entity_eligible, vruntime_before};
use crate::math::weight::{NICE_0_LOAD, calc_delta_fair};
use crate::place::{Access, Func, cfs_rq as fq, se as fse};
use crate::policy::Features;
use crate::rq::{CfsRq, Rq};
use crate::task::SchedEntity;
use crate::value::{CfsId, SeId};

/// Charges the running entity of `cfs` up to `rq.clock.task`; may set `rq.need_resched`.
///
/// With deadlines, a request that is used up, or a protection that has ended, calls for a new
/// choice if somebody else is queued. At a group's queue this is as at the root: the entity of
/// the group that runs is charged, and may have to give way on its level.
#[inline]
pub fn update_curr<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    if let Some((curr, delta)) = uncharged(rq, cfs) {
        charge_called(cx, rq, cfs, curr, delta);
    }
}

/// [`update_curr`] without a call: for tick and pick, which come by at each level.
#[inline(always)]
pub(crate) fn update_curr_inlined<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    if let Some((curr, delta)) = uncharged(rq, cfs) {
        charge(cx, rq, cfs, curr, delta);
    }
}

/// The running entity, and the time (ns) that it has run since it was last charged.
#[inline(always)]
fn uncharged(rq: &Rq, cfs: CfsId) -> Option<(SeId, u64)> {
    let curr = rq.cfs[cfs.idx()].curr?;
    let delta = rq.clock.task.wrapping_sub(rq.se[curr.idx()].exec_start);
    (delta as i64 > 0).then_some((curr, delta))
}

#[inline(never)]
fn charge_called<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, curr: SeId, delta: u64) {
    charge(cx, rq, cfs, curr, delta);
}

/// [`update_curr`] of time that has passed: `delta` ns.
#[inline(always)]
fn charge<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, curr: SeId, delta: u64) {
    let outer = cx.host.enter(Func::UpdateCurr);
    let (sys, cpu) = (cx.sys, rq.cpu);
    let features = &sys.features;
    let (queue, se) = (&rq.cfs[cfs.idx()], &mut rq.se[curr.idx()]);
    se.exec_start = rq.clock.task;
    se.sum_exec_runtime += delta;
    if se.load.weight != NICE_0_LOAD {
        se.load.fill_inverse();
    }
    let vdelta = calc_delta_fair(delta, &se.load) << sys.vruntime_shift();
    se.vruntime = se.vruntime.wrapping_add(vdelta);
    cx.touch(queue.object(cpu), fq::CURR | fq::NR_QUEUED, Access::Read);
    let written = fse::EXEC_START | fse::SUM_EXEC | fse::VRUNTIME;
    cx.touch_mixed(se.object(cpu), fse::DEADLINE | fse::LOAD, written);
    let by_deadline = features.pick.by_deadline();
    let before = se.deadline;
    let gives_way = by_deadline && end_of_request(features, queue, se);
    if se.deadline != before {
        cx.touch(se.object(cpu), fse::DEADLINE | fse::SLICE, Access::Write);
    }
    if se.my_q.is_none() {
        charge_groups(rq, cfs, delta);
    }
    account_cfs_rq_runtime(cx, rq, cfs, delta);
    if gives_way {
        resched_curr_lazy(cx, rq);
        buddy::clear_buddies(rq, cfs, curr);
    }
    if !by_deadline || features.vruntime_base.moves_with_charge() {
        touch_min_vruntime(cx, rq, cfs);
    }
    if !by_deadline {
        cfs_rules::update_min_vruntime(rq, cfs);
    }
    cx.host.leave(outer);
}

/// Run time of a task in the `cpu.stat` of its group and of those above, throttled or not
/// (`cgroup_account_cputime`); `cfs` is its queue.
#[inline]
fn charge_groups(rq: &Rq, mut cfs: CfsId, delta: u64) {
    loop {
        let queue = &rq.cfs[cfs.idx()];
        queue.words.charge(delta);
        if queue.se.is_none() {
            return;
        }
        cfs = queue.parent;
    }
}

/// What advances `min_vruntime` reads and writes (`update_min_vruntime`): the least of the tree is
/// with its first entity, or in the root where the tree is sorted by deadline.
fn touch_min_vruntime<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId) {
    let (queue, by_deadline) = (&rq.cfs[cfs.idx()], cx.features().pick.by_deadline());
    cx.touch_mixed(rq.cfs_object(cfs), fq::TASKS_TIMELINE, fq::MIN_VRUNTIME);
    let (least, field) = match by_deadline {
        true => (rq.nodes.root(&queue.tree), fse::MIN_VRUNTIME),
        false => (rq.nodes.first(&queue.tree), fse::VRUNTIME),
    };
    if let Some(least) = least {
        cx.touch(rq.se_object(SeId(least)), field, Access::Read);
    }
}

/// A new deadline if the old one is reached. True if that or the end of protection calls for a new
/// choice, and there is somebody else.
#[inline]
fn end_of_request(features: &Features, queue: &CfsRq, curr: &mut SchedEntity) -> bool {
    let used_up = update_deadline(curr, features.tunables.base_slice_ns);
    if queue.nr_queued <= 1 {
        return false;
    }
    let by_slice = features.wakeup_preemption.by_slice();
    let eligible = || {
        let all = sums_with(queue, Some(&*curr).filter(|se| se.on_rq));
        entity_eligible(&all, queue.zero_vruntime, curr.vruntime)
    };
    used_up || features.run_to_parity.gives_way(curr, by_slice, eligible)
}

/// Starts the next request when the vruntime has reached the deadline.
#[inline]
fn update_deadline(se: &mut SchedEntity, base_slice_ns: u64) -> bool {
    if vruntime_before(se.vruntime, se.deadline) {
        return false;
    }
    if !se.custom_slice {
        se.slice_ns = base_slice_ns;
    }
    se.deadline = se
        .vruntime
        .wrapping_add(calc_delta_fair(se.slice_ns, &se.load));
    true
}

/// Protects the entity that was just picked, by the decision. `min_slice` is the shortest slice
/// (ns) of the others, `None` if there are none.
#[inline]
pub(crate) fn set_protect_slice(features: &Features, se: &mut SchedEntity, min_slice: Option<u64>) {
    let (quantum_ns, shortest) = (features.tunables.quantum_ns, min_slice.unwrap_or(u64::MAX));
    features.run_to_parity.protect(se, quantum_ns, shortest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Pick, VruntimeBase};
    use crate::sched;
    use crate::task::Prev;
    use crate::testing::Bench;
    use crate::value::TgId;

    /// Of two tasks one runs for 100 us and is charged. Whether that writes the base of virtual
    /// time, and whether it reads the other one, which is alone in the tree.
    fn charge_moves_base(pick: Pick, vruntime_base: VruntimeBase) -> (bool, bool) {
        let mut bench = Bench::new(
            1,
            Features {
                pick,
                vruntime_base,
                ..Features::default()
            },
        );
        let _ = (bench.start(0, TgId::ROOT), bench.start(0, TgId::ROOT));
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        bench.host.now += 100_000;
        bench.host.touches.clear();
        bench.on(0, |cx, rq| update_curr(cx, rq, CfsId::ROOT));
        let rq = &bench.rqs[0];
        let waits = rq.nodes.first(&rq.cfs[0].tree).expect("one waits");
        let (queue, other) = (rq.cfs_object(CfsId::ROOT), rq.se_object(SeId(waits)));
        let touches = &bench.host.touches;
        let writes = |(o, f, access): &(_, crate::place::Fields, _)| {
            *o == queue && f.intersects(fq::MIN_VRUNTIME) && *access != Access::Read
        };
        (
            touches.iter().any(writes),
            touches.iter().any(|(o, ..)| *o == other),
        )
    }

    #[test]
    fn charging_moved_the_base_up_to_6_17() {
        use VruntimeBase::{Least, Mean};
        assert_eq!(charge_moves_base(Pick::Eevdf, Mean), (false, false));
        assert_eq!(charge_moves_base(Pick::Eevdf, Least), (true, true));
        assert_eq!(charge_moves_base(Pick::Cfs, Least), (true, true));
        assert_eq!(charge_moves_base(Pick::Cfs, Mean), (true, true), "always");
    }
}

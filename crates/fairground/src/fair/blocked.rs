//! Decay of the load of what sleeps (`sched_balance_update_blocked_averages`).

use super::leaf::{cfs_rq_is_decayed, list_del_leaf_cfs_rq};
use super::load::update_load_avg;
use super::others::update_blocked_others;
use super::propagate::{age_queue, update_idle_cfs_rq_clock_pelt, update_tg_load_avg};
use crate::cx::Cx;
use crate::fair::UpdateLoad;
use crate::host::Host;
use crate::place::{Access, Func, cfs_rq as q, rq as r, se as e};
use crate::rq::Rq;
use crate::value::{CfsId, SeId};

/// Ages all leaf queues of the CPU; clears `rq.has_blocked_load` if nothing is left to decay. Only
/// stopping the tick sets it (`nohz_balance_enter_idle`).
///
/// Children come before their parents, so that one pass brings a change up to the root.
pub fn update_blocked_averages<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    let outer = cx.host.enter(Func::UpdateBlockedAverages);
    cx.touch(rq.object(), r::LEAF_LIST, Access::Read);
    rq.last_blocked_update = cx.jiffies();
    let mut blocked = update_blocked_others(cx, rq);
    let mut next = rq.leaf_head;
    while let Some(cfs) = next {
        next = rq.cfs[cfs.idx()].leaf_next; // it may leave the list
        update_one(cx, rq, cfs);
        let avg = &rq.cfs[cfs.idx()].avg;
        blocked |= avg.load_avg != 0 || avg.util_avg != 0;
    }
    rq.has_blocked_load &= blocked;
    cx.touch(rq.object(), r::BLOCKED, Access::Write);
    cx.host.leave(outer);
}

fn update_one<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    if age_queue(cx, rq, cfs) {
        update_tg_load_avg(cx, rq, cfs);
        if rq.cfs[cfs.idx()].nr_queued == 0 {
            update_idle_cfs_rq_clock_pelt(cx, rq, cfs);
        }
    }
    if let Some(se) = rq.cfs[cfs.idx()].se
        && has_load(cx, rq, cfs, se)
    {
        let above = rq.se[se.idx()].cfs_rq;
        update_load_avg(cx, rq, above, se, UpdateLoad::TG);
    }
    cx.touch(rq.cfs_object(cfs), q::LEAF_NODE, Access::Read);
    if cfs_rq_is_decayed(cx, rq, cfs) {
        list_del_leaf_cfs_rq(cx, rq, cfs);
    }
}

/// Whether the entity of `cfs` has load to decay, or something to take over from it (the opposite
/// of `skip_blocked_update`).
fn has_load<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId, se: SeId) -> bool {
    let tg = rq.cfs[cfs.idx()].tg;
    cx.touch(rq.cfs_object(cfs), q::TG, Access::Read);
    cx.sys.tg[tg.idx()].look_up_entity(rq.cpu, cx.host);
    cx.touch(rq.se_object(se), e::MY_Q | e::AVG, Access::Read);
    let avg = &rq.se[se.idx()].avg;
    avg.load_avg != 0 || avg.util_avg != 0 || rq.cfs[cfs.idx()].propagate
}

//! Estimated utilisation of tasks and of the CPU (`UTIL_EST`).
//!
//! The CPU's estimate, in the root queue's averages, is the sum over its queued tasks. A task's
//! does not change while it is queued, so adding and subtracting it leaves nothing behind.

use crate::cx::Cx;
use crate::host::Host;
use crate::math::pelt;
use crate::place::{Access, cfs_rq as q, se as e};
use crate::rq::Rq;
use crate::value::{CfsId, SeId};

/// Adds the estimate of a task that is enqueued.
pub fn util_est_enqueue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    if !cx.features().util_est {
        return;
    }
    touch(cx, rq, task);
    let estimate = pelt::util_est_value(rq.se[task.idx()].avg.util_est) as u32;
    rq.cfs[CfsId::ROOT.idx()].avg.util_est += estimate;
}

/// Subtracts it.
pub fn util_est_dequeue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    if !cx.features().util_est {
        return;
    }
    touch(cx, rq, task);
    let estimate = pelt::util_est_value(rq.se[task.idx()].avg.util_est) as u32;
    let sum = &mut rq.cfs[CfsId::ROOT.idx()].avg.util_est;
    *sum = sum.saturating_sub(estimate);
}

/// Updates the estimate of a task that goes to sleep.
pub fn util_est_update<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, sleep: bool) {
    if !sleep || !cx.features().util_est {
        return;
    }
    let capacity = match cx.features().load.util_est_above {
        true => u64::MAX,
        false => rq.clock.capacity,
    };
    let avg = &mut rq.se[task.idx()].avg;
    let next = pelt::util_est_update(avg.util_est, avg.util_avg, avg.runnable_avg, capacity);
    if let Some(next) = next {
        avg.util_est = next;
        cx.touch(rq.se_object(task), e::AVG, Access::Update);
    }
}

fn touch<H: Host>(cx: &mut Cx<H>, rq: &Rq, task: SeId) {
    cx.touch(rq.se_object(task), e::AVG, Access::Read);
    cx.touch(rq.cfs_object(CfsId::ROOT), q::AVG, Access::Update);
}

//! What classes above the fair one use of a CPU, and what that leaves.

use crate::cx::Cx;
use crate::host::Host;
use crate::math::pelt::update_load_avg_rt;
use crate::place::{Access, rq as frq};
use crate::rq::{HigherClass, Rq};
use crate::shared::Relaxed;
use crate::value::Cpu;

/// Brings the average use of the CPU by real-time tasks up to now, with one `running` until now or
/// not (`update_rt_rq_load_avg`); true if it changed.
pub(crate) fn update_rt_rq_load_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, running: bool) -> bool {
    let now = rq.clock.pelt();
    if !update_load_avg_rt(now, &mut rq.avg_rt, running, &mut rq.passed) {
        return false;
    }
    let words = &cx.sys.cpu[rq.cpu.idx()];
    words.util_avg_rt.store(rq.avg_rt.util_avg as u32, Relaxed);
    true
}

/// Ages the use of the CPU by other classes (`__update_blocked_others`); whether some is left to
/// decay (`others_have_blocked`).
pub(crate) fn update_blocked_others<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> bool {
    if cx.features().other_classes.age_with_blocked_load() {
        cx.touch(rq.object(), frq::OTHERS, Access::Update);
    }
    if rq.avg_rt.last_update_time == 0 {
        return false;
    }
    let running = matches!(rq.higher, Some(HigherClass::RealTime(_)));
    update_rt_rq_load_avg(cx, rq, running);
    rq.avg_rt.util_avg != 0
}

/// What other classes leave of the capacity of `cpu`, at least 1 (`scale_rt_capacity`).
///
/// Interrupts take nothing off it here: their time is charged to whom they interrupt, as without
/// `CONFIG_IRQ_TIME_ACCOUNTING`.
pub(crate) fn capacity_left<H: Host>(cx: &Cx<H>, cpu: Cpu) -> u64 {
    let full = u64::from(cx.sys.topology.places[cpu.idx()].capacity);
    let used = u64::from(cx.sys.cpu[cpu.idx()].util_avg_rt.load(Relaxed));
    full.saturating_sub(used).max(1)
}

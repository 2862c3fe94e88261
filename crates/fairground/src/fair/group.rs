//! Groups on one CPU: their queue, their weight, their share.

use crate::cx::Cx;
use crate::host::Host;
use crate::rq::Rq;
use crate::task::Resched;
use crate::value::{CfsId, SeId, TgId};

/// The queue of `tg` on this CPU, made now (with those above it) if it is the first use.
pub fn ensure_cfs<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) -> CfsId {
    let _ = (cx, rq, tg);
    CfsId::ROOT
}

/// Recomputes the weight of a group entity from the group load that was published; nothing for a
/// task.
pub fn update_cfs_group<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, se: SeId) {
    let _ = (cx, rq, se);
}

/// A group weight has changed: refresh its entities on this CPU, up to the root.
pub fn set_shares<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) {
    let _ = (cx, rq, tg);
}

/// `cpu.idle` of a group has changed: fix the counts of idle tasks of the queues above.
pub fn set_idle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId, idle: bool) {
    let _ = (cx, rq, tg, idle);
}

/// Moves a task, running, queued or delayed, to another group (`sched_move_task`).
pub fn move_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, to: TgId) -> Resched {
    let _ = (cx, rq, task, to);
    Resched::No
}

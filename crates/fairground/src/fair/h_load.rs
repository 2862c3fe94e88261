//! Hierarchical load: what a task weighs at the root.

use crate::cx::Cx;
use crate::host::Host;
use crate::rq::Rq;
use crate::value::SeId;

/// Load of a task seen from the root.
pub fn task_h_load<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> u64 {
    let _ = (cx, rq, task);
    0
}

/// The walk over all groups before a balance, where the decision asks for it.
pub fn update_h_load<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    let _ = (cx, rq);
}

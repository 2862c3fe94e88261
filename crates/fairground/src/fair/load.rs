//! Load averages of entities and queues: update, attach, detach, remove.

use crate::cx::Cx;
use crate::fair::UpdateLoad;
use crate::host::Host;
use crate::rq::Rq;
use crate::task::{SchedEntity, Task};
use crate::value::{CfsId, Cpu, SeId};

/// Ages entity and queue to now, takes over what the group below changed, attaches or detaches.
pub fn update_load_avg<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    se: SeId,
    flags: UpdateLoad,
) {
    let _ = (cx, rq, cfs, se, flags);
}

/// Adds the averages of `se` to its queue.
pub fn attach_entity_load_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId) {
    let _ = (cx, rq, cfs, se);
}

/// Subtracts them.
pub fn detach_entity_load_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, se: SeId) {
    let _ = (cx, rq, cfs, se);
}

/// Adds only the load part (reweighting).
pub fn enqueue_load_avg(rq: &mut Rq, cfs: CfsId, se: SeId) {
    let _ = (rq, cfs, se);
}

/// Subtracts only the load part.
pub fn dequeue_load_avg(rq: &mut Rq, cfs: CfsId, se: SeId) {
    let _ = (rq, cfs, se);
}

/// Refreshes `runnable_weight` of a group entity from its queue.
pub fn se_update_runnable(rq: &mut Rq, se: SeId) {
    let _ = (rq, se);
}

/// Ages a sleeping task, which is with the host, to the last update of its queue on `cpu`.
pub fn sync_entity_load_avg<H: Host>(cx: &mut Cx<H>, task: &mut Task, cpu: Cpu) {
    let _ = (cx, task, cpu);
}

/// Leaves the averages of a sleeping task to be removed by the queue it slept on.
pub fn remove_entity_load_avg<H: Host>(cx: &mut Cx<H>, task: &mut Task, cpu: Cpu) {
    let _ = (cx, task, cpu);
}

/// A task that is with the host changes its CPU: removes its load there, and forgets its time
/// stamp.
pub fn migrate_task_rq_fair<H: Host>(cx: &mut Cx<H>, task: &mut Task, from: Cpu, waking: bool) {
    let _ = (cx, task, from, waking);
}

/// First averages of a new task.
pub fn init_entity_runnable_average(se: &mut SchedEntity) {
    let _ = se;
}

/// First utilisation of a new task, from what its queue has left; attaches it.
pub fn post_init_entity_util_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let _ = (cx, rq, task);
}

/// A task joins a group.
pub fn attach_task_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let _ = (cx, rq, task);
}

/// A task leaves its group.
pub fn detach_task_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let _ = (cx, rq, task);
}

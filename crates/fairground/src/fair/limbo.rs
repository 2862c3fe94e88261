//! Throttling task by task (6.18): a task of a throttled hierarchy that is picked goes on in the
//! kernel, dequeues itself on its way back to user space, and waits in limbo.
//!
//! In limbo it is still in the keeping of its run queue and still belongs to its queue, but is
//! not queued and not counted. The list is last in, first out.

use super::{Dequeue, load, task};
use crate::cx::Cx;
use crate::event::{QuotaStep, QuotaWork};
use crate::host::Host;
use crate::place::{Access, Fields, Kind, Object, cfs_rq as f, task as task_f};
use crate::rq::Rq;
use crate::task::Resched;
use crate::value::{CfsId, SeId, TgId};

/// A task of a throttled hierarchy was picked: it should throttle itself at the return to user
/// space (6.18).
pub fn task_throttle_setup_work<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    let object = task_object(rq, task);
    if let Some(body) = rq.body[task.idx()].as_mut()
        && !body.throttle_work
    {
        body.throttle_work = true;
        cx.touch(object, WORK, Access::CasLoop);
    }
}

/// The running task returns to user space with that work pending (the caller has updated the
/// clock and opened the span). If it is dequeued, the CPU has to choose again; the task stays in
/// keeping.
pub fn throttle_cfs_rq_work<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Resched {
    match rq.curr {
        Some(task) => throttle_task(cx, rq, task),
        None => Resched::No,
    }
}

/// A task whose `body.throttled` is set is enqueued: true if its hierarchy is throttled too, so
/// that it was put in limbo instead (6.18). Any other task is enqueued as usual, and throttles
/// itself when it is picked.
pub fn enqueue_throttled_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> bool {
    if !is_throttled(rq, task) {
        return false;
    }
    let cfs = rq.se[task.idx()].cfs_rq;
    cx.touch(rq.cfs_object(cfs), f::THROTTLE_COUNT, Access::Read);
    let stays = rq.cfs[cfs.idx()].throttled_hierarchy() && rq.curr != Some(task);
    if stays {
        push(cx, rq, cfs, task);
    }
    set_throttled(rq, task, stays);
    stays
}

/// A task that is in limbo (`body.throttled`) leaves: `dequeue_task_fair` calls this instead of
/// everything else (6.18).
pub fn dequeue_throttled_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, flags: Dequeue) {
    debug_assert!(!rq.se[task.idx()].on_rq);
    let cfs = rq.se[task.idx()].cfs_rq;
    cx.touch(rq.cfs_object(cfs), f::THROTTLED_LIST, Access::Update);
    unlink(rq, cfs, task);
    if flags.has(Dequeue::SLEEP) {
        set_throttled(rq, task, false);
    } else if flags.has(Dequeue::MOVE) && !flags.has(Dequeue::SAVE) {
        // To another CPU: its load, which stayed here when it was throttled, goes along.
        load::detach_task_cfs_rq(cx, rq, task);
    }
}

/// Whether the task is in limbo, or on its way from one to another.
#[must_use]
pub fn is_throttled(rq: &Rq, task: SeId) -> bool {
    rq.body[task.idx()].as_ref().is_some_and(|b| b.throttled)
}

/// Lets the first task of a list go; answers which is the next.
pub(super) fn release(rq: &mut Rq, task: SeId) -> Option<SeId> {
    set_throttled(rq, task, false);
    next(rq, task)
}

const WORK: Fields = task_f::STATE;

fn throttle_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> Resched {
    let since = cx.host.moment();
    if let Some(body) = rq.body[task.idx()].as_mut() {
        body.throttle_work = false;
    }
    cx.touch(task_object(rq, task), WORK, Access::Update);
    let cfs = rq.se[task.idx()].cfs_rq;
    cx.touch(rq.cfs_object(cfs), f::THROTTLE_COUNT, Access::Read);
    // There may be runtime again, or the task has moved to where there is.
    if !rq.cfs[cfs.idx()].throttled_hierarchy() || !rq.se[task.idx()].on_rq {
        return Resched::No;
    }
    let flags = Dequeue::SLEEP | Dequeue::THROTTLE;
    task::dequeue_task_fair(cx, rq, task, flags);
    push(cx, rq, cfs, task);
    // Not before, or it would be taken for one that is in limbo already.
    set_throttled(rq, task, true);
    let work = QuotaWork {
        tg: throttled_above(rq, cfs),
        step: QuotaStep::PutOff,
        groups: 0,
        tasks: 1,
    };
    cx.host.quota(work, since);
    Resched::Yes
}

/// The group whose own queue is throttled, the nearest at or above a queue.
fn throttled_above(rq: &Rq, mut cfs: CfsId) -> TgId {
    while !rq.cfs[cfs.idx()].throttled && rq.cfs[cfs.idx()].se.is_some() {
        cfs = rq.cfs[cfs.idx()].parent;
    }
    rq.cfs[cfs.idx()].tg
}

fn push<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, task: SeId) {
    cx.touch(rq.cfs_object(cfs), f::THROTTLED_LIST, Access::Update);
    let first = rq.cfs[cfs.idx()].limbo.replace(task);
    if let Some(body) = rq.body[task.idx()].as_mut() {
        body.limbo_next = first;
    }
}

fn unlink(rq: &mut Rq, cfs: CfsId, task: SeId) {
    let after = next(rq, task);
    if rq.cfs[cfs.idx()].limbo == Some(task) {
        rq.cfs[cfs.idx()].limbo = after;
        return;
    }
    let mut at = rq.cfs[cfs.idx()].limbo;
    while let Some(other) = at {
        at = next(rq, other);
        if at == Some(task)
            && let Some(body) = rq.body[other.idx()].as_mut()
        {
            body.limbo_next = after;
            return;
        }
    }
    debug_assert!(false, "a throttled task that is not in limbo");
}

fn next(rq: &Rq, task: SeId) -> Option<SeId> {
    rq.body[task.idx()].as_ref().and_then(|b| b.limbo_next)
}

fn set_throttled(rq: &mut Rq, task: SeId, throttled: bool) {
    if let Some(body) = rq.body[task.idx()].as_mut() {
        body.throttled = throttled;
    }
}

fn task_object(rq: &Rq, task: SeId) -> Object {
    Object {
        kind: Kind::Task,
        a: rq.task_id(task).0,
        b: 0,
    }
}

//! Choosing a CPU for a task: reads what CPUs publish, changes nothing of theirs.

use crate::cx::Cx;
use crate::host::Host;
use crate::task::{Task, WakeKind};
use crate::value::{Cpu, TaskId};

/// The CPU on which a woken, new or exec-ing task shall run.
pub fn select_task_rq_fair<H: Host>(
    cx: &mut Cx<H>,
    task: &mut Task,
    prev: Cpu,
    waker: Option<TaskId>,
    kind: WakeKind,
) -> Cpu {
    let _ = (cx, task, prev, waker, kind);
    prev
}

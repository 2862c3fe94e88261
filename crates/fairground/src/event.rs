//! What the engine reports while it works: the scheduler's tracepoints as plain data.

use crate::value::{Cpu, TaskId, TgId};

/// One tracepoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// `sched_waking`: a wake-up of `task` was asked for.
    Waking {
        /// The task.
        task: TaskId,
        /// Where it last ran.
        prev_cpu: Cpu,
    },
    /// `sched_wakeup`: `task` is runnable on `cpu`.
    Wakeup {
        /// The task.
        task: TaskId,
        /// Its queue.
        cpu: Cpu,
    },
    /// `sched_wakeup_new`: a new task is runnable on `cpu`.
    WakeupNew {
        /// The task.
        task: TaskId,
        /// Its queue.
        cpu: Cpu,
    },
    /// `sched_switch`; an idle side is `None`.
    Switch {
        /// The CPU.
        cpu: Cpu,
        /// Who stops running.
        prev: Option<TaskId>,
        /// Whether `prev` is still runnable.
        prev_runnable: bool,
        /// Who starts to run.
        next: Option<TaskId>,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// The task.
        task: TaskId,
        /// From where.
        from: Cpu,
        /// To where.
        to: Cpu,
        /// What moved it.
        why: Migration,
    },
    /// `sched_process_fork`. The host reports it: creating tasks is its business.
    Fork {
        /// Who creates; `None` for the host itself.
        parent: Option<TaskId>,
        /// Who is created.
        child: TaskId,
    },
    /// `sched_process_exit`. The host reports it.
    Exit {
        /// Who ends.
        task: TaskId,
    },
    /// `task` has another nice value from here on. The host reports it. Linux has no tracepoint for
    /// it; those that come later show the task's priority.
    Nice {
        /// The task.
        task: TaskId,
        /// Its nice value.
        nice: i8,
    },
    /// A group's queue on `cpu` ran out of quota or got some again.
    Throttle {
        /// The CPU.
        cpu: Cpu,
        /// The group.
        tg: TgId,
        /// True when throttled, false when unthrottled.
        throttled: bool,
    },
}

/// What moved a task to another CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Migration {
    /// The choice of a CPU at wake-up, fork or exec.
    Placement,
    /// Periodic or newly-idle balancing.
    Balance,
    /// Active balancing by the stopper.
    Active,
    /// A change of the task's affinity.
    Affinity,
}

/// What the quota of a group made a CPU do, with its interrupts off, for hosts that count it. It is
/// no tracepoint: the kernel has none here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotaWork {
    /// The group with the limit.
    pub tg: TgId,
    /// What was done.
    pub step: QuotaStep,
    /// Groups visited on the way (`tg_throttle_down`, `tg_unthrottle_up`).
    pub groups: u32,
    /// Tasks taken off the queues, or put back.
    pub tasks: u32,
}

/// The parts of that work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QuotaStep {
    /// A queue was throttled: the groups below were visited, and its tasks went with it (up to
    /// 6.17).
    Throttle,
    /// A task of a throttled queue took itself off, on its way to user space (since 6.18).
    PutOff,
    /// A queue was unthrottled: the groups below were visited, and tasks came back.
    Unthrottle,
    /// The period timer handed out the new quota.
    Distribute,
}

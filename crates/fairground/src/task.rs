//! Tasks and scheduling entities: plain data that travels by value.
//!
//! A [`Task`] is in one keeping: an `Rq` (its entity in `Rq::se`, its body in `Rq::body`, at the
//! same slot) or the host. Read `rq/mod.rs` next.

use alloc::boxed::Box;

use crate::math::pelt::SchedAvg;
use crate::math::weight::LoadWeight;
use crate::place::{Kind, Object};
use crate::value::{CfsId, Cpu, CpuMask, MAX_CPUS, SeId, TaskId, TgId};

/// Scheduling policy of a fair task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`: does not preempt at wake-up.
    Batch,
    /// `SCHED_IDLE`: weight 3, preempted by everyone else.
    Idle,
}

impl Policy {
    /// Whether tasks of this policy can have a slice of their own: `sched_setattr` takes
    /// `sched_runtime` of `SCHED_OTHER` and `SCHED_BATCH` (changelog "sched/eevdf: Use
    /// sched_attr::sched_runtime to set request/slice suggestion", 6.12), and ignores it of
    /// `SCHED_IDLE`, as recorded on 6.18.44: beside an idle hog told to take 0.95 ms, a task with
    /// 4.7 ms was protected longer than that.
    #[must_use]
    pub const fn takes_slice(self) -> bool {
        !matches!(self, Self::Idle)
    }

    /// What a task of this policy and `nice` (-20..=19) weighs.
    pub(crate) const fn load(self, nice: i8) -> LoadWeight {
        match self {
            Self::Idle => LoadWeight::idle_prio(),
            Self::Normal | Self::Batch => LoadWeight::from_nice(nice),
        }
    }
}

/// What is scheduled: a task or, on one CPU, a group.
///
/// In the order of use, its averages together, on three host lines.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct SchedEntity {
    /// Weight among the entities of its queue.
    pub load: LoadWeight,
    /// The queue that this entity stands for; `None` for a task.
    pub my_q: Option<CfsId>,
    /// The group entity above.
    pub parent: Option<SeId>,
    /// The queue that this entity is on.
    pub cfs_rq: CfsId,
    /// Depth in the hierarchy; 0 = on the root queue.
    pub depth: u32,
    /// Number of the task, or of the group: its name among the places.
    pub name: u32,
    /// Queued (in the tree, or running).
    pub on_rq: bool,
    /// Asleep, but kept on the queue until its lag is spent.
    pub sched_delayed: bool,
    /// `deadline` is relative to `vruntime` (it was dequeued by a move).
    pub rel_deadline: bool,
    /// `slice_ns` was set by the user.
    pub custom_slice: bool,
    /// When its current stretch of execution was last charged, `clock_task` ns.
    pub exec_start: u64,
    /// Weight of a group entity's runnable part: `h_nr_runnable` of its queue when last updated.
    pub runnable_weight: u64,
    /// Load tracking.
    pub avg: SchedAvg,
    /// Virtual run time, ns at nice 0.
    pub vruntime: u64,
    /// Virtual deadline of the current request (EEVDF).
    pub deadline: u64,
    /// Lag when not queued, virtual ns; positive = is owed service.
    pub vlag: i64,
    /// While running: virtual time until which it is protected from preemption.
    pub vprot: u64,
    /// Request size, ns.
    pub slice_ns: u64,
    /// Total execution, ns.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` when it was last picked.
    pub prev_sum_exec_runtime: u64,
    /// Number of moves between CPUs.
    pub nr_migrations: u64,
}

/// A task: its entity and everything else that belongs to it.
#[derive(Debug)]
pub struct Task {
    /// The scheduling entity.
    pub se: SchedEntity,
    /// The rest, which stays where it is when the task moves.
    pub body: Box<TaskBody>,
}

/// The part of a task that the hot paths rarely read.
#[derive(Debug)]
pub struct TaskBody {
    /// Who it is.
    pub id: TaskId,
    /// Its group.
    pub tg: TgId,
    /// Its policy.
    pub policy: Policy,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// CPUs it may use: its own affinity within its cpuset. Of a new task all; one of the
    /// machine at least when it is forked.
    pub cpus_allowed: CpuMask,
    /// Of those the one to go to if its own is none of them: chosen by whoever changed them last
    /// (`dest_cpu`).
    pub dest_cpu: Option<Cpu>,
    /// Throttled at the return to user space: kept off the queue, in its queue's limbo list.
    pub throttled: bool,
    /// A throttle check is due at the next return to user space.
    pub throttle_work: bool,
    /// Next task of the same limbo list.
    pub limbo_next: Option<SeId>,
}

impl Task {
    /// A new task that is nowhere yet, with `base_slice_ns` as its request size, which is replaced
    /// by that of the machine's features when it is first placed; one of its own it has by
    /// [`set_slice`](Self::set_slice). Its load averages are set when it is forked, which also
    /// leaves the CPUs of the machine of its [`cpus_allowed`](TaskBody::cpus_allowed): all, if
    /// nothing else was written there before.
    #[must_use]
    pub fn new(id: TaskId, tg: TgId, base_slice_ns: u64) -> Self {
        let se = SchedEntity {
            slice_ns: base_slice_ns,
            load: LoadWeight::from_nice(0),
            name: id.0,
            ..SchedEntity::default()
        };
        let body = Box::new(TaskBody {
            id,
            tg,
            policy: Policy::Normal,
            nice: 0,
            cpus_allowed: CpuMask::first_n(MAX_CPUS),
            dest_cpu: None,
            throttled: false,
            throttle_work: false,
            limbo_next: None,
        });
        Self { se, body }
    }

    /// Sets policy and nice value (clamped to -20..=19) of a new task, before it is forked. One
    /// that has been on a queue has lag and load that count by its weight: use
    /// [`set_nice_parked`](crate::sched::set_nice_parked) for it.
    pub fn set_scheduler(&mut self, policy: Policy, nice: i8) {
        self.body.policy = policy;
        self.body.nice = nice.clamp(-20, 19);
        self.se.load = policy.load(self.body.nice);
    }

    /// Gives the task its own slice (`sched_setattr`, `sched_runtime`), clamped to 0.1 .. 100 ms;
    /// [`set_slice_parked`](crate::sched::set_slice_parked) knows the machine's `base_slice_ns`.
    /// `None` returns to the default `base_slice_ns`. No effect on an idle-policy task
    /// ([`Policy::takes_slice`]).
    pub fn set_slice(&mut self, slice_ns: Option<u64>, base_slice_ns: u64) {
        if self.body.policy.takes_slice() {
            self.se.set_slice(slice_ns, base_slice_ns);
        }
    }
}

impl SchedEntity {
    /// What is in a free slot.
    pub(crate) fn nobody() -> Self {
        Self {
            name: TaskId::NONE.0,
            ..Self::default()
        }
    }

    /// This entity as a place; of a group, that on `cpu`.
    #[inline]
    #[must_use]
    pub fn object(&self, cpu: Cpu) -> Object {
        let (kind, a, b) = match self.my_q {
            None => (Kind::TaskSe, self.name, 0),
            Some(_) => (Kind::GroupSe, cpu.0, self.name),
        };
        Object { kind, a, b }
    }

    /// Sets the slice of an entity that is in no tree; see [`Task::set_slice`].
    pub(crate) fn set_slice(&mut self, slice_ns: Option<u64>, base_slice_ns: u64) {
        self.custom_slice = slice_ns.is_some();
        self.slice_ns = slice_ns.map_or(base_slice_ns, |s| s.clamp(100_000, 100_000_000));
    }
}

/// How a CPU is chosen and a task is woken; the kernel's `WF_*`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WakeKind {
    /// An ordinary wake-up.
    Wake,
    /// The waker says that it will sleep soon (`WF_SYNC`).
    Sync,
    /// A new task.
    Fork,
    /// A task that replaces its image.
    Exec,
}

impl WakeKind {
    /// Whether this is a wake-up of a sleeping task.
    #[must_use]
    pub fn is_wakeup(self) -> bool {
        matches!(self, Self::Wake | Self::Sync)
    }
}

/// Answer of a function that may want the CPU to choose again.
#[must_use = "a run queue that should reschedule must be told"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resched {
    /// Go on.
    No,
    /// The running task should give way.
    Yes,
}

impl Resched {
    /// `Yes` if either says so.
    pub fn or(self, other: Self) -> Self {
        if self == Self::Yes { self } else { other }
    }

    /// Whether it is `Yes`.
    #[must_use]
    pub fn is_yes(self) -> bool {
        self == Self::Yes
    }
}

/// Why `schedule` is called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Prev {
    /// The running task goes on being runnable (preempted).
    Runnable,
    /// The running task goes to sleep. The host makes sure that nobody has woken it since it
    /// decided so: see [`wake_queued`](crate::sched::wake_queued).
    Sleeps,
    /// The running task is stopped: by a signal, a debugger or a freezer, or as a parked thread
    /// (`TASK_STOPPED`, `TASK_TRACED`, `TASK_FROZEN`, `TASK_PARKED`). As for a sleep, but it leaves
    /// its queue at once, whatever it has to pay: who stopped it may look at it now.
    Stops,
    /// The running task has exited.
    Exits,
}

/// Who runs after `schedule`. `None` is the idle task.
#[must_use = "the host has to switch"]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Switch {
    /// Who ran.
    pub prev: Option<TaskId>,
    /// Who runs now.
    pub next: Option<TaskId>,
}

/// The CPU chosen for a new or woken task, and whether it differs from its previous one.
#[must_use = "the task is to be enqueued there"]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placed {
    /// Chosen CPU.
    pub cpu: Cpu,
    /// Whether it differs from the task's previous one.
    pub migrated: bool,
}

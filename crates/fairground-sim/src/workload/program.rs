//! The intermediate form that every workload becomes and that the simulated machine interprets.
//!
//! Units: time is in nanoseconds of simulated time, data in bytes. Every `u32` that names a thing
//! (channel, mutex, mask, ...) is an index into the table of that thing in [`Workload`]; index 0 of
//! `cgroups` is the root. [`Workload::validate`] proves all of them in range, every loop
//! closed and every table entry usable, so an interpreter may index without asking again.
//!
//! The form is flat: one array of small `Copy` operations per program and a counter stack of at
//! most [`LOOP_DEPTH_MAX`] per task, because a 224-CPU hackbench interprets tens of millions of
//! them.
pub use super::chan::{Chan, ChanKind};
pub use super::duration::Dur;
pub use super::inet::Inet;
pub use super::labels::Labels;
use fairground::math::weight::{MIN_SHARES, shares_from_cgroup};

pub use super::class::{Policy, RealTime};
use super::marks::Marks;
use super::metric::{MetricDef, Work};
pub use super::op::{Op, PickBy, Touch, Unit, When};
pub use super::time::{Ns, Until};

/// The period of a new group, in nanoseconds (`cpu.cfs_period_us`,
/// Documentation/scheduler/sched-bwc.rst).
pub const PERIOD_NS_DEFAULT: u64 = 100_000_000;

/// How deep `LoopStart` may nest; the interpreter's counter stack has this many places. A program
/// of the recorder (`truth/`) has at most 64 operations, and begin and end of a loop are two.
pub const LOOP_DEPTH_MAX: usize = 32;

/// Count of [`Op::LoopStart`] that never runs out.
pub const FOREVER: u64 = u64::MAX;

/// A named list of operations. Tasks of one program share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Name for messages ("sender").
    pub name: String,
    /// Operations, executed from index 0.
    pub ops: Vec<Op>,
}

/// Which placement a new task goes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPlacement {
    /// As `fork(2)` and `clone(2)` do: once, at its creation (`SD_BALANCE_FORK`).
    #[default]
    Fork,
    /// And again as `execve(2)` does (`SD_BALANCE_EXEC`), before its first operation.
    ForkExec,
}

/// What a forked task has of the task that creates it, as that is at the time: in the kernel all of
/// it (`sched_fork` and the copy of the task's CPUs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inherits {
    /// Nice value.
    pub nice: bool,
    /// Policy.
    pub policy: bool,
    /// Own slice.
    pub slice: bool,
    /// The CPUs it may use.
    pub affinity: bool,
}

impl Inherits {
    /// What the kernel does.
    pub const ALL: Self = Self {
        nice: true,
        policy: true,
        slice: true,
        affinity: true,
    };
}

/// What a task began with: its template's or its creator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Born {
    /// Its template.
    pub template: u32,
    /// Nice value.
    pub nice: i8,
    /// Policy.
    pub policy: Policy,
    /// It is of the real-time class.
    pub real_time: Option<RealTime>,
    /// Own slice, `None` for the default.
    pub slice_ns: Option<Ns>,
    /// Mask of the CPUs it may use, `None` for all.
    pub affinity: Option<u32>,
    /// Cgroup.
    pub cgroup: u32,
}

impl Born {
    /// An instance of `template` that has all of it from there.
    pub fn of(template: u32, spec: &TaskTemplate) -> Self {
        Self {
            template,
            nice: spec.nice,
            policy: spec.policy,
            real_time: spec.real_time,
            slice_ns: spec.slice_ns,
            affinity: spec.affinity,
            cgroup: spec.cgroup.unwrap_or(0),
        }
    }
}

/// What a task is made from. An initial task is one instance; `Fork` makes more.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTemplate {
    /// Name (`comm`). Instances of one template share it.
    pub name: String,
    /// Program.
    pub program: u32,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// Policy.
    pub policy: Policy,
    /// It is of the real-time class: policy, nice value and slice then mean nothing.
    pub real_time: Option<RealTime>,
    /// Own slice (`sched_setattr` runtime), `None` for the default.
    pub slice_ns: Option<Ns>,
    /// How much later than asked its timers may fire; `None` = the parent's, or 50 us.
    pub timer_slack_ns: Option<Ns>,
    /// Mask of the CPUs it may use, `None` for all.
    pub affinity: Option<u32>,
    /// Cgroup. `None`: that of its parent, the root for an initial task.
    pub cgroup: Option<u32>,
    /// Sleeps before its first operation: one of the start until this time of the run, a child for
    /// this long after its fork.
    pub start_ns: Ns,
    /// Address space. Tasks with the same number share one, and a switch between them keeps the
    /// page tables. A template with `thread == false` that is forked again makes a new one each
    /// time.
    pub process: u32,
    /// Whether it is made as a thread of its process (`CLONE_VM | CLONE_THREAD`), which is cheaper.
    pub thread: bool,
    /// What it has of its creator, not from here.
    pub inherits: Inherits,
    /// Bytes of distinct user memory that a microsecond of running pulls through the CPU's caches.
    pub footprint_bytes_per_us: u32,
    /// Bytes of memory that it goes through again and again, if not ever new: with a footprint at
    /// that pace, otherwise at once.
    pub working_set_bytes: Option<u64>,
    /// Its run times are those of a working set in the caches; what is to be fetched anew comes on
    /// top. Not so if they were measured as they were.
    pub fetches: bool,
    /// Placement at creation.
    pub placement: ForkPlacement,
}

/// A control group with the cpu controller enabled. Parents stand before their children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Absolute path below the cgroup mount, `/` for the root.
    pub path: String,
    /// Index of the parent; that of the root is 0, itself.
    pub parent: u32,
    /// Weight in units of cgroup v1 `cpu.shares` (1024 is `cpu.weight` 100), 2..=262144.
    pub shares: u64,
    /// `cpu.idle`: the group is scheduled as if it were `SCHED_IDLE`.
    pub idle: bool,
    /// CPU time per period, `None` for no limit.
    pub quota_ns: Option<Ns>,
    /// Period of the quota.
    pub period_ns: Ns,
    /// Unused quota that may be kept for later periods (`cpu.max.burst`).
    pub burst_ns: Ns,
    /// Mask of `cpuset.cpus`, `None` for the parent's.
    pub cpuset: Option<u32>,
}

/// An attribute of a group that is written while the workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, from the start of the simulation.
    pub at_ns: Ns,
    /// Which group.
    pub cgroup: u32,
    /// What is written.
    pub write: CgroupWrite,
}

/// A write to a file of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupWrite {
    /// `cpu.max`.
    Max {
        /// `None` for "max".
        quota_ns: Option<Ns>,
        /// Period.
        period_ns: Ns,
    },
    /// `cpu.max.burst`.
    Burst(Ns),
    /// `cpu.weight`, in units of shares.
    Shares(u64),
    /// `cpu.idle`.
    Idle(bool),
}

/// A workload, complete: nothing else is needed to run it on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name ("hackbench", or the name of the scenario).
    pub name: String,
    /// The command line that gives this workload.
    pub argv: Vec<String>,
    /// Groups; entry 0 is the root.
    pub cgroups: Vec<Cgroup>,
    /// Groups whose `cpu.stat` is kept beside those with a limit (`cpu_stat.rs`): those that are
    /// given none in so many words, and those that a workload limits that this one is held against.
    pub watched: Vec<u32>,
    /// Groups that have a weight of their own in a workload that this one is held against.
    pub compared: Vec<u32>,
    /// Programs.
    pub programs: Vec<Program>,
    /// Pipes and sockets.
    pub chans: Vec<Chan>,
    /// Sockets of the loopback interface, each with one direction of data.
    pub inets: Vec<Inet>,
    /// Semaphores with their values at the start.
    pub sems: Vec<u32>,
    /// Number of futexes.
    pub n_futexes: u32,
    /// Number of timers with a series of their own.
    pub n_timers: u32,
    /// Number of mutexes.
    pub n_mutexes: u32,
    /// Bytes from one mutex to the next, at most 64; below, mutexes share cache lines.
    pub mutex_stride: u32,
    /// Number of shared words of user memory.
    pub n_words: u32,
    /// Shared counters that tasks take from, with what is in them at the start.
    pub budgets: Vec<u64>,
    /// Barriers with their parties.
    pub barriers: Vec<u32>,
    /// Number of sets of a lock for each CPU.
    pub n_cpu_locks: u32,
    /// Names of request/reply services.
    pub services: Vec<String>,
    /// Services that are a list in shared memory and a futex for each who waits, sorted; the others
    /// are sockets.
    pub futex_services: Vec<u32>,
    /// Names of pipes, sockets, semaphores, futexes, mutexes and barriers that have one.
    pub labels: Labels,
    /// Sets of CPUs, each sorted and not empty.
    pub masks: Vec<Vec<u32>>,
    /// Templates.
    pub templates: Vec<TaskTemplate>,
    /// Templates of the tasks that exist at the start, in the order of their creation.
    pub initial: Vec<u32>,
    /// Tasks from this template on are beside what is measured: the run does not wait for them.
    pub beside_from: u32,
    /// How many other workloads are beside it.
    pub besides: u32,
    /// No idle state is as deep as to have an exit latency: a program holds `/dev/cpu_dma_latency`
    /// open, with 0 in it.
    pub no_idle_states: bool,
    /// End of the run.
    pub duration: Until,
    /// Marks, requests and CPU times count from here on. Time marks are kept as they are.
    pub warmup_ns: Ns,
    /// Until then, within the warm-up, balancing does at each tick the work of an interval; 0 is
    /// never (`machine/settle.rs`).
    pub settle_ns: Ns,
    /// Writes to cgroup files, in order of time.
    pub events: Vec<Event>,
    /// Names of the marks.
    pub marks: Vec<String>,
    /// Names of the kinds of request.
    pub requests: Vec<String>,
    /// What is reported.
    pub metrics: Vec<MetricDef>,
    /// What is done over and over until a run of a given time ends (`work.rs`).
    pub work: Option<Work>,
    /// Which tool's words to print.
    pub words: super::words::Words,
    /// What the user should know of this load: options without meaning here, a short window.
    pub notes: Vec<String>,
}

impl Cgroup {
    /// A group with the kernel's defaults: weight 100, no limit, period 100 ms.
    pub fn new(path: impl Into<String>, parent: u32) -> Self {
        Self {
            path: path.into(),
            parent,
            shares: 1024,
            idle: false,
            quota_ns: None,
            period_ns: PERIOD_NS_DEFAULT,
            burst_ns: 0,
            cpuset: None,
        }
    }

    /// The `cpu.shares` that a `cpu.weight` (1..=10000) stands for, rounded to nearest.
    pub fn shares_of_weight(weight: u64) -> u64 {
        shares_from_cgroup(weight).max(MIN_SHARES)
    }

    /// The `cpu.weight` that stands for just these `cpu.shares`, if one does: those of cgroup v1
    /// and of autogroups mostly have none.
    pub fn weight_of_shares(shares: u64) -> Option<u64> {
        let nearest = Self::nearest_weight(shares);
        (Self::shares_of_weight(nearest) == shares).then_some(nearest)
    }

    /// The `cpu.weight` that is nearest to so many `cpu.shares`: 100 of 1024, rounded.
    pub fn nearest_weight(shares: u64) -> u64 {
        (shares.saturating_mul(100).saturating_add(512) / 1024).clamp(1, 10_000)
    }
}

/// The process of kernel threads: they have no address space of their own, and a CPU that switches
/// to one keeps the page tables that it has.
pub const KERNEL_PROCESS: u32 = u32::MAX;

impl TaskTemplate {
    /// A task with nice 0, no affinity, in its own process.
    pub fn new(name: impl Into<String>, program: u32, process: u32) -> Self {
        Self {
            name: name.into(),
            program,
            nice: 0,
            policy: Policy::Normal,
            real_time: None,
            slice_ns: None,
            timer_slack_ns: None,
            affinity: None,
            cgroup: None,
            start_ns: 0,
            process,
            thread: false,
            inherits: Inherits::default(),
            footprint_bytes_per_us: 0,
            working_set_bytes: None,
            fetches: false,
            placement: ForkPlacement::Fork,
        }
    }
}

impl Workload {
    /// What a run of it will leave behind, empty.
    pub fn empty_marks(&self) -> Marks {
        let (marks, requests) = (self.marks.len(), self.requests.len());
        Marks::new(marks, requests, self.warmup_ns, self.duration)
    }

    /// Whether any of its tasks can be of the real-time class.
    #[must_use]
    pub fn has_real_time(&self) -> bool {
        self.templates.iter().any(|t| t.real_time.is_some())
    }

    /// A workload with the root group and nothing to do.
    pub fn new(name: impl Into<String>, argv: Vec<String>) -> Self {
        Self {
            name: name.into(),
            argv,
            cgroups: vec![Cgroup::new("/", 0)],
            watched: Vec::new(),
            compared: Vec::new(),
            programs: Vec::new(),
            chans: Vec::new(),
            inets: Vec::new(),
            sems: Vec::new(),
            n_futexes: 0,
            n_timers: 0,
            n_mutexes: 0,
            mutex_stride: 64,
            n_words: 0,
            budgets: Vec::new(),
            barriers: Vec::new(),
            n_cpu_locks: 0,
            services: Vec::new(),
            futex_services: Vec::new(),
            labels: Labels::default(),
            masks: Vec::new(),
            templates: Vec::new(),
            initial: Vec::new(),
            beside_from: u32::MAX,
            besides: 0,
            no_idle_states: false,
            duration: Until::AllExit,
            warmup_ns: 0,
            settle_ns: 0,
            events: Vec::new(),
            marks: Vec::new(),
            requests: Vec::new(),
            metrics: Vec::new(),
            work: None,
            words: super::words::Words::None,
            notes: Vec::new(),
        }
    }
}

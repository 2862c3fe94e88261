//! Names of the places in memory that scheduler code touches, and on which line each is.
//!
//! The engine says *what* it touches ([`Object`], [`Fields`], [`Access`]); a [`Layout`] says
//! *where* that is. The host decides what it costs: nothing in a real kernel, a trip through the
//! cache model in the simulator.

mod fields;
mod func;
mod layout;
mod layout_rq;

pub use fields::{
    FieldName, Fields, cfs_rq, field_names, llc, nohz, rd, rq, sd, se, sg, task, tg, tg_arrays,
    time,
};
pub use func::Func;
pub use layout::{ENGINE, LINUX_6_15, Layout, REORDERED, RQ_REORDERED, StructLayout};

/// What kind of structure an [`Object`] is an instance of; a [`Layout`] has one row a kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A CPU's run queue (`struct rq`), without its root `cfs_rq`.
    Rq,
    /// One group's queue on one CPU.
    CfsRq,
    /// The entity that stands for a group on one CPU.
    GroupSe,
    /// A task's `sched_entity`, which lives inside its `task_struct`.
    TaskSe,
    /// The other words of a `task_struct` that the scheduler uses.
    Task,
    /// `struct task_group` with its `cfs_bandwidth`.
    Tg,
    /// `sched_domain_shared` of a last-level cache.
    Llc,
    /// The root domain.
    Rd,
    /// The machine-wide `nohz` structure.
    Nohz,
    /// One CPU's `sched_domain` at one level.
    Sd,
    /// A `sched_group` with its capacity.
    Sg,
    /// The words of a CPU's idle task, which is current while the CPU idles.
    IdleTask,
    /// The words of timekeeping that the scheduler reads.
    Time,
    /// The pointers to a group's queues and entities on 16 CPUs.
    TgArrays,
}

impl Kind {
    /// All kinds in order.
    pub const ALL: [Kind; 14] = [
        Kind::Rq,
        Kind::CfsRq,
        Kind::GroupSe,
        Kind::TaskSe,
        Kind::Task,
        Kind::Tg,
        Kind::Llc,
        Kind::Rd,
        Kind::Nohz,
        Kind::Sd,
        Kind::Sg,
        Kind::IdleTask,
        Kind::Time,
        Kind::TgArrays,
    ];

    /// The name of the structure, as `pahole` or `perf c2c` would say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Rq => "rq",
            Kind::CfsRq => "cfs_rq",
            Kind::GroupSe => "sched_entity(group)",
            Kind::TaskSe => "sched_entity(task)",
            Kind::Task => "task_struct",
            Kind::Tg => "task_group",
            Kind::Llc => "sched_domain_shared",
            Kind::Rd => "root_domain",
            Kind::Nohz => "nohz",
            Kind::Sd => "sched_domain",
            Kind::Sg => "sched_group",
            Kind::IdleTask => "task_struct(idle)",
            Kind::Time => "timekeeping",
            Kind::TgArrays => "task_group arrays",
        }
    }
}

/// One structure in memory.
///
/// | kind | `a` | `b` |
/// | --- | --- | --- |
/// | `Rq` | CPU | 0 |
/// | `CfsRq`, `GroupSe` | CPU | group |
/// | `TaskSe`, `Task` | task | 0 |
/// | `Tg` | group | 0 |
/// | `Llc`, `Sg` | id | 0 |
/// | `Sd` | CPU | level |
/// | `Rd`, `Nohz`, `Time` | 0 | 0 |
/// | `IdleTask` | CPU | 0 |
/// | `TgArrays` | CPU / 16 | group |
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Object {
    /// The structure's kind.
    pub kind: Kind,
    /// First part of its identity.
    pub a: u32,
    /// Second part of its identity.
    pub b: u32,
}

impl Object {
    /// The run queue of `cpu`.
    #[inline]
    #[must_use]
    pub const fn rq(cpu: crate::value::Cpu) -> Self {
        Self {
            kind: Kind::Rq,
            a: cpu.0,
            b: 0,
        }
    }
}

/// How a place is touched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// A plain load.
    Read,
    /// A plain store.
    Write,
    /// A load and a plain store of the same words (`x += y` under a lock).
    Update,
    /// One atomic read-modify-write (`lock add`).
    Rmw,
    /// A load, then compare-and-swap until it succeeds (`fetch_or` on x86).
    CasLoop,
    /// The load of such a loop whose swaps are steps of their own ([`Later`](crate::sched::Later)).
    CasLoad,
    /// One swap of it.
    CasSwap,
}

/// Locks whose holder makes others wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lock {
    /// A CPU's run-queue lock.
    Rq(crate::value::Cpu),
    /// A group's bandwidth lock (`cfs_bandwidth.lock`).
    Bandwidth(crate::value::TgId),
}

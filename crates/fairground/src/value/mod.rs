//! Numbers with a meaning: identities of CPUs, tasks, groups and entities, and sets of CPUs.
//!
//! Times are `u64` nanoseconds everywhere in the engine and end in `_ns` where a name alone does
//! not say so; loads, weights and capacities are the kernel's fixed point (capacity 1024 = one
//! whole CPU, weight 1024 << 10 = one nice-0 task).

mod cpumask;
mod id;

pub use cpumask::{CpuMask, MAX_CPUS};
pub use id::{CfsId, Cpu, GroupId, LlcId, SeId, TaskId, TgId};

/// Capacity of one CPU at full speed, in PELT units.
pub const SCHED_CAPACITY_SCALE: u64 = 1024;

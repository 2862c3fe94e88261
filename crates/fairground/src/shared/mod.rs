//! Words that several CPUs reach, each in a struct of one kind (see [`System`](crate::system)).
//!
//! All atomics are relaxed: the kernel reads most of these without ordering, and where it does
//! order, the lock of the queue does it here.

mod cfs_bandwidth;
mod cpu;
mod llc;
mod nohz;
mod task;
mod task_group;
mod tg_cpu;

pub use cfs_bandwidth::{
    BANDWIDTH_SLICE, CfsBandwidth, CpuStat, Deadline, MIN_CFS_RQ_RUNTIME, PeriodEnd, Pool,
    RUNTIME_INF,
};
pub use cpu::CpuShared;
pub use llc::LlcShared;
pub use nohz::{Nohz, RootDomain, nohz_kick};
pub use task::{OnRq, TaskShared};
pub use task_group::{CpuMax, TaskGroup};
pub use tg_cpu::{Removed, TgCpu, TgCpus};

pub(crate) use core::sync::atomic::Ordering::Relaxed;

//! Workloads: the intermediate form that the machine interprets ([`program`]), what is measured
//! ([`metric`]), and the models of benchmarks that people know by their command lines
//! ([`mod@bench`]).
pub mod bench;
pub mod beside;
pub mod chan;
pub mod class;
pub mod cpu_counts;
pub mod duration;
pub mod halves;
pub mod inet;
pub mod labels;
pub mod limit_words;
pub mod marks;
pub mod metric;
pub mod nearest;
pub mod op;
pub mod percentile;
pub mod program;
mod rates;
pub mod size;
pub mod sysbench_words;
pub mod time;
pub mod validate;
pub mod words;
pub mod work;

pub use bench::{Env, Error, Known};
pub use marks::{MarkStat, Marks, TaskTime};
pub use metric::{Better, CpuTime, From, MetricDef, Work};
pub use program::{
    Cgroup, CgroupWrite, Chan, ChanKind, Dur, Event, ForkPlacement, Inet, Ns, Op, Policy, Program,
    TaskTemplate, Until, Workload,
};

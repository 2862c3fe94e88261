//! Workloads: the intermediate form that the machine interprets ([`program`]), what is measured
//! ([`metric`]), and the models of benchmarks that people know by their command lines.
pub mod metric;
pub mod program;
pub mod words;

pub use metric::{Better, From, MarkStat, Marks, MetricDef, TaskTime};
pub use program::{
    Cgroup, CgroupWrite, Chan, ChanKind, Dur, Event, ForkPlacement, Ns, Op, Policy, Program,
    TaskTemplate, Until, Workload,
};

//! What the plots are made of: one simulated run, or a recording, in numbers. Times in ns.

use serde::Serialize;

/// One side of the plots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Samples {
    /// `base`, `patch`, `recorded`, ...
    pub variant: String,
    /// What it is of, for people: "seed 1".
    pub about: String,
    /// Number of CPUs; 0: nothing but latencies and stacks.
    pub cpus: u32,
    /// The run, from its start.
    pub span_ns: (u64, u64),
    /// Threads, in order of their first slice.
    pub tasks: Vec<Task>,
    /// Paths of cgroups.
    pub groups: Vec<String>,
    /// The whole run in equal parts.
    pub heat: Heat,
    /// Part of the run, exactly.
    pub slices: Slices,
    /// Wake-up latencies of all seeds: value and how often.
    pub latency: Vec<(u64, u64)>,
    /// Functions that `stacks` names by number.
    pub functions: Vec<String>,
    /// Which of them are the scheduler's own.
    pub scheduler: Vec<bool>,
    /// Time by stack, outer functions before inner ones.
    pub stacks: Vec<StackRow>,
    /// Periods of groups with a limit, which are drawn without a script.
    #[serde(skip)]
    pub periods: Vec<Periods>,
}

/// Periods of one group that are equally long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// Its path.
    pub group: String,
    /// Length of a period.
    pub period_ns: u64,
    /// Times in the page count from here.
    pub origin_ns: u64,
    /// In order of time.
    pub rows: Vec<PeriodRow>,
}

/// One period, in equal parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodRow {
    /// Its begin.
    pub from_ns: u64,
    /// Its end, which may come early.
    pub to_ns: u64,
    /// CPU time in each part, in thousandths of one CPU.
    pub used: Vec<u32>,
    /// Time of throttled queues in each part, in thousandths of one CPU.
    pub throttled: Vec<u32>,
    /// CPU time of the whole period.
    pub ran_ns: u64,
    /// Waits for quota.
    pub waits: u32,
    /// Whether these made a task slow; `None`: what is slow is not known.
    pub slow: Option<bool>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Number of its group.
    pub group: u32,
}

/// The run in equal parts of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Heat {
    /// How many parts.
    pub bins: u32,
    /// By CPU and part: busy, in thousandths.
    pub busy: Vec<Vec<u32>>,
    /// By CPU and part: switches to a thread.
    pub switches: Vec<Vec<u32>>,
    /// By group and part: CPU time, in thousandths of one CPU.
    pub group: Vec<Vec<u32>>,
    /// By group and part: time of throttled queues, in thousandths of one CPU.
    pub throttled: Vec<Vec<u32>>,
}

/// Who ran when, inside a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slices {
    /// The window.
    pub window_ns: (u64, u64),
    /// How many slices the whole run has.
    pub all: u64,
    /// By CPU, in order of time.
    pub cpu: Vec<Vec<Slice>>,
}

/// From, length, index of the thread, and one more than what it had waited since it was woken; 0 if
/// it was not.
pub type Slice = (u64, u64, u32, u64);

/// Depth (1 is outermost), function, self time, calls.
pub type StackRow = (u32, u32, u64, u64);

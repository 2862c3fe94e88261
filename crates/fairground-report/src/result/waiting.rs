//! Waiting that a run has: tasks beside idle CPUs, and wake-ups that led to no switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPUs that were idle while a task waited that could have run there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleWaste {
    /// Time of all CPUs together, measured.
    pub capacity_ns: u64,
    /// The part of it that was lost so.
    pub cpu_ns: u64,
    /// The part of that in which CPU and task shared the last-level cache.
    pub same_cache_ns: u64,
    /// How often one task waited so, by how long.
    pub waits: WaitsOver,
    /// The longest of these waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<VainWait>,
}

/// Numbers of waits by length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitsOver {
    /// More than 10 us.
    pub us_10: u64,
    /// More than 100 us.
    pub us_100: u64,
    /// More than 1 ms.
    pub ms_1: u64,
    /// More than 10 ms.
    pub ms_10: u64,
}

/// A task that waited while a CPU was idle that it could have used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VainWait {
    /// Name and thread id.
    pub task: String,
    /// Thread id, as `--explain` takes it.
    pub tid: u32,
    /// Where it waited.
    pub cpu: u32,
    /// A CPU that was idle when the wait began.
    pub idle_cpu: u32,
    /// Whether the two share the last-level cache.
    pub same_cache: bool,
    /// From when, counted from the start of the run, warm-up included.
    pub from_ns: u64,
    /// How long.
    pub ns: u64,
}

/// Wake-ups whose task had not run by the end of the run: `wakeup_latency_us` cannot have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StillWaiting {
    /// How many.
    pub waiting: u64,
    /// Of how many wake-ups: these, and those that are in `wakeup_latency_us`.
    pub wakeups: u64,
    /// How long the longest of these waits had lasted by then.
    pub longest_ns: u64,
}

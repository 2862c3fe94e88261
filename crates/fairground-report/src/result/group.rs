//! Groups with a limit or a weight of their own: what a run says of them, and `cpu.stat`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quota::{QuotaWait, QuotaWork};

/// The counters of a group's `cpu.stat` over the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuStat {
    /// Periods in which the group was active.
    pub nr_periods: u64,
    /// Periods at whose end one of its queues was throttled.
    pub nr_throttled: u64,
    /// Time for which its queues were throttled, summed over CPUs; counted when one may run again.
    pub throttled_usec: u64,
    /// Periods in which it used more than its quota.
    pub nr_bursts: u64,
    /// CPU time that it used beyond its quota.
    pub burst_usec: u64,
    /// CPU time of its tasks and of those of groups below.
    pub usage_usec: u64,
}

/// A group with a limit, or with a weight of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupStat {
    /// Its path.
    pub path: String,
    /// Whether metrics are about it: it has a limit, here or in the other variant. Known where runs
    /// are made only.
    #[serde(skip)]
    pub counted: bool,
    /// `QUOTA PERIOD` in microseconds, or `max PERIOD`, as written last.
    #[serde(rename = "cpu.max")]
    pub max: String,
    /// All that it held in the measured time, with the times, if it was not the same throughout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitFrom>,
    /// Microseconds.
    #[serde(rename = "cpu.max.burst")]
    pub burst: u64,
    /// All bursts that it had in the measured time, with the times, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<BurstFrom>,
    /// 1 to 10000.
    #[serde(rename = "cpu.weight")]
    pub weight: u64,
    /// Where the weight is one of cgroup v1 or of an autogroup that no `cpu.weight` stands for:
    /// what it is; `cpu.weight` is the nearest then.
    #[serde(
        rename = "cpu.shares",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub shares: Option<u64>,
    /// All weights that it had in the measured time, with the times, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<WeightFrom>,
    /// Whether `cpu.idle` is 1, as written last: then `cpu.weight` counts for nothing.
    #[serde(
        rename = "cpu.idle",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub idle: bool,
    /// Its counters.
    #[serde(rename = "cpu.stat")]
    pub stat: CpuStat,
    /// Waiting for quota of its tasks, if the run was watched for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<QuotaWait>,
    /// What its throttling made CPUs do, if the run was watched for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<QuotaWork>,
}

/// A limit that a group had from a time on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitFrom {
    /// Since the start of the run, warm-up included.
    pub from_ns: u64,
    /// As in `cpu.max`.
    #[serde(rename = "cpu.max")]
    pub max: String,
}

/// A burst that a group had from a time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BurstFrom {
    /// Since the start of the run, warm-up included.
    pub from_ns: u64,
    /// Microseconds, as in `cpu.max.burst`.
    #[serde(rename = "cpu.max.burst")]
    pub burst: u64,
}

/// A weight that a group had from a time on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WeightFrom {
    /// Since the start of the run, warm-up included.
    pub from_ns: u64,
    /// `cpu.weight`, or `2 shares` where none stands for it, or `idle` where `cpu.idle` was 1.
    pub weight: String,
}

/// Groups with a limit that are not in a list, as the sum of their counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherGroups {
    /// How many.
    pub groups: u64,
    /// The sums.
    #[serde(rename = "cpu.stat")]
    pub stat: CpuStat,
}

impl CpuStat {
    /// Adds those of another group, or of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.nr_periods += other.nr_periods;
        self.nr_throttled += other.nr_throttled;
        self.throttled_usec += other.throttled_usec;
        self.nr_bursts += other.nr_bursts;
        self.burst_usec += other.burst_usec;
        self.usage_usec += other.usage_usec;
    }
}

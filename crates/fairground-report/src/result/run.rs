//! One set of decisions, its runs, and what each of them counted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::group::{GroupStat, OtherGroups};
use super::quota::ThrottledBy;
use super::requests::{Halves, OpenRequests};
use super::waiting::{IdleWaste, StillWaiting};
use crate::keys::{present, require_keys};
use crate::number::Number;
use crate::stats::finite;

/// One set of decisions and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// `base` or `patch`.
    pub name: String,
    /// Every decision point with its value.
    pub decisions: BTreeMap<String, String>,
    /// Decisions of which no value could change anything here, as the rules of CFS where EEVDF
    /// picks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_part: Vec<String>,
    /// Files of cgroups that the command line wrote on either side, with their values here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What the workload and the command line had to say of these runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// Groups whose figures are upper bounds: a replay does work of theirs before it came.
    #[serde(skip)]
    pub at_most: Vec<String>,
    /// One run per seed, in the order of the seeds.
    pub runs: Vec<Run>,
}

/// One simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// What all random numbers of the run come from.
    pub seed: u64,
    /// What it got done, if it did not end because its work was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Value per metric; `null` where the run has none that is finite.
    pub metrics: BTreeMap<String, Number>,
    /// CPU time per scheduler function.
    pub functions: BTreeMap<String, FunctionCost>,
    /// Traffic per shared place, most waiting first.
    pub lines: Vec<LineTraffic>,
    /// Groups with a limit, or with another weight than a new group, in either variant: what they
    /// used and how they were throttled, most throttled time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupStat>,
    /// Limited groups beyond those in `groups`, together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_groups: Option<OtherGroups>,
    /// By whose quota the tasks of each group were kept off the CPU, if the run was watched for it:
    /// for each group with a limit its own and those of the groups above, and for groups without
    /// one those that did. The 64 groups whose tasks waited longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled_by: Vec<ThrottledBy>,
    /// CPUs that were idle while tasks waited, if the run was watched for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_waste: Option<IdleWaste>,
    /// What CPUs were in each idle state of the machine for, shallowest first. CPUs that have had
    /// nothing to do since the run began are left aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
    /// Wake-ups whose task had not run by the end of the run, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_waiting: Option<StillWaiting>,
    /// Requests that were not answered by the end of the run, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_requests: Vec<OpenRequests>,
    /// How many requests or wake-ups stand behind each percentile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<String, u64>,
    /// How long requests took in each half of the measured time, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub halves: Vec<Halves>,
    /// What the real tool would have printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
}

/// What CPUs were in an idle state for, summed over CPUs, as `usage` and `time` of a CPU's
/// `cpuidle/stateN/` in sysfs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct IdleState {
    /// Its name in the machine file: `C1`, `C6`, `WFI`.
    pub name: String,
    /// Stays that ended in the measured time, and those that lasted at its end.
    pub usage: u64,
    /// Their time within it, without the way out.
    pub time_ns: u64,
    /// `time_ns` as a fraction (0 to 1) of the time of all CPUs.
    #[serde(deserialize_with = "present")]
    pub share: Number,
}

/// What one scheduler function cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct FunctionCost {
    /// Time in the function itself, without its callees.
    pub self_ns: u64,
    /// `self_ns` as a fraction (0 to 1) of the time in which CPUs were not idle.
    #[serde(deserialize_with = "present")]
    pub share: Number,
    /// How often it was entered.
    pub calls: u64,
    /// Its part of the metric of this name: loads that missed the last-level cache.
    #[serde(default)]
    pub llc_misses: u64,
}

/// Traffic of one shared place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineTraffic {
    /// Struct that the field is in, e.g. `task_group`.
    pub object: String,
    /// Field, e.g. `load_avg`.
    pub field: String,
    /// Plain loads.
    pub reads: u64,
    /// Plain stores.
    pub writes: u64,
    /// Atomic read-modify-writes.
    pub rmws: u64,
    /// Touches for which the line had to come from another cache.
    pub transfers: u64,
    /// Those of them that crossed sockets: `perf c2c` calls them remote.
    #[serde(default)]
    pub remote: u64,
    /// Touches that only had to invalidate other copies.
    #[serde(default)]
    pub upgrades: u64,
    /// Misses because a word that was used had been written elsewhere.
    #[serde(default)]
    pub true_sharing: u64,
    /// Misses because only another word of the line had been written elsewhere.
    #[serde(default)]
    pub false_sharing: u64,
    /// Time that CPUs waited for the line.
    pub wait_ns: u64,
}

/// What a run got done that did not end because its work was done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct Work {
    /// One of it, e.g. `transaction`; `null` if nothing counts all that the run does.
    pub unit: Option<String>,
    /// How many were done in the measured time; `null` without a unit.
    pub done: Number,
}

impl Variant {
    /// Whether there are runs, and none differs from the other's of the same seed in anything that
    /// was counted.
    pub(crate) fn counts_as(&self, other: &Self) -> bool {
        let counted = |(a, b): (&Run, &Run)| {
            (a.seed, &a.metrics, &a.functions) == (b.seed, &b.metrics, &b.functions)
        };
        let number = self.runs.len();
        let mut pairs = self.runs.iter().zip(&other.runs);
        number > 0 && number == other.runs.len() && pairs.all(counted)
    }

    /// All metrics that one of the runs has.
    pub(crate) fn metric_names(&self) -> BTreeSet<&str> {
        self.runs
            .iter()
            .flat_map(|run| run.metrics.keys().map(String::as_str))
            .collect()
    }
}

impl Run {
    /// An empty run.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Sets a metric; a value that is not finite becomes `None`.
    pub fn set_metric(&mut self, name: impl Into<String>, value: f64) {
        self.metrics.insert(name.into(), finite(value));
    }

    /// Adds what a function cost. `busy_ns` is the time in which CPUs were not idle, summed over
    /// all CPUs of the run.
    pub fn add_function(
        &mut self,
        name: impl Into<String>,
        self_ns: u64,
        calls: u64,
        busy_ns: u64,
    ) {
        let share = finite(self_ns as f64 / busy_ns as f64);
        self.functions.insert(
            name.into(),
            FunctionCost {
                self_ns,
                share,
                calls,
                llc_misses: 0,
            },
        );
    }

    /// Adds loads of a function that missed the last-level cache. One that has neither time nor
    /// calls gets a row of its own, so that those of all functions add up to the metric.
    pub fn add_llc_misses(&mut self, function: &str, misses: u64) {
        if misses > 0 && !self.functions.contains_key(function) {
            self.add_function(function, 0, 0, 1);
        }
        if let Some(cost) = self.functions.get_mut(function) {
            cost.llc_misses += misses;
        }
    }

    /// Sorts the lines so that what matters most survives a cut: waiting, then traffic between
    /// cores.
    pub fn sort_lines(&mut self) {
        self.lines.sort_by(|a, b| {
            let [a, b] = [a, b].map(|l| (Reverse((l.wait_ns, l.transfers)), &l.object, &l.field));
            a.cmp(&b)
        });
    }

    /// The metric's value, if it is there and finite.
    pub fn metric(&self, name: &str) -> Number {
        self.metrics.get(name).copied().flatten().and_then(finite)
    }
}

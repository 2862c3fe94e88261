//! Results as data: what `--json` writes and what saved results are read into.
//!
//! Fields are declared in the order in which they are written. Extra keys in a file are ignored,
//! missing ones refused (`saved.rs`), so that a newer Fairground reads what an older one wrote
//! and the other way round, as long as the keys here keep their meaning.
//!
//! Units are in the names; `share` is a fraction from 0 to 1.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::beware::beware;
use crate::catalogue::{Catalogue, MetricInfo};
use crate::compare::compare_metrics;
pub use crate::comparison::{Comparison, Method, Verdict};
pub(crate) use crate::comparison::{Judged, SAME, is_open, word_class};
use crate::differing::differing;
use crate::groups::{GroupStat, OtherGroups, cut_groups};
use crate::machine::MachineId;
use crate::note::{Note, OfSeeds};
use crate::redo::Redo;
use crate::requests::Halves;
use crate::stats::finite;
use crate::throttled_by::{self, ThrottledBy};
use crate::watched::{
    IdleWaste, OpenRequests, StillWaiting, doubtful_usual, open_requests, still_waiting,
};
use crate::work::Work;

/// A number, or `None` (`null` in JSON) where there is none that is finite.
pub type Number = Option<f64>;

/// What all variants of a result have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Version of Fairground.
    pub fairground: String,
    /// The simulated machine.
    pub machine: MachineId,
    /// Profile, e.g. `linux-6.18`.
    pub profile: String,
    /// The workload's command line.
    pub workload: Vec<String>,
    /// The metrics that the workload adds to [`crate::ALWAYS`].
    pub workload_metrics: Vec<MetricInfo>,
    /// What is needed to get this result again.
    pub redo: Redo,
}

/// The result of `fairground run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Version of Fairground.
    pub fairground: String,
    /// The simulated machine.
    pub machine: MachineId,
    /// Profile, e.g. `linux-6.18`.
    pub profile: String,
    /// The workload's command line.
    pub workload: Vec<String>,
    /// One variant, named `base`.
    pub variants: Vec<Variant>,
    /// The decisions that are not those of the profile, `name = value (profile: value)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Unit, direction and meaning of each metric in `runs`.
    #[serde(default)]
    pub metric_info: Vec<MetricInfo>,
    /// What is needed to get this result again.
    #[serde(default)]
    pub redo: Redo,
    /// What a reader must know before believing the numbers.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// The result of `fairground compare`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compare {
    /// Version of Fairground.
    pub fairground: String,
    /// The simulated machine.
    pub machine: MachineId,
    /// That of patch, where two saved results are of different machines; `machine` is base's then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_machine: Option<MachineId>,
    /// Profile, e.g. `linux-6.18`.
    pub profile: String,
    /// The workload's command line.
    pub workload: Vec<String>,
    /// Two variants, `base` and `patch`.
    pub variants: Vec<Variant>,
    /// One row per metric: the workload's own first.
    pub comparison: Vec<Comparison>,
    /// Unit, direction and meaning of each metric in `runs`.
    #[serde(default)]
    pub metric_info: Vec<MetricInfo>,
    /// What is needed to get this result again.
    #[serde(default)]
    pub redo: Redo,
    /// What a reader must know before believing the numbers.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// One set of decisions and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// `base` or `patch`.
    pub name: String,
    /// Every decision point with its value.
    pub decisions: BTreeMap<String, String>,
    /// Files of cgroups that the command line wrote on either side, with their values here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What the workload and the command line had to say of these runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
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

impl RunResult {
    /// Completes `base` (whatever its name was) to a result.
    pub fn new(setup: Setup, base: Variant) -> Self {
        let mut variants = vec![base];
        let (metric_info, mut notes) = complete(&setup, &mut variants, &["base"]);
        notes.extend(beware(&variants, &metric_info));
        notes.extend(variants[0].told.iter().cloned().map(Note::Said));
        Self {
            fairground: setup.fairground,
            machine: setup.machine,
            profile: setup.profile,
            workload: setup.workload,
            variants,
            changes: Vec::new(),
            metric_info,
            redo: setup.redo,
            notes,
        }
    }

    /// Says which decisions are not those of the profile.
    #[must_use]
    pub fn with_changes(self, changes: Vec<String>) -> Self {
        Self { changes, ..self }
    }
}

impl Compare {
    /// Names the variants `base` and `patch` and compares them, metric by metric.
    pub fn new(setup: Setup, base: Variant, patch: Variant) -> Self {
        Self::of(setup, base, patch, true)
    }

    /// The same of variants whose setups may differ in more than they say themselves.
    pub(crate) fn of(setup: Setup, base: Variant, patch: Variant, alike: bool) -> Self {
        let mut variants = vec![base, patch];
        let (metric_info, mut notes) = complete(&setup, &mut variants, &["base", "patch"]);
        notes.extend(beware(&variants, &metric_info));
        let [base, patch] = [&variants[0], &variants[1]];
        let comparison = compare_metrics(&metric_info, base, patch, &mut notes);
        let only = base.told.iter().filter(|said| !patch.told.contains(said));
        notes.extend(patch.told.iter().chain(only).cloned().map(Note::Said));
        if patch.counts_as(base) {
            let alike = alike && differing(base, patch).is_empty();
            notes.push(Note::Seeds(OfSeeds::SameCounts { alike }));
        }
        Self {
            fairground: setup.fairground,
            machine: setup.machine,
            patch_machine: None,
            profile: setup.profile,
            workload: setup.workload,
            variants,
            comparison,
            metric_info,
            redo: setup.redo,
            notes,
        }
    }

    /// Which machine, or which two.
    pub(crate) fn machines(&self) -> String {
        let base = self.machine.with_parts();
        match &self.patch_machine {
            None => base,
            Some(patch) => format!("{} (base: {base})", patch.with_parts()),
        }
    }
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

/// Names and sorts the variants; gives the catalogue rows they use and what to note about them.
pub(crate) fn complete(
    setup: &Setup,
    variants: &mut [Variant],
    names: &[&str],
) -> (Vec<MetricInfo>, Vec<Note>) {
    let mut notes = Vec::new();
    let mut used = BTreeSet::new();
    let alone = variants.len() == 1;
    for (variant, &name) in variants.iter_mut().zip(names) {
        variant.name = name.into();
        let whose = (!alone).then(|| name.to_string());
        drop_repeated_seeds(variant, &whose, &mut notes);
        variant.runs.iter_mut().for_each(Run::sort_lines);
        drop_not_finite(variant);
        notes.extend(still_waiting(variant, whose.clone()));
        notes.extend(open_requests(variant, &whose));
        used.extend(variant.metric_names().into_iter().map(String::from));
    }
    notes.extend(doubtful_usual(variants.iter()));
    cut_groups(variants);
    throttled_by::cut(variants);
    let catalogue = Catalogue::new(setup.workload_metrics.iter().cloned());
    let mut info: Vec<MetricInfo> = catalogue
        .rows()
        .iter()
        .filter(|row| used.remove(&row.name))
        .cloned()
        .collect();
    info.extend(used.into_iter().map(|name| MetricInfo {
        name,
        unit: String::new(),
        better: None,
        description: "Not in the catalogue.".into(),
    }));
    (info, notes)
}

/// A seed's second run is the first one again. Kept, it would narrow the interval for nothing.
fn drop_repeated_seeds(variant: &mut Variant, whose: &Option<String>, notes: &mut Vec<Note>) {
    let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
    variant.runs.retain(|run| {
        let is_new = seen.insert(run.seed);
        if !is_new && told.insert(run.seed) {
            notes.push(Note::Seeds(OfSeeds::Repeated {
                whose: whose.clone(),
                seed: run.seed,
            }));
        }
        is_new
    });
}

/// Turns what is not finite into `None`.
fn drop_not_finite(variant: &mut Variant) {
    for run in &mut variant.runs {
        for value in run.metrics.values_mut() {
            *value = value.and_then(finite);
        }
        for cost in run.functions.values_mut() {
            cost.share = cost.share.and_then(finite);
        }
    }
}

/// Reads an optional value whose key must be there.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(input)
}

/// Makes every key required that has no default: `null` is a value, a missing key a mistake.
pub(crate) fn require_keys(schema: &mut schemars::Schema) {
    let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) else {
        return;
    };
    let has_default = |rule: &serde_json::Value| rule.get("default").is_some();
    let keys = properties
        .iter()
        .filter(|(_, rule)| !has_default(rule))
        .map(|(key, _)| key.clone());
    let keys: Vec<String> = keys.collect();
    schema.insert("required".into(), keys.into());
}

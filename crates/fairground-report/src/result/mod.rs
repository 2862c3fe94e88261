//! Results as data: what `--json` writes and what saved results are read into.
//!
//! Fields are declared in the order in which they are written. Extra keys in a file are ignored,
//! missing ones refused (`saved.rs`), so that a newer Fairground reads what an older one wrote
//! and the other way round, as long as the keys here keep their meaning.
//!
//! Units are in the names; `share` is a fraction from 0 to 1.

mod comparison;
mod group;
mod note;
mod quota;
mod requests;
mod run;
mod waiting;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::MetricInfo;
use crate::machine::MachineId;
use crate::redo::Redo;
pub use comparison::{Comparison, Method, PerUnit, Verdict};
pub(crate) use comparison::{Judged, SAME, is_open, word_class};
pub use group::{BurstFrom, CpuStat, GroupStat, LimitFrom, OtherGroups, WeightFrom};
pub use note::{Note, OfMetric, OfSaved, OfSeeds, OfValues, OfWaiting, OfWork, SameCounts};
pub use quota::{Delay, DelayedStretch, IrqsOff, Quantiles, QuotaWait, QuotaWork, ThrottledBy};
pub use requests::{Halves, OpenRequests};
pub use run::{FunctionCost, IdleState, LineTraffic, Run, Variant, Work};
pub use waiting::{IdleWaste, StillWaiting, VainWait, WaitsOver};

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

impl RunResult {
    /// Says which decisions are not those of the profile.
    #[must_use]
    pub fn with_changes(self, changes: Vec<String>) -> Self {
        Self { changes, ..self }
    }
}

impl Compare {
    /// Which machine, or which two.
    pub(crate) fn machines(&self) -> String {
        let base = self.machine.with_parts();
        match &self.patch_machine {
            None => base,
            Some(patch) => format!("{} (base: {base})", patch.with_parts()),
        }
    }
}

//! A row of a published table with its simulation, as it is saved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, FACTOR};
use crate::number::Number;
use crate::stats::{Change, paired_change, summary};

/// What was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Without the change; `null` where only the words "no change" were published.
    pub base: Number,
    /// With the change.
    pub patch: Number,
    /// From base to patch in percent of base.
    pub change_pct: Number,
}

/// What the simulator says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulated {
    /// Mean over the seeds without the change.
    pub base: Number,
    /// Mean over the seeds with it.
    pub patch: Number,
    /// From base to patch in percent of base.
    pub change_pct: Number,
    /// 95 % interval of `change_pct`; both `null` for one seed.
    pub ci95_pct: [Number; 2],
}

/// One row of a published table, and its simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Name of the patch.
    pub change: String,
    /// Machine that was simulated, with the number of CPUs if only a part of it.
    pub machine: String,
    /// Command line of the workload.
    pub workload: String,
    /// Load of the table's row: share of the CPUs, number of groups or threads.
    pub load: String,
    /// What was measured, with its unit.
    pub metric: String,
    /// The table's row.
    pub published: Published,
    /// The simulated row.
    pub simulated: Simulated,
    /// Simulated base by published base: a change from another level may have other reasons. None
    /// where nothing was published, or something else (more work, another quantity).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Number,
    /// Whether they agree.
    pub class: Class,
    /// Why the row is no evidence, if it is none: it is shown and classed, but not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Why the runs cannot tell, whatever their numbers: nothing happened in the window, or too
    /// little. Such a row is a miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead: Option<String>,
    /// What the row was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
}

/// Why a row cannot speak for the model, or not for itself.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// The published number went into the simulation.
    Input,
    /// The published number was computed for this table, from others of it.
    Derived,
    /// What was published is a limit that the result can hardly reach.
    Limit,
    /// The same observation as another row.
    Repeated,
}

impl Evidence {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Input, Self::Derived, Self::Limit, Self::Repeated];

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Derived => "derived",
            Self::Limit => "limit",
            Self::Repeated => "repeated",
        }
    }
}

/// What a row was made with: rows of different models do not belong in one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    /// Version of the program.
    pub version: String,
    /// Hash of the costs and of what short reference runs do: another one is another model.
    pub model: String,
    /// Hash of the machine file, with what was changed of it.
    pub machine: String,
    /// Kernel profile.
    pub profile: String,
    /// Begin and length of the measured window, where it is not that of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<[String; 2]>,
    /// Seeds of which the values are means.
    pub seeds: Vec<u64>,
}

impl Row {
    /// Whether base is further from the published one than a factor of two.
    pub fn other_regime(&self) -> bool {
        let near = |level: f64| (1.0 / FACTOR..=FACTOR).contains(&level);
        self.level.is_some_and(|level| !near(level))
    }
}

impl Published {
    /// The change is computed from the two values.
    pub fn new(base: Number, patch: Number) -> Self {
        let change = base.zip(patch).filter(|(b, _)| *b != 0.0);
        Self {
            base,
            patch,
            change_pct: change.map(|(b, p)| 100.0 * (p - b) / b.abs()),
        }
    }
}

/// Simulated base by published base.
pub fn level(published: &Published, simulated: &Simulated) -> Number {
    let (want, got) = published.base.zip(simulated.base)?;
    (want != 0.0).then(|| got / want)
}

impl Simulated {
    /// Nothing: the row is not simulated.
    pub const NONE: Self = Self {
        base: None,
        patch: None,
        change_pct: None,
        ci95_pct: [None; 2],
    };

    /// Of the values of base and patch, in the order of the seeds. A seed without a value on
    /// either side does not count.
    pub fn of(base: &[Number], patch: &[Number]) -> Self {
        let pairs: Vec<(f64, f64)> = base
            .iter()
            .zip(patch)
            .filter_map(|(b, p)| (*b).zip(*p))
            .collect();
        let mean = |values: Vec<f64>| summary(&values).map(|s| s.mean);
        let change: Option<Change> = paired_change(&pairs);
        let ends = change.and_then(|c| c.ci95_pct);
        Self {
            base: mean(pairs.iter().map(|p| p.0).collect()),
            patch: mean(pairs.iter().map(|p| p.1).collect()),
            change_pct: change.and_then(|c| c.pct),
            ci95_pct: ends.map_or([None; 2], |[lo, hi]| [Some(lo), Some(hi)]),
        }
    }

    /// Whether base or patch is 0 or was not measured: nothing to compute a change of.
    pub(super) fn stands_still(&self) -> bool {
        let still = |side: Number| side.is_none_or(|value| value == 0.0);
        still(self.base) || still(self.patch)
    }

    /// Whether an interval is known and excludes 0.
    pub fn excludes_zero(&self) -> bool {
        matches!(self.ci95_pct, [Some(lo), Some(hi)] if lo > 0.0 || hi < 0.0)
    }

    /// Whether an interval is known and holds 0.
    pub fn holds_zero(&self) -> bool {
        matches!(self.ci95_pct, [Some(lo), Some(hi)] if lo <= 0.0 && hi >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_told_from_another() {
        let level_of = |want: Number, got| {
            let got = Simulated::of(&[Some(got)], &[Some(got)]);
            level(&Published::new(want, None), &got)
        };
        let row = |want: Number, got| Row {
            change: String::new(),
            machine: String::new(),
            workload: String::new(),
            load: String::new(),
            metric: String::new(),
            published: Published::new(want, None),
            simulated: Simulated::of(&[Some(got)], &[Some(got)]),
            level: level_of(want, got),
            class: Class::Noise,
            evidence: None,
            dead: None,
            made: None,
        };
        assert_eq!(row(Some(10.0), 5.0).level, Some(0.5));
        assert!(!row(Some(10.0), 5.0).other_regime());
        assert!(row(Some(10.0), 4.9).other_regime());
        assert!(row(Some(10.0), 20.1).other_regime());
        assert!(!row(None, 20.1).other_regime());
        assert!(!row(Some(0.0), 20.1).other_regime());
    }
}

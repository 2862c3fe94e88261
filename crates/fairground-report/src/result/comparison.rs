//! A row of a comparison: how base and patch of one metric differ, and the verdict on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::Better;
use crate::keys::{present, require_keys};
use crate::number::Number;
use crate::stats::Interval;

/// How base and patch of one metric differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct Comparison {
    /// Name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Mean over the runs of base; of a pair of sides whose runs have not all a value, over the
    /// seeds that have one on both.
    #[serde(deserialize_with = "present")]
    pub base: Number,
    /// The same of patch.
    #[serde(deserialize_with = "present")]
    pub patch: Number,
    /// `100 * (patch - base) / |base|`; `null` if base is 0 and patch is not.
    #[serde(deserialize_with = "present")]
    pub change_pct: Number,
    /// 95 % interval of `change_pct`, low end first; both `null` where there is none.
    pub ci95_pct: [Number; 2],
    /// Direction that users want; `null` where neither is better by itself.
    #[serde(deserialize_with = "present")]
    pub better: Option<Better>,
    /// The sentence: on `per`, where that is there.
    pub verdict: Verdict,
    /// Whether the interval of what the verdict is on excludes 0, and its change does not round to
    /// 0.00 %. A metric without a direction can differ and still has the verdict `noise`, because
    /// it is neither better nor worse.
    #[serde(default)]
    pub differs: bool,
    /// Whether no run of patch differs from base's of the same seed in anything that was counted,
    /// this metric or another.
    #[serde(default)]
    pub same: bool,
    /// `patch - base` in the metric's unit.
    #[serde(default)]
    pub diff: Number,
    /// 95 % interval of `diff`.
    #[serde(default)]
    pub ci95_diff: [Number; 2],
    /// Standard deviation over the runs of base.
    #[serde(default)]
    pub base_sd: Number,
    /// Standard deviation over the runs of patch.
    #[serde(default)]
    pub patch_sd: Number,
    /// Where the interval comes from.
    #[serde(default)]
    pub method: Method,
    /// What the interval is of: of the `difference`, unless this says otherwise.
    #[serde(default, skip_serializing_if = "Interval::is_difference")]
    #[schemars(extend("default" = "difference"))]
    pub interval: Interval,
    /// Of a total of runs that end at a time: the same per unit of work, which the verdict is on.
    /// The numbers above are of the total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = null))]
    pub per: Option<PerUnit>,
}

/// How base and patch differ in a total per unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct PerUnit {
    /// The unit, e.g. `transaction`.
    pub unit: String,
    /// Mean over the runs of base of the total divided by what the run got done.
    pub base: Number,
    /// The same of patch.
    pub patch: Number,
    /// Change of this quotient, in percent of that of base.
    pub change_pct: Number,
    /// 95 % interval of `change_pct`, low end first; both `null` where there is none.
    pub ci95_pct: [Number; 2],
    /// Change of the quotient.
    pub diff: Number,
    /// 95 % interval of `diff`.
    pub ci95_diff: [Number; 2],
    /// Standard deviation of the quotient over the runs of base.
    pub base_sd: Number,
    /// The same of patch.
    pub patch_sd: Number,
    /// Where the interval comes from.
    pub method: Method,
    /// What the interval is of: of the `difference`, unless this says otherwise.
    #[serde(default, skip_serializing_if = "Interval::is_difference")]
    #[schemars(extend("default" = "difference"))]
    pub interval: Interval,
}

/// The numbers that a verdict is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub base: Number,
    pub base_sd: Number,
    pub patch: Number,
    pub patch_sd: Number,
    pub change_pct: Number,
    pub ci95_pct: [Number; 2],
    pub diff: Number,
    pub ci95_diff: [Number; 2],
    pub method: Method,
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The interval excludes 0 on the side that users want.
    Better,
    /// The interval excludes 0 on the other side.
    Worse,
    /// Neither: the interval holds 0, or there is none, or the metric has no direction.
    Noise,
}

/// How an interval was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Differences of runs with the same seed, Student t.
    PairedT,
    /// Independent samples, Welch's t.
    WelchT,
    /// Too few runs for an interval, or runs without a value.
    #[default]
    None,
}

/// In place of a verdict: nothing differs, in no count of any run.
pub(crate) const SAME: &str = "same";
/// In place of a verdict: there is no interval.
const NO_INTERVAL: &str = "-";
/// In place of a verdict: a side has no value.
const NO_VALUE: &str = "no value";

impl Comparison {
    /// The verdict as people read it: `better`, `worse`, `noise`, or `differs` if it is beyond
    /// noise, but nobody can say whether it is good; `same` if what was changed reached nothing at
    /// all. Without an interval nothing can be said: `-`, or `no value` if a side has none.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (self.verdict, self.differs) {
            (Verdict::Better, _) => "better",
            (Verdict::Worse, _) => "worse",
            (Verdict::Noise, true) => "differs",
            (Verdict::Noise, false) => match self.judged() {
                on if on.base.is_none() || on.patch.is_none() => NO_VALUE,
                _ if self.same => SAME,
                on if on.method == Method::None => NO_INTERVAL,
                _ => "noise",
            },
        }
    }

    /// The numbers that the verdict is on: those per unit of work, where there are any.
    pub(crate) fn judged(&self) -> Judged {
        match &self.per {
            Some(per) => Judged {
                base: per.base,
                base_sd: per.base_sd,
                patch: per.patch,
                patch_sd: per.patch_sd,
                change_pct: per.change_pct,
                ci95_pct: per.ci95_pct,
                diff: per.diff,
                ci95_diff: per.ci95_diff,
                method: per.method,
            },
            None => self.total(),
        }
    }

    /// The metric's own numbers.
    pub(crate) fn total(&self) -> Judged {
        Judged {
            base: self.base,
            base_sd: self.base_sd,
            patch: self.patch,
            patch_sd: self.patch_sd,
            change_pct: self.change_pct,
            ci95_pct: self.ci95_pct,
            diff: self.diff,
            ci95_diff: self.ci95_diff,
            method: self.method,
        }
    }

    /// The quotient that a table shows below the total: none of nothing, which is 0 either way.
    pub(crate) fn shown_per(&self) -> Option<&PerUnit> {
        let none = [self.base, self.patch] == [Some(0.0); 2];
        self.per.as_ref().filter(|_| !none)
    }

    /// ` per transaction`, if the verdict is on that.
    pub(crate) fn per_words(&self) -> String {
        let per = self.per.as_ref().map(|per| format!(" {}", per.label()));
        per.unwrap_or_default()
    }

    /// Whether there is nothing that a verdict could be about.
    pub(crate) fn is_open(&self) -> bool {
        is_open(self.word())
    }
}

impl PerUnit {
    /// `per transaction`.
    pub(crate) fn label(&self) -> String {
        format!("per {}", self.unit)
    }
}

/// Whether this word of [`Comparison::word`] says that there is no verdict.
pub(crate) fn is_open(word: &str) -> bool {
    [NO_INTERVAL, NO_VALUE].contains(&word)
}

/// How a word of [`Comparison::word`] is shown on a page.
pub(crate) fn word_class(word: &str) -> &str {
    if is_open(word) || word == SAME {
        "noise"
    } else {
        word
    }
}

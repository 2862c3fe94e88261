//! Two replays held against each other over seeds, by the statistics of `compare`, with what is
//! particular to replays: values that are lower bounds, and values that no seed changes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::catalogue::MetricInfo;
use crate::compare::compare_metrics;
use crate::keys::require_keys;
use crate::number::Number;
use crate::result::{Comparison, Method, Run, Variant, Verdict};
use crate::stats::Interval;

/// Most metrics that a note names.
const NAMED: usize = 4;

/// A quantity of both replays, and what is known of it besides its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayQuantity {
    /// Its name and direction.
    pub info: MetricInfo,
    /// What it is called in tables.
    pub label: String,
    /// Whether a side gives a lower bound only, as of a replay that was stopped.
    pub at_least: [bool; 2],
    /// Why there is no verdict on it, if that is known beforehand.
    pub why_not: Option<String>,
    /// Whether the sides are of the same events, or a bound on them: else there is no change.
    pub comparable: bool,
    /// Whether the replay at home comes near enough to the recording in this; `None`: not known.
    pub faithful: Option<bool>,
}

/// How the replay and the what-if differ in one quantity: `base` is the replay at home, `patch` the
/// what-if.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct WhatIfRow {
    /// Means, change, interval and verdict, as those of `compare`.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Whether the replay's and the what-if's mean are lower bounds, because one was stopped. Such
    /// a row has no interval.
    pub at_least: [bool; 2],
    /// Why there is neither interval nor verdict, where that is not for the seeds: a replay was
    /// stopped, or held up by what nobody recorded.
    pub why_not: Option<String>,
    /// Whether the replay at home comes near enough to the recording in this quantity; `null` where
    /// that is not known.
    pub faithful: Option<bool>,
    /// What it is called in tables.
    #[serde(skip)]
    pub label: String,
}

/// What one replay came to with one seed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SeedValues {
    /// What all random numbers come from.
    pub seed: u64,
    /// Value per quantity; `null` where it has none.
    pub metrics: BTreeMap<String, Number>,
}

impl SeedValues {
    /// Of each run.
    pub fn of(runs: &[Run]) -> Vec<Self> {
        let values = |run: &Run| Self {
            seed: run.seed,
            metrics: run.metrics.clone(),
        };
        runs.iter().map(values).collect()
    }
}

impl WhatIfRow {
    /// Whether there is a change, and the replay at home is known not to come near enough to the
    /// recording in this quantity.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.faithful == Some(false) && self.comparison.diff.is_some()
    }

    /// The verdict as people read it ([`Comparison::word`]), with `?` if it is doubtful.
    #[must_use]
    pub fn word(&self) -> String {
        let mark = if self.is_doubtful() { " ?" } else { "" };
        format!("{}{mark}", self.comparison.word())
    }
}

/// What notes call the sides.
const SIDES: [&str; 2] = ["the replay", "the what-if"];

/// Compares them in all `quantities`, seed by seed. What a reader must know is pushed to `notes`.
///
/// A quantity that is the same with every seed on each side has no interval: that no seed reaches
/// it says nothing about how sure a difference is.
pub fn compare_replays(
    quantities: &[ReplayQuantity],
    replayed: &Variant,
    what_if: &Variant,
    notes: &mut Vec<String>,
) -> Vec<WhatIfRow> {
    let info: Vec<MetricInfo> = quantities.iter().map(|q| q.info.clone()).collect();
    let mut told = Vec::new();
    let rows = compare_metrics(&info, replayed, what_if, &mut told);
    notes.extend(told.iter().map(|note| note.of_sides(SIDES)));
    let several = replayed.runs.len() > 1;
    let is_fixed = |name: &str| several && [replayed, what_if].iter().all(|v| fixed(v, name));
    let mut unmoved = Vec::new();
    let row = |(q, mut row): (&ReplayQuantity, Comparison)| {
        let fixed = is_fixed(&row.metric);
        if fixed && q.why_not.is_none() && row.diff.is_some_and(|diff| diff != 0.0) {
            unmoved.push(row.metric.clone());
        }
        if fixed || q.why_not.is_some() || q.at_least.contains(&true) {
            row = without_interval(row);
        }
        if q.at_least[0] || !q.comparable {
            (row.diff, row.change_pct) = (None, None);
        }
        WhatIfRow {
            comparison: row,
            at_least: q.at_least,
            why_not: q.why_not.clone(),
            faithful: q.faithful,
            label: q.label.clone(),
        }
    };
    let rows = quantities.iter().zip(rows).map(row).collect();
    let same = several && is_alike(replayed) && is_alike(what_if);
    notes.extend(fixed_note(replayed.runs.len(), same, &unmoved));
    rows
}

/// What to know of quantities that no seed changes; of all, if the replays are the `same` with
/// every seed.
fn fixed_note(seeds: usize, same: bool, unmoved: &[String]) -> Option<String> {
    if same {
        return Some(format!(
            "all {seeds} seeds gave the same replay, on both sides: nothing in it is left to \
             chance, so a difference is exact for this recording, and has no interval and no \
             verdict"
        ));
    }
    let named: Vec<String> = unmoved
        .iter()
        .take(NAMED)
        .map(|n| format!("`{n}`"))
        .collect();
    let more = match unmoved.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!unmoved.is_empty()).then(|| {
        format!(
            "no seed changes {}{more} on either side: the difference has no interval and no \
             verdict",
            named.join(", ")
        )
    })
}

/// Whether a quantity has one value in all runs.
fn fixed(variant: &Variant, metric: &str) -> bool {
    let mut values = variant.runs.iter().map(|run| run.metric(metric));
    let first = values.next();
    values.all(|value| Some(value) == first)
}

/// Whether all runs have the same counts.
fn is_alike(variant: &Variant) -> bool {
    let counted = |run: &Run| (run.metrics.clone(), run.functions.clone());
    let mut runs = variant.runs.iter().map(counted);
    let first = runs.next();
    runs.all(|run| Some(run) == first)
}

fn without_interval(row: Comparison) -> Comparison {
    Comparison {
        ci95_pct: [None; 2],
        ci95_diff: [None; 2],
        method: Method::None,
        interval: Interval::Difference,
        verdict: Verdict::Noise,
        differs: false,
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Better;

    fn quantity(name: &str) -> ReplayQuantity {
        ReplayQuantity {
            info: MetricInfo {
                name: name.into(),
                unit: "ms".into(),
                better: Some(Better::Lower),
                description: String::new(),
            },
            label: name.into(),
            at_least: [false; 2],
            why_not: None,
            comparable: true,
            faithful: Some(true),
        }
    }

    /// Runs with the seeds 1, 2, ...: two quantities of each.
    fn variant(values: &[(f64, f64)]) -> Variant {
        let run = |(seed, (a, b)): (u64, &(f64, f64))| {
            let mut run = Run::new(seed);
            run.set_metric("a", *a);
            run.set_metric("b", *b);
            run
        };
        Variant {
            runs: (1..).zip(values).map(run).collect(),
            ..Variant::default()
        }
    }

    #[test]
    fn what_no_seed_changes_has_no_interval() {
        let (before, after) = (
            variant(&[(10.0, 5.0), (11.0, 5.0), (12.0, 5.0)]),
            variant(&[(20.0, 9.0), (21.5, 9.0), (22.0, 9.0)]),
        );
        let mut notes = Vec::new();
        let quantities = [quantity("a"), quantity("b")];
        let rows = compare_replays(&quantities, &before, &after, &mut notes);
        assert_eq!(rows[0].comparison.word(), "worse");
        assert!(rows[0].comparison.ci95_pct[0].is_some());
        let fixed = &rows[1].comparison;
        assert_eq!((fixed.word(), fixed.ci95_pct), ("-", [None; 2]));
        assert_eq!(fixed.change_pct, Some(80.0));
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].starts_with("no seed changes `b` on either"),
            "{notes:?}"
        );
    }

    #[test]
    fn replays_that_are_the_same_with_every_seed_say_so() {
        let (before, after) = (variant(&[(10.0, 5.0); 3]), variant(&[(20.0, 5.0); 3]));
        let mut notes = Vec::new();
        let rows = compare_replays(&[quantity("a")], &before, &after, &mut notes);
        assert_eq!(rows[0].comparison.method, Method::None);
        assert!(
            notes[0].starts_with("all 3 seeds gave the same"),
            "{notes:?}"
        );
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn lower_bounds_have_no_verdict_and_one_of_the_replay_no_change() {
        let (before, after) = (
            variant(&[(10.0, 5.0), (11.0, 5.0), (12.0, 5.0)]),
            variant(&[(30.0, 9.0), (30.0, 9.0), (30.0, 9.0)]),
        );
        let row = |at_least: [bool; 2]| {
            let stopped = ReplayQuantity {
                at_least,
                ..quantity("a")
            };
            let rows = compare_replays(&[stopped], &before, &after, &mut Vec::new());
            rows[0].comparison.clone()
        };
        assert_eq!(row([false; 2]).word(), "worse");
        let bound = row([false, true]);
        assert_eq!(bound.word(), "-");
        assert!(bound.change_pct.is_some_and(|pct| pct > 100.0));
        assert_eq!(row([true, false]).change_pct, None);
    }

    #[test]
    fn what_is_cut_off_or_held_up_has_no_verdict() {
        let (before, after) = (
            variant(&[(10.0, 5.0), (11.0, 5.0), (12.0, 5.0)]),
            variant(&[(30.0, 9.0), (31.0, 9.0), (33.0, 9.0)]),
        );
        let row = |comparable: bool| {
            let held_up = ReplayQuantity {
                why_not: Some("held up".into()),
                comparable,
                ..quantity("a")
            };
            compare_replays(&[held_up], &before, &after, &mut Vec::new()).remove(0)
        };
        let held_up = row(true);
        assert_eq!(
            (&*held_up.word(), held_up.comparison.ci95_pct),
            ("-", [None; 2])
        );
        assert!(held_up.comparison.change_pct.is_some());
        assert_eq!(held_up.why_not.as_deref(), Some("held up"));
        assert_eq!(row(false).comparison.change_pct, None);
    }

    #[test]
    fn notes_speak_of_the_replay_and_the_what_if() {
        let before = variant(&[(0.0, 5.0), (0.0, 6.0), (0.0, 7.0)]);
        let after = variant(&[(10.0, 9.0)]);
        let mut notes = Vec::new();
        compare_replays(&[quantity("a")], &before, &after, &mut notes);
        let said = notes.join("\n");
        assert!(
            said.starts_with("the what-if has one run, which has no spread"),
            "{said}"
        );
        assert!(
            said.contains("`a` is 0 in the replay, so its change"),
            "{said}"
        );
    }
}

//! A report as rows of results.

use super::Report;
use crate::truth::row::{Row, Sample, Verdict};

/// Lines named of those that are no miss.
const SHOWN: usize = 20;

/// Why some may be a unit apart.
const ROUNDED: &str =
    "within one unit: in the open period is an event or a tick, whose update leaves no line";

/// The rows of a report: recorded are the transitions that can be told, simulated those that are
/// equal; those within a unit; and one row for each reason why some cannot be told.
#[must_use]
pub fn rows(case: &str, report: &Report) -> Vec<Row> {
    let one = |mean: usize| Sample {
        mean: mean as f64,
        sd: 0.0,
        n: 1,
    };
    let lines = |lines: &[usize], most: usize| {
        let shown: Vec<String> = lines.iter().take(most).map(usize::to_string).collect();
        let more = if lines.len() > shown.len() {
            ", ..."
        } else {
            ""
        };
        format!("{}{more}", shown.join(", "))
    };
    let mut rows = Vec::new();
    for (what, count) in report {
        let told = count.equal + count.different.len();
        let differ = !count.different.is_empty();
        let reason = || {
            format!(
                "run-pelt.csv, lines {}",
                lines(&count.different, usize::MAX)
            )
        };
        let row = Row {
            case: case.to_string(),
            metric: format!("run-pelt.{what}"),
            unit: "updates",
            recorded: one(told),
            simulated: Some(one(count.equal)),
            tolerance: Some(0.0),
            verdict: if differ {
                Verdict::Miss
            } else {
                Verdict::Spread
            },
            reason: differ.then(reason),
        };
        let skipped = count.undetermined.iter().map(|(why, which)| Row {
            metric: format!("run-pelt.{what}.{why:?}").to_lowercase(),
            recorded: one(which.len()),
            simulated: None,
            tolerance: None,
            verdict: Verdict::Skipped,
            reason: Some(format!("{}: lines {}", why.sentence(), lines(which, SHOWN))),
            ..row.clone()
        });
        let skipped: Vec<Row> = skipped.collect();
        let rounded = count.rounded.len();
        let rounded = (rounded > 0).then(|| Row {
            metric: format!("run-pelt.{what}.rounded"),
            recorded: one(rounded),
            simulated: Some(one(rounded)),
            tolerance: Some(1.0),
            verdict: Verdict::Tolerance,
            reason: Some(format!("{ROUNDED}: lines {}", lines(&count.rounded, SHOWN))),
            ..row.clone()
        });
        if told > 0 {
            rows.push(row);
        }
        rows.extend(rounded);
        rows.extend(skipped);
    }
    rows
}

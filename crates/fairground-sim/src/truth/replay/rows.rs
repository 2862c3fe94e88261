//! A report as rows of results.

use super::Report;
use crate::truth::row::{Row, Sample, Verdict};

/// The rows of a report: recorded are the transitions that can be told, simulated those that are
/// equal; and one row for each reason why some cannot be told.
#[must_use]
pub fn rows(case: &str, report: &Report) -> Vec<Row> {
    let one = |mean: usize| Sample {
        mean: mean as f64,
        sd: 0.0,
        n: 1,
    };
    let lines = |lines: &[usize]| {
        let shown: Vec<String> = lines.iter().take(20).map(usize::to_string).collect();
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
        let reason = || format!("run-pelt.csv, lines {}", lines(&count.different));
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
            reason: Some(format!("{}: lines {}", why.sentence(), lines(which))),
            ..row.clone()
        });
        let skipped: Vec<Row> = skipped.collect();
        if told > 0 {
            rows.push(row);
        }
        rows.extend(skipped);
    }
    rows
}

//! The fidelity table: by kind of case and metric, how many of the compared numbers are not
//! missed, and how far off the middle one is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::row::{Row, Verdict};

/// Columns: a title, and what the last part of a metric's path begins with.
const COLUMNS: &[(&str, &[&str])] = &[
    ("CPU time", &["cpu_", "phases", "workload_us", "idle_us"]),
    ("switches", &["switches"]),
    ("on CPU", &["on_cpu"]),
    ("waits", &["preempted_wait"]),
    ("latency", &["wakeup_latency"]),
    (
        "wake-ups, turns",
        &["wakeups", "wakeup_target", "wakeup_new", "iterations"],
    ),
    ("migrations", &["migrations"]),
    ("cpu.stat", &["nr_", "throttled", "burst"]),
    ("load tracking", &["run-pelt"]),
    ("own numbers", &["own."]),
];

#[derive(Default)]
struct Cell {
    compared: usize,
    missed: usize,
    /// Relative differences, where both sides are not near zero.
    errors: Vec<f64>,
}

/// The table in Markdown; `cases` are the kind of each case and its rows.
#[must_use]
pub fn markdown<'a>(cases: impl IntoIterator<Item = (&'a str, &'a [Row])>) -> String {
    let mut cells: BTreeMap<&str, BTreeMap<usize, Cell>> = BTreeMap::new();
    for (kind, rows) in cases {
        for row in rows.iter().filter(|r| r.verdict != Verdict::Skipped) {
            let cell = cells
                .entry(kind)
                .or_default()
                .entry(column(row))
                .or_default();
            cell.compared += 1;
            cell.missed += usize::from(row.verdict == Verdict::Miss);
            cell.errors.extend(error(row));
        }
    }
    let used: Vec<usize> = (0..=COLUMNS.len())
        .filter(|c| cells.values().any(|kind| kind.contains_key(c)))
        .collect();
    let title = |c: &usize| COLUMNS.get(*c).map_or("other", |(title, _)| *title);
    let titles: Vec<&str> = used.iter().map(title).collect();
    let mut text = format!("| kind | {} |\n| --- |", titles.join(" | "));
    text += &" ---: |".repeat(used.len());
    text.push('\n');
    for (kind, columns) in &cells {
        let shown: Vec<String> = used
            .iter()
            .map(|c| columns.get(c).map_or(String::new(), show))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {kind} | {} |", shown.join(" | "));
    }
    text
}

fn show(cell: &Cell) -> String {
    let good = cell.compared - cell.missed;
    let mut errors = cell.errors.clone();
    errors.sort_by(f64::total_cmp);
    match errors.get(errors.len() / 2) {
        Some(middle) => format!("{good}/{}, {:.1} %", cell.compared, 100.0 * middle),
        None => format!("{good}/{}", cell.compared),
    }
}

fn column(row: &Row) -> usize {
    let is = |start: &&str| {
        row.metric.starts_with(*start) || row.metric.split('.').any(|part| part.starts_with(*start))
    };
    let found = COLUMNS.iter().position(|(_, starts)| starts.iter().any(is));
    found.unwrap_or(COLUMNS.len())
}

fn error(row: &Row) -> Option<f64> {
    let (recorded, simulated) = (row.recorded.mean, row.simulated?.mean);
    (recorded.abs() > 1e-9).then(|| ((simulated - recorded) / recorded).abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::row::Sample;
    use crate::truth::tolerance::Tolerance;

    #[test]
    fn a_cell_has_the_share_and_the_middle_error() {
        let sample = |mean| Sample {
            mean,
            sd: 0.0,
            n: 1,
        };
        let row = |metric: &str, simulated| {
            let tolerance = Tolerance::Relative(0.1, 0.0);
            let (a, b) = (sample(10.0), sample(simulated));
            Row::judged("c", metric, "us", &[], a, b, tolerance)
        };
        let rows = [
            row("tasks.a.switches_voluntary", 10.5),
            row("tasks.a.switches_involuntary", 12.0),
            row("tasks.a.wakeup_latency_us.p50", 10.0),
        ];
        let table = markdown([("hogs", &rows[..])]);
        assert!(
            table.starts_with("| kind | switches | latency |\n| --- | ---: | ---: |\n"),
            "{table}"
        );
        assert!(
            table.ends_with("| hogs | 1/2, 20.0 % | 1/1, 0.0 % |\n"),
            "{table}"
        );
    }
}

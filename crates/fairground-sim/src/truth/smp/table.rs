//! The fidelity tables of a recording of decisions: how many of the decisions are equal, and how
//! many numbers of whole runs are not missed, by kind of file and metric.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::SmpRow;
use crate::truth::Verdict;

/// What is known of one kind of file and one metric.
#[derive(Default)]
struct Cell {
    good: u64,
    compared: u64,
    skipped: u64,
    /// Relative differences of numbers whose recorded side is not 0.
    errors: Vec<f64>,
}

type Cells = BTreeMap<(String, String), Cell>;

/// Both tables in Markdown; one without rows is left out.
#[must_use]
pub fn markdown(rows: &[SmpRow]) -> String {
    let (mut decisions, mut numbers) = (Cells::new(), Cells::new());
    for row in rows {
        match row {
            SmpRow::Decisions(row) => {
                let key = (kind(&row.case), row.metric.to_string());
                let cell = decisions.entry(key).or_default();
                cell.good += row.equal;
                cell.compared += row.equal + row.different;
                cell.skipped += row.skipped;
            }
            SmpRow::Number(row) => {
                let metric = row.metric.split('[').next().unwrap_or_default();
                let cell = numbers.entry((kind(&row.case), metric.into())).or_default();
                if row.verdict == Verdict::Skipped {
                    cell.skipped += 1;
                    continue;
                }
                cell.compared += 1;
                cell.good += u64::from(row.verdict != Verdict::Miss);
                let (theirs, ours) = (row.recorded.mean, row.simulated.map(|s| s.mean));
                if let Some(ours) = ours.filter(|_| theirs.abs() > 1e-9) {
                    cell.errors.push(((ours - theirs) / theirs).abs());
                }
            }
        }
    }
    let titles = [
        ["decisions", "equal"],
        ["whole runs", "not missed, middle error"],
    ];
    let mut text = String::new();
    for ([what, good], cells) in titles.iter().zip([decisions, numbers]) {
        if cells.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {what} | metric | {good} | skipped |");
        text += "| --- | --- | ---: | ---: |\n";
        for ((kind, metric), cell) in cells {
            let _ = writeln!(
                text,
                "| {kind} | {metric} | {} | {} |",
                cell.text(),
                cell.skipped
            );
        }
    }
    text
}

impl Cell {
    fn text(&self) -> String {
        let mut errors = self.errors.clone();
        errors.sort_by(f64::total_cmp);
        match errors.get(errors.len() / 2) {
            Some(middle) => format!("{}/{}, {:.1} %", self.good, self.compared, 100.0 * middle),
            None => format!("{}/{}", self.good, self.compared),
        }
    }
}

/// A file's name without its number of run, its end, and what follows the machine's name.
fn kind(case: &str) -> String {
    let name = case.split('#').next().unwrap_or_default();
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_machine = |part: &str| {
        let mut cores = part.split('x');
        cores.clone().count() > 1 && cores.all(|n| n.parse::<u32>().is_ok())
    };
    let mut kept: Vec<&str> = Vec::new();
    // Of `topology/2x8` only the directory says what it is.
    if let Some((dir, rest)) = name.split_once('/')
        && is_machine(rest)
    {
        return dir.to_string();
    }
    for part in name.split('_') {
        if is_machine(part) {
            break;
        }
        kept.push(part);
    }
    kept.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::{Row, Sample};

    #[test]
    fn files_of_a_kind_are_summed_up() {
        assert_eq!(
            kind("balance/run_bal_cg2_2x8.json#3"),
            "balance/run_bal_cg2"
        );
        assert_eq!(
            kind("wake/decisions_wake_2x8x2_seed1.jsonl"),
            "wake/decisions_wake"
        );
        assert_eq!(kind("fork/storm.csv"), "fork/storm");
        assert_eq!(kind("topology/2x8x2.json"), "topology");
        let sample = |mean| Sample {
            mean,
            sd: 0.0,
            n: 1,
        };
        let number = |run: u32, ours: f64, verdict| {
            SmpRow::Number(Row {
                case: format!("balance/run_a_2x8.json#{run}"),
                metric: format!("cpu_fraction[set {run}]"),
                unit: "1",
                recorded: sample(0.5),
                simulated: Some(sample(ours)),
                tolerance: None,
                verdict,
                reason: None,
            })
        };
        let rows = [
            number(0, 0.5, Verdict::Tolerance),
            number(1, 0.6, Verdict::Miss),
            number(2, 0.55, Verdict::Skipped),
        ];
        assert_eq!(
            markdown(&rows),
            "| whole runs | metric | not missed, middle error | skipped |\n\
             | --- | --- | ---: | ---: |\n\
             | balance/run_a | cpu_fraction | 1/2, 20.0 % | 1 |\n"
        );
    }
}

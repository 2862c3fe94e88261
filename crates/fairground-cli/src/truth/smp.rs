//! `fairground truth` on a recording of decisions on many CPUs (kernel-truth-smp).

use std::fmt::Write as _;

use fairground_report::labelled;
use fairground_sim::truth::smp::{self, DecisionRow, DecisionVerdict, Recording, SmpRow};
use fairground_sim::truth::{Row, Tally, Verdict, reasons};
use rayon::prelude::*;

use crate::failure::Failure;
use crate::glue;
use crate::output;
use crate::progress::counted;
use crate::truth::args::TruthArgs;
use crate::truth::refused::Refused;
use crate::truth::table::{redo, table};

/// What comes of a directory that is not in the format kernel-truth; `None` if it may be.
pub fn other_format(
    args: &TruthArgs,
    place: Option<&output::Place>,
) -> Option<Result<(), Failure>> {
    if args.dir.join("cases").is_dir() || !args.dir.is_dir() {
        return None;
    }
    if smp::is_recording(&args.dir) {
        return Some(truth(args, place));
    }
    if args.dir.join("costs.json").is_file() {
        return None;
    }
    Some(Err(Failure::new(format!(
        "{}: no recording: neither kernel-truth (cases/NAME/case.json, costs.json) nor \
         kernel-truth-smp (topology/, fork/, wake/, balance/, pelt/)",
        args.dir.display()
    ))))
}

/// Replays the files, prints the tables and writes the JSON.
fn truth(args: &TruthArgs, place: Option<&output::Place>) -> Result<(), Failure> {
    if args.machine.is_some() {
        let help = "recorded decisions bring the machine they are from";
        let message = "--machine: only for recorded cases (DIR/cases)";
        return Err(Failure::with_help(message, help));
    }
    let mut refused = Refused::default();
    let (recording, unread) = Recording::read(&args.dir).map_err(Failure::new)?;
    for error in unread {
        let _ = refused.of::<()>(Err(Failure::new(error)));
    }
    let names = match recording.names(&args.case) {
        Err(_) if refused.any() => Vec::new(),
        names => names.map_err(Failure::new)?,
    };
    let progress = counted(names.len() as u64, "files", args.no_progress);
    let check = |name: &&str| {
        let rows = smp::check(&recording, name).map_err(Failure::new);
        progress.inc(1);
        rows
    };
    let rows: Vec<_> = names.par_iter().map(check).collect();
    progress.finish_and_clear();
    let rows = rows.into_iter().filter_map(|rows| refused.of(rows));
    let rows: Vec<SmpRow> = rows.flatten().collect();
    if !rows.is_empty() {
        tell(args, place, &rows, &refused)?;
    }
    refused.end()
}

/// Writes the JSON and prints the tables.
fn tell(
    args: &TruthArgs,
    place: Option<&output::Place>,
    rows: &[SmpRow],
    refused: &Refused,
) -> Result<(), Failure> {
    if let Some(place) = place {
        let told = rows.iter().map(|row| match row {
            SmpRow::Number(row) => SmpRow::Number(reasons::told([row]).remove(0)),
            SmpRow::Decisions(_) => row.clone(),
        });
        let json = serde_json::to_string_pretty(&told.collect::<Vec<_>>())
            .map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        place.write(&(json + "\n"))?;
    }
    if place.is_some_and(output::Place::is_stdout) {
        return Ok(());
    }
    if args.markdown {
        return output::stdout(&smp::table::markdown(rows));
    }
    // The recording brings its machine, and nothing is drawn: there are no seeds.
    let version = labelled("version", &format!("fairground {}", glue::VERSION));
    let foot = version + &redo(Vec::new(), Vec::new());
    let text = text(rows, args.misses) + &refused.summary();
    output::stdout(&format!("{text}\n{foot}"))
}

fn text(rows: &[SmpRow], misses: bool) -> String {
    let mut decisions: Vec<&DecisionRow> = Vec::new();
    let mut numbers: Vec<&Row> = Vec::new();
    for row in rows {
        match row {
            SmpRow::Decisions(row) => decisions.push(row),
            SmpRow::Number(row) => numbers.push(row),
        }
    }
    let mut text = String::new();
    let shown = decisions
        .iter()
        .filter(|row| !misses || row.verdict == DecisionVerdict::Miss);
    decision_table(&mut text, shown.copied());
    if !numbers.is_empty() {
        let shown = numbers
            .iter()
            .filter(|row| !misses || row.verdict == Verdict::Miss);
        text += "\n";
        text += &table(shown.copied());
    }
    let sum = |of: fn(&DecisionRow) -> u64| decisions.iter().map(|row| of(row)).sum::<u64>();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "decisions: {} in {} rows, {} equal, {} different, {} skipped",
        sum(|r| r.records),
        decisions.len(),
        sum(|r| r.equal),
        sum(|r| r.different),
        sum(|r| r.skipped),
    );
    if !numbers.is_empty() {
        let _ = writeln!(text, "whole runs: {}", Tally::of(numbers.iter().copied()));
        text += &reasons::summary(numbers);
    }
    text
}

fn decision_table<'a>(text: &mut String, rows: impl Iterator<Item = &'a DecisionRow>) {
    let _ = writeln!(
        text,
        "{:<8} {:<46} {:<15} {:>8} {:>8} {:>9} {:>8}",
        "verdict", "case", "metric", "records", "equal", "different", "skipped"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<8} {:<46} {:<15} {:>8} {:>8} {:>9} {:>8}",
            row.verdict.name(),
            row.case,
            row.metric,
            row.records,
            row.equal,
            row.different,
            row.skipped,
        );
        for (why, records) in &row.reasons {
            let _ = writeln!(text, "         {records} skipped: {why}");
        }
        for difference in &row.differences {
            let _ = writeln!(text, "         {difference}");
        }
    }
}

//! `--saved`: rows of `--json` shown again. Only those of this program's model belong together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fairground_report::reproduce::{Row, classify, level};
use fairground_report::written_by;
use fairground_sim::limited;

use super::experiment::{self, Experiment, RowSpec, RunSpec};
use super::{Reproduced, model, runner};
use crate::failure::Failure;
use crate::saved::BYTES_MAX;

/// Why a row does not belong beside what this program simulates.
fn check(row: &Row) -> Result<(), String> {
    let again = "simulate it again";
    let Some(made) = &row.made else {
        let missing = "it does not say which model made it (`made`)";
        return Err(format!("{}: {missing}; {again}", row.metric));
    };
    if made.model != model::hash() {
        return Err(format!(
            "{} was made with the model {}, this program has {}; {again}",
            row.metric,
            made.model,
            model::hash()
        ));
    }
    Ok(())
}

/// The row by what the experiment says of it now: what is measured stays.
fn judged(mut row: Row, spec: &RowSpec) -> Row {
    row.published = spec.published();
    row.evidence = spec.evidence;
    row.level = level(&row.published, &row.simulated).filter(|_| spec.comparable);
    if row.dead.is_none() {
        row.class = classify(spec.kind, &row.published, &row.simulated);
    }
    row
}

/// Rows of files, put where they belong by change, machine, load, workload, window and metric.
/// Those that are not shown are named on standard error.
///
/// # Errors
/// A file that cannot be read, or has rows of another model; files without a row of what was asked
/// for.
pub fn saved(paths: &[PathBuf], experiments: Vec<Experiment>) -> Result<Vec<Reproduced>, Failure> {
    let rows = read(paths)?;
    let mut shown = vec![false; rows.len()];
    let place = |e| place(e, &rows, &mut shown);
    let done: Vec<Reproduced> = experiments.into_iter().map(place).collect();
    let left = rows.iter().zip(&shown).filter(|(_, shown)| !**shown);
    let left: Vec<&Row> = left.map(|(row, _)| row).collect();
    if left.len() == rows.len() {
        return Err(nothing(paths, &rows, &done));
    }
    let all = experiment::select(&[])?;
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for row in left {
        *reasons.entry(why_not(row, &done, &all)).or_default() += 1;
    }
    for (why, n) in reasons {
        crate::stderr(&format!("note: not shown: {} {why}\n", rows_text(n)));
    }
    Ok(done)
}

fn read(paths: &[PathBuf]) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> = Vec::new();
    for path in paths {
        let fail = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
        let text = limited::read_text(path, BYTES_MAX).map_err(|e| fail(&e))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| fail(&format!("not JSON: {e}")))?;
        if let Some(other) = written_by(&value).filter(|command| *command != "reproduce") {
            return Err(Failure::with_help(
                format!("{}: this is a result of `{other}`", path.display()),
                "--saved takes what `fairground reproduce --json` has written",
            ));
        }
        let no_rows =
            |e: serde_json::Error| format!("not what `fairground reproduce --json` writes: {e}");
        let these: Vec<Row> = serde_json::from_value(value).map_err(|e| fail(&no_rows(e)))?;
        for (number, row) in these.iter().enumerate() {
            check(row).map_err(|problem| fail(&format!("row {}: {problem}", number + 1)))?;
        }
        rows.extend(these);
    }
    Ok(rows)
}

/// The experiment with those of `rows` that are its, which are marked in `shown`.
fn place(mut experiment: Experiment, rows: &[Row], shown: &mut [bool]) -> Reproduced {
    let (mut found, mut lengths) = (Vec::new(), BTreeSet::new());
    for run in &experiment.runs {
        let forms = forms(run);
        let whole = forms.iter().filter_map(|form| {
            let numbers = numbers(&experiment.change, form, rows)?;
            let last = numbers.iter().flatten().max().copied();
            Some((last, form, numbers))
        });
        let whole: Vec<_> = whole.collect();
        for &number in whole.iter().flat_map(|(.., numbers)| numbers).flatten() {
            shown[number] = true;
        }
        // Of the same run in two files the later one counts, however long its windows are.
        let Some((_, form, numbers)) = whole.into_iter().max_by_key(|(last, ..)| *last) else {
            continue;
        };
        if let [long, short] = &forms[..]
            && key(long) != key(short)
        {
            lengths.insert(key(form) == key(short));
        }
        let last = |(spec, of_spec): (&RowSpec, Vec<usize>)| {
            Some(judged(rows[*of_spec.last()?].clone(), spec))
        };
        let these = form.rows.iter().zip(numbers).filter_map(last).collect();
        found.push((form.clone(), these));
    }
    // Nobody asked a file of --quick for what --quick leaves out.
    if lengths == BTreeSet::from([true]) {
        let known = |run: &RunSpec| found.iter().any(|(form, _)| form.name == run.name);
        experiment.runs.retain(|run| run.quick > 0 || known(run));
    }
    Reproduced {
        experiment,
        rows: found,
        traces: Vec::new(),
        explained: Vec::new(),
    }
}

/// The run as it may be in a file: whole, and as `--quick` makes it.
fn forms(run: &RunSpec) -> Vec<RunSpec> {
    let quick = (run.quick > 0).then(|| run.clone().shortened());
    std::iter::once(run.clone()).chain(quick).collect()
}

/// What tells the rows of a run from those of others of its change.
fn key(run: &RunSpec) -> (String, &str, &str, Option<[String; 2]>) {
    let machine = runner::machine_name(run);
    (machine, &run.workload, &run.load, run.window())
}

/// Whether the row is of this run.
fn is_of(change: &str, run: &RunSpec, row: &Row) -> bool {
    let window = row.made.as_ref().and_then(|made| made.window.clone());
    row.change == change && key(run) == (row.machine.clone(), &row.workload, &row.load, window)
}

/// The numbers of the rows for each row of the run; none if one has no row.
fn numbers(change: &str, run: &RunSpec, rows: &[Row]) -> Option<Vec<Vec<usize>>> {
    let of_run = rows.iter().enumerate();
    let of_run: Vec<_> = of_run.filter(|(_, row)| is_of(change, run, row)).collect();
    let of_spec = |spec: &RowSpec| {
        let these = of_run.iter().filter(|(_, row)| row.metric == spec.metric);
        let these: Vec<usize> = these.map(|(number, _)| *number).collect();
        (!these.is_empty()).then_some(these)
    };
    run.rows.iter().map(of_spec).collect()
}

/// Why a row is not shown, as an end of the sentence.
fn why_not(row: &Row, done: &[Reproduced], all: &[Experiment]) -> String {
    let change = &row.change;
    let find = |e: &Experiment| -> Option<String> {
        let is_it = |run: &&RunSpec| {
            let metric = run.rows.iter().any(|spec| spec.metric == row.metric);
            metric && forms(run).iter().any(|form| is_of(&e.change, form, row))
        };
        e.runs.iter().find(is_it).map(|run| run.name.clone())
    };
    if let Some(run) = done.iter().find_map(|change| find(&change.experiment)) {
        return format!("of {change}, {run}: the other rows of this run are missing");
    }
    if all.iter().any(|e| find(e).is_some()) {
        return format!("of {change}: not asked for");
    }
    format!(
        "of {change}, {}, {}, {}: no run of this program has it",
        row.workload, row.load, row.metric
    )
}

/// Not one row can be shown: what the files have instead.
fn nothing(paths: &[PathBuf], rows: &[Row], done: &[Reproduced]) -> Failure {
    let files: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    let files = files.join(", ");
    if rows.is_empty() {
        return Failure::new(format!("{files}: there are no rows"));
    }
    let mut changes: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *changes.entry(&row.change).or_default() += 1;
    }
    let has = changes.iter();
    let has: Vec<_> = has
        .map(|(c, n)| format!("{c} ({})", rows_text(*n)))
        .collect();
    let asked: Vec<_> = done.iter().map(|d| d.experiment.change.as_str()).collect();
    Failure::with_help(
        format!(
            "{files}: no row is of a run that was asked for ({}); there are rows of {}",
            asked.join(", "),
            has.join(", ")
        ),
        "ask for a change of which there are rows, and leave out --only to see all its runs",
    )
}

fn rows_text(n: usize) -> String {
    format!("{n} {}", if n == 1 { "row" } else { "rows" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_runs_of_a_change_have_the_same_rows() {
        let all = experiment::select(&[]).unwrap_or_else(|f| panic!("{}", f.text(false)));
        for e in &all {
            let named = |run: &RunSpec| {
                let keys = forms(run);
                let keys: BTreeSet<_> =
                    keys.iter().map(|form| format!("{:?}", key(form))).collect();
                keys.into_iter()
                    .map(|key| (key, run.name.clone()))
                    .collect::<Vec<_>>()
            };
            let mut known = BTreeMap::new();
            for (key, run) in e.runs.iter().flat_map(named) {
                let other = known.insert(key, run.clone());
                assert_eq!(other, None, "{}: {run}", e.change);
            }
        }
    }
}

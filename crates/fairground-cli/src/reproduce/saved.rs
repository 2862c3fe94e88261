//! `--saved`: rows of `--json` shown again. Only those of this program's model belong together.

use std::path::PathBuf;

use fairground_report::reproduce::{Row, classify, level};

use super::experiment::{Experiment, RowSpec};
use super::{Reproduced, model, runner};
use crate::failure::Failure;

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

/// Rows of files, put where they belong by change, load, workload and metric.
///
/// # Errors
/// A file that cannot be read, or has rows of another model.
pub fn saved(paths: &[PathBuf], experiments: Vec<Experiment>) -> Result<Vec<Reproduced>, Failure> {
    let mut rows: Vec<Row> = Vec::new();
    for path in paths {
        let fail = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| fail(&e))?;
        let these: Vec<Row> = serde_json::from_str(&text).map_err(|e| fail(&e))?;
        for (number, row) in these.iter().enumerate() {
            check(row).map_err(|problem| fail(&format!("row {}: {problem}", number + 1)))?;
        }
        rows.extend(these);
    }
    let place = |experiment: Experiment| -> Result<Reproduced, Failure> {
        let (mut found, mut runs) = (Vec::new(), experiment.runs.clone());
        for run in runs.drain(..) {
            let machine = runner::machine_name(&run);
            let of_run = |r: &&Row| {
                (&r.change, &r.machine, &r.workload, &r.load)
                    == (&experiment.change, &machine, &run.workload, &run.load)
                    && r.made
                        .as_ref()
                        .is_some_and(|made| made.window == run.window())
            };
            // Of the same row in two files the later one counts.
            let of_spec = |spec: &RowSpec| {
                let mut found = rows.iter().rev().filter(of_run);
                let row = found.find(|r| r.metric == spec.metric)?;
                Some(judged(row.clone(), spec))
            };
            let these: Option<Vec<Row>> = run.rows.iter().map(of_spec).collect();
            if let Some(these) = these {
                found.push((run, these));
            }
        }
        Ok(Reproduced {
            experiment,
            rows: found,
            traces: Vec::new(),
            explained: Vec::new(),
        })
    };
    experiments.into_iter().map(place).collect()
}

//! The traced runs of a benchmark: what the tracer saw of its threads, beside the model's.
//!
//! The recorder tells two tasks: `main`, the first process, and `children`, all others together.
//! Its window goes from the first to the last switch of any of them, so it has the start of the
//! program and its end, which are `main`'s and not part of the model.

use super::case::Case;
use super::compare::compare;
use super::measure::{Context, measure};
use super::others::Others;
use super::recorded::{Recorded, Run};
use super::row::{Row, Verdict};
use super::simulate::record;
use crate::cache::NS;
use crate::machine::{Setup, Sim};
use crate::machine_file::Machine;
use crate::workload::Workload;

/// Names of the two tasks.
const MAIN: &str = "main";
const CHILDREN: &str = "children";
pub(super) const TASKS: [&str; 2] = [MAIN, CHILDREN];

/// Why the others are not compared.
const OTHERS: &str = "the start and the end of the process are in it, which are no part of the \
                      model";

/// Rows of the traced runs; `workload` is the model of the command, or why there is none.
///
/// # Errors
/// A sentence that says why a run came to no end.
pub(super) fn check(
    case: &Case,
    recorded: &Recorded,
    workload: Result<&Workload, &str>,
    machine: &Machine,
    seeds: &[u64],
) -> Result<Vec<Row>, String> {
    let workload = match workload {
        Ok(workload) => workload,
        Err(why) => {
            let rows = compare(case, &recorded.runs, &[]);
            return Ok(rows.into_iter().map(|row| untold(row, why)).collect());
        }
    };
    let run = |seed: &u64| simulate(workload, case, recorded, machine, *seed);
    let simulated: Result<Vec<Run>, String> = seeds.iter().map(run).collect();
    let rows = compare(case, &recorded.runs, &simulated?);
    let told = |row: Row| {
        let tells = tells(&row.metric) || row.verdict == Verdict::Skipped;
        if tells { row } else { untold(row, OTHERS) }
    };
    Ok(rows.into_iter().map(told).collect())
}

/// Whether a number is of the model's tasks alone.
fn tells(metric: &str) -> bool {
    let of_children = metric
        .strip_prefix("tasks.")
        .and_then(|m| m.strip_prefix(CHILDREN));
    of_children.is_some_and(|m| m.starts_with('.') && !m.ends_with("cpu_share_of_workload"))
}

/// The number is not compared.
fn untold(row: Row, why: &str) -> Row {
    Row::skipped(&row.case, &row.metric, row.unit, row.recorded, why.into())
}

/// One simulated run as the tracer sees it.
fn simulate(
    workload: &Workload,
    case: &Case,
    recorded: &Recorded,
    machine: &Machine,
    seed: u64,
) -> Result<Run, String> {
    let setup = Setup {
        machine,
        features: super::kernel::features(&case.machine, machine)?,
        workload,
        seed,
        trace: true,
    };
    let mut sim = Sim::new(&setup).map_err(|e| e.to_string())?;
    record(&mut sim);
    let end = sim.run().map_err(|e| e.to_string())?;
    // Of a long run the recorder keeps the first part.
    let window_us = recorded.runs.first().map_or(0.0, |run| run.window_us);
    let names: Vec<Option<String>> = (0..sim.templates().len())
        .map(|task| Some(if task == 0 { MAIN } else { CHILDREN }.to_string()))
        .collect();
    let cx = Context {
        names: &names,
        all: TASKS.map(String::from).into(),
        groups: &[],
        window: (0, (end / NS).min((window_us * 1e3) as u64)),
        edges_us: &recorded.hist_edges_us,
        cpus: machine.topology.nr_cpus(),
        blind: Others::of(case, recorded).blind,
    };
    let trace = sim.host.counters.trace.as_deref().unwrap_or_default();
    Ok(measure(trace, &cx))
}

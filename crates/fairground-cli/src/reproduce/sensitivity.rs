//! `--sensitivity`: each assumed figure over its plausible range, and which classes stay.
//!
//! A figure of a machine file that nobody measured is set to the ends of its range (`lo`, `hi`;
//! half and twice where the file gives none). The two tables of base costs in `costs.rs`, which
//! are estimates as a whole, are halved and doubled; the tick runs at 250 and 1000 Hz. One
//! thing at a time, all else as it is.

use std::collections::{BTreeMap, BTreeSet};

use fairground_sim::machine_file::{CostScale, Machine};

use super::experiment::Experiment;
use super::runner::simulate_varied;
use super::{ReproduceArgs, Reproduced};
use crate::failure::Failure;
use crate::output;

/// One figure at one end of its range.
#[derive(Clone, Debug, PartialEq)]
pub enum Varied {
    /// A figure of the machine file by path.
    Figure(String, End),
    /// Ticks a second.
    Hz(u32),
    /// One of the tables of base costs, and its factor.
    Costs(Table, f64),
}

/// A table of `costs.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Scheduler functions and scans.
    Scheduler,
    /// The rest of the kernel.
    Kernel,
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The smallest plausible value.
    Low,
    /// The greatest.
    High,
}

impl Varied {
    fn name(&self) -> String {
        match self {
            Self::Figure(path, End::Low) => format!("{path} low"),
            Self::Figure(path, End::High) => format!("{path} high"),
            Self::Hz(hz) => format!("HZ {hz}"),
            Self::Costs(Table::Scheduler, factor) => format!("scheduler costs x{factor}"),
            Self::Costs(Table::Kernel, factor) => format!("other kernel costs x{factor}"),
        }
    }

    fn machine(&self, machine: &Machine) -> Result<Machine, Failure> {
        let (path, end) = match self {
            Self::Figure(path, end) => (path, end),
            Self::Hz(_) => return Ok(machine.clone()),
            Self::Costs(table, factor) => {
                let mut scale = CostScale::NONE;
                match table {
                    Table::Scheduler => scale.scheduler = *factor,
                    Table::Kernel => scale.kernel = *factor,
                }
                return Ok(machine.with_cost_scale(scale));
            }
        };
        // A machine without this figure is not concerned.
        let Some(figure) = machine.figure(path) else {
            return Ok(machine.clone());
        };
        let value = match end {
            End::Low => figure.lo.unwrap_or(figure.v / 2.0),
            End::High => figure.hi.unwrap_or(figure.v * 2.0),
        };
        machine.with_figure(path, value).map_err(Failure::new)
    }
}

/// Runs the quick rows with each figure varied, and prints which classes change.
///
/// # Errors
/// A run that fails.
pub fn sensitivity(experiments: &[Experiment], args: &ReproduceArgs) -> Result<(), Failure> {
    let mut text = String::new();
    for experiment in experiments {
        text += &of_change(experiment, args)?;
    }
    output::stdout(&text)
}

fn of_change(experiment: &Experiment, args: &ReproduceArgs) -> Result<String, Failure> {
    let one = |varied: Option<&Varied>| -> Result<Vec<String>, Failure> {
        let done = simulate_varied(vec![experiment.clone()], args, &|machine, features| {
            if let Some(Varied::Hz(hz)) = varied {
                crate::plan::set(features, "hz", &hz.to_string())?;
            }
            varied.map_or_else(|| Ok(machine.clone()), |v| v.machine(machine))
        })?;
        Ok(classes(&done))
    };
    let usual = one(None)?;
    let mut changed: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let all = varied(experiment)?;
    for v in &all {
        for (row, (was, is)) in usual.iter().zip(one(Some(v))?).enumerate() {
            if *was != is {
                changed
                    .entry(row)
                    .or_default()
                    .push(format!("{is} with {}", v.name()));
            }
        }
    }
    let mut text = format!(
        "{}: {} rows, {} variations\n",
        experiment.change,
        usual.len(),
        all.len()
    );
    let names = experiment.runs.iter().flat_map(|run| {
        let name = |r: &super::experiment::RowSpec| format!("{} {}", run.name, r.metric);
        run.rows.iter().map(name)
    });
    for (row, name) in names.enumerate() {
        let what = changed
            .get(&row)
            .map_or("over the whole range".into(), |c| c.join(", "));
        text += &format!("  {:<8} {name}: {what}\n", usual[row]);
    }
    Ok(text)
}

fn classes(done: &[Reproduced]) -> Vec<String> {
    let rows = done.iter().flat_map(Reproduced::all_rows);
    rows.map(|row| row.class.name().to_string()).collect()
}

/// What is assumed of the experiment's machines, at both ends.
fn varied(experiment: &Experiment) -> Result<Vec<Varied>, Failure> {
    let mut paths = BTreeSet::new();
    for run in &experiment.runs {
        let machine = Machine::from_path_or_id(&run.machine).map_err(Failure::new)?;
        paths.extend(
            machine
                .assumed()
                .into_iter()
                .map(|(path, _)| path.to_string()),
        );
    }
    let both = |path: &String| [End::Low, End::High].map(|end| Varied::Figure(path.clone(), end));
    let mut all: Vec<Varied> = paths.iter().flat_map(both).collect();
    for table in [Table::Scheduler, Table::Kernel] {
        all.extend([0.5, 2.0].map(|factor| Varied::Costs(table, factor)));
    }
    all.extend([Varied::Hz(250), Varied::Hz(1000)]);
    Ok(all)
}

//! `--sensitivity`: each assumed figure over its plausible range, and which classes stay.
//!
//! A figure of a machine file that nobody measured is set to the ends of its range (`lo`, `hi`;
//! half and twice where the file gives none). The two tables of base costs in `costs.rs`, which
//! are estimates as a whole, are halved and doubled; the tick runs at 250 and 1000 Hz. One
//! thing at a time, all else as it is.

use std::collections::BTreeSet;
use std::path::Path;

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

/// A row's class with the usual figures, and where it is another.
struct Verdict {
    change: String,
    row: String,
    class: String,
    /// `miss with kernel_ops.ipi_send low`, ...
    others: Vec<String>,
}

impl Verdict {
    fn others(&self) -> String {
        if self.others.is_empty() {
            return "the same over all ranges".into();
        }
        self.others.join(", ")
    }
}

/// Runs the quick rows with each figure varied, and prints which classes change; with `--markdown`
/// their table goes into `calibration.md` of that directory.
///
/// # Errors
/// A run that fails, a page that cannot be read or written or has no place for the table.
pub fn sensitivity(experiments: &[Experiment], args: &ReproduceArgs) -> Result<(), Failure> {
    let page = args.markdown.as_ref().map(|dir| dir.join(PAGE));
    let old = page.as_deref().map(read).transpose()?;
    let mut text = String::new();
    let mut all = Vec::new();
    for experiment in experiments {
        let (variations, verdicts) = of_change(experiment, args)?;
        text += &format!(
            "{}: {} rows, {variations} variations\n",
            experiment.change,
            verdicts.len(),
        );
        for v in &verdicts {
            text += &format!("  {:<8} {}: {}\n", v.class, v.row, v.others());
        }
        all.extend(verdicts);
    }
    if let (Some(path), Some(old)) = (&page, &old) {
        let new = with_table(old, &table(&all)).ok_or_else(|| no_place(path))?;
        std::fs::write(path, new)
            .map_err(|e| Failure::new(format!("cannot write `{}`: {e}", path.display())))?;
    }
    output::stdout(&text)
}

const PAGE: &str = "calibration.md";
const BEGIN: &str = "<!-- made by `fairground reproduce --all --sensitivity --markdown docs` -->\n";
const END: &str = "<!-- end -->\n";

/// The page, if it has a place for the table: asked before the runs, which take long.
fn read(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new(format!("cannot read `{}`: {e}", path.display())))?;
    match with_table(&text, "") {
        Some(_) => Ok(text),
        None => Err(no_place(path)),
    }
}

fn no_place(path: &Path) -> Failure {
    let lines = format!("expected the lines `{}` and `{}`", BEGIN.trim(), END.trim());
    Failure::new(format!("{}: {lines}", path.display()))
}

/// `page` with `table` between its two lines.
fn with_table(page: &str, table: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}{table}{END}{tail}"))
}

fn table(verdicts: &[Verdict]) -> String {
    let mut text =
        "| change | row | class | another class |\n| --- | --- | --- | --- |\n".to_string();
    for v in verdicts {
        let cells = [&v.change, &v.row, &v.class, &v.others()].map(|c| c.replace('|', "/"));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

/// The number of variations, and the rows with what they do to them.
fn of_change(
    experiment: &Experiment,
    args: &ReproduceArgs,
) -> Result<(usize, Vec<Verdict>), Failure> {
    let one = |varied: Option<&Varied>| -> Result<Vec<String>, Failure> {
        let done = simulate_varied(vec![experiment.clone()], args, &|machine, features| {
            if let Some(Varied::Hz(hz)) = varied {
                crate::plan::set(features, "hz", &hz.to_string())?;
            }
            varied.map_or_else(|| Ok(machine.clone()), |v| v.machine(machine))
        })?;
        Ok(classes(&done))
    };
    let rows = experiment.runs.iter().flat_map(|run| {
        let name = |r: &super::experiment::RowSpec| format!("{} {}", run.name, r.metric);
        run.rows.iter().map(name)
    });
    let mut verdicts: Vec<Verdict> = one(None)?
        .into_iter()
        .zip(rows)
        .map(|(class, row)| Verdict {
            change: experiment.change.clone(),
            row,
            class,
            others: Vec::new(),
        })
        .collect();
    let all = varied(experiment)?;
    for v in &all {
        for (verdict, class) in verdicts.iter_mut().zip(one(Some(v))?) {
            if verdict.class != class {
                verdict.others.push(format!("{class} with {}", v.name()));
            }
        }
    }
    Ok((all.len(), verdicts))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_goes_between_its_two_lines() {
        let page = format!("above\n{BEGIN}old\n{END}below\n");
        let new = with_table(&page, "new\n").expect("a place");
        assert_eq!(new, format!("above\n{BEGIN}new\n{END}below\n"));
        assert_eq!(with_table("no place", "new\n"), None);
    }

    #[test]
    fn a_verdict_says_where_it_is_another() {
        let verdict = |others: &[&str]| Verdict {
            change: "c".into(),
            row: "run | metric".into(),
            class: "sign".into(),
            others: others.iter().map(|o| (*o).to_string()).collect(),
        };
        let text = table(&[verdict(&[]), verdict(&["miss with HZ 250"])]);
        let last: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            last,
            [
                "| c | run / metric | sign | the same over all ranges |",
                "| c | run / metric | sign | miss with HZ 250 |",
            ]
        );
    }
}

//! `fairground compare` in several places: machines, numbers of CPUs, workloads. Each place is
//! what `compare` would do there alone.

mod spots;

use std::path::Path;

use fairground_report::{
    Catalogue, Compare, FailOn, FailOnError, Place, Redo, Signs, csv_of_signs, signs_page,
    signs_text,
};
use fairground_sim::machine_file::{Machine, MachineError};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::glue::VERSION;
use crate::how::How;
use crate::inputs::Inputs;
use crate::output::Output;
use crate::pair::Pair;
use crate::plan::titles;
use crate::signs::spots::{Spot, command_of, machines, spots};
use crate::simulate::{Keep, simulate};
use crate::usual;
use crate::what::What;

/// A place, and what is compared there, or why it cannot be.
type Tried = (Spot, Result<Pair, Refused>);

/// Whether more than one place was asked for.
pub fn several(args: &CompareArgs) -> bool {
    let what = &args.what;
    !args.config.is_empty()
        || machines(&what.machine).len() > 1
        || what.cpus.len() > 1
        || args.workload.iter().any(|word| word == "--")
}

/// Compares in each place, writes, and gives the reasons why `--fail-on` wants a failure.
///
/// # Errors
/// Anything that keeps it from running or writing.
pub fn compare(
    args: &CompareArgs,
    conditions: &[FailOn],
    command_line: &[String],
) -> Result<Vec<String>, Failure> {
    let file = args.files.first().map(std::path::PathBuf::as_path);
    let mut tried = Vec::new();
    let (spots, heading) = spots(args)?;
    for spot in spots {
        let pair = pair(args, file, &spot)?;
        tried.push((spot, pair));
    }
    one_name_each(&tried)?;
    let found: Vec<&Pair> = tried
        .iter()
        .filter_map(|(_, pair)| pair.as_ref().ok())
        .collect();
    let Some(first) = found.first() else {
        let why = tried.into_iter().find_map(|(_, pair)| pair.err());
        let why = why.map(|refused| format!("{}: {}", refused.machine, refused.why));
        return Err(Failure::with_help(
            "no place can be run",
            why.unwrap_or_default(),
        ));
    };
    check(args, conditions, &found)?;
    // Before the minutes, not after them.
    let output = Output::new(&args.how, args.most, &inputs(&tried))?;
    let jobs: Vec<_> = found.iter().flat_map(|pair| pair.jobs()).collect();
    let quick = How {
        report: None,
        ..args.how.clone()
    };
    let simulated = simulate(&jobs, &first.plan.seeds, &quick, Keep::All)?;
    let mut outcomes = simulated.outcomes.into_iter();
    let places = tried.iter().map(|(spot, pair)| match pair {
        Ok(pair) => {
            let mut side = || outcomes.next().unwrap_or_default();
            let mut sides = [side(), side()];
            usual::share(&mut sides);
            let [base, patch] = sides;
            ran(
                pair,
                pair.result(base, patch, &command_of(command_line, spot)),
            )
        }
        Err(refused) => refused.place(spot),
    });
    let redo = Redo::new(command_line, first.plan.seeds.clone(), Vec::new());
    let version = VERSION.into();
    let profile = first.profile.clone();
    let signs =
        Signs::new(version, profile, places.collect(), &args.metric, redo).map_err(Failure::new)?;
    let title = titles(&args.what)? + &heading;
    output.write(
        &|| serde_json::to_string_pretty(&signs),
        &|| csv_of_signs(&signs),
        &|style| title.clone() + &signs_text(&signs, style),
        &|style| signs_page(&signs, style),
    )?;
    // What was simulated is written, whatever can be decided.
    let mut reasons = Vec::new();
    for condition in conditions {
        reasons.extend(signs.evaluate(condition).map_err(Failure::new)?);
    }
    for note in left_undecided(args, conditions, &tried) {
        crate::stderr(&format!("note: {note}\n"));
    }
    Ok(reasons)
}

/// What is read, also for a place that cannot be run.
fn inputs(tried: &[Tried]) -> Inputs {
    let mut all = Inputs::default();
    for (spot, pair) in tried {
        match (pair, &spot.machine) {
            (Ok(pair), _) => all.add(&pair.plan.inputs),
            (Err(_), Some(machine)) => all.add_machine(machine),
            (Err(_), None) => {}
        }
    }
    all
}

/// Conditions and metrics that the places must have, and options that are about no such tables.
fn check(args: &CompareArgs, conditions: &[FailOn], pairs: &[&Pair]) -> Result<(), Failure> {
    let of_one = [
        ("--lines", args.most.lines),
        ("--functions", args.most.functions),
    ];
    if let Some((option, _)) = of_one.iter().find(|(_, given)| given.is_some()) {
        return Err(Failure::with_help(
            format!("{option} is about a table of one place, but several were asked for"),
            "leave it out, or compare in one place: --json has a command for each",
        ));
    }
    let catalogues: Vec<Catalogue> = pairs.iter().map(|pair| pair.catalogue()).collect();
    for condition in conditions {
        // One of the workloads has its metric.
        let checked = pairs.iter().zip(&catalogues);
        let checked = checked.map(|(pair, known)| condition.check(known, pair.plan.seeds.len()));
        let checked: Vec<Result<(), FailOnError>> = checked.collect();
        let unknown = |c: &Result<(), FailOnError>| matches!(c, Err(FailOnError::Unknown(_)));
        let nowhere = checked.iter().all(unknown);
        for fault in checked.into_iter().filter(|c| nowhere || !unknown(c)) {
            fault.map_err(Failure::new)?;
        }
    }
    for metric in &args.metric {
        // One of the workloads has it.
        let mut all = catalogues.iter().map(|catalogue| catalogue.get(metric));
        if let Some(Err(unknown)) = all.next()
            && all.all(|found| found.is_err())
        {
            return Err(Failure::new(unknown));
        }
    }
    Ok(())
}

/// Refuses two machines of one name: tables, verdicts and CSV tell them apart by it.
fn one_name_each(tried: &[Tried]) -> Result<(), Failure> {
    let mut known: Vec<(&str, &str)> = Vec::new();
    for (spot, pair) in tried {
        let Some(given) = spot.machine.as_deref() else {
            continue;
        };
        let id = match pair {
            Ok(pair) => &pair.plan.machine.id,
            Err(refused) => &refused.machine,
        };
        match known.iter().find(|(other, _)| other == id) {
            Some((_, other)) if *other != given => {
                return Err(Failure::with_help(
                    format!("`{other}` and `{given}` are both called `{id}`"),
                    "give one of them another name: `id` in its file, or `calibrate --id`",
                ));
            }
            Some(_) => {}
            None => known.push((id, given)),
        }
    }
    Ok(())
}

fn ran(pair: &Pair, result: Compare) -> Place {
    Place {
        machine: result.machine.id.clone(),
        cpus: pair.plan.machine.topology.nr_cpus() as u64,
        workload: result.workload.clone(),
        metrics: Vec::new(),
        refused: None,
        result: Some(result),
    }
}

/// A place that its machine cannot be: it has no such number of CPUs, or no such idle state.
struct Refused {
    machine: String,
    cpus: usize,
    why: String,
}

impl Refused {
    fn place(&self, spot: &Spot) -> Place {
        Place {
            machine: self.machine.clone(),
            cpus: self.cpus as u64,
            workload: spot.workload.clone(),
            metrics: Vec::new(),
            refused: Some(self.why.clone()),
            result: None,
        }
    }

    /// Where and what would have run.
    fn name(&self, spot: &Spot) -> String {
        let mut name = format!("{}, {} CPUs", self.machine, self.cpus);
        if !spot.workload.is_empty() {
            name += &format!(", {}", spot.workload.join(" "));
        }
        name
    }
}

/// The place, or why its machine cannot be had so: others may.
fn pair(
    args: &CompareArgs,
    file: Option<&Path>,
    spot: &Spot,
) -> Result<Result<Pair, Refused>, Failure> {
    let what = What {
        machine: spot.machine.iter().cloned().collect(),
        cpus: spot.cpus.into_iter().collect(),
        ..args.what.clone()
    };
    if let Some(name) = &spot.machine {
        let machine = Machine::from_path_or_id(name)?;
        let cpus = spot.cpus.unwrap_or(machine.topology.nr_cpus());
        let refused = |why: String| {
            let machine = machine.id.clone();
            Ok(Err(Refused { machine, cpus, why }))
        };
        let idle = what.max_idle.as_ref();
        if let Some(Err(error)) = idle.map(|state| machine.with_idle_up_to(state)) {
            return refused(match error {
                MachineError::Request {
                    message, expected, ..
                } => format!("{message}, expected {expected}"),
                other => other.to_string(),
            });
        }
        if let Some(Err(error)) = spot.cpus.map(|cpus| machine.shrunk(cpus)) {
            return refused(match error {
                MachineError::Request { expected, .. } => format!("expected {expected}"),
                other => other.to_string(),
            });
        }
    }
    Pair::new(args, &what, file, &spot.workload).map(Ok)
}

/// What conditions say nothing about: places that were not run, but for workloads that are known
/// to lack the metric, and those workloads. With `--quiet` also other places that were not run:
/// there are no tables below which they would be named.
fn left_undecided(args: &CompareArgs, conditions: &[FailOn], tried: &[Tried]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let known = |words: &[String]| {
        let mut pairs = tried.iter().filter(|(spot, _)| spot.workload == words);
        pairs.find_map(|(_, pair)| Some(pair.as_ref().ok()?.catalogue()))
    };
    let lacks = |condition: &FailOn, words: &[String]| {
        known(words).is_some_and(|catalogue| !condition.is_about(catalogue.rows()))
    };
    for (spot, pair) in tried {
        let Err(refused) = pair else { continue };
        let is_about = |condition: &FailOn| !lacks(condition, &spot.workload);
        let (name, why) = (refused.name(spot), &refused.why);
        if conditions.iter().any(is_about) {
            notes.push(format!(
                "--fail-on does not know of {name}, which was not run: {why}"
            ));
        } else if args.how.quiet {
            notes.push(format!("not run: {name}: {why}"));
        }
    }
    for (condition, text) in conditions.iter().zip(&args.fail_on) {
        let mut lacking: Vec<String> = Vec::new();
        for (spot, _) in tried.iter().filter(|(_, pair)| pair.is_ok()) {
            let name = spot.workload.join(" ");
            if lacks(condition, &spot.workload) && !lacking.contains(&name) {
                lacking.push(name);
            }
        }
        if !lacking.is_empty() {
            let all = lacking.join("; ");
            notes.push(format!(
                "--fail-on '{text}' is not about workloads without this metric: {all}"
            ));
        }
    }
    notes.dedup();
    notes
}

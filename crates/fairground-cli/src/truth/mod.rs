//! `fairground truth`: recorded cases beside simulated ones.

pub mod args;
mod refused;
mod smp;
mod table;

use std::fmt::Write as _;

use fairground_report::head_text;
use fairground_sim::machine_file::Machine;
use fairground_sim::truth::inputs::has_set;
use fairground_sim::truth::{self, Row, Tally, Verdict, reasons};
use rayon::prelude::*;

use crate::failure::Failure;
use crate::glue;
use crate::inputs::Inputs;
use crate::machine_id::machine_id;
use crate::output;
use crate::progress::counted;
use crate::truth::args::TruthArgs;
use crate::truth::refused::Refused;
use crate::truth::table::{redo, table};

/// Cases that are summed up together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    OneCpu,
    TwoCpus,
    Benchmarks,
    Costs,
}

const GROUPS: [(Group, &str); 4] = [
    (Group::OneCpu, "one CPU"),
    (Group::TwoCpus, "two CPUs"),
    (Group::Benchmarks, "benchmarks"),
    (Group::Costs, "unit costs"),
];

struct Done {
    group: Group,
    kind: String,
    rows: Vec<Row>,
}

/// Runs the cases, prints the table and writes the JSON. What is refused is told before anything
/// runs, and stops no other case.
///
/// # Errors
/// A file that is not in the format, with its place; a case that cannot be run. With other cases
/// they have been told, and the rows of the others are written.
pub fn truth(args: &TruthArgs) -> Result<(), Failure> {
    let inputs = inputs(args);
    let place = |path| output::Place::new("--json", path, &inputs);
    let place = args.json.as_deref().map(place).transpose()?;
    if let Some(done) = smp::other_format(args, place.as_ref()) {
        return done;
    }
    let machine = machine(args.machine.as_deref())?;
    let seeds: Vec<u64> = (1..=args.seeds).collect();
    let mut refused = Refused::default();
    let costs = match truth::asks_for(&args.case, truth::costs::CASE) {
        true => refused.of(truth::load_costs(&args.dir).map_err(Failure::new)),
        false => None,
    };
    let costs = costs.flatten();
    let names = match truth::names(&args.dir, &args.case) {
        Err(_) if costs.is_some() || refused.any() => Vec::new(),
        names => names.map_err(Failure::new)?,
    };
    let load = |name: &String| {
        let case = truth::load(&args.dir, name).map_err(Failure::new)?;
        Ok((in_case(&args.dir, name), name.clone(), case))
    };
    let loaded: Vec<_> = names.par_iter().map(load).collect();
    let loaded: Vec<_> = loaded.into_iter().filter_map(|l| refused.of(l)).collect();
    let same = |name: &str| loaded.iter().filter(|(.., t)| t.case.name == name).count() > 1;
    let ready = loaded.iter().map(|(file, dir, truth)| {
        let called = same(&truth.case.name).then_some(dir.as_str());
        ready(file, called, truth, &machine)
    });
    let ready: Vec<_> = ready.filter_map(|r| refused.of(r)).collect();
    let progress = counted(ready.len() as u64, "cases", args.no_progress);
    let run = |case: &Ready<'_>| {
        let done = case.run(&machine, &seeds);
        progress.inc(1);
        done
    };
    let done: Vec<_> = ready.par_iter().map(run).collect();
    progress.finish_and_clear();
    let mut cases: Vec<Done> = done.into_iter().filter_map(|d| refused.of(d)).collect();
    if let Some(costs) = &costs {
        let rows = truth::costs::check(costs, &machine, &seeds)
            .map_err(|e| Failure::new(format!("costs.json: {e}")));
        cases.extend(refused.of(rows).map(|rows| Done {
            group: Group::Costs,
            kind: truth::costs::CASE.to_string(),
            rows,
        }));
    }
    if !cases.is_empty() {
        let foot = foot(&machine, seeds);
        tell(args, place.as_ref(), &cases, &refused, &foot)?;
    }
    refused.end()
}

/// What is read. Beside recorded cases there may be other files, such as an earlier `--json`.
fn inputs(args: &TruthArgs) -> Inputs {
    let dir = &args.dir;
    let mut inputs = match truth::smp::is_recording(dir) {
        true => Inputs::new([dir]),
        false => Inputs::new(["cases", "costs.json"].map(|part| dir.join(part))),
    };
    if let Some(machine) = &args.machine {
        inputs.add_machine(machine);
    }
    inputs
}

/// What was simulated, and how to get the same again.
fn foot(machine: &Machine, seeds: Vec<u64>) -> String {
    let id = machine_id(machine);
    let head = head_text(glue::VERSION, &id, truth::kernel::PROFILE, &[]);
    head + &redo(seeds, glue::assumed(machine))
}

/// Writes the JSON and prints the table, with this at its foot.
fn tell(
    args: &TruthArgs,
    place: Option<&output::Place>,
    cases: &[Done],
    refused: &Refused,
    foot: &str,
) -> Result<(), Failure> {
    let rows: Vec<&Row> = cases.iter().flat_map(|done| &done.rows).collect();
    note_writes(&rows);
    if let Some(place) = place {
        let json = serde_json::to_string_pretty(&reasons::told(rows.iter().copied()))
            .map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        place.write(&(json + "\n"))?;
    }
    if place.is_some_and(output::Place::is_stdout) {
        return Ok(());
    }
    if args.markdown {
        let all = cases.iter().map(|d| (d.kind.as_str(), d.rows.as_slice()));
        return output::stdout(&truth::table::markdown(all));
    }
    let shown = rows
        .iter()
        .filter(|row| !args.misses || row.verdict == Verdict::Miss);
    let mut text = table(shown.copied());
    add_tallies(&mut text, cases);
    text += &refused.summary();
    text += &reasons::summary(rows.iter().copied());
    text += LEGEND;
    output::stdout(&format!("{text}\n{foot}"))
}

/// What the verdicts of the table mean (docs/truth.md).
const LEGEND: &str = "spread: within 3 recorded standard deviations or the recorded range; \
                      tolerance: within the tolerance of its kind; skipped: not compared\n";

/// Notes the writes that the kernel refuses: the recorder does so too, and goes on.
fn note_writes(rows: &[&Row]) {
    for row in rows.iter().filter(|row| row.metric.starts_with("events[")) {
        let why = row.reason.as_deref().unwrap_or_default();
        crate::stderr(&format!("note: {}, {}: {why}\n", row.case, row.metric));
    }
}

/// A case that can be run, of its group and kind.
struct Ready<'a> {
    group: Group,
    kind: &'a str,
    file: &'a str,
    /// Name of its rows, if another case calls itself the same: that of its directory.
    called: Option<&'a str>,
    case: truth::Ready<'a>,
}

fn ready<'a>(
    file: &'a str,
    called: Option<&'a str>,
    truth: &'a truth::Truth,
    machine: &Machine,
) -> Result<Ready<'a>, Failure> {
    let case = &truth.case;
    let group = if case.is_benchmark() {
        Group::Benchmarks
    } else if case.cpus_used().len() == 1 {
        Group::OneCpu
    } else {
        Group::TwoCpus
    };
    let ready = truth::ready(truth, machine);
    Ok(Ready {
        group,
        kind: &case.kind,
        file,
        called,
        case: ready.map_err(|e| Failure::new(format!("{file}: {e}")))?,
    })
}

impl Ready<'_> {
    fn run(&self, machine: &Machine, seeds: &[u64]) -> Result<Done, Failure> {
        let rows = self.case.check(machine, seeds);
        let mut rows = rows.map_err(|e| Failure::new(format!("{}: {e}", self.file)))?;
        if let Some(called) = self.called {
            rows.iter_mut().for_each(|row| row.case = called.into());
        }
        Ok(Done {
            group: self.group,
            kind: self.kind.to_string(),
            rows,
        })
    }
}

/// The file of a case in which something is wrong that only shows when it is run.
fn in_case(dir: &std::path::Path, name: &str) -> String {
    let case = dir.join("cases").join(name).join("case.json");
    case.display().to_string()
}

/// The recorded machine. The recorder uses the CPUs 0 and 1, and so does every case.
fn machine(asked_for: Option<&str>) -> Result<Machine, Failure> {
    let machine = Machine::from_path_or_id(asked_for.unwrap_or(truth::simulate::MACHINE))?;
    match machine.topology.nr_cpus() {
        2 => Ok(machine),
        cpus => Err(Failure::with_help(
            format!(
                "--machine {}: it has {cpus} CPUs, a recorded machine has 2",
                machine.id
            ),
            "record and run `fairground calibrate` where two CPUs are online",
        )),
    }
}

/// Appends how much of each group of cases agrees, and how much without the cases that have set
/// figures of the model.
fn add_tallies(text: &mut String, cases: &[Done]) {
    for (group, title) in GROUPS {
        let these = || cases.iter().filter(|done| done.group == group);
        let rows = || these().flat_map(|done| &done.rows);
        let tally = Tally::of(rows());
        // Writing to a string cannot fail.
        if tally != Tally::default() {
            let _ = writeln!(text, "{title}: {tally}");
        }
        let tests = Tally::of(rows().filter(|row| has_set(&row.case).is_none()));
        if tests != tally {
            let _ = writeln!(
                text,
                "{title}, without cases that have set figures of the model: {tests}"
            );
        }
    }
}

//! Which places are asked for, and the command line of each alone.

use std::path::Path;

use fairground_sim::machine_file::Machine;

use crate::args::CompareArgs;
use crate::configs::{self, Shape};
use crate::failure::Failure;
use crate::plan::no_machine;

/// What of a command line says where, with a value, and cannot stand in that of one place.
const OF_PLACES: [&str; 4] = ["--machine", "--cpus", "--metric", "--config"];
/// The same, without a value.
const FLAG_OF_PLACES: &str = "--whole";

/// All machines that are built in.
const ALL: &str = "all";

/// A place to try: machine, number of CPUs, workload. `None` is what the scenario says, and all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// As it was given.
    pub machine: Option<String>,
    /// So many of its CPUs.
    pub cpus: Option<usize>,
    /// Its command line.
    pub workload: Vec<String>,
}

/// Every combination, workloads first; or what configurations stand for in each place, and what
/// there is to say about them.
///
/// # Errors
/// A place that is there twice, an unknown configuration, no machine for one.
pub fn spots(args: &CompareArgs) -> Result<(Vec<Spot>, String), Failure> {
    let machines = machines(&args.what.machine);
    if machines.iter().any(String::is_empty) {
        let expected = "expected a machine on each side of a comma, as in --machine A,B";
        return Err(Failure::with_help("--machine has an empty name", expected));
    }
    if args.config.is_empty() {
        return Ok((given(args, &machines)?, String::new()));
    }
    configured(args, &machines)
}

fn given(args: &CompareArgs, machines: &[String]) -> Result<Vec<Spot>, Failure> {
    let workloads: Vec<&[String]> = args.workload.split(|word| word == "--").collect();
    if workloads.len() > 1 && workloads.iter().any(|words| words.is_empty()) {
        return Err(Failure::with_help(
            "nothing between two `--`",
            "expected a workload's command line on each side, as in `-- hackbench -- schbench`",
        ));
    }
    let cpus = &args.what.cpus;
    let mut all = Vec::new();
    for workload in workloads {
        for machine in optional(machines) {
            for cpus in optional(cpus) {
                let spot = Spot {
                    machine: machine.clone(),
                    cpus,
                    workload: workload.to_vec(),
                };
                if all.contains(&spot) {
                    let said = command_of(&[], &spot).join(" ");
                    return Err(Failure::new(format!("`{said}` is there twice")));
                }
                all.push(spot);
            }
        }
    }
    Ok(all)
}

/// The workloads of the configurations on each machine, each once.
fn configured(args: &CompareArgs, machines: &[String]) -> Result<(Vec<Spot>, String), Failure> {
    let found = args.config.iter().map(|name| configs::find(name));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    if machines.is_empty() {
        return Err(no_machine());
    }
    let mut all: Vec<Spot> = Vec::new();
    let mut heading = configs::about(&found);
    for name in machines {
        let machine = Machine::from_path_or_id(name)?;
        for cpus in optional(&args.what.cpus) {
            let mut add = |workload| {
                let machine = Some(name.clone());
                let spot = Spot {
                    machine,
                    cpus,
                    workload,
                };
                if !all.contains(&spot) {
                    all.push(spot);
                }
            };
            let Ok(machine) = cpus.map_or(Ok(machine.clone()), |n| machine.shrunk(n)) else {
                // Why not is said where it is asked for its workload.
                add(Vec::new());
                continue;
            };
            let shape = Shape::new(&machine.topology);
            for config in &found {
                let here = configs::expand(config, shape, args.whole);
                heading += &configs::taken(config, &machine.id, shape, &here);
                here.workloads.into_iter().for_each(&mut add);
            }
        }
    }
    Ok((all, heading))
}

/// Each of them, or `None` once.
fn optional<T: Clone>(list: &[T]) -> Vec<Option<T>> {
    match list {
        [] => vec![None],
        some => some.iter().cloned().map(Some).collect(),
    }
}

/// Names between commas; a file's name may have commas itself.
pub fn machines(given: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in given {
        let names: Vec<&str> = match Path::new(text).exists() {
            true => vec![text],
            false => text.split(',').map(str::trim).collect(),
        };
        for name in names {
            match name {
                ALL => all.extend(Machine::builtin_ids().map(String::from)),
                name => all.push(name.into()),
            }
        }
    }
    all
}

/// The command line that compares in this place alone.
pub fn command_of(command_line: &[String], spot: &Spot) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = command_line.iter();
    while let Some(word) = rest.next().filter(|word| *word != "--") {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if OF_PLACES.contains(&word.as_str()) {
            rest.next();
        } else if !OF_PLACES.contains(&name) && word != FLAG_OF_PLACES {
            words.push(word.clone());
        }
    }
    let mut place = Vec::new();
    if let Some(machine) = &spot.machine {
        place.extend(["--machine".into(), machine.clone()]);
    }
    if let Some(cpus) = spot.cpus {
        place.extend(["--cpus".into(), cpus.to_string()]);
    }
    // Behind the program and `compare`.
    let at = words.len().min(2);
    words.splice(at..at, place);
    if !spot.workload.is_empty() {
        words.push("--".into());
        words.extend(spot.workload.iter().cloned());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    #[test]
    fn one_place_has_a_command_of_its_own() {
        let line = words(
            "fairground compare --machine a,b --cpus=8,16 --patch p --metric m --seeds 3 -- x -- y",
        );
        let spot = Spot {
            machine: Some("b".into()),
            cpus: Some(16),
            workload: vec!["y".into()],
        };
        let alone = "fairground compare --machine b --cpus 16 --patch p --seeds 3 -- y";
        assert_eq!(command_of(&line, &spot), words(alone));
    }

    #[test]
    fn all_is_every_machine_that_is_built_in() {
        let all = machines(&["all".into()]);
        assert!(all.len() > 5 && all.contains(&"spr-8480-2s".into()));
        assert_eq!(machines(&["a, b".into(), "c".into()]), ["a", "b", "c"]);
        assert_eq!(machines(&["a,all".into()]).len(), all.len() + 1);
    }
}

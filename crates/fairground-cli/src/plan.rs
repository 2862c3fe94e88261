//! From arguments and scenario file to what is simulated. Everything that can be wrong is refused
//! here, before minutes are spent.

use std::collections::BTreeMap;
use std::path::Path;

use fairground::policy::{CATALOGUE, Features, PROFILES, Patch, Profile, SetError, decisions};
use fairground::policy::{find_patch, find_profile};
use fairground_report::MachineId;
use fairground_sim::machine_file::{FNV_START, Machine, fnv1a};
use fairground_sim::spec::{self, Length, Scenario};
use fairground_sim::workload::duration::parse_ns;
use fairground_sim::workload::{Env, Error as WorkloadError, Known, Workload};

use crate::failure::Failure;
use crate::group_files::{self, GroupFile};
use crate::inputs::Inputs;
use crate::limit_events;
use crate::machine_id::machine_id;
use crate::profile_names::{profile_help, profile_named};
use crate::settle::settle;
use crate::simulate::Job;
use crate::what::{Setting, What};

/// Seeds per variant where nobody says: enough for an interval, few enough to wait for.
pub const SEEDS: u64 = 5;

/// What is simulated, whatever the decisions.
pub struct Plan {
    /// The machine.
    pub machine: Machine,
    /// The machine with all of its CPUs and idle states.
    pub whole: MachineId,
    /// The workload.
    pub workload: Workload,
    /// The profile of base and patch.
    pub profile: &'static Profile,
    /// Seeds, in order.
    pub seeds: Vec<u64>,
    /// What decides the results beside the names of all this, as far as it is given.
    pub conditions: BTreeMap<String, String>,
    /// The files that all this is from.
    pub inputs: Inputs,
    hz: Option<u32>,
    slow_ns: Option<u64>,
}

/// One kernel with its groups: what a machine runs.
pub struct Case {
    /// The decisions.
    pub features: Features,
    /// The workload, its groups as they are here.
    pub workload: Workload,
    /// Files of groups that were written, on any side, with what they hold here.
    pub settings: BTreeMap<String, String>,
    /// Those written here.
    pub files: Vec<GroupFile>,
    /// Which stretches that waited for quota are slow, if it was said.
    pub slow_ns: Option<u64>,
    /// Groups whose own metrics are asked for by name ([`crate::apart`]).
    pub apart: Vec<String>,
}

/// Which of a patch's rows count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The kernel without the patches.
    Base,
    /// The kernel with them.
    Patch,
}

impl Plan {
    /// Of a workload's command line, or of a scenario file.
    ///
    /// # Errors
    /// Anything unknown, contradictory or unreadable.
    pub fn new(what: &What, file: Option<&Path>, argv: &[String]) -> Result<Self, Failure> {
        let length = what.length();
        let scenario = file.map(|file| load(file, length)).transpose()?;
        let scenario = scenario.as_ref();
        if scenario.is_none() && argv.is_empty() {
            return Err(Failure::with_help(
                "no workload",
                "put it behind `--`, as in `-- hackbench -g 4`, or name a scenario file; \
                 `fairground list workloads` shows all",
            ));
        }
        if scenario.is_none() {
            length_refused(length, argv)?;
        }
        let mut inputs = Inputs::new(file);
        let whole = machine(what, scenario, &mut inputs)?;
        let whole_id = machine_id(&whole);
        let whole = idle_up_to(whole, what)?;
        let machine = match what.cpus()? {
            Some(cpus) if cpus != whole.topology.nr_cpus() => whole.shrunk(cpus)?,
            _ => whole,
        };
        let env = Env {
            cpus: machine.topology.nr_cpus() as u32,
        };
        let mut workload = match scenario {
            Some(scenario) => scenario.workload(&env)?,
            None => Workload::from_argv(argv, &env).map_err(workload_failure)?,
        };
        for words in &what.beside {
            let Some(words) = shlex::split(words) else {
                let help = "quotes and backslashes mean what they mean to a shell";
                let what = format!("--beside: a quote is not closed in `{words}`");
                return Err(Failure::with_help(what, help));
            };
            let other = Workload::from_argv(&words, &env).map_err(workload_failure)?;
            workload = workload.beside(other).map_err(Failure::new)?;
        }
        if let Some(before_ns) = what.settled {
            settle(&mut workload, before_ns)?;
        }
        let seeds = match (what.seed, what.seeds) {
            (Some(seed), _) => vec![seed],
            (None, Some(n)) => (1..=n).collect(),
            (None, None) => scenario
                .map(|s| s.seeds.clone())
                .filter(|seeds| !seeds.is_empty())
                .unwrap_or_else(|| (1..=SEEDS).collect()),
        };
        Ok(Self {
            machine,
            whole: whole_id,
            workload,
            profile: profile(what, scenario)?,
            seeds,
            conditions: conditions(what, scenario),
            inputs,
            hz: scenario.and_then(|s| s.hz),
            slow_ns: what.slow,
        })
    }

    /// One side: the profile, the scenario's tick, the patches, then `settings` of decisions and of
    /// files of groups.
    ///
    /// # Errors
    /// An unknown decision, group, file or value.
    pub fn case(
        &self,
        profile: &Profile,
        patches: &[&Patch],
        side: Side,
        settings: &[Setting],
    ) -> Result<Case, Failure> {
        let (files, decisions): (Vec<&Setting>, Vec<&Setting>) = settings
            .iter()
            .partition(|setting| group_files::is_one(setting));
        let files = files.into_iter().map(GroupFile::read);
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let mut workload = self.workload.clone();
        let cpus = self.machine.topology.nr_cpus() as u32;
        group_files::write(&mut workload, cpus, &files)?;
        let later = limit_events::notes("the scenario", &workload, &files);
        workload.notes.extend(later);
        let early = limit_events::in_warmup(&workload);
        workload.notes.extend(early);
        Ok(Case {
            features: self.features(profile, patches, side, &decisions)?,
            workload,
            settings: BTreeMap::new(),
            files,
            slow_ns: self.slow_ns,
            apart: Vec::new(),
        })
    }

    fn features(
        &self,
        profile: &Profile,
        patches: &[&Patch],
        side: Side,
        settings: &[&Setting],
    ) -> Result<Features, Failure> {
        let mut features = Features::of_profile(profile);
        if let Some(hz) = self.hz {
            set(&mut features, "hz", &hz.to_string())?;
        }
        for patch in patches {
            match side {
                Side::Base => patch.undo(&mut features),
                Side::Patch => patch.apply(&mut features),
            }
        }
        for Setting { name, value } in settings {
            set(&mut features, name, value)?;
        }
        Ok(features)
    }
}

impl Case {
    /// What the kernel would refuse of it.
    ///
    /// # Errors
    /// That.
    pub fn check(&self) -> Result<(), Failure> {
        match group_files::refusal(&self.workload, &self.files) {
            Some(refusal) => Err(Failure::new(refusal)),
            None => Ok(()),
        }
    }

    /// As a machine runs it.
    pub fn job<'a>(&'a self, machine: &'a Machine) -> Job<'a> {
        Job {
            machine,
            features: &self.features,
            workload: &self.workload,
            slow_ns: self.slow_ns,
        }
    }
}

/// The patches by name, each once.
///
/// # Errors
/// A name that no patch has.
pub fn patches(names: &[String]) -> Result<Vec<&'static Patch>, Failure> {
    let mut found: Vec<&'static Patch> = Vec::new();
    for name in names {
        let known = || CATALOGUE.iter().map(|p| p.name);
        let patch =
            find_patch(name).ok_or_else(|| Failure::unknown("patch", name, known(), "patches"))?;
        if found.iter().any(|p| p.name == patch.name) {
            continue;
        }
        for other in &found {
            refuse_both(other, patch)?;
        }
        found.push(patch);
    }
    Ok(found)
}

/// What the patches are and where they come from.
///
/// # Errors
/// A name that no patch has.
pub fn titles(what: &What) -> Result<String, Failure> {
    let title = |patch: &&Patch| {
        format!(
            "{}: {}\n          {}\n",
            patch.name, patch.what, patch.origin
        )
    };
    Ok(patches(&what.patch)?.iter().map(title).collect())
}

/// Two patches that set one decision differently do not go together: the second would take the
/// first back.
fn refuse_both(a: &Patch, b: &Patch) -> Result<(), Failure> {
    let differs = |(name, value): &&(&str, &str)| {
        let mut sets = b.sets.iter();
        sets.any(|set| set.0 == *name && set.1 != *value)
    };
    match a.sets.iter().find(differs) {
        None => Ok(()),
        Some((decision, _)) => Err(Failure::with_help(
            format!(
                "patches `{}` and `{}` both set `{decision}`, to different values",
                a.name, b.name
            ),
            format!("give one of them, and `--set {decision}=VALUE` or `--base {decision}=VALUE`"),
        )),
    }
}

fn profile(what: &What, scenario: Option<&Scenario>) -> Result<&'static Profile, Failure> {
    match (&what.profile, scenario) {
        (Some(name), _) => profile_named(name),
        (
            None,
            Some(Scenario {
                profile: Some(named),
                source,
                ..
            }),
        ) => find_profile(&named.name).ok_or_else(|| {
            let message = format!("unknown profile `{}`", named.name);
            let help = profile_help(&named.name);
            source
                .error(named.span.clone(), message)
                .help(Some(help))
                .into()
        }),
        (None, _) => Ok(&PROFILES[0]),
    }
}

/// Nobody has said on which machine.
pub fn no_machine() -> Failure {
    let help = "give --machine; `fairground list machines` shows those that are built in";
    Failure::with_help("no machine", help)
}

/// The machine with all of its CPUs.
fn machine(
    what: &What,
    scenario: Option<&Scenario>,
    inputs: &mut Inputs,
) -> Result<Machine, Failure> {
    let named = scenario.and_then(|s| s.machine.as_ref().map(|m| (s, m)));
    match (what.machine()?, named) {
        (Some(arg), _) => {
            inputs.add_machine(arg);
            Ok(Machine::from_path_or_id(arg)?)
        }
        (None, Some((scenario, named))) => machine_of(scenario, named, inputs),
        (None, None) => Err(no_machine()),
    }
}

/// A scenario's machine: built in, or a file whose path begins at the scenario.
fn machine_of(
    scenario: &Scenario,
    named: &spec::Named,
    inputs: &mut Inputs,
) -> Result<Machine, Failure> {
    let beside = Path::new(scenario.source.name())
        .parent()
        .map(|dir| dir.join(&named.name))
        .filter(|path| path.is_file());
    let arg = beside.map_or(named.name.clone(), |p| p.to_string_lossy().into_owned());
    inputs.add_machine(&arg);
    Machine::from_path_or_id(&arg).map_err(|error| match error {
        fairground_sim::machine_file::MachineError::Bad(_) => error.into(),
        other => {
            let help = miette::Diagnostic::help(&other).map(|h| h.to_string());
            let place = scenario
                .source
                .error(named.span.clone(), other.to_string())
                .help(help);
            place.into()
        }
    })
}

/// The machine with the idle states that are asked for.
///
/// # Errors
/// It has no such state.
pub fn idle_up_to(machine: Machine, what: &What) -> Result<Machine, Failure> {
    Ok(match &what.max_idle {
        Some(state) => machine.with_idle_up_to(state)?,
        None => machine,
    })
}

/// What tells two results of one command line apart: the scenario's text, and what is measured.
fn conditions(what: &What, scenario: Option<&Scenario>) -> BTreeMap<String, String> {
    let ns = |ns: u64| format!("{ns} ns");
    let text = |s: &Scenario| format!("{:016x}", fnv1a(FNV_START, s.source.text().as_bytes()));
    let all = [
        ("duration", what.duration.map(ns)),
        ("max_idle", what.max_idle.clone()),
        ("scenario", scenario.map(text)),
        ("settled", what.settled.map(ns)),
        ("slow", what.slow.map(ns)),
        ("warmup", what.warmup.map(ns)),
    ];
    let given = all.into_iter();
    given
        .filter_map(|(name, value)| Some((name.to_string(), value?)))
        .collect()
}

fn load(path: &Path, length: Length) -> Result<Scenario, Failure> {
    let words = path.to_string_lossy();
    let is_tool = |w: &str| {
        Workload::known()
            .iter()
            .any(|k| k.name.split(' ').next() == Some(w))
    };
    if !path.exists() && is_tool(&words) {
        return Err(Failure::with_help(
            format!("no scenario file `{words}`"),
            format!("a workload stands behind `--`, as in `-- {words} ...`"),
        ));
    }
    Ok(Scenario::load_for(path, length)?)
}

/// A benchmark takes its length on its own command line, in its own words.
fn length_refused(length: Length, argv: &[String]) -> Result<(), Failure> {
    let Some(known) = Known::of(argv) else {
        // No workload that is known: that is the first thing to say.
        return Ok(());
    };
    let refused = |option: &str, own: Option<&str>| {
        let (name, what) = (known.name, format!("{option} is for scenario files"));
        match own {
            Some(own) => Failure::with_help(
                format!("{what}; `{name}` has {own} for that"),
                format!("give it behind `--`: `-- {name} {own} ...`"),
            ),
            None => Failure::with_help(
                format!("{what}; `{name}` has no warm-up"),
                "leave it out: all of the benchmark's run is measured",
            ),
        }
    };
    match (length.duration_ns, length.warmup_ns) {
        (Some(_), _) => Err(refused("--duration", Some(known.length))),
        (None, Some(_)) => Err(refused("--warmup", known.warmup)),
        (None, None) => Ok(()),
    }
}

fn workload_failure(error: WorkloadError) -> Failure {
    match error {
        WorkloadError::Help(text) => Failure::Help(text),
        other => Failure::new(other),
    }
}

/// Sets a decision by name.
///
/// # Errors
/// An unknown decision or value, with the nearest one.
pub fn set(features: &mut Features, name: &str, value: &str) -> Result<(), Failure> {
    // Times may be written with a unit, as everywhere.
    let in_ns = match name.ends_with("_ns") && !value.bytes().all(|b| b.is_ascii_digit()) {
        true => parse_ns(value).ok().map(|ns| ns.to_string()),
        false => None,
    };
    let value = in_ns.as_deref().unwrap_or(value);
    features.set(name, value).map_err(|error| match error {
        SetError::UnknownDecision(name) if group_files::is_meant(&name) => {
            group_files::without_group(&name, value)
        }
        SetError::UnknownDecision(name) => Failure::unknown(
            "decision",
            &name,
            decisions().iter().map(|d| d.name),
            "decisions",
        ),
        SetError::BadValue {
            decision,
            value,
            values,
        } => {
            let near = nearest_value(&value, values);
            let unit = if decision.ends_with("_ns") {
                " ns, or a time with a unit (3ms)"
            } else {
                ""
            };
            let help = near.filter(|_| values.contains(", ")).map_or_else(
                || format!("it takes {values}{unit}"),
                |near| format!("did you mean `{near}`? it takes {values}"),
            );
            Failure::with_help(format!("`{decision}` cannot be `{value}`"), help)
        }
    })
}

/// Which of several values was perhaps meant: of numbers the nearest one.
fn nearest_value(value: &str, values: &str) -> Option<String> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let numbers: Option<Vec<u64>> = values.split(", ").map(number).collect();
    match (number(value), numbers) {
        (Some(value), Some(numbers)) => {
            let near = numbers.into_iter().min_by_key(|n| n.abs_diff(value));
            near.map(|n| n.to_string())
        }
        _ => fairground_report::nearest(value, values.split(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_numbers_the_nearest_is_suggested() {
        let meant = |value: &str| {
            let failure = set(&mut Features::default(), "hz", value);
            failure.expect_err("none of them").text(false)
        };
        for (value, near) in [
            ("500", "300"),
            ("50", "100"),
            ("1024", "1000"),
            ("280", "300"),
        ] {
            let text = meant(value);
            assert!(text.contains(&format!("did you mean `{near}`?")), "{text}");
        }
    }
}

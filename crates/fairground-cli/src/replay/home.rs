//! Where a recording was made: the machine and the setting of its first replay. And where else it
//! runs, if that was asked for.

use fairground::policy::Features;
use fairground_sim::machine_file::Machine;
use fairground_trace::Recording;
use fairground_trace::derive::Attributes;
use fairground_trace::derive::attributes::RunWords;
use fairground_trace::recording::number_of;
use fairground_trace::replay::{Place, hz_of};

use crate::failure::Failure;
use crate::plan::{idle_up_to, patches, set};
use crate::profile_names::{nearest, profile_named, version};
use crate::replay::args::ReplayArgs;
use crate::replay::known::Words;
use crate::what::{Setting, What};

/// The profile of recordings of which nothing else is said.
pub const NEWEST: &str = "linux-6.18";
/// What ftrace costs at each event on the machine of the recordings of docs/truth.md, and `perf
/// record` (docs/replay.md, "What the recorder costs").
const FTRACE_NS: u64 = 130;
const PERF_NS: u64 = 290;

/// The machine and setting of the recording.
///
/// # Errors
/// An unknown machine or profile, or none with enough CPUs.
pub fn home(
    args: &ReplayArgs,
    recording: &Recording,
    known: &Attributes,
    words: &Words,
) -> Result<Place, Failure> {
    let run = known.run.as_ref();
    let of_trace = |failure: Failure| match &args.trace {
        Some(path) => failure.at(&path.display().to_string()),
        None => failure,
    };
    let machine = match (&args.recorded_on, run) {
        (Some(arg), Some(run)) => {
            let named = Machine::from_path_or_id(arg)?;
            match as_it_was(&named, run)? {
                Some(machine) => machine,
                None => as_many_cpus(named, run)?,
            }
        }
        (Some(arg), None) => Machine::from_path_or_id(arg)?,
        (None, Some(run)) => simulated_on(run).map_err(|e| words.wrong("run", "machine", e))?,
        (None, None) => guess(recording.cpus as usize, || too_many(recording)).map_err(of_trace)?,
    };
    let cpus = machine.topology.nr_cpus();
    // The file may state more than were recorded.
    let needed = recording.cpus_needed();
    if cpus < needed as usize {
        let id = &machine.id;
        let highest = needed - 1;
        let has = number_of(cpus as u64, "CPU", "CPUs");
        let message = format!("the trace has events of CPU {highest}, {id} has {has}");
        let help = "name another with --recorded-on";
        return Err(of_trace(Failure::with_help(message, help)));
    }
    let profile = recorded_profile(args, recording);
    let mut features = Features::of_profile(profile_named(profile)?);
    if args.recorded_profile.is_none() {
        for (name, value) in run.iter().flat_map(|run| &run.set) {
            set(&mut features, name, value).map_err(|e| words.wrong("run.set", name, e))?;
        }
    }
    if let Some(hz) = known.hz.or_else(|| hz_of(recording)) {
        set(&mut features, "hz", &hz.to_string())?;
    }
    Ok(Place {
        machine,
        features,
        tracer_ns: args.tracer_ns.unwrap_or(match (run, recording.format) {
            (Some(_), _) => 0,
            (None, "perf.data") => PERF_NS,
            (None, _) => FTRACE_NS,
        }),
    })
}

/// The profile of the recorded kernel: the one that was given, else the nearest of its release.
pub fn recorded_profile<'a>(args: &'a ReplayArgs, recording: &Recording) -> &'a str {
    let given = args.recorded_profile.as_deref();
    given.or_else(|| near(recording)).unwrap_or(NEWEST)
}

/// What is known of the recorded kernel, if nobody said its profile.
pub fn kernel_note(args: &ReplayArgs, recording: &Recording, known: &Attributes) -> Option<String> {
    if args.recorded_profile.is_some() || known.run.is_some() {
        return None;
    }
    Some(match (&recording.kernel, near(recording)) {
        (Some(release), Some(profile)) => format!("recorded on {release}: profile {profile}"),
        _ => format!("kernel not known, {NEWEST} assumed (`--recorded-profile`)"),
    })
}

/// The profile that is nearest to the release of a recording, if that is known.
fn near(recording: &Recording) -> Option<&'static str> {
    let asked = version(recording.kernel.as_deref()?)?;
    nearest(asked).map(|profile| profile.name)
}

/// Where else it should run; `None`: nothing was said about that.
///
/// # Errors
/// An unknown machine, profile, patch or decision.
pub fn elsewhere(
    what: &What,
    home: &Place,
    decisions: &[&Setting],
) -> Result<Option<Place>, Failure> {
    let patches = patches(&what.patch)?;
    let same_machine = what.machine.is_empty() && what.cpus.is_empty() && what.max_idle.is_none();
    let same = same_machine && what.profile.is_none();
    if same && patches.is_empty() && decisions.is_empty() {
        return Ok(None);
    }
    let mut machine = match what.machine()? {
        Some(arg) => Machine::from_path_or_id(arg)?,
        None => home.machine.clone(),
    };
    machine = idle_up_to(machine, what)?;
    if let Some(cpus) = what
        .cpus()?
        .filter(|cpus| *cpus != machine.topology.nr_cpus())
    {
        machine = machine.shrunk(cpus)?;
    }
    let mut features = other_kernel(what, home)?;
    for patch in patches {
        patch.apply(&mut features);
    }
    for Setting { name, value } in decisions {
        set(&mut features, name, value)?;
    }
    Ok(Some(Place {
        machine,
        features,
        tracer_ns: home.tracer_ns,
    }))
}

/// The kernel elsewhere without patches and settings.
///
/// # Errors
/// An unknown profile.
pub fn other_kernel(what: &What, home: &Place) -> Result<Features, Failure> {
    let mut features = home.features.clone();
    if let Some(name) = &what.profile {
        let hz = features.hz;
        features = Features::default();
        features.hz = hz;
        profile_named(name)?.apply(&mut features);
    }
    Ok(features)
}

/// The machine of a simulated run.
fn simulated_on(run: &RunWords) -> Result<Machine, Failure> {
    let machine = Machine::from_path_or_id(&run.machine).map_err(|e| {
        let message = format!("the trace is of a run on `{}`: {e}", run.machine);
        Failure::with_help(message, "name its file with --recorded-on")
    })?;
    as_it_was(&machine, run)?.ok_or_else(|| {
        let id = &run.machine;
        let message = format!("the trace is of a run on a `{id}` that is not the built-in one");
        let help = format!(
            "name its file with --recorded-on (`--recorded-on {id}` takes the built-in one all the \
             same)"
        );
        Failure::with_help(message, help)
    })
}

/// The machine as the run had it, by its hash: with so many CPUs, and all idle states or those that
/// `--max-idle` leaves. Older runs have no hash, and the number of CPUs is all that they say.
fn as_it_was(whole: &Machine, run: &RunWords) -> Result<Option<Machine>, Failure> {
    if whole.id == run.machine && whole.topology.nr_cpus() < run.cpus as usize {
        return Ok(None);
    }
    let machine = as_many_cpus(whole.clone(), run)?;
    let Some(hash) = &run.machine_hash else {
        return Ok(Some(machine));
    };
    if machine.hash() == *hash {
        return Ok(Some(machine));
    }
    for state in whole.idle_states() {
        let less = as_many_cpus(whole.with_idle_up_to(&state.name)?, run)?;
        if less.hash() == *hash {
            return Ok(Some(less));
        }
    }
    Ok(None)
}

/// What is known of the machine of a simulated run, if it is not the one that was named.
pub fn machine_note(known: &Attributes, home: &Machine) -> Option<String> {
    let run = known.run.as_ref()?;
    let hash = run.machine_hash.as_ref()?;
    (*hash != home.hash()).then(|| {
        format!(
            "the trace is of a run on another machine (`{}`, hash {hash}) than --recorded-on \
             names (`{}`, hash {}): the replay is not that run",
            run.machine,
            home.id,
            home.hash()
        )
    })
}

/// Of the machine on which a run was simulated the CPUs that it had; another one as it is.
fn as_many_cpus(machine: Machine, run: &RunWords) -> Result<Machine, Failure> {
    let cpus = run.cpus as usize;
    if machine.id != run.machine || machine.topology.nr_cpus() <= cpus {
        return Ok(machine);
    }
    Ok(machine.shrunk(cpus)?)
}

/// A built-in machine with so many CPUs, or the smallest larger one, cut down to the fewest whole
/// cores and even sockets that have them.
fn guess(cpus: usize, of_trace: impl Fn() -> String) -> Result<Machine, Failure> {
    let all: Result<Vec<Machine>, _> = Machine::builtin_ids().map(Machine::builtin).collect();
    let large = all?.into_iter().filter(|m| m.topology.nr_cpus() >= cpus);
    let machine = large.min_by_key(|m| m.topology.nr_cpus()).ok_or_else(|| {
        let message = of_trace();
        Failure::with_help(message, "name a machine file with --recorded-on")
    })?;
    let mut fewer = cpus..machine.topology.nr_cpus();
    let shrunk = fewer.find_map(|cpus| machine.shrunk(cpus).ok());
    Ok(shrunk.unwrap_or(machine))
}

/// That no built-in machine has the CPUs of a recording: for that one event with a damaged number
/// is enough.
fn too_many(recording: &Recording) -> String {
    let cpus = recording.cpus;
    if recording.cpus_needed() < cpus {
        return format!("no built-in machine has the {cpus} CPUs that the trace states");
    }
    let highest = cpus.saturating_sub(1);
    let events = recording.events.iter().filter(|e| e.cpu == highest).count();
    let events = number_of(events as u64, "event", "events");
    format!("no built-in machine has CPU {highest}, of which the trace has {events}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_not_known_has_hardly_more_cpus_than_the_trace() {
        for (cpus, has) in [
            (2, 2),
            (3, 4),
            (5, 6),
            (7, 8),
            (8, 8),
            (11, 12),
            (12, 12),
            (17, 18),
            (31, 32),
            (63, 64),
            (64, 64),
        ] {
            let found = guess(cpus, String::new).ok().map(|m| m.topology.nr_cpus());
            assert_eq!(found, Some(has), "{cpus}");
        }
    }

    #[test]
    fn the_profile_is_the_nearest_of_the_recorded_release() {
        for (release, profile) in [
            ("5.10.44", Some("linux-5.8")),
            ("6.18.3-1-default", Some("linux-6.18")),
            ("6.18.0-rc4+", Some("linux-6.18")),
            ("6.12.9", Some("linux-6.12-lts")),
            ("6.8.0-45-generic", Some("linux-6.9")),
            ("next", None),
        ] {
            let mut recording = Recording::new("test");
            recording.kernel = Some(release.into());
            assert_eq!(near(&recording), profile, "{release}");
        }
        assert_eq!(near(&Recording::new("test")), None);
    }
}

//! `fairground replay`: a recorded trace, run again where it was made, and elsewhere.

mod about;
pub mod args;
mod cases;
mod costs;
mod doubts;
mod early;
mod home;
mod json;
mod judged;
mod known;
mod open;
mod quantities;
mod quantity;
mod report;
mod results;
mod seeds;
mod text;
mod verdicts;

use std::path::{Path, PathBuf};

use fairground_sim::machine_file::Machine;
use fairground_trace::derive::Attributes;
use fairground_trace::replay::{Place, Prepared, Replay};
use fairground_trace::save;

use crate::asked::Asked;
use crate::explain::{self, Asking};
use crate::failure::Failure;
use crate::group_files::{self, GroupFile, Write, max_text};
use crate::inputs::Inputs;
use crate::limit_events;
use crate::output::{self, Place as Target};
use crate::replay::about::{About, Asked as AskedFor};
use crate::replay::args::ReplayArgs;
use crate::replay::doubts::Doubts;
use crate::replay::home::{elsewhere, home, kernel_note, machine_note, recorded_profile};
use crate::replay::results::Results;
use crate::replay::text::Sides;
use crate::traced::{LastReplay, Traced};
use crate::what::Setting;

/// Replays, prints and writes.
///
/// # Errors
/// Anything that keeps it from reading, running or writing.
pub fn replay(args: &ReplayArgs, command_line: &[String]) -> Result<(), Failure> {
    refuse_unused_options(args)?;
    if let Some(dir) = &args.cases {
        let pool = seeds::pool(args).map_err(Failure::new)?;
        return pool.install(|| crate::replay::cases::replay(args, dir));
    }
    let Some(path) = &args.trace else {
        return Err(Failure::new("no trace"));
    };
    let outputs = Outputs::new(args, &inputs(args, path))?;
    let (mut recording, known, words) = known::read(args, path)?;
    let (decisions, files) = split(&args.what.set);
    let with = changed(&known, &files)?;
    let home = home(args, &recording, &known, &words)?;
    recording.without_cpus_from(home.machine.topology.nr_cpus() as u32);
    fits(args, &known, &home.machine)?;
    let elsewhere = elsewhere(&args.what, &home, &decisions)?;
    let run_failed = |e: String| Failure::new(format!("{}: {e}", read_from(args, path)));
    let mut replay = Replay::new(&recording, &known, &home).map_err(run_failed)?;
    replay.side_by_side(&with).map_err(run_failed)?;
    let seeds = seeds::seeds(args, &recording, &replay);
    if let Some(asked) = &args.explain {
        let place = elsewhere.as_ref().unwrap_or(&home);
        let prepared = replay.prepared(place, &with).map_err(run_failed)?;
        return explained(&replay, &prepared, place, seeds[0], asked);
    }
    let asked = AskedFor {
        args,
        command_line,
        known: [&known, &with],
        files: &files,
        seeds: &seeds,
        recorded_profile: recorded_profile(args, &recording),
    };
    let other = elsewhere.as_ref().or((!files.is_empty()).then_some(&home));
    let mut about = About::new(&asked, &home, other)?;
    note_known(args, &replay, &known, &home.machine, &mut about);
    about.notes.extend(written(&replay, &with, &files)?);
    let places: Vec<(&Place, &Attributes)> = std::iter::once((&home, &known))
        .chain(other.map(|place| (place, &with)))
        .collect();
    let asking = seeds::Asking {
        args,
        replay: &replay,
        names: &recording.names,
        sides: &places,
        seeds: &seeds,
    };
    let doubts = Doubts::of(&recording, &replay, &known);
    let results = Results::new(&asking, &doubts, &mut about.notes).map_err(run_failed)?;
    let sides = Sides {
        path,
        about: &about,
        recording: &recording,
        home: &home,
        doubts,
        kernel: kernel_note(args, &recording, &known),
        results: &results,
        threads: args.threads,
    };
    let last = LastReplay {
        replay: &replay,
        place: other.unwrap_or(&home),
        with: &with,
        seed: seeds[0],
        run: results.last().first(),
    };
    outputs.write(args, &sides, &last, &known)
}

/// The trace and the file of attributes: what is wrong may stand in either.
fn read_from(args: &ReplayArgs, path: &Path) -> String {
    match &args.attributes {
        Some(given) => format!("{} with {}", path.display(), given.display()),
        None => path.display().to_string(),
    }
}

/// Prints why a thread runs where and when it does.
fn explained(
    replay: &Replay<'_>,
    prepared: &Prepared,
    place: &Place,
    seed: u64,
    asked: &Asked,
) -> Result<(), Failure> {
    let asking = Asking {
        setup: &prepared.setup(place, seed),
        exact: &prepared.exact,
        identities: &|born| replay.known_as(&prepared.derived, born),
        origin_ns: prepared.derived.lead_ns,
        of_recording: true,
    };
    let asked = Asked {
        who: text::plain(&asked.who),
        ..*asked
    };
    output::stdout(&explain::answer(&asking, &asked)?)
}

/// Says so if the machine is another than the run's, or if a file of attributes says little, or
/// what has no effect.
fn note_known(
    args: &ReplayArgs,
    replay: &Replay<'_>,
    known: &Attributes,
    home: &Machine,
    about: &mut About,
) {
    about.notes.extend(machine_note(known, home));
    if args.attributes.is_some() {
        about.notes.extend(replay.named());
    }
}

/// What a simulated run writes to files of groups later, or before anything is measured: what is
/// set holds only until then.
fn written(
    replay: &Replay<'_>,
    with: &Attributes,
    files: &[&Setting],
) -> Result<Vec<String>, Failure> {
    if with.run.as_ref().is_none_or(|run| run.writes.is_empty()) {
        return Ok(Vec::new());
    }
    let files = files.iter().copied().map(GroupFile::read);
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let workload = replay.derived(with).map_err(Failure::new)?.workload;
    let later = limit_events::notes("the recorded run", &workload, &files);
    Ok([later, limit_events::in_warmup(&workload)].concat())
}

/// Whether the threads of a file of attributes have a CPU on the recorded machine.
fn fits(args: &ReplayArgs, known: &Attributes, machine: &Machine) -> Result<(), Failure> {
    let Some(path) = &args.attributes else {
        return Ok(());
    };
    let fits = known.fits(machine.topology.nr_cpus());
    fits.map_err(|e| {
        let message = format!("{}: {e}", path.display());
        Failure::with_help(message, "name the recorded machine with --recorded-on")
    })
}

/// What is read.
fn inputs(args: &ReplayArgs, trace: &Path) -> Inputs {
    let mut inputs = Inputs::new(args.attributes.iter().map(PathBuf::as_path).chain([trace]));
    for machine in args.recorded_on.iter().chain(&args.what.machine) {
        inputs.add_machine(machine);
    }
    inputs
}

/// Options that would change nothing.
fn refuse_unused_options(args: &ReplayArgs) -> Result<(), Failure> {
    let what = &args.what;
    let of_one = [
        ("--recorded-on", args.recorded_on.is_some()),
        ("--recorded-profile", args.recorded_profile.is_some()),
        ("--attributes", args.attributes.is_some()),
        ("--tracer-ns", args.tracer_ns.is_some()),
        ("--save", args.save.is_some()),
        ("--export", args.export.is_some()),
        ("--export-recording", args.export_recording.is_some()),
        ("--json", args.json.is_some()),
        ("--report", args.report.is_some()),
        ("--explain", args.explain.is_some()),
    ];
    // Cases have a first seed, too.
    let given = what.given().into_iter().filter(|o| o.0 != "--seed");
    let of_one: Vec<_> = of_one.into_iter().chain(given).collect();
    let of_cases = [
        ("--table", args.table.is_some()),
        ("--case", args.case != "*"),
    ];
    let given = |options: &[(&'static str, bool)]| options.iter().find(|o| o.1).map(|o| o.0);
    let lengths = [("--duration", what.duration), ("--warmup", what.warmup)];
    if let Some((option, _)) = lengths.iter().find(|(_, given)| given.is_some()) {
        return Err(Failure::with_help(
            format!("{option} is not for replays: they last as long as the recording"),
            "save the derived scenario (--save) and run that",
        ));
    }
    if what.settled.is_some() {
        let help = "a recording begins where it was begun";
        return Err(Failure::with_help("`--settled` is not for replays", help));
    }
    if !what.beside.is_empty() {
        let help = "save the derived scenario (--save) and run that";
        return Err(Failure::with_help("`--beside` is not for replays", help));
    }
    let (unused, goes_with) = match args.cases {
        Some(_) => (given(&of_one), "a TRACE"),
        None => (given(&of_cases), "--cases"),
    };
    match unused {
        None => Ok(()),
        Some(option) => Err(Failure::new(format!("`{option}` goes with {goes_with}"))),
    }
}

/// Where it goes.
struct Outputs {
    save: Option<Target>,
    export: Option<Traced>,
    export_recording: Option<Traced>,
    json: Option<Target>,
    report: Option<Target>,
}

impl Outputs {
    /// Checks the places before anything is simulated.
    fn new(args: &ReplayArgs, inputs: &Inputs) -> Result<Self, Failure> {
        let target = |option: &str, path: &Option<PathBuf>| {
            let path = path.as_deref();
            path.map(|p| Target::new(option, p, inputs)).transpose()
        };
        let export = args.export.as_deref();
        let export = export.map(|path| Traced::new("--export", path, inputs));
        let export = export.transpose()?;
        if args.at.is_some() && export.as_ref().is_some_and(|e| !e.is_instant()) {
            let help = "tracepoints and stacks are of the whole replay";
            let message = "--at goes with --export FILE.schedstat or FILE.debug";
            return Err(Failure::with_help(message, help));
        }
        let option = "--export-recording";
        let recording = args.export_recording.as_deref();
        let recording = recording.map(|path| Traced::of_recording(option, path, inputs));
        let outputs = Self {
            save: target("--save", &args.save)?,
            export,
            export_recording: recording.transpose()?,
            json: target("--json", &args.json)?,
            report: target("--report", &args.report)?,
        };
        output::all_differ(&[
            ("--save", outputs.save.as_ref()),
            ("--export", outputs.export.as_ref().map(Traced::place)),
            (option, outputs.export_recording.as_ref().map(Traced::place)),
            ("--json", outputs.json.as_ref()),
            ("--report", outputs.report.as_ref()),
        ])?;
        Ok(outputs)
    }

    fn write(
        &self,
        args: &ReplayArgs,
        sides: &Sides<'_>,
        last: &LastReplay<'_>,
        known: &Attributes,
    ) -> Result<(), Failure> {
        if let Some(export) = &self.export {
            export.replay(last, args.at)?;
        }
        if let Some(export) = &self.export_recording {
            export.recording(sides.recording)?;
        }
        if let Some(save) = &self.save {
            save.write(&scenario(args, sides, known)?)?;
        }
        if let Some(report) = &self.report {
            report.write(&report::text(sides, last.replay, known)?)?;
        }
        if let Some(json) = &self.json {
            json.write(&(json::json(sides)? + "\n"))?;
            if json.is_stdout() {
                return Ok(());
            }
        }
        output::stdout(&text::text(sides))
    }
}

/// What was derived, as a scenario. Threads that say what they did with others are there as those
/// of any recording, with a semaphore for each that another one wakes.
fn scenario(args: &ReplayArgs, sides: &Sides<'_>, known: &Attributes) -> Result<String, Failure> {
    let (path, home) = (sides.path, sides.home);
    let title = path.file_name().unwrap_or(path.as_os_str());
    let title = title.to_string_lossy();
    let profile = recorded_profile(args, sides.recording);
    let hz = home.features.hz;
    let plain = sides.recording.without_acts();
    let recording = plain.as_ref().unwrap_or(sides.recording);
    let fail = |e: String| Failure::new(format!("{}: {e}", path.display()));
    // It runs by itself, with system calls at their price.
    let replay = Replay::to_save(recording, known, home).map_err(fail)?;
    let derived = replay.derived(known).map_err(fail)?;
    let waited = early::waited(&sides.results.replayed.runs, &sides.results.costs[0]);
    let mut notes = early::saved(&waited);
    let writes = known.run.as_ref().map_or(0, |run| run.writes.len());
    if writes > 0 && derived.workload.events.is_empty() {
        notes.push("What the run wrote to files of groups meanwhile is not in it.".into());
    }
    Ok(save::scenario(
        &derived,
        &title,
        &notes,
        &home.machine.id,
        profile,
        hz,
    ))
}

/// Settings of decisions, and of files of groups (`/path/cpu.max`).
fn split(settings: &[Setting]) -> (Vec<&Setting>, Vec<&Setting>) {
    settings.iter().partition(|s| !group_files::is_one(s))
}

/// The attributes with files of groups written.
fn changed(known: &Attributes, files: &[&Setting]) -> Result<Attributes, Failure> {
    let mut with = known.clone();
    let paths: Vec<String> = with.cgroups.iter().map(|g| g.path.clone()).collect();
    for setting in files {
        let file = GroupFile::read(setting)?;
        for group in file.find(&paths)? {
            let group = &mut with.cgroups[group];
            match file.write {
                Write::Max {
                    quota_ns,
                    period_ns,
                } => {
                    let (_, before_ns) = group.limit().map_err(Failure::new)?;
                    group.max = Some(max_text(quota_ns, period_ns.unwrap_or(before_ns)));
                }
                Write::Burst(ns) => group.burst_us = Some(ns / 1000),
                Write::Weight(weight) => {
                    group.weight = Some(weight);
                    (group.shares, group.nice) = (None, None);
                }
                Write::Idle(idle) => group.idle = idle,
                Write::Cpus(_) => {
                    let help = "say the CPUs of threads in --attributes, or --save a scenario";
                    let message = format!("a replay cannot set `{}`", file.file);
                    return Err(Failure::with_help(message, help));
                }
            }
        }
    }
    Ok(with)
}

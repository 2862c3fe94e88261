//! A run in the files of other tools: `run --trace`, and of a replay `--export` and
//! `--export-recording`.

use std::path::Path;

use fairground::value::TaskId;
use fairground_sim::exact::{self, Exact};
use fairground_sim::host::Stack;
use fairground_sim::machine::Setup;
use fairground_sim::moment::{self, Moment};
use fairground_trace::Recording;
use fairground_trace::derive::Attributes;
use fairground_trace::export::{self, ENDS, Extras, Format};
use fairground_trace::replay::{Place as ReplayPlace, Replay, Run};
use fairground_trace::simulated::{self, FIRST_TID};

use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::output::Place;
use crate::simulate::Job;

/// Ends of names of files that are no tracepoints: time by stack, and the kernel's own files.
const MORE_ENDS: [&str; 3] = ["folded", "schedstat", "debug"];

/// Where it goes.
pub struct Traced {
    place: Place,
    what: What,
}

/// The replay that is written: the what-if, if there is one.
pub struct LastReplay<'a> {
    /// What is replayed.
    pub replay: &'a Replay<'a>,
    /// Where.
    pub place: &'a ReplayPlace,
    /// With which groups and policies.
    pub with: &'a Attributes,
    /// Seed.
    pub seed: u64,
    /// What came of it.
    pub run: &'a Run,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Trace(Format),
    Folded,
    Schedstat,
    Debug,
}

impl Traced {
    /// Checks the place that `option` names before anything is simulated from `inputs`.
    ///
    /// # Errors
    /// An unknown end of the file's name, or a place that cannot be written or is read.
    pub fn new(option: &str, path: &Path, inputs: &Inputs) -> Result<Self, Failure> {
        let end = path.extension().and_then(|e| e.to_str());
        let what = match (end, Format::of(path)) {
            (_, Some(format)) => What::Trace(format),
            (Some("folded"), _) => What::Folded,
            (Some("schedstat"), _) => What::Schedstat,
            (Some("debug"), _) => What::Debug,
            _ => {
                let message = format!("cannot tell a trace format from `{}`", path.display());
                let ends = ENDS.iter().chain(&MORE_ENDS);
                let ends: Vec<String> = ends.map(|end| format!(".{end}")).collect();
                let help = format!("the name must end with one of {}", ends.join(", "));
                return Err(Failure::with_help(message, help));
            }
        };
        let place = Place::new(option, path, inputs)?;
        Ok(Self { place, what })
    }

    /// The same for a recording, which has tracepoints only.
    ///
    /// # Errors
    /// As [`Traced::new`], and files that it does not have.
    pub fn of_recording(option: &str, path: &Path, inputs: &Inputs) -> Result<Self, Failure> {
        let traced = Self::new(option, path, inputs)?;
        if matches!(traced.what, What::Trace(_)) {
            return Ok(traced);
        }
        let message = format!("a recording has no `{}`", path.display());
        let ends: Vec<String> = ENDS.iter().map(|end| format!(".{end}")).collect();
        let help = format!("the name must end with one of {}", ends.join(", "));
        Err(Failure::with_help(message, help))
    }

    /// Writes a recording.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn recording(&self, recording: &Recording) -> Result<(), Failure> {
        match self.what {
            What::Trace(format) => self.put_with(recording, &Extras::default(), format),
            _ => Ok(()),
        }
    }

    /// Where it goes.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether it is about one moment, so that `--at` makes sense.
    pub fn is_instant(&self) -> bool {
        matches!(self.what, What::Schedstat | What::Debug)
    }

    /// Runs the first seed once more and writes what is wanted of it; the kernel's own files as
    /// they are at `at_ns`, or at the end.
    ///
    /// # Errors
    /// Anything that keeps it from running or writing.
    pub fn write(&self, job: Job<'_>, seed: u64, at_ns: Option<u64>) -> Result<(), Failure> {
        let setup = Setup {
            machine: job.machine,
            features: job.features.clone(),
            workload: job.workload,
            seed,
            trace: true,
        };
        let format = match self.what {
            What::Trace(format) => format,
            What::Folded => {
                let exact = Exact {
                    stacks: true,
                    ..Exact::default()
                };
                let run = exact::run(&setup, &exact, u64::MAX).map_err(Failure::new)?;
                return self.place.write(&folded(&run.stacks));
            }
            What::Schedstat | What::Debug => return self.instant(&setup, at_ns),
        };
        let exact = format.exact(Exact {
            thread_events: format == Format::Text,
            ..Exact::default()
        });
        let run = exact::run(&setup, &exact, u64::MAX).map_err(Failure::new)?;
        let who = simulated::identities(job.workload, &run.born);
        let cpus = job.machine.topology.nr_cpus() as u32;
        let groups = job.workload.cgroups.iter().map(|g| g.path.clone());
        let extras = Extras::new(&groups.collect::<Vec<_>>(), &run.groups, &run.waits);
        let mut recording =
            simulated::told_recording(&run.outcome.trace, &run.thread_events, cpus, &who);
        recording.said = Attributes::of_run(&setup, &run.born).text();
        self.put_with(&recording, &extras, format)
    }

    fn instant(&self, setup: &Setup<'_>, at_ns: Option<u64>) -> Result<(), Failure> {
        let templates = &setup.workload.templates;
        let name = |task: TaskId, template: u32| {
            (
                templates[template as usize].name.clone(),
                FIRST_TID + task.0,
            )
        };
        let at_ns = at_ns.unwrap_or(u64::MAX);
        let files = moment::at(setup, &Exact::default(), at_ns, &name).map_err(Failure::new)?;
        self.put_moment(&files)
    }

    fn put_moment(&self, files: &Moment) -> Result<(), Failure> {
        self.place.write(match self.what {
            What::Debug => &files.debug,
            _ => &files.schedstat,
        })
    }

    /// Replays once more and writes what is wanted of that; `run` is the same replay.
    ///
    /// # Errors
    /// Anything that keeps it from running or writing.
    pub fn replay(&self, last: &LastReplay<'_>, at_ns: Option<u64>) -> Result<(), Failure> {
        let (place, with, seed) = (last.place, last.with, last.seed);
        match self.what {
            What::Trace(format) => {
                let (recording, extras) = last
                    .replay
                    .exported(place, with, seed, format)
                    .map_err(Failure::new)?;
                self.put_with(&recording, &extras, format)
            }
            What::Folded => self.place.write(&folded(&last.run.stacks)),
            What::Schedstat | What::Debug => {
                let ends_ns = last.run.elapsed_ns;
                if let Some(at_ns) = at_ns.filter(|at| *at > ends_ns) {
                    let [at, ends] = [at_ns, ends_ns].map(|ns| ns as f64 / 1e6);
                    let message = format!("--at {at:.3} ms: the replay ends after {ends:.3} ms");
                    return Err(Failure::new(message));
                }
                let at_ns = at_ns.unwrap_or(u64::MAX);
                let files = last.replay.moment(place, with, seed, at_ns);
                self.put_moment(&files.map_err(Failure::new)?)
            }
        }
    }

    fn put_with(
        &self,
        recording: &Recording,
        extras: &Extras,
        format: Format,
    ) -> Result<(), Failure> {
        self.place
            .stream(|mut out| export::write_with(recording, extras, format, &mut out))
    }
}

/// One stack a line, outermost function first, and its own time in ns: what flame graph tools
/// read.
fn folded(stacks: &[Stack]) -> String {
    let some = stacks.iter().filter(|s| s.self_ns > 0);
    some.map(|s| format!("{} {}\n", s.functions.join(";"), s.self_ns))
        .collect()
}

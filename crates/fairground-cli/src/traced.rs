//! `run --trace`: a run in the files of other tools.

use std::path::Path;

use fairground::policy::Features;
use fairground::value::TaskId;
use fairground_sim::exact::{self, Exact};
use fairground_sim::host::Stack;
use fairground_sim::machine::Setup;
use fairground_sim::moment;
use fairground_trace::Recording;
use fairground_trace::derive::Attributes;
use fairground_trace::export::{self, ENDS, Extras, Format};
use fairground_trace::simulated::{self, FIRST_TID};

use crate::failure::Failure;
use crate::output::Place;
use crate::plan::Plan;

/// Ends of names of files that are no tracepoints: time by stack, and the kernel's own files.
const MORE_ENDS: [&str; 3] = ["folded", "schedstat", "debug"];
/// Counters of groups have a value so often, ns: a hundredth of a usual period.
const GROUPS_EVERY_NS: u64 = 1_000_000;
/// Waits that are shown as slices, ns: longer than any line needs that nobody else wants.
const WAITS_FROM_NS: u64 = 500;

/// Where it goes.
pub struct Traced {
    place: Place,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Trace(Format),
    Folded,
    Schedstat,
    Debug,
}

impl Traced {
    /// Checks the place before anything is simulated.
    ///
    /// # Errors
    /// An unknown end of the file's name, or a place that cannot be written.
    pub fn new(path: &Path) -> Result<Self, Failure> {
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
        let place = Place::new(path)?;
        Ok(Self { place, what })
    }

    /// The same for a replay, which has no files of one moment.
    ///
    /// # Errors
    /// As [`Traced::new`], and those files.
    pub fn of_replay(path: &Path) -> Result<Self, Failure> {
        let traced = Self::new(path)?;
        if traced.is_instant() {
            return Err(no_instant());
        }
        Ok(traced)
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
    pub fn write(
        &self,
        plan: &Plan,
        features: &Features,
        at_ns: Option<u64>,
    ) -> Result<(), Failure> {
        let setup = Setup {
            machine: &plan.machine,
            features: features.clone(),
            workload: &plan.workload,
            seed: plan.seeds.first().copied().unwrap_or(1),
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
        let exact = Exact {
            groups_every_ns: GROUPS_EVERY_NS,
            waits_from_ns: Some(WAITS_FROM_NS),
            ..Exact::default()
        };
        let run = exact::run(&setup, &exact, u64::MAX).map_err(Failure::new)?;
        let who = simulated::identities(&plan.workload, &run.templates);
        let cpus = plan.machine.topology.nr_cpus() as u32;
        let groups = plan.workload.cgroups.iter().map(|g| g.path.clone());
        let extras = Extras::new(&groups.collect::<Vec<_>>(), &run.groups, &run.waits);
        let mut recording = simulated::recording(&run.outcome.trace, cpus, &who);
        recording.said = Attributes::of_run(&setup, &run.templates).text();
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
        self.place.write(match self.what {
            What::Debug => &files.debug,
            _ => &files.schedstat,
        })
    }

    /// Writes a replayed recording, or its time by stack.
    ///
    /// # Errors
    /// It cannot be written, or a replay does not have it.
    pub fn put(&self, recording: &Recording, stacks: &[Stack]) -> Result<(), Failure> {
        match self.what {
            What::Trace(format) => self.put_with(recording, &Extras::default(), format),
            What::Folded => self.place.write(&folded(stacks)),
            What::Schedstat | What::Debug => Err(no_instant()),
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

fn no_instant() -> Failure {
    Failure::with_help(
        "a replay writes no .schedstat and no .debug",
        "save it as a scenario with --save, and use `fairground run SCENARIO --trace`",
    )
}

/// One stack a line, outermost function first, and its own time in ns: what flame graph tools
/// read.
fn folded(stacks: &[Stack]) -> String {
    let some = stacks.iter().filter(|s| s.self_ns > 0);
    some.map(|s| format!("{} {}\n", s.functions.join(";"), s.self_ns))
        .collect()
}

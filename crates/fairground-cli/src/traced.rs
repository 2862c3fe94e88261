//! `run --trace`: the tracepoints of a run, for other tools.

use std::path::Path;

use fairground::policy::Features;
use fairground_sim::exact::{self, Exact};
use fairground_sim::machine::Setup;
use fairground_trace::Recording;
use fairground_trace::export::{self, ENDS, Format};
use fairground_trace::simulated;

use crate::failure::Failure;
use crate::output::Place;
use crate::plan::Plan;

/// Where tracepoints go.
pub struct Traced {
    place: Place,
    format: Format,
}

impl Traced {
    /// Checks the place before anything is simulated.
    ///
    /// # Errors
    /// An unknown end of the file's name, or a place that cannot be written.
    pub fn new(path: &Path) -> Result<Self, Failure> {
        let format = Format::of(path).ok_or_else(|| {
            let message = format!("cannot tell a trace format from `{}`", path.display());
            let ends = ENDS.map(|end| format!(".{end}")).join(", ");
            Failure::with_help(message, format!("the name must end with one of {ends}"))
        })?;
        let place = Place::new(path)?;
        Ok(Self { place, format })
    }

    /// Runs the first seed once more, with all tracepoints kept, and writes them.
    ///
    /// # Errors
    /// Anything that keeps it from running or writing.
    pub fn write(&self, plan: &Plan, features: &Features) -> Result<(), Failure> {
        let setup = Setup {
            machine: &plan.machine,
            features: features.clone(),
            workload: &plan.workload,
            seed: plan.seeds.first().copied().unwrap_or(1),
            trace: true,
        };
        let run = exact::run(&setup, &Exact::default(), u64::MAX).map_err(Failure::new)?;
        let who = crate::report::identities(&plan.workload, &run.templates);
        let cpus = plan.machine.topology.nr_cpus() as u32;
        self.put(&simulated::recording(&run.outcome.trace, cpus, &who))
    }

    /// Writes a recording.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, recording: &Recording) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        export::write(recording, self.format, &mut bytes)
            .map_err(|e| Failure::new(format!("cannot write a trace: {e}")))?;
        self.place.write_bytes(&bytes)
    }
}

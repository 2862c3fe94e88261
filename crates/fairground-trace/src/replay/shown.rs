//! A replay for other tools: on the clock of the recording, so that both can be looked at side by
//! side, with what a simulated run knows beyond tracepoints.

use fairground_sim::exact::Exact;
use fairground_sim::moment::{self, Moment};
use fairground_sim::workload::program::Born;

use super::{Place, Prepared, Replay};
use crate::derive::attributes::RunWords;
use crate::derive::{Attributes, Derived};
use crate::export::{Extras, Format};
use crate::recording::Recording;
use crate::simulated::{self, Identity};

impl Replay<'_> {
    /// Runs it at `place` and has all of that run for which `format` has room.
    ///
    /// # Errors
    /// As [`Replay::run_with`].
    pub fn exported(
        &self,
        place: &Place,
        with: &Attributes,
        seed: u64,
        format: Format,
    ) -> Result<(Recording, Extras), String> {
        let prepared = self.prepared(place, with)?;
        let setup = prepared.setup(place, seed);
        let exact = Exact {
            stacks: false,
            ..prepared.exact.clone()
        };
        let exact = format.exact(exact);
        let traced = self.traced(&setup, &exact)?;
        let who = self.identities(&prepared.derived, &traced.born);
        let cpus = place.machine.topology.nr_cpus() as u32;
        let mut recording = {
            let trace = &traced.outcome.trace;
            simulated::told_recording(trace, &traced.thread_events, cpus, &who)
        };
        recording.names.take_ids(&self.recording.names);
        let groups = prepared.derived.workload.cgroups.iter();
        let paths: Vec<String> = groups.map(|g| g.path.clone()).collect();
        let mut extras = Extras::new(&paths, &traced.groups, &traced.waits);
        // What is said of an id holds for the first thread that has it.
        let first = tasks(&who, &traced.born).filter(|t| !self.recording.names.is_later(t.0));
        let known = Attributes::of_tasks(&setup, first);
        if with.run.is_some() {
            // It begins as the run began, at the same time.
            let run = Some(RunWords::of(&setup, tasks(&who, &traced.born)));
            recording.said = Attributes { run, ..known }.text();
            return Ok((recording, extras));
        }
        recording.said = known.text();
        let lead = prepared.derived.lead_ns;
        let later = self.recording.span().0 as i64 - lead as i64;
        recording.shift(lead, later);
        extras.shift(lead, later);
        self.name_over_time(&mut recording);
        Ok((recording, extras))
    }

    /// Who the tasks of a run are to people: with the kernel's ids of threads.
    #[must_use]
    pub fn known_as(&self, derived: &Derived, born: &[Born]) -> Vec<Identity> {
        let mut who = self.identities(derived, born);
        for identity in &mut who {
            identity.tid = self.recording.names.kernel_id(identity.tid);
        }
        who
    }

    /// The kernel's own files at a moment of the replay, `at_ns` after the recording's start.
    ///
    /// # Errors
    /// As [`Replay::run_with`].
    pub fn moment(
        &self,
        place: &Place,
        with: &Attributes,
        seed: u64,
        at_ns: u64,
    ) -> Result<Moment, String> {
        let prepared: Prepared = self.prepared(place, with)?;
        let name = |_, template: u32| {
            let who = self.identity(&prepared.derived, template);
            (who.comm, self.recording.names.kernel_id(who.tid))
        };
        let at_ns = at_ns.saturating_add(prepared.derived.lead_ns);
        let setup = prepared.setup(place, seed);
        moment::at(&setup, &prepared.exact, at_ns, &name).map_err(|e| e.to_string())
    }
}

/// Thread id and beginning of each task.
fn tasks<'a>(
    who: &'a [simulated::Identity],
    born: &'a [Born],
) -> impl Iterator<Item = (u32, Born)> + 'a {
    who.iter().map(|w| w.tid).zip(born.iter().copied())
}

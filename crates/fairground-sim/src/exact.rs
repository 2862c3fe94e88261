//! A run beside a recording: with what the recording fixes and a benchmark leaves to chance, and
//! with every tracepoint kept. Units: nanoseconds.

use crate::cache::NS;
use crate::host::Stack;
use crate::machine::{Setup, Sim};
use crate::outcome::{Outcome, RunError, outcome};
use crate::samples::{self, GroupState, Tellings, Told, Wait, Waits};
use crate::tails::Tails;
use crate::workload::metric::MarkStat;

/// How an initial task comes into a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It was there before, and sleeps until then.
    Asleep {
        /// When, ns.
        until_ns: u64,
    },
    /// It is created then, by nobody in particular: what places it is the choice for a new task.
    Created {
        /// When, ns.
        at_ns: u64,
        /// The CPU that creates it.
        cpu: u32,
    },
}

/// What a recording fixes.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    /// When the ticks of all CPUs fall, modulo the tick; `None`: by chance.
    pub tick_phase_ns: Option<u64>,
    /// What the recorder costs at each tracepoint.
    pub tracer_ns: u64,
    /// When the quota periods of each group end, modulo the period; `None`, and beyond the list:
    /// by chance.
    pub period_phases_ns: Vec<Option<u64>>,
    /// What wake-ups take beyond the model.
    pub tails: Option<Tails>,
    /// When each initial task starts; those beyond the list start as in any run.
    pub starts: Vec<Start>,
    /// The CPU on which each initial task is before it starts; `None`, and beyond the list: where
    /// the scheduler places it.
    pub places: Vec<Option<u32>>,
    /// Until when they are held there, ns.
    pub placed_until_ns: u64,
    /// Keep time by stack of functions.
    pub stacks: bool,
    /// Look at all groups whenever so much time has gone; 0: never.
    pub groups_every_ns: u64,
    /// Keep waits for locks and lines that are as long as this.
    pub waits_from_ns: Option<u64>,
    /// Keep what threads do between tracepoints.
    pub told: bool,
    /// Watch the run.
    pub watched: bool,
    /// System calls cost nothing beyond the scheduler's part: what is computed has them in it, as
    /// it was recorded.
    pub free_calls: bool,
    /// The run ends soon after this mark has been passed so often.
    pub ends_at: Option<(u32, u64)>,
}

impl Exact {
    /// Holds a run that has not begun to it.
    pub(crate) fn apply(&self, sim: &mut Sim<'_>) -> Result<(), RunError> {
        if let Some(phase_ns) = self.tick_phase_ns {
            sim.align_ticks(phase_ns);
        }
        sim.host.tracer = self.tracer_ns * NS;
        for (group, phase_ns) in self.period_phases_ns.iter().enumerate() {
            if let Some(phase_ns) = phase_ns {
                sim.align_periods(group, *phase_ns);
            }
        }
        if self.watched {
            sim.begin_watch();
        }
        if let Some(tails) = self.tails.clone() {
            sim.hold_to(tails);
        }
        sim.host.waits = self.waits_from_ns.map(|ns| {
            Box::new(Waits {
                least: ns * NS,
                ..Waits::default()
            })
        });
        sim.host.told = self.told.then(Box::<Tellings>::default);
        sim.ends_at = self.ends_at;
        if self.free_calls {
            sim.host.free_calls();
        }
        for (task, start) in self.starts.iter().enumerate() {
            match *start {
                Start::Asleep { until_ns } => sim.start_at(task, until_ns),
                Start::Created { at_ns, cpu } => sim.create_at(task, at_ns, cpu),
            }
        }
        if self.placed_until_ns > 0 {
            sim.place(&self.places, self.placed_until_ns)?;
        }
        Ok(())
    }
}

/// A run and whose tasks its tracepoints are about.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The run.
    pub outcome: Outcome,
    /// Template of each task, by task number.
    pub templates: Vec<u32>,
    /// Time by stack, if it was to be kept.
    pub stacks: Vec<Stack>,
    /// States of the groups, in order of time, if they were to be kept.
    pub groups: Vec<GroupState>,
    /// Waits, if they were to be kept.
    pub waits: Vec<Wait>,
    /// What threads did between tracepoints, if it was to be kept.
    pub told: Vec<Told>,
    /// When each mark was first passed, if it was, ns.
    pub passed: Vec<Option<u64>>,
}

/// Runs `setup` once, for at most `events_max` events, and keeps all tracepoints.
///
/// # Errors
/// When the workload does not fit the machine, deadlocks, or needs more events.
pub fn run(setup: &Setup<'_>, exact: &Exact, events_max: u64) -> Result<Traced, RunError> {
    let mut sim = Sim::new(&Setup {
        trace: true,
        ..setup.clone()
    })?;
    exact.apply(&mut sim)?;
    if exact.stacks {
        sim.host.profile.keep_stacks();
    }
    let mut groups = Vec::new();
    let mut next = 0;
    while exact.groups_every_ns > 0 && !sim.has_ended() && sim.events < events_max {
        sim.one_event()?;
        if sim.now / NS >= next {
            samples::groups(&sim, &mut groups);
            next = sim.now / NS + exact.groups_every_ns;
        }
    }
    let end = sim.run_within(events_max)?.ok_or(RunError::Budget {
        events: events_max,
        at_ns: sim.now / NS,
    })?;
    let watched = sim.end_watch();
    let outcome = outcome(&sim, setup, end / NS);
    let passed = |m: &MarkStat| (m.seen > 0).then_some(m.first_ns);
    Ok(Traced {
        outcome: Outcome { watched, ..outcome },
        templates: sim.templates(),
        stacks: sim.host.profile.stacks(),
        groups,
        waits: sim.host.waits.take().map_or(Vec::new(), |w| w.all),
        told: sim.host.told.take().map_or(Vec::new(), |t| t.all),
        passed: sim.marks.marks.iter().map(passed).collect(),
    })
}

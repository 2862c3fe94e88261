//! A run beside a recording: with what the recording fixes and a benchmark leaves to chance, and
//! with every tracepoint kept. Units: nanoseconds.

use crate::cache::NS;
use crate::host::Stack;
use crate::machine::{Setup, Sim};
use crate::outcome::{Outcome, RunError, outcome};
use crate::samples::{self, GroupState, ThreadEvent, ThreadTrace, Wait, Waits};
use crate::tails::Tails;
use crate::workload::marks::MarkStat;
use crate::workload::program::Born;

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
    pub thread_events: bool,
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
        sim.host.thread_trace = self.thread_events.then(Box::<ThreadTrace>::default);
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
    /// What each task began with, by task number.
    pub born: Vec<Born>,
    /// Time by stack, if it was to be kept.
    pub stacks: Vec<Stack>,
    /// States of the groups, in order of time, if they were to be kept.
    pub groups: Vec<GroupState>,
    /// Waits, if they were to be kept.
    pub waits: Vec<Wait>,
    /// What threads did between tracepoints, if it was to be kept.
    pub thread_events: Vec<ThreadEvent>,
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
        born: sim.born().to_vec(),
        stacks: sim.host.profile.stacks(),
        groups,
        waits: sim.host.waits.take().map_or(Vec::new(), |w| w.all),
        thread_events: sim.host.thread_trace.take().map_or(Vec::new(), |t| t.all),
        passed: sim.marks.marks.iter().map(passed).collect(),
    })
}

#[cfg(test)]
mod tests {
    use fairground::policy::Features;

    use super::*;
    use crate::machine_file::Machine;
    use crate::workload::Workload;
    use crate::workload::program::{Dur, Op, Program, TaskTemplate, Until};

    /// Two threads that wake each other, say when they are done, and compute on.
    fn pair(exact: &Exact) -> Traced {
        let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
        let mut workload = Workload::new("pair", Vec::new());
        workload.sems = vec![0; 2];
        workload.marks = vec!["done".into(), "a".into(), "b".into()];
        workload.duration = Until::Time(50_000_000);
        for (index, [wait, post]) in [[0, 1], [1, 0]].into_iter().enumerate() {
            let turn = [
                Op::SemPost(post),
                Op::SemWait(wait),
                Op::Run(Dur::Const(100)),
            ];
            let done = [Op::Mark(0), Op::Mark(1 + index as u32), Op::Hog];
            let ops = turn
                .iter()
                .cycle()
                .take(300)
                .chain(&done)
                .copied()
                .collect();
            let name = format!("t{index}");
            let template = TaskTemplate::new(name.clone(), index as u32, 1);
            workload.programs.push(Program { name, ops });
            workload.templates.push(template);
            workload.initial.push(index as u32);
        }
        let setup = Setup {
            machine: &machine,
            features: Features::default(),
            workload: &workload,
            seed: 1,
            trace: true,
        };
        run(&setup, exact, u64::MAX).unwrap()
    }

    #[test]
    fn a_run_ends_soon_after_all_have_passed() {
        let whole = pair(&Exact::default());
        assert_eq!(whole.outcome.elapsed_ns, 50_000_000);
        let ended = pair(&Exact {
            ends_at: Some((0, 2)),
            ..Exact::default()
        });
        assert_eq!(ended.passed, whole.passed);
        let last = ended.passed.iter().map(|at| at.unwrap()).max().unwrap();
        assert!((last..last + 1_100_000).contains(&ended.outcome.elapsed_ns));
    }

    #[test]
    fn free_calls_cost_the_schedulers_part() {
        let spent = |free_calls| {
            let run = pair(&Exact {
                free_calls,
                ends_at: Some((0, 2)),
                ..Exact::default()
            });
            let of = |name: &str| {
                let functions = run.outcome.functions.iter();
                functions.filter(|f| f.0 == name).map(|f| f.1).sum::<u64>()
            };
            (of("futex_wait"), of("try_to_wake_up"))
        };
        let (priced, free) = (spent(false), spent(true));
        assert!(priced.0 > 0 && free.0 == 0, "{priced:?} {free:?}");
        assert!(free.1 > 0, "{free:?}");
    }
}

//! Tasks outside a case that ran beside it: how much of the CPUs they took, and how often. Both
//! are inputs, as the recorded machine was not idle.

use std::collections::BTreeMap;

use super::case::Case;
use super::recorded::{Recorded, TaskRun};

/// Up to this part of its time a CPU counts as never idle: its first wait for the case.
const IDLE_AT_START: f64 = 0.005;

/// What tasks outside the case took in the first recorded run, which was disturbed least; in the
/// others the time of a management task is not exact.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// Part of each CPU.
    pub share: BTreeMap<u32, f64>,
    /// How long they ran at a time, us, on the CPUs of the case; `None` where it cannot be told.
    pub stretch_us: Option<f64>,
}

impl Others {
    /// Of the recording of `case`.
    #[must_use]
    pub fn of(case: &Case, recorded: &Recorded) -> Self {
        let Some(run) = recorded.runs.first().filter(|run| run.window_us > 0.0) else {
            return Self::default();
        };
        let share = run.cpus.iter();
        let share = share.map(|(cpu, on)| (*cpu, on.other_us / run.window_us));
        // On CPUs that are never idle a switch is from a task of the case or from another.
        let used = case.cpus_used();
        let cpus = || used.iter().filter_map(|cpu| run.cpus.get(cpu));
        let busy = cpus().all(|cpu| cpu.idle_us <= IDLE_AT_START * run.window_us);
        let all: u64 = cpus().map(|cpu| cpu.switches).sum();
        let away = |task: &TaskRun| task.switches_voluntary + task.switches_involuntary;
        let own: u64 = run.tasks.values().map(away).sum();
        let took: f64 = cpus().map(|cpu| cpu.other_us).sum();
        let sampled = case.sampler.is_some_and(|s| used.contains(&s.cpu));
        let known = busy && !sampled && all > own && took > 0.0;
        Self {
            share: share.collect(),
            stretch_us: known.then(|| took / (all - own) as f64),
        }
    }
}

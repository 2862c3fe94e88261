//! What a recording says of its machine: how much of the CPUs tasks outside the case took, and how
//! often, as it was not idle, and what its kernel does not report. All are inputs.

use std::collections::BTreeMap;

use super::case::Case;
use super::recorded::{Recorded, TaskRun};

/// Up to this part of its time a CPU counts as never idle: its first wait for the case.
const IDLE_AT_START: f64 = 0.005;

/// Between these a stretch of others is taken as it is, us: a switch takes half a microsecond.
const STRETCH_US: (f64, f64) = (0.5, 1e6);

/// What tasks outside the case took in the first recorded run, which was disturbed least; in the
/// others the time of a management task is not exact.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// Part of each CPU.
    pub share: BTreeMap<u32, f64>,
    /// How long they ran at a time, us, on the CPUs of the case; `None` where it cannot be told.
    pub stretch_us: Option<f64>,
    /// The CPU whose switches from the idle task are not reported.
    pub blind: Option<u32>,
}

/// The CPU of the format's first blind spot.
const BLIND: u32 = 1;

impl Others {
    /// Of the recording of `case`.
    #[must_use]
    pub fn of(case: &Case, recorded: &Recorded) -> Self {
        let Some(run) = recorded.runs.first().filter(|run| run.window_us > 0.0) else {
            return Self::default();
        };
        let share = run.cpus.iter();
        let share = share.filter_map(|(cpu, on)| Some((*cpu, on.other_us? / run.window_us)));
        // On CPUs that are never idle a switch is from a task of the case or from another.
        let used = case.cpus_used();
        let cpus = || used.iter().filter_map(|cpu| run.cpus.get(cpu));
        let idle = IDLE_AT_START * run.window_us;
        let busy = cpus().all(|cpu| cpu.idle_us.is_some_and(|us| us <= idle));
        let all = sum(cpus().map(|cpu| cpu.switches));
        let own = sum(run.tasks.values().flat_map(away));
        let took: Option<f64> = cpus().map(|cpu| cpu.other_us).sum();
        let sampled = case.sampler.is_some_and(|s| used.contains(&s.cpu));
        let unseen = recorded.runs.iter().any(|run| run.unrecorded_switches > 0);
        let known = all.zip(own).zip(took).filter(|((all, own), took)| {
            // All must be told: a sum without a part of it is another number.
            busy && !sampled && all > own && *took > 0.0
        });
        let stretch = |((all, own), took): ((u64, u64), f64)| took / (all - own) as f64;
        Self {
            share: share.collect(),
            blind: unseen.then_some(BLIND),
            stretch_us: known.map(|k| stretch(k).clamp(STRETCH_US.0, STRETCH_US.1)),
        }
    }
}

/// Switches away from a task, by kind.
fn away(task: &TaskRun) -> [Option<u64>; 2] {
    [task.switches_voluntary, task.switches_involuntary]
}

/// The sum, if all of it was recorded.
fn sum(mut counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.try_fold(0_u64, |sum, n| Some(sum.saturating_add(n?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(switches: u64, idle_us: f64) -> Option<f64> {
        let cpu = format!(r#""switches": {switches}, "idle_us": {idle_us}, "other_us": 120"#);
        of_run(&cpu, AWAY)
    }

    const AWAY: &str = r#""switches_voluntary": 0, "switches_involuntary": 6"#;

    fn of_run(cpu: &str, task: &str) -> Option<f64> {
        let case = r#"{"format": "kernel-truth/1", "name": "n", "kind": "k", "what": "w",
            "machine": {"cpus": 2}, "duration_us": 1000000, "tasks": [{"name": "a",
            "affinity": [1], "program": [{"hog": true}]}]}"#;
        let result = format!(
            r#"{{"format": "kernel-truth/1", "case": "n", "hist_edges_us": [], "runs": [{{
            "window_us": 1000000, "cpus": {{"1": {{{cpu}}}}}, "tasks": {{"a": {{{task}}}}}}}]}}"#
        );
        let case = Case::parse(case).expect("a case");
        let recorded = Recorded::parse(&result).expect("a result");
        Others::of(&case, &recorded).stretch_us
    }

    #[test]
    fn switches_that_are_not_of_the_tasks_say_how_often_others_ran() {
        assert_eq!(of(16, 20.0), Some(12.0));
        assert_eq!(of(16, 20_000.0), None, "some are of the idle task");
        assert_eq!(of(6, 0.0), None);
        assert_eq!(of(u64::MAX / 2, 0.0), Some(0.5));
    }

    #[test]
    fn without_one_of_the_numbers_it_is_not_known() {
        let cpu = r#""switches": 16, "idle_us": 20, "other_us": 120"#;
        assert_eq!(of_run(cpu, AWAY), Some(12.0));
        assert_eq!(of_run(cpu, r#""switches_involuntary": 6"#), None);
        for part in [
            r#""switches": 16, "#,
            r#""idle_us": 20, "#,
            r#", "other_us": 120"#,
        ] {
            assert_eq!(of_run(&cpu.replace(part, ""), AWAY), None, "{part}");
        }
    }
}

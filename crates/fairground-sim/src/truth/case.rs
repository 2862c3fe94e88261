//! `case.json` of kernel-truth: a workload in exact words. The whole vocabulary is here; a key,
//! step or value outside it is refused with its place.
//!
//! Read `docs/truth.md` before changing this. Times are in the unit of the key's suffix. Durations
//! of computing may have fractions (`run_us: 0.5`).

use std::collections::BTreeMap;

use serde::Deserialize;

/// The format that this module reads.
pub const FORMAT: &str = "kernel-truth/1";

/// A case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Must be [`FORMAT`].
    pub format: String,
    /// Name, that of its directory.
    pub name: String,
    /// Group of alike cases.
    pub kind: String,
    /// The workload in words.
    pub what: String,
    /// The machine and its kernel.
    pub machine: MachineWords,
    /// Length of the measured window, which starts at T0, us. Absent for a benchmark.
    #[serde(default)]
    pub duration_us: Option<u64>,
    /// All threads exist and sleep for about this long before T0, ms.
    #[serde(default = "settle_default")]
    pub settle_ms: u64,
    /// Groups, parents before children.
    #[serde(default)]
    pub cgroups: Vec<Group>,
    /// Threads of one process.
    #[serde(default)]
    pub tasks: Vec<TaskWords>,
    /// Threads that meet at each barrier, by its number.
    #[serde(default)]
    pub barriers: BTreeMap<u32, u32>,
    /// Writes to files of groups.
    #[serde(default)]
    pub events: Vec<Write>,
    /// Starts of phases with CPU shares of their own, us after T0.
    #[serde(default)]
    pub phase_starts_us: Vec<u64>,
    /// A thread that reads values.
    #[serde(default)]
    pub sampler: Option<Sampler>,
    /// Command line of a benchmark.
    #[serde(default)]
    pub command: Option<String>,
    /// Remarks on the recording.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What a case says about its machine; only the numbers matter here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineWords {
    /// Number of CPUs.
    pub cpus: u32,
    /// In words.
    #[serde(default)]
    pub description: String,
    /// Whether the CPUs are hyperthreads.
    #[serde(default)]
    pub smt: bool,
    /// Kernel, in words.
    #[serde(default)]
    pub kernel: String,
    /// Ticks a second.
    #[serde(default)]
    pub hz: Option<u32>,
    /// Length of a tick, ns.
    #[serde(default)]
    pub tick_ns: Option<u64>,
    /// Default slice, ns.
    #[serde(default)]
    pub base_slice_ns: Option<u64>,
    /// Features of the scheduler, as `/sys/kernel/debug/sched/features` has them; those that are
    /// switched set decisions.
    #[serde(default)]
    pub sched_features: String,
    /// Slice of a group's quota that a CPU takes at once, us.
    #[serde(default)]
    pub cfs_bandwidth_slice_us: Option<u64>,
    /// In words.
    #[serde(default)]
    pub preemption: String,
    /// In words.
    #[serde(default)]
    pub cgroup: String,
    /// Whether autogroups were on.
    #[serde(default)]
    pub autogroup: bool,
}

impl MachineWords {
    /// Length of a tick, ns: as written, or as `hz` says.
    #[must_use]
    pub fn tick_ns(&self) -> u64 {
        let of_hz = |hz: u32| 1_000_000_000 / u64::from(hz.max(1));
        let told = self.tick_ns.or(self.hz.map(of_hz));
        told.unwrap_or(4_000_000).max(1)
    }
}

/// A control group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Absolute path.
    pub path: String,
    /// `cpu.shares`, or words that begin with "idle".
    #[serde(default)]
    pub shares: Option<Shares>,
    /// `cpu.idle`.
    #[serde(default)]
    pub idle: Option<Flag>,
    /// Quota, us; -1 or absent for none.
    #[serde(default)]
    pub quota_us: Option<i64>,
    /// Period of the quota, us.
    #[serde(default)]
    pub period_us: Option<u64>,
    /// Burst, us.
    #[serde(default)]
    pub burst_us: Option<u64>,
}

/// Weight of a group.
#[derive(Clone, Debug)]
pub enum Shares {
    /// In units of `cpu.shares`.
    Number(u64),
    /// A `cpu.idle` group, in words.
    Idle(String),
}

/// True or false, or 1 or 0.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// As JSON has it.
    Bool(bool),
    /// As the kernel's file has it.
    Number(u8),
}

impl Flag {
    /// Whether it is set.
    pub fn is_set(self) -> bool {
        match self {
            Self::Bool(b) => b,
            Self::Number(n) => n != 0,
        }
    }
}

/// Policy of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyWords {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
}

/// A thread.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskWords {
    /// Name, unique in the case.
    pub name: String,
    /// Policy.
    #[serde(default)]
    pub policy: PolicyWords,
    /// Nice value.
    #[serde(default)]
    pub nice: i8,
    /// Own slice, us.
    #[serde(default)]
    pub slice_us: Option<u64>,
    /// CPUs that it may use; absent for all.
    #[serde(default)]
    pub affinity: Option<Vec<u32>>,
    /// Path of its group.
    #[serde(default = "root")]
    pub cgroup: String,
    /// Sleeps until T0 and this, us; may be before T0.
    #[serde(default)]
    pub start_us: i64,
    /// Steps.
    pub program: Vec<Step>,
}

/// One step of a program.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "StepKeys")]
pub enum Step {
    /// Compute until the end.
    Hog,
    /// Compute for this long, us.
    Run(f64),
    /// Sleep from now, us.
    Sleep(u64),
    /// Sleep until the next point of a grid, us.
    Period(u64),
    /// Sleep until this long after the thread's start, us.
    Until(u64),
    /// Repeat; -1 = until the end.
    Loop(i64, Vec<Step>),
    /// One byte to a pipe.
    Write(u32),
    /// One byte from a pipe.
    Read(u32),
    /// Take one from a semaphore.
    Wait(u32),
    /// Add one to a semaphore.
    Post(u32),
    /// `pthread_barrier_wait`.
    Barrier(u32),
    /// `sched_yield`.
    Yield,
    /// Sets the caller's nice value.
    SetNice(i8),
    /// Sets the caller's CPUs.
    SetAffinity(Vec<u32>),
    /// Moves the caller to a group.
    SetCgroup(String),
    /// Creates a detached thread.
    Spawn(Spawn),
    /// The thread ends.
    Exit,
}

/// What a spawned thread does: computes, then sleeps, then exits.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    /// Sleep, us.
    pub sleep_us: u64,
    /// Computing before it, us.
    pub run_us: f64,
}

/// A step as written: an object with one key, `loop` with `body` beside it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepKeys {
    hog: Option<bool>,
    run_us: Option<f64>,
    sleep_us: Option<u64>,
    period_us: Option<u64>,
    until_us: Option<u64>,
    #[serde(rename = "loop")]
    turns: Option<i64>,
    body: Option<Vec<Step>>,
    write: Option<u32>,
    read: Option<u32>,
    wait: Option<u32>,
    post: Option<u32>,
    barrier: Option<u32>,
    #[serde(rename = "yield")]
    gives_up: Option<bool>,
    set_nice: Option<i8>,
    set_affinity: Option<Vec<u32>>,
    set_cgroup: Option<String>,
    spawn: Option<Spawn>,
    exit: Option<bool>,
}

impl TryFrom<StepKeys> for Step {
    type Error = String;

    fn try_from(keys: StepKeys) -> Result<Self, String> {
        let truly = |key: &str, value: Option<bool>, step: Step| match value {
            Some(false) => Err(format!("'{key}' must be true")),
            Some(true) => Ok(Some(step)),
            None => Ok(None),
        };
        let turns = match (keys.turns, keys.body) {
            (Some(turns), Some(body)) => Some(Self::Loop(turns, body)),
            (None, None) => None,
            (Some(_), None) => return Err("'loop' without 'body'".into()),
            (None, Some(_)) => return Err("'body' without 'loop'".into()),
        };
        let all = [
            truly("hog", keys.hog, Self::Hog)?,
            truly("yield", keys.gives_up, Self::Yield)?,
            truly("exit", keys.exit, Self::Exit)?,
            turns,
            keys.run_us.map(Self::Run),
            keys.sleep_us.map(Self::Sleep),
            keys.period_us.map(Self::Period),
            keys.until_us.map(Self::Until),
            keys.write.map(Self::Write),
            keys.read.map(Self::Read),
            keys.wait.map(Self::Wait),
            keys.post.map(Self::Post),
            keys.barrier.map(Self::Barrier),
            keys.set_nice.map(Self::SetNice),
            keys.set_affinity.map(Self::SetAffinity),
            keys.set_cgroup.map(Self::SetCgroup),
            keys.spawn.map(Self::Spawn),
        ];
        let mut found = all.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(step), None) => Ok(step),
            (None, _) => Err("a step without a key".into()),
            (Some(_), Some(_)) => Err("a step with more than one key".into()),
        }
    }
}

/// A write to a file of a group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// When, us after T0.
    pub at_us: u64,
    /// Path of the group.
    pub cgroup: String,
    /// Name of the file.
    pub file: String,
    /// What is written.
    pub value: Value,
}

/// What is written to a file.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number.
    Number(i64),
    /// Text ("max 100000").
    Text(String),
}

impl Value {
    /// The text that is written.
    pub fn text(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Text(t) => t.trim().to_string(),
        }
    }
}

/// A thread that reads values while the case runs.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampler {
    /// Where it is pinned.
    pub cpu: u32,
    /// How often, us.
    pub every_us: u64,
    /// What it reads.
    pub what: Sampled,
}

/// What a sampler reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampled {
    /// `/proc/TID/sched` of every task.
    Task,
    /// The scheduler's debugfs dump.
    Debug,
}

fn settle_default() -> u64 {
    250
}

fn root() -> String {
    "/".into()
}

/// No number of a case may be larger, whatever it is: microseconds become nanoseconds, and sums.
pub(super) const NUMBER_MAX: u64 = 1_000_000_000_000;

/// A number in what is written to a file.
pub(super) fn number(text: &str) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(n) if n.unsigned_abs() <= NUMBER_MAX => Ok(n),
        Ok(n) => Err(format!("{n}: expected at most {NUMBER_MAX}")),
        Err(_) => Err(format!("'{text}' is no number")),
    }
}

impl Case {
    /// Whether the case is a benchmark, not a step program.
    pub fn is_benchmark(&self) -> bool {
        self.command.is_some()
    }

    /// The CPUs that the case's tasks may use: their affinities, all that a step sets included.
    pub fn cpus_used(&self) -> Vec<u32> {
        let mut used: Vec<u32> = Vec::new();
        let all: Vec<u32> = (0..self.machine.cpus).collect();
        for task in &self.tasks {
            used.extend(task.affinity.as_ref().unwrap_or(&all));
            each_step(&task.program, &mut |step| {
                if let Step::SetAffinity(cpus) = step {
                    used.extend(cpus);
                }
            });
        }
        used.sort_unstable();
        used.dedup();
        used
    }
}

/// Visits all steps, bodies of loops included.
pub fn each_step<'a>(steps: &'a [Step], f: &mut impl FnMut(&'a Step)) {
    for step in steps {
        f(step);
        if let Step::Loop(_, body) = step {
            each_step(body, f);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_program(steps: &str) -> String {
        format!(
            r#"{{"format":"kernel-truth/1","name":"n","kind":"k","what":"w",
"machine":{{"cpus":2}},"duration_us":4000,"barriers":{{"0":1}},
"tasks":[{{"name":"t","program":[{steps}]}}]}}"#
        )
    }

    #[test]
    fn every_step_is_known() {
        let all = r#"{"run_us":1.5},{"sleep_us":1},{"period_us":1},{"until_us":1},
{"loop":-1,"body":[{"yield":true}]},{"write":0},{"read":0},{"wait":1},{"post":1},{"barrier":0},
{"set_nice":-3},{"set_affinity":[0,1]},{"set_cgroup":"/"},{"spawn":{"sleep_us":1,"run_us":2}},
{"hog":true}"#;
        let case = Case::parse(&with_program(all)).expect("all steps");
        assert_eq!(case.tasks[0].program.len(), 15);
        assert_eq!(case.tasks[0].program[0], Step::Run(1.5));
    }

    #[test]
    fn a_wrong_step_is_refused_with_its_place() {
        for (step, word) in [
            (r#"{"runs_us":1}"#, "runs_us"),
            (r#"{"run_us":1,"sleep_us":1}"#, "more than one"),
            (r#"{"loop":3}"#, "without 'body'"),
            (r#"{"loop":3,"body":[{"nap":1}]}"#, "nap"),
            (r#"{}"#, "without a key"),
            (r#"{"hog":false}"#, "must be true"),
        ] {
            let error = Case::parse(&with_program(step)).expect_err(step);
            assert!(error.contains(word), "{error}");
            assert!(error.starts_with("tasks[0].program[0]"), "{error}");
            assert!(error.contains("line"), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let text = with_program(r#"{"hog":true}"#).replace("duration_us", "duration_ms");
        let error = Case::parse(&text).expect_err("unknown key");
        assert!(error.contains("duration_ms"), "{error}");
    }
}

//! The result of `fairground replay`: a recording beside its replay and, where something else was
//! asked for, that replay beside another one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::keys::require_keys;
use crate::machine::{MachineId, MachineParts};
use crate::number::Number;
use crate::redo::Redo;
use crate::replay_compare::{SeedValues, WhatIfRow};
use crate::result::{FunctionCost, GroupStat, IdleWaste, LineTraffic, Run};

/// What the keys of [`Replay`] mean, in this version.
pub const REPLAY_FORMAT: &str = "fairground-replay/2";

/// The result of `fairground replay`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct Replay {
    /// `fairground-replay/2`: what the keys mean.
    pub format: String,
    /// Version of Fairground.
    pub fairground: String,
    /// The recording, and what reading it left out.
    #[serde(flatten)]
    pub recording: Recorded,
    /// The machine of the first replay, by its file.
    pub machine: MachineId,
    /// The profile of the first replay.
    pub profile: String,
    /// Every decision point with its value in the first replay.
    pub decisions: BTreeMap<String, String>,
    /// Files of cgroups that the command line wrote, with their values in the first replay.
    pub settings: BTreeMap<String, String>,
    /// The first seed; all are in `redo`.
    pub seed: u64,
    /// The most threads of any seed that had not done their recorded work in the first replay.
    pub unfinished: u64,
    /// If the first replay was ended because it took so long; else `null`.
    pub stopped: Option<Stopped>,
    /// What the simulated kernel cost: in the first replay with each seed and, if there is one, in
    /// the other.
    pub costs: Vec<ReplayCosts>,
    /// The recording beside the first replay: means over the seeds.
    pub replay: Sides<Replayed>,
    /// What the first replay came to with each seed.
    pub runs: Vec<SeedValues>,
    /// Whether the first replay comes near enough to the recording.
    pub fidelity: ReplayFidelity,
    /// The other replay, if one was asked for.
    pub what_if: Option<WhatIf>,
    /// What is needed to get this result again.
    pub redo: Redo,
    /// What a reader must know before believing the numbers.
    pub notes: Vec<String>,
}

/// A recording, read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct Recorded {
    /// Its file.
    pub trace: String,
    /// What kind of file that is.
    pub kind: String,
    /// Events that were read.
    pub events: u64,
    /// CPUs of the recorded machine.
    pub cpus: u32,
    /// Events that the recorder reported as lost.
    pub lost: u64,
    /// CPUs on which the recorder lost events and does not know how many.
    pub lost_on: Vec<u32>,
    /// Lines or records that make no sense.
    pub bad: u64,
    /// Events that are older than one before on the same CPU.
    pub backwards: u64,
    /// Events of kinds that are not read, by name.
    pub skipped: BTreeMap<String, u64>,
    /// Why reading ended before the end of the file; `null` if it did not.
    pub cut: Option<String>,
    /// Switches that the recording lacks and that follow from others.
    pub inferred_switches: u64,
    /// Name of the machine file that stands for the recorded machine.
    pub recorded_on: String,
}

/// A replay that differs from the first one in what was asked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhatIf {
    /// Its machine, by name.
    pub machine: String,
    /// Hash of that machine file's content.
    pub machine_hash: String,
    /// What that machine consists of.
    pub machine_topology: Option<MachineParts>,
    /// Its profile.
    pub profile: String,
    /// Patches that were asked for.
    pub patches: Vec<String>,
    /// Every decision point with its value.
    pub decisions: BTreeMap<String, String>,
    /// Files of cgroups that the command line wrote, with their values.
    pub settings: BTreeMap<String, String>,
    /// The most threads, of any seed, that had not done their recorded work when it was ended.
    pub unfinished: u64,
    /// If it was ended because it took so long; else `null`.
    pub stopped: Option<Stopped>,
    /// The first replay beside this one: means over the seeds.
    pub sides: Sides<Changed>,
    /// The same with intervals and verdicts, by the statistics of `compare`.
    pub comparison: Vec<WhatIfRow>,
    /// What this replay came to with each seed.
    pub runs: Vec<SeedValues>,
    /// Groups of which it does work before that may have been there to do: their CPU use and their
    /// shares of throttled and slow periods are upper bounds here, whatever `fidelity` says.
    pub early: Vec<EarlyWork>,
}

/// What threads of a group had waited to do in the recording, for quota or a CPU, and do earlier in
/// another replay: while they waited they did not sleep, so when it came is not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EarlyWork {
    /// The group's path.
    pub group: String,
    /// What its threads, and those of the groups below, compute in the recording, ms.
    pub computed_ms: f64,
    /// The part of it that is done earlier than in the recording, beyond what the first replay does
    /// so, ms: mean over the seeds.
    pub early_ms: f64,
    /// By how much, at the most of all seeds, ms.
    pub most_ms: f64,
}

/// Whether a replay comes near enough to its recording to believe a what-if.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReplayFidelity {
    /// Whether verdicts can be given and all of these are met.
    pub faithful: bool,
    /// One for each quantity that has a limit.
    pub verdicts: Vec<FidelityVerdict>,
}

/// How near one quantity of a replay is to the recording's: of several threads or CPUs, that which
/// is furthest off. Means over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct FidelityVerdict {
    /// `cpu_time`, `switches`, `wakeup_latency_p50`, `second_half_latency_p50`, `elapsed`,
    /// `busy_share` or `first_half_cpu_time`.
    pub quantity: String,
    /// How near it must come.
    pub limit: f64,
    /// Unit of `limit` and `off`: `%` of the recorded value, or percentage `points`.
    pub unit: String,
    /// In the recording; `null` if a side has none.
    pub recorded: Number,
    /// In the replay.
    pub replayed: Number,
    /// How far it is off; `null` if a side has none, or the recording has 0 of it.
    pub off: Number,
    /// The thread or CPU that is furthest off, if there are several.
    pub of: Option<String>,
    /// Whether it is within the limit; `null` where that is not known.
    pub met: Option<bool>,
    /// Why it is not known.
    pub why_not: Option<String>,
    /// With how many of the seeds it would be met by itself.
    pub seeds_met: u64,
    /// What it is called in tables.
    #[serde(skip)]
    pub label: String,
}

impl ReplayFidelity {
    /// Of these verdicts.
    pub fn new(verdicts: Vec<FidelityVerdict>) -> Self {
        let mut given = verdicts.iter().filter_map(|v| v.met).peekable();
        Self {
            faithful: given.peek().is_some() && given.all(|met| met),
            verdicts,
        }
    }
}

impl FidelityVerdict {
    /// The verdict as people read it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not known",
        }
    }

    /// What it is on, within a sentence.
    pub(crate) fn plain(&self) -> &str {
        self.label.trim_start()
    }

    /// The unit as it stands behind a number.
    #[must_use]
    pub fn unit_sign(&self) -> &'static str {
        match self.unit.as_str() {
            "%" => " %",
            _ => " pp",
        }
    }
}

/// A replay that was ended after three times the length of the recording, before all was done: its
/// length, its CPU time and that of these threads are lower bounds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Stopped {
    /// After so long, ms.
    pub at_ms: f64,
    /// Threads that had not done their recorded work, with their ids, most CPU time first.
    pub threads: Vec<String>,
}

/// What the simulated kernel cost in one replay. Times count from the start of the recording.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct ReplayCosts {
    /// `replayed` or `what if`.
    pub side: String,
    /// What all random numbers come from.
    pub seed: u64,
    /// CPU time per scheduler function.
    pub functions: BTreeMap<String, FunctionCost>,
    /// Traffic per shared place, most waiting first.
    pub lines: Vec<LineTraffic>,
    /// CPUs that were idle while tasks waited.
    pub idle_waste: Option<IdleWaste>,
    /// Groups with a limit, most throttled time first.
    pub groups: Vec<GroupStat>,
}

/// A number of the recording and of its replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Replayed {
    /// In the recording.
    pub recorded: f64,
    /// In the first replay.
    pub replayed: f64,
}

/// A number of both replays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// In the first replay.
    pub replayed: f64,
    /// In the other one.
    pub what_if: f64,
}

/// Two sides, each number of which is a `P`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SidesOf{P}", transform = require_keys)]
pub struct Sides<P> {
    /// Length, ms.
    pub elapsed_ms: P,
    /// CPU time of all threads, ms.
    pub cpu_ms: P,
    /// Switches away from threads that sleep.
    pub voluntary_switches: P,
    /// Switches away from runnable threads.
    pub involuntary_switches: P,
    /// From `sched_wakeup` to the CPU, us; `null` if a side has no wake-up.
    pub wakeup_latency_us: Option<Percentiles<P>>,
    /// The median of those of the second half, to which nothing is fitted, us; `null` if a side has
    /// none. Halves are of the recording's length.
    pub second_half_latency_p50_us: Option<P>,
    /// Busy share of each CPU, %; 0 where a side does not have the CPU.
    pub busy_pct: Vec<P>,
    /// Most CPU time first.
    pub threads: Vec<ReplayedThread<P>>,
}

/// Percentiles of one quantity.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PercentilesOf{P}")]
pub struct Percentiles<P> {
    /// The median.
    pub p50: P,
    /// What 90 % do not exceed.
    pub p90: P,
    /// What 99 % do not exceed.
    pub p99: P,
}

/// A thread, or all of a name that have little CPU time each.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ThreadOf{P}")]
pub struct ReplayedThread<P> {
    /// Its name, with its id if it is one.
    pub name: String,
    /// CPU time, ms.
    pub cpu_ms: P,
    /// CPU time in the first half, ms.
    pub first_half_ms: P,
    /// Switches away.
    pub switches: P,
}

impl ReplayCosts {
    /// Of a replay that was counted as a run.
    pub fn new(side: &str, run: Run) -> Self {
        Self {
            side: side.into(),
            seed: run.seed,
            functions: run.functions,
            lines: run.lines,
            idle_waste: run.idle_waste,
            groups: run.groups,
        }
    }
}

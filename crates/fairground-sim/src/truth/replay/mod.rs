//! Recorded load tracking, replayed through the engine's own functions: from each record of
//! `run-pelt.csv` to the next of the same task, group entity or queue, over the enqueues,
//! dequeues and switches of `run-pelt.script.txt`; and the weight of each group entity.
//!
//! A transition is equal to the last bit, or different, or undetermined: what decides it is not
//! in the recording, and [`Why`] says what. That is decided by what is recorded around it, before
//! anything is compared.

mod between;
mod passes;
mod records;
mod reweight;
mod rows;
mod script;
mod solve;
mod weights;

use std::collections::{BTreeMap, BTreeSet};

use fairground::math::pelt::{UTIL_AVG_UNCHANGED, util_est_update};
use serde::Deserialize;

use super::case::{Case, Step, each_step};
use passes::Leg;
pub use records::Kind;
use records::Record;
use reweight::AROUND;
pub use rows::rows;
use script::Script;
use solve::{Fit, LONGEST};

/// The files of a recording of load tracking.
#[derive(Clone, Debug)]
pub struct Files {
    /// `run-pelt.csv`.
    pub records: String,
    /// `run-pelt.script.txt`.
    pub script: String,
    /// `run-pelt.window.json`.
    pub window: String,
}

/// A file of [`Files`] that is not in the format: which, and what, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Name of the file.
    pub file: &'static str,
    /// What, with its line.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    #[serde(rename = "T0_ns")]
    t0_ns: i64,
    #[serde(rename = "T1_ns")]
    _t1_ns: i64,
    tids: BTreeMap<String, u32>,
    #[serde(rename = "disturbance_pct")]
    _disturbance_pct: Option<f64>,
}

/// Why a transition is undetermined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The root queue also holds tasks of the machine whose load is not recorded.
    Root,
    /// Load was attached, detached or propagated: a task was created or moved in between.
    Moved,
    /// The clock stood still: the group was throttled, or the CPU's clock was not the wall's.
    Clock,
    /// More changes between two records than instants can be told apart.
    Many,
    /// Who is in the group is not in the events: a task changes its group, or creates threads.
    Members,
}

impl Why {
    fn sentence(self) -> &'static str {
        match self {
            Self::Root => "the root queue also holds tasks of the machine that are not recorded",
            Self::Moved => "a task was created or moved in between: its load is not recorded",
            Self::Clock => "the clock of load tracking stood still in between (throttled, steal)",
            Self::Many => "more than four changes in between, whose instants are known to some us",
            Self::Members => "who is in the group is not in the events (set_cgroup, spawn)",
        }
    }
}

/// Numbers of transitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// To the last bit.
    pub equal: usize,
    /// Lines of those within one unit of 1024 ns, where an update that left no record may have
    /// rounded: it was inside a period, in which there is an event or a tick.
    pub rounded: Vec<usize>,
    /// Lines of those that are neither.
    pub different: Vec<usize>,
    /// Lines of those that nobody can tell, which is decided before they are compared.
    pub undetermined: BTreeMap<Why, Vec<usize>>,
}

/// What of a recording is equal, by what was replayed.
pub type Report = BTreeMap<&'static str, Count>;

/// Replays a recording.
///
/// # Errors
/// The file, its line, and what was expected there.
pub fn replay(case: &Case, files: &Files) -> Result<Report, Wrong> {
    let wrong = |file| move |what| Wrong { file, what };
    let window: Window = serde_json::from_str(&files.window)
        .map_err(|e| wrong("run-pelt.window.json")(e.to_string()))?;
    let records = records::parse(&files.records).map_err(wrong("run-pelt.csv"))?;
    let script =
        script::parse(&files.script, window.t0_ns).map_err(wrong("run-pelt.script.txt"))?;
    let replay = Replay {
        case,
        script,
        names: window
            .tids
            .into_iter()
            .map(|(name, tid)| (tid, name))
            .collect(),
        changing: changing(case),
        clocks: clocks(&records),
    };
    let mut report = Report::new();
    let mut legs = Vec::new();
    let mut last: BTreeMap<(Kind, &str, u32), &Record> = BTreeMap::new();
    for (index, to) in records.iter().enumerate() {
        let cpu = if to.kind == Kind::Task { 0 } else { to.cpu };
        let Some(from) = last.insert((to.kind, &to.id, cpu), to) else {
            continue;
        };
        // Before the window the recorder makes groups and threads and moves them about.
        if from.t_ns < 0 {
            continue;
        }
        let count = report.entry(to.kind.name()).or_default();
        match replay.leg(&records, index, from) {
            Ok(leg) => legs.push(leg),
            Err(why) => count.undetermined.entry(why).or_default().push(to.line),
        }
        match to.kind {
            Kind::Task => {
                let count = report.entry("util_est").or_default();
                replay.estimate(&records, (from, index), count);
            }
            Kind::Group => {
                let count = report.entry("weight").or_default();
                // One that stays tells nothing: it need not have been computed again.
                if from.weight == to.weight {
                    continue;
                }
                let queue = |r: &&Record| (r.kind, &r.id, r.cpu) == (Kind::Queue, &to.id, to.cpu);
                let state = records[..from.line - 2].iter().rev().find(queue);
                if state.is_some_and(|state| reweight::propagated(&records, state)) {
                    count
                        .undetermined
                        .entry(Why::Moved)
                        .or_default()
                        .push(to.line);
                } else {
                    count.add(replay.weight(&records, index), to.line);
                }
            }
            Kind::Queue => {}
        }
    }
    settle(legs, case.machine.tick_ns().cast_signed(), &mut report);
    Ok(report)
}

/// Counts the ways from line to line, with the passes that make them come out.
fn settle(mut legs: Vec<Leg>, tick_ns: i64, report: &mut Report) {
    passes::settle(&mut legs, tick_ns);
    for leg in legs {
        let count = report.entry(leg.to.kind.name()).or_default();
        match leg.fit {
            Fit::Unit if leg.round => count.rounded.push(leg.to.line),
            fit => count.add(fit == Fit::Equal, leg.to.line),
        }
    }
}

impl Count {
    fn add(&mut self, equal: bool, line: usize) {
        if equal {
            self.equal += 1;
        } else {
            self.different.push(line);
        }
    }
}

struct Replay<'a> {
    case: &'a Case,
    script: Script,
    /// Tasks of the case by thread number.
    names: BTreeMap<u32, String>,
    /// Groups whose tasks change: tasks come and go by themselves, or are created there.
    changing: BTreeSet<String>,
    /// By CPU: clocks of load tracking that lines were written with, in time.
    clocks: BTreeMap<u32, Vec<(i64, u64)>>,
}

fn clocks(records: &[Record]) -> BTreeMap<u32, Vec<(i64, u64)>> {
    let mut clocks: BTreeMap<u32, Vec<(i64, u64)>> = BTreeMap::new();
    for r in records {
        let of_cpu = clocks.entry(r.cpu).or_default();
        of_cpu.push((r.t_ns, r.avg.last_update_time));
    }
    for of_cpu in clocks.values_mut() {
        of_cpu.sort_unstable();
    }
    clocks
}

/// Whether the group at `path` is the one at `above`, or below it.
fn below(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Groups that tasks enter or leave, or in which they create threads.
fn changing(case: &Case) -> BTreeSet<String> {
    let mut groups = BTreeSet::new();
    for task in &case.tasks {
        each_step(&task.program, &mut |step| match step {
            Step::SetCgroup(path) => groups.extend([task.cgroup.clone(), path.clone()]),
            Step::Spawn(_) => groups.extend([task.cgroup.clone()]),
            _ => {}
        });
    }
    groups
}

impl Replay<'_> {
    /// Whether a thread is the task, or below the group, of a record.
    fn inside(&self, pid: u32, r: &Record) -> bool {
        let Some(name) = self.names.get(&pid) else {
            return false;
        };
        if r.kind == Kind::Task {
            return *name == r.id;
        }
        let task = self.case.tasks.iter().find(|t| t.name == *name);
        task.is_some_and(|t| below(&t.cgroup, &r.id))
    }

    /// The way from a record to the next of its owner, or why it cannot be told.
    fn leg<'a>(&self, all: &'a [Record], index: usize, from: &'a Record) -> Result<Leg<'a>, Why> {
        let to = &all[index];
        if to.id == "/" {
            return Err(Why::Root);
        }
        let mut stretches = self.stretches(from, to);
        if let Some(why) = self.why(from, to, stretches.len()) {
            return Err(why);
        }
        if reweight::propagated(all, from) {
            return Err(Why::Moved);
        }
        stretches.extend(self.unreported(all, from, to));
        stretches[1..].sort_by_key(|s| *s.begins.start());
        let mut starts = vec![from.avg];
        if to.kind == Kind::Queue {
            starts.extend(reweight::reweighted(all, from));
        }
        let mut leg = Leg {
            from,
            to,
            starts,
            stretches,
            round: self.may_round(from, to),
            fit: Fit::No,
        };
        leg.fit = leg.fit_with(&leg.stretches);
        Ok(leg)
    }

    /// What keeps a transition from being told; asked before it is compared.
    fn why(&self, from: &Record, to: &Record, stretches: usize) -> Option<Why> {
        let moved = |(t, pid): &(i64, u32)| {
            (from.t_ns - NEAR_NS..to.t_ns).contains(t) && self.inside(*pid, to)
        };
        let clock = to
            .avg
            .last_update_time
            .wrapping_sub(from.avg.last_update_time);
        let wall = to.t_ns - from.t_ns;
        if to.kind != Kind::Task && self.changing.iter().any(|group| below(group, &to.id)) {
            Some(Why::Members)
        } else if to.cpu != from.cpu || self.script.moves.iter().any(moved) {
            Some(Why::Moved)
        } else if clock == 0 && to.kind != Kind::Task {
            // A second line at the same time: something was attached or propagated.
            Some(Why::Moved)
        } else if (wall - clock.cast_signed()).abs() > 2 * NEAR_NS {
            Some(Why::Clock)
        } else {
            (stretches > LONGEST).then_some(Why::Many)
        }
    }

    /// The estimate changes with the first sleep after an update, and with the dequeue of a
    /// throttled task, which is one of a sleep.
    fn estimate(&self, all: &[Record], leg: (&Record, usize), count: &mut Count) {
        let (from, to) = (leg.0, &all[leg.1]);
        // A dequeue that ends a period is recorded, of a queued task, just before its switch.
        let own = |r: &&Record| r.kind == Kind::Task && r.id == to.id && r.on_rq;
        let dequeued = |t: i64, most_ns: i64| {
            let before = all[..leg.1 + AROUND.min(all.len() - leg.1)].iter().rev();
            let last = before.filter(own).find(|r| r.t_ns <= t);
            last.filter(|r| t - r.t_ns <= most_ns).map_or(t, |r| r.t_ns)
        };
        let inside = |(t, pid): &(i64, u32), most_ns| {
            let at = dequeued(*t, most_ns);
            from.t_ns < at && at <= to.t_ns && self.inside(*pid, to)
        };
        // A throttled task is dequeued on the way out of a tick: the last line may be the tick's.
        let slept = self.script.sleeps.iter().any(|s| inside(s, NEAR_NS))
            || self
                .script
                .throttled
                .iter()
                .any(|s| inside(s, AFTER_TICK_NS));
        let (old, avg) = (from.avg.util_est, &from.avg);
        let new = util_est_update(old, avg.util_avg, avg.runnable_avg, 1024);
        let new = new.map_or(old, |n| n & !UTIL_AVG_UNCHANGED);
        let equal = to.avg.util_est == if slept { new } else { old };
        match self.why(from, to, 0) {
            Some(why) => count.undetermined.entry(why).or_default().push(to.line),
            None => count.add(equal, to.line),
        }
    }
}

/// A record follows its update, and an event the records of what it reports, by less than this.
const NEAR_NS: i64 = 15_000;
/// A throttled task's last update is done less than this before its switch.
const AFTER_TICK_NS: i64 = 9_000;
/// A change is up to this much after its event (clock and event are read one after the other).
const BEFORE_NS: i64 = 500;

//! Recorded load tracking, replayed through the engine's own functions: from each record of
//! `run-pelt.csv` to the next of the same task, group entity or queue, over the enqueues,
//! dequeues and switches of `run-pelt.script.txt`; and the weight of each group entity.
//!
//! A transition is equal to the last bit, or different, or undetermined: what decides it is not
//! in the recording, and [`Why`] says what. That is decided by what is recorded around it, before
//! anything is compared.

mod records;
mod rows;
mod script;
mod solve;
mod weights;

use std::collections::{BTreeMap, BTreeSet};

use fairground::fair::load;
use fairground::math::pelt::{SchedAvg, UTIL_AVG_UNCHANGED, get_pelt_divider, util_est_update};
use fairground::math::weight::LoadWeight;
use fairground::task::SchedEntity;
use serde::Deserialize;

use super::case::{Case, Step, each_step};
pub use records::Kind;
use records::Record;
pub use rows::rows;
use script::Script;
use solve::{Doing, Fit, LONGEST, Stretch, Transition};

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
    };
    let mut report = Report::new();
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
        let name = to.kind.name();
        replay.transition(&records, index, from, report.entry(name).or_default());
        match to.kind {
            Kind::Task => replay.estimate(from, to, report.entry("util_est").or_default()),
            Kind::Group => {
                let count = report.entry("weight").or_default();
                // One that stays tells nothing: it need not have been computed again.
                if from.weight != to.weight {
                    count.add(replay.weight(&records, index), to.line);
                }
            }
            Kind::Queue => {}
        }
    }
    Ok(report)
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

    fn transition(&self, all: &[Record], index: usize, from: &Record, count: &mut Count) {
        let to = &all[index];
        if to.id == "/" {
            count
                .undetermined
                .entry(Why::Root)
                .or_default()
                .push(to.line);
            return;
        }
        let stretches = self.stretches(from, to);
        if let Some(why) = self.why(from, to, stretches.len()) {
            count.undetermined.entry(why).or_default().push(to.line);
            return;
        }
        let mut starts = vec![from.avg];
        if to.kind == Kind::Queue {
            starts.extend(reweighted(all, index, from));
        }
        let fit = |start: SchedAvg| {
            let transition = Transition {
                kind: to.kind,
                weight: to.weight >> 10,
                from: start,
                to: to.avg,
                stretches: &stretches,
            };
            transition.fit()
        };
        let best = starts.into_iter().map(fit).min().unwrap_or(Fit::No);
        match best {
            Fit::Unit if self.may_round(from, to) => count.rounded.push(to.line),
            _ => count.add(best == Fit::Equal, to.line),
        }
    }

    /// Whether an update that left no record may have rounded the sums: in the period that `from`
    /// left open there is an event of the CPU, or a tick.
    fn may_round(&self, from: &Record, to: &Record) -> bool {
        let left_ns = (1024 - i64::from(from.avg.period_contrib)) << 10;
        let open = from.t_ns - BEFORE_NS..(from.t_ns + left_ns + NEAR_NS).min(to.t_ns);
        let tick_ns = self.case.machine.tick_ns().cast_signed();
        let tick = (open.start + tick_ns - 1).div_euclid(tick_ns) * tick_ns;
        let moments = self.script.moments.get(&to.cpu);
        let mut events = moments.into_iter().flatten().map(|m| m.t_ns);
        open.contains(&tick) || events.any(|t| open.contains(&t))
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

    /// What the events say was done between two records.
    fn stretches(&self, from: &Record, to: &Record) -> Vec<Stretch> {
        let mut out: Vec<Stretch> = Vec::new();
        let mut first = vec![Doing {
            load: 0,
            running: false,
        }];
        // Who of those inside is queued, and who has the CPU.
        let mut before = (BTreeSet::new(), 0);
        let moments = self.script.moments.get(&to.cpu);
        for moment in moments.into_iter().flatten() {
            let queued = moment
                .queued
                .iter()
                .copied()
                .filter(|pid| self.inside(*pid, to));
            let curr = if self.inside(moment.curr, to) {
                moment.curr
            } else {
                0
            };
            let now = (queued.collect::<BTreeSet<u32>>(), curr);
            let options = || self.options(from, to, moment, &now);
            if moment.t_ns <= from.t_ns - BEFORE_NS {
                first = options();
            } else if moment.t_ns < to.t_ns {
                // A delayed dequeue ends with a pick, which may be that of others.
                let pick = moment.switch && now.0.is_empty() && (from.delayed || to.delayed);
                let options = options();
                let same = options == *out.last().map_or(&first, |s| &s.options);
                if now != before || pick || !same {
                    let begins = units(from, to, moment.t_ns);
                    let optional = same || pick;
                    out.push(Stretch {
                        begins,
                        options,
                        optional,
                    });
                }
            }
            before = now;
        }
        let begins = 0..=0;
        let first = Stretch {
            begins,
            options: first,
            optional: false,
        };
        // What changes nothing matters in the first period only: beyond, it would be a record.
        let left = 1024 - i64::from(from.avg.period_contrib);
        out.retain(|s| !s.optional || from.delayed || to.delayed || *s.begins.start() < left);
        std::iter::once(first).chain(out).collect()
    }

    fn options(
        &self,
        from: &Record,
        to: &Record,
        moment: &script::Moment,
        inside: &(BTreeSet<u32>, u32),
    ) -> Vec<Doing> {
        let (queued, running) = (!inside.0.is_empty(), inside.1 != 0);
        let of = |load| Doing {
            load,
            running: running && load > 0,
        };
        if to.kind != Kind::Queue {
            let mut options = vec![of(u64::from(queued))];
            // A task in delayed dequeue is queued though asleep, one of a throttled group is not
            // though runnable; of a group's entity, its own record says it.
            let late = from.delayed || to.delayed || to.kind == Kind::Group;
            if !queued && late {
                options.push(of(1));
            }
            if queued && to.kind == Kind::Group && !(from.on_rq && to.on_rq) {
                options.push(of(0));
            }
            return options;
        }
        let mut weights: BTreeSet<u64> = [from.weight, to.weight].map(|w| w >> 10).into();
        let mine = self.case.tasks.iter().filter(|t| t.cgroup == to.id);
        let here = mine.filter(|t| {
            let mut queued = moment.queued.iter().filter_map(|pid| self.names.get(pid));
            queued.any(|name| *name == t.name)
        });
        weights.extend(weights::sums(here));
        if !queued {
            weights.insert(0);
        }
        weights.into_iter().map(of).collect()
    }

    /// The estimate changes with the first sleep after an update.
    fn estimate(&self, from: &Record, to: &Record, count: &mut Count) {
        // A dequeue that ends a period is recorded just before the event of its switch.
        let dequeued = |t: i64| {
            let own = |r: &Record| (t - NEAR_NS..=t).contains(&r.t_ns);
            if own(to) {
                to.t_ns
            } else if own(from) {
                from.t_ns
            } else {
                t
            }
        };
        let mut sleeps = self.script.sleeps.iter();
        let slept = sleeps.any(|(t, pid)| {
            let at = dequeued(*t);
            from.t_ns < at && at <= to.t_ns && self.inside(*pid, to)
        });
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
/// A change is up to this much after its event (clock and event are read one after the other).
const BEFORE_NS: i64 = 500;
/// The units after `from` around an event. Clock and wall differ by what interrupts took.
fn units(from: &Record, to: &Record, t_ns: i64) -> std::ops::RangeInclusive<i64> {
    let since = |r: &Record| {
        let clock = r
            .avg
            .last_update_time
            .wrapping_sub(from.avg.last_update_time);
        t_ns - r.t_ns + clock.cast_signed()
    };
    let (a, b) = (since(from), since(to));
    let least = (a.min(b) - 9_000) >> 10;
    least.max(0)..=((a.max(b) + 2_500) >> 10).max(0)
}

/// States of a queue after the entities of groups in it took a new weight, which is just after
/// their update: the sums change by the difference.
fn reweighted(all: &[Record], index: usize, from: &Record) -> Option<SchedAvg> {
    // Records are in the order of their lines, after the line of the columns.
    let at = from.line - 2;
    let child = |r: &&Record| {
        let parent = r.id.rsplit_once('/').map(|(up, _)| up);
        r.kind == Kind::Group && r.cpu == from.cpu && parent == Some(from.id.as_str())
    };
    let old = all[..at].iter().rev().find(child)?;
    let new = all[at..].iter().filter(child).find(|r| r.id == old.id)?;
    let late = new.line > all[index].line;
    if late || old.avg.last_update_time != from.avg.last_update_time {
        return None;
    }
    // The engine's own functions, on a queue with that one entity.
    let mut queue = from.avg;
    let mut se = SchedEntity {
        avg: old.avg,
        load: LoadWeight::new(old.weight),
        ..SchedEntity::default()
    };
    load::dequeue_load_avg(&mut queue, &se);
    se.load = LoadWeight::new(new.weight);
    se.avg.load_avg = (new.weight >> 10) * se.avg.load_sum / get_pelt_divider(&se.avg);
    load::enqueue_load_avg(&mut queue, &se);
    Some(queue)
}

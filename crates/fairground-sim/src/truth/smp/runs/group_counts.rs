//! `tg_load_avg.csv` and `h_load.csv`: how often a group's sum of load is updated, and how far the
//! hierarchical load of a task is looked for.
//!
//! How long a turn of a task's loop computes, and sleeps where that is not given, is not recorded
//! and the same for all rows.

use std::collections::BTreeMap;

use fairground::place::{Kind, tg};
use serde::Deserialize;

use super::counters::{
    BIRTH_NS, Load, SETTLE_NS, Switch, TASKS_MAX, WINDOW_NS, Words, counted, forever, machine_of,
};
use super::{guest, on, row, skipped};
use crate::machine::Sim;
use crate::rng::{Purpose, generator};
use crate::truth::smp::file::File;
use crate::truth::smp::files::Recording;
use crate::truth::{Row, TruthError};
use crate::workload::program::{Cgroup, Chan, ChanKind, Dur, Ns, Op, Until};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// How long a task of `tg_load_avg.csv` computes in a turn, and sleeps after it if that is not
/// given: by the turns, attempts and weights that the rows count beside the updates. With them the
/// tasks make 0.8 to 1.4 times the recorded turns in all modes, at their own pace.
const WORK_NS: Ns = 100 * US;
const PAUSE_NS: Ns = 200 * US;
/// Turns of a task's loop until its sequence of CPUs begins again.
const PLACES: usize = 64;
/// Longest sleep of a turn.
const SLEEP_MAX_US: u64 = 1_000_000;
/// How an active task of `h_load.csv` runs and sleeps.
const ACTIVE_RUN_NS: Ns = 2 * MS;
const ACTIVE_SLEEP_NS: Ns = 4 * MS;

/// `h_load.csv`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "every column of the format is read")]
struct HLoad {
    topology: String,
    case: String,
    step: u64,
    window_ns: u64,
    task_h_load_calls: u64,
    refresh_calls: u64,
    refresh_hits: u64,
    entities_walked_up: u64,
    cfs_rqs_recomputed: u64,
    blocked_update_calls: u64,
    leaf_cfs_rqs_visited: u64,
    leaf_cfs_rqs_removed: u64,
    balance_calls: u64,
    tasks_moved: u64,
    tg_load_avg_attempts: u64,
    tg_load_avg_updates: u64,
}

/// `tg_load_avg.csv`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "every column of the format is read")]
struct TgLoadAvg {
    topology: String,
    case: String,
    ratelimit: Switch,
    window_ns: u64,
    iterations: u64,
    attempts: u64,
    ratelimited: u64,
    delta_too_small: u64,
    updates: u64,
    group_share_calcs: u64,
}

/// What a case of `h_load.csv` says, and what was counted over all its steps.
struct HLoadCase {
    line: usize,
    topology: String,
    groups: u64,
    active: u64,
    depth: u64,
    hogs: u64,
    length_ns: Ns,
    calls: u64,
    walked: u64,
}

impl HLoadCase {
    fn new(line: usize, topology: &str, case: &str) -> Result<Self, String> {
        let known = ["groups", "active", "depth", "hogs", "step", "steps"];
        let words = Words::parse(case, &known)?;
        let groups = words.number("groups", 1, TASKS_MAX)?;
        Ok(Self {
            line,
            topology: topology.to_string(),
            groups,
            active: words.number("active", 0, groups)?,
            depth: words.number("depth", 1, 8)?.max(1),
            hogs: words.number("hogs", 0, TASKS_MAX)?,
            length_ns: words.number("step", 250, 1000)? * words.number("steps", 1, 16)? * MS,
            calls: 0,
            walked: 0,
        })
    }

    /// One thread in each group, some of which run now and then, beside hogs of the root.
    fn load(&self) -> Load {
        let mut load = Load::new();
        for _ in 0..self.hogs {
            load.task(vec![Op::Hog], None);
        }
        for i in 0..self.groups {
            let group = load.chain(&format!("/g{i}"), self.depth);
            let pause = Dur::Uniform {
                lo: ACTIVE_SLEEP_NS / 2,
                hi: ACTIVE_SLEEP_NS * 3 / 2,
            };
            let ops = match i < self.active {
                true => forever(vec![Op::Run(Dur::Const(ACTIVE_RUN_NS)), Op::Sleep(pause)]),
                false => vec![Op::Sleep(Dur::Const(3_600_000 * MS))],
            };
            load.task(ops, None);
            if let Some(template) = load.0.templates.last_mut() {
                template.cgroup = Some(group);
            }
        }
        load
    }

    /// Entities walked for each task asked for and level, by seed.
    fn simulate(&self, recording: &Recording) -> Result<Vec<f64>, String> {
        let machine = machine_of(recording, &self.topology)?;
        let mut load = self.load();
        load.0.duration = Until::Time(load.0.initial.len() as u64 * BIRTH_NS + self.length_ns);
        load.0.validate()?;
        let mut each = Vec::new();
        for seed in guest::SEEDS {
            let features = crate::truth::smp::features(&[]);
            let mut sim = guest::sim(&machine, features, &load.0, seed)?;
            sim.host.counters.trace = None;
            sim.run().map_err(|e| e.to_string())?;
            let calls: u64 = sim.rqs.iter().map(|rq| rq.h_load_calls).sum();
            let walks: u64 = sim.rqs.iter().map(|rq| rq.h_load_walks).sum();
            if calls > 0 {
                each.push(walks as f64 / (calls * self.depth) as f64);
            }
        }
        Ok(each)
    }
}

/// Rows of `h_load.csv`: the entities walked for each task considered and level. It is 1 at most if
/// refreshes do not grow with the number of groups.
pub(in crate::truth::smp) fn h_load(
    recording: &Recording,
    file: &File<'_>,
) -> Result<Vec<Row>, TruthError> {
    let mut cases: BTreeMap<String, HLoadCase> = BTreeMap::new();
    for (line, r) in file.rows::<HLoad>()? {
        let new = HLoadCase::new(line, &r.topology, &r.case);
        let new = new.map_err(|what| file.error(line, what))?;
        let sum = cases.entry(r.case).or_insert(new);
        sum.calls = sum.calls.saturating_add(r.task_h_load_calls);
        sum.walked = sum.walked.saturating_add(r.entities_walked_up);
    }
    let mut rows = Vec::new();
    for (name, case) in &cases {
        let error = |what: String| file.error(case.line, what);
        let ours = case.simulate(recording).map_err(error)?;
        let metric = format!("h_load_walks[{} {name}]", case.topology);
        let each = (case.calls as f64 * case.depth as f64).max(1.0);
        let theirs = [case.walked as f64 / each];
        let row = match ours.is_empty() {
            false => row(file.name, &metric, &theirs, &ours),
            true => {
                let why = "no simulated balancing asked for the load of a task";
                skipped(file.name, &metric, &theirs, why)
            }
        };
        rows.push(on(&case.topology, row));
    }
    Ok(rows)
}

/// Rows of `tg_load_avg.csv`: updates of the groups' sums in the recorded window.
pub(in crate::truth::smp) fn tg_load_avg(
    recording: &Recording,
    file: &File<'_>,
) -> Result<Vec<Row>, TruthError> {
    let mut rows = Vec::new();
    for (line, r) in file.rows::<TgLoadAvg>()? {
        let of_row = tg_row(recording, file.name, &r);
        let of_row = of_row.map_err(|what| file.error(line, what))?;
        rows.push(on(&r.topology, of_row));
    }
    Ok(rows)
}

fn tg_row(recording: &Recording, case: &str, r: &TgLoadAvg) -> Result<Row, String> {
    let known = ["tasks", "mode", "dur", "zmin", "zmax", "depth", "groups"];
    let words = Words::parse(&r.case, &known)?;
    let mode = words.0.get("mode").copied().unwrap_or("");
    let machine = machine_of(recording, &r.topology)?;
    let tasks = words.number("tasks", 1, TASKS_MAX)?;
    let (depth, groups) = (
        words.number("depth", 1, 8)?,
        words.number("groups", 1, 4096)?,
    );
    if tasks == 0 || groups == 0 || depth == 0 || r.window_ns == 0 || r.iterations == 0 {
        return Err("case: 0 tasks, groups, levels, turns or ns".into());
    }
    let mut load = Load::new();
    let leaves: Vec<u32> = (0..groups)
        .map(|g| load.chain(&format!("/g{g}"), depth))
        .collect();
    let mut rng = generator(1, Purpose::Start);
    let cpus = machine.topology.nr_cpus() as u32;
    load.0.masks = (0..cpus).map(|cpu| vec![cpu]).collect();
    let (zmin, zmax) = (
        words.number("zmin", 0, SLEEP_MAX_US)?,
        words.number("zmax", 0, SLEEP_MAX_US)?,
    );
    if zmin > zmax {
        return Err(format!("case: zmin={zmin} is more than zmax={zmax}"));
    }
    let (lo, hi) = match zmax {
        0 => (PAUSE_NS / 2, PAUSE_NS * 3 / 2),
        _ => (zmin * US, zmax * US),
    };
    let pause = Op::Sleep(Dur::Uniform { lo, hi });
    for i in 0..tasks {
        let ops = turns(mode, pause, i, &mut load, &mut || {
            rng.below(u64::from(cpus)) as u32
        })?;
        load.task(ops, None);
        let group = leaves[(i % groups) as usize];
        if let Some(template) = load.0.templates.last_mut() {
            template.cgroup = Some(group);
        }
    }
    if mode == "pipe" && tasks % 2 == 1 {
        // The last one has nobody to answer it.
        load.0.chans.push(Chan {
            kind: ChanKind::PIPE,
        });
    }
    let period = match r.ratelimit {
        Switch::On => "1000000",
        Switch::Off => "0",
    };
    let changes = [("tg_load_avg_period_ns", period)];
    let ours = counted(&machine, &load.0, &changes, SETTLE_NS, updates)?;
    let scale = r.window_ns as f64 / WINDOW_NS as f64;
    let ours: Vec<f64> = ours.iter().map(|n| n * scale).collect();
    let (topology, limit) = (&r.topology, r.ratelimit.name());
    let metric = format!("tg_updates[{topology} {} ratelimit={limit}]", r.case);
    Ok(row(case, &metric, &[r.updates as f64], &ours))
}

/// The program of task `number`.
fn turns(
    mode: &str,
    pause: Op,
    number: u64,
    load: &mut Load,
    place: &mut impl FnMut() -> u32,
) -> Result<Vec<Op>, String> {
    let work = Op::Run(Dur::Const(WORK_NS));
    Ok(match mode {
        "mig" => {
            let turn = |_| [Op::SetAffinity(place()), work, pause];
            forever((0..PLACES).flat_map(turn).collect())
        }
        "sleep" => forever(vec![work, pause]),
        // Two tasks each, one of which is always at work.
        "pipe" => {
            let first = number & !1;
            let (there, back) = (first as u32, first as u32 + 1);
            load.0.chans.push(Chan {
                kind: ChanKind::PIPE,
            });
            let (write, read) = (
                |chan| Op::Write { chan, bytes: 1 },
                |chan| Op::Read { chan, bytes: 1 },
            );
            match number & 1 {
                0 => forever(vec![write(there), read(back), work]),
                _ => forever(vec![read(there), work, write(back)]),
            }
        }
        "hog" => vec![Op::Hog],
        _ => {
            return Err(format!(
                "case: mode={mode}, expected mig, sleep, pipe or hog"
            ));
        }
    })
}

/// Atomic updates of the sums of all groups but the root so far.
fn updates(sim: &Sim<'_>) -> f64 {
    let lines = sim.host.places.traffic(&sim.host.cache);
    let sums = lines
        .iter()
        .filter(|(object, fields, _)| object.kind == Kind::Tg && fields.intersects(tg::LOAD_AVG));
    sums.map(|(.., stats)| f64::from(stats.rmws)).sum()
}

impl Load {
    /// A chain of `depth` groups; the deepest.
    fn chain(&mut self, path: &str, depth: u64) -> u32 {
        let mut at = 0;
        let mut full = String::new();
        for level in 0..depth {
            full += &match level {
                0 => path.to_string(),
                _ => "/below".to_string(),
            };
            self.0.cgroups.push(Cgroup::new(&full, at));
            at = self.0.cgroups.len() as u32 - 1;
        }
        at
    }
}

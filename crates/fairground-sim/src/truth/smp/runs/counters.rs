//! `nohz_kick.csv`: how often an idle CPU is kicked to balance. What `group_counts` shares with it:
//! the words of a case, a workload in the making, and a counter over a window.
//!
//! What the tables do not tell (how long a task works and sleeps) is the same for all rows here.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use serde::Deserialize;

use super::{guest, on, row, skipped};
use crate::machine::Sim;
use crate::machine_file::Machine;
use crate::truth::smp::file::File;
use crate::truth::smp::files::Recording;
use crate::truth::{Row, TruthError};
use crate::workload::program::{Dur, FOREVER, Ns, Op, Program, TaskTemplate, Until, Workload};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// Load has settled.
pub(super) const SETTLE_NS: Ns = 200 * MS;
/// From one initial task to the next, at most.
pub(super) const BIRTH_NS: Ns = 60 * US;
/// Length of a simulated window; counts are per second.
pub(super) const WINDOW_NS: Ns = 500 * MS;
/// How a short-running task works and sleeps.
const SHORT_RUN_NS: Ns = 200 * US;
const SHORT_SLEEP_NS: Ns = 800 * US;
pub(super) const TASKS_MAX: u64 = 20_000;

/// `nohz_kick.csv`; of the counters two are compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "every column of the format is read")]
struct Kicks {
    topology: String,
    case: String,
    early_check: Switch,
    window_ns: u64,
    busy_ticks: u64,
    skipped_cpu_idle: u64,
    no_tickless_cpu: u64,
    before_next_balance: u64,
    cond_nr_running_ge_2: u64,
    cond_llc_busy: u64,
    kicks_tried: u64,
    no_idle_cpu: u64,
    all_flags_already_set: u64,
    lost_after_fetch_or: u64,
    ipis: u64,
    nohz_balance_runs: u64,
    rqs_visited: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// `a=1,b=2` with numbers; other values are words.
pub(super) struct Words<'a>(pub(super) BTreeMap<&'a str, &'a str>);

impl<'a> Words<'a> {
    pub(super) fn parse(case: &'a str, known: &[&str]) -> Result<Self, String> {
        let mut words = BTreeMap::new();
        for part in case.split(',') {
            let (key, value) = part
                .split_once('=')
                .filter(|(key, _)| known.contains(key))
                .ok_or_else(|| format!("case: '{part}', expected one of {}", known.join("=, ")))?;
            words.insert(key, value);
        }
        Ok(Self(words))
    }

    pub(super) fn number(&self, key: &str, default: u64, max: u64) -> Result<u64, String> {
        match self.0.get(key) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(n) if n <= max => Ok(n),
                _ => Err(format!("case: {key}={text}, expected a number up to {max}")),
            },
        }
    }
}

/// A workload in the making.
pub(super) struct Load(pub(super) Workload);

impl Load {
    pub(super) fn new() -> Self {
        let mut w = Workload::new("counters", Vec::new());
        w.n_futexes = 1;
        Self(w)
    }

    pub(super) fn task(&mut self, ops: Vec<Op>, cpu: Option<u32>) {
        let w = &mut self.0;
        let program = w.programs.len() as u32;
        w.programs.push(Program {
            name: "task".into(),
            ops,
        });
        let mut template = TaskTemplate::new("task", program, 1);
        template.thread = true;
        if let Some(cpu) = cpu {
            w.masks.push(vec![cpu]);
            template.affinity = Some(w.masks.len() as u32 - 1);
        }
        w.templates.push(template);
        w.initial.push(w.templates.len() as u32 - 1);
    }
}

pub(super) fn forever(body: Vec<Op>) -> Vec<Op> {
    let mut ops = vec![Op::LoopStart { count: FOREVER }];
    ops.extend(body);
    ops.push(Op::LoopEnd { start: 0 });
    ops
}

/// Runs short and sleeps, again and again.
fn short() -> Vec<Op> {
    let sleep = Dur::Uniform {
        lo: SHORT_SLEEP_NS / 2,
        hi: SHORT_SLEEP_NS * 3 / 2,
    };
    forever(vec![Op::Run(Dur::Const(SHORT_RUN_NS)), Op::Sleep(sleep)])
}

/// What `count` has grown by in the window that begins `settle_ns` after the last birth, by seed.
pub(super) fn counted(
    machine: &Machine,
    w: &Workload,
    changes: &[(&str, &str)],
    settle_ns: Ns,
    count: impl Fn(&Sim<'_>) -> f64,
) -> Result<Vec<f64>, String> {
    let mut w = w.clone();
    // The first tasks are born one after the other.
    let start = w.initial.len() as u64 * BIRTH_NS + settle_ns;
    w.duration = Until::Time(start + WINDOW_NS);
    w.validate()?;
    let run = |seed| {
        let features = crate::truth::smp::features(changes);
        let mut sim = guest::sim(machine, features, &w, seed)?;
        sim.host.counters.trace = None;
        sim.run_to(start).map_err(|e| e.to_string())?;
        let before = count(&sim);
        sim.run().map_err(|e| e.to_string())?;
        Ok(count(&sim) - before)
    };
    guest::SEEDS.map(run).collect()
}

pub(super) fn machine_of(recording: &Recording, name: &str) -> Result<Machine, String> {
    let guest = recording.guest(name);
    let guest = guest.ok_or_else(|| format!("topology: no machine '{name}'"))?;
    guest::machine(name, &guest.map_err(|e| e.to_string())?)
}

/// Rows of `nohz_kick.csv`: are kicks redundant or not, and how many are there beside hogs alone.
pub(in crate::truth::smp) fn kicks(
    recording: &Recording,
    file: &File<'_>,
) -> Result<Vec<Row>, TruthError> {
    let mut rows = Vec::new();
    for (line, r) in file.rows::<Kicks>()? {
        let of_row = kicks_row(recording, file.name, &r);
        let of_row = of_row.map_err(|what| file.error(line, what))?.into_iter();
        rows.extend(of_row.map(|row| on(&r.topology, row)));
    }
    Ok(rows)
}

fn kicks_row(recording: &Recording, case: &str, r: &Kicks) -> Result<Vec<Row>, String> {
    let words = Words::parse(&r.case, &["busy", "per", "sleepers"])?;
    let machine = machine_of(recording, &r.topology)?;
    let cpus = machine.topology.nr_cpus() as u64;
    let (busy, per) = (words.number("busy", 0, cpus)?, words.number("per", 1, 64)?);
    let sleepers = words.number("sleepers", 0, TASKS_MAX)?;
    if r.window_ns == 0 || (sleepers > 0 && busy == cpus) {
        return Err("window_ns is 0, or no CPU is left for sleepers".into());
    }
    let mut load = Load::new();
    for i in 0..busy * per {
        load.task(vec![Op::Hog], Some((i / per) as u32));
    }
    for i in 0..sleepers {
        let cpu = busy + i % (cpus - busy);
        load.task(short(), Some(cpu as u32));
    }
    let check = match r.early_check {
        Switch::On => "skip-redundant",
        Switch::Off => "always",
    };
    let changes = [("ilb_kick", check)];
    let kicks = |sim: &Sim<'_>| sim.sys.nohz.kicks.load(Relaxed) as f64;
    let redundant = |sim: &Sim<'_>| sim.sys.nohz.redundant_kicks.load(Relaxed) as f64;
    let tried = counted(&machine, &load.0, &changes, SETTLE_NS, kicks)?;
    let again = counted(&machine, &load.0, &changes, SETTLE_NS, redundant)?;
    let what = format!(
        "[{} {} early_check={}]",
        r.topology,
        r.case,
        r.early_check.name()
    );
    let per_s = |n: f64, window: u64| n * 1e9 / window as f64;
    let mut rows = Vec::new();
    let ours: Vec<f64> = tried.iter().map(|n| per_s(*n, WINDOW_NS)).collect();
    let theirs = [per_s(r.kicks_tried as f64, r.window_ns)];
    let name = format!("kicks_per_s{what}");
    rows.push(match sleepers {
        0 => row(case, &name, &theirs, &ours),
        _ => skipped(
            case,
            &name,
            &theirs,
            "how long the sleepers run is not recorded",
        ),
    });
    let any = |n: f64| f64::from(u8::from(n > 0.0));
    let ours: Vec<f64> = again.iter().map(|n| any(*n)).collect();
    let theirs = [any(r.all_flags_already_set as f64)];
    rows.push(row(case, &format!("redundant_kicks{what}"), &theirs, &ours));
    Ok(rows)
}

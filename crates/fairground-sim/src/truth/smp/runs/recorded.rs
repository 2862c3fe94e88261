//! `balance/run_*.json` as it is written: sets of tasks, windows, placements, migrations.

use std::collections::{BTreeMap, BTreeSet};

use fairground::value::CpuMask;
use serde::Deserialize;

use crate::truth::TruthError;
use crate::truth::smp::file::File;
use crate::truth::smp::files::Recording;
use crate::truth::smp::text::cpu_list;
use crate::workload::program::{Dur, FOREVER, Ns, Op};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// The tick before the parent begins to fork, and the length of a tick.
pub(super) const START_NS: Ns = 20 * MS;
pub(super) const TICK_NS: Ns = 4 * MS;
/// What a fork takes in the simulated guest, and a longer pause than any that a parent makes by
/// itself between two forks.
const FORK_NS: Ns = 16 * US;
const PAUSE_NS: Ns = 400 * US;
/// Longest run that is simulated, and most tasks of one.
pub(super) const LONGEST_S: f64 = 60.0;
const TASKS_MAX: u32 = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    pub case: String,
    pub index: u32,
    pub topology: String,
    pub sets: Vec<Set>,
    pub start_cpu: Option<u32>,
    pub forked_from_cpu: Forked,
    pub tasks: BTreeMap<String, usize>,
    pub windows: Vec<Window>,
    /// `[t, pid, cpu]`
    pub placements: Vec<(f64, i64, u32)>,
    /// `[t, pid, from, to]`
    pub migrations: Vec<(f64, i64, u32, u32)>,
    #[serde(rename = "active_balance")]
    pub _active_balance: Vec<(f64, u32, u32, String)>,
    pub trace_clock_offset_s: f64,
    pub release_t: Option<f64>,
    pub trace_covers_ms_of_window: Covers,
    pub cpu_fraction_by_set_after_first_window: BTreeMap<String, f64>,
    pub final_cpu_load: BTreeMap<String, u32>,
    pub spread_ms_after_release: Option<f64>,
    #[serde(rename = "migrations_until_last")]
    pub _migrations_until_last: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Forked {
    Cpu(u32),
    Words(String),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Covers {
    Ms(f64),
    Words(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    pub cgroup: String,
    pub shares: Option<u64>,
    pub count: u32,
    pub allowed: String,
    pub nice: i8,
    pub kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Window {
    pub t0_ns: u64,
    pub t1_ns: u64,
    /// `[pid, run_ns, wait_ns, slices, cpu_at_end, nr_migrations_so_far]`
    pub tasks: Vec<(i64, u64, u64, u64, u32, u64)>,
}

/// Runs beside a file of attempts (`run_X.json` of `lb_decisions_X.jsonl`) in which no task is in a
/// group, as `X#NUMBER`.
pub(in crate::truth::smp) fn at_root(
    recording: &Recording,
    attempts: &File<'_>,
) -> Result<BTreeSet<String>, TruthError> {
    let name = attempts.name.replace("/lb_decisions_", "/run_");
    let name = name.replace(".jsonl", ".json");
    let Some(file) = recording.file_if_there(&name) else {
        return Ok(BTreeSet::new());
    };
    let runs: Vec<Run> = file.json()?;
    let free = runs.iter().filter(|run| {
        run.sets
            .iter()
            .all(|set| set.cgroup.trim_matches('/').is_empty())
    });
    Ok(free
        .map(|run| format!("{}#{}", run.case, run.index))
        .collect())
}

impl Set {
    /// What a task of the set does.
    pub(super) fn ops(&self) -> Result<Vec<Op>, String> {
        let wrong = || {
            format!(
                "kind: '{}', expected hog, dRUN.SLEEP or rRUN.SLEEP",
                self.kind
            )
        };
        if self.kind == "hog" {
            return Ok(vec![Op::Hog]);
        }
        let (random, times) = match self.kind.split_at_checked(1) {
            Some(("d", times)) => (false, times),
            Some(("r", times)) => (true, times),
            _ => return Err(wrong()),
        };
        let (run, sleep) = times.split_once('.').ok_or_else(wrong)?;
        let time = |text: &str| match text.parse::<u64>() {
            Ok(us @ 1..=10_000_000) => Ok(match random {
                false => Dur::Const(us * US),
                // Of the distribution only the mean is recorded.
                true => Dur::Uniform {
                    lo: 0,
                    hi: 2 * us * US,
                },
            }),
            _ => Err(wrong()),
        };
        Ok(vec![
            Op::LoopStart { count: FOREVER },
            Op::Run(time(run)?),
            Op::Sleep(time(sleep)?),
            Op::LoopEnd { start: 0 },
        ])
    }

    pub(super) fn mask(&self, cpus: usize) -> Result<CpuMask, String> {
        if self.allowed == "all" {
            return Ok(CpuMask::first_n(cpus));
        }
        let mask = cpu_list(&self.allowed).map_err(|e| format!("allowed: {e}"))?;
        match mask.is_subset(&CpuMask::first_n(cpus)) {
            true => Ok(mask),
            false => Err(format!("allowed: '{}' of {cpus} CPUs", self.allowed)),
        }
    }
}

impl Run {
    pub(super) fn validate(&self, cpus: usize) -> Result<(), String> {
        let tasks: u32 = self.sets.iter().map(|s| s.count.min(TASKS_MAX)).sum();
        if tasks == 0 || tasks > TASKS_MAX || self.tasks.len() != tasks as usize {
            let n = self.tasks.len();
            return Err(format!(
                "sets: {tasks} tasks, {n} in tasks (at most {TASKS_MAX})"
            ));
        }
        if let Some(bad) = self.tasks.values().find(|set| **set >= self.sets.len()) {
            return Err(format!("tasks: no set {bad}"));
        }
        if let Forked::Words(words) = &self.forked_from_cpu
            && words != "free"
        {
            return Err(format!(
                "forked_from_cpu: '{words}', expected a CPU or free"
            ));
        }
        match &self.trace_covers_ms_of_window {
            Covers::Ms(ms) if (0.0..LONGEST_S * 1e3).contains(ms) => {}
            Covers::Words(words) if words == "all" => {}
            other => {
                let form = "expected ms of the first window, or all";
                return Err(format!("trace_covers_ms_of_window: {other:?}, {form}"));
            }
        }
        let named = [self.start_cpu, self.pinned()].into_iter().flatten();
        if let Some(cpu) = named.into_iter().find(|cpu| *cpu as usize >= cpus) {
            return Err(format!("start_cpu, forked_from_cpu: no CPU {cpu}"));
        }
        if self.start_cpu.is_some() && self.release_t.is_none() {
            return Err("start_cpu without release_t".into());
        }
        let (Some(first), Some(last)) = (self.placements.first(), self.windows.last()) else {
            return Err("no placements, or no windows".into());
        };
        let long = self.since(last.t1_ns);
        let one_after_other = |w: &[Window]| w[0].t1_ns <= w[1].t0_ns;
        let in_order = self.windows.iter().all(|w| w.t0_ns < w.t1_ns)
            && self.windows.windows(2).all(one_after_other);
        if !in_order || !(0.0..LONGEST_S).contains(&long) || !first.0.is_finite() {
            return Err(format!("windows: not in order, or more than {LONGEST_S} s"));
        }
        let release = self.release_t.map_or(0.0, |t| t - first.0);
        if !(0.0..=long).contains(&release) {
            return Err("release_t: not between the first placement and the last window".into());
        }
        Ok(())
    }

    /// Until when the trace ran, on the windows' clock; `None` = to the end.
    pub(super) fn traced_to_ns(&self) -> Option<u64> {
        let first = self.windows.first()?;
        match self.trace_covers_ms_of_window {
            Covers::Ms(ms) => Some(first.t0_ns + (ms * 1e6) as u64),
            Covers::Words(_) => None,
        }
    }

    /// The CPU that the parent is pinned to.
    pub(super) fn pinned(&self) -> Option<u32> {
        match self.forked_from_cpu {
            Forked::Cpu(cpu) => Some(cpu),
            Forked::Words(_) => None,
        }
    }

    /// Seconds from the first placement to a time of the windows' clock.
    pub(super) fn since(&self, ns: u64) -> f64 {
        let first = self.placements.first().map_or(0.0, |p| p.0);
        ns as f64 / 1e9 - self.trace_clock_offset_s - first
    }

    /// When the first child is born. Ticks are on multiples of their length of the windows' clock,
    /// and how far the parent comes before the next one is part of the recording.
    pub(super) fn first_ns(&self) -> Ns {
        let first = self.placements.first().map_or(0.0, |p| p.0);
        let clock = ((first + self.trace_clock_offset_s).max(0.0) * 1e9) as Ns;
        START_NS + clock % TICK_NS
    }

    /// How long a pinned parent takes from one fork to the next until it is first preempted, beside
    /// the fork itself: a page that a fork needs can take as long as the fork.
    pub(super) fn fork_pace(&self) -> Vec<Ns> {
        if self.start_cpu.or(self.pinned()).is_none() {
            return Vec::new();
        }
        let pairs = self.placements.windows(2);
        let gaps = pairs.map(|p| ((p[1].0 - p[0].0).max(0.0) * 1e9) as Ns);
        let paces = gaps.take_while(|gap| *gap < PAUSE_NS);
        paces.map(|gap| gap.saturating_sub(FORK_NS)).collect()
    }

    /// Whether no task moved any more in the last window.
    pub(super) fn settled(&self) -> bool {
        let moves = |w: &Window| w.tasks.iter().map(|t| (t.0, t.5)).collect::<Vec<_>>();
        match self.windows.as_slice() {
            [.., before, last] => moves(before) == moves(last),
            _ => false,
        }
    }
}

//! `balance/run_*.json`: tasks in groups, forked from one place, watched over windows.

use fairground::value::{CpuMask, TaskId};

use super::beside::Beside;
use super::forks::Forks;
use super::measure::{Ran, all_busy, apart, load, placements, window};
use super::recorded::{Run, TICK_NS};
use super::{guest, on, row, skipped};
use crate::machine::Sim;
use crate::machine_file::Machine;
use crate::truth::smp::file::File;
use crate::truth::smp::files::Recording;
use crate::truth::{Row, TruthError};
use crate::workload::program::Ns;

const MS: Ns = 1_000_000;

/// A run ready to be simulated.
struct Bench<'a> {
    run: &'a Run,
    machine: &'a Machine,
    beside: Beside,
    forks: Forks,
}

/// Numbers of one run.
struct Numbers {
    fraction: Vec<f64>,
    cpu_use: f64,
    load: Vec<u32>,
    all_busy_ms: Option<f64>,
    migrations: f64,
}

/// Rows of a file.
pub(in crate::truth::smp) fn check(
    recording: &Recording,
    file: &File<'_>,
) -> Result<Vec<Row>, TruthError> {
    let runs: Vec<Run> = file.json()?;
    let mut rows = Vec::new();
    for run in &runs {
        let error = |what: String| file.error(1, format!("run {}: {what}", run.index));
        let guest = recording.guest(&run.topology);
        let guest = guest.ok_or_else(|| error(format!("no machine '{}'", run.topology)))??;
        let machine = guest::machine(&run.topology, &guest).map_err(error)?;
        run.validate(machine.topology.nr_cpus()).map_err(error)?;
        let beside = Beside::of(recording, file, run)?;
        let bench = Bench::new(run, &machine, beside).map_err(error)?;
        let simulated: Result<Vec<Numbers>, String> =
            guest::SEEDS.map(|seed| bench.simulate(seed)).collect();
        let case = format!("{}#{}", file.name, run.index);
        let of_run = bench.rows(&case, &simulated.map_err(error)?).into_iter();
        rows.extend(of_run.map(|row| on(&run.topology, row)));
    }
    Ok(rows)
}

impl<'a> Bench<'a> {
    fn new(run: &'a Run, machine: &'a Machine, beside: Beside) -> Result<Self, String> {
        let forks = Forks::new(run, machine.topology.nr_cpus(), &beside)?;
        Ok(Self {
            run,
            machine,
            beside,
            forks,
        })
    }

    /// CPUs that can have a task.
    fn reachable(&self) -> usize {
        let all = self
            .forks
            .masks
            .iter()
            .fold(CpuMask::empty(), |a, b| a.or(b));
        (all.weight() as usize).min(self.forks.set_of.len())
    }

    /// A run whose runner forks the parent at `runner_ns`, and when the first child is born.
    fn start(&self, seed: u64, runner_ns: Ns) -> Result<(Sim<'_>, Ns), String> {
        let features = crate::truth::smp::features(&[]);
        let mut sim = guest::sim(self.machine, features, &self.forks.workload, seed)?;
        if self.beside.attempts {
            guest::record_attempts(&mut sim, true);
        }
        sim.start_at(0, runner_ns);
        sim.run_to(runner_ns - 1).map_err(|e| e.to_string())?;
        self.beside.begin(&mut sim, self.run.first_ns());
        sim.run_to(runner_ns + TICK_NS).map_err(|e| e.to_string())?;
        let trace = sim.host.counters.trace.as_deref().unwrap_or_default();
        let mut born = placements(trace)
            .into_iter()
            .filter(|b| b.1.0 >= self.forks.child);
        let first_ns = born.next().ok_or("no task was born")?.0;
        Ok((sim, first_ns))
    }

    fn simulate(&self, seed: u64) -> Result<Numbers, String> {
        // How far the first child comes before a tick is part of the recording; how long it takes
        // from the runner's start is not known before.
        let early = self.start(seed, self.run.first_ns() - MS)?.1;
        let runner_ns = (2 * self.run.first_ns() - MS).saturating_sub(early);
        let (mut sim, first_ns) = self.start(seed, runner_ns.max(MS))?;
        let first_t = self.run.placements[0].0;
        if let Some(t) = self.run.release_t {
            let at_ns = first_ns + ((t - first_t) * 1e9) as u64;
            sim.run_to(at_ns).map_err(|e| e.to_string())?;
            for (i, set) in self.forks.set_of.iter().enumerate() {
                sim.open_affinity([(TaskId(self.forks.child + i as u32), self.forks.masks[*set])]);
            }
        }
        let at = |ns: u64| first_ns + (self.run.since(ns).max(0.0) * 1e9) as u64;
        if let Some(traced_ns) = self.run.traced_to_ns() {
            sim.run_to(at(traced_ns)).map_err(|e| e.to_string())?;
            if self.beside.attempts {
                guest::record_attempts(&mut sim, false);
            }
        }
        sim.run().map_err(|e| e.to_string())?;
        let trace = sim.host.counters.trace.take().unwrap_or_default();
        let tasks: Vec<TaskId> = (0..self.forks.set_of.len() as u32)
            .map(|i| TaskId(self.forks.child + i))
            .collect();
        let windows: Vec<(Vec<Ran>, u64)> = self
            .run
            .windows
            .iter()
            .map(|w| (at(w.t0_ns), at(w.t1_ns)))
            .map(|(from, to)| (window(&trace, &tasks, from, to), to - from))
            .collect();
        let birth = placements(&trace);
        let moves = trace.iter().filter_map(|line| match line.event {
            fairground::event::Event::WakeupNew { task, cpu } => {
                Some((line.at_ns, i64::from(task.0), cpu.0))
            }
            fairground::event::Event::Migrate { task, to, .. } => {
                Some((line.at_ns, i64::from(task.0), to.0))
            }
            _ => None,
        });
        let moves = moves.filter(|m| m.1 >= i64::from(self.forks.child));
        let last = birth.last().map_or(first_ns, |b| b.0);
        let from = match self.run.release_t {
            Some(t) => first_ns + ((t - first_t) * 1e9) as u64,
            None => last,
        };
        let done = all_busy(moves, self.reachable(), from);
        Ok(Numbers {
            all_busy_ms: done.map(|at| (at - from) as f64 / 1e6),
            ..self.numbers(&windows)
        })
    }

    /// From what each task did in each window, and the window's length.
    fn numbers(&self, windows: &[(Vec<Ran>, u64)]) -> Numbers {
        let later = if windows.len() > 1 {
            &windows[1..]
        } else {
            windows
        };
        let mut by_set = vec![0.0; self.run.sets.len()];
        for (ran, _) in later {
            for (ran, set) in ran.iter().zip(&self.forks.set_of) {
                by_set[*set] += ran.run_ns as f64;
            }
        }
        let total: f64 = by_set.iter().sum();
        let length: f64 = later.iter().map(|w| w.1 as f64).sum();
        let last = windows.last().map_or(&[][..], |w| w.0.as_slice());
        Numbers {
            fraction: by_set.iter().map(|ns| ns / total.max(1.0)).collect(),
            cpu_use: total / (length * self.machine.topology.nr_cpus() as f64).max(1.0),
            load: load(last.iter().map(|r| r.cpu)),
            all_busy_ms: None,
            migrations: last.iter().map(|r| r.migrations as f64).sum(),
        }
    }

    /// The recorded numbers.
    fn recorded(&self) -> Numbers {
        let run = self.run;
        let ran = |t: &(i64, u64, u64, u64, u32, u64)| Ran {
            run_ns: t.1,
            cpu: t.4,
            migrations: t.5,
        };
        let windows: Vec<(Vec<Ran>, u64)> = run
            .windows
            .iter()
            .map(|w| (w.tasks.iter().map(ran).collect(), w.t1_ns - w.t0_ns))
            .collect();
        let mut numbers = self.numbers(&windows);
        let fractions = &run.cpu_fraction_by_set_after_first_window;
        let fraction = |i: usize| fractions.get(&i.to_string()).copied().unwrap_or(0.0);
        numbers.fraction = (0..run.sets.len()).map(fraction).collect();
        numbers.load = run.final_cpu_load.values().copied().collect();
        numbers.load.sort_unstable_by(|a, b| b.cmp(a));
        let births = run.placements.iter().map(|(t, pid, cpu)| (*t, *pid, *cpu));
        let moves = run.migrations.iter().map(|(t, pid, _, to)| (*t, *pid, *to));
        let last = run.placements.last().map_or(0.0, |p| p.0);
        numbers.all_busy_ms = run.spread_ms_after_release.or_else(|| {
            let mut all: Vec<_> = births.chain(moves).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let done = all_busy(all.into_iter(), self.reachable(), last)?;
            Some((done - last) * 1e3)
        });
        numbers
    }

    fn rows(&self, case: &str, simulated: &[Numbers]) -> Vec<Row> {
        let recorded = self.recorded();
        let each = |of: &dyn Fn(&Numbers) -> f64| simulated.iter().map(of).collect::<Vec<_>>();
        let mut rows = Vec::new();
        // The share of a set among one is 1 whatever happens.
        for set in (0..self.run.sets.len()).filter(|_| self.run.sets.len() > 1) {
            let name = format!("cpu_fraction[set {set}]");
            let ours = each(&|n| n.fraction[set]);
            rows.push(row(case, &name, &[recorded.fraction[set]], &ours));
        }
        let ours = each(&|n| n.cpu_use);
        rows.push(row(case, "cpu_use", &[recorded.cpu_use], &ours));
        if self.run.settled() {
            let ours = each(&|n| apart(&n.load, &recorded.load));
            rows.push(row(case, "tasks_apart", &[0.0], &ours));
        } else {
            let why = "tasks still moved in the last window: where they are at its end is chance";
            rows.push(skipped(case, "tasks_apart", &[0.0], why));
        }
        if self.reachable() == self.machine.topology.nr_cpus() {
            let longest = self
                .run
                .windows
                .last()
                .map_or(0.0, |w| self.run.since(w.t1_ns));
            let ours = each(&|n| n.all_busy_ms.unwrap_or(longest * 1e3));
            rows.push(match recorded.all_busy_ms {
                Some(ms) => row(case, "all_busy_ms", &[ms], &ours),
                None => {
                    let why = "the trace ends before all CPUs have a task";
                    skipped(case, "all_busy_ms", &[], why)
                }
            });
        }
        let ours = each(&|n| n.migrations);
        rows.push(row(case, "migrations", &[recorded.migrations], &ours));
        rows
    }
}

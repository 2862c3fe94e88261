//! `balance/run_*.json`: tasks in groups, forked from one place, watched over windows.

use fairground::value::{CpuMask, TaskId};

use super::measure::{Ran, all_busy, apart, load, placements, window};
use super::recorded::{Run, START_NS, TICK_NS};
use super::{guest, on, row, skipped};
use crate::machine_file::Machine;
use crate::truth::smp::files::{File, Recording};
use crate::truth::{Row, TruthError};
use crate::workload::program::{Cgroup, Dur, Ns, Op, Program, TaskTemplate, Until, Workload};

const MS: Ns = 1_000_000;

/// The first child, as a task and as a template: a runner and the parent come before.
const CHILD: u32 = 2;

/// A run ready to be simulated.
struct Bench<'a> {
    run: &'a Run,
    workload: Workload,
    machine: &'a Machine,
    masks: Vec<CpuMask>,
    /// Set of each task, in order of birth.
    set_of: Vec<usize>,
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
        let bench = Bench::new(run, &machine).map_err(error)?;
        let simulated: Result<Vec<Numbers>, String> =
            guest::SEEDS.map(|seed| bench.simulate(seed)).collect();
        let case = format!("{}#{}", file.name, run.index);
        let of_run = bench.rows(&case, &simulated.map_err(error)?).into_iter();
        rows.extend(of_run.map(|row| on(&run.topology, row)));
    }
    Ok(rows)
}

impl<'a> Bench<'a> {
    fn new(run: &'a Run, machine: &'a Machine) -> Result<Self, String> {
        let cpus = machine.topology.nr_cpus();
        let mut w = Workload::new("balance", Vec::new());
        let mut masks = Vec::new();
        let mut set_of = Vec::new();
        let mut forks = Vec::new();
        let pin = run
            .start_cpu
            .or(run.pinned())
            .map(|cpu| add_mask(&mut w, vec![cpu]));
        for (i, set) in run.sets.iter().enumerate() {
            let allowed = set.mask(cpus)?;
            let mask = add_mask(&mut w, allowed.iter().map(|c| c.0).collect());
            let mut ops = set.ops()?;
            // Each opens its own affinity, unless all are released together later, and sets its own
            // nice value: the parent is preempted as late beside children of nice -5 as of nice 0.
            if set.nice != 0 {
                ops.insert(0, Op::SetNice(set.nice));
                shift_loops(&mut ops);
            }
            if pin.is_some() && run.start_cpu.is_none() {
                ops.insert(0, Op::SetAffinity(mask));
                shift_loops(&mut ops);
            }
            let program = CHILD + i as u32;
            let mut template = TaskTemplate::new(format!("set{i}"), program, 1);
            template.thread = true;
            template.affinity = Some(pin.unwrap_or(mask));
            template.cgroup = Some(group(&mut w, &set.cgroup, set.shares)?);
            w.programs.push(Program {
                name: format!("set{i}"),
                ops,
            });
            w.templates.push(template);
            for _ in 0..set.count {
                forks.push(Op::Fork { template: program });
                forks.push(Op::Run(Dur::Const(guest::TRACED_FORK_NS)));
                set_of.push(i);
            }
            masks.push(allowed);
        }
        // The parent sleeps when it has forked. It is a new process of a runner: a new task has
        // half a slice, and the parent is preempted 1.4 ms after it has begun to fork.
        let sleep = Op::Sleep(Dur::Const(3_600_000 * MS));
        forks.push(sleep);
        let begin = vec![Op::Fork { template: 1 }, sleep];
        let first = [("runner", begin), ("parent", forks)];
        for (i, (name, ops)) in first.into_iter().enumerate() {
            let mut template = TaskTemplate::new(name, i as u32, i as u32 + 1);
            template.affinity = pin.filter(|_| name == "parent");
            let name = name.into();
            w.programs.insert(i, Program { name, ops });
            w.templates.insert(i, template);
        }
        w.initial = vec![0];
        let last = run.windows.last().map_or(0.0, |w| run.since(w.t1_ns));
        w.duration = Until::Time(START_NS + 2 * TICK_NS + (last * 1e9) as Ns + MS);
        w.validate()?;
        Ok(Self {
            run,
            workload: w,
            machine,
            masks,
            set_of,
        })
    }

    /// CPUs that can have a task.
    fn reachable(&self) -> usize {
        let all = self.masks.iter().fold(CpuMask::empty(), |a, b| a.or(b));
        (all.weight() as usize).min(self.set_of.len())
    }

    fn simulate(&self, seed: u64) -> Result<Numbers, String> {
        let features = crate::truth::smp::features(&[]);
        let mut sim = guest::sim(self.machine, features, &self.workload, seed)?;
        guest::record_attempts(&mut sim, true);
        sim.start_at(0, self.run.start_ns());
        sim.run_to(self.run.start_ns() + TICK_NS)
            .map_err(|e| e.to_string())?;
        let trace = sim.host.counters.trace.as_deref().unwrap_or_default();
        let mut born = placements(trace).into_iter().filter(|b| b.1.0 >= CHILD);
        let first_ns = born.next().ok_or("no task was born")?.0;
        let first_t = self.run.placements[0].0;
        if let Some(t) = self.run.release_t {
            let at_ns = first_ns + ((t - first_t) * 1e9) as u64;
            sim.run_to(at_ns).map_err(|e| e.to_string())?;
            for (i, set) in self.set_of.iter().enumerate() {
                sim.open_affinity([(TaskId(CHILD + i as u32), self.masks[*set])]);
            }
        }
        let at = |ns: u64| first_ns + (self.run.since(ns).max(0.0) * 1e9) as u64;
        if let Some(traced_ns) = self.run.traced_to_ns() {
            sim.run_to(at(traced_ns)).map_err(|e| e.to_string())?;
            guest::record_attempts(&mut sim, false);
        }
        sim.run().map_err(|e| e.to_string())?;
        let trace = sim.host.counters.trace.take().unwrap_or_default();
        let tasks: Vec<TaskId> = (0..self.set_of.len() as u32)
            .map(|i| TaskId(CHILD + i))
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
        let moves = moves.filter(|m| m.1 >= i64::from(CHILD));
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
            for (ran, set) in ran.iter().zip(&self.set_of) {
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
                    skipped(case, "all_busy_ms", &[0.0], why)
                }
            });
        }
        let ours = each(&|n| n.migrations);
        rows.push(row(case, "migrations", &[recorded.migrations], &ours));
        rows
    }
}

pub(super) fn add_mask(w: &mut Workload, cpus: Vec<u32>) -> u32 {
    w.masks.push(cpus);
    w.masks.len() as u32 - 1
}

/// Loops begin one operation later.
pub(super) fn shift_loops(ops: &mut [Op]) {
    for op in ops {
        if let Op::LoopEnd { start } = op {
            *start += 1;
        }
    }
}

/// The group at a path like `pla/plb`, made with its parents where it is not there yet.
pub(super) fn group(w: &mut Workload, path: &str, shares: Option<u64>) -> Result<u32, String> {
    let mut at = 0;
    let mut full = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        full = format!("{full}/{part}");
        let known = w.cgroups.iter().position(|g| g.path == full);
        at = known.unwrap_or_else(|| {
            w.cgroups.push(Cgroup::new(&full, at as u32));
            w.cgroups.len() - 1
        });
    }
    match shares {
        Some(_) if at == 0 => return Err("sets: shares of the root".into()),
        Some(shares) => w.cgroups[at].shares = shares,
        None => {}
    }
    Ok(at as u32)
}

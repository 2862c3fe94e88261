//! The runs: every side of every row with every seed, each different one once, in parallel, and
//! gathered by number, so that the rows do not depend on who ended first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairground::event::Event;
use fairground::policy::{Features, find_patch, find_profile};
use fairground_report::reproduce::{Class, Row, Simulated, classify, number};
use fairground_report::{Style, Variant, costs_text};
use fairground_sim::host::BOOT_NS;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::workload::{Env, Workload, duration};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

use super::experiment::{Experiment, RunSpec};
use super::{ReproduceArgs, Reproduced, measure, window};
use crate::failure::Failure;
use crate::plan::set;

/// One simulation.
pub struct Job {
    machine: Machine,
    features: Features,
    workload: Workload,
    seed: u64,
    trace: bool,
}

/// Numbers of a run's jobs: base and patch by seed.
struct Sides {
    base: Vec<usize>,
    patch: Vec<usize>,
    cpus: usize,
}

/// What sensitivity runs change in a machine.
pub type Vary<'a> = &'a dyn Fn(&Machine, &mut Features) -> Result<Machine, Failure>;

/// Simulates all runs of the experiments.
///
/// # Errors
/// A run that cannot be set up, or fails.
pub fn simulate(
    experiments: Vec<Experiment>,
    args: &ReproduceArgs,
) -> Result<Vec<Reproduced>, Failure> {
    simulate_varied(experiments, args, &|machine, _| Ok(machine.clone()))
}

/// The same on machines that `vary` has changed.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_varied(
    experiments: Vec<Experiment>,
    args: &ReproduceArgs,
    vary: Vary<'_>,
) -> Result<Vec<Reproduced>, Failure> {
    let mut jobs = Jobs::default();
    let mut plan = Vec::new();
    for e in &experiments {
        for run in &e.runs {
            plan.push(jobs.sides(e, run, vary)?);
        }
    }
    let outcomes = run_all(&jobs.list, args)?;
    let mut plan = plan.into_iter();
    let gather = |experiment: Experiment| {
        let (mut rows, mut traces, mut explained) = (Vec::new(), Vec::new(), Vec::new());
        for run in &experiment.runs {
            let Some(sides) = plan.next() else { break };
            let of = |numbers: &[usize]| -> Vec<&Outcome> {
                numbers.iter().map(|&n| &outcomes[n]).collect()
            };
            let (base, patch) = (of(&sides.base), of(&sides.patch));
            for spec in &run.rows {
                if let Some(name) = spec.measure.missing(base[0]) {
                    let message = format!("{}: no metric is called `{name}`", run.name);
                    return Err(Failure::new(message));
                }
            }
            rows.push((
                run.clone(),
                rows_of(&experiment, run, &base, &patch, sides.cpus),
            ));
            if run.rows.iter().any(|r| r.measure.needs_trace()) {
                traces.push((run.name.clone(), [new_tasks(base[0]), new_tasks(patch[0])]));
            }
            if args.explain {
                explained.push((run.name.clone(), explanation(&base, &patch)));
            }
        }
        Ok(Reproduced {
            experiment,
            rows,
            traces,
            explained,
        })
    };
    experiments.into_iter().map(gather).collect()
}

/// Name of a run's machine, with the number of CPUs where it is a part.
pub fn machine_name(run: &RunSpec) -> String {
    let cpus = run.cpus.map(|n| format!("{n} CPUs"));
    let lines = run.line_bytes.map(|n| format!("lines of {n} bytes"));
    let parts: Vec<String> = cpus.into_iter().chain(lines).collect();
    if parts.is_empty() {
        return run.machine.clone();
    }
    format!("{} ({})", run.machine, parts.join(", "))
}

fn rows_of(
    experiment: &Experiment,
    run: &RunSpec,
    base: &[&Outcome],
    patch: &[&Outcome],
    cpus: usize,
) -> Vec<Row> {
    let row = |spec: &super::experiment::RowSpec| {
        let values = |side: &[&Outcome], patched: bool| -> Vec<Option<f64>> {
            let value = |o: &&Outcome| spec.measure.value(o, cpus, patched);
            side.iter().map(value).collect()
        };
        let simulated = Simulated::of(&values(base, false), &values(patch, true));
        let published = spec.published();
        let dead = window::dead(run, spec, base, patch);
        let class = match dead {
            None => classify(spec.kind, &published, &simulated),
            Some(_) => Class::Miss,
        };
        Row {
            change: experiment.change.clone(),
            machine: machine_name(run),
            workload: run.workload.clone(),
            load: run.load.clone(),
            metric: spec.metric.clone(),
            published,
            simulated,
            class,
            dead,
        }
    };
    run.rows.iter().map(row).collect()
}

#[derive(Default)]
struct Jobs {
    list: Vec<Job>,
    known: BTreeMap<String, usize>,
}

impl Jobs {
    fn sides(&mut self, e: &Experiment, run: &RunSpec, vary: Vary<'_>) -> Result<Sides, Failure> {
        let failed = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", run.name));
        let machine = Machine::from_path_or_id(&run.machine).map_err(|e| failed(&e))?;
        let machine = match run.cpus {
            Some(cpus) => machine.shrunk(cpus).map_err(|e| failed(&e))?,
            None => machine,
        };
        let machine = match run.line_bytes {
            Some(bytes) => machine.with_line_bytes(bytes),
            None => machine,
        };
        let cpus = machine.topology.nr_cpus();
        let base_words = run.base_workload.as_ref().unwrap_or(&run.workload);
        let (mut base, mut patch) = (Vec::new(), Vec::new());
        for (patched, words, numbers) in [
            (false, base_words, &mut base),
            (!run.unpatched, &run.workload, &mut patch),
        ] {
            let mut features = features(e, run, patched)?;
            let machine = vary(&machine, &mut features)?;
            let workload = workload(run, words, cpus)?;
            let trace = run.rows.iter().any(|r| r.measure.needs_trace());
            for seed in 1..=run.seeds {
                numbers.push(self.number(Job {
                    machine: machine.clone(),
                    features: features.clone(),
                    workload: workload.clone(),
                    seed,
                    trace,
                }));
            }
        }
        Ok(Sides { base, patch, cpus })
    }

    /// The job's number; an equal one is simulated once.
    fn number(&mut self, job: Job) -> usize {
        let decisions: Vec<String> = fairground::policy::decisions()
            .iter()
            .map(|d| (d.get)(&job.features))
            .collect();
        let w = &job.workload;
        let key = format!(
            "{} {} {:?} {} {:?} {} {decisions:?} {}",
            job.machine.hash(),
            job.machine.topology.nr_cpus(),
            w.argv,
            w.warmup_ns,
            w.duration,
            job.seed,
            job.trace,
        );
        let next = self.list.len();
        let number = *self.known.entry(key).or_insert(next);
        if number == next {
            self.list.push(job);
        }
        number
    }
}

fn features(e: &Experiment, run: &RunSpec, patched: bool) -> Result<Features, Failure> {
    let profile = find_profile(&e.profile)
        .ok_or_else(|| Failure::new(format!("{}: no profile `{}`", e.change, e.profile)))?;
    let patch = find_patch(&e.change)
        .ok_or_else(|| Failure::new(format!("no patch is called `{}`", e.change)))?;
    let mut features = Features::default();
    features.set_all(profile.sets);
    features.set_all(match (patched, run.patch_set.is_empty()) {
        (true, true) => patch.sets,
        _ => patch.base,
    });
    let hz = run.hz.map(|hz| ("hz".to_string(), hz.to_string()));
    let own = if patched { &run.patch_set[..] } else { &[] };
    for (name, value) in hz.iter().chain(&run.set).chain(own) {
        set(&mut features, name, value)?;
    }
    Ok(features)
}

fn workload(run: &RunSpec, words: &str, cpus: usize) -> Result<Workload, Failure> {
    let env = Env { cpus: cpus as u32 };
    let failed = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", run.name));
    let mut workload = match words.strip_prefix("scenario ") {
        Some(name) => super::experiment::scenario(name)?
            .workload(&env)
            .map_err(|e| failed(&e))?,
        None => {
            let argv: Vec<String> = words.split_whitespace().map(String::from).collect();
            Workload::from_argv(&argv, &env).map_err(|e| failed(&e))?
        }
    };
    if let (Some(from), Some(span)) = (&run.from, &run.span) {
        let ns = |text: &str| duration::parse_ns(text).map_err(|e| failed(&e));
        measure::window(&mut workload, ns(from)?, ns(span)?);
    }
    Ok(workload)
}

fn run_all(jobs: &[Job], args: &ReproduceArgs) -> Result<Vec<Outcome>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.map_or(0, usize::from))
        .build()
        .map_err(|e| Failure::new(format!("cannot start the threads: {e}")))?;
    let progress = bar(jobs.len() as u64, args.no_progress);
    let failed = AtomicUsize::new(usize::MAX);
    let one = |(number, job): (usize, &Job)| {
        if number > failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = outcome::run(&Setup {
            machine: &job.machine,
            features: job.features.clone(),
            workload: &job.workload,
            seed: job.seed,
            trace: job.trace,
        });
        if result.is_err() {
            failed.fetch_min(number, Ordering::Relaxed);
        }
        progress.inc(1);
        Some(result.map_err(|e| Failure::new(format!("{}: {e}", job.workload.argv.join(" ")))))
    };
    let results: Vec<_> = pool.install(|| {
        let numbered: Vec<(usize, &Job)> = jobs.iter().enumerate().collect();
        numbered.into_par_iter().with_max_len(1).map(one).collect()
    });
    progress.finish_and_clear();
    results.into_iter().flatten().collect()
}

fn bar(total: u64, hidden: bool) -> ProgressBar {
    let target = if hidden {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let style = "{pos}/{len} runs {wide_bar} {elapsed_precise}, {eta} to go";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Counters, cache lines and functions of both sides: where a change comes from.
fn explanation(base: &[&Outcome], patch: &[&Outcome]) -> String {
    let variant = |name: &str, runs: &[&Outcome]| Variant {
        name: name.into(),
        decisions: BTreeMap::new(),
        runs: runs.iter().map(|&o| crate::glue::run(o.clone())).collect(),
    };
    let style = Style {
        lines: 8,
        functions: 16,
        ..Style::default()
    };
    let mut text = String::new();
    for (name, runs) in [("base", base), ("patch", patch)] {
        let o = runs[0];
        text += &format!("{name}, seed 1, {} events:", o.events);
        for (metric, value) in &o.metrics {
            if let Some(value) = value {
                text += &format!(" {metric}={}", number(Some(*value)));
            }
        }
        text += "\n";
    }
    text + "\n" + &costs_text(&variant("base", base), &variant("patch", patch), style)
}

/// `sched_wakeup_new` in the form of `perf script`: who woke whom, and where the new task went.
/// Tasks that are there at the start have no waker, and are left out.
fn new_tasks(run: &Outcome) -> Vec<String> {
    let mut running = BTreeMap::new();
    let mut lines = Vec::new();
    for line in &run.trace {
        match line.event {
            Event::Switch { cpu, next, .. } => {
                running.insert(cpu.idx() as u32, next);
            }
            Event::WakeupNew { task, cpu } => {
                let Some(Some(waker)) = running.get(&line.cpu) else {
                    continue;
                };
                lines.push(format!(
                    "task {} [{:03}] {:.6}: sched:sched_wakeup_new: \
                     task:{} [120] success=1 CPU:{:03}",
                    waker.idx(),
                    line.cpu,
                    (line.at_ns + BOOT_NS) as f64 / 1e9,
                    task.idx(),
                    cpu.idx(),
                ));
            }
            _ => {}
        }
    }
    lines
}

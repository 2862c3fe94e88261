//! The simulations of all rows, in parallel, those first that tell most, and gathered by number, so
//! that the rows do not depend on who ended first.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fairground::event::Event;
use fairground_report::reproduce::{Class, Made, Row, Simulated, classify, level, number};
use fairground_report::{Style, Variant, costs_text};
use fairground_sim::host::BOOT_NS;
use fairground_sim::machine::Setup;
use fairground_sim::outcome::{self, Outcome};

use super::experiment::{Experiment, RowSpec, RunSpec};
use super::jobs::{Job, Jobs, Sides, Vary};
use super::keep::{Done, Keep};
use super::{ReproduceArgs, Reproduced, model, window};
use crate::failure::Failure;
use crate::glue::VERSION;
use crate::progress::bar;

/// Simulates all runs of the experiments.
///
/// # Errors
/// A run that cannot be set up, or fails.
pub fn simulate(
    experiments: Vec<Experiment>,
    args: &ReproduceArgs,
) -> Result<Vec<Reproduced>, Failure> {
    let mut jobs = Jobs::default();
    let mut plan = Vec::new();
    for e in &experiments {
        plan.push(plan_of(e, &mut jobs, &|machine, _| Ok(machine.clone()), 0)?);
    }
    let keep = Keep::open(args.keep.as_deref())?;
    let done = run_all(&jobs, &jobs.order(), &keep, args)?;
    if args.times {
        times(&experiments, &plan, &done);
    }
    let plan = experiments.into_iter().zip(&plan);
    plan.map(|(e, sides)| gather(e, sides, &done, args.explain))
        .collect()
}

/// What the runs of an experiment need. First one seed of the runs that a headline is about, then
/// one of the others, then in turns another of each, then the rest.
///
/// # Errors
/// A run that cannot be set up.
pub fn plan_of(
    e: &Experiment,
    jobs: &mut Jobs,
    vary: Vary<'_>,
    rank: u64,
) -> Result<Vec<Sides>, Failure> {
    let sides = |run: &RunSpec| {
        let other = u64::from(e.headline.iter().all(|h| h.run != run.name));
        let round = |seed| match seed {
            1..=3 => 2 * seed + other,
            _ => 8,
        };
        jobs.sides(e, run, vary, &|seed| (rank << 32) + round(seed))
    };
    e.runs.iter().map(sides).collect()
}

/// The rows of an experiment from the outcomes that there are. A run without a seed of which both
/// sides are done has none.
///
/// # Errors
/// A row that names a metric which its run has not.
pub fn gather(
    experiment: Experiment,
    plan: &[Sides],
    done: &[Option<Done>],
    explain: bool,
) -> Result<Reproduced, Failure> {
    let (mut rows, mut traces, mut explained) = (Vec::new(), Vec::new(), Vec::new());
    for (run, sides) in experiment.runs.iter().zip(plan) {
        let outcome = |&n: &usize| done.get(n)?.as_ref().map(|d| &d.outcome);
        let pairs = sides.base.iter().zip(&sides.patch);
        let (base, patch): (Vec<&Outcome>, Vec<&Outcome>) = pairs
            .filter_map(|(b, p)| outcome(b).zip(outcome(p)))
            .unzip();
        let Some(first) = base.first() else { continue };
        for spec in &run.rows {
            if let Some(name) = spec.measure.missing(first) {
                let message = format!("{}: no metric is called `{name}`", run.name);
                return Err(Failure::new(message));
            }
        }
        rows.push((run.clone(), rows_of(&experiment, run, &base, &patch, sides)));
        if run.rows.iter().any(|r| r.measure.needs_trace()) {
            traces.push((run.name.clone(), [new_tasks(base[0]), new_tasks(patch[0])]));
        }
        if explain {
            explained.push((run.name.clone(), explanation(&base, &patch)));
        }
    }
    Ok(Reproduced {
        experiment,
        rows,
        traces,
        explained,
    })
}

/// Name of a run's machine, with what is otherwise than in its file.
pub fn machine_name(run: &RunSpec) -> String {
    let cpus = run.cpus.map(|n| format!("{n} CPUs"));
    let lines = run.line_bytes.map(|n| format!("lines of {n} bytes"));
    let idle = run.max_idle.as_ref().map(|s| format!("idle up to {s}"));
    let parts: Vec<String> = cpus.into_iter().chain(idle).chain(lines).collect();
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
    sides: &Sides,
) -> Vec<Row> {
    let made = Made {
        version: VERSION.into(),
        model: model::hash().into(),
        machine: sides.machine.clone(),
        profile: experiment.profile.clone(),
        window: run.window(),
        seeds: base.iter().map(|o| o.seed).collect(),
    };
    let row = |spec: &RowSpec| {
        let values = |side: &[&Outcome], patched: bool| -> Vec<Option<f64>> {
            let measure = &spec.measure;
            let value = |o: &&Outcome| Some(measure.value(o, sides.cpus, patched)? * spec.scale);
            side.iter().map(value).collect()
        };
        let simulated = Simulated::of(&values(base, false), &values(patch, true));
        let published = spec.published();
        let dead = window::dead(run, spec, base, patch);
        let class = match dead {
            None => classify(spec.kind, &published, &simulated),
            Some(_) => Class::Miss,
        };
        let level = level(&published, &simulated).filter(|_| spec.comparable);
        Row {
            change: experiment.change.clone(),
            machine: machine_name(run),
            workload: run.workload.clone(),
            load: run.load.clone(),
            metric: spec.metric.clone(),
            published,
            simulated,
            level,
            class,
            evidence: spec.evidence,
            dead,
            made: Some(made.clone()),
        }
    };
    run.rows.iter().map(row).collect()
}

/// Runs the jobs of these numbers, in this order, until the time is over; what was kept is read.
///
/// # Errors
/// The first job that fails, or a kept file that cannot be used.
pub fn run_all(
    jobs: &Jobs,
    order: &[usize],
    keep: &Keep,
    args: &ReproduceArgs,
) -> Result<Vec<Option<Done>>, Failure> {
    let mut done: Vec<Option<Done>> = Vec::new();
    done.resize_with(jobs.list.len(), || None);
    let mut open = Vec::new();
    for &number in order {
        done[number] = keep.read(&jobs.list[number])?;
        if done[number].is_none() {
            open.push(number);
        }
    }
    // Tracepoints are not kept, so without these few there is never a whole page.
    open.sort_by_key(|&number| !jobs.list[number].trace);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.map_or(0, usize::from))
        .build()
        .map_err(|e| Failure::new(format!("cannot start the threads: {e}")))?;
    let template = "{pos}/{len} runs {wide_bar} {elapsed_precise}, {eta} to go";
    let progress = bar(open.len() as u64, template, args.no_progress);
    let start = Instant::now();
    let limit = args.limit();
    let over = || limit.is_some_and(|limit| start.elapsed() >= limit);
    let results: Mutex<BTreeMap<usize, Result<Done, Failure>>> = Mutex::default();
    let open = Mutex::new(open);
    let next = || {
        let results = lock(&results);
        let cost = |n: usize| match results.get(&n) {
            Some(made) => made.as_ref().ok().map(|d| d.cpu_s),
            None => done[n].as_ref().map(|d| d.cpu_s),
        };
        if results.values().any(Result::is_err) {
            return None;
        }
        take(jobs, &mut lock(&open), cost).filter(|&n| !over() || jobs.list[n].trace)
    };
    pool.broadcast(|_| {
        while let Some(number) = next() {
            let result = one(&jobs.list[number], keep);
            lock(&results).insert(number, result);
            progress.inc(1);
        }
    });
    progress.finish_and_clear();
    let results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    for (number, result) in results {
        done[number] = Some(result?);
    }
    Ok(done)
}

/// What a thread that panicked has left whole.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job whose turn it is; those with tracepoints first, and equals in their order.
fn take(jobs: &Jobs, open: &mut Vec<usize>, cost: impl Fn(usize) -> Option<f64>) -> Option<usize> {
    let turn = |&n: &usize| (!jobs.list[n].trace, jobs.turn(n, &cost));
    let earlier = |a: &(bool, (u64, f64)), b: &(bool, (u64, f64))| {
        let rank = (a.0, a.1.0).cmp(&(b.0, b.1.0));
        rank.then(a.1.1.total_cmp(&b.1.1))
    };
    let turns: Vec<_> = open.iter().map(turn).collect();
    let at = (0..open.len()).min_by(|&a, &b| earlier(&turns[a], &turns[b]))?;
    Some(open.remove(at))
}

fn one(job: &Job, keep: &Keep) -> Result<Done, Failure> {
    let start = cpu_s();
    let outcome = outcome::run(&Setup {
        machine: &job.machine,
        features: job.features.clone(),
        workload: &job.workload,
        seed: job.seed,
        trace: job.trace,
    })
    .map_err(|e| Failure::new(format!("{}: {e}", job.workload.argv.join(" "))))?;
    let cpu_s = cpu_s() - start;
    let done = Done { outcome, cpu_s };
    keep.write(job, &done)?;
    Ok(done)
}

/// CPU time of this thread: on a busy computer wall time says little.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU time of each run, to standard error.
fn times(experiments: &[Experiment], plan: &[Vec<Sides>], done: &[Option<Done>]) {
    let mut all = std::collections::BTreeSet::new();
    for (run, sides) in experiments
        .iter()
        .flat_map(|e| &e.runs)
        .zip(plan.iter().flatten())
    {
        let numbers = sides.base.iter().chain(&sides.patch);
        all.extend(numbers.clone());
        let (seeds, time) = (sides.base.len(), cpu_time(done, numbers));
        crate::stderr(&format!(
            "{time:8.2} s of CPU time  {}, {seeds} seeds\n",
            run.name
        ));
    }
    let (time, simulations) = (cpu_time(done, &all), all.len());
    crate::stderr(&format!(
        "{time:8.2} s of CPU time in {simulations} simulations\n"
    ));
}

/// CPU time of the jobs of these numbers, seconds.
pub fn cpu_time<'a>(done: &[Option<Done>], of: impl IntoIterator<Item = &'a usize>) -> f64 {
    let each = of.into_iter().filter_map(|&n| done.get(n)?.as_ref());
    each.map(|d| d.cpu_s).sum()
}

/// Counters, cache lines and functions of both sides: where a change comes from.
fn explanation(base: &[&Outcome], patch: &[&Outcome]) -> String {
    let variant = |name: &str, runs: &[&Outcome]| Variant {
        name: name.into(),
        runs: runs.iter().map(|&o| crate::glue::run(o.clone())).collect(),
        ..Variant::default()
    };
    let style = Style {
        lines: 8,
        functions: 16,
        ..Style::default()
    };
    let mut text = String::new();
    for (name, runs) in [("base", base), ("patch", patch)] {
        let o = runs[0];
        text += &format!("{name}, seed {}, {} events:", o.seed, o.events);
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

//! The runs: in parallel, gathered by number, so that results do not depend on who ended first.

use std::sync::atomic::{AtomicUsize, Ordering};

use fairground::policy::Features;
use fairground_sim::exact::{self, Exact};
use fairground_sim::host::Stack;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome, RunError};
use fairground_sim::workload::Workload;
use fairground_sim::workload::program::Born;
use rayon::prelude::*;

use crate::failure::Failure;
use crate::how::How;
use crate::progress::counted;

/// What one variant runs.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The decisions.
    pub features: &'a Features,
    /// The workload.
    pub workload: &'a Workload,
    /// Which stretches that waited for quota are slow, if it was said, ns.
    pub slow_ns: Option<u64>,
}

/// How much of an outcome is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All.
    All,
    /// Metrics and groups: of a thousand points, all would fill the memory.
    Metrics,
}

/// What came of it.
pub struct Simulated {
    /// One list per variant, in seed order.
    pub outcomes: Vec<Vec<Outcome>>,
    /// Of each variant's first seed, if there is a report to make; its outcome has the tracepoints.
    pub kept: Vec<Option<Kept>>,
}

/// What a report needs beyond the outcome.
pub struct Kept {
    /// What each task began with, by task number.
    pub born: Vec<Born>,
    /// Time by stack.
    pub stacks: Vec<Stack>,
}

/// Runs every variant with every seed.
///
/// # Errors
/// The workload does not fit the machine, or a run comes to a standstill. Of several, the first
/// in order of number, so that the message is the same for any number of threads.
pub fn simulate(
    variants: &[Job<'_>],
    seeds: &[u64],
    how: &How,
    keep: Keep,
) -> Result<Simulated, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(how.jobs.map_or(0, usize::from))
        .build()
        .map_err(|e| Failure::new(format!("cannot start the threads: {e}")))?;
    // Seed by seed, so that memory and time of base and patch go side by side.
    let total = seeds.len() * variants.len();
    let progress = counted(total as u64, "runs", how.quiet || how.no_progress);
    let failed = AtomicUsize::new(usize::MAX);
    let reported = if how.report.is_some() {
        variants.len()
    } else {
        0
    };
    let one = |number: usize| -> Option<Result<(Outcome, Option<Kept>), RunError>> {
        // Runs before the first failure are always done, so which one is first is no accident.
        if number > failed.load(Ordering::Relaxed) {
            return None;
        }
        let job = variants[number % variants.len()];
        let seed = seeds[number / variants.len()];
        let keep = (number >= reported).then_some(keep);
        let result = once(job, seed, keep);
        if result.is_err() {
            failed.fetch_min(number, Ordering::Relaxed);
        }
        progress.inc(1);
        Some(result)
    };
    let results: Vec<_> = pool.install(|| {
        (0..total)
            .into_par_iter()
            .with_max_len(1)
            .map(one)
            .collect()
    });
    progress.finish_and_clear();
    let mut all = Simulated {
        outcomes: variants.iter().map(|_| Vec::new()).collect(),
        kept: Vec::new(),
    };
    for (number, result) in results.into_iter().enumerate() {
        let (outcome, kept) = match result {
            Some(Ok(done)) => done,
            Some(Err(error)) => return Err(Failure::new(error)),
            None => break,
        };
        all.outcomes[number % variants.len()].push(outcome);
        if number < variants.len() {
            all.kept.push(kept);
        }
    }
    if !how.quiet {
        tell_stuck(all.outcomes.iter().flatten());
    }
    Ok(all)
}

/// That the tasks of a run which ended by time only wait for each other: as a note, for it may be
/// meant (servers whose clients have gone).
fn tell_stuck<'a>(mut outcomes: impl Iterator<Item = &'a Outcome>) {
    let first = outcomes.find_map(|outcome| Some((outcome.seed, outcome.stuck.as_ref()?)));
    if let Some((seed, waiting)) = first {
        let mut note = format!("note: at the end of seed {seed} all tasks wait for each other:\n");
        note.extend(waiting.iter().map(|line| format!("  {line}\n")));
        crate::stderr(&note);
    }
}

/// One run; with its tracepoints and stacks if no part of it is all that is kept.
fn once(job: Job<'_>, seed: u64, keep: Option<Keep>) -> Result<(Outcome, Option<Kept>), RunError> {
    let setup = Setup {
        machine: job.machine,
        features: job.features.clone(),
        workload: job.workload,
        seed,
        trace: false,
    };
    let (mut outcome, kept) = match keep {
        None => kept(&setup)?,
        Some(keep) => (keep.of(outcome::run_watched(&setup)?), None),
    };
    slow_from(&mut outcome, job.slow_ns);
    Ok((outcome, kept))
}

/// Which stretches that waited for quota are slow, if it was said.
pub fn slow_from(outcome: &mut Outcome, slow_ns: Option<u64>) {
    for wait in outcome.watched.iter_mut().flat_map(|w| &mut w.quota) {
        wait.limit_ns = slow_ns;
    }
}

impl Keep {
    fn of(self, outcome: Outcome) -> Outcome {
        match self {
            Self::All => outcome,
            Self::Metrics => Outcome {
                functions: Vec::new(),
                load_misses: Vec::new(),
                lines: Vec::new(),
                latency: Vec::new(),
                words: String::new(),
                ..outcome
            },
        }
    }
}

/// The same run, with its tracepoints and stacks.
fn kept(setup: &Setup<'_>) -> Result<(Outcome, Option<Kept>), RunError> {
    let exact = Exact {
        stacks: true,
        watched: true,
        ..Exact::default()
    };
    let traced = exact::run(setup, &exact, u64::MAX)?;
    let kept = Kept {
        born: traced.born,
        stacks: traced.stacks,
    };
    Ok((traced.outcome, Some(kept)))
}

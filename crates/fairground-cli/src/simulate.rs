//! The runs: in parallel, gathered by number, so that results do not depend on who ended first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairground::policy::Features;
use fairground_sim::machine::Setup;
use fairground_sim::outcome::{self, Outcome, RunError};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

use crate::args::How;
use crate::failure::Failure;
use crate::plan::Plan;

/// Runs every variant with every seed; the answer has one list per variant, in seed order.
///
/// # Errors
/// The workload does not fit the machine, or a run comes to a standstill. Of several, the first
/// in order of number, so that the message is the same for any number of threads.
pub fn simulate(
    plan: &Plan,
    variants: &[&Features],
    how: &How,
) -> Result<Vec<Vec<Outcome>>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(how.jobs.map_or(0, usize::from))
        .build()
        .map_err(|e| Failure::new(format!("cannot start the threads: {e}")))?;
    // Seed by seed, so that memory and time of base and patch go side by side.
    let total = plan.seeds.len() * variants.len();
    let progress = bar(total as u64, how.quiet);
    let failed = AtomicUsize::new(usize::MAX);
    let one = |number: usize| -> Option<Result<Outcome, RunError>> {
        // Runs before the first failure are always done, so which one is first is no accident.
        if number > failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = outcome::run(&Setup {
            machine: &plan.machine,
            features: variants[number % variants.len()].clone(),
            workload: &plan.workload,
            seed: plan.seeds[number / variants.len()],
            trace: false,
        });
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
    let mut outcomes: Vec<Vec<Outcome>> = variants.iter().map(|_| Vec::new()).collect();
    for (number, result) in results.into_iter().enumerate() {
        let outcome = match result {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) => return Err(Failure::new(error)),
            None => break,
        };
        outcomes[number % variants.len()].push(outcome);
    }
    Ok(outcomes)
}

/// A bar on standard error if that is a terminal, else nothing.
fn bar(total: u64, quiet: bool) -> ProgressBar {
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let style = ProgressStyle::with_template("{pos}/{len} runs {wide_bar} {elapsed_precise}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

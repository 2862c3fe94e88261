//! The replays: both sides with each seed, in parallel, gathered by number, so that results do not
//! depend on who ended first.

use fairground_trace::derive::Attributes;
use fairground_trace::fidelity::Fidelity;
use fairground_trace::replay::{Place, Replay, Run};
use fairground_trace::{Names, Recording};
use rayon::prelude::*;

use crate::progress::counted;
use crate::replay::args::ReplayArgs;

/// As many as `compare` runs, and fewer of a long recording, where each takes its time.
const SEEDS: u64 = 5;
const SEEDS_OF_LONG: u64 = 3;
/// Events from which on a recording is long: a second or two for each replay.
const LONG: usize = 500_000;

/// One side with each seed.
pub struct Side {
    /// The replays; only the first one has its events.
    pub runs: Vec<Run>,
    /// Each beside the recording.
    pub each: Vec<Fidelity>,
    /// The mean of these.
    pub mean: Fidelity,
}

impl Side {
    /// The replay with the first seed.
    pub fn first(&self) -> &Run {
        &self.runs[0]
    }
}

/// The seeds that were asked for, else those that are usual for the recording: of a simulated run,
/// which is replayed as it was, its own.
pub fn seeds(args: &ReplayArgs, recording: &Recording, replay: &Replay<'_>) -> Vec<u64> {
    let n = match (args.what.seed, args.what.seeds) {
        (Some(seed), _) => return vec![seed],
        (None, Some(n)) => n,
        (None, None) if replay.is_of_run() => return vec![replay.seed()],
        (None, None) if recording.tracepoints() >= LONG => SEEDS_OF_LONG,
        (None, None) => SEEDS,
    };
    (1..=n).collect()
}

/// A pool of as many threads as `--jobs` says.
///
/// # Errors
/// A sentence: they cannot be started.
pub fn pool(args: &ReplayArgs) -> Result<rayon::ThreadPool, String> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(args.jobs.map_or(0, usize::from))
        .build()
        .map_err(|e| format!("cannot start the threads: {e}"))
}

/// What is to be run.
pub struct Asking<'a> {
    /// How.
    pub args: &'a ReplayArgs,
    /// What.
    pub replay: &'a Replay<'a>,
    /// Whose.
    pub names: &'a Names,
    /// Where, and with which groups and policies: at home and, if asked for, elsewhere.
    pub sides: &'a [(&'a Place, &'a Attributes)],
    /// With which seeds.
    pub seeds: &'a [u64],
}

/// Runs all sides with all seeds.
///
/// # Errors
/// A sentence: a machine is too small, or a run has no end. Of several, the first in order of
/// number.
pub fn run(asking: &Asking<'_>) -> Result<Vec<Side>, String> {
    let (sides, seeds, replay) = (asking.sides, asking.seeds, asking.replay);
    let total = sides.len() * seeds.len();
    let progress = counted(total as u64, "replays", asking.args.no_progress);
    let one = |number: usize| -> Result<(Run, Fidelity), String> {
        let (place, with) = sides[number % sides.len()];
        let run = replay.run_with(place, with, seeds[number / sides.len()])?;
        let beside = Fidelity::new(&replay.recorded, &run, asking.names);
        progress.inc(1);
        // Of a million events each, all would fill the memory.
        let first = number < sides.len();
        Ok((if first { run } else { run.without_events() }, beside))
    };
    let pool = pool(asking.args)?;
    let all: Vec<_> = pool.install(|| {
        let numbers = (0..total).into_par_iter().with_max_len(1);
        numbers.map(one).collect()
    });
    progress.finish_and_clear();
    let mut gathered: Vec<(Vec<Run>, Vec<Fidelity>)> = Vec::new();
    gathered.resize_with(sides.len(), Default::default);
    for (number, result) in all.into_iter().enumerate() {
        let (run, beside) = result?;
        let (runs, each) = &mut gathered[number % sides.len()];
        runs.push(run);
        each.push(beside);
    }
    let side = |(runs, each): (Vec<Run>, Vec<Fidelity>)| {
        let mean = Fidelity::mean(&each).ok_or("no seed")?;
        Ok(Side { runs, each, mean })
    };
    gathered.into_iter().map(side).collect()
}

//! Decisions of a real kernel on many CPUs, made again by the engine: the format kernel-truth-smp.
//!
//! | file | subject |
//! | --- | --- |
//! | `files` | a directory of record files |
//! | `file` | one of them: its kind, lines and rows with their places |
//! | `text` | numbers and CPU lists |
//! | `machine` | `topology/*.json`: the machine, and its domains and groups compared |
//! | `state` | the published words of a recorded state; a host that does nothing |
//! | `choice` | `fork/` and `wake/decisions_*.jsonl`: which CPU for a task |
//! | `record` | a line of `balance/lb_decisions_*.jsonl`: an attempt to balance |
//! | `attempt` | the attempts of a file, made again |
//! | `busiest` | busiest group, unit and amount from the sums of groups |
//! | `words` | the same from the words of each CPU, down to the queue |
//! | `detach` | which tasks are taken off the busiest queue |
//! | `tables` | intervals, load tracking and group weights (CSV) |
//! | `row` | what is told of a file |
//! | `table` | the fidelity tables |
//! | `runs` | whole runs, simulated on the emulated guest |
//!
//! The state that the kernel saw goes into the engine's published words, the engine's own functions
//! decide, and the decisions are compared. `docs/truth.md` describes the format.

mod attempt;
mod busiest;
mod choice;
mod columns;
mod detach;
mod file;
mod files;
mod machine;
mod record;
mod row;
mod runs;
mod state;
pub mod table;
mod tables;
mod text;
mod words;

pub use file::Kind;
pub use files::{Recording, is_recording};
pub use row::{DecisionRow, DecisionVerdict, SmpRow};

pub use runs::{BANDS, Band};

use fairground::policy::{Features, find_profile};

use super::TruthError;

/// The profile of the recorded kernel.
pub const PROFILE: &str = "linux-6.12-lts";

/// What differs in the recorded kernel's configuration from the profile: HZ=250, and
/// `PREEMPT_VOLUNTARY`, in which a newly idle CPU takes more than one task.
pub const CONFIG: &[(&str, &str)] = &[("hz", "250"), ("newidle_moves_one", "off")];

/// The features of the recorded kernel, some decisions changed.
#[must_use]
pub fn features(changes: &[(&str, &str)]) -> Features {
    let profile = find_profile(PROFILE);
    let mut features = profile.map_or_else(Features::default, Features::of_profile);
    let done = [CONFIG, changes].map(|row| features.set_all(row));
    debug_assert_eq!(done, [Ok(()), Ok(())]);
    features
}

/// All rows of one file.
///
/// # Errors
/// Something that is not in the format, with file and line.
pub fn check(recording: &Recording, name: &str) -> Result<Vec<SmpRow>, TruthError> {
    let file = recording.file(name)?;
    let numbers = match file.kind {
        Kind::Run => runs::hogs(recording, &file)?,
        Kind::Storm => runs::storm(recording, &file)?,
        Kind::NohzKick => runs::kicks(recording, &file)?,
        Kind::TgLoadAvg => runs::tg_load_avg(recording, &file)?,
        Kind::HLoad => runs::h_load(recording, &file)?,
        Kind::PeltRun => runs::pelt_runs(recording, &file)?,
        _ => Vec::new(),
    };
    let decisions = check_decisions(recording, name, &[])?;
    let decisions = decisions.into_iter().map(SmpRow::Decisions);
    Ok(decisions
        .chain(numbers.into_iter().map(SmpRow::Number))
        .collect())
}

/// Replays one file of `recording` and compares; `changes` are decisions by name, to see whether
/// the records tell them from others. Files of whole runs give no rows.
///
/// # Errors
/// Something that is not in the format, with file and line.
pub fn check_decisions(
    recording: &Recording,
    name: &str,
    changes: &[(&str, &str)],
) -> Result<Vec<DecisionRow>, TruthError> {
    let file = recording.file(name)?;
    match file.kind {
        Kind::Topology => machine::check(&file),
        Kind::Choice => choice::check(&file, &recording.machine(&file)?, changes),
        Kind::Attempts => attempt::check(recording, &file, changes),
        Kind::Intervals => tables::intervals(&file, &recording.machine(&file)?),
        Kind::Updates => tables::updates(&file),
        Kind::GroupShares => tables::group_shares(&file),
        Kind::Events => tables::events(&file),
        Kind::Run
        | Kind::Storm
        | Kind::TgLoadAvg
        | Kind::NohzKick
        | Kind::HLoad
        | Kind::PeltRun => Ok(Vec::new()),
    }
}

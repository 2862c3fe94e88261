//! The options of `fairground truth`.

use std::path::PathBuf;

use clap::Args;

/// `fairground truth`.
#[derive(Debug, Args)]
pub struct TruthArgs {
    /// Directory with recorded cases, DIR/cases/NAME/{case,result}.json, or with recorded
    /// decisions, DIR/{topology,fork,wake,balance,pelt}/* (docs/truth.md)
    pub dir: PathBuf,
    /// Only cases (or files of decisions) whose name fits (`*` any text, `?` one character)
    #[arg(long, value_name = "GLOB", default_value = "*")]
    pub case: String,
    /// Machine that was recorded, of two CPUs: a name of `list machines` or a machine file, as
    /// `fairground calibrate` writes it [default: spr-guest-2cpu]
    #[arg(long, value_name = "MACHINE")]
    pub machine: Option<String>,
    /// Write all rows as JSON; `-` is standard output, then the table goes nowhere
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Simulate with the seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Show only what is missed
    #[arg(long)]
    pub misses: bool,
    /// Print the fidelity table (kind of case by metric: numbers that are not missed, median error)
    /// in Markdown instead
    #[arg(long, conflicts_with = "misses")]
    pub markdown: bool,
    /// No progress
    #[arg(long)]
    pub no_progress: bool,
}

//! Options that say how it is computed and shown: nothing here changes a result.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairground_report::Style;

/// Cache lines and functions that are shown where nobody says how many.
const SHOWN: usize = 20;

/// How it is computed and shown: nothing here can change the result.
#[derive(Clone, Debug, Args)]
pub struct How {
    /// Threads [default: one per CPU of this computer]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub jobs: Option<u16>,
    /// Write the result as JSON (schemas/); `-` is standard output, then tables go to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the metrics of each run as CSV; `-` as for --json
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a page that opens in a browser without a network: tables and plots; of a run or a
    /// comparison a timeline too
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// No tables and no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// No progress
    #[arg(long)]
    pub no_progress: bool,
}

/// How long the tables are that say where the time goes.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Most {
    /// Most cache lines to show [default: 20]
    #[arg(long, value_name = "N")]
    pub lines: Option<usize>,
    /// Most functions to show [default: 20]
    #[arg(long, value_name = "N")]
    pub functions: Option<usize>,
}

impl Most {
    /// The style of a result.
    pub fn style(self, colour: bool) -> Style {
        Style {
            colour,
            lines: self.lines.unwrap_or(SHOWN),
            functions: self.functions.unwrap_or(SHOWN),
        }
    }
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Yes
    Always,
    /// No
    Never,
}

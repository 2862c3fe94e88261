//! The options of `fairground replay`.

use std::path::PathBuf;

use clap::Args;

use crate::asked::{self, Asked};
use crate::what::What;

/// `fairground replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// perf.data, trace.dat, or text of `perf script` or ftrace; also .gz, .xz or .zst; `-` is
    /// standard input
    #[arg(value_name = "TRACE", required_unless_present = "cases")]
    pub trace: Option<PathBuf>,
    /// Machine that it was recorded on [default: a built-in one with as many CPUs, or few more]
    #[arg(long, value_name = "MACHINE")]
    pub recorded_on: Option<String>,
    /// Kernel that it was recorded on: a name of `list profiles` [default: the one nearest to the
    /// kernel that the trace names, else linux-6.18]
    #[arg(long, value_name = "PROFILE")]
    pub recorded_profile: Option<String>,
    /// What the trace does not say: tick, groups, policies, affinity (docs/replay.md)
    #[arg(long, value_name = "FILE")]
    pub attributes: Option<PathBuf>,
    /// What the recorder cost at each event, in nanoseconds [default: 290 for perf.data, 130 for
    /// others, 0 for a simulated run]
    #[arg(long, value_name = "NS",
          value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub tracer_ns: Option<u64>,
    #[command(flatten)]
    pub what: What,
    /// Write the derived scenario, for editing and `fairground run`
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write the last replay: .pftrace (Perfetto), .txt (perf script), .jsonl, .csv; .folded (time
    /// by stack); .schedstat, .debug (the kernel's files at one moment)
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// With --export FILE.schedstat or FILE.debug: when, from the recording's start [default: at
    /// the end]
    #[arg(long, value_name = "TIME", value_parser = asked::time, requires = "export")]
    pub at: Option<u64>,
    /// Write the recording itself, as --export does a replay, to look at both
    #[arg(long, value_name = "FILE")]
    pub export_recording: Option<PathBuf>,
    /// Write what was measured as JSON (schemas/); `-` is standard output, then the tables go
    /// nowhere
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page that opens in a browser without a network: tables, plots, timeline
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Instead of results: why this thread (name or id) runs where and when it does in the last
    /// replay; the time counts from the recording's start
    #[arg(long, value_name = "TASK@TIME", value_parser = Asked::parse,
          conflicts_with_all = ["save", "export", "export_recording", "json", "report"])]
    pub explain: Option<Asked>,
    /// Most threads to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub threads: usize,
    /// Replay the traces of recorded cases (docs/truth.md) instead, and show how faithful it is
    #[arg(long, value_name = "DIR", conflicts_with = "trace")]
    pub cases: Option<PathBuf>,
    /// With --cases: only cases whose name fits (`*` any text, `?` one character)
    #[arg(long, value_name = "GLOB", default_value = "*", requires = "cases")]
    pub case: String,
    /// With --cases: write the table into this page, between its marks
    #[arg(long, value_name = "FILE", requires = "cases")]
    pub table: Option<PathBuf>,
    /// Threads of this program [default: one per CPU of this computer]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub jobs: Option<u16>,
    /// No progress
    #[arg(long)]
    pub no_progress: bool,
}

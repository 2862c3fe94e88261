//! The command line as data. What it means is decided elsewhere.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::asked::{Asked, time};
use crate::how::{How, Most};
use crate::what::{Setting, What, setting};

/// The Linux fair scheduler on machines you do not own: what a change or a setting does, and why
#[derive(Debug, Parser)]
#[command(
    name = "fairground",
    version,
    after_help = "For example, what a published change does to hackbench on 224 CPUs:\n  \
                  fairground compare --machine spr-8480-2s --patch tg-load-avg-ratelimit \
                  -- hackbench --pipe -g 16\n\n\
                  Exit codes: 0 done, 1 a --fail-on condition was met, 2 an error."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload, or a scenario file, on a machine
    Run(RunArgs),
    /// Run a workload with and without a change, and say what the change does
    Compare(CompareArgs),
    /// Run all combinations of some settings, and say which meets a target (docs/cpu-limits.md)
    Sweep(crate::sweep::args::SweepArgs),
    /// Simulate what was published about five scheduler changes, and show both tables
    Reproduce(crate::reproduce::ReproduceArgs),
    /// Run a recorded trace again, on the machine it is from and on another one (docs/replay.md)
    Replay(crate::replay::args::ReplayArgs),
    /// Hold the simulator against recordings of a real kernel (docs/truth.md)
    Truth(crate::truth::args::TruthArgs),
    /// Measure this computer and write a machine file of it (docs/calibrate.md)
    Calibrate(crate::calibrate::CalibrateArgs),
    /// Show what can be named on the command line
    List(ListArgs),
    /// Write a completion script for a shell to standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Cli {
    /// The command line, with help that says where `compare` takes more of a common option than
    /// others, and where `replay` takes none or has another default.
    pub fn whole() -> clap::Command {
        let compare = |compare: clap::Command| {
            compare
                .mut_arg("machine", |machine| {
                    machine.help(
                        "Machines: names of `list machines`, machine files, or output of `lstopo \
                         --of xml`, with commas between them; or `all` that are built in",
                    )
                })
                .mut_arg("cpus", |cpus| {
                    cpus.help("Use only N CPUs of it, in whole cores; several with commas")
                })
                .mut_arg("set", |set| {
                    set.help(
                        "Set a decision of `list decisions` on the patch's side, after the \
                         patches, or write a file of a cgroup, e.g. /web/cpu.max=40ms/100ms \
                         [repeatable]",
                    )
                })
        };
        let replay = |replay: clap::Command| {
            replay
                .mut_arg("seeds", |seeds| {
                    seeds.help(
                        "Replay with the seeds 1 to N on both sides: means, intervals and verdicts \
                         [default: 5, of a trace of 500 000 events or more 3; of a run that was \
                         exported its own seed only]",
                    )
                })
                // They are refused, with what to do instead.
                .mut_arg("duration", |duration| duration.hide(true))
                .mut_arg("warmup", |warmup| warmup.hide(true))
                .mut_arg("settled", |settled| settled.hide(true))
                .mut_arg("beside", |beside| beside.hide(true))
                .mut_arg("seed", |seed| seed.help("Replay with this seed only"))
                .mut_arg("profile", |profile| {
                    profile.help(
                        "Kernel version of the what-if: a name of `list profiles` [default: that \
                         of the recording]",
                    )
                })
        };
        Self::command()
            .mut_subcommand("compare", compare)
            .mut_subcommand("replay", replay)
    }

    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// What clap says of them; help that was asked for is one of these.
    pub fn read() -> Result<Self, clap::Error> {
        let mut command = Self::whole();
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Self::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
    }
}

impl Command {
    /// Whether it may simulate for long.
    pub fn simulates(&self) -> bool {
        !matches!(
            self,
            Self::List(_) | Self::Calibrate(_) | Self::Completions { .. }
        )
    }
}

/// `fairground run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A scenario: TOML (docs/scenario.md), or JSON of rt-app
    #[arg(value_name = "SCENARIO", conflicts_with = "workload")]
    pub scenario: Option<PathBuf>,
    #[command(flatten)]
    pub what: What,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub most: Most,
    /// Write the first seed's tracepoints: .pftrace (Perfetto), .txt (perf script), .jsonl, .csv;
    /// .folded (time by stack); .schedstat, .debug (the kernel's files at one moment)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// With --trace FILE.schedstat or FILE.debug: when, e.g. 12.5ms [default: at the end]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "trace")]
    pub at: Option<u64>,
    /// Instead of results: why this task (name or thread id) runs where and when it does, e.g.
    /// hackbench@1.5ms; of the first seed
    #[arg(long, value_name = "TASK@TIME", value_parser = Asked::parse,
          conflicts_with_all = ["trace", "json", "csv", "report", "lines", "functions", "slow",
                                "quiet"])]
    pub explain: Option<Asked>,
    /// The benchmark's command line, as people type it
    #[arg(last = true, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
}

/// `fairground compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "For example, on which machines a change shows, and from how many CPUs on:\n  \
    fairground compare --machine spr-8480-2s,genoa-9654-2s --cpus 16,64,192 \\\n    \
    --patch tg-load-avg-ratelimit -- hackbench --pipe --threads -g 16 -l 20"
)]
pub struct CompareArgs {
    /// One scenario, or two results saved with --json: base and patch
    #[arg(value_name = "FILE", num_args = 0..=2, conflicts_with = "workload")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub what: What,
    /// Set a decision, or a file of a cgroup, of base only [repeatable]
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub base: Vec<Setting>,
    /// Profile of base [default: that of patch]
    #[arg(long, value_name = "PROFILE")]
    pub base_profile: Option<String>,
    /// End with exit code 1 if METRIC>N% or METRIC<N% (the change), METRIC:worse or METRIC:better
    /// (the verdict), METRIC>N or METRIC<N (what patch has, e.g. 'web.latency_us.p99>20ms'; also
    /// >= and <=) [repeatable]
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<String>,
    /// Instead of a workload: all those that a configuration of MMTests or a job of LKP stands for
    /// on the machine, SUITE/NAME or SUITE/NAME/TEST of `list configs` (docs/configs.md)
    /// [repeatable]
    #[arg(long, value_name = "CONFIG", conflicts_with_all = ["files", "workload"])]
    pub config: Vec<String>,
    /// With --config: the whole series of counts, not a few of them
    #[arg(long)]
    pub whole: bool,
    /// With several machines, numbers of CPUs or workloads: what the verdicts are about, a metric
    /// of `list metrics` [repeatable; default: of a service its median, 99th percentile and rate;
    /// else the workload's own throughput; else its first metric with a better direction; else
    /// wakeup_latency_us.p99]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub most: Most,
    /// The benchmark's command line, as people type it; several with `--` between them
    #[arg(last = true, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
}

/// `fairground list`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct ListArgs {
    /// What to list
    pub what: Listing,
    /// With `configs`: the workloads on this machine
    #[arg(long, value_name = "MACHINE")]
    pub machine: Option<String>,
    /// With --machine: on N CPUs of it
    #[arg(long, value_name = "N", requires = "machine")]
    pub cpus: Option<usize>,
    /// With --machine: the whole series of counts, not a few of them
    #[arg(long, requires = "machine")]
    pub whole: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Machines that are compiled in
    Machines,
    /// Benchmarks with a model
    Workloads,
    /// Configurations of MMTests and jobs of LKP, and the workloads that they stand for
    Configs,
    /// Published changes and what they set
    Patches,
    /// Kernel versions
    Profiles,
    /// What is measured
    Metrics,
    /// Every switch of the scheduler
    Decisions,
}

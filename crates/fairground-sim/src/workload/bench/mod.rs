//! Models of benchmarks, named by the command lines that people type. What each one models, and
//! from which source, is in `docs/workloads/`.
//!
//! [`Workload::from_argv`] finds the tool and gives its arguments to a clap parser; a tool turns
//! its options into a [`Workload`].
mod common;
mod cyclictest;
mod ebizzy;
mod hackbench;
mod hogs;
mod netperf;
mod netperf_args;
mod perf;
mod perf_args;
mod perf_futex;
mod perf_mem;
mod prefix;
mod schbench;
mod sleepers;
mod sysbench;
mod sysbench_args;
mod sysbench_frame;
mod sysbench_oltp;

use super::{nearest::nearest, program::Workload};
use clap::{Parser, error::ContextKind, error::ContextValue, error::ErrorKind};
pub(super) use common::SESSION;

/// What a workload has to know of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Env {
    /// Number of CPUs.
    pub cpus: u32,
}

/// A workload that has a name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// First words of its command line ("perf bench sched pipe").
    pub name: &'static str,
    /// Its options, none of which is required. Those of cgroups that every workload has are left
    /// out, and those that change nothing here; `--help` tells them all.
    pub synopsis: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// The option that says how long it runs, or how much it does.
    pub length: &'static str,
    /// The option for a warm-up, if it has one.
    pub warmup: Option<&'static str>,
    /// Options that decide what it measures.
    forms: &'static [&'static str],
    parse: fn(&[String], Env) -> Result<Workload, Error>,
}

impl Known {
    /// The one that a command line begins with, behind `taskset` and the like.
    #[must_use]
    pub fn of(argv: &[String]) -> Option<&'static Self> {
        let (_, argv) = prefix::split(argv).ok()?;
        let given = |known: &&Self| {
            let words = known.name.split(' ');
            words.clone().count() <= argv.len() && words.zip(&argv).all(|(word, arg)| word == arg)
        };
        Workload::known().iter().find(given)
    }

    /// Name of the tasks of a server that somebody else has started.
    fn server(&self) -> &'static str {
        match self.name {
            "netperf" => "netserver",
            "sysbench oltp_read_only" => "postgres",
            _ => "",
        }
    }
}

/// Why a command line is no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such tool.
    #[error("unknown workload '{given}'; {}", instead(.nearest))]
    Unknown {
        /// What was typed.
        given: String,
        /// A known name that is like it.
        nearest: Option<String>,
    },
    /// Its options are wrong.
    #[error("{tool}: {message}")]
    Options {
        /// The tool.
        tool: &'static str,
        /// What is wrong, with the nearest known option or the expected values.
        message: String,
    },
    /// No error: `--help` was asked for, and this is the answer.
    #[error("{0}")]
    Help(String),
}

/// The forms of a workload that always measures the same.
const ONE: &[&str] = &[""];

static KNOWN: [Known; 16] = [
    Known {
        name: "hackbench",
        synopsis: "[-p] [-s BYTES] [-l LOOPS] [-g GROUPS] [-f FDS] [-T|-P] [--tree D:W]",
        what: "groups of senders and receivers; every sender writes to every receiver of its group",
        length: "-l LOOPS",
        warmup: None,
        forms: ONE,
        parse: hackbench::parse,
    },
    Known {
        name: "perf bench sched pipe",
        synopsis: "[-l LOOPS] [-T] [--format simple] [--tree D:W]",
        what: "two tasks pass a word back and forth over two pipes",
        length: "-l LOOPS",
        warmup: None,
        forms: ONE,
        parse: perf::parse_pipe,
    },
    Known {
        name: "perf bench sched messaging",
        synopsis: "[-g GROUPS] [-l LOOPS] [-p] [-t] [--format simple] [--tree D:W]",
        what: "hackbench as it is built into perf",
        length: "-l LOOPS",
        warmup: None,
        forms: ONE,
        parse: perf::parse_messaging,
    },
    Known {
        name: "netperf",
        synopsis: "[-t TEST] [-l SECONDS] [-r REQ,RESP] [-m BYTES] [-M BYTES] [--connected] \
                   [--remote-connected] [--pairs N] [--warmup TIME] [--tree D:W]",
        what: "pairs of client and server over the loopback interface: UDP_RR, TCP_STREAM, ...",
        length: "-l SECONDS",
        warmup: Some("--warmup TIME"),
        forms: &netperf::FORMS,
        parse: netperf::parse,
    },
    Known {
        name: "perf bench futex wake",
        synopsis: "[-t THREADS] [-w NWAKES] [-s] [-S] [-r REPEATS] [--format simple] [--tree D:W]",
        what: "threads block on one futex and are woken a few at a time",
        length: "-r REPEATS",
        warmup: None,
        forms: ONE,
        parse: perf_futex::parse_wake,
    },
    Known {
        name: "perf bench mem memset",
        synopsis: "[-s SIZE] [-l LOOPS] [-f default] [--format simple] [--tree D:W]",
        what: "one process fills a buffer; user space only",
        length: "-l LOOPS",
        warmup: None,
        forms: ONE,
        parse: perf_mem::parse_memset,
    },
    Known {
        name: "sysbench threads",
        synopsis: "[--threads=1] [--thread-yields=1000] [--thread-locks=8] [--events=0] \
                   [--time=10] [--percentile=95] [--tree D:W]",
        what: "threads take turns with few mutexes and yield while they hold one",
        length: "--time=SECONDS",
        warmup: None,
        forms: ONE,
        parse: sysbench::parse_threads,
    },
    Known {
        name: "sysbench mutex",
        synopsis: "[--threads=1] [--mutex-num=4096] [--mutex-locks=50000] [--mutex-loops=10000] \
                   [--events=0] [--time=10] [--percentile=95] [--tree D:W]",
        what: "each thread locks random mutexes, with an empty loop before each lock",
        length: "--time=SECONDS",
        warmup: None,
        forms: ONE,
        parse: sysbench::parse_mutex,
    },
    Known {
        name: "sysbench cpu",
        synopsis: "[--threads=1] [--cpu-max-prime=10000] [--events=0] [--time=10] \
                   [--percentile=95] [--tree D:W]",
        what: "threads look for prime numbers; user space only",
        length: "--time=SECONDS",
        warmup: None,
        forms: ONE,
        parse: sysbench::parse_cpu,
    },
    Known {
        name: "sysbench memory",
        synopsis: "[--threads=1] [--memory-block-size=1K] [--memory-total-size=100G] \
                   [--memory-oper=write] [--memory-scope=global] \
                   [--memory-access-mode=seq] [--events=0] [--time=10] [--percentile=95] \
                   [--tree D:W]",
        what: "threads read or write a block over and over; user space only",
        length: "--time=SECONDS",
        warmup: None,
        forms: ONE,
        parse: sysbench::parse_memory,
    },
    Known {
        name: "ebizzy",
        synopsis: "[-t THREADS] [-S SECONDS] [-n CHUNKS] [-s BYTES] [-l] [-z] [--tree D:W]",
        what: "threads copy chunks of memory and search in the copy; user space only",
        length: "-S SECONDS",
        warmup: None,
        forms: ONE,
        parse: ebizzy::parse,
    },
    Known {
        name: "sysbench oltp_read_only",
        synopsis: "[--threads=1] [--time=SECONDS] [--tables=1] [--table-size=10000] \
                   [--point-selects=10] [--range-selects=on] [--range-size=100] \
                   [--simple-ranges=1] [--sum-ranges=1] [--order-ranges=1] [--distinct-ranges=1] \
                   [--skip-trx=off] [--percentile=95] [--warmup TIME] [--tree D:W]",
        what: "read-only transactions against PostgreSQL on the same machine",
        length: "--time=SECONDS",
        warmup: Some("--warmup TIME"),
        forms: ONE,
        parse: sysbench_oltp::parse,
    },
    Known {
        name: "schbench",
        synopsis: "[-m N] [-t N] [-r SECONDS] [-w SECONDS] [-n OPS] [-F KIB] [-s USEC] [-L] \
                   [--tree D:W]",
        what: "message threads hand requests to workers by futex, which sleep and compute",
        length: "-r SECONDS",
        warmup: Some("-w SECONDS"),
        forms: ONE,
        parse: schbench::parse,
    },
    Known {
        name: "cyclictest",
        synopsis: "[-t [NUM]] [-p PRIO] [-i USEC] [-d USEC] [-l LOOPS] [-D TIME] [-a [CPUS]] [-S] \
                   [--policy NAME] [--priospread] [--laptop] [-q] [--tree D:W]",
        what: "threads sleep until a point in time, and measure how much later they run",
        length: "-D TIME",
        warmup: None,
        forms: ONE,
        parse: cyclictest::parse,
    },
    Known {
        name: "hogs",
        synopsis: "[--tasks N] [--duration 1s] [--warmup 0] [--nice N,..] [--weight W,..] \
                   [--tree D:W]",
        what: "tasks that compute all the time",
        length: "--duration TIME",
        warmup: Some("--warmup TIME"),
        forms: ONE,
        parse: hogs::parse,
    },
    Known {
        name: "sleepers",
        synopsis: "[--tasks N] [--period 1ms] [--run 20us] [--duration 1s] [--warmup 0] \
                   [--in-phase] [--nice N,..] [--working-set SIZE] [--weight W,..] [--tree D:W]",
        what: "tasks that wake up by a periodic timer, compute a little and sleep again",
        length: "--duration TIME",
        warmup: Some("--warmup TIME"),
        forms: &["", "--working-set 64KiB"],
        parse: sleepers::parse,
    },
];

impl Known {
    /// Command lines that have, between them, all that it measures.
    pub fn forms(&self) -> impl Iterator<Item = String> {
        let line = |options: &&str| format!("{} {options}", self.name).trim_end().to_owned();
        self.forms.iter().map(line)
    }
}

impl Workload {
    /// All workloads that have a name.
    pub fn known() -> &'static [Known] {
        &KNOWN
    }

    /// Makes a workload from the command line of a known benchmark.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, [`Error::Options`] for options; [`Error::Help`] if help was
    /// asked for.
    pub fn from_argv<S: AsRef<str>>(argv: &[S], env: &Env) -> Result<Self, Error> {
        let argv: Vec<String> = argv.iter().map(|a| a.as_ref().to_owned()).collect();
        let (prefix, argv) = prefix::split(&argv)?;
        let (argv, notes) = in_order(argv)?;
        let is_it = |k: &&Known| {
            let words = k.name.split(' ').count();
            argv.len() >= words
                && k.name
                    .split(' ')
                    .eq(argv[..words].iter().map(String::as_str))
        };
        let known = KNOWN.iter().find(is_it).ok_or_else(|| unknown(&argv))?;
        let mut workload = (known.parse)(&argv, *env)?;
        workload.notes.splice(0..0, notes);
        prefix.apply(&mut workload, known.server(), env.cpus)?;
        debug_assert_eq!(workload.validate(), Ok(()));
        Ok(workload)
    }
}

/// The words of the tool's name in front, options by the names that they have now, and what to say
/// about those that are left out.
fn in_order(argv: Vec<String>) -> Result<(Vec<String>, Vec<String>), Error> {
    let word = |i: usize| argv.get(i).map_or("", String::as_str);
    match (word(0), word(1)) {
        ("sysbench", _) => Ok(sysbench_args::in_order(&argv)),
        ("perf", "bench") => Ok((perf_args::in_order(argv)?, Vec::new())),
        _ => Ok((argv, Vec::new())),
    }
}

fn unknown(argv: &[String]) -> Error {
    let words = |n: usize| {
        argv.iter()
            .take(n)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let given = match argv.first().map(String::as_str) {
        Some("perf") => words(4),
        Some("sysbench") => words(2),
        _ => words(1),
    };
    let nearest = nearest(&given, KNOWN.iter().map(|k| k.name)).map(str::to_owned);
    Error::Unknown { given, nearest }
}

/// What to write instead of a workload that is not known.
fn instead(nearest: &Option<String>) -> String {
    let all = "`fairground list workloads` shows all";
    match nearest {
        Some(name) => format!("did you mean '{name}'? {all}"),
        None => format!("{all}, and a scenario file can describe others"),
    }
}

/// Parses the options of `tool`, whose name takes the first words of `argv`. As in the tools, the
/// last of an option that is given twice holds, and the begin of a long option is enough where it
/// is that of no other (`getopt_long`, but not sysbench).
fn options<P: Parser>(tool: &'static str, argv: &[String]) -> Result<P, Error> {
    let rest = argv.iter().skip(tool.split(' ').count()).cloned();
    let all = std::iter::once(tool.to_owned()).chain(rest);
    let command = P::command()
        .args_override_self(true)
        .infer_long_args(!tool.starts_with("sysbench"));
    let parsed = command.try_get_matches_from(all);
    let parsed = parsed.and_then(|found| P::from_arg_matches(&found));
    parsed.map_err(|e| match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Error::Help(e.to_string()),
        kind => Error::Options {
            tool,
            message: sentence(&e, kind),
        },
    })
}

/// One sentence from an error of clap, whose own text has many lines.
fn sentence(e: &clap::Error, kind: ErrorKind) -> String {
    let text = |k: ContextKind| match e.get(k) {
        Some(ContextValue::String(s)) => Some(s.clone()),
        Some(ContextValue::Strings(s)) => Some(s.join(", ")),
        _ => None,
    };
    let arg = text(ContextKind::InvalidArg).unwrap_or_default();
    match kind {
        ErrorKind::UnknownArgument if !arg.starts_with('-') => {
            format!("unexpected argument '{arg}'")
        }
        ErrorKind::UnknownArgument => {
            let hint = text(ContextKind::SuggestedArg);
            let hint = hint
                .map(|s| format!("; did you mean '{s}'?"))
                .unwrap_or_default();
            format!("unknown option '{arg}'{hint}")
        }
        ErrorKind::MissingRequiredArgument => format!("{arg} is required"),
        _ => {
            let all = e.to_string();
            let first = all.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            let expected = match (
                text(ContextKind::SuggestedValue),
                text(ContextKind::ValidValue),
            ) {
                (Some(near), _) => format!("; did you mean '{near}'?"),
                (None, Some(values)) if !values.is_empty() => format!("; expected '{values}'"),
                _ => String::new(),
            };
            format!("{first}{expected}")
        }
    }
}

/// An error about a value that only became wrong together with others.
fn bad(tool: &'static str, message: impl Into<String>) -> Error {
    Error::Options {
        tool,
        message: message.into(),
    }
}

#[cfg(test)]
mod tests;

//! Options that say what is simulated: all that can change a result.

use clap::Args;
use fairground_sim::spec::Length;
use fairground_sim::truth::sched_features::decision_of;
use fairground_sim::workload::duration::parse_length_ns;

use crate::asked::measured;
use crate::failure::Failure;

/// What is simulated: everything here can change the result.
#[derive(Clone, Debug, Default, Args)]
pub struct What {
    /// Machine: a name of `list machines`, a machine file, or output of `lstopo --of xml`
    #[arg(long, value_name = "MACHINE")]
    pub machine: Vec<String>,
    /// Use only N CPUs of it, in whole cores
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Let CPUs enter no deeper idle state than this one of the machine's, e.g. C1, as the kernel's
    /// `max_cstate` does
    #[arg(long, value_name = "STATE")]
    pub max_idle: Option<String>,
    /// Kernel version: a name of `list profiles` [default: linux-6.18]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Switch a published change on: a name of `list patches` [repeatable]
    #[arg(long, value_name = "PATCH")]
    pub patch: Vec<String>,
    /// Set a decision of `list decisions`, after the patches, or write a file of a cgroup, e.g.
    /// /web/cpu.max=40ms/100ms [repeatable]
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<Setting>,
    /// Run another benchmark beside it, in a session of its own, e.g. 'hackbench -g 4 -l 100000';
    /// the run lasts as long as the first one does [repeatable]
    #[arg(long, value_name = "WORKLOAD")]
    pub beside: Vec<String>,
    /// Measure a scenario for TIME, e.g. 30s, whatever its file says; a benchmark has an option of
    /// its own, behind `--`
    #[arg(long, value_name = "TIME", value_parser = measured)]
    pub duration: Option<u64>,
    /// Run a scenario for TIME before measuring, e.g. 500ms, whatever its file says
    #[arg(long, value_name = "TIME", value_parser = parse_length_ns)]
    pub warmup: Option<u64>,
    /// Let load balancing settle during the warm-up, except in its last TIME, e.g. 10ms
    /// (docs/settled-start.md)
    #[arg(long, value_name = "TIME", value_parser = parse_length_ns)]
    pub settled: Option<u64>,
    /// Waiting for quota makes a task slow if from a wake-up to its next sleep it then takes longer
    /// than TIME, e.g. 20ms [default: a tenth longer than 99 % of those take that touch no period
    /// with waiting]
    #[arg(long, value_name = "TIME", value_parser = parse_length_ns)]
    pub slow: Option<u64>,
    /// Run with the seeds 1 to N [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// Run with this seed only
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    pub seed: Option<u64>,
}

impl What {
    /// How long a scenario is to run, as far as it is said.
    pub fn length(&self) -> Length {
        Length {
            duration_ns: self.duration,
            warmup_ns: self.warmup,
        }
    }

    /// Every option, and whether it was given.
    pub fn given(&self) -> [(&'static str, bool); 13] {
        // All by name, so that a new one cannot be forgotten.
        let Self {
            machine,
            cpus,
            max_idle,
            profile,
            patch,
            set,
            beside,
            duration,
            warmup,
            settled,
            slow,
            seeds,
            seed,
        } = self;
        [
            ("--machine", !machine.is_empty()),
            ("--cpus", !cpus.is_empty()),
            ("--max-idle", max_idle.is_some()),
            ("--profile", profile.is_some()),
            ("--patch", !patch.is_empty()),
            ("--set", !set.is_empty()),
            ("--beside", !beside.is_empty()),
            ("--duration", duration.is_some()),
            ("--warmup", warmup.is_some()),
            ("--settled", settled.is_some()),
            ("--slow", slow.is_some()),
            ("--seeds", seeds.is_some()),
            ("--seed", seed.is_some()),
        ]
    }

    /// The machine that was asked for, if one was.
    ///
    /// # Errors
    /// More than one.
    pub fn machine(&self) -> Result<Option<&str>, Failure> {
        one("--machine", &self.machine).map(|found| found.map(String::as_str))
    }

    /// The number of CPUs that was asked for, if one was.
    ///
    /// # Errors
    /// More than one.
    pub fn cpus(&self) -> Result<Option<usize>, Failure> {
        one("--cpus", &self.cpus).map(|found| found.copied())
    }
}

fn one<'a, T>(option: &str, given: &'a [T]) -> Result<Option<&'a T>, Failure> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Failure::with_help(
            format!("{option} says {} things; expected one", given.len()),
            "`compare` takes several; `sweep --over` does what the others cannot",
        )),
    }
}

/// `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// A decision, or a file of a cgroup with its path; not checked yet.
    pub name: String,
    /// Its value, not checked yet.
    pub value: String,
}

/// Splits `NAME=VALUE`. The name of a group may have a `=`, but nothing that is written to its
/// files.
pub fn name_and_value(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    match name.contains('/') {
        true => text.rsplit_once('='),
        false => Some((name, value)),
    }
}

/// Reads `NAME=VALUE`.
///
/// # Errors
/// What was expected.
pub fn setting(text: &str) -> Result<Setting, String> {
    match name_and_value(text) {
        Some((name, value)) if !name.trim().is_empty() => Ok(Setting {
            name: name.trim().into(),
            value: value.trim().into(),
        }),
        _ => {
            let help = match decision_of(text.trim()) {
                Some((name, value)) => format!("; that feature is {name}={value} here"),
                None => String::new(),
            };
            let forms = "expected DECISION=VALUE, e.g. ilb_kick=always, or /GROUP/FILE=VALUE";
            Err(format!("{forms}{help}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        what: What,
    }

    #[test]
    fn a_group_may_have_an_equals_sign_in_its_name() {
        for (text, name, value) in [
            ("hz=250", "hz", "250"),
            ("/web/cpu.max=1ms/10ms", "/web/cpu.max", "1ms/10ms"),
            ("/a=b/cpu.max=1ms/10ms", "/a=b/cpu.max", "1ms/10ms"),
            ("/a/b=c/cpu.weight=20", "/a/b=c/cpu.weight", "20"),
            ("machine=dir/a=b.toml,c", "machine", "dir/a=b.toml,c"),
        ] {
            assert_eq!(name_and_value(text), Some((name, value)));
        }
        assert_eq!(name_and_value("/a/cpu.max"), None);
    }

    #[test]
    fn all_lengths_of_time_are_read_alike() {
        for (text, ns) in [
            ("20ms", 20_000_000),
            ("1m", 60_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("1d", 86_400_000_000_000),
        ] {
            let options = ["--duration", "--warmup", "--settled", "--slow"];
            let words = options.iter().flat_map(|option| [*option, text]);
            let line = Line::try_parse_from(std::iter::once("run").chain(words));
            let what = line.map(|line| line.what).expect(text);
            let all = [what.duration, what.warmup, what.settled, what.slow];
            assert_eq!(all, [Some(ns); 4], "{text}");
        }
        for bad in ["20", "1y", "fast", "-1s"] {
            for option in ["--warmup", "--settled", "--slow"] {
                let line = Line::try_parse_from(["run", &format!("{option}={bad}")]);
                assert!(line.is_err(), "{option} {bad}");
            }
        }
    }
}

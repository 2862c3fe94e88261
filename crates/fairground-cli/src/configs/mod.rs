//! Configurations of MMTests and jobs of LKP, by name: each stands for a list of workloads that
//! depends on the machine's CPUs. They are data, `configs/*.toml`, compiled in.
//!
//! | file | subject |
//! | --- | --- |
//! | `series` | the counts that a configuration goes through |
//! | `expand` | the workloads of a configuration on a machine |
//! | `list` | `fairground list configs` |

mod expand;
mod list;
mod series;

use fairground_report::nearest;
use serde::Deserialize;

use crate::failure::Failure;
pub use expand::expand;
pub use list::{Shown, about, json, taken, text};
pub use series::Shape;
use series::{Count, Series};

const SUITES: [(&str, &str); 2] = [
    ("lkp.toml", include_str!("../../configs/lkp.toml")),
    ("mmtests.toml", include_str!("../../configs/mmtests.toml")),
];

/// Configurations of one origin: a file of `configs/`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    suite: String,
    repository: String,
    #[serde(rename = "config")]
    configs: Vec<Config>,
}

/// A configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Its name in its suite; `SUITE/NAME` once it is loaded.
    pub name: String,
    /// One line.
    pub what: String,
    /// Where the file is, if not in the suite's repository.
    #[serde(default)]
    repository: String,
    /// The file that was read.
    file: String,
    /// The commit at which it was read.
    commit: String,
    /// Further files that say what its command lines are, with their commits.
    #[serde(default)]
    also: Vec<String>,
    /// How long and how often it really runs, and what else differs.
    #[serde(default)]
    runs: String,
    /// Why it is not modelled at all; then it has no tests.
    why_not: Option<String>,
    #[serde(default, rename = "test")]
    tests: Vec<Test>,
    #[serde(default)]
    not_modelled: Vec<NotModelled>,
}

/// One of a configuration's benchmarks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    name: String,
    /// The command line of the real configuration.
    real: String,
    /// The one that is simulated.
    command: String,
    /// What `{n}` goes through; one run without it.
    series: Option<Series>,
    /// The counts to take of it unless the whole was asked for, where those at equal distances
    /// would not do.
    cut: Option<Vec<Count>>,
    loops: Option<Loops>,
}

/// `{loops}` of a hackbench.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Loops {
    /// Messages of all groups in a run.
    messages: u32,
    /// But at least so many loops, or starting would be most of the run.
    least: u32,
}

/// A benchmark of a configuration that has no model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotModelled {
    name: String,
    why: String,
}

/// A configuration as it was asked for: all of it, or one of its tests.
#[derive(Clone, Debug)]
pub struct Named {
    config: Config,
    test: Option<String>,
}

/// All configurations, suite by suite.
///
/// # Errors
/// A file that is not as it should be; a test sees to it that none is.
pub fn all() -> Result<Vec<Config>, Failure> {
    let mut all = Vec::new();
    for (file, text) in SUITES {
        let suite: Suite = toml::from_str(text)
            .map_err(|error| Failure::new(format!("configs/{file}: {error}")))?;
        for mut config in suite.configs {
            config.name = format!("{}/{}", suite.suite, config.name);
            if config.repository.is_empty() {
                config.repository.clone_from(&suite.repository);
            }
            all.push(config);
        }
    }
    Ok(all)
}

/// `SUITE/NAME` or `SUITE/NAME/TEST`. `config-` before the name, which MMTests' files have, may be
/// there, and the first word of the name may be left out where one configuration only is meant.
///
/// # Errors
/// A name that none has, with the nearest; one that has no model, with the reason.
pub fn find(asked: &str) -> Result<Named, Failure> {
    let all = all()?;
    let plain = asked.replacen("/config-", "/", 1);
    let exact = |name: &str| all.iter().find(|config| config.name == name);
    if let Some(config) = exact(&plain).or_else(|| only(&all, &plain)) {
        return named(config, None);
    }
    if let Some((name, test)) = plain.rsplit_once('/')
        && let Some(config) = exact(name).or_else(|| only(&all, name))
    {
        return named(config, Some(test));
    }
    let names = all.iter().map(|config| config.name.as_str());
    Err(Failure::unknown("configuration", asked, names, "configs"))
}

/// The one whose name lacks but its first word, as `scheduler-` or `workload-`.
fn only<'a>(all: &'a [Config], asked: &str) -> Option<&'a Config> {
    let (suite, short) = asked.split_once('/')?;
    let mut fits = all.iter().filter(|config| {
        let name = config.name.strip_prefix(suite);
        let name = name.and_then(|name| name.strip_prefix('/'));
        name.and_then(|name| name.split_once('-'))
            .is_some_and(|(_, rest)| rest == short)
    });
    fits.next().filter(|_| fits.next().is_none())
}

fn named(config: &Config, test: Option<&str>) -> Result<Named, Failure> {
    let refused = |name: &str, why: &str| {
        Err(Failure::with_help(
            format!("`{name}` is not modelled: {why}"),
            "`fairground list configs` shows what is",
        ))
    };
    if let Some(why) = &config.why_not {
        return refused(&config.name, why);
    }
    if let Some(test) = test
        && config.tests.iter().all(|known| known.name != test)
    {
        let full = format!("{}/{test}", config.name);
        let is_it = |missing: &&NotModelled| missing.name.split(", ").any(|name| name == test);
        if let Some(missing) = config.not_modelled.iter().find(is_it) {
            return refused(&full, &missing.why);
        }
        let known: Vec<&str> = config.tests.iter().map(|known| &*known.name).collect();
        let help = match nearest(test, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? it has {}", known.join(", ")),
            None => format!("it has {}", known.join(", ")),
        };
        let message = format!("`{}` has no test `{test}`", config.name);
        return Err(Failure::with_help(message, help));
    }
    Ok(Named {
        config: config.clone(),
        test: test.map(String::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(asked: &str) -> String {
        find(asked).map_or_else(|failure| failure.text(false), |_| "found".into())
    }

    #[test]
    fn names_are_found_as_people_write_them() {
        for asked in [
            "mmtests/scheduler-unbound",
            "mmtests/config-scheduler-unbound",
            "mmtests/unbound",
            "mmtests/hackbench-process-pipes",
            "mmtests/scheduler-unbound/hackbench-thread-sockets",
            "lkp/hackbench",
            "lkp/hackbench/threads-socket",
        ] {
            assert_eq!(message(asked), "found", "{asked}");
        }
    }

    #[test]
    fn others_are_refused_with_the_nearest_name_or_the_reason() {
        for (asked, part) in [
            ("mmtests/scheduler-unbond", "mmtests/scheduler-unbound"),
            ("mmtests/workload-hackbench-proces-pipes", "process-pipes"),
            ("lkp/hackbensh", "lkp/hackbench"),
            ("lkp/hackbench/thread-socket", "threads-socket"),
            ("mmtests/network-tbench", "not modelled: no model of tbench"),
            ("lkp/perf-bench-futex/lock-pi", "no priority inheritance"),
            (
                "mmtests/workload-futexbench/futexbench-requeue",
                "no requeue",
            ),
        ] {
            let message = message(asked);
            assert!(message.contains(part), "{asked}: {message}");
        }
    }

    #[test]
    fn each_has_a_source_and_either_tests_or_a_reason() {
        let all = all().ok().expect("the files are as they should be");
        for (i, config) in all.iter().enumerate() {
            let name = &config.name;
            assert!(all[..i].iter().all(|other| other.name != *name), "{name}");
            assert!(config.commit.len() >= 12, "{name}");
            assert!(config.repository.starts_with("https://"), "{name}");
            assert_eq!(config.tests.is_empty(), config.why_not.is_some(), "{name}");
            assert_eq!(config.runs.is_empty(), config.why_not.is_some(), "{name}");
        }
    }
}

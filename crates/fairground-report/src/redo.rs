//! What one needs to get a result again, and what to know before believing it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the simulated machine leaves out, in every run.
pub const NOT_MODELLED: &[&str] = &[
    "frequency",
    "power",
    "memory bandwidth",
    "application lock semantics",
    "TLB",
    "device interrupts",
];

/// How to get the same bytes again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redo {
    /// The command line, see [`redo_command`].
    pub command: String,
    /// The seeds, in the order of the runs.
    pub seeds: Vec<u64>,
    /// Those of patch, where two saved results have others; `seeds` is base's then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patch_seeds: Vec<u64>,
    /// Figures of the machine file that nobody measured.
    pub assumed: Vec<AssumedFigure>,
    /// What the simulation leaves out; usually [`NOT_MODELLED`].
    pub not_modelled: Vec<String>,
    /// What else decides the result and is not in its setup: `scenario`, the hash of its text,
    /// `sources`, that of the engine and the simulator, and `max_idle`, `settled` and `slow`, the
    /// options of these names, with their units. Two results that differ here are of different
    /// things.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
}

/// A figure of the machine file that is an estimate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssumedFigure {
    /// Where it is in the machine file, e.g. `cache[2].latency`.
    pub key: String,
    /// Its value with the unit, e.g. `3.5 ns`.
    pub value: String,
}

impl Redo {
    /// The usual one: [`NOT_MODELLED`], and the command line without what cannot change results.
    pub fn new(argv: &[String], seeds: Vec<u64>, assumed: Vec<AssumedFigure>) -> Self {
        Self {
            command: redo_command(argv),
            seeds,
            patch_seeds: Vec::new(),
            assumed,
            not_modelled: NOT_MODELLED.iter().map(|&s| s.into()).collect(),
            conditions: BTreeMap::new(),
        }
    }

    /// What the simulation leaves out, in words.
    pub fn not_modelled_text(&self) -> Option<String> {
        let all = self.not_modelled.join(", ");
        (!all.is_empty()).then(|| format!("not modelled: {all}"))
    }
}

/// A command line that repeats the result, quoted for a shell.
///
/// Options before `--` that say where results go, how much of them is shown or how many threads
/// compute them (`--jobs`, `-j`, `--json`, `--csv`, `--report`, `--trace`, `--at`, `--export`,
/// `--export-recording`, `--save`, `--threads`, `--keep`, `--lines`, `--functions`, `--color`,
/// `--fail-on`, `--quiet`, `-q`, `--times`, `--no-progress`) are left out: they cannot change a
/// result, and a result must be the same bytes with any of them. `argv[0]` is written as
/// `fairground`.
pub fn redo_command(argv: &[String]) -> String {
    const WITH_VALUE: &[&str] = &[
        "--jobs",
        "-j",
        "--json",
        "--csv",
        "--report",
        "--trace",
        "--at",
        "--export",
        "--export-recording",
        "--save",
        "--threads",
        "--keep",
        "--lines",
        "--functions",
        "--color",
        "--fail-on",
    ];
    const ALONE: &[&str] = &["--quiet", "-q", "--times", "--no-progress"];
    let mut words = vec!["fairground".to_string()];
    let mut rest = argv.iter().skip(1);
    while let Some(word) = rest.next() {
        if word == "--" {
            words.push(word.clone());
            break;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        // Also in one word: -j4, -qj4, -q.
        let short = word
            .strip_prefix('-')
            .map(|w| w.trim_start_matches('q'))
            .filter(|_| !word.starts_with("--") && word.len() > 1);
        let jobs = short.map(|w| w.strip_prefix('j').map(|n| n.trim_start_matches('=')));
        let short_jobs = match jobs {
            Some(Some("")) if word.len() > 2 => {
                rest.next();
                true
            }
            Some(Some(n)) => n.parse::<u32>().is_ok(),
            Some(None) => short == Some(""),
            None => false,
        };
        if WITH_VALUE.contains(&word.as_str()) {
            rest.next();
        } else if !WITH_VALUE.contains(&name) && !ALONE.contains(&name) && !short_jobs {
            words.push(quote(word));
        }
    }
    words.extend(rest.map(|word| quote(word)));
    words.join(" ")
}

/// Quotes for a POSIX shell where needed.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:%@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|&w| w.into()).collect()
    }

    #[test]
    fn leaves_out_only_what_cannot_change_the_result() {
        let argv = words(&[
            "target/release/fairground",
            "compare",
            "--jobs",
            "2",
            "--machine",
            "m",
            "-j4",
            "--json=out.json",
            "-q",
            "-qj1",
            "-qj",
            "7",
            "-qq",
            "--seeds",
            "5",
            "--",
            "hackbench",
            "-q",
            "--json",
            "x y",
        ]);
        assert_eq!(
            redo_command(&argv),
            "fairground compare --machine m --seeds 5 -- hackbench -q --json 'x y'"
        );
    }

    #[test]
    fn quotes_what_a_shell_would_take_apart() {
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("cpu.max=20ms/100ms,5%"), "cpu.max=20ms/100ms,5%");
    }
}

//! The simulator held against recordings of a real kernel in the format kernel-truth.
//!
//! | file | subject |
//! | --- | --- |
//! | `case` | `case.json`: the workload |
//! | `recorded` | `result.json`: what was measured |
//! | `into_workload` | from a case to a workload, with its start times |
//! | `simulate` | one run on the simulated machine |
//! | `measure` | from tracepoints to the format's metrics |
//! | `tolerance` | how far apart is near enough, and why |
//! | `numbers` | the numbers of a run, each under the place where it is compared |
//! | `row` | a row and its verdict |
//! | `compare` | recorded beside simulated |
//!
//! `docs/truth.md` describes the format, `docs/fidelity.md` what is missed and why.

pub mod case;
pub mod compare;
pub mod into_workload;
pub mod measure;
mod numbers;
pub mod recorded;
pub mod row;
pub mod simulate;
pub mod tolerance;

use std::path::Path;

pub use case::Case;
pub use compare::compare;
pub use recorded::Recorded;
pub use row::{Row, Sample, Tally, Verdict};
pub use simulate::Bench;

use crate::machine_file::Machine;

/// Why a case was not run.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file says something that is not in the format.
    #[error("{path}: {what}")]
    Format {
        /// The file.
        path: String,
        /// What, with its place.
        what: String,
    },
    /// There is no such case.
    #[error("no case in {dir} fits '{glob}'")]
    NoCase {
        /// The directory.
        dir: String,
        /// What was asked for.
        glob: String,
    },
}

/// A case with its recording.
#[derive(Clone, Debug)]
pub struct Truth {
    /// The workload.
    pub case: Case,
    /// What the kernel did.
    pub recorded: Recorded,
}

/// Names of the cases below `dir/cases` that fit `glob` (`*` and `?`), sorted.
///
/// # Errors
/// When the directory cannot be read or nothing fits.
pub fn names(dir: &Path, glob: &str) -> Result<Vec<String>, TruthError> {
    let cases = dir.join("cases");
    let read = |source| TruthError::Read {
        path: cases.display().to_string(),
        source,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&cases).map_err(read)? {
        let name = entry
            .map_err(read)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if fits(glob.as_bytes(), name.as_bytes()) {
            names.push(name);
        }
    }
    names.sort();
    if names.is_empty() {
        return Err(TruthError::NoCase {
            dir: dir.display().to_string(),
            glob: glob.to_string(),
        });
    }
    Ok(names)
}

/// Reads the case `name` below `dir`.
///
/// # Errors
/// When a file is missing or not in the format.
pub fn load(dir: &Path, name: &str) -> Result<Truth, TruthError> {
    let read = |file: &str| {
        let path = dir.join("cases").join(name).join(file);
        let shown = path.display().to_string();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok((shown, text)),
            Err(source) => Err(TruthError::Read {
                path: shown,
                source,
            }),
        }
    };
    let (case_path, case) = read("case.json")?;
    let (recorded_path, recorded) = read("result.json")?;
    Truth::parse(&case, &recorded).map_err(|(of_case, what)| TruthError::Format {
        path: if of_case { case_path } else { recorded_path },
        what,
    })
}

impl Truth {
    /// From the texts of `case.json` and `result.json`.
    ///
    /// # Errors
    /// Whether it is the case that is wrong, and what, with its place.
    pub fn parse(case: &str, recorded: &str) -> Result<Self, (bool, String)> {
        Ok(Self {
            case: Case::parse(case).map_err(|e| (true, e))?,
            recorded: Recorded::parse(recorded).map_err(|e| (false, e))?,
        })
    }
}

/// Runs a case with each seed and compares. The numbers of a benchmark case (`command`) are not
/// compared yet: each gives a row that says so.
///
/// # Errors
/// A sentence that says what in the case cannot be run.
pub fn check(truth: &Truth, machine: &Machine, seeds: &[u64]) -> Result<Vec<Row>, String> {
    if truth.case.is_benchmark() {
        return Ok(compare::benchmark_rows(&truth.case, &truth.recorded));
    }
    let edges = &truth.recorded.hist_edges_us;
    let bench = Bench::new(&truth.case, machine.clone(), edges)?;
    let simulated: Result<Vec<_>, _> = seeds.iter().map(|seed| bench.run(*seed)).collect();
    Ok(compare(&truth.case, &truth.recorded.runs, &simulated?))
}

/// Whether `text` fits a pattern with `*` (any text) and `?` (any character).
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => {
            fits(&pattern[1..], text) || (!text.is_empty() && fits(pattern, &text[1..]))
        }
        (Some(b'?'), Some(_)) => fits(&pattern[1..], &text[1..]),
        (Some(p), Some(t)) if p == t => fits(&pattern[1..], &text[1..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        assert!(fits(b"a*", b"a1-hogs") && fits(b"*", b"") && fits(b"e?-*", b"e1-quota"));
        assert!(!fits(b"a*", b"b1") && !fits(b"a?", b"a"));
    }
}

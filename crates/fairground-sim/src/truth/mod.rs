//! The simulator held against recordings of a real kernel in the format kernel-truth.
//!
//! | file | subject |
//! | --- | --- |
//! | `case` | `case.json`: the workload |
//! | `either` | its values that may be of one kind or another |
//! | `recorded` | `result.json`: what was measured |
//! | `contents` | what of a `result.json` its case cannot have |
//! | `into_workload` | from a case to a workload, with its start times |
//! | `spinning` | loops whose turns take no time |
//! | `control_files` | writes to files of groups, as the kernel takes them |
//! | `kernel` | the kernel that a case names |
//! | `limits` | numbers of a case that make no sense |
//! | `simulate` | one run on the simulated machine |
//! | `measure` | from tracepoints to the format's metrics |
//! | `tolerance` | how far apart is near enough, and why |
//! | `numbers` | the numbers of a run, each under the place where it is compared |
//! | `replay` | recorded load tracking through the engine's own functions |
//! | `row` | a row and its verdict |
//! | `reasons` | why a number is missed |
//! | `compare` | recorded beside simulated |
//! | `others` | what ran beside a case |
//! | `inputs` | cases that have set figures of the model |
//! | `benchmark` | cases that are a benchmark's command line |
//! | `traced` | what the tracer saw of benchmarks |
//! | `table` | the fidelity table |
//! | `costs` | `costs.json`: small operations without a tracer |
//!
//! `docs/truth.md` describes the format, `docs/fidelity.md` what is missed and why.

pub mod benchmark;
mod builder;
pub mod case;
pub mod compare;
mod contents;
mod control_files;
pub mod costs;
mod either;
mod fits;
pub mod inputs;
pub mod into_workload;
pub mod kernel;
mod limits;
pub mod measure;
mod numbers;
pub mod others;
mod read_case;
pub mod reasons;
pub mod recorded;
mod recorder;
pub mod replay;
pub mod row;
pub mod sched_features;
pub mod simulate;
pub mod smp;
mod spinning;
pub mod table;
pub mod tolerance;
mod traced;

use std::path::Path;

pub use case::Case;
pub use compare::compare;
pub use others::Others;
pub use recorded::Recorded;
pub use row::{Row, Sample, Tally, Verdict};
pub use simulate::Bench;

use crate::glob::fits;
use crate::limited;
use crate::machine_file::Machine;

/// Largest file of a recording, unpacked: the largest that there are have 5 MB.
pub const BYTES_MAX: u64 = 256 << 20;

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
    /// Its load tracking in a run of its own, if that was recorded.
    pub pelt: Option<replay::Files>,
}

/// Names of the cases below `dir/cases` that fit `glob` (`*` and `?`), sorted: a directory each.
/// Files beside them and hidden directories are none.
///
/// # Errors
/// When the directory cannot be read or nothing fits.
pub fn names(dir: &Path, glob: &str) -> Result<Vec<String>, TruthError> {
    let cases = dir.join("cases");
    let read = |source| TruthError::Read {
        // What was asked for, if it is that which is not there.
        path: if dir.is_dir() { &cases } else { dir }
            .display()
            .to_string(),
        source,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&cases).map_err(read)? {
        let entry = entry.map_err(read)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Through a link, too.
        if entry.path().is_dir() && !name.starts_with('.') && fits(glob, &name) {
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
        match limited::read_text(&path, BYTES_MAX) {
            Ok(text) => Ok((shown, text)),
            Err(source) => Err(TruthError::Read {
                path: shown,
                source,
            }),
        }
    };
    let (case_path, case) = read("case.json")?;
    let (recorded_path, recorded) = read("result.json")?;
    let mut truth =
        Truth::parse(&case, &recorded).map_err(|(of_case, what)| TruthError::Format {
            path: if of_case { case_path } else { recorded_path },
            what,
        })?;
    if dir
        .join("cases")
        .join(name)
        .join("run-pelt.csv.gz")
        .exists()
    {
        truth.pelt = Some(replay::Files {
            records: unpacked(dir, name, "run-pelt.csv.gz")?,
            script: unpacked(dir, name, "run-pelt.script.txt.gz")?,
            window: read("run-pelt.window.json")?.1,
        });
    }
    Ok(truth)
}

/// Whether `--case GLOB` asks for a name.
#[must_use]
pub fn asks_for(glob: &str, name: &str) -> bool {
    fits(glob, name)
}

/// The unit costs below `dir`, if they were recorded.
///
/// # Errors
/// When the file cannot be read or is not in the format.
pub fn load_costs(dir: &Path) -> Result<Option<costs::Costs>, TruthError> {
    let path = dir.join("costs.json");
    if !path.exists() {
        return Ok(None);
    }
    let shown = path.display().to_string();
    let text = limited::read_text(&path, BYTES_MAX).map_err(|source| TruthError::Read {
        path: shown.clone(),
        source,
    })?;
    let costs = costs::Costs::parse(&text);
    costs
        .map(Some)
        .map_err(|what| TruthError::Format { path: shown, what })
}

/// The text of a compressed file of a case.
fn unpacked(dir: &Path, name: &str, file: &str) -> Result<String, TruthError> {
    let path = dir.join("cases").join(name).join(file);
    let read = std::fs::File::open(&path)
        .and_then(|file| limited::text(flate2::read::MultiGzDecoder::new(file), BYTES_MAX));
    read.map_err(|source| TruthError::Read {
        path: path.display().to_string(),
        source,
    })
}

impl Truth {
    /// From the texts of `case.json` and `result.json`.
    ///
    /// # Errors
    /// Whether it is the case that is wrong, and what, with its place.
    pub fn parse(case: &str, recorded: &str) -> Result<Self, (bool, String)> {
        let case = Case::parse(case).map_err(|e| (true, e))?;
        let recorded = Recorded::parse(recorded).map_err(|e| (false, e))?;
        recorded.fits(&case).map_err(|e| (false, e))?;
        Ok(Self {
            case,
            recorded,
            pelt: None,
        })
    }
}

/// A case that can be run.
pub enum Ready<'a> {
    /// A step program.
    Steps {
        /// The simulated machine with it.
        bench: Box<Bench>,
        /// What ran beside it.
        others: Others,
        /// What was recorded.
        truth: &'a Truth,
    },
    /// A benchmark.
    Command(&'a Truth),
}

/// Makes a case ready, so that what is wrong with any of several is known before one is run.
///
/// # Errors
/// A sentence that says what in the case cannot be run.
pub fn ready<'a>(truth: &'a Truth, machine: &Machine) -> Result<Ready<'a>, String> {
    if truth.case.is_benchmark() {
        benchmark::knows(&truth.case, machine)?;
        return Ok(Ready::Command(truth));
    }
    let edges = &truth.recorded.hist_edges_us;
    let others = Others::of(&truth.case, &truth.recorded);
    let bench = Bench::new(&truth.case, &others, machine.clone(), edges)?;
    Ok(Ready::Steps {
        bench: Box::new(bench),
        others,
        truth,
    })
}

/// Runs a case with each seed and compares.
///
/// # Errors
/// A sentence that says what in the case cannot be run.
pub fn check(truth: &Truth, machine: &Machine, seeds: &[u64]) -> Result<Vec<Row>, String> {
    ready(truth, machine)?.check(machine, seeds)
}

impl Ready<'_> {
    /// Runs it with each seed and compares.
    ///
    /// # Errors
    /// A sentence that says why a run came to no end.
    pub fn check(&self, machine: &Machine, seeds: &[u64]) -> Result<Vec<Row>, String> {
        let (bench, others, truth) = match self {
            Self::Command(truth) => {
                return benchmark::check(&truth.case, &truth.recorded, machine, seeds);
            }
            Self::Steps {
                bench,
                others,
                truth,
            } => (bench, others, truth),
        };
        let simulated: Result<Vec<_>, _> = seeds.iter().map(|seed| bench.run(*seed)).collect();
        let mut rows = compare(&truth.case, &truth.recorded.runs, &simulated?);
        if others.stretch_us.is_some() {
            rows.iter_mut().for_each(skip_all_switches);
        }
        let refused = bench.refused().iter();
        rows.extend(refused.map(|(event, why)| refused_write(&truth.case.name, *event, why)));
        if let Some(files) = &truth.pelt {
            let report = replay::replay(&truth.case, files)
                .map_err(|wrong| format!("{}: {}", wrong.file, wrong.what))?;
            rows.extend(replay::rows(&truth.case.name, &report));
        }
        Ok(rows)
    }
}

/// A write that comes to nothing, as the recorder notes it.
fn refused_write(case: &str, event: usize, why: &str) -> Row {
    let reason = why.to_string();
    let metric = format!("events[{event}]");
    Row::skipped(case, &metric, "write", Sample::NONE, reason)
}

/// Where others ran as often as recorded, the sum of their switches and those of the tasks, which
/// are compared one by one, is no test.
fn skip_all_switches(row: &mut Row) {
    if row.metric.starts_with("cpus.") && row.metric.ends_with(".switches") {
        row.verdict = Verdict::Skipped;
        row.reason = Some(OTHERS_ARE_INPUT.into());
    }
}

const OTHERS_ARE_INPUT: &str =
    "how often others ran beside the case is an input; switches of the tasks are compared";

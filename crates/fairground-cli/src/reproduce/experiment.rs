//! The published tables as data: `experiments/*.toml`, compiled in.
//!
//! One file per change. A run is one row of a published table: machine, workload, load, and the
//! window of simulated time in which it is measured; its rows are what was published of it.
//! Nothing in these files is a cost: what is simulated comes from the machine files and `costs.rs`.

use fairground_report::reproduce::{Evidence, Headline, Kind, Of, Published};
use fairground_sim::spec::Scenario;
use serde::Deserialize;

use super::measure::Measure;
use crate::failure::Failure;

const FILES: [(&str, &str); 5] = [
    ("000", include_str!("../../experiments/000.toml")),
    ("001", include_str!("../../experiments/001.toml")),
    ("002", include_str!("../../experiments/002.toml")),
    ("003", include_str!("../../experiments/003.toml")),
    ("004", include_str!("../../experiments/004.toml")),
];

const SCENARIOS: [(&str, &str); 3] = [
    (
        "placement.toml",
        include_str!("../../experiments/placement.toml"),
    ),
    (
        "usleep-1000.toml",
        include_str!("../../experiments/usleep-1000.toml"),
    ),
    (
        "usleep-1000-idle-groups.toml",
        include_str!("../../experiments/usleep-1000-idle-groups.toml"),
    ),
];

/// A published change and its tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the patch.
    pub change: String,
    /// One line.
    pub title: String,
    /// Who, when, which message or commit.
    pub source: String,
    /// Kernel profile of its time.
    pub profile: String,
    /// What the publication leaves open, and what is assumed.
    #[serde(default)]
    pub unknowns: Vec<String>,
    /// What is in the publication but not compared, and why.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// What the counters say, in words.
    #[serde(default)]
    pub mechanism: String,
    /// The last part of each warm-up, before which balancing does the work of seconds; none where
    /// this is not given (docs/settled-start.md).
    pub settled: Option<String>,
    /// The runs, in the order of the tables.
    #[serde(rename = "run")]
    pub runs: Vec<RunSpec>,
    /// The headlines.
    #[serde(default)]
    pub headline: Vec<HeadlineSpec>,
}

/// One row of a table: what is simulated for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Name within the experiment.
    pub name: String,
    /// Machine file.
    pub machine: String,
    /// Only this many CPUs of it.
    pub cpus: Option<usize>,
    /// Deepest idle state, where not that of the machine.
    pub max_idle: Option<String>,
    /// Bytes of a cache line, where not those of the machine.
    pub line_bytes: Option<u32>,
    /// Command line of the workload.
    pub workload: String,
    /// Another command line for base, where the table compares two loads.
    pub base_workload: Option<String>,
    /// Whether the old behaviour runs on both sides (tables that compare two loads).
    #[serde(default)]
    pub unpatched: bool,
    /// Command line of a shorter run, for `--quick`.
    pub quick_workload: Option<String>,
    /// Begin and length of a shorter window, for `--quick`.
    pub quick_window: Option<[String; 2]>,
    /// Load, as the table names it.
    pub load: String,
    /// Ticks a second, where not that of the profile.
    pub hz: Option<u32>,
    /// Further decisions of both sides.
    #[serde(default)]
    pub set: Vec<(String, String)>,
    /// Decisions of patch instead of those of the change.
    #[serde(default)]
    pub patch_set: Vec<(String, String)>,
    /// Begin of the measured window; the workload runs as it is where this is not given.
    pub from: Option<String>,
    /// Length of the window.
    pub span: Option<String>,
    /// As `settled` of the experiment, where that has none.
    pub settled: Option<String>,
    /// Seeds of a full run.
    pub seeds: u64,
    /// Seeds of `--quick`; 0 leaves the run out of it.
    #[serde(default)]
    pub quick: u64,
    /// What was published.
    #[serde(rename = "row")]
    pub rows: Vec<RowSpec>,
}

/// One published number or pair of numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowSpec {
    /// What is shown.
    pub metric: String,
    /// How it is computed from a run.
    pub measure: Measure,
    /// What is compared.
    pub kind: Kind,
    /// Published value without the change.
    pub base: Option<f64>,
    /// Published value with the change.
    pub patch: Option<f64>,
    /// What simulated values are multiplied by: how often the run fits into the published one.
    #[serde(default = "one")]
    pub scale: f64,
    /// Whether the published value is of the same work and the same quantity.
    #[serde(default = "yes")]
    pub comparable: bool,
    /// Why it is missed, if it is.
    pub why: Option<String>,
    /// Why it is no evidence, if it is none; `caution` says it in words.
    pub evidence: Option<Evidence>,
    /// What a reader must know before believing it.
    pub caution: Option<String>,
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

/// A headline in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadlineSpec {
    /// The sentence.
    pub text: String,
    /// Name of the run.
    pub run: String,
    /// Metric of the row; `*` for all rows of the run.
    pub metric: String,
    /// Which number.
    pub of: Of,
    /// Lower end.
    pub min: Option<f64>,
    /// Upper end.
    pub max: Option<f64>,
}

impl RunSpec {
    /// Begin and length of the measured window, where it is not that of the workload.
    pub fn window(&self) -> Option<[String; 2]> {
        Some([self.from.clone()?, self.span.clone()?])
    }

    /// The run as `--quick` makes it.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        self.seeds = self.quick;
        if let Some(workload) = self.quick_workload.take() {
            self.workload = workload;
        }
        if let Some([from, span]) = self.quick_window.take() {
            (self.from, self.span) = (Some(from), Some(span));
        }
        self
    }
}

impl RowSpec {
    /// What was published.
    pub fn published(&self) -> Published {
        let mut published = Published::new(self.base, self.patch);
        if self.kind == Kind::Range {
            // Two limits of one value, not two values.
            published.change_pct = None;
        }
        published
    }
}

impl HeadlineSpec {
    /// As the report knows it.
    pub fn headline(&self) -> Headline {
        Headline {
            text: self.text.clone(),
            of: self.of,
            min: self.min,
            max: self.max,
        }
    }
}

/// The experiments that are asked for: by name, or all.
///
/// # Errors
/// A name that no experiment has.
pub fn select(names: &[String]) -> Result<Vec<Experiment>, Failure> {
    let all = all()?;
    for name in names {
        if all.iter().all(|e| e.change != *name) {
            let known: Vec<&str> = all.iter().map(|e| e.change.as_str()).collect();
            let near = fairground_report::nearest(name, known.iter().copied());
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            return Err(Failure::with_help(
                format!("unknown change `{name}`"),
                format!("{near}published tables are those of {}", known.join(", ")),
            ));
        }
    }
    let wanted = |e: &Experiment| names.is_empty() || names.contains(&e.change);
    Ok(all.into_iter().filter(wanted).collect())
}

/// A scenario of this directory by name.
///
/// # Errors
/// There is none, or it is wrong.
pub fn scenario(name: &str) -> Result<Scenario, Failure> {
    let (file, text) = SCENARIOS
        .iter()
        .find(|(file, _)| file.strip_suffix(".toml") == Some(name))
        .ok_or_else(|| Failure::new(format!("no scenario of experiments/ is called `{name}`")))?;
    Ok(Scenario::parse(file, text)?)
}

fn all() -> Result<Vec<Experiment>, Failure> {
    FILES
        .iter()
        .map(|(number, text)| {
            toml::from_str(text)
                .map(in_one_line)
                .map_err(|e| Failure::new(format!("experiments/{number}.toml: {e}")))
        })
        .collect()
}

/// The experiment with its prose in one line a text: the files wrap it, and who prints it wraps it
/// for the place.
fn in_one_line(mut experiment: Experiment) -> Experiment {
    let rows = experiment.runs.iter_mut().flat_map(|run| &mut run.rows);
    let of_rows = rows.flat_map(|row| row.why.iter_mut().chain(&mut row.caution));
    let points = experiment.unknowns.iter_mut();
    for text in points
        .chain(&mut experiment.left_out)
        .chain([&mut experiment.mechanism])
        .chain(of_rows)
    {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    experiment
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_is_whole() {
        for experiment in all().unwrap_or_else(|f| panic!("{}", f.text(false))) {
            let change = &experiment.change;
            assert!(fairground::policy::find_patch(change).is_some(), "{change}");
            assert!(fairground::policy::find_profile(&experiment.profile).is_some());
            let names: BTreeSet<&str> = experiment.runs.iter().map(|r| r.name.as_str()).collect();
            assert_eq!(names.len(), experiment.runs.len(), "{change}: a name twice");
            for run in &experiment.runs {
                assert!(
                    run.seeds >= run.quick && !run.rows.is_empty(),
                    "{}",
                    run.name
                );
                assert_eq!(run.from.is_some(), run.span.is_some(), "{}", run.name);
                for row in &run.rows {
                    let said = row.evidence.is_none() || row.caution.is_some();
                    assert!(said, "{} {}: no evidence, and why?", run.name, row.metric);
                }
                for function in run.rows.iter().flat_map(|r| r.measure.functions()) {
                    let known = fairground_sim::host::function_names().any(|n| n == function);
                    assert!(known, "{}: no function is called `{function}`", run.name);
                }
            }
            for headline in &experiment.headline {
                let run = experiment.runs.iter().find(|r| r.name == headline.run);
                let known = |r: &RowSpec| headline.metric == "*" || r.metric == headline.metric;
                let row = run.and_then(|r| r.rows.iter().find(|r| known(r)));
                assert!(row.is_some(), "{change}: {}", headline.text);
            }
        }
    }
}

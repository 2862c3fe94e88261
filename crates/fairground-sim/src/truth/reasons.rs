//! Why a number is missed: `reasons.toml` by case and metric, and the tables of
//! `docs/fidelity.md` made of it. A reason is of the recordings for which it was found: of others
//! with a like name or workload it may be false, so they have none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use serde::Deserialize;

use super::asks_for;
use super::row::{Row, Verdict};

const FILE: &str = include_str!("reasons.toml");

/// What a miss says that has no reason.
pub const NOT_EXPLAINED: &str = "NOT EXPLAINED";

/// What a reason is about: which table of the page it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Recording {
    /// Whole workloads of kernel-truth.
    #[serde(rename = "workloads")]
    Workloads,
    /// Load tracking of kernel-truth, replayed.
    #[serde(rename = "load tracking")]
    LoadTracking,
    /// Whole runs of kernel-truth-smp.
    #[serde(rename = "many CPUs")]
    ManyCpus,
}

/// A reason of misses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Its name.
    pub id: String,
    /// Of what.
    pub recording: Recording,
    /// Names of the cases for which it was found; of no other is it known.
    pub cases: Vec<String>,
    /// Recorded means, where the name is that of a file which every recording has.
    #[serde(default)]
    pub recorded: Vec<f64>,
    /// Patterns of metrics.
    pub metrics: Vec<String>,
    /// What differs.
    pub differs: String,
    /// What the recorded kernel does there.
    pub kernel: String,
    /// What is missing here.
    pub missing: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reasons {
    reason: Vec<Reason>,
}

/// All, in the order in which they are asked.
#[must_use]
pub fn all() -> &'static [Reason] {
    static ALL: OnceLock<Vec<Reason>> = OnceLock::new();
    // A test reads the file; if it were wrong, nothing would be explained.
    ALL.get_or_init(|| toml::from_str::<Reasons>(FILE).map_or_else(|_| Vec::new(), |r| r.reason))
}

/// The reason of a miss.
#[must_use]
pub fn of(miss: &Row) -> Option<&'static Reason> {
    all().iter().find(|r| r.patterns(miss).is_some())
}

impl Reason {
    /// The name among its cases and the pattern among its metrics that fit.
    fn patterns(&self, miss: &Row) -> Option<[&str; 2]> {
        let case = self.cases.iter().find(|name| **name == miss.case)?;
        let metric = self.metrics.iter().find(|p| asks_for(p, &miss.metric))?;
        let same = |mean: &f64| (mean - miss.recorded.mean).abs() <= SAME_PART * mean.abs();
        let known = self.recorded.is_empty() || self.recorded.iter().any(same);
        known.then_some([case, metric])
    }
}

/// Recorded means that differ by no more than this part are the same number, written shorter.
const SAME_PART: f64 = 1e-3;

/// The rows, with the reason of each miss in words.
#[must_use]
pub fn told<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Row> {
    let tell = |row: &Row| {
        let mut row = row.clone();
        if row.verdict == Verdict::Miss {
            let why = of(&row).map_or_else(
                || NOT_EXPLAINED.to_string(),
                |r| {
                    format!(
                        "{}: the kernel: {}; missing here: {}",
                        r.id, r.kernel, r.missing
                    )
                },
            );
            row.reason = Some(match row.reason {
                Some(what) => format!("{why}; {what}"),
                None => why,
            });
        }
        row
    };
    rows.into_iter().map(tell).collect()
}

/// How many misses have which reason, in words; nothing without misses.
#[must_use]
pub fn summary<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.into_iter().filter(|r| r.verdict == Verdict::Miss) {
        let id = of(row).map_or(NOT_EXPLAINED, |r| &r.id);
        *counts.entry(id).or_default() += 1;
    }
    let mut text = String::new();
    let unknown = counts.remove(NOT_EXPLAINED).unwrap_or(0);
    let known: usize = counts.values().sum();
    if known + unknown > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "reasons: {known} of {} misses have one, {unknown} {NOT_EXPLAINED}",
            known + unknown
        );
    }
    for reason in all() {
        if let Some(count) = counts.get(reason.id.as_str()) {
            let _ = writeln!(text, "  {count:>4} {}: {}", reason.id, reason.missing);
        }
    }
    text
}

/// What is wrong between reasons and the misses of a recording: misses without a reason, and
/// reasons, or patterns of theirs, without a miss.
#[must_use]
pub fn wrong<'a>(recording: Recording, misses: impl IntoIterator<Item = &'a Row>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used: Vec<(&str, &str)> = Vec::new();
    for miss in misses {
        match all().iter().find_map(|r| Some((r, r.patterns(miss)?))) {
            Some((reason, [c, m])) if reason.recording == recording => {
                used.extend([(reason.id.as_str(), c), (reason.id.as_str(), m)]);
            }
            _ => {
                let (case, metric) = (&miss.case, &miss.metric);
                wrong.push(format!("{case} {metric}: {NOT_EXPLAINED} in reasons.toml"));
            }
        }
    }
    for reason in all().iter().filter(|r| r.recording == recording) {
        for pattern in reason.cases.iter().chain(&reason.metrics) {
            if !used.contains(&(&reason.id, pattern)) {
                wrong.push(format!(
                    "{}: '{pattern}' has no miss: out of date",
                    reason.id
                ));
            }
        }
    }
    wrong
}

/// The table of a recording's reasons in Markdown.
#[must_use]
pub fn markdown(recording: Recording) -> String {
    let mut text = String::from(
        "| reason | cases | what differs | what the kernel does | what is missing here |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for r in all().iter().filter(|r| r.recording == recording) {
        let cases: Vec<String> = r.cases.iter().map(|c| format!("`{c}`")).collect();
        let cases = cases.join(", ");
        let (id, differs, kernel, missing) = (&r.id, &r.differs, &r.kernel, &r.missing);
        let _ = writeln!(
            text,
            "| {id} | {cases} | {differs} | {kernel} | {missing} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::row::Sample;

    #[test]
    fn the_file_is_whole() {
        let reasons: Reasons = toml::from_str(FILE).expect("reasons.toml");
        let ids: std::collections::BTreeSet<_> = reasons.reason.iter().map(|r| &r.id).collect();
        assert_eq!(ids.len(), reasons.reason.len(), "an id stands twice");
        let one_line = |r: &Reason| {
            let texts = [&r.differs, &r.kernel, &r.missing];
            texts
                .iter()
                .all(|t| !t.is_empty() && !t.contains(['|', '\n']))
        };
        assert!(reasons.reason.iter().all(one_line));
    }

    fn row(case: &str, metric: &str, recorded: f64) -> Row {
        Row {
            case: case.into(),
            metric: metric.into(),
            unit: "us",
            recorded: Sample::of(&[recorded]),
            simulated: None,
            tolerance: None,
            verdict: Verdict::Miss,
            reason: None,
        }
    }

    #[test]
    fn a_miss_says_its_reason_or_that_it_has_none() {
        let wait = |case| row(case, "tasks.a0.preempted_wait_us.p50", 1.0);
        let rows = [
            wait("d3-groups-1-4-2to1"),
            wait("own-case"),
            Row {
                verdict: Verdict::Spread,
                ..wait("own-case")
            },
        ];
        let reasons: Vec<_> = told(&rows).into_iter().map(|r| r.reason).collect();
        let known = reasons[0].as_deref().expect("a reason");
        assert!(known.starts_with("waits-behind-others: "), "{known}");
        assert_eq!(reasons[1].as_deref(), Some(NOT_EXPLAINED));
        assert_eq!(reasons[2], None);
        let summary = summary(&rows);
        assert!(summary.starts_with("reasons: 1 of 2 misses have one, 1 NOT EXPLAINED\n"));
        assert!(summary.contains("1 waits-behind-others: "), "{summary}");
    }

    #[test]
    fn a_reason_is_of_the_recordings_for_which_it_was_found() {
        for reason in all() {
            let is_name = |name: &String| !name.contains(['*', '?']);
            assert!(reason.cases.iter().all(is_name), "{}", reason.id);
            // Every recording may have files of these names.
            let common = |name: &String| name == "costs" || name.ends_with(".csv");
            let told_apart = !reason.recorded.is_empty();
            assert!(
                !reason.cases.iter().any(common) || told_apart,
                "{}",
                reason.id
            );
        }
        let of_b2 = "tasks.sleeper.wakeup_latency_us.p90";
        assert!(of(&row("b2-hog-run02-period5", of_b2, 3.0)).is_some());
        assert!(of(&row("b2-hog-run02-period6", of_b2, 3.0)).is_none());
        let cost = "wake_latency_same_cpu/p50";
        assert!(of(&row("costs", cost, 1468.2)).is_some());
        assert!(of(&row("costs", cost, 1500.0)).is_none(), "another machine");
    }

    #[test]
    fn a_miss_without_a_reason_and_a_reason_without_a_miss_are_wrong() {
        let load = Recording::LoadTracking;
        let misses = [
            row("c3-nested-3-deep", "run-pelt.cfs_rq", 1.0),
            row("a1", "run-pelt.weight", 1.0),
        ];
        let wrong_with = wrong(load, &misses);
        assert!(wrong_with[0].starts_with("a1 run-pelt.weight: NOT EXPLAINED"));
        let says = |wrong: &[String], text: &str| wrong.iter().any(|w| w.starts_with(text));
        assert!(!says(&wrong_with, "pelt-lost-update") && !says(&wrong_with, "freed-task"));
        assert!(says(
            &wrong(load, []),
            "pelt-lost-update: 'c3-nested-3-deep' has no miss"
        ));
    }
}

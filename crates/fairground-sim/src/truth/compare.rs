//! Recorded runs beside simulated ones: a row for each metric, with a verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use super::numbers::{self, Key, Numbers, Scope, place, unit};
use super::recorded::Run;
use super::row::{Row, Sample, Verdict, in_spread};
use super::tolerance::{Tolerance, rule_for};

const NOT_RECORDED: &str = "no recorded run has it";
pub(super) const NOT_IN_MOST: &str = "not in most of the recorded runs";
const NO_RULE: &str = "no rule for this number";
/// Unit of histograms.
const APART: &str = "total variation distance";

/// Compares all metrics of a case.
#[must_use]
pub fn compare(case: &Case, recorded: &[Run], simulated: &[Run]) -> Vec<Row> {
    let scope = Scope::new(case);
    let mut left: Vec<_> = recorded.iter().map(|r| scope.numbers(r)).collect();
    let mut right: Vec<_> = simulated.iter().map(|r| scope.numbers(r)).collect();
    pad(&mut left, &mut right);
    let window_us = recorded.first().map_or(1.0, |r| r.window_us);
    let keys_of =
        |of: &[Numbers]| -> BTreeSet<Key> { of.iter().flat_map(BTreeMap::keys).cloned().collect() };
    let keys = keys_of(&left);
    let mut rows: Vec<Row> = keys
        .iter()
        .map(|key| scope.row(key, &left, &right, window_us))
        .collect();
    let only_simulated = keys_of(&right);
    let only_simulated = only_simulated.difference(&keys);
    let told = only_simulated.filter(|key| !of_distribution(&key.metric));
    rows.extend(told.map(|key| scope.unrecorded(key, &right)));
    rows.extend(scope.histograms(recorded, simulated));
    rows
}

/// A number by CPU that is not there is 0: what never happened has no entry. So the numbers that
/// any run has, recorded or simulated, are those of all runs which have any of their kind, if only
/// an empty list.
fn pad(left: &mut [Numbers], right: &mut [Numbers]) {
    let by_cpu = |key: &&Key| numbers::is_by_cpu(&key.metric);
    let all = left.iter().chain(right.iter()).flat_map(BTreeMap::keys);
    let all: BTreeSet<Key> = all.filter(by_cpu).cloned().collect();
    for run in left.iter_mut().chain(right) {
        for key in &all {
            if run.contains_key(&numbers::by_cpu_known(key)) {
                run.entry(key.clone()).or_insert(0.0);
            }
        }
        run.retain(|key, _| !numbers::says_known(key));
    }
}

/// What a distribution has besides its size, which is compared also where one side is empty.
fn of_distribution(metric: &str) -> bool {
    let (_, part) = metric.rsplit_once('.').unwrap_or(("", metric));
    ["few", "mean", "p50", "p90", "p99", "max"].contains(&part)
}

impl Scope<'_> {
    fn row(&self, key: &Key, left: &[Numbers], right: &[Numbers], window_us: f64) -> Row {
        let runs = left.len();
        let values = |of: &[Numbers]| -> Vec<f64> {
            of.iter().filter_map(|n| n.get(key)).copied().collect()
        };
        let (left, right) = (values(left), values(right));
        let recorded = Sample::of(&left);
        let tolerance = match rule_for(&key.metric) {
            Some(rule) if self.one_cpu => rule.one_cpu,
            Some(rule) => rule.two_cpus,
            None => Tolerance::Skipped(NO_RULE),
        };
        let tolerance = if 2 * left.len() < runs {
            Tolerance::Skipped(NOT_IN_MOST)
        } else {
            tolerance
        };
        let mut row = Row {
            case: self.case.name.clone(),
            metric: place(key),
            unit: unit(&key.metric),
            recorded,
            simulated: (!right.is_empty()).then(|| Sample::of(&right)),
            tolerance: tolerance.allowed(recorded.mean, window_us, self.tick_us),
            verdict: Verdict::Miss,
            reason: None,
        };
        if let Tolerance::Skipped(reason) = tolerance {
            row.verdict = Verdict::Skipped;
            row.reason = Some(reason.to_string());
        } else if let Some(simulated) = row.simulated {
            let holds = tolerance.holds(recorded.mean, simulated.mean, window_us, self.tick_us);
            row.verdict = if in_spread(&left, recorded, simulated.mean) {
                Verdict::Spread
            } else if holds {
                Verdict::Tolerance
            } else {
                Verdict::Miss
            };
        }
        row
    }

    /// What only simulated runs have.
    fn unrecorded(&self, key: &Key, right: &[Numbers]) -> Row {
        let values: Vec<f64> = right.iter().filter_map(|n| n.get(key)).copied().collect();
        let (none, reason) = (Sample::NONE, NOT_RECORDED.to_string());
        let row = Row::skipped(
            &self.case.name,
            &place(key),
            unit(&key.metric),
            none,
            reason,
        );
        Row {
            simulated: Some(Sample::of(&values)),
            ..row
        }
    }

    /// One row for each task whose stretches are a distribution.
    fn histograms(&self, recorded: &[Run], simulated: &[Run]) -> Vec<Row> {
        let names: BTreeSet<&String> = recorded.iter().flat_map(|r| r.tasks.keys()).collect();
        let rows = names
            .into_iter()
            .map(|name| self.histogram(name, recorded, simulated));
        rows.flatten().collect()
    }

    /// The row of a task; none without a stretch.
    fn histogram(&self, name: &str, recorded: &[Run], simulated: &[Run]) -> Option<Row> {
        let metric = format!("tasks.{name}.on_cpu_hist");
        let known = known(recorded, name);
        let (pooled, ours) = (pool(&known), pool(&self::known(simulated, name)));
        if pooled.iter().sum::<f64>() == 0.0 {
            let unrecorded = known.is_empty() && ours.iter().sum::<f64>() > 0.0;
            let (case, why) = (&self.case.name, NOT_RECORDED.to_string());
            return unrecorded.then(|| Row::skipped(case, &metric, APART, Sample::NONE, why));
        }
        let rule =
            rule_for("on_cpu_hist").map(|r| if self.one_cpu { r.one_cpu } else { r.two_cpus });
        let tolerance = match 2 * known.len() < recorded.len() {
            true => Tolerance::Skipped(NOT_IN_MOST),
            false => rule.unwrap_or(Tolerance::Skipped(NO_RULE)),
        };
        let distance = |bins: &&[u64]| total_variation(&pool(&[*bins]), &pooled);
        let left: Vec<f64> = known.iter().map(distance).collect();
        let apart = total_variation(&ours, &pooled);
        let mut row = Row {
            case: self.case.name.clone(),
            metric,
            unit: APART,
            recorded: Sample::of(&left),
            simulated: Some(Sample {
                mean: apart,
                sd: 0.0,
                n: simulated.len(),
            }),
            tolerance: tolerance.allowed(0.0, 1.0, self.tick_us),
            verdict: Verdict::Miss,
            reason: None,
        };
        let widest = left.iter().copied().fold(0.0, f64::max);
        if let Tolerance::Skipped(reason) = tolerance {
            row.verdict = Verdict::Skipped;
            row.reason = Some(reason.to_string());
        } else if apart <= widest {
            row.verdict = Verdict::Spread;
        } else if tolerance.holds(0.0, apart, 1.0, self.tick_us) {
            row.verdict = Verdict::Tolerance;
        }
        Some(row)
    }
}

/// The histograms of a task, of the runs that have one.
fn known<'r>(runs: &'r [Run], name: &str) -> Vec<&'r [u64]> {
    let tasks = runs.iter().filter_map(|run| run.tasks.get(name));
    tasks.filter_map(|t| t.on_cpu_hist.as_deref()).collect()
}

/// The histogram of a task over several runs, each run with the same weight.
fn pool(of: &[&[u64]]) -> Vec<f64> {
    let mut sum = Vec::new();
    for bins in of {
        sum.resize(bins.len().max(sum.len()), 0.0);
        let total: u64 = bins.iter().sum();
        for (to, n) in sum.iter_mut().zip(*bins) {
            *to += *n as f64 / total.max(1) as f64;
        }
    }
    let total: f64 = sum.iter().sum();
    sum.iter()
        .map(|v| if total > 0.0 { v / total } else { 0.0 })
        .collect()
}

/// Total variation distance; nothing is as far from something as can be.
fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    let [no_a, no_b] = [a, b].map(|h| h.iter().sum::<f64>() <= 0.0);
    if no_a != no_b {
        return 1.0;
    }
    let longest = a.len().max(b.len());
    let at = |h: &[f64], i: usize| h.get(i).copied().unwrap_or(0.0);
    (0..longest)
        .map(|i| (at(a, i) - at(b, i)).abs())
        .sum::<f64>()
        / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_one_for_distributions_apart() {
        assert_eq!(total_variation(&[1.0, 0.0], &[0.0, 1.0]), 1.0);
        assert_eq!(total_variation(&[0.5, 0.5], &[0.5, 0.5]), 0.0);
        assert_eq!(total_variation(&[0.5, 0.5], &[0.0, 0.0]), 1.0, "nothing");
        assert_eq!(total_variation(&[], &[]), 0.0);
    }

    const HOGS: &str = r#"{"name":"x+y","program":[{"hog":true}]},
        {"name":"b","nice":1,"program":[{"hog":true}]},
        {"name":"c","nice":1,"program":[{"hog":true}]}"#;

    /// A case of two CPUs with these tasks.
    fn case(tasks: &str) -> Case {
        let case = format!(
            r#"{{"format":"kernel-truth/1","name":"n","kind":"k","what":"w","machine":{{"cpus":2}},
            "duration_us":9000,"phase_starts_us":[0],"tasks":[{tasks}]}}"#
        );
        Case::parse(&case).expect("a case")
    }

    /// Its rows, from one recorded and one simulated run.
    fn rows(tasks: &str, recorded: &str, simulated: &str) -> BTreeMap<String, Row> {
        let case = case(tasks);
        let run = |text: &str| serde_json::from_str::<Run>(text).expect("a run");
        let rows = compare(&case, &[run(recorded)], &[run(simulated)]);
        rows.into_iter().map(|r| (r.metric.clone(), r)).collect()
    }

    #[test]
    fn what_happened_on_one_side_only_is_compared_with_nothing() {
        let tasks = r#"{"name":"t","affinity":[1],"program":[{"hog":true}]}"#;
        let recorded = r#"{"window_us":9000,"tasks":{"t":{"cpu_us_by_cpu":{"1":5000},
            "wakeup_target_cpu":{"1":40},"preempted_wait_us":{"n":0}}}}"#;
        let simulated = r#"{"window_us":9000,"tasks":{"t":{"cpu_us_by_cpu":{"0":4000},
            "preempted_wait_us":{"n":7,"mean":3,"p50":3,"p90":3,"p99":3,"max":3},
            "wakeup_target_cpu":{"0":30},"iterations":3}}}"#;
        let rows = rows(tasks, recorded, simulated);
        for (metric, theirs, ours) in [
            ("cpu_us_by_cpu.0", 0.0, 4000.0),
            ("cpu_us_by_cpu.1", 5000.0, 0.0),
            ("wakeup_target_cpu.0", 0.0, 30.0),
            ("wakeup_target_cpu.1", 40.0, 0.0),
            ("preempted_wait_us.n", 0.0, 7.0),
        ] {
            let row = &rows[&format!("tasks.t.{metric}")];
            let both = (row.recorded.mean, row.simulated.map(|s| s.mean));
            assert_eq!(both, (theirs, Some(ours)), "{metric}");
            assert_eq!(row.verdict, Verdict::Miss, "{metric}");
        }
        let turns = &rows["tasks.t.iterations"];
        assert_eq!(turns.verdict, Verdict::Skipped);
        assert_eq!(turns.reason.as_deref(), Some(NOT_RECORDED));
        assert!(!rows.contains_key("tasks.t.preempted_wait_us.p50"));
        assert!(!rows.contains_key("tasks.t.wakeup_new_target_cpu.0"));
    }

    /// All that a run says, of one task on CPU 1.
    const ALL: &str = r#"{"window_us":9000,"tasks":{"t":{"cpu_us":1,"cpu_share_of_workload":1,
        "switches_voluntary":2,"switches_involuntary":2,"migrations":0,"wakeups":3,
        "cpu_us_by_cpu":{"1":1},"wakeup_target_cpu":{"1":3},"wakeup_new_target_cpu":{"1":1},
        "wakeup_latency_us":{"n":3,"p50":1},"on_cpu_us":{"n":3,"p50":1},
        "preempted_wait_us":{"n":3,"p50":1},"on_cpu_hist":[3,1],"iterations":4}},
        "groups":{"(all)":{"cpu_us":1,"cpu_share_of_workload":1}},
        "cpus":{"1":{"switches":9,"idle_us":9,"workload_us":1,"other_us":1}}}"#;

    #[test]
    fn what_was_not_recorded_is_skipped() {
        let tasks = r#"{"name":"t","affinity":[1],"program":[{"hog":true}]}"#;
        let bare = r#"{"window_us":9000,"tasks":{"t":{}},"groups":{"(all)":{}},"cpus":{"1":{}}}"#;
        let all = rows(tasks, ALL, ALL);
        let none = rows(tasks, bare, ALL);
        for (metric, row) in &all {
            if metric.ends_with(".p50") {
                assert!(!none.contains_key(metric), "{metric}");
                continue;
            }
            assert_eq!(row.verdict, Verdict::Spread, "{metric}");
            let row = &none[metric];
            assert_eq!(row.verdict, Verdict::Skipped, "{metric}");
            assert_eq!(row.reason.as_deref(), Some(NOT_RECORDED), "{metric}");
            assert!(row.recorded.mean.is_nan() && row.recorded.n == 0);
        }
        assert_eq!((all.len(), none.len()), (22, 19), "{:?}", all.keys());
    }

    #[test]
    fn means_are_those_of_the_runs_that_have_the_number() {
        let tasks = r#"{"name":"t","affinity":[1],"program":[{"hog":true}]}"#;
        let run = |text: &str| serde_json::from_str::<Run>(text).expect("a run");
        let bare = r#"{"window_us":9000,"tasks":{"t":{}}}"#;
        let of = |with: usize, without: usize| {
            let mut runs = vec![run(ALL); with];
            runs.resize(with + without, run(bare));
            let rows = compare(&case(tasks), &runs, &[run(ALL)]).into_iter();
            rows.map(|r| (r.metric.clone(), r))
                .collect::<BTreeMap<_, _>>()
        };
        for metric in ["wakeups", "cpu_us_by_cpu.1", "on_cpu_us.n", "on_cpu_hist"] {
            let metric = format!("tasks.t.{metric}");
            let row = &of(4, 1)[&metric];
            let Sample { sd, n, .. } = row.recorded;
            assert_eq!((sd, n, row.verdict), (0.0, 4, Verdict::Spread), "{metric}");
            let row = &of(1, 2)[&metric];
            assert_eq!(row.reason.as_deref(), Some(NOT_IN_MOST), "{metric}");
        }
    }

    #[test]
    fn without_one_of_alike_tasks_none_has_a_rank() {
        let run = |c: &str| {
            format!(
                r#"{{"window_us":9000,"tasks":{{"x+y":{{"wakeups":9}},
                "b":{{"wakeups":4,"wakeup_latency_us":{{"n":0}}}},
                "c":{{{c}"wakeup_latency_us":{{"n":3,"p50":1}}}}}}}}"#
            )
        };
        let rows = rows(HOGS, &run(""), &run(r#""wakeups":1,"#));
        for (metric, verdict) in [
            ("b+c[0].wakeups", Verdict::Skipped),
            ("b+c[1].wakeups", Verdict::Skipped),
            ("x+y.wakeups", Verdict::Spread),
            // A task that never woke has no latency, but the number of them.
            ("b+c[0].wakeup_latency_us.p50", Verdict::Spread),
            ("b+c[1].wakeup_latency_us.n", Verdict::Spread),
        ] {
            let metric = format!("tasks.{metric}");
            assert_eq!(rows[&metric].verdict, verdict, "{metric}");
        }
    }

    #[test]
    fn alike_tasks_are_ranked_everywhere_and_a_task_alone_is_no_class() {
        let run = |b: u32, c: u32| {
            format!(
                r#"{{"window_us":9000,"tasks":{{"x+y":{{"wakeups":9}},"b":{{"wakeups":{b}}},
                "c":{{"wakeups":{c}}}}},"phases":{{"0":{{"x+y":0.5,"b":0.{b},"c":0.{c}}}}}}}"#
            )
        };
        let rows = rows(HOGS, &run(1, 4), &run(4, 1));
        for metric in [
            "tasks.x+y.wakeups",
            "tasks.b+c[0].wakeups",
            "tasks.b+c[1].wakeups",
            "phases.0.x+y",
            "phases.0.b+c[0]",
            "phases.0.b+c[1]",
        ] {
            assert_eq!(rows[metric].verdict, Verdict::Spread, "{metric}");
        }
        assert!(!rows.contains_key("phases.0.b") && !rows.contains_key("tasks.x+y[0].wakeups"));
    }
}

//! Recorded runs beside simulated ones: a row for each metric, with a verdict.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::case::Case;
use super::recorded::{Dist, Run, TaskRun};
use super::tolerance::{Tolerance, rule_for};

/// A sample of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (n-1), 0 for one run.
    pub sd: f64,
    /// Number of runs.
    pub n: usize,
}

/// What the comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Inside three recorded standard deviations or the recorded range.
    Spread,
    /// Inside the tolerance.
    Tolerance,
    /// Neither.
    Miss,
    /// Not compared.
    Skipped,
}

impl Verdict {
    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Tolerance => "tolerance",
            Self::Miss => "miss",
            Self::Skipped => "skipped",
        }
    }
}

/// Numbers of rows by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Inside the recorded spread.
    pub spread: usize,
    /// Inside the tolerance.
    pub tolerance: usize,
    /// Neither.
    pub miss: usize,
    /// Not compared.
    pub skipped: usize,
}

impl Tally {
    /// Of some rows.
    #[must_use]
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut tally = Self::default();
        for row in rows {
            *match row.verdict {
                Verdict::Spread => &mut tally.spread,
                Verdict::Tolerance => &mut tally.tolerance,
                Verdict::Miss => &mut tally.miss,
                Verdict::Skipped => &mut tally.skipped,
            } += 1;
        }
        tally
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let compared = self.spread + self.tolerance + self.miss;
        let all = compared + self.skipped;
        let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        write!(
            f,
            "{all} metrics, {} spread, {} tolerance, {} miss, {} skipped; {:.1} % of those \
             compared are not missed, {:.1} % of all are skipped",
            self.spread,
            self.tolerance,
            self.miss,
            self.skipped,
            percent(compared - self.miss, compared),
            percent(self.skipped, all),
        )
    }
}

/// A metric of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the case.
    pub case: String,
    /// Path of the number in a run; tasks that are alike in a case on two CPUs are ranked.
    pub metric: String,
    /// Unit.
    pub unit: &'static str,
    /// The kernel.
    pub recorded: Sample,
    /// The simulator.
    pub simulated: Option<Sample>,
    /// Allowed difference, in the unit.
    pub tolerance: Option<f64>,
    /// Verdict.
    pub verdict: Verdict,
    /// Why it is not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a number stands and what kind of number it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    path: String,
    metric: String,
}

type Numbers = BTreeMap<Key, f64>;

/// The numbers that a benchmark printed without a tracer, none of them compared.
#[must_use]
pub fn benchmark_rows(case: &Case, recorded: &super::Recorded) -> Vec<Row> {
    let summary = recorded.own_untraced_summary.as_object();
    let number = |v: &serde_json::Value, key: &str| v.get(key).and_then(|x| x.as_f64());
    let row = |(name, value): (&String, &serde_json::Value)| Row {
        case: case.name.clone(),
        metric: format!("own.{name}"),
        unit: "as printed",
        recorded: Sample {
            mean: number(value, "mean").unwrap_or(0.0),
            sd: number(value, "stdev").unwrap_or(0.0),
            n: number(value, "n").unwrap_or(0.0) as usize,
        },
        simulated: None,
        tolerance: None,
        verdict: Verdict::Skipped,
        reason: Some("benchmark cases are not run".to_string()),
    };
    summary.into_iter().flatten().map(row).collect()
}

/// Compares all metrics of a case.
#[must_use]
pub fn compare(case: &Case, recorded: &[Run], simulated: &[Run]) -> Vec<Row> {
    let used = case.cpus_used();
    let scope = Scope {
        case,
        one_cpu: used.len() == 1,
        used,
        tick_us: case.machine.tick_ns.unwrap_or(4_000_000) as f64 / 1e3,
        alike: alike(case),
    };
    let left: Vec<_> = recorded.iter().map(|r| scope.numbers(r)).collect();
    let right: Vec<_> = simulated.iter().map(|r| scope.numbers(r)).collect();
    let window_us = recorded.first().map_or(1.0, |r| r.window_us);
    let keys: BTreeSet<&Key> = left.iter().flat_map(BTreeMap::keys).collect();
    let mut rows: Vec<Row> = keys
        .into_iter()
        .map(|key| scope.row(key, &left, &right, window_us))
        .collect();
    rows.extend(scope.histograms(recorded, simulated));
    rows
}

struct Scope<'a> {
    case: &'a Case,
    one_cpu: bool,
    used: Vec<u32>,
    tick_us: f64,
    /// Name of the class of alike tasks, by task.
    alike: BTreeMap<String, String>,
}

/// Tasks that differ in name and start only.
fn alike(case: &Case) -> BTreeMap<String, String> {
    let same = |a: &super::case::TaskWords, b: &super::case::TaskWords| {
        (
            a.policy,
            a.nice,
            a.slice_us,
            &a.affinity,
            &a.cgroup,
            &a.program,
        ) == (
            b.policy,
            b.nice,
            b.slice_us,
            &b.affinity,
            &b.cgroup,
            &b.program,
        )
    };
    let class = |t: &super::case::TaskWords| {
        let members = case.tasks.iter().filter(|o| same(t, o));
        members
            .map(|o| o.name.as_str())
            .collect::<Vec<_>>()
            .join("+")
    };
    case.tasks
        .iter()
        .map(|t| (t.name.clone(), class(t)))
        .collect()
}

impl Scope<'_> {
    /// All numbers of a run.
    fn numbers(&self, run: &Run) -> Numbers {
        let mut out = Numbers::new();
        let mut classes: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
        for (name, task) in &run.tasks {
            let class = self
                .alike
                .get(name)
                .filter(|c| c.contains('+') && !self.one_cpu);
            for (metric, value) in task_numbers(task, self.spans_cpus(name)) {
                match class {
                    Some(class) => {
                        classes
                            .entry((class.clone(), metric))
                            .or_default()
                            .push(value);
                    }
                    None => insert(&mut out, format!("tasks.{name}"), &metric, value),
                }
            }
        }
        for ((class, metric), mut values) in classes {
            values.sort_by(|a, b| b.total_cmp(a));
            for (rank, value) in values.into_iter().enumerate() {
                insert(&mut out, format!("tasks.{class}[{rank}]"), &metric, value);
            }
        }
        for (path, group) in &run.groups {
            let place = format!("groups.{path}");
            insert(&mut out, place.clone(), "group.cpu_us", group.cpu_us);
            let share = group.cpu_share_of_workload;
            insert(
                &mut out,
                place.clone(),
                "group.cpu_share_of_workload",
                share,
            );
            let limited = self.has_quota(path);
            for (name, value) in group.cpu_stat.iter().filter(|_| limited) {
                insert(&mut out, place.clone(), &format!("cpu_stat.{name}"), *value);
            }
        }
        let mut cpus: Vec<_> = self
            .used
            .iter()
            .map(|cpu| (*cpu, run.cpus.get(cpu)))
            .collect();
        let free = self.case.tasks.iter().any(|t| self.spans_cpus(&t.name));
        if free {
            // Which of two alike CPUs it is was decided before the case.
            cpus.sort_by_key(|(_, run)| std::cmp::Reverse(run.map_or(0, |r| r.switches)));
        }
        for (rank, (cpu, run)) in cpus.into_iter().enumerate() {
            let Some(run) = run else { continue };
            let place = if free {
                format!("cpus.[{rank}]")
            } else {
                format!("cpus.{cpu}")
            };
            insert(
                &mut out,
                place.clone(),
                "cpus.switches",
                run.switches as f64,
            );
            insert(&mut out, place.clone(), "cpus.workload_us", run.workload_us);
            insert(&mut out, place, "cpus.idle_us", run.idle_us);
        }
        for (phase, shares) in &run.phases {
            for (task, share) in shares {
                insert(&mut out, format!("phases.{phase}.{task}"), "phases", *share);
            }
        }
        out
    }

    /// Whether a task may use several CPUs, so that which one is not its own property.
    fn spans_cpus(&self, name: &str) -> bool {
        let task = self.case.tasks.iter().find(|t| t.name == name);
        !self.one_cpu && task.is_none_or(|t| t.affinity.as_ref().is_none_or(|a| a.len() != 1))
    }

    fn has_quota(&self, path: &str) -> bool {
        let group = self.case.cgroups.iter().find(|g| g.path == path);
        let writes = &self.case.events;
        group.is_some_and(|g| g.quota_us.is_some_and(|q| q > 0))
            || writes
                .iter()
                .any(|w| w.cgroup == path && w.file != "cpu.shares")
    }

    fn row(&self, key: &Key, left: &[Numbers], right: &[Numbers], window_us: f64) -> Row {
        let runs = left.len();
        let values = |of: &[Numbers]| -> Vec<f64> {
            of.iter().filter_map(|n| n.get(key)).copied().collect()
        };
        let (left, right) = (values(left), values(right));
        let recorded = sample(&left);
        let tolerance = match rule_for(&key.metric) {
            Some(rule) if self.one_cpu => rule.one_cpu,
            Some(rule) => rule.two_cpus,
            None => Tolerance::Skipped("no rule for this number"),
        };
        let tolerance = if 2 * left.len() < runs {
            Tolerance::Skipped("not in most of the recorded runs")
        } else {
            tolerance
        };
        let mut row = Row {
            case: self.case.name.clone(),
            metric: place(key),
            unit: unit(&key.metric),
            recorded,
            simulated: (!right.is_empty()).then(|| sample(&right)),
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

    /// One row for each task whose stretches are a distribution.
    fn histograms(&self, recorded: &[Run], simulated: &[Run]) -> Vec<Row> {
        let names: BTreeSet<&String> = recorded.iter().flat_map(|r| r.tasks.keys()).collect();
        let rule =
            rule_for("on_cpu_hist").map(|r| if self.one_cpu { r.one_cpu } else { r.two_cpus });
        let tolerance = rule.unwrap_or(Tolerance::Skipped("no rule for this number"));
        let mut rows = Vec::new();
        for name in names {
            let pooled = pool(recorded, name);
            if pooled.iter().sum::<f64>() == 0.0 {
                continue;
            }
            let distance = |run: &Run| {
                let one = pool(std::slice::from_ref(run), name);
                total_variation(&one, &pooled)
            };
            let left: Vec<f64> = recorded.iter().map(distance).collect();
            let apart = total_variation(&pool(simulated, name), &pooled);
            let mut row = Row {
                case: self.case.name.clone(),
                metric: format!("tasks.{name}.on_cpu_hist"),
                unit: "total variation distance",
                recorded: sample(&left),
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
            rows.push(row);
        }
        rows
    }
}

fn place(key: &Key) -> String {
    let metric = key.metric.strip_prefix("group.").unwrap_or(&key.metric);
    let metric = metric.strip_prefix("cpus.").unwrap_or(metric);
    if metric == "phases" {
        key.path.clone()
    } else {
        format!("{}.{metric}", key.path)
    }
}

fn insert(out: &mut Numbers, path: String, metric: &str, value: f64) {
    let metric = metric.to_string();
    out.insert(Key { path, metric }, value);
}

fn task_numbers(task: &TaskRun, spans_cpus: bool) -> Vec<(String, f64)> {
    let mut out: Vec<(String, f64)> = vec![
        ("cpu_us".into(), task.cpu_us),
        ("cpu_share_of_workload".into(), task.cpu_share_of_workload),
        ("switches_voluntary".into(), task.switches_voluntary as f64),
        (
            "switches_involuntary".into(),
            task.switches_involuntary as f64,
        ),
        ("migrations".into(), task.migrations as f64),
        ("wakeups".into(), task.wakeups as f64),
    ];
    if let Some(turns) = task.iterations {
        out.push(("iterations".into(), turns as f64));
    }
    let counts = |map: &BTreeMap<u32, u64>| map.values().map(|n| *n as f64).collect();
    let times = task.cpu_us_by_cpu.values().copied().collect();
    by_cpu(
        &mut out,
        "cpu_us_by_cpu",
        &task.cpu_us_by_cpu,
        times,
        spans_cpus,
    );
    let targets = counts(&task.wakeup_target_cpu);
    by_cpu(
        &mut out,
        "wakeup_target_cpu",
        &task.wakeup_target_cpu,
        targets,
        spans_cpus,
    );
    let targets = counts(&task.wakeup_new_target_cpu);
    by_cpu(
        &mut out,
        "wakeup_new_target_cpu",
        &task.wakeup_new_target_cpu,
        targets,
        spans_cpus,
    );
    distribution(&mut out, "wakeup_latency_us", &task.wakeup_latency_us);
    distribution(&mut out, "on_cpu_us", &task.on_cpu_us);
    distribution(&mut out, "preempted_wait_us", &task.preempted_wait_us);
    out
}

/// Numbers by CPU. Where alike CPUs are free to be chosen, the larger one comes first: which of
/// them it is was decided by what ran before the case.
fn by_cpu<T>(
    out: &mut Vec<(String, f64)>,
    name: &str,
    map: &BTreeMap<u32, T>,
    mut values: Vec<f64>,
    spans_cpus: bool,
) {
    if spans_cpus {
        values.resize(values.len().max(2), 0.0);
        values.sort_by(|a, b| b.total_cmp(a));
        let ranked = values.into_iter().enumerate();
        out.extend(ranked.map(|(rank, v)| (format!("{name}.[{rank}]"), v)));
    } else {
        let named = map.keys().zip(values);
        out.extend(named.map(|(cpu, v)| (format!("{name}.{cpu}"), v)));
    }
}

/// A sample of one or two values has no percentiles of its own: its mean says it all.
fn distribution(out: &mut Vec<(String, f64)>, name: &str, d: &Dist) {
    if d.n < SMALL {
        out.extend(d.mean.map(|mean| (format!("{name}.few"), mean)));
        return;
    }
    let parts = [
        ("mean", d.mean),
        ("p50", d.p50),
        ("p90", d.p90),
        ("p99", d.p99),
        ("max", d.max),
    ];
    let known = parts
        .into_iter()
        .filter_map(|(part, v)| v.map(|v| (part, v)));
    out.extend(known.map(|(part, v)| (format!("{name}.{part}"), v)));
}

fn unit(metric: &str) -> &'static str {
    if metric.contains("share") || metric == "phases" {
        "1"
    } else if metric.contains("_us") {
        "us"
    } else if metric.ends_with("_ns") {
        "ns"
    } else {
        "count"
    }
}

fn sample(values: &[f64]) -> Sample {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let sd = if n > 1 {
        (squares / (n - 1) as f64).sqrt()
    } else {
        0.0
    };
    Sample { mean, sd, n }
}

/// Inside three standard deviations of the recorded mean, or between the recorded extremes.
fn in_spread(recorded: &[f64], sample: Sample, simulated: f64) -> bool {
    let least = recorded.iter().copied().fold(f64::INFINITY, f64::min);
    let most = recorded.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Values were rounded to 1e-6 when they were written.
    (simulated - sample.mean).abs() <= 3.0 * sample.sd + 1e-6 || (least..=most).contains(&simulated)
}

/// Samples below this have no percentiles.
const SMALL: u64 = 3;

/// The histogram of a task over several runs, each run with the same weight.
fn pool(runs: &[Run], name: &str) -> Vec<f64> {
    let mut sum = Vec::new();
    for task in runs.iter().filter_map(|r| r.tasks.get(name)) {
        let bins = &task.on_cpu_hist;
        sum.resize(bins.len().max(sum.len()), 0.0);
        let total: u64 = bins.iter().sum();
        for (to, n) in sum.iter_mut().zip(bins) {
            *to += *n as f64 / total.max(1) as f64;
        }
    }
    let total: f64 = sum.iter().sum();
    sum.iter()
        .map(|v| if total > 0.0 { v / total } else { 0.0 })
        .collect()
}

fn total_variation(a: &[f64], b: &[f64]) -> f64 {
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
    }

    #[test]
    fn spread_is_three_deviations_or_the_range() {
        let values = [1.0, 1.0, 1.0, 5.0];
        let s = sample(&values);
        assert!(in_spread(&values, s, 4.9));
        assert!(in_spread(&values, s, 8.0) && !in_spread(&values, s, 8.1));
        let one = sample(&[2.0]);
        assert!(in_spread(&[2.0], one, 2.0) && !in_spread(&[2.0], one, 2.1));
    }
}

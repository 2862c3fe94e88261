//! The metrics that every run has, and those that a workload adds.
//!
//! One row per metric: its name is its key in the JSON, its column in the CSV and what
//! `--fail-on` and `list metrics` call it. Units are in the names where a unit is needed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which direction of a metric users want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better: time, waiting, traffic.
    Lower,
    /// More is better: throughput.
    Higher,
}

/// A row of the catalogue of metrics that are always present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Key in results, e.g. `wakeup_latency_us.p99`.
    pub name: &'static str,
    /// Unit, or `count`.
    pub unit: &'static str,
    /// Direction; `None` where neither is better by itself.
    pub better: Option<Better>,
    /// One sentence.
    pub description: &'static str,
    /// Whether it is a total that grows with what is done in a run. It is not if something else
    /// sets how many there can be, as the periods of a quota.
    pub per_work: bool,
}

/// What is known about a metric that appears in a result; owned, so that saved results carry it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricInfo {
    /// Key in results, e.g. `hackbench.time_s`.
    pub name: String,
    /// Unit, or `count`.
    pub unit: String,
    /// Direction; `null` where neither is better by itself.
    pub better: Option<Better>,
    /// One sentence.
    pub description: String,
}

impl From<Metric> for MetricInfo {
    fn from(metric: Metric) -> Self {
        Self {
            name: metric.name.into(),
            unit: metric.unit.into(),
            better: metric.better,
            description: metric.description.into(),
        }
    }
}

impl MetricInfo {
    /// What no value can be above, if it is a share of something.
    pub(crate) fn whole(&self) -> Option<f64> {
        match self.unit.as_str() {
            "%" => Some(100.0),
            _ if self.name.ends_with(".cpu_share") || self.name.ends_with(".fairness") => Some(1.0),
            _ => None,
        }
    }
}

/// A name that no metric has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric `{name}`{}", hint(.name, .nearest))]
pub struct UnknownMetric {
    /// What was asked for.
    pub name: String,
    /// The known name that looks most like it, if any looks like it at all.
    pub nearest: Option<String>,
}

/// `WORKLOAD.METRIC` may be of another workload than the one that runs, and others are only there
/// where a group has a limit.
fn hint(name: &str, nearest: &Option<String>) -> String {
    let limited = LIMITED.iter().any(|m| m.name == name);
    match nearest {
        _ if limited => ": no group has a limit here".into(),
        Some(near) => format!("; did you mean `{near}`?"),
        None if name.contains('.') => ": what runs here does not measure it".into(),
        None => "; `fairground list metrics` shows all".into(),
    }
}

/// Whether a dotted name begins with the parts of another.
fn is_below(name: &str, above: &str) -> bool {
    let rest = name.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Metrics in the order in which tables show them: the workload's own, then [`ALWAYS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    rows: Vec<MetricInfo>,
    /// Where each stands.
    by_name: BTreeMap<String, usize>,
}

impl Catalogue {
    /// The metrics that are always present, preceded by those of the workload. A workload that
    /// names an always-present metric redefines it.
    pub fn new(workload: impl IntoIterator<Item = MetricInfo>) -> Self {
        let (mut rows, mut by_name) = (Vec::new(), BTreeMap::new());
        for info in workload.into_iter().chain(ALWAYS.iter().map(|&m| m.into())) {
            if let Entry::Vacant(free) = by_name.entry(info.name.clone()) {
                free.insert(rows.len());
                rows.push(info);
            }
        }
        Self { rows, by_name }
    }

    /// All rows, in table order.
    pub fn rows(&self) -> &[MetricInfo] {
        &self.rows
    }

    /// The first name that has the same parts at its ends: `web.latency_us.p99` for `p99` and for
    /// `web.p99`.
    fn with_ends_of(&self, asked: &str) -> Option<String> {
        let names = self.rows.iter().map(|row| &row.name);
        let (first, last) = asked.rsplit_once('.').unwrap_or(("", asked));
        let mut names = names.filter(|name| match name.rsplit_once('.') {
            Some((begin, end)) => end == last && (first.is_empty() || is_below(begin, first)),
            None => *name == last,
        });
        names.next().cloned()
    }

    /// The row called `name`.
    ///
    /// # Errors
    /// If there is none; the error names the nearest one.
    pub fn get(&self, name: &str) -> Result<&MetricInfo, UnknownMetric> {
        let nth = self.by_name.get(name);
        nth.map(|nth| &self.rows[*nth])
            .ok_or_else(|| UnknownMetric {
                name: name.into(),
                nearest: self
                    .with_ends_of(name)
                    .or_else(|| nearest(name, self.rows.iter().map(|row| row.name.as_str()))),
            })
    }
}

/// Most groups with a limit that have metrics of their own: more would be a table of them alone.
const GROUPS_APART: usize = 8;

/// The metrics of [`LIMITED`] that are a share of the periods of all groups with a limit together;
/// each of several such groups has them of its own, too: `/web/throttled_pct`.
pub const GROUP_METRICS: [&str; 2] = ["throttled_pct", "slow_periods_pct"];

/// Whether so many groups with a limit have metrics of their own. One has those of all.
pub fn have_own_metrics(groups: usize) -> bool {
    (2..=GROUPS_APART).contains(&groups)
}

/// The metrics of single groups with a limit, if they have any: of each, or of those in `asked`.
pub fn group_metrics(paths: &[&str], asked: &[String]) -> Vec<MetricInfo> {
    let all = have_own_metrics(paths.len());
    let shown = paths
        .iter()
        .filter(|path| all || asked.iter().any(|a| a == *path));
    let of = |path: &str, name: &str| {
        let all = LIMITED.iter().find(|m| m.name == name)?;
        Some(MetricInfo {
            name: format!("{path}/{name}"),
            description: format!("Of `{path}` alone: {}", all.description),
            ..MetricInfo::from(*all)
        })
    };
    let pairs = shown.flat_map(|p| GROUP_METRICS.map(|name| of(p, name)));
    pairs.flatten().collect()
}

/// Whether it is a total that grows with what is done in a run ([`Metric::per_work`]).
pub(crate) fn is_total(name: &str) -> bool {
    ALWAYS.iter().any(|m| m.per_work && m.name == name)
}

/// Whether a workload measures this by itself.
pub(crate) fn is_own(name: &str) -> bool {
    !name.starts_with('/') && ALWAYS.iter().chain(LIMITED).all(|m| m.name != name)
}

/// The name among `known` that is most like `name`, by Jaro-Winkler similarity, whether in capitals
/// or not; none below 0.7, which is where suggestions begin to mislead. The simulator, which does
/// not know this crate, has the same for names in scenarios.
///
/// Good for names of machines, patches and workloads as well.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let name = name.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in known {
        let candidate_lower = candidate.to_lowercase();
        let score = strsim::jaro_winkler(&name, &candidate_lower);
        let slip = name.len() > 2 && strsim::osa_distance(&name, &candidate_lower) == 1;
        let score = if slip { score.max(0.9) } else { score };
        if score >= 0.7 && best.is_none_or(|(top, _)| score > top) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.into())
}

const fn count(name: &'static str, better: Option<Better>, description: &'static str) -> Metric {
    Metric {
        name,
        unit: "count",
        better,
        description,
        per_work: false,
    }
}

/// A number that grows with what is done in a run.
const fn total(metric: Metric) -> Metric {
    Metric {
        per_work: true,
        ..metric
    }
}

const fn lower(name: &'static str, unit: &'static str, description: &'static str) -> Metric {
    Metric {
        name,
        unit,
        better: Some(Better::Lower),
        description,
        per_work: false,
    }
}

/// The metrics of every run, in table order.
pub const ALWAYS: &[Metric] = &[
    lower(
        "wakeup_latency_us.p50",
        "us",
        "Median time from when a woken task is on a queue (`sched_wakeup`, as `perf sched latency` \
         counts) until it runs. The interrupt and the way out of idle before that are not in it, \
         nor are wake-ups that have not run by the end.",
    ),
    lower(
        "wakeup_latency_us.p99",
        "us",
        "99th percentile of the time from when a woken task is on a queue (`sched_wakeup`) until \
         it runs, as p50.",
    ),
    lower(
        "sched_pct",
        "%",
        "Share of the time in which CPUs were not idle that was spent in scheduler functions, \
         waiting for their locks and cache lines included.",
    ),
    Metric {
        name: "busy_pct",
        unit: "%",
        better: None,
        description: "Share of all CPU time in which a CPU was not idle: tasks, interrupts, the \
                      scheduler, and the way out of idle, which can be longer than the task. What \
                      tasks of groups with a limit used is usage_usec.",
        per_work: false,
    },
    lower(
        "idle_waste_pct",
        "%",
        "Share of all CPU time in which a CPU was idle while a task that could have run there \
         waited on another one; time of interrupts meanwhile is in busy_pct too.",
    ),
    lower(
        "idle_waste_us.max",
        "us",
        "Longest time for which one task waited while a CPU was idle that it could have used.",
    ),
    total(count(
        "idle_waste_long",
        Some(Better::Lower),
        "Waits of more than 1 ms while a CPU was idle that the task could have used.",
    )),
    total(lower(
        "lock_wait_ns",
        "ns",
        "Time that CPUs waited for run-queue and other scheduler locks.",
    )),
    total(count(
        "line_transfers",
        Some(Better::Lower),
        "Times a cache line of the scheduler's structures moved from one private cache to another.",
    )),
    total(count(
        "llc_misses",
        Some(Better::Lower),
        "Loads that missed the LLC: of the scheduler's lines and of others, as those of pipes.",
    )),
    total(count(
        "llc_misses_memory",
        Some(Better::Lower),
        "Those of them that memory answered, not the caches of another LLC.",
    )),
    total(count(
        "wakeups",
        None,
        "Tasks made runnable by another task, a timer or an interrupt.",
    )),
    total(count(
        "migrations",
        None,
        "Times a task came to another CPU, by wake-up or by balancing.",
    )),
    total(count(
        "switches",
        None,
        "Context switches, those from and to idle included. Where balancing takes a running task \
         off its CPU they are one; a kernel counts two, to the stopper and from it.",
    )),
    total(count(
        "ipis",
        None,
        "Interrupts sent from CPU to CPU for rescheduling, wake-ups and kicks.",
    )),
    Metric {
        name: "sim_time_s",
        unit: "s",
        better: None,
        description: "Simulated time from the first event to the end of the workload.",
        per_work: false,
    },
];

/// The metrics of runs in which a group has a limit, in table order. Names are those of `cpu.stat`,
/// numbers the sums over the groups with a limit.
pub const LIMITED: &[Metric] = &[
    lower(
        "throttled_pct",
        "%",
        "Share of the periods of groups with a limit in which one of their queues was throttled. \
         Of 2 to 8 such groups each has its own, too: /web/throttled_pct.",
    ),
    lower(
        "slow_periods_pct",
        "%",
        "Share of the periods of groups with a limit in which waiting for quota made a task slow: \
         it took longer from a wake-up to its next sleep, by a tenth, than 99 % of those stretches \
         that touched no period with waiting.",
    ),
    lower(
        "throttled_usec",
        "us",
        "Time for which queues of groups with a limit were throttled, summed over CPUs; counted \
         when a queue may run again.",
    ),
    count(
        "nr_throttled",
        Some(Better::Lower),
        "Periods at whose end a queue of the group was throttled.",
    ),
    count(
        "nr_periods",
        None,
        "Periods in which a group with a limit was active.",
    ),
    count(
        "nr_bursts",
        None,
        "Periods in which a group used more than its quota, out of cpu.max.burst.",
    ),
    Metric {
        name: "burst_usec",
        unit: "us",
        better: None,
        description: "CPU time that groups used beyond their quota, out of cpu.max.burst.",
        per_work: false,
    },
    Metric {
        name: "usage_usec",
        unit: "us",
        better: None,
        description: "CPU time of groups with a limit and of those below them.",
        per_work: false,
    },
    count(
        "quota_walks",
        Some(Better::Lower),
        "Groups visited because a queue of a group with a limit was throttled or unthrottled: \
         all below it, on one CPU.",
    ),
    count(
        "quota_moves",
        Some(Better::Lower),
        "Tasks taken off a queue because it was throttled, and put back.",
    ),
    lower(
        "quota_timer_us.max",
        "us",
        "Longest time for which a period timer of a group with a limit, which handed out quota, \
         kept interrupts off.",
    ),
    lower(
        "quota_unthrottle_us.max",
        "us",
        "Longest time for which unthrottling one queue of such a group kept interrupts off.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hackbench() -> MetricInfo {
        MetricInfo {
            name: "hackbench.time_s".into(),
            unit: "s".into(),
            better: Some(Better::Lower),
            description: "What hackbench prints as Time.".into(),
        }
    }

    #[test]
    fn workload_metrics_come_first_and_names_are_unique() {
        let catalogue = Catalogue::new([hackbench(), hackbench()]);
        assert_eq!(catalogue.rows().len(), ALWAYS.len() + 1);
        assert_eq!(catalogue.rows()[0].name, "hackbench.time_s");
    }

    #[test]
    fn every_promised_name_is_there() {
        for name in [
            "wakeups",
            "migrations",
            "switches",
            "line_transfers",
            "lock_wait_ns",
            "busy_pct",
            "sched_pct",
            "wakeup_latency_us.p50",
            "wakeup_latency_us.p99",
        ] {
            assert!(ALWAYS.iter().any(|m| m.name == name), "{name}");
        }
    }

    /// Two letters in the wrong order are half of a short word.
    #[test]
    fn a_slip_in_a_short_word_is_forgiven() {
        assert_eq!(nearest("rnu", ["hog", "run"]).as_deref(), Some("run"));
        assert_eq!(nearest("xyz", ["hog", "run"]), None);
    }

    #[test]
    fn the_last_part_of_a_name_finds_the_first_that_has_it() {
        let error = Catalogue::new([hackbench()]).get("p99").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("wakeup_latency_us.p99"));
        let error = Catalogue::new([]).get("p98").unwrap_err();
        assert_eq!(error.nearest, None);
        let web = |name: &str| MetricInfo {
            name: name.into(),
            ..hackbench()
        };
        let both = Catalogue::new(["web.per_s", "web.latency_us.p99"].map(web));
        let error = both.get("web.p99").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("web.latency_us.p99"));
        let error = both.get("throttled_pct").unwrap_err().to_string();
        assert!(error.ends_with(": no group has a limit here"), "{error}");
    }

    #[test]
    fn an_unknown_metric_names_its_neighbour() {
        let catalogue = Catalogue::new([hackbench()]);
        let error = catalogue.get("hackbench.tme_s").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown metric `hackbench.tme_s`; did you mean `hackbench.time_s`?"
        );
        let error = catalogue.get("qqq").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown metric `qqq`; `fairground list metrics` shows all"
        );
    }
}

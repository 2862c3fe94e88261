//! The numbers of a run, each under the place where it is compared.
//!
//! Tasks that are alike, and CPUs that may be chosen freely, are ranked: which of them it is was
//! decided before the case.

use std::collections::BTreeMap;

use super::case::{Case, TaskWords};
use super::control_files::LIMITS;
use super::recorded::{Dist, Run, TaskRun};

/// Where a number stands and what kind of number it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) path: String,
    pub(super) metric: String,
}

pub(super) type Numbers = BTreeMap<Key, f64>;

/// What of a case the places of its numbers depend on.
pub(super) struct Scope<'a> {
    pub(super) case: &'a Case,
    pub(super) one_cpu: bool,
    used: Vec<u32>,
    pub(super) tick_us: f64,
    /// Name of the class of alike tasks, by task.
    alike: BTreeMap<String, String>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        let used = case.cpus_used();
        Self {
            case,
            one_cpu: used.len() == 1,
            used,
            tick_us: case.machine.tick_ns() as f64 / 1e3,
            alike: alike(case),
        }
    }

    /// All numbers of a run.
    pub(super) fn numbers(&self, run: &Run) -> Numbers {
        let mut out = Numbers::new();
        self.tasks(run, &mut out);
        self.groups(run, &mut out);
        self.cpus(run, &mut out);
        for (phase, shares) in &run.phases {
            let shares = shares.iter().map(|(task, share)| (task.as_str(), *share));
            let place = format!("phases.{phase}");
            self.ranked(shares, &place, "phases", &mut out);
        }
        out
    }

    /// The class of a task, if others are alike and it cannot be told which is which.
    fn class(&self, task: &str) -> Option<&str> {
        let class = self.alike.get(task).filter(|_| !self.one_cpu);
        class.map(String::as_str)
    }

    /// A number of each task: ranked among those that are alike.
    fn ranked<'t>(
        &self,
        values: impl Iterator<Item = (&'t str, f64)>,
        under: &str,
        metric: &str,
        out: &mut Numbers,
    ) {
        let mut classes: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (task, value) in values {
            match self.class(task) {
                Some(class) => classes.entry(class).or_default().push(value),
                None => insert(out, format!("{under}.{task}"), metric, value),
            }
        }
        for (class, mut values) in classes {
            let members = self.alike.values().filter(|c| *c == class).count();
            if values.len() < members && of_each_task(metric) {
                // Without one of them it is not known which rank the others have.
                continue;
            }
            values.sort_by(|a, b| b.total_cmp(a));
            for (rank, value) in values.into_iter().enumerate() {
                insert(out, format!("{under}.{class}[{rank}]"), metric, value);
            }
        }
    }

    fn tasks(&self, run: &Run, out: &mut Numbers) {
        let mut by_metric: BTreeMap<String, Vec<(&str, f64)>> = BTreeMap::new();
        for (name, task) in &run.tasks {
            for (metric, value) in task_numbers(task, self.spans_cpus(name)) {
                by_metric.entry(metric).or_default().push((name, value));
            }
        }
        for (metric, values) in by_metric {
            self.ranked(values.into_iter(), "tasks", &metric, out);
        }
    }

    fn groups(&self, run: &Run, out: &mut Numbers) {
        for (path, group) in &run.groups {
            let place = format!("groups.{path}");
            let share = group.cpu_share_of_workload;
            insert_told(out, &place, "group.cpu_us", group.cpu_us);
            insert_told(out, &place, "group.cpu_share_of_workload", share);
            let limited = self.has_quota(path);
            for (name, value) in group.cpu_stat.iter().filter(|_| limited) {
                insert(out, place.clone(), &format!("cpu_stat.{name}"), *value);
            }
        }
    }

    fn cpus(&self, run: &Run, out: &mut Numbers) {
        let mut cpus: Vec<_> = self
            .used
            .iter()
            .map(|cpu| (*cpu, run.cpus.get(cpu)))
            .collect();
        let spans = |t: &TaskWords| self.spans_cpus(&t.name);
        let pins = |t: &TaskWords| t.affinity.as_ref().is_some_and(|a| a.len() == 1);
        let tasks = &self.case.tasks;
        // A task that is bound to one of them tells CPUs apart.
        let free = tasks.iter().any(spans) && !tasks.iter().any(pins);
        if free
            && cpus
                .iter()
                .any(|(_, run)| run.is_some_and(|r| r.switches.is_none()))
        {
            // Which rank they have is not known.
            return;
        }
        if free {
            // Which of two alike CPUs it is was decided before the case.
            cpus.sort_by_key(|(_, run)| std::cmp::Reverse(run.and_then(|r| r.switches)));
        }
        for (rank, (cpu, run)) in cpus.into_iter().enumerate() {
            let Some(run) = run else { continue };
            let place = if free {
                format!("cpus.[{rank}]")
            } else {
                format!("cpus.{cpu}")
            };
            let switches = run.switches.map(|n| n as f64);
            insert_told(out, &place, "cpus.switches", switches);
            insert_told(out, &place, "cpus.workload_us", run.workload_us);
            insert_told(out, &place, "cpus.idle_us", run.idle_us);
        }
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
                .any(|w| w.cgroup == path && LIMITS.contains(&w.file.as_str()))
    }
}

/// Tasks that differ in name and start only, where there are several: the name of their class.
fn alike(case: &Case) -> BTreeMap<String, String> {
    let same = |a: &TaskWords, b: &TaskWords| {
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
    let class = |t: &TaskWords| {
        let members = case.tasks.iter().filter(|o| same(t, o));
        let members: Vec<&str> = members.map(|o| o.name.as_str()).collect();
        (members.len() > 1).then(|| members.join("+"))
    };
    let classes = case.tasks.iter();
    classes
        .filter_map(|t| Some((t.name.clone(), class(t)?)))
        .collect()
}

/// Names of the numbers by CPU.
const BY_CPU: [&str; 3] = [
    "cpu_us_by_cpu",
    "wakeup_target_cpu",
    "wakeup_new_target_cpu",
];

/// Whether a number is one of those by CPU. Their name alone, without a CPU, says that they were
/// recorded ([`by_cpu`]).
pub(super) fn is_by_cpu(metric: &str) -> bool {
    let name = metric.split_once('.').map(|(name, _)| name);
    name.is_some_and(|name| BY_CPU.contains(&name))
}

/// The key that says whether the numbers by CPU of this one's task were recorded.
pub(super) fn by_cpu_known(key: &Key) -> Key {
    let name = key.metric.split('.').next().unwrap_or_default();
    Key {
        path: key.path.clone(),
        metric: name.to_string(),
    }
}

/// Whether a key is one of those.
pub(super) fn says_known(key: &Key) -> bool {
    BY_CPU.contains(&key.metric.as_str())
}

/// Whether each of several tasks has a number of this kind, if it was recorded: on some CPUs a task
/// may never have been, and an empty distribution has no percentiles.
fn of_each_task(metric: &str) -> bool {
    !metric.contains('.') || metric.ends_with("_us.n")
}

pub(super) fn place(key: &Key) -> String {
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

/// Inserts what was recorded.
fn insert_told(out: &mut Numbers, path: &str, metric: &str, value: Option<f64>) {
    if let Some(value) = value {
        insert(out, path.to_string(), metric, value);
    }
}

fn task_numbers(task: &TaskRun, spans_cpus: bool) -> Vec<(String, f64)> {
    let count = |n: Option<u64>| n.map(|n| n as f64);
    let plain = [
        ("cpu_us", task.cpu_us),
        ("cpu_share_of_workload", task.cpu_share_of_workload),
        ("switches_voluntary", count(task.switches_voluntary)),
        ("switches_involuntary", count(task.switches_involuntary)),
        ("migrations", count(task.migrations)),
        ("wakeups", count(task.wakeups)),
        ("iterations", count(task.iterations)),
    ];
    let told = plain.into_iter().filter_map(|(name, v)| Some((name, v?)));
    let mut out: Vec<(String, f64)> = told.map(|(name, v)| (name.to_string(), v)).collect();
    let counts = |map: &BTreeMap<u32, u64>| map.iter().map(|(cpu, n)| (*cpu, *n as f64)).collect();
    let times = task.cpu_us_by_cpu.clone();
    let (woken, born) = (&task.wakeup_target_cpu, &task.wakeup_new_target_cpu);
    let maps = [times, woken.as_ref().map(counts), born.as_ref().map(counts)];
    for (name, map) in BY_CPU.into_iter().zip(maps) {
        if let Some(map) = map {
            by_cpu(&mut out, name, &map, spans_cpus);
        }
    }
    for (name, dist) in [
        ("wakeup_latency_us", &task.wakeup_latency_us),
        ("on_cpu_us", &task.on_cpu_us),
        ("preempted_wait_us", &task.preempted_wait_us),
    ] {
        if let Some(dist) = dist {
            distribution(&mut out, name, dist);
        }
    }
    out
}

/// Numbers by CPU. Where alike CPUs are free to be chosen, the larger one comes first: which of
/// them it is was decided by what ran before the case. The name alone says that there are some.
fn by_cpu(out: &mut Vec<(String, f64)>, name: &str, map: &BTreeMap<u32, f64>, spans_cpus: bool) {
    out.push((name.to_string(), 0.0));
    if spans_cpus {
        let mut values: Vec<f64> = map.values().copied().collect();
        values.resize(values.len().max(2), 0.0);
        values.sort_by(|a, b| b.total_cmp(a));
        let ranked = values.into_iter().enumerate();
        out.extend(ranked.map(|(rank, v)| (format!("{name}.[{rank}]"), v)));
    } else {
        out.extend(map.iter().map(|(cpu, v)| (format!("{name}.{cpu}"), *v)));
    }
}

/// A sample of one or two values has no percentiles of its own: its mean says it all.
fn distribution(out: &mut Vec<(String, f64)>, name: &str, d: &Dist) {
    out.push((format!("{name}.n"), d.n as f64));
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

pub(super) fn unit(metric: &str) -> &'static str {
    if metric.contains("share") || metric == "phases" {
        "1"
    } else if metric.ends_with("_us.n") {
        "count"
    } else if metric.contains("_us") {
        "us"
    } else if metric.ends_with("_ns") {
        "ns"
    } else {
        "count"
    }
}

/// Samples below this have no percentiles.
const SMALL: u64 = 3;

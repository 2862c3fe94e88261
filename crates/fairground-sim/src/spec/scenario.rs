//! A scenario file: machine, cgroups, tasks with their programs, and what happens meanwhile.
//! `docs/scenario.md` is its manual, `schemas/scenario.schema.json` its schema.
use super::error::{Error, Source};
use super::groups::{self, Groups};
use super::names::{Names, mask};
use super::node::{Fields, Node, from_toml};
use super::steps::Lower;
use crate::workload::bench::Env;
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{
    FOREVER, KERNEL_PROCESS, Op, Policy, Program, TaskTemplate, Until, Workload,
};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// Keys at the top.
pub const TOP_KEYS: &[&str] = &[
    "name",
    "machine",
    "profile",
    "hz",
    "duration",
    "warmup",
    "seeds",
    "pipes",
    "sockets",
    "mutexes",
    "semaphores",
    "futexes",
    "barriers",
    "services",
    "cgroup",
    "task",
    "event",
];
/// Keys of `[[task]]`.
pub const TASK_KEYS: &[&str] = &[
    "name",
    "count",
    "template",
    "nice",
    "policy",
    "affinity",
    "cgroup",
    "slice",
    "timer_slack",
    "start",
    "process",
    "footprint",
    "steps",
];
/// Largest file that is read.
pub const BYTES_MAX: usize = 8 << 20;
const TASKS_MAX: i64 = 1_000_000;
const HZ: [i64; 4] = [100, 250, 300, 1000];

/// A name in the file that only the caller can check (a machine, a profile).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Its place, for [`Source::error`].
    pub span: Range<usize>,
}

/// A scenario that is right as far as it can be without its machine.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name; the file's name without extension by default.
    pub name: String,
    /// The machine it asks for.
    pub machine: Option<Named>,
    /// The profile it asks for.
    pub profile: Option<Named>,
    /// Ticks per second.
    pub hz: Option<u32>,
    /// Seeds of the runs; empty if the file does not say.
    pub seeds: Vec<u64>,
    /// For errors about it.
    pub source: Source,
    pub(super) root: Node,
    pub(super) is_rt_app: bool,
}

impl Scenario {
    /// Reads a scenario from a file; no more of it than is allowed.
    ///
    /// # Errors
    /// It cannot be read, is no UTF-8, or as [`Scenario::parse`].
    pub fn load(path: &Path) -> Result<Self, Error> {
        let file = path.to_string_lossy();
        let fail = |e: std::io::Error| {
            Source::new(&file, "").error(0..0, format!("the file cannot be read: {e}"))
        };
        let bytes_max = BYTES_MAX as u64;
        let mut text = String::new();
        // One byte more than is allowed, so that `parse` sees that there is too much.
        let mut limited = std::fs::File::open(path).map_err(fail)?.take(bytes_max + 1);
        limited.read_to_string(&mut text).map_err(fail)?;
        Self::parse(&file, &text)
    }

    /// Reads a scenario; `file` is for messages. A name that ends in `.json` is an rt-app file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let source = Source::new(file, if text.len() > BYTES_MAX { "" } else { text });
        if text.len() > BYTES_MAX {
            let message = format!("the file has more than {} MiB", BYTES_MAX >> 20);
            return Err(source.error(0..0, message));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(source.error(0..0, "the file is empty; expected a scenario"));
        }
        if file.ends_with(".json") {
            return super::rtapp::parse(source);
        }
        let root = from_toml(&source)?;
        let scenario = Self::header(source, root)?;
        scenario.build(None)?;
        Ok(scenario)
    }

    /// The workload, for a machine.
    ///
    /// # Errors
    /// A set of CPUs has none of the machine.
    pub fn workload(&self, env: &Env) -> Result<Workload, Error> {
        self.build(Some(env.cpus))
    }

    fn header(source: Source, root: Node) -> Result<Self, Error> {
        let top = Fields::open(&source, &root, "a scenario", TOP_KEYS)?;
        let named = |key: &str| {
            let named = |n: &Node| {
                let name = n.str(&source, "a name")?.to_owned();
                Ok(Named {
                    name,
                    span: n.span.clone(),
                })
            };
            top.get(key).map(named).transpose()
        };
        let hz = match top.get("hz") {
            None => None,
            Some(node) => match node.int(&source, 1..=10_000)? {
                hz if HZ.contains(&hz) => Some(hz as u32),
                hz => {
                    let message = format!("hz = {hz}; expected 100, 250, 300 or 1000");
                    return Err(source.error(node.span.clone(), message));
                }
            },
        };
        let (machine, profile) = (named("machine")?, named("profile")?);
        let name = named("name")?.map_or_else(|| stem(&source), |n| n.name);
        let seeds = seeds(&source, top.get("seeds"))?;
        Ok(Self {
            name,
            machine,
            profile,
            hz,
            seeds,
            source,
            root,
            is_rt_app: false,
        })
    }

    fn build(&self, cpus: Option<u32>) -> Result<Workload, Error> {
        if self.is_rt_app {
            return super::rtapp::build(self, cpus);
        }
        let source = &self.source;
        let top = Fields::open(source, &self.root, "a scenario", TOP_KEYS)?;
        let mut w = Workload::new(self.name.clone(), vec![source.name().to_owned()]);
        let names = Names::declare(&top, &mut w)?;
        let groups = groups::declare(source, tables(&top, "cgroup")?, cpus, &mut w)?;
        groups::events(source, tables(&top, "event")?, &groups, &mut w)?;
        let mut tasks = Tasks {
            source,
            cpus,
            names: &names,
            groups: &groups,
            w: &mut w,
        };
        let ranges = tasks.all(&top)?;
        duration(&top, &mut w)?;
        groups::none_too_late(source, tables(&top, "event")?, &w)?;
        add_metrics(&ranges, &mut w);
        w.validate().map_err(|e| source.error(0..0, e))?;
        Ok(w)
    }
}

fn stem(source: &Source) -> String {
    let file = source.name().rsplit(['/', '\\']).next().unwrap_or_default();
    file.rsplit_once('.')
        .map_or(file, |(stem, _)| stem)
        .to_owned()
}

fn seeds(source: &Source, node: Option<&Node>) -> Result<Vec<u64>, Error> {
    use super::node::Value;
    match node {
        None => Ok(Vec::new()),
        Some(node) if matches!(node.value, Value::Array(_)) => {
            let seeds = node.array(source, "a list of seeds")?;
            if seeds.is_empty() {
                return Err(source.error(node.span.clone(), "no seeds; expected at least one"));
            }
            seeds
                .iter()
                .map(|s| Ok(s.int(source, 0..=i64::MAX)? as u64))
                .collect()
        }
        Some(node) => Ok((1..=node.int(source, 1..=10_000)? as u64).collect()),
    }
}

fn tables<'a>(top: &Fields<'a>, key: &str) -> Result<&'a [Node], Error> {
    let what = format!("tables written as [[{key}]]");
    top.get(key).map_or(Ok(&[]), |n| n.array(top.source, &what))
}

fn duration(top: &Fields<'_>, w: &mut Workload) -> Result<(), Error> {
    let source = top.source;
    w.warmup_ns = top.get("warmup").map_or(Ok(0), |n| n.ns(source))?;
    let node = top.get("duration");
    let exit = |n: &&Node| matches!(&n.value, super::node::Value::Str(s) if s == "exit");
    w.duration = match node.filter(|n| !exit(n)) {
        Some(node) => Until::Time(w.warmup_ns.saturating_add(node.positive_ns(source)?)),
        None => Until::AllExit,
    };
    if w.duration == Until::AllExit
        && let Some(task) = w.initial.iter().find(|&&t| !ends(w, t))
    {
        let name = &w.templates[*task as usize].name;
        let message = format!("the task '{name}' never ends, so the scenario needs a 'duration'");
        return Err(source.error(node.map_or(0..0, |n| n.span.clone()), message));
    }
    Ok(())
}

/// Whether the program can come to its end: no hog, no endless loop before an exit.
pub(super) fn ends(w: &Workload, template: u32) -> bool {
    let ops = &w.programs[w.templates[template as usize].program as usize].ops;
    for op in ops {
        match op {
            Op::Hog | Op::LoopStart { count: FOREVER } => return false,
            Op::Exit => return true,
            _ => {}
        }
    }
    true
}

struct Tasks<'a> {
    source: &'a Source,
    cpus: Option<u32>,
    names: &'a Names,
    groups: &'a Groups,
    w: &'a mut Workload,
}

impl Tasks<'_> {
    /// Reads all tasks; gives the templates of each by its name.
    fn all(&mut self, top: &Fields<'_>) -> Result<Vec<(String, Range<u32>)>, Error> {
        let nodes = tables(top, "task")?;
        let mut opened = Vec::new();
        let mut forked = BTreeMap::new();
        let (mut ranges, mut next, mut seen) = (Vec::new(), 0u32, BTreeSet::new());
        for node in nodes {
            let fields = Fields::open(self.source, node, "a task", TASK_KEYS)?;
            let name_node = fields.need("name", "a task")?;
            let name = name_node.str(self.source, "a name")?.to_owned();
            let is_template = fields
                .get("template")
                .map_or(Ok(false), |n| n.bool(self.source))?;
            let count = fields
                .get("count")
                .map_or(Ok(1), |n| n.int(self.source, 1..=TASKS_MAX))?;
            if !seen.insert(name.clone()) {
                let message = format!("the task '{name}' is declared twice");
                return Err(self.source.error(name_node.span.clone(), message));
            }
            if is_template && count != 1 {
                let message = "a template has no count; 'fork' says how many";
                return Err(self.source.error(fields.node.span.clone(), message));
            }
            if i64::from(next) + count > TASKS_MAX {
                let message = format!("more than {TASKS_MAX} tasks");
                return Err(self.source.error(fields.node.span.clone(), message));
            }
            if is_template {
                forked.insert(name.clone(), next);
            } else {
                self.w.initial.extend(next..next + count as u32);
            }
            ranges.push((name, next..next + count as u32));
            next += count as u32;
            opened.push(fields);
        }
        if self.w.initial.is_empty() {
            let message = "there is no task to start; expected a [[task]]";
            return Err(self.source.error(0..0, message));
        }
        let mut processes = BTreeMap::from([("kernel".to_owned(), KERNEL_PROCESS)]);
        for (fields, (name, range)) in opened.iter().zip(&ranges) {
            self.one(fields, name, range.clone(), &forked, &mut processes)?;
        }
        Ok(ranges)
    }

    fn one(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        range: Range<u32>,
        forked: &BTreeMap<String, u32>,
        processes: &mut BTreeMap<String, u32>,
    ) -> Result<(), Error> {
        let source = self.source;
        let steps = fields.need("steps", "a task")?;
        let lower = Lower::new(source, self.cpus, self.names, self.groups, forked, self.w);
        let ops = lower.program(steps)?;
        self.w.programs.push(Program {
            name: name.to_owned(),
            ops,
        });
        let program = self.w.programs.len() as u32 - 1;

        let mut task = TaskTemplate::new(name, program, 0);
        task.nice = fields
            .get("nice")
            .map_or(Ok(0), |n| n.int(source, -20..=19))? as i8;
        task.policy = fields
            .get("policy")
            .map_or(Ok(Policy::Normal), |n| policy(source, n))?;
        let ns = |key: &str| fields.get(key).map(|n| n.positive_ns(source));
        task.slice_ns = ns("slice").transpose()?;
        task.timer_slack_ns = ns("timer_slack").transpose()?;
        task.start_ns = fields.get("start").map_or(Ok(0), |n| n.ns(source))?;
        let footprint = fields
            .get("footprint")
            .map_or(Ok(0), |n| n.int(source, 0..=1_000_000))?;
        task.footprint_bytes_per_us = footprint as u32;
        if let Some(node) = fields.get("affinity") {
            task.affinity = Some(mask(source, node, self.cpus, self.w)?);
        }
        let is_template = forked.contains_key(name);
        let cgroups = fields
            .get("cgroup")
            .map(|n| groups::find(source, n, self.groups));
        let cgroups = cgroups.transpose()?;
        let process = fields
            .get("process")
            .map(|n| n.str(source, "a name"))
            .transpose()?;
        task.thread = process.is_some();
        // Processes that have a name are numbered above all templates, which number the others.
        let named = process.map(|p| {
            let next = TASKS_MAX as u32 + processes.len() as u32;
            *processes.entry(p.to_owned()).or_insert(next)
        });
        for (i, index) in range.enumerate() {
            let mut one = task.clone();
            one.process = named.unwrap_or(index);
            one.cgroup = match &cgroups {
                Some(c) => Some(c.start + i as u32 % (c.end - c.start)),
                None if is_template => None,
                None => Some(0),
            };
            self.w.templates.push(one);
        }
        Ok(())
    }
}

fn policy(source: &Source, node: &Node) -> Result<Policy, Error> {
    let known = ["normal", "batch", "idle"];
    match node.str(source, "a policy")? {
        "normal" | "other" | "SCHED_NORMAL" | "SCHED_OTHER" => Ok(Policy::Normal),
        "batch" | "SCHED_BATCH" => Ok(Policy::Batch),
        "idle" | "SCHED_IDLE" => Ok(Policy::Idle),
        name => Err(super::node::unknown_name(
            source, &node.span, "policy", name, known,
        )),
    }
}

/// Every mark, kind of request and task of a scenario is reported under its name.
pub(super) fn add_metrics(tasks: &[(String, Range<u32>)], w: &mut Workload) {
    let mut all = Vec::new();
    for (k, name) in w.requests.iter().enumerate() {
        let request = k as u32;
        let quantile = |permille| From::RequestQuantileUs { request, permille };
        let mut latency = |what: &str, from| {
            all.push(MetricDef::new(
                format!("{name}.latency_us.{what}"),
                "us",
                Better::Lower,
                from,
            ));
        };
        latency("mean", From::RequestMeanUs(request));
        latency("p50", quantile(500));
        latency("p99", quantile(990));
        latency("max", quantile(1000));
        let per_s = From::RequestsPerS(request);
        all.push(MetricDef::new(
            format!("{name}.per_s"),
            "1/s",
            Better::Higher,
            per_s,
        ));
    }
    for (k, name) in w.marks.iter().enumerate() {
        let from = From::CountPerS(k as u32);
        all.push(MetricDef::new(
            format!("{name}.marks_per_s"),
            "1/s",
            Better::Neither,
            from,
        ));
    }
    for (name, range) in tasks {
        let from = From::CpuShare {
            first: range.start,
            end: range.end,
        };
        all.push(MetricDef::new(
            format!("{name}.cpu_share"),
            "1",
            Better::Neither,
            from,
        ));
    }
    if w.duration == Until::AllExit {
        all.push(MetricDef::new(
            "elapsed_s",
            "s",
            Better::Lower,
            From::ElapsedS,
        ));
    }
    w.metrics = all;
}

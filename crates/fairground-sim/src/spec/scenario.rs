//! A scenario file: machine, cgroups, tasks with their programs, and what happens meanwhile.
//! `docs/scenario.md` is its manual, `schemas/scenario.schema.json` its schema.
use super::error::{Error, Source};
use super::groups;
use super::names::Names;
use super::node::{Fields, Node, from_toml};
use super::tasks::Tasks;
use crate::workload::bench::Env;
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef, PERCENTILES};
use crate::workload::program::{FOREVER, Ns, Op, Until, Workload};
use core::ops::Range;
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
/// Largest file that is read.
pub const BYTES_MAX: usize = 8 << 20;
const HZ: [i64; 4] = [100, 250, 300, 1000];

/// A name in the file that only the caller can check (a machine, a profile).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Its place, for [`Source::error`].
    pub span: Range<usize>,
}

/// How long to run, said outside of the file; what is not said is the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// Measured time, ns; not 0.
    pub duration_ns: Option<Ns>,
    /// Time before it, ns.
    pub warmup_ns: Option<Ns>,
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
    pub(super) length: Length,
    pub(super) is_rt_app: bool,
}

impl Length {
    /// Replaces what the file says.
    pub(super) fn apply(self, w: &mut Workload) {
        let measured_ns = match w.duration {
            Until::Time(end_ns) => Some(end_ns - w.warmup_ns),
            _ => None,
        };
        w.warmup_ns = self.warmup_ns.unwrap_or(w.warmup_ns);
        if let Some(measured_ns) = self.duration_ns.or(measured_ns) {
            w.duration = Until::Time(w.warmup_ns.saturating_add(measured_ns));
        }
    }
}

impl Scenario {
    /// Reads a scenario from a file; no more of it than is allowed.
    ///
    /// # Errors
    /// It cannot be read, is no UTF-8, or as [`Scenario::parse`].
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::load_for(path, Length::default())
    }

    /// The same, to run for another time than the file says.
    ///
    /// # Errors
    /// As [`Scenario::load`], and an event of the file that would come after the end.
    pub fn load_for(path: &Path, length: Length) -> Result<Self, Error> {
        let file = path.to_string_lossy();
        let fail = |e: std::io::Error| {
            Source::new(&file, "").unread(format!("the file cannot be read: {e}"))
        };
        let bytes_max = BYTES_MAX as u64;
        let mut text = String::new();
        // One byte more than is allowed, so that `parse` sees that there is too much.
        let mut limited = std::fs::File::open(path).map_err(fail)?.take(bytes_max + 1);
        limited.read_to_string(&mut text).map_err(fail)?;
        Self::parse_for(&file, &text, length)
    }

    /// Reads a scenario; `file` is for messages. A name that ends in `.json` is an rt-app file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        Self::parse_for(file, text, Length::default())
    }

    /// The same, to run for another time than the text says.
    ///
    /// # Errors
    /// As [`Scenario::load_for`].
    pub fn parse_for(file: &str, text: &str, length: Length) -> Result<Self, Error> {
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
            return super::rtapp::parse(source, length);
        }
        let root = from_toml(&source)?;
        let scenario = Self::header(source, root, length)?;
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

    fn header(source: Source, root: Node, length: Length) -> Result<Self, Error> {
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
            Some(node) => match node.int(&source, i64::MIN..=i64::MAX)? {
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
            length,
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
        duration(&top, self.length, &mut w)?;
        groups::none_too_late(source, tables(&top, "event")?, self.length, &w)?;
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

pub(super) fn tables<'a>(top: &Fields<'a>, key: &str) -> Result<&'a [Node], Error> {
    let what = format!("tables written as [[{key}]]");
    top.get(key).map_or(Ok(&[]), |n| n.array(top.source, &what))
}

fn duration(top: &Fields<'_>, length: Length, w: &mut Workload) -> Result<(), Error> {
    let source = top.source;
    w.warmup_ns = top.get("warmup").map_or(Ok(0), |n| n.ns(source))?;
    let node = top.get("duration");
    let exit = |n: &&Node| matches!(&n.value, super::node::Value::Str(s) if s == "exit");
    w.duration = match node.filter(|n| !exit(n)) {
        Some(node) => Until::Time(w.warmup_ns.saturating_add(node.positive_ns(source)?)),
        None => Until::AllExit,
    };
    length.apply(w);
    if w.duration == Until::AllExit
        && let Some(task) = started(w).find(|&t| !ends(w, t))
    {
        let name = &w.templates[task as usize].name;
        let message = format!("the task '{name}' never ends, so the scenario needs a 'duration'");
        return Err(source.error(node.map_or(0..0, |n| n.span.clone()), message));
    }
    Ok(())
}

/// Templates of which there is a task at the start, or later by a `fork`.
fn started(w: &Workload) -> impl Iterator<Item = u32> {
    let forked = w
        .programs
        .iter()
        .flat_map(|p| &p.ops)
        .filter_map(|op| match op {
            Op::Fork { template } => Some(*template),
            _ => None,
        });
    w.initial.iter().copied().chain(forked)
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

/// Every mark, kind of request and task of a scenario is reported under its name.
pub(super) fn add_metrics(tasks: &[(String, Range<u32>)], w: &mut Workload) {
    let mut all = Vec::new();
    for (k, name) in w.requests.iter().enumerate() {
        let request = k as u32;
        let quantile = |permille| From::LatencyQuantileUs { request, permille };
        let mut latency = |what: &str, from| {
            all.push(MetricDef::new(
                format!("{name}.latency_us.{what}"),
                "us",
                Better::Lower,
                from,
            ));
        };
        latency("mean", From::RequestMeanUs(request));
        for (what, permille) in PERCENTILES {
            latency(what, quantile(permille));
        }
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
        let (first, end) = (range.start, range.end);
        let of_task = [
            ("cpu_share", From::CpuShare { first, end }),
            ("cpus", From::Cpus { first, end }),
        ];
        for (what, from) in of_task {
            let name = format!("{name}.{what}");
            all.push(MetricDef::new(name, "1", Better::Neither, from));
        }
    }
    if w.templates.iter().any(|t| t.working_set_bytes.is_some()) {
        all.push(MetricDef::fetching("fetch_pct"));
    }
    // How one kind counts against another nobody can say.
    if let ([kind], Until::Time(_)) = (&w.requests[..], w.duration) {
        w.work = Some(Work::new(kind, From::Requests(0)));
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

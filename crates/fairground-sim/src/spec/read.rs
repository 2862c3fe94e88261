//! A scenario file: machine, cgroups, tasks with their programs, and what happens meanwhile.
//! `docs/scenario.md` is its manual, `schemas/scenario.schema.json` its schema.
use super::error::{Error, Source};
use super::groups;
use super::metrics::{add_metrics, ends};
use super::names::Names;
use super::node::{Fields, Node, Value, from_toml, tables};
use super::notes;
use super::scenario::{Length, Named, Scenario};
use super::tasks::Tasks;
use crate::limited;
use crate::workload::bench::Env;
use crate::workload::program::{Op, Until, Workload};
use std::path::Path;

/// Keys at the top.
pub const TOP_KEYS: &[&str] = &[
    "name",
    "machine",
    "profile",
    "hz",
    "cpu_dma_latency",
    "duration",
    "warmup",
    "seeds",
    "pipes",
    "sockets",
    "mutexes",
    "semaphores",
    "futexes",
    "conditions",
    "barriers",
    "services",
    "cgroup",
    "task",
    "event",
];
/// Largest file that is read.
pub const BYTES_MAX: usize = 8 << 20;
const HZ: [i64; 4] = [100, 250, 300, 1000];

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
        let text = limited::read_text(path, BYTES_MAX as u64).map_err(fail)?;
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
        let hz = top.get("hz").map(|n| hz(&source, n)).transpose()?;
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
        w.no_idle_states = dma_latency(&top)?;
        duration(&top, self.length, &mut w)?;
        groups::none_too_late(source, tables(&top, "event")?, self.length, &w)?;
        add_metrics(&ranges, &mut w);
        w.validate().map_err(|e| source.error(0..0, e))?;
        notes::add(&mut w);
        Ok(w)
    }
}

fn stem(source: &Source) -> String {
    let file = source.name().rsplit(['/', '\\']).next().unwrap_or_default();
    file.rsplit_once('.')
        .map_or(file, |(stem, _)| stem)
        .to_owned()
}

fn hz(source: &Source, node: &Node) -> Result<u32, Error> {
    const EXPECTED: &str = "100, 250, 300 or 1000";
    match node.value {
        Value::Int(hz) if HZ.contains(&hz) => Ok(hz as u32),
        Value::Int(hz) => {
            let message = format!("hz = {hz}; expected {EXPECTED}");
            Err(source.error(node.span.clone(), message))
        }
        _ => Err(node.mismatch(source, EXPECTED)),
    }
}

/// Whether a program holds `/dev/cpu_dma_latency` open. Of its values only 0 is modelled: any other
/// leaves some idle states.
fn dma_latency(top: &Fields<'_>) -> Result<bool, Error> {
    const EXPECTED: &str = "0, as no other latency is modelled";
    let Some(node) = top.get("cpu_dma_latency") else {
        return Ok(false);
    };
    match node.value {
        Value::Int(0) => Ok(true),
        Value::Int(us) => {
            let message = format!("cpu_dma_latency = {us}; expected {EXPECTED}");
            Err(top.source.error(node.span.clone(), message))
        }
        _ => Err(node.mismatch(top.source, EXPECTED)),
    }
}

fn seeds(source: &Source, node: Option<&Node>) -> Result<Vec<u64>, Error> {
    match node {
        None => Ok(Vec::new()),
        Some(node) if matches!(node.value, Value::Array(_)) => {
            let seeds = node.array(source, "a list of seeds")?;
            if seeds.is_empty() {
                return Err(source.error(node.span.clone(), "no seeds; expected at least one"));
            }
            let mut all = Vec::new();
            for node in seeds {
                let seed = node.int(source, 0..=i64::MAX)? as u64;
                if all.contains(&seed) {
                    // It would be the same run again, and narrow intervals for nothing.
                    let message = format!("the seed {seed} is there twice; expected each once");
                    return Err(source.error(node.span.clone(), message));
                }
                all.push(seed);
            }
            Ok(all)
        }
        Some(node) => Ok((1..=node.int(source, 1..=10_000)? as u64).collect()),
    }
}

fn duration(top: &Fields<'_>, length: Length, w: &mut Workload) -> Result<(), Error> {
    let source = top.source;
    w.warmup_ns = top.get("warmup").map_or(Ok(0), |n| n.ns(source))?;
    let node = top.get("duration");
    let exit = |n: &&Node| matches!(&n.value, Value::Str(s) if s == "exit");
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

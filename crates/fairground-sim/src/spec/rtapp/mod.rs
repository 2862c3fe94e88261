//! rt-app files: its JSON grammar (rt-app's own `doc/tutorial.txt`) but for what is not modelled:
//! deadline policies, `iorun`, priority inheritance, the older grammar with `lock_order`. These are
//! errors, because a workload without some of its events is another workload. Times are in
//! microseconds, as rt-app has them.
//!
//! Files are read as its front end `workgen` reads them: a key may be there twice if it is an
//! event, a name that can be told may be missing, and a comma may be one too many.
mod event;
mod objects;
mod phase;
mod task;

use super::error::{Error, Source};
use super::json::from_json;
use super::metrics::{add_metrics, ends};
use super::node::{Fields, Key, Node, Value, unknown_name};
use super::scenario::{Length, Scenario};
use super::tasks::Class;
use crate::workload::nearest::nearest;
use crate::workload::program::{FOREVER, Ns, Op, Policy, Until, Workload};
use core::ops::Range;
use objects::Objects;
use std::collections::{BTreeMap, BTreeSet};

const GLOBAL_KEYS: &[&str] = &[
    "duration",
    "default_policy",
    "pi_enabled",
    "mem_buffer_size",
    // These say how rt-app measures and logs; a simulation has nothing to do for them.
    "calibration",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "lock_pages",
    "io_device",
    "cumulative_slack",
    "frag",
];
const US_MAX: i64 = 1_000_000_000_000;
const INSTANCES_MAX: i64 = 1_000_000;
/// Bytes of `mem_buffer_size` where a file has none.
const MEM_BUFFER: i64 = 4_194_304;
const BYTES_MAX: i64 = 1 << 40;

/// Reads the file and checks it.
pub(super) fn parse(source: Source, length: Length) -> Result<Scenario, Error> {
    let root = from_json(&source)?;
    let file = source.name().rsplit(['/', '\\']).next().unwrap_or_default();
    let name = file.trim_end_matches(".json").to_owned();
    let scenario = Scenario {
        name,
        machine: None,
        profile: None,
        hz: None,
        seeds: Vec::new(),
        source,
        root,
        length,
        is_rt_app: true,
    };
    build(&scenario, None)?;
    Ok(scenario)
}

/// Builds the workload.
pub(super) fn build(scenario: &Scenario, cpus: Option<u32>) -> Result<Workload, Error> {
    let source = &scenario.source;
    let top = open(
        source,
        &scenario.root,
        "an rt-app file",
        &["global", "tasks", "resources"],
    )?;
    let global = top.get("global");
    let global = global.map(|n| open(source, n, "global", GLOBAL_KEYS));
    let global = Global::read(source, global.transpose()?)?;
    let tasks = top.need("tasks", "an rt-app file")?;
    let entries = tasks.table(source, "tasks by their names")?;
    unique(source, entries, &[])?;
    let mut w = Workload::new(scenario.name.clone(), vec![source.name().to_owned()]);
    let templates = templates(source, entries)?;
    let mut build = Build {
        source,
        cpus,
        global: &global,
        templates: &templates,
        objects: Objects::default(),
        forked: BTreeMap::new(),
        without_effect: BTreeSet::new(),
        w: &mut w,
    };
    for (key, node) in entries {
        build.task(key, node)?;
    }
    build.finish()?;
    if w.initial.is_empty() {
        return Err(source.error(tasks.span.clone(), "there is no task to start"));
    }
    duration(source, &global, scenario.length, &mut w)?;
    let ranges = entries.iter().map(|(key, _)| &key.name);
    let ranges = ranges.map(|name| (name.clone(), templates[name].range()));
    add_metrics(&ranges.collect::<Vec<_>>(), &mut w);
    w.validate().map_err(|e| source.error(0..0, e))?;
    super::notes::add(&mut w);
    Ok(w)
}

/// What holds for all tasks.
struct Global<'a> {
    default_policy: Class,
    mem_buffer: u64,
    duration: Option<&'a Node>,
}

impl<'a> Global<'a> {
    fn read(source: &Source, fields: Option<Fields<'a>>) -> Result<Self, Error> {
        let get = |key: &str| fields.as_ref().and_then(|global| global.get(key));
        if let Some(node) = get("pi_enabled")
            && node.bool(source)?
        {
            let message = "priority inheritance is not modelled; expected false";
            return Err(source.error(node.span.clone(), message));
        }
        let policy = get("default_policy").map(|node| policy(source, node));
        let bytes = get("mem_buffer_size");
        let bytes = bytes.map_or(Ok(MEM_BUFFER), |n| n.int(source, 64..=BYTES_MAX))?;
        Ok(Self {
            default_policy: policy.transpose()?.unwrap_or(Class::Fair(Policy::Normal)),
            mem_buffer: bytes as u64,
            duration: get("duration"),
        })
    }
}

/// Where the templates of a task stand.
struct Templates {
    first: u32,
    /// Threads at the start; one template is there even for none, for `fork`.
    instances: u32,
}

impl Templates {
    fn range(&self) -> Range<u32> {
        self.first..self.first + self.instances.max(1)
    }
}

/// Numbers all templates before any event names one.
fn templates(source: &Source, tasks: &[(Key, Node)]) -> Result<BTreeMap<String, Templates>, Error> {
    let mut templates = BTreeMap::new();
    let mut first = 0;
    for (key, node) in tasks {
        key.check_name(source, "a task")?;
        let entries = node.table(source, "a task (an object)")?;
        let instances = value(entries, "instance");
        let instances = instances.map_or(Ok(1), |n| n.int(source, 0..=INSTANCES_MAX))? as u32;
        let of = Templates { first, instances };
        first = of.range().end;
        if i64::from(first) > INSTANCES_MAX {
            return Err(source.error(key.span.clone(), format!("more than {INSTANCES_MAX} tasks")));
        }
        templates.insert(key.name.clone(), of);
    }
    Ok(templates)
}

fn duration(
    source: &Source,
    global: &Global<'_>,
    length: Length,
    w: &mut Workload,
) -> Result<(), Error> {
    let node = global.duration;
    let seconds = node.map_or(Ok(-1), |n| n.int(source, -1..=1_000_000))?;
    match seconds {
        1.. => w.duration = Until::Time(seconds as Ns * 1_000_000_000),
        0 => {
            let span = node.map_or(0..0, |n| n.span.clone());
            return Err(source.error(span, "a duration of 0; expected seconds, or -1"));
        }
        _ if length.duration_ns.is_some() => {}
        _ => {
            if let Some(&t) = w.initial.iter().find(|&&t| !ends(w, t)) {
                let name = &w.templates[t as usize].name;
                let message = format!(
                    "the task '{name}' never ends, so 'global' needs a 'duration' in seconds"
                );
                return Err(source.error(node.map_or(0..0, |n| n.span.clone()), message));
            }
        }
    }
    length.apply(w);
    Ok(())
}

fn policy(source: &Source, node: &Node) -> Result<Class, Error> {
    let known = [
        "SCHED_OTHER",
        "SCHED_BATCH",
        "SCHED_IDLE",
        "SCHED_FIFO",
        "SCHED_RR",
    ];
    match node.str(source, "a policy like \"SCHED_OTHER\"")? {
        "SCHED_OTHER" | "SCHED_NORMAL" => Ok(Class::Fair(Policy::Normal)),
        "SCHED_BATCH" => Ok(Class::Fair(Policy::Batch)),
        "SCHED_IDLE" => Ok(Class::Fair(Policy::Idle)),
        "SCHED_FIFO" => Ok(Class::RealTime { takes_turns: false }),
        "SCHED_RR" => Ok(Class::RealTime { takes_turns: true }),
        "SCHED_DEADLINE" => {
            let message = "the policy 'SCHED_DEADLINE' is not modelled";
            let help = format!("expected one of {}", known.join(", "));
            Err(source.error(node.span.clone(), message).help(Some(help)))
        }
        name => Err(unknown_name(source, &node.span, "policy", name, known)),
    }
}

struct Build<'a> {
    source: &'a Source,
    cpus: Option<u32>,
    global: &'a Global<'a>,
    templates: &'a BTreeMap<String, Templates>,
    objects: Objects,
    /// Tasks that others fork, and where the first of these says so.
    forked: BTreeMap<String, Range<usize>>,
    /// Keys that are right and change nothing here.
    without_effect: BTreeSet<&'static str>,
    w: &'a mut Workload,
}

impl Build<'_> {
    /// What is known only when all tasks have been read.
    fn finish(self) -> Result<(), Error> {
        let Self { objects, w, .. } = self;
        for (name, span) in &self.forked {
            if objects.meets(name) {
                let message = format!(
                    "fork of '{name}', which meets others at a barrier: how many meet there is \
                     not known then"
                );
                return Err(self.source.error(span.clone(), message));
            }
        }
        objects.declare(w);
        if !self.without_effect.is_empty() {
            let keys: Vec<&str> = self.without_effect.into_iter().collect();
            let note = format!(
                "without effect here (docs/scenario.md): {}",
                keys.join(", ")
            );
            w.notes.push(note);
        }
        Ok(())
    }
}

/// A table whose keys are known and there once.
fn open<'a>(
    source: &'a Source,
    node: &'a Node,
    what: &str,
    known: &[&str],
) -> Result<Fields<'a>, Error> {
    unique(
        source,
        node.table(source, &format!("{what} (an object)"))?,
        &[],
    )?;
    Fields::open(source, node, what, known)
}

/// Refuses a key that is there twice, but for events: they are done in turn.
fn unique(source: &Source, entries: &[(Key, Node)], events: &[&str]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    let is_event = |key: &str| events.iter().any(|event| event::is(key, event));
    let mut others = entries.iter().filter(|(key, _)| !is_event(&key.name));
    match others.find(|(key, _)| !seen.insert(&key.name)) {
        Some((key, _)) => {
            let message = format!("the key '{}' is here twice", key.name);
            Err(source.error(key.span.clone(), message))
        }
        None => Ok(()),
    }
}

fn value<'n>(entries: &'n [(Key, Node)], name: &str) -> Option<&'n Node> {
    let found = entries.iter().find(|(key, _)| key.name == name);
    found.map(|(_, value)| value)
}

fn open_loop(ops: &mut Vec<Op>, count: u64) -> usize {
    ops.push(Op::LoopStart { count });
    ops.len() - 1
}

fn turns(source: &Source, node: &Node) -> Result<u64, Error> {
    match node.value {
        Value::Int(-1) => Ok(FOREVER),
        _ => Ok(node.int(source, 1..=i64::MAX)? as u64),
    }
}

fn us(source: &Source, node: &Node, least: i64) -> Result<Ns, Error> {
    Ok(node.int(source, least..=US_MAX)? as Ns * 1000)
}

fn unknown(source: &Source, key: &Key, what: &str, known: &[&str]) -> Error {
    let message = format!(
        "unknown key '{}' in {what}; expected one of {}",
        key.name,
        known.join(", ")
    );
    let help = nearest(&key.name, known.iter().copied()).map(|n| format!("did you mean '{n}'?"));
    source.error(key.span.clone(), message).help(help)
}

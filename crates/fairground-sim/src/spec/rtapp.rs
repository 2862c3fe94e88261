//! rt-app files: the basic set of its JSON grammar (rt-app's own `doc/tutorial.txt`). Anything
//! else is an error, because a workload without some of its events is another workload. Times are
//! in microseconds, as rt-app has them.
//!
//! Not modelled: deadline policies, shared timer references (each task has its own
//! grid), `runtime` (busy for an elapsed time), memory and I/O events.
use super::error::{Error, Source};
use super::json::from_json;
use super::metrics::{add_metrics, ends};
use super::names::{by_index, mask};
use super::node::{Fields, Key, Node, Value, unknown_name};
use super::scenario::{Length, Scenario};
use super::tasks::Class;
use crate::workload::nearest::nearest;
use crate::workload::program::{
    Dur, FOREVER, Ns, Op, Policy, Program, RealTime, TaskTemplate, Until, Workload,
};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

const GLOBAL_KEYS: &[&str] = &[
    "duration",
    "default_policy",
    // These say how rt-app measures and logs; a simulation has nothing to do for them.
    "calibration",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "lock_pages",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "pi_enabled",
];
const TASK_KEYS: &[&str] = &[
    "instance", "loop", "delay", "policy", "priority", "cpus", "phases",
];
const PHASE_KEYS: &[&str] = &["loop", "cpus"];
/// Events; a key that begins with one of them is that event ("run2"), as in rt-app.
const EVENTS: &[&str] = &[
    "run", "sleep", "timer", "lock", "unlock", "barrier", "yield",
];
/// Priority of a real-time task that has none of its own (`DEFAULT_THREAD_PRIORITY`).
const PRIORITY: i64 = 10;
const US_MAX: i64 = 1_000_000_000_000;
const INSTANCES_MAX: i64 = 1_000_000;

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
    let top = Fields::open(
        source,
        &scenario.root,
        "an rt-app file",
        &["global", "tasks", "resources"],
    )?;
    let mut w = Workload::new(scenario.name.clone(), vec![source.name().to_owned()]);
    let global = top
        .get("global")
        .map(|n| Fields::open(source, n, "global", GLOBAL_KEYS));
    let global = global.transpose()?;
    let inherits = global.as_ref().and_then(|g| g.get("pi_enabled"));
    if let Some(node) = inherits
        && node.bool(source)?
    {
        let message = "priority inheritance is not modelled; expected false";
        return Err(source.error(node.span.clone(), message));
    }
    let default_policy = global.as_ref().and_then(|g| g.get("default_policy"));
    let normal = Class::Fair(Policy::Normal);
    let default_policy = default_policy.map_or(Ok(normal), |n| policy(source, n))?;
    let tasks = top.need("tasks", "an rt-app file")?;
    let mut build = Build {
        source,
        cpus,
        w: &mut w,
        mutexes: BTreeMap::new(),
        barriers: BTreeMap::new(),
        held: BTreeSet::new(),
        met: BTreeSet::new(),
    };
    let mut ranges: Vec<(String, Range<u32>)> = Vec::new();
    for (key, node) in tasks.table(source, "tasks by their names")? {
        let range = build.task(key, node, default_policy)?;
        ranges.push((key.name.clone(), range));
    }
    build.w.labels.mutexes = by_index(&build.mutexes);
    build.w.labels.barriers = by_index(&build.barriers);
    if w.initial.is_empty() {
        return Err(source.error(tasks.span.clone(), "there is no task to start"));
    }
    duration(source, global.as_ref(), scenario.length, &mut w)?;
    add_metrics(&ranges, &mut w);
    w.validate().map_err(|e| source.error(0..0, e))?;
    super::notes::add(&mut w);
    Ok(w)
}

fn duration(
    source: &Source,
    global: Option<&Fields<'_>>,
    length: Length,
    w: &mut Workload,
) -> Result<(), Error> {
    let node = global.and_then(|g| g.get("duration"));
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
        name => Err(unknown_name(source, &node.span, "policy", name, known)),
    }
}

struct Build<'a> {
    source: &'a Source,
    cpus: Option<u32>,
    w: &'a mut Workload,
    mutexes: BTreeMap<String, u32>,
    barriers: BTreeMap<String, u32>,
    /// Mutexes that the task being read holds at this point.
    held: BTreeSet<u32>,
    /// Barriers that it names.
    met: BTreeSet<u32>,
}

impl Build<'_> {
    fn task(&mut self, key: &Key, node: &Node, default: Class) -> Result<Range<u32>, Error> {
        let source = self.source;
        key.check_name(source, "a task")?;
        let entries = node.table(source, "a task (an object)")?;
        let value = |name: &str| entries.iter().find(|(k, _)| k.name == name).map(|(_, v)| v);
        let instances = value("instance").map_or(Ok(1), |n| n.int(source, 1..=INSTANCES_MAX))?;
        let first = self.w.templates.len() as u32;
        if i64::from(first) + instances > INSTANCES_MAX {
            return Err(source.error(key.span.clone(), format!("more than {INSTANCES_MAX} tasks")));
        }
        let turns = value("loop").map_or(Ok(FOREVER), |n| turns(source, n))?;
        let mut ops = Vec::new();
        self.held.clear();
        self.met.clear();
        let start = open_loop(&mut ops, turns);
        match value("phases") {
            Some(phases) => {
                for (key, _) in entries {
                    if !TASK_KEYS.contains(&key.name.as_str()) {
                        return Err(unknown(source, key, "a task with phases", TASK_KEYS));
                    }
                }
                for (_, phase) in phases.table(source, "phases by their names")? {
                    self.phase(phase, PHASE_KEYS, true, &mut ops)?;
                }
            }
            None => self.phase(node, TASK_KEYS, false, &mut ops)?,
        }
        self.close_loop(&mut ops, start, &key.span)?;
        // A barrier has as many parties as there are tasks that name it.
        for &k in &self.met {
            self.w.barriers[k as usize] += instances as u32;
        }
        self.w.programs.push(Program {
            name: key.name.clone(),
            ops,
        });

        let program = self.w.programs.len() as u32 - 1;
        // The tasks of an rt-app file are threads of one process.
        let mut task = TaskTemplate::new(&key.name, program, 0);
        task.thread = true;
        task.cgroup = Some(0);
        let priority = value("priority");
        match value("policy").map_or(Ok(default), |n| policy(source, n))? {
            Class::Fair(policy) => {
                task.policy = policy;
                task.nice = priority.map_or(Ok(0), |n| n.int(source, -20..=19))? as i8;
            }
            Class::RealTime { takes_turns } => {
                let priority = priority.map_or(Ok(PRIORITY), |n| n.int(source, 1..=99))?;
                task.real_time = Some(RealTime {
                    priority: priority as u8,
                    takes_turns,
                });
            }
        }
        task.start_ns = value("delay").map_or(Ok(0), |n| us(source, n, 0))?;
        if let Some(node) = value("cpus") {
            task.affinity = Some(mask(source, node, self.cpus, self.w)?);
        }
        for i in 0..instances as u32 {
            self.w.templates.push(task.clone());
            self.w.initial.push(first + i);
        }
        Ok(first..first + instances as u32)
    }

    /// The events of an object, in the order of its keys; `known` are keys that are no events.
    fn phase(
        &mut self,
        node: &Node,
        known: &[&str],
        is_phase: bool,
        ops: &mut Vec<Op>,
    ) -> Result<(), Error> {
        let source = self.source;
        let entries = node.table(source, "a phase (an object)")?;
        let value = |name: &str| entries.iter().find(|(k, _)| k.name == name).map(|(_, v)| v);
        let mut start = None;
        if is_phase {
            if let Some(cpus) = value("cpus") {
                ops.push(Op::SetAffinity(mask(source, cpus, self.cpus, self.w)?));
            }
            let count = value("loop").map_or(Ok(1), |n| turns(source, n))?;
            start = Some(open_loop(ops, count));
        }
        let before = ops.len();
        for (key, value) in entries {
            if known.contains(&key.name.as_str()) {
                continue;
            }
            self.event(key, value, known, ops)?;
        }
        if ops.len() == before {
            let message = "no events; expected at least a run or a sleep";
            return Err(source.error(node.span.clone(), message));
        }
        match start {
            Some(start) => self.close_loop(ops, start, &node.span),
            None => Ok(()),
        }
    }

    fn event(
        &mut self,
        key: &Key,
        value: &Node,
        known: &[&str],
        ops: &mut Vec<Op>,
    ) -> Result<(), Error> {
        let source = self.source;
        let numbered = |e: &&&str| {
            let digits = key.name.strip_prefix(**e);
            digits.is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()))
        };
        let Some(&event) = EVENTS.iter().find(numbered) else {
            let all: Vec<&str> = EVENTS.iter().chain(known).copied().collect();
            return Err(unknown(source, key, "a phase", &all));
        };
        let op = match event {
            "run" => Op::Run(Dur::Const(us(source, value, 0)?)),
            "sleep" => Op::Sleep(Dur::Const(us(source, value, 0)?)),
            "timer" => self.timer(value)?,
            "lock" | "unlock" => {
                let name = value.name(source, "the name of a mutex")?;
                let next = self.mutexes.len() as u32;
                let k = *self.mutexes.entry(name.to_owned()).or_insert(next);
                self.w.n_mutexes = self.mutexes.len() as u32;
                let fits = if event == "lock" {
                    self.held.insert(k)
                } else {
                    self.held.remove(&k)
                };
                if !fits {
                    let message =
                        format!("{event} of '{name}', which this task does not allow here");
                    let help = Some("a task locks a mutex before it unlocks it, once each");
                    return Err(source.error(value.span.clone(), message).help(help));
                }
                if event == "lock" {
                    Op::Lock(k)
                } else {
                    Op::Unlock(k)
                }
            }
            "barrier" => {
                let name = value.name(source, "the name of a barrier")?;
                // A condition variable and its mutex, as in rt-app.
                let next = self.mutexes.len() as u32;
                let mutex = *self
                    .mutexes
                    .entry(format!("of barrier {name}"))
                    .or_insert(next);
                self.w.n_mutexes = self.mutexes.len() as u32;
                let barrier = self.barrier(name);
                Op::CondBarrier { barrier, mutex }
            }
            _ => Op::Yield,
        };
        ops.push(op);
        Ok(())
    }

    fn timer(&mut self, node: &Node) -> Result<Op, Error> {
        let source = self.source;
        let timer = Fields::open(source, node, "a timer", &["ref", "period", "mode"])?;
        let modes = ["relative", "absolute"];
        let mode = timer.get("mode");
        let stays = mode.map(|node| node.is_second(source, "mode", modes));
        if let Some(reference) = timer.get("ref") {
            reference.str(source, "the name of a timer")?;
        }
        let every = Dur::Const(us(source, timer.need("period", "a timer")?, 1)?);
        Ok(match stays.transpose()? {
            Some(true) => Op::Pace(every),
            _ => Op::Period(every),
        })
    }

    fn barrier(&mut self, name: &str) -> u32 {
        let next = self.barriers.len() as u32;
        let k = *self.barriers.entry(name.to_owned()).or_insert(next);
        if k == next {
            self.w.barriers.push(0);
        }
        self.met.insert(k);
        k
    }

    fn close_loop(
        &mut self,
        ops: &mut Vec<Op>,
        start: usize,
        span: &Range<usize>,
    ) -> Result<(), Error> {
        if !ops[start..].iter().any(|op| op.takes_time()) {
            let message = "a loop whose events take no time; expected a run or a sleep";
            return Err(self.source.error(span.clone(), message));
        }
        ops.push(Op::LoopEnd {
            start: start as u32,
        });
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each barrier has a mutex of its own, beside those that the file names.
    #[test]
    fn a_barrier_is_a_condition_variable_and_its_mutex() {
        let task = r#"{"lock": "m", "unlock": "m", "barrier": "b", "barrier1": "c"}"#;
        let text = format!(
            "{{\"global\": {{\"duration\": 1}}, \"tasks\": {{\"x\": {task}, \"y\": {task}}}}}"
        );
        let read = Scenario::parse("s.json", &text).and_then(|s| build(&s, None));
        let w = read.unwrap_or_else(|e| panic!("{e:?}"));
        let of_barriers = w.programs[0].ops.iter().filter_map(|op| match op {
            Op::CondBarrier { barrier, mutex } => Some((*barrier, *mutex)),
            _ => None,
        });
        assert_eq!(of_barriers.collect::<Vec<_>>(), [(0, 1), (1, 2)]);
        assert_eq!((w.n_mutexes, w.barriers), (3, vec![2, 2]));
    }

    #[test]
    fn points_of_a_timer_shift_or_stay_as_its_mode_says() {
        let op = |mode: &str| {
            let timer = format!("{{\"ref\": \"unique\", \"period\": 20{mode}}}");
            let tasks = format!("{{\"a\": {{\"run\": 10, \"timer\": {timer}}}}}");
            let text = format!("{{\"global\": {{\"duration\": 1}}, \"tasks\": {tasks}}}");
            let read = Scenario::parse("s.json", &text);
            let w = read.and_then(|s| build(&s, None));
            w.unwrap_or_else(|e| panic!("{e:?}")).programs[0].ops[2]
        };
        let every = Dur::Const(20_000);
        assert_eq!(op(""), Op::Period(every));
        assert_eq!(op(", \"mode\": \"relative\""), Op::Period(every));
        assert_eq!(op(", \"mode\": \"absolute\""), Op::Pace(every));
    }
}

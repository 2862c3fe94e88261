//! The tasks of a scenario file.
use super::error::{Error, Source};
use super::groups::{self, Groups};
use super::names::{Names, mask};
use super::node::{Fields, Node, tables};
use super::steps::Lower;
use crate::workload::program::{
    Inherits, KERNEL_PROCESS, Policy, Program, RealTime, TaskTemplate, Workload,
};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of `[[task]]`.
pub const TASK_KEYS: &[&str] = &[
    "name",
    "count",
    "template",
    "nice",
    "policy",
    "priority",
    "affinity",
    "cgroup",
    "slice",
    "timer_slack",
    "start",
    "process",
    "footprint",
    "working_set",
    "steps",
];
const TASKS_MAX: i64 = 1_000_000;

/// What the tasks of a scenario are read with.
pub(super) struct Tasks<'a> {
    pub source: &'a Source,
    pub cpus: Option<u32>,
    pub names: &'a Names,
    pub groups: &'a Groups,
    pub w: &'a mut Workload,
}

impl Tasks<'_> {
    /// Reads all tasks; gives the templates of each by its name.
    pub fn all(&mut self, top: &Fields<'_>) -> Result<Vec<(String, Range<u32>)>, Error> {
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
            if name.trim().is_empty() {
                let message = "a task's name is empty; its metrics begin with it";
                return Err(self.source.error(name_node.span.clone(), message));
            }
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
        let mut processes = Processes {
            known: BTreeMap::from([("kernel".to_owned(), KERNEL_PROCESS)]),
            next,
        };
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
        processes: &mut Processes,
    ) -> Result<(), Error> {
        let source = self.source;
        let steps = fields.need("steps", "a task")?;
        let class = fields.get("policy").map(|n| policy(source, n));
        let class = class.transpose()?;
        let mut lower = Lower::new(source, self.cpus, self.names, self.groups, forked, self.w);
        lower.real_time = matches!(class, Some(Class::RealTime { .. }));
        let ops = lower.program(steps)?;
        self.w.programs.push(Program {
            name: name.to_owned(),
            ops,
        });
        let program = self.w.programs.len() as u32 - 1;

        let is_template = forked.contains_key(name);
        let mut task = TaskTemplate::new(name, program, 0);
        self.scheduling(fields, is_template, &mut task)?;
        task.start_ns = fields.get("start").map_or(Ok(0), |n| n.ns(source))?;
        let footprint = fields
            .get("footprint")
            .map_or(Ok(0), |n| n.int(source, 0..=1_000_000))?;
        task.footprint_bytes_per_us = footprint as u32;
        let set = fields.get("working_set").map(|n| n.bytes(source));
        task.working_set_bytes = set.transpose()?;
        task.fetches = true;
        let cgroups = fields
            .get("cgroup")
            .map(|n| groups::find(source, n, self.groups));
        let cgroups = cgroups.transpose()?;
        let process = fields
            .get("process")
            .map(|n| n.str(source, "a name"))
            .transpose()?;
        task.thread = process.is_some();
        let named = process.map(|p| processes.number(p));
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

    /// How it is scheduled. What a template does not say, its creator does.
    fn scheduling(
        &mut self,
        fields: &Fields<'_>,
        is_template: bool,
        task: &mut TaskTemplate,
    ) -> Result<(), Error> {
        let source = self.source;
        let (nice, of_policy) = (fields.get("nice"), fields.get("policy"));
        let (slice, affinity) = (fields.get("slice"), fields.get("affinity"));
        task.nice = nice.map_or(Ok(0), |n| n.int(source, -20..=19))? as i8;
        let read = of_policy.map_or(Ok(Class::Fair(Policy::Normal)), |n| policy(source, n))?;
        let priority = fields.get("priority");
        match read {
            Class::Fair(policy) => {
                task.policy = policy;
                if let Some(node) = priority {
                    let message = "a priority is of a real-time task, others have a nice value; \
                                   expected policy = \"fifo\" or \"rr\"";
                    return Err(source.error(node.span.clone(), message));
                }
            }
            Class::RealTime { takes_turns } => {
                let priority = fields.need("priority", "a real-time task")?;
                task.real_time = Some(RealTime {
                    priority: priority.int(source, 1..=99)? as u8,
                    takes_turns,
                });
                let slack = fields.get("timer_slack");
                let of_fair = [("nice", nice), ("slice", slice), ("timer_slack", slack)];
                self.only_real_time(&of_fair)?;
            }
        }
        // As for `sched_setattr`, 0 is the default.
        let slice_ns = slice.map(|n| n.ns(source)).transpose()?;
        task.slice_ns = slice_ns.filter(|ns| *ns > 0);
        let slack = fields.get("timer_slack");
        task.timer_slack_ns = slack.map(|n| n.positive_ns(source)).transpose()?;
        let mut mask = |n: &Node| mask(source, n, self.cpus, self.w);
        task.affinity = affinity.map(&mut mask).transpose()?;
        task.inherits = Inherits {
            nice: is_template && nice.is_none(),
            policy: is_template && of_policy.is_none(),
            slice: is_template && slice.is_none(),
            affinity: is_template && affinity.is_none(),
        };
        Ok(())
    }

    /// Refuses what has no meaning for a real-time task.
    fn only_real_time(&self, others: &[(&str, Option<&Node>)]) -> Result<(), Error> {
        let Some((key, node)) = others.iter().find_map(|(key, node)| Some((key, (*node)?))) else {
            return Ok(());
        };
        let message = format!("a real-time task has no {key}; expected a priority, 1 to 99");
        Err(self.source.error(node.span.clone(), message))
    }
}

/// The processes that have a name, which are numbered right above all templates: those number the
/// others, and tables by the number of a process stay small.
struct Processes {
    known: BTreeMap<String, u32>,
    next: u32,
}

impl Processes {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.known.get(name) {
            return *number;
        }
        let number = self.next;
        self.next += 1;
        self.known.insert(name.to_owned(), number);
        number
    }
}

/// The class of a policy.
#[derive(Clone, Copy)]
pub(super) enum Class {
    Fair(Policy),
    RealTime { takes_turns: bool },
}

fn policy(source: &Source, node: &Node) -> Result<Class, Error> {
    let known = ["normal", "batch", "idle", "fifo", "rr"];
    match node.str(source, "a policy")? {
        "normal" | "other" | "SCHED_NORMAL" | "SCHED_OTHER" => Ok(Class::Fair(Policy::Normal)),
        "batch" | "SCHED_BATCH" => Ok(Class::Fair(Policy::Batch)),
        "idle" | "SCHED_IDLE" => Ok(Class::Fair(Policy::Idle)),
        "fifo" | "SCHED_FIFO" => Ok(Class::RealTime { takes_turns: false }),
        "rr" | "SCHED_RR" => Ok(Class::RealTime { takes_turns: true }),
        name => Err(super::node::unknown_name(
            source, &node.span, "policy", name, known,
        )),
    }
}

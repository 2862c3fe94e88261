//! One task of an rt-app file: its threads, their properties and phases.

use std::collections::BTreeSet;

use super::super::error::Error;
use super::super::names::mask;
use super::super::node::{Key, Node, Value};
use super::super::steps::NAMES_MAX;
use super::super::tasks::Class;
use super::event::{EVENTS, Thread};
use super::phase::{PHASE_KEYS, Phase, WITHOUT_EFFECT};
use super::{Build, open_loop, policy, turns, unique, unknown, us, value};
use crate::workload::program::{FOREVER, Op, Program, RealTime, TaskTemplate};

/// Keys of a task beside the properties that its phases can have, too.
const TASK_KEYS: &[&str] = &["instance", "delay", "phases"];
/// Priority of a real-time task that has none of its own (`DEFAULT_THREAD_PRIORITY`).
const PRIORITY: i64 = 10;

impl Build<'_> {
    pub(super) fn task(&mut self, key: &Key, node: &Node) -> Result<(), Error> {
        let source = self.source;
        let entries = node.table(source, "a task (an object)")?;
        let keys: Vec<&str> = [PHASE_KEYS, TASK_KEYS].concat();
        let phases = value(entries, "phases");
        unique(source, entries, if phases.is_some() { &[] } else { EVENTS })?;
        if phases.is_some() {
            let other = entries.iter().find(|(k, _)| !keys.contains(&&*k.name));
            if let Some((other, _)) = other {
                return Err(unknown(source, other, "a task with phases", &keys));
            }
        }
        let mut task = self.template(key, entries)?;
        let mut thread = Thread::new(&key.name, task.real_time.is_some());
        let count = value(entries, "loop").map_or(Ok(FOREVER), |n| turns(source, n))?;
        let start = open_loop(&mut thread.ops, count);
        let held = thread.held.clone();
        match phases {
            Some(phases) => self.phases(phases, task.affinity, &mut thread)?,
            None => self.events(node, entries, &keys, &mut thread)?,
        }
        self.close_loop(&mut thread, start, count, &held, &key.span)?;
        let of = &self.templates[&key.name];
        for &barrier in &thread.barriers {
            self.objects.meet(barrier, &key.name, of.instances);
        }
        let ops = self.measured(thread);
        task.program = self.w.programs.len() as u32;
        let name = key.name.clone();
        self.w.programs.push(Program { name, ops });
        for template in of.range() {
            self.w.templates.push(task.clone());
            if template - of.first < of.instances {
                self.w.initial.push(template);
            }
        }
        Ok(())
    }

    /// What a thread is at its start.
    fn template(&mut self, key: &Key, entries: &[(Key, Node)]) -> Result<TaskTemplate, Error> {
        let source = self.source;
        // The tasks of an rt-app file are threads of one process.
        let mut task = TaskTemplate::new(&key.name, 0, 0);
        task.thread = true;
        task.cgroup = Some(0);
        let priority = value(entries, "priority");
        let class = value(entries, "policy").map(|n| policy(source, n));
        match class.transpose()?.unwrap_or(self.global.default_policy) {
            Class::Fair(policy) => {
                task.policy = policy;
                task.nice = priority.map_or(Ok(0), |n| n.int(source, -20..=19))? as i8;
                // rt-app sets it by `sched_setattr`, where it is a slice.
                let slice = value(entries, "dl-runtime").map(|n| us(source, n, 0));
                task.slice_ns = slice.transpose()?.filter(|ns| *ns > 0);
            }
            Class::RealTime { takes_turns } => {
                let priority = priority.map_or(Ok(PRIORITY), |n| n.int(source, 1..=99))?;
                task.real_time = Some(RealTime {
                    priority: priority as u8,
                    takes_turns,
                });
            }
        }
        if let Some(node) = value(entries, "taskgroup") {
            task.cgroup = Some(self.taskgroup(node)?.unwrap_or(0));
        }
        task.start_ns = value(entries, "delay").map_or(Ok(0), |n| us(source, n, 0))?;
        if let Some(node) = value(entries, "cpus") {
            task.affinity = Some(mask(source, node, self.cpus, self.w)?);
        }
        self.note_without_effect(entries);
        Ok(task)
    }

    fn phases(
        &mut self,
        phases: &Node,
        affinity: Option<u32>,
        thread: &mut Thread,
    ) -> Result<(), Error> {
        let source = self.source;
        let mut read = Vec::new();
        for (_, node) in phases.table(source, "phases by their names")? {
            let entries = node.table(source, "a phase (an object)")?;
            unique(source, entries, EVENTS)?;
            self.note_without_effect(entries);
            let cpus = match value(entries, "cpus") {
                Some(cpus) => Some(mask(source, cpus, self.cpus, self.w)?),
                None => affinity,
            };
            read.push(Phase {
                node,
                entries,
                cpus,
            });
        }
        if read.is_empty() {
            let message = "no phases; expected at least one";
            return Err(source.error(phases.span.clone(), message));
        }
        // A phase without CPUs of its own has those of the task, and is set to them if it comes
        // from one with others.
        let last = read.last().and_then(|phase| phase.cpus);
        let mut before = if last == affinity { affinity } else { None };
        let differs = read.iter().any(|phase| phase.cpus != affinity);
        for (nth, phase) in read.iter().enumerate() {
            let from_elsewhere = phase.cpus != before || (nth == 0 && last != affinity);
            let sets = differs && from_elsewhere;
            self.phase(phase, sets, thread)?;
            before = phase.cpus;
        }
        Ok(())
    }

    /// All CPUs, as the set of a phase that has come from one with fewer.
    pub(super) fn all_cpus(&mut self, node: &Node) -> Result<u32, Error> {
        let all = Node {
            span: node.span.clone(),
            value: Value::Str("all".to_owned()),
        };
        mask(self.source, &all, self.cpus, self.w)
    }

    pub(super) fn note_without_effect(&mut self, entries: &[(Key, Node)]) {
        let here = |name: &&&str| value(entries, name).is_some();
        self.without_effect
            .extend(WITHOUT_EFFECT.iter().filter(here));
    }

    /// With what rt-app logs of each wake-up by a timer: how late it was, and how long after the
    /// point before the thread came to wait again.
    fn measured(&mut self, thread: Thread) -> Vec<Op> {
        let waits = |op: &Op| matches!(op, Op::Period(_) | Op::Pace(_) | Op::Timer { .. });
        let full = self.w.requests.len() + 2 > NAMES_MAX;
        if full || !thread.ops.iter().any(waits) {
            return thread.ops;
        }
        let mut kind = |what: &str| {
            self.w.requests.push(format!("{}.{what}", thread.name));
            self.w.requests.len() as u32 - 1
        };
        let (response, wakeup) = (kind("response"), kind("wakeup"));
        let mut shifted = Vec::with_capacity(thread.ops.len());
        let mut ops = vec![Op::ReqStart(response)];
        for op in thread.ops {
            shifted.push(ops.len() as u32);
            match op {
                Op::LoopEnd { start } => ops.push(Op::LoopEnd {
                    start: shifted[start as usize],
                }),
                op if waits(&op) => ops.extend([
                    Op::ReqEnd(response),
                    op,
                    Op::ReqStartDue(response),
                    Op::ReqStartDue(wakeup),
                    Op::ReqEnd(wakeup),
                ]),
                op => ops.push(op),
            }
        }
        ops
    }

    pub(super) fn close_loop(
        &self,
        thread: &mut Thread,
        start: usize,
        count: u64,
        held: &BTreeSet<u32>,
        span: &core::ops::Range<usize>,
    ) -> Result<(), Error> {
        let message = if !thread.ops[start..].iter().any(|op| op.takes_time()) {
            "a loop whose events take no time; expected a run or a sleep"
        } else if count > 1 && thread.held != *held {
            "a turn of the loop ends with other mutexes held than it began with"
        } else {
            thread.ops.push(Op::LoopEnd {
                start: start as u32,
            });
            return Ok(());
        };
        Err(self.source.error(span.clone(), message))
    }
}

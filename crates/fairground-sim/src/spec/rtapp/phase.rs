//! A phase of a task: properties that it sets, then its events, over and over.

use super::super::error::Error;
use super::super::groups::{check_path, enter};
use super::super::node::{Key, Node};
use super::super::tasks::Class;
use super::event::Thread;
use super::{Build, open_loop, policy, turns, us, value};
use crate::workload::program::Op;

/// Keys of a phase that are no events.
pub(super) const PHASE_KEYS: &[&str] = &[
    "loop",
    "cpus",
    "policy",
    "priority",
    "taskgroup",
    "dl-runtime",
    "util_min",
    "util_max",
    "nodes_membind",
    "membind_nodes",
    "numa_nodes_membind",
];
/// Keys of a phase that change nothing here.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "util_min",
    "util_max",
    "nodes_membind",
    "membind_nodes",
    "numa_nodes_membind",
];

/// Most groups: each is looked for among all. rt-app itself has 32 at most.
const GROUPS_MAX: usize = 4096;

/// A phase, with the CPUs of its task if it has none of its own.
pub(super) struct Phase<'n> {
    pub(super) node: &'n Node,
    pub(super) entries: &'n [(Key, Node)],
    pub(super) cpus: Option<u32>,
}

impl Build<'_> {
    /// `sets_cpus`: the one before may have had others.
    pub(super) fn phase(
        &mut self,
        phase: &Phase<'_>,
        sets_cpus: bool,
        thread: &mut Thread,
    ) -> Result<(), Error> {
        let Phase { node, entries, .. } = phase;
        let source = self.source;
        if sets_cpus {
            let cpus = phase.cpus.map_or_else(|| self.all_cpus(node), Ok)?;
            thread.ops.push(Op::SetAffinity(cpus));
        }
        self.attributes(entries, thread)?;
        let count = value(entries, "loop").map_or(Ok(1), |n| turns(source, n))?;
        let start = open_loop(&mut thread.ops, count);
        let held = thread.held.clone();
        self.events(node, entries, PHASE_KEYS, thread)?;
        self.close_loop(thread, start, count, &held, &node.span)
    }

    /// Policy, nice value, slice and group that a phase sets. They stay until another one does.
    fn attributes(&mut self, entries: &[(Key, Node)], thread: &mut Thread) -> Result<(), Error> {
        let source = self.source;
        let (class, priority) = (value(entries, "policy"), value(entries, "priority"));
        let slice = value(entries, "dl-runtime");
        let set = class.or(priority).or(slice);
        if let Some(node) = set.filter(|_| thread.real_time) {
            let message = "a real-time task keeps its policy and priority here";
            return Err(source.error(node.span.clone(), message));
        }
        let nice = priority.map(|node| Ok(node.int(source, -20..=19)? as i8));
        let nice = nice.transpose()?;
        match class.map(|node| Ok((policy(source, node)?, node))) {
            Some(found) => {
                let (class, node) = found?;
                let Class::Fair(policy) = class else {
                    let message = "a change to a real-time policy is not modelled";
                    return Err(source.error(node.span.clone(), message));
                };
                let nice = nice.unwrap_or(0);
                thread.ops.push(Op::SetPolicy { policy, nice });
            }
            None => thread.ops.extend(nice.map(Op::SetNice)),
        }
        if let Some(node) = slice {
            thread.ops.push(Op::SetSlice(us(source, node, 0)?));
        }
        if let Some(node) = value(entries, "taskgroup")
            && let Some(group) = self.taskgroup(node)?
        {
            thread.ops.push(Op::SetCgroup(group));
        }
        Ok(())
    }

    /// The group of a path, made with those above it; none of an empty one.
    pub(super) fn taskgroup(&mut self, node: &Node) -> Result<Option<u32>, Error> {
        let path = node.str(self.source, "a path like \"/tg1/tg11\"")?;
        if path.is_empty() {
            return Ok(None);
        }
        let bad = |message| self.source.error(node.span.clone(), message);
        if path == "/" {
            return Ok(Some(0));
        }
        if !path.starts_with('/') {
            return Err(bad(format!(
                "'{path}' is no path; expected one like \"/tg1\""
            )));
        }
        check_path(path).map_err(bad)?;
        let group = enter(self.w, path);
        if self.w.cgroups.len() > GROUPS_MAX {
            return Err(bad(format!("more than {GROUPS_MAX} groups")));
        }
        Ok(Some(group))
    }

    /// The events of an object, in the order of its keys; `known` are keys that are no events.
    pub(super) fn events(
        &mut self,
        node: &Node,
        entries: &[(Key, Node)],
        known: &[&str],
        thread: &mut Thread,
    ) -> Result<(), Error> {
        let before = thread.ops.len();
        for (key, value) in entries {
            if !known.contains(&key.name.as_str()) {
                self.event(key, value, known, thread)?;
            }
        }
        if thread.ops.len() == before {
            let message = "no events; expected at least a run or a sleep";
            return Err(self.source.error(node.span.clone(), message));
        }
        Ok(())
    }
}

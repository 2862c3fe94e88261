//! What a simulated run says about itself, as attributes: with these and its tracepoints it can be
//! run again.

use fairground::policy::{Features, decisions};
use fairground_sim::machine::Setup;
use fairground_sim::workload::program::{
    Born, Cgroup, CgroupWrite, Event, KERNEL_PROCESS, Policy, Until, Workload,
};

use super::attributes::{Attributes, Group, OF_KERNEL, PolicyWords, RunWords, ThreadWords, Write};
use super::objects::Objects;
use crate::simulated::FIRST_TID;
use crate::text::{LINE_MAX, SAID};

impl Attributes {
    /// Of a run whose tasks began with this.
    #[must_use]
    pub fn of_run(setup: &Setup<'_>, born: &[Born]) -> Self {
        let tasks = || (FIRST_TID..).zip(born.iter().copied());
        Self {
            run: Some(RunWords::of(setup, tasks())),
            ..Self::of_tasks(setup, tasks())
        }
    }

    /// Of tasks with these thread ids: what they began with, but not how the run did.
    pub(crate) fn of_tasks(setup: &Setup<'_>, tasks: impl Iterator<Item = (u32, Born)>) -> Self {
        let workload = setup.workload;
        let mut threads: Vec<ThreadWords> = Vec::new();
        for (tid, born) in tasks {
            let words = thread(workload, &born);
            if words == ThreadWords::default() {
                continue;
            }
            let same = |t: &&mut ThreadWords| {
                ThreadWords {
                    tids: Vec::new(),
                    ..(**t).clone()
                } == words
            };
            match threads.iter_mut().find(same) {
                Some(known) => known.tids.push(tid),
                None => threads.push(ThreadWords {
                    tids: vec![tid],
                    ..words
                }),
            }
        }
        for words in &mut threads {
            words.comm = "*".into();
        }
        Self {
            hz: Some(setup.features.hz),
            cgroups: workload
                .cgroups
                .iter()
                .skip(1)
                .map(|g| group(workload, g))
                .collect(),
            threads,
            ..Self::default()
        }
    }

    /// As a file, of which no line is too long for a reader of traces.
    #[must_use]
    pub fn text(&self) -> String {
        let words = |text: Result<String, toml::ser::Error>| {
            text.unwrap_or_else(|e| unreachable!("plain words: {e}"))
        };
        let text = words(toml::to_string(self));
        if text.lines().all(|line| line.len() < LINE_MAX - SAID.len()) {
            return text;
        }
        // Each number of a list on a line of its own.
        words(toml::to_string_pretty(self))
    }
}

impl RunWords {
    /// Of a run whose tasks have these thread ids.
    pub(crate) fn of(setup: &Setup<'_>, tasks: impl Iterator<Item = (u32, Born)>) -> Self {
        let initial = setup.workload.initial.len();
        let first = |(nth, (_, born)): &(usize, (u32, Born))| {
            let template = &setup.workload.templates[born.template as usize];
            template.process == 0 && (template.thread || *nth < initial)
        };
        let process = tasks.enumerate().find(first).map(|(_, (tid, _))| tid);
        let usual = Features::default();
        let other = decisions().iter().filter_map(|d| {
            let value = (d.get)(&setup.features);
            (value != (d.get)(&usual)).then(|| (d.name.to_string(), value))
        });
        Self {
            seed: setup.seed,
            machine: setup.machine.id.clone(),
            machine_hash: Some(setup.machine.hash()),
            cpus: setup.machine.topology.nr_cpus() as u32,
            set: other.collect(),
            warmup_ns: setup.workload.warmup_ns,
            settle_ns: setup.workload.settle_ns,
            ends_ns: match setup.workload.duration {
                Until::Time(ns) => Some(ns),
                Until::AllExit => None,
            },
            no_idle_states: setup.workload.no_idle_states,
            process,
            objects: Objects::of(setup.workload),
            writes: setup
                .workload
                .events
                .iter()
                .map(|e| write(setup.workload, e))
                .collect(),
        }
    }
}

fn thread(workload: &Workload, born: &Born) -> ThreadWords {
    let template = &workload.templates[born.template as usize];
    let group = &workload.cgroups[born.cgroup as usize];
    let footprint = template.footprint_bytes_per_us;
    ThreadWords {
        policy: match (born.real_time, born.policy) {
            (Some(rt), _) if rt.takes_turns => PolicyWords::Rr,
            (Some(_), _) => PolicyWords::Fifo,
            (None, Policy::Normal) => PolicyWords::Normal,
            (None, Policy::Batch) => PolicyWords::Batch,
            (None, Policy::Idle) => PolicyWords::Idle,
        },
        slice_us: born.slice_ns.map(|ns| ns / 1000),
        footprint_bytes_per_us: (footprint > 0).then_some(footprint),
        working_set_bytes: template.working_set_bytes,
        thread: template.thread.then_some(true),
        process: (template.process == KERNEL_PROCESS).then(|| OF_KERNEL.into()),
        cpus: born.affinity.map(|m| workload.masks[m as usize].clone()),
        cgroup: (born.cgroup != 0).then(|| group.path.clone()),
        ..ThreadWords::default()
    }
}

fn write(workload: &Workload, event: &Event) -> Write {
    let group = &workload.cgroups[event.cgroup as usize];
    let mut write = Write {
        at_ns: event.at_ns,
        cgroup: group.path.clone(),
        ..Write::default()
    };
    match event.write {
        CgroupWrite::Max {
            quota_ns,
            period_ns,
        } => write.max = Some(max(quota_ns, period_ns)),
        CgroupWrite::Burst(ns) => write.burst_us = Some(ns / 1000),
        CgroupWrite::Shares(shares) => write.shares = Some(shares),
        CgroupWrite::Idle(idle) => write.idle = Some(idle),
    }
    write
}

/// `cpu.max`.
fn max(quota_ns: Option<u64>, period_ns: u64) -> String {
    match quota_ns {
        Some(quota) => format!("{} {}", quota / 1000, period_ns / 1000),
        None => format!("max {}", period_ns / 1000),
    }
}

fn group(workload: &Workload, group: &Cgroup) -> Group {
    Group {
        path: group.path.clone(),
        weight: None,
        shares: Some(group.shares),
        max: group.quota_ns.map(|_| max(group.quota_ns, group.period_ns)),
        nice: None,
        burst_us: (group.burst_ns > 0).then_some(group.burst_ns / 1000),
        idle: group.idle,
        cpus: group.cpuset.map(|m| workload.masks[m as usize].clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of so many threads would be cut off where a line is.
    #[test]
    fn no_line_is_too_long_to_be_read_again() {
        let attributes = Attributes {
            threads: vec![ThreadWords {
                tids: (1000..3000).collect(),
                policy: PolicyWords::Rr,
                ..ThreadWords::default()
            }],
            ..Attributes::default()
        };
        let text = attributes.text();
        assert!(text.lines().all(|line| SAID.len() + line.len() < LINE_MAX));
        let again = Attributes::parse(&text).unwrap();
        assert_eq!(again.threads[0].tids.len(), 2000);
        assert_eq!(again.threads[0].policy, PolicyWords::Rr);
    }
}

//! What a simulated run says about itself, as attributes: with these and its tracepoints it can be
//! run again.

use fairground::policy::{Features, decisions};
use fairground_sim::machine::Setup;
use fairground_sim::workload::program::{Cgroup, Policy, TaskTemplate, Until, Workload};

use super::attributes::{Attributes, Group, PolicyWords, RunWords, ThreadWords};
use super::objects::Objects;
use crate::simulated::FIRST_TID;

impl Attributes {
    /// Of a run whose tasks have these templates.
    #[must_use]
    pub fn of_run(setup: &Setup<'_>, templates: &[u32]) -> Self {
        Self {
            run: Some(RunWords::of(
                setup,
                (FIRST_TID..).zip(templates.iter().copied()),
            )),
            ..Self::of_tasks(setup, (FIRST_TID..).zip(templates.iter().copied()))
        }
    }

    /// Of tasks with these thread ids and templates: what they began with, but not how the run did.
    pub(crate) fn of_tasks(setup: &Setup<'_>, tasks: impl Iterator<Item = (u32, u32)>) -> Self {
        let workload = setup.workload;
        let mut threads: Vec<ThreadWords> = Vec::new();
        for (tid, template) in tasks {
            let words = thread(workload, &workload.templates[template as usize]);
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

    /// As a file.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string(self).unwrap_or_else(|e| unreachable!("plain words: {e}"))
    }
}

impl RunWords {
    /// Of a run whose tasks have these thread ids and templates.
    pub(crate) fn of(setup: &Setup<'_>, tasks: impl Iterator<Item = (u32, u32)>) -> Self {
        let initial = setup.workload.initial.len();
        let first = |(nth, (_, template)): &(usize, (u32, u32))| {
            let template = &setup.workload.templates[*template as usize];
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
            cpus: setup.machine.topology.nr_cpus() as u32,
            set: other.collect(),
            warmup_ns: setup.workload.warmup_ns,
            settle_ns: setup.workload.settle_ns,
            ends_ns: match setup.workload.duration {
                Until::Time(ns) => Some(ns),
                Until::AllExit => None,
            },
            process,
            objects: Objects::of(setup.workload),
        }
    }
}

/// A larger working set is none.
const SET_MAX: u64 = i64::MAX as u64;

fn thread(workload: &Workload, template: &TaskTemplate) -> ThreadWords {
    let group = template.cgroup.map(|g| &workload.cgroups[g as usize]);
    let footprint = template.footprint_bytes_per_us;
    ThreadWords {
        policy: match template.policy {
            Policy::Normal => PolicyWords::Normal,
            Policy::Batch => PolicyWords::Batch,
            Policy::Idle => PolicyWords::Idle,
        },
        slice_us: template.slice_ns.map(|ns| ns / 1000),
        footprint_bytes_per_us: (footprint > 0).then_some(footprint),
        // TOML has no numbers beyond this; so much is never seen again.
        working_set_bytes: Some(template.working_set_bytes).filter(|bytes| *bytes < SET_MAX),
        thread: template.thread.then_some(true),
        cpus: template
            .affinity
            .map(|m| workload.masks[m as usize].clone()),
        cgroup: group.filter(|g| g.path != "/").map(|g| g.path.clone()),
        ..ThreadWords::default()
    }
}

fn group(workload: &Workload, group: &Cgroup) -> Group {
    Group {
        path: group.path.clone(),
        weight: None,
        shares: Some(group.shares),
        max: group
            .quota_ns
            .map(|quota| format!("{} {}", quota / 1000, group.period_ns / 1000)),
        nice: None,
        burst_us: (group.burst_ns > 0).then_some(group.burst_ns / 1000),
        idle: group.idle,
        cpus: group.cpuset.map(|m| workload.masks[m as usize].clone()),
    }
}

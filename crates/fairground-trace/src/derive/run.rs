//! What a simulated run says about itself, as attributes: with these and its tracepoints it can be
//! run again.

use fairground::policy::{Features, decisions};
use fairground_sim::machine::Setup;
use fairground_sim::workload::program::{Cgroup, Policy, TaskTemplate, Workload};

use super::attributes::{Attributes, Group, PolicyWords, RunWords, ThreadWords};
use crate::simulated::FIRST_TID;

impl Attributes {
    /// Of a run whose tasks have these templates.
    #[must_use]
    pub fn of_run(setup: &Setup<'_>, templates: &[u32]) -> Self {
        Self {
            run: Some(RunWords::of(setup)),
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
            cgroups: workload.cgroups.iter().skip(1).map(group).collect(),
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
    /// Of a run.
    pub(crate) fn of(setup: &Setup<'_>) -> Self {
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
        }
    }
}

fn thread(workload: &Workload, template: &TaskTemplate) -> ThreadWords {
    let group = template.cgroup.map(|g| &workload.cgroups[g as usize]);
    let cpuset = group.and_then(|g| g.cpuset);
    let mask = template.affinity.or(cpuset);
    ThreadWords {
        policy: match template.policy {
            Policy::Normal => PolicyWords::Normal,
            Policy::Batch => PolicyWords::Batch,
            Policy::Idle => PolicyWords::Idle,
        },
        slice_us: template.slice_ns.map(|ns| ns / 1000),
        cpus: mask.map(|m| workload.masks[m as usize].clone()),
        cgroup: group.filter(|g| g.path != "/").map(|g| g.path.clone()),
        ..ThreadWords::default()
    }
}

fn group(group: &Cgroup) -> Group {
    Group {
        path: group.path.clone(),
        weight: None,
        shares: Some(group.shares),
        max: group
            .quota_ns
            .map(|quota| format!("{} {}", quota / 1000, group.period_ns / 1000)),
        burst_us: (group.burst_ns > 0).then_some(group.burst_ns / 1000),
        idle: group.idle,
    }
}

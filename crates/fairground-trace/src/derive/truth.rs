//! What a case of kernel-truth says and its trace does not, as attributes.

use fairground_sim::truth::Case;
use fairground_sim::truth::case::{Flag, PolicyWords as CasePolicy, Shares};

use super::attributes::{Attributes, Group, PolicyWords, ThreadWords};

/// The attributes of a case.
#[must_use]
pub fn of_case(case: &Case) -> Attributes {
    let group = |g: &fairground_sim::truth::case::Group| Group {
        path: g.path.clone(),
        weight: None,
        shares: match &g.shares {
            Some(Shares::Number(n)) => Some(*n),
            _ => None,
        },
        max: g.quota_us.filter(|q| *q > 0).map(|quota| {
            let period = g.period_us.unwrap_or(100_000);
            format!("{quota} {period}")
        }),
        nice: None,
        burst_us: g.burst_us,
        idle: matches!(&g.shares, Some(Shares::Idle(_))) || g.idle.is_some_and(Flag::is_set),
        cpus: None,
    };
    let thread = |t: &fairground_sim::truth::case::TaskWords| ThreadWords {
        comm: t.name.clone(),
        policy: match t.policy {
            CasePolicy::Other => PolicyWords::Normal,
            CasePolicy::Batch => PolicyWords::Batch,
            CasePolicy::Idle => PolicyWords::Idle,
        },
        slice_us: t.slice_us.filter(|us| *us > 0),
        cpus: t.affinity.clone().filter(|c| !c.is_empty()),
        process: None,
        thread: None,
        footprint_bytes_per_us: None,
        working_set_bytes: None,
        tids: Vec::new(),
        cgroup: (t.cgroup != "/").then(|| t.cgroup.clone()),
    };
    Attributes {
        hz: case.machine.hz,
        run: None,
        cgroups: case.cgroups.iter().map(group).collect(),
        threads: case.tasks.iter().map(thread).collect(),
        ..Attributes::default()
    }
}

//! The busiest group, the unit and the amount, from the recorded sums of each group.

use fairground::balance::{BusiestGroup, LbEnv, SdLbStats, SgLbStats, find_busiest};
use fairground::system::System;
use fairground::topology::GroupType;
use fairground::value::{Cpu, GroupId};

use super::record::{GroupRow, Record, Unit};
use super::row::Count;

/// `group_misfit_task` in a record.
const MISFIT: u64 = GroupType::MisfitTask as u64;

const HIDDEN: &str = "a group of several CPUs has a misfit task, whose load is not recorded";

/// Counts of a file.
pub(super) struct Counts {
    group_type: Count,
    busiest: Count,
    migration_type: Count,
    imbalance: Count,
}

impl Counts {
    pub(super) fn new(case: &str) -> Self {
        Self {
            group_type: Count::new(case, "group_type"),
            busiest: Count::new(case, "busiest"),
            migration_type: Count::new(case, "migration_type"),
            imbalance: Count::new(case, "imbalance"),
        }
    }

    pub(super) fn counts(self) -> [Count; 4] {
        [
            self.busiest,
            self.migration_type,
            self.imbalance,
            self.group_type,
        ]
    }

    /// Replays one attempt.
    pub(super) fn record(&mut self, sys: &System, mut env: LbEnv<'_>, line: usize, r: &Record) {
        let mut sds = SdLbStats::default();
        let mut hidden = None;
        for (id, row) in env.sd.groups.iter().zip(&r.groups) {
            let mut stats = sums(row);
            stats.misfit_task_load = misfit_load(sys, &env, row);
            stats.classify(&env, sys.topology.group(*id), row.0.0, row.12.0);
            if row.3 == MISFIT && row.2 > 1 && stats.group_type != GroupType::MisfitTask {
                stats.group_type = GroupType::MisfitTask;
                stats.misfit_task_load = 1;
                hidden = Some(*id);
                self.group_type.skip(HIDDEN);
            } else {
                let ours = (stats.group_type as u64, stats.avg_load);
                let same = ours.0 == row.3 && (ours.1 == row.11 || added_later(row));
                let theirs = (row.3, row.11);
                let what = || format!("CPU {}: {ours:?} instead of {theirs:?}", row.1);
                self.group_type.compare(same, line, what);
            }
            sds.account(&env, &sys.topology, *id, &stats);
        }
        sds.finish(&sys.topology);
        let ours = find_busiest(&mut env, &mut sds, &sys.topology);
        self.compare(sys, line, r, ours, hidden);
    }

    fn compare(
        &mut self,
        sys: &System,
        line: usize,
        r: &Record,
        ours: Option<BusiestGroup>,
        hidden: Option<GroupId>,
    ) {
        let group = ours.map(|b| sys.topology.group(b.group));
        let first = group.map(|g| g.first_cpu().0);
        let theirs = r.busiest.as_ref();
        let src = theirs.and_then(|b| u32::try_from(b.src_cpu).ok());
        let in_group = group.is_none_or(|g| src.is_none_or(|cpu| g.span.has(Cpu(cpu))));
        let same = first == theirs.map(|b| b.group_first_cpu) && in_group;
        self.busiest.compare(same, line, || {
            format!(
                "{first:?} instead of {:?}",
                theirs.map(|b| b.group_first_cpu)
            )
        });
        let Some(theirs) = theirs else { return };
        let unit = ours.map(|b| Unit::from(b.migration_type));
        let same_unit = unit == Some(theirs.migration_type);
        self.migration_type.compare(same_unit, line, || {
            format!("{unit:?} instead of {:?}", theirs.migration_type)
        });
        let amount = ours.map(|b| b.imbalance);
        if hidden.is_some() && hidden == ours.map(|b| b.group) {
            self.imbalance.skip(HIDDEN);
        } else {
            let same = amount == Some(theirs.imbalance);
            self.imbalance.compare(same, line, || {
                format!("{amount:?} instead of {}", theirs.imbalance)
            });
        }
    }
}

fn sums(row: &GroupRow) -> SgLbStats {
    SgLbStats {
        group_weight: row.2,
        idle_cpus: row.4,
        group_load: row.5.0,
        group_capacity: row.6.0,
        group_util: row.7.0,
        group_runnable: row.8.0,
        sum_nr_running: row.9.0,
        sum_h_nr_running: row.10.0,
        ..SgLbStats::default()
    }
}

/// The one thing that sums over a group do not tell: a task alone on a CPU with reduced capacity.
/// For a group of one CPU it follows from the record.
fn misfit_load(sys: &System, env: &LbEnv<'_>, row: &GroupRow) -> u64 {
    let full = u64::from(sys.topology.places[row.1 as usize].capacity);
    let reduced = row.6.0 * u64::from(env.sd.imbalance_pct) < full * 100;
    let alone = row.2 == 1 && row.10.0 == 1;
    if alone && reduced && !row.0.0 && env.idle.is_idle() {
        row.5.0
    } else {
        0
    }
}

/// The amount was computed before the record was written, and that needs the average of a local
/// group that is about to be overloaded.
fn added_later(row: &GroupRow) -> bool {
    row.0.0 && row.11 == row.5.0 * 1024 / row.6.0
}

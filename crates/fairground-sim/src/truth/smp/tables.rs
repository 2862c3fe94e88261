//! Tables: balance intervals, updates of load tracking, weights of group entities, tracepoints.

use std::collections::BTreeMap;

use fairground::balance::interval::sd_balance_interval;
use fairground::math::pelt::{
    SchedAvg, update_load_avg_blocked_se, update_load_avg_cfs_rq, update_load_avg_se,
};
use fairground::math::shares::calc_group_shares;
use fairground::value::Cpu;
use serde::Deserialize;

use super::file::File;
use super::machine::Guest;
use super::row::{Count, DecisionRow, rows};
use super::text::{amount, bit};
use crate::truth::TruthError;

/// `balance/intervals_*.csv`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Interval {
    case: String,
    t: f64,
    cpu: u32,
    #[serde(rename = "executed_by")]
    _executed_by: u32,
    domain: String,
    #[serde(rename = "idle")]
    _idle: u32,
    #[serde(deserialize_with = "bit")]
    busy: bool,
    #[serde(deserialize_with = "amount")]
    balance_interval_ms: u64,
    interval_used_jiffies: u64,
    jiffies_since_last: i64,
}

/// A domain that was due in a run.
pub(super) struct DueRow {
    pub t: f64,
    pub cpu: u32,
    pub domain: String,
    pub interval_ms: u64,
    pub jiffies_since_last: i64,
}

/// The domains that were due in the run `key`, in order.
pub(super) fn due_rows(file: &File<'_>, key: &str) -> Result<Vec<DueRow>, TruthError> {
    let rows = file.rows::<Interval>()?.into_iter().map(|(_, row)| row);
    let of_run = rows.filter(|row| row.case == key);
    Ok(of_run
        .map(|row| DueRow {
            t: row.t,
            cpu: row.cpu,
            domain: row.domain,
            interval_ms: row.balance_interval_ms,
            jiffies_since_last: row.jiffies_since_last,
        })
        .collect())
}

/// The interval used each time that a domain was due.
pub(super) fn intervals(file: &File<'_>, guest: &Guest) -> Result<Vec<DecisionRow>, TruthError> {
    let topology = guest.topology();
    let (features, cpus) = (super::features(&[]), topology.nr_cpus());
    let short_by = features.load_balance.limits.busy_short_by();
    let mut count = Count::new(file.name, "interval");
    for (line, r) in file.rows::<Interval>()? {
        let domains = topology.domains.get(r.cpu as usize);
        let domains = domains.ok_or_else(|| file.error(line, format!("cpu: no CPU {}", r.cpu)))?;
        let sd = domains.iter().find(|sd| sd.kind.name() == r.domain);
        let missing = || file.error(line, format!("domain: {} has none", Cpu(r.cpu).0));
        let sd = sd.ok_or_else(missing)?;
        let busy = r.busy.then_some(short_by);
        let interval_ms = r.balance_interval_ms;
        let ours = sd_balance_interval(interval_ms, sd.busy_factor, busy, features.hz, cpus);
        let theirs = r.interval_used_jiffies;
        count.compare(ours == theirs, line, || {
            format!("{ours} instead of {theirs}")
        });
    }
    Ok(rows([count]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UpdateKind {
    Se,
    BlockedSe,
    CfsRq,
}

/// `pelt/updates_*.csv`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    #[serde(rename = "t")]
    _t: f64,
    kind: UpdateKind,
    cpu: u32,
    what: String,
    id: String,
    now: u64,
    #[serde(deserialize_with = "amount")]
    in_load: u64,
    #[serde(deserialize_with = "amount")]
    in_runnable: u64,
    #[serde(deserialize_with = "bit")]
    in_running: bool,
    #[serde(deserialize_with = "amount")]
    weight: u64,
    pre_last_update: u64,
    pre_period_contrib: u32,
    pre_load_sum: u64,
    pre_runnable_sum: u64,
    pre_util_sum: u32,
    post_last_update: u64,
    post_period_contrib: u32,
    post_load_sum: u64,
    post_runnable_sum: u64,
    post_util_sum: u32,
    load_avg: u64,
    runnable_avg: u64,
    util_avg: u64,
}

/// Whether a table has updates of entities, and of queues.
pub(super) fn update_kinds(file: &File<'_>) -> Result<(bool, bool), TruthError> {
    let rows = file.rows::<Update>()?;
    let queues = rows.iter().filter(|(_, r)| r.kind == UpdateKind::CfsRq);
    let queues = queues.count();
    Ok((rows.len() > queues, queues > 0))
}

/// Whose state it is: kind, CPU, what, id and weight.
type Entity = (String, u32, String, u64);

impl Update {
    fn entity(&self) -> Entity {
        (self.what.clone(), self.cpu, self.id.clone(), self.weight)
    }

    fn before(&self) -> SchedAvg {
        SchedAvg {
            last_update_time: self.pre_last_update,
            period_contrib: self.pre_period_contrib,
            load_sum: self.pre_load_sum,
            runnable_sum: self.pre_runnable_sum,
            util_sum: self.pre_util_sum,
            ..SchedAvg::default()
        }
    }

    fn after(&self) -> SchedAvg {
        SchedAvg {
            last_update_time: self.post_last_update,
            period_contrib: self.post_period_contrib,
            load_sum: self.post_load_sum,
            runnable_sum: self.post_runnable_sum,
            util_sum: self.post_util_sum,
            load_avg: self.load_avg,
            runnable_avg: self.runnable_avg,
            util_avg: self.util_avg,
            ..SchedAvg::default()
        }
    }

    /// Numbers with which the sums would overflow.
    fn validate(&self) -> Result<(), String> {
        if self.pre_period_contrib >= 1024 {
            let n = self.pre_period_contrib;
            return Err(format!("pre_period_contrib: {n}, a period has 1024 units"));
        }
        if [self.pre_load_sum, self.pre_runnable_sum]
            .iter()
            .any(|n| *n > 1 << 52)
        {
            return Err("a sum before the update is above 2^52".into());
        }
        if self.now > 1 << 62 || self.pre_last_update > 1 << 62 {
            return Err("a time above 2^62 ns".into());
        }
        Ok(())
    }

    fn run(&self, sa: &mut SchedAvg) -> bool {
        let (now, load, runnable) = (self.now, self.in_load, self.in_runnable);
        let (running, weight) = (self.in_running, self.weight);
        match self.kind {
            UpdateKind::Se => update_load_avg_se(now, sa, load != 0, runnable, running, weight),
            UpdateKind::BlockedSe => update_load_avg_blocked_se(now, sa, weight),
            UpdateKind::CfsRq => update_load_avg_cfs_rq(now, sa, load, runnable, running),
        }
    }
}

/// Every update of load tracking. The averages before a call are not recorded. Where no period
/// ended they must stay, which is checked where the row before on the same entity, at the same
/// weight, left the very sums.
pub(super) fn updates(file: &File<'_>) -> Result<Vec<DecisionRow>, TruthError> {
    let mut left: BTreeMap<Entity, SchedAvg> = BTreeMap::new();
    let mut count = Count::new(file.name, "pelt");
    let mut averages = Count::new(file.name, "pelt_averages");
    for (line, r) in file.rows::<Update>()? {
        r.validate().map_err(|what| file.error(line, what))?;
        let before = r.before();
        let same_sums = |sa: &SchedAvg| {
            SchedAvg {
                load_avg: 0,
                runnable_avg: 0,
                util_avg: 0,
                ..*sa
            } == before
        };
        let known = left.get(&r.entity()).copied().filter(same_sums);
        let mut ours = known.unwrap_or(before);
        let decayed = r.run(&mut ours);
        let theirs = r.after();
        left.insert(r.entity(), theirs);
        let sums = |sa: &SchedAvg| {
            let (time, part) = (sa.last_update_time, sa.period_contrib);
            (time, part, sa.load_sum, sa.runnable_sum, sa.util_sum)
        };
        let what = || format!("{ours:?} instead of {theirs:?}");
        count.compare(sums(&ours) == sums(&theirs), line, what);
        if decayed || known.is_some() {
            averages.compare(ours == theirs, line, what);
        } else {
            averages.skip("no period ended, and the averages before are not recorded");
        }
    }
    Ok(rows([count, averages]))
}

/// `pelt/group_shares_*.csv`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shares {
    #[serde(rename = "t")]
    _t: f64,
    #[serde(rename = "cpu")]
    _cpu: u32,
    #[serde(rename = "group")]
    _group: String,
    #[serde(deserialize_with = "amount")]
    group_shares: u64,
    #[serde(deserialize_with = "amount")]
    cfs_rq_weight: u64,
    #[serde(deserialize_with = "amount")]
    cfs_rq_load_avg: u64,
    #[serde(deserialize_with = "amount")]
    tg_load_avg_contrib: u64,
    #[serde(deserialize_with = "amount")]
    tg_load_avg: u64,
    #[serde(rename = "load")]
    _load: u64,
    #[serde(rename = "tg_weight")]
    _tg_weight: i64,
    resulting_entity_weight: u64,
}

/// Every weight of a group's entity.
pub(super) fn group_shares(file: &File<'_>) -> Result<Vec<DecisionRow>, TruthError> {
    let mut count = Count::new(file.name, "weight");
    for (line, r) in file.rows::<Shares>()? {
        let ours = calc_group_shares(
            r.group_shares,
            r.cfs_rq_weight,
            r.cfs_rq_load_avg,
            r.tg_load_avg,
            r.tg_load_avg_contrib,
        );
        let theirs = r.resulting_entity_weight;
        count.compare(ours == theirs, line, || {
            format!("{ours} instead of {theirs}")
        });
    }
    Ok(rows([count]))
}

/// `pelt/events_*.csv`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventRow {
    pub t: f64,
    pub cpu: u32,
    pub event: String,
    pub text: String,
}

impl EventRow {
    /// Number after `KEY=` in the text.
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        let mut words = self.text.split_whitespace();
        let value = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
        value.parse().ok()
    }
}

/// Tracepoints beside the updates: read, but no decision of theirs is compared.
pub(super) fn events(file: &File<'_>) -> Result<Vec<DecisionRow>, TruthError> {
    let mut count = Count::new(file.name, "events");
    for (line, r) in file.rows::<EventRow>()? {
        if !r.event.starts_with("sched_") {
            return Err(file.error(line, format!("event: '{}' is not one of sched_*", r.event)));
        }
        count.skip("what happened around the updates: no state, so no decision to make again");
    }
    Ok(rows([count]))
}

//! `fork/` and `wake/decisions_*.jsonl`: which CPU the kernel took for a task, and from what.
//!
//! A record does not hold two things. The flips of the waker are those before the call, which may
//! add one or halve them: here the call leaves them, and no choice turns on that. The `h_load` memo
//! may have been a jiffy old: where two loads were compared, it is set so that the task's
//! hierarchical load is the recorded one.
//!
//! Records in which CPUs changed while the kernel chose may differ; those that do are skipped.

use std::sync::atomic::Ordering::Relaxed;

use fairground::cx::Cx;
use fairground::select::{affine_target, group_load, select_task_rq_fair};
use fairground::system::System;
use fairground::task::{Task, WakeKind};
use fairground::topology::SchedDomain;
use fairground::value::{Cpu, CpuMask, GroupId, TaskId, TgId};
use serde::Deserialize;

use super::file::File;
use super::machine::Guest;
use super::row::{Count, DecisionRow, rows};
use super::state;
use super::text::{Amount, Bit, Tasks, amount, bit, cpu_list};
use crate::truth::TruthError;

const WAKER: TaskId = TaskId(0);
const WAKEE: TaskId = TaskId(1);

/// The scheduler clock of the replay starts so much after zero, ns, so that no time is below it.
const EPOCH_NS: u64 = 2_000_000_000;

const CHANGED: &str = "CPUs changed between the copy of the state and the end of the kernel's call";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChoiceKind {
    Fork,
    Wake,
    WakeSync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Path {
    Slow,
    Fast,
}

/// `[nr_running, h_nr_queued, h_nr_runnable, idle, load_avg, runnable_avg, util_avg, util_est,
/// idle_stamp or null]`
#[derive(Clone, Copy, Debug, Deserialize)]
struct CpuRow(
    Tasks,
    Tasks,
    Tasks,
    Bit,
    Amount,
    Amount,
    Amount,
    u32,
    Option<u64>,
);

/// `[domain, this_cpu at that level, is_local, first CPU, weight, group_type, idle_cpus, util,
/// load, runnable, nr_running, h_nr_running, capacity, avg_load]`
#[derive(Clone, Debug, Deserialize)]
struct GroupRow(
    String,
    u32,
    Bit,
    u32,
    u64,
    u64,
    u64,
    Amount,
    Amount,
    Amount,
    u64,
    u64,
    Amount,
    u64,
);

/// Loads that wake-affine compared.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Weighed {
    #[serde(rename = "this")]
    _this: u32,
    #[serde(rename = "prev")]
    _prev: u32,
    #[serde(rename = "sync")]
    _sync: u32,
    #[serde(deserialize_with = "amount")]
    task_load: u64,
    this_eff: i64,
    #[serde(rename = "prev_eff")]
    _prev_eff: i64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    t: f64,
    #[serde(rename = "pid")]
    _pid: i64,
    kind: ChoiceKind,
    this_cpu: u32,
    prev_cpu: u32,
    allowed: String,
    recent_used_cpu: u32,
    waker_flips: u32,
    wakee_flips: u32,
    waker_pid: i64,
    #[serde(deserialize_with = "bit")]
    waker_exiting: bool,
    #[serde(deserialize_with = "amount")]
    p_util: u64,
    #[serde(deserialize_with = "amount")]
    p_load: u64,
    #[serde(deserialize_with = "amount")]
    p_runnable: u64,
    p_util_est: u32,
    p_attached: u64,
    nr_idle_scan_this: u32,
    nr_idle_scan_prev: u32,
    #[serde(deserialize_with = "bit")]
    has_idle_cores_this: bool,
    #[serde(deserialize_with = "bit")]
    has_idle_cores_prev: bool,
    cpus: Vec<CpuRow>,
    path: Path,
    affine_target: u32,
    chosen: u32,
    changed_cpus: Vec<u32>,
    #[serde(default)]
    groups: Vec<GroupRow>,
    wake_affine_weight: Option<Weighed>,
    #[serde(default)]
    case: String,
}

impl Record {
    /// Refuses what the machine does not have.
    fn validate(&self, sys: &System) -> Result<(), String> {
        let n = sys.nr_cpus();
        if self.cpus.len() != n {
            return Err(format!("cpus: {} rows for {n} CPUs", self.cpus.len()));
        }
        let mut named = vec![
            ("this_cpu", self.this_cpu),
            ("prev_cpu", self.prev_cpu),
            ("recent_used_cpu", self.recent_used_cpu),
            ("affine_target", self.affine_target),
            ("chosen", self.chosen),
        ];
        named.extend(self.groups.iter().map(|g| ("groups", g.1)));
        named.extend(self.changed_cpus.iter().map(|c| ("changed_cpus", *c)));
        if let Some((key, cpu)) = named.into_iter().find(|(_, cpu)| *cpu as usize >= n) {
            return Err(format!("{key}: CPU {cpu}, the machine has {n}"));
        }
        if self.groups.iter().any(|g| g.12.0 == 0) {
            return Err("groups: a group without capacity".into());
        }
        let allowed = self.allowed()?;
        if allowed.is_empty() || !allowed.is_subset(&sys.cpus()) {
            return Err(format!(
                "allowed: '{}', the machine has {n} CPUs",
                self.allowed
            ));
        }
        if !(0.0..1e9).contains(&self.t) {
            return Err(format!("t: {} is not a time in seconds", self.t));
        }
        self.tie()?;
        for group in &self.groups {
            group.find(sys)?;
        }
        Ok(())
    }

    fn allowed(&self) -> Result<CpuMask, String> {
        cpu_list(&self.allowed).map_err(|e| format!("allowed: {e}"))
    }

    /// The rule for equally idle groups, which some records have turned off: `tie=` in the case.
    fn tie(&self) -> Result<&'static str, String> {
        let mut words = self.case.split(',').filter_map(|w| w.strip_prefix("tie="));
        match words.next() {
            None | Some("util" | "lowest_util") => Ok("group-util"),
            Some("first" | "first_group") => Ok("first-group"),
            Some(other) => Err(format!("case: tie={other}, expected util or first")),
        }
    }

    fn now(&self) -> u64 {
        (self.t * 1e9) as u64 + EPOCH_NS
    }

    /// The running task that wakes; `None` is the idle task.
    fn waker(&self) -> Option<TaskId> {
        (self.waker_pid != 0).then_some(WAKER)
    }

    fn wake_kind(&self) -> WakeKind {
        match self.kind {
            ChoiceKind::Fork => WakeKind::Fork,
            // A waker that exits makes no room by it (WF_SYNC is ignored for it).
            ChoiceKind::WakeSync if !self.waker_exiting => WakeKind::Sync,
            ChoiceKind::Wake | ChoiceKind::WakeSync => WakeKind::Wake,
        }
    }

    fn task(&self) -> Task {
        let mut task = Task::new(WAKEE, TgId::ROOT, 2_800_000);
        task.body.cpus_allowed = self.allowed().unwrap_or_default();
        task.se.avg.load_avg = self.p_load;
        task.se.avg.util_avg = self.p_util;
        task.se.avg.runnable_avg = self.p_runnable;
        task.se.avg.util_est = self.p_util_est;
        task.se.avg.last_update_time = self.p_attached;
        task
    }
}

impl GroupRow {
    /// The domain and the group that it is about.
    fn find<'a>(&self, sys: &'a System) -> Result<(&'a SchedDomain, GroupId), String> {
        let missing = || {
            format!(
                "groups: CPU {} has no group {} in {}",
                self.1, self.3, self.0
            )
        };
        let domains = sys.topology.domains(Cpu(self.1));
        let sd = domains.iter().find(|sd| sd.kind.name() == self.0);
        let sd = sd.ok_or_else(missing)?;
        let first = |id: &&GroupId| sys.topology.group(**id).first_cpu() == Cpu(self.3);
        let id = sd.groups.iter().find(first).ok_or_else(missing)?;
        if sys.topology.group(*id).span.has(Cpu(self.1)) != self.2.0 {
            return Err(format!(
                "groups: is_local of group {} in {}",
                self.3, self.0
            ));
        }
        Ok((sd, *id))
    }
}

/// Counts of a file.
struct Replay {
    sys: System,
    tie_is_recorded: bool,
    chosen: Count,
    affine: Count,
    groups: Count,
}

/// Replays a file. The rule for equally idle groups is the recorded one unless `changes` set it.
pub(super) fn check(
    file: &File<'_>,
    guest: &Guest,
    changes: &[(&str, &str)],
) -> Result<Vec<DecisionRow>, TruthError> {
    let mut sys = state::system(guest, changes);
    sys.add_task(TgId::ROOT);
    sys.add_task(TgId::ROOT);
    let mut replay = Replay {
        tie_is_recorded: changes.iter().all(|(name, _)| *name != "idlest_tie"),
        sys,
        chosen: Count::new(file.name, "chosen"),
        affine: Count::new(file.name, "affine_target"),
        groups: Count::new(file.name, "groups"),
    };
    for record in file.json_lines::<Record>() {
        let (line, record) = record?;
        let checked = record.validate(&replay.sys);
        let checked = checked.and_then(|()| replay.record(line, &record));
        checked.map_err(|what| file.error(line, what))?;
    }
    Ok(rows([replay.chosen, replay.affine, replay.groups]))
}

impl Replay {
    fn record(&mut self, line: usize, r: &Record) -> Result<(), String> {
        if self.tie_is_recorded {
            let set = self.sys.features.set("idlest_tie", r.tie()?);
            set.map_err(|e| e.to_string())?;
        }
        let (prev, kind) = (Cpu(r.prev_cpu), r.wake_kind());
        let target =
            self.with_state(r, |cx, task| affine_target(cx, task, prev, r.waker(), kind))?;
        let chosen = self.with_state(r, |cx, task| {
            select_task_rq_fair(cx, task, prev, r.waker(), kind)
        })?;
        // The search starts elsewhere where CPUs changed, too.
        let changed = !r.changed_cpus.is_empty();
        let count = |count: &mut Count, ours: Option<Cpu>, theirs: Option<u32>| {
            let same = ours.map(|cpu| cpu.0) == theirs;
            if changed {
                count.compare_changed(same, CHANGED);
            } else {
                count.compare(same, line, || format!("{ours:?} instead of {theirs:?}"));
            }
        };
        count(&mut self.chosen, Some(chosen), Some(r.chosen));
        let slow = r.path == Path::Slow;
        let theirs = (!slow).then_some(r.affine_target);
        if !slow || target.is_some() {
            count(&mut self.affine, target, theirs);
        }
        if slow {
            self.groups(line, r)?;
        }
        Ok(())
    }

    /// The sums over each group that the kernel looked at.
    fn groups(&mut self, line: usize, r: &Record) -> Result<(), String> {
        for g in &r.groups {
            let (sd, id) = g.find(&self.sys)?;
            let got = self.with_state(r, |cx, task| group_load(cx, sd, id, task))?;
            let ours = [
                u64::from(got.weight),
                got.group_type as u64,
                u64::from(got.idle_cpus),
                got.util,
                got.load,
                got.runnable,
                u64::from(got.nr_running),
                u64::from(got.h_nr_running),
                got.capacity,
                got.avg_load,
            ];
            let theirs = [g.4, g.5, g.6, g.7.0, g.8.0, g.9.0, g.10, g.11, g.12.0, g.13];
            if !r.changed_cpus.is_empty() {
                self.groups.compare_changed(ours == theirs, CHANGED);
                continue;
            }
            self.groups.compare(ours == theirs, line, || {
                format!("{} of CPU {}: {ours:?} instead of {theirs:?}", g.0, g.3)
            });
        }
        Ok(())
    }

    /// Calls `f` in the recorded state.
    fn with_state<T>(
        &self,
        r: &Record,
        f: impl FnOnce(&mut Cx<'_, state::Quiet>, &mut Task) -> T,
    ) -> Result<T, String> {
        let sys = &self.sys;
        for (words, row) in sys.cpu.iter().zip(&r.cpus) {
            words.nr_running.store(row.0.0, Relaxed);
            words.h_nr_queued.store(row.1.0, Relaxed);
            words.h_nr_runnable.store(row.2.0, Relaxed);
            words.curr_is_idle.store(row.3.0, Relaxed);
            words.load_avg.store(row.4.0, Relaxed);
            words.runnable_avg.store(row.5.0, Relaxed);
            words.util_avg.store(row.6.0, Relaxed);
            words.util_est.store(row.7, Relaxed);
            words.idle_stamp.store(row.8.unwrap_or(0), Relaxed);
        }
        for g in &r.groups {
            let (_, id) = g.find(sys)?;
            sys.topology.group(id).state.capacity.store(g.12.0, Relaxed);
        }
        let wakee = &sys.task[WAKEE.idx()];
        wakee.cpu.store(r.prev_cpu, Relaxed);
        wakee.recent_used_cpu.store(r.recent_used_cpu, Relaxed);
        Ok(state::on(sys, Cpu(r.this_cpu), r.now(), |cx| {
            store_llcs(cx, r);
            store_flips(sys, r);
            store_h_load(sys, r);
            f(cx, &mut r.task())
        }))
    }
}

fn store_llcs(cx: &mut Cx<'_, state::Quiet>, r: &Record) {
    let sides = [
        (r.this_cpu, r.nr_idle_scan_this, r.has_idle_cores_this),
        (r.prev_cpu, r.nr_idle_scan_prev, r.has_idle_cores_prev),
    ];
    for (cpu, scan, idle_cores) in sides {
        let llc = cx.sys.topology.llc_of[cpu as usize];
        let words = &cx.sys.llc[llc.idx()];
        words.set_nr_idle_scan(llc, scan, cx.host);
        words.set_idle_cores(llc, idle_cores, cx.host);
    }
}

fn store_flips(sys: &System, r: &Record) {
    let waker = match r.waker() {
        Some(id) => &sys.task[id.idx()],
        None => &sys.cpu[r.this_cpu as usize].idle_task,
    };
    let wakee = &sys.task[WAKEE.idx()];
    waker.wakee_flips.store(r.waker_flips, Relaxed);
    wakee.wakee_flips.store(r.wakee_flips, Relaxed);
    waker.last_wakee.store(WAKEE.0, Relaxed);
    let jiffies = sys.features.jiffies(r.now());
    waker.wakee_flip_decay.store(jiffies, Relaxed);
}

/// Sets the memos of hierarchical load, and the load of the running waker, such that the loads
/// compared are the recorded ones.
fn store_h_load(sys: &System, r: &Record) {
    let stamp = sys.features.jiffies(r.now()) + 1;
    let memo = |at: u32, h_load: u64| {
        let words = sys.tg[0].cpu(Cpu(at));
        words.h_load.store(h_load, Relaxed);
        words.h_load_stamp.store(stamp, Relaxed);
    };
    let load = |at: u32| sys.cpu[at as usize].load_avg.load(Relaxed);
    memo(r.prev_cpu, load(r.prev_cpu));
    memo(r.this_cpu, load(r.this_cpu) + 1);
    let Some(w) = r.wake_affine_weight else {
        return;
    };
    let memoed = (w.task_load * (load(r.prev_cpu) + 1)).div_ceil(r.p_load.max(1));
    memo(r.prev_cpu, memoed);
    let this_eff = u64::try_from(w.this_eff).unwrap_or(0) / (100 * 1024);
    let without = (load(r.this_cpu) + w.task_load).saturating_sub(this_eff);
    let words = &sys.cpu[r.this_cpu as usize];
    words.curr_load_avg.store(without, Relaxed);
}

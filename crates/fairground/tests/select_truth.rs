//! Every CPU choice that a real kernel recorded, made again by the engine from the same state.
//!
//! A record holds what the kernel's select function saw and the CPU that it took. Two things it
//! does not hold. The flips of the waker are those before the call, which may add one or halve
//! them: here the call leaves them, and no choice turns on that. The `h_load` memo may have been
//! a jiffy old: where two loads were compared, it is set so that the task's hierarchical load is
//! the recorded one.
//!
//! Records in which CPUs changed while the kernel chose may differ; their count is a ratchet.

mod recorded;

use std::sync::atomic::Ordering::Relaxed;

use fairground::cx::Cx;
use fairground::select::{affine_target, group_load, select_task_rq_fair};
use fairground::system::System;
use fairground::task::{Task, WakeKind};
use fairground::topology::SchedDomain;
use fairground::value::{Cpu, GroupId, TaskId, TgId};
use recorded::{CountingHost, cpu, mask, num};
use serde_json::Value;

const WAKER: TaskId = TaskId(0);
const WAKEE: TaskId = TaskId(1);

#[derive(Default, PartialEq, Debug)]
struct Counts {
    /// Same CPU, and on the fast path the search began at the same CPU.
    equal: u32,
    different: u32,
    /// Records with `changed_cpus`: equal and different.
    changed_equal: u32,
    changed_different: u32,
    /// Groups of the slow path whose sums were compared, and those that differ.
    groups: u32,
    groups_different: u32,
}

struct Replay {
    sys: System,
    counts: Counts,
    differences: Vec<String>,
}

/// Replays a file; the features are those of the recorded kernel, changed by `change`.
fn replay(file: &str, change: &[(&str, &str)]) -> Replay {
    let machine = file.rsplit('_').next().expect("a name");
    let topology = match machine {
        "1x16" => recorded::topology(16, 1, 1),
        "2x8" => recorded::topology(16, 2, 1),
        "2x8x2" => recorded::topology(32, 2, 2),
        other => panic!("unknown machine {other}"),
    };
    let mut features = recorded::features();
    features.set_all(change);
    let mut sys = System::new(features, topology);
    sys.add_task(TgId::ROOT);
    sys.add_task(TgId::ROOT);
    let mut replay = Replay {
        sys,
        counts: Counts::default(),
        differences: Vec::new(),
    };
    let tie = change.iter().all(|(name, _)| *name != "idlest_tie");
    for line in recorded::read_gz(&format!("select/{file}.jsonl.gz")).lines() {
        let r: Value = serde_json::from_str(line).expect("a record");
        if tie {
            // Half of the forks were recorded with the rule of 5.9 turned off.
            let off = r["case"].as_str().is_some_and(|c| c.contains("tie=first"));
            let tie = if off { "first-group" } else { "group-util" };
            replay.sys.features.set_all(&[("idlest_tie", tie)]);
        }
        replay.check(&r);
    }
    replay.differences.truncate(5);
    replay
}

impl Replay {
    fn check(&mut self, r: &Value) {
        let slow = r["path"] == "slow";
        let unchanged = r["changed_cpus"].as_array().is_some_and(Vec::is_empty);
        let truth = ((!slow).then(|| cpu(&r["affine_target"])), cpu(&r["chosen"]));
        let ours = self.choose(r);
        let c = &mut self.counts;
        match (unchanged, ours == truth) {
            (true, true) => c.equal += 1,
            (true, false) => {
                c.different += 1;
                let text = format!("{ours:?} instead of {truth:?}: {r}");
                self.differences.push(text);
            }
            (false, true) => c.changed_equal += 1,
            (false, false) => c.changed_different += 1,
        }
        if slow && unchanged {
            self.check_groups(r);
        }
    }

    /// The engine's choice: the CPU that the fast path starts from, and the CPU.
    fn choose(&self, r: &Value) -> (Option<Cpu>, Cpu) {
        let prev = cpu(&r["prev_cpu"]);
        let exits = num(&r["waker_exiting"]) == 1;
        let kind = match r["kind"].as_str() {
            Some("fork") => WakeKind::Fork,
            Some("wake_sync") if !exits => WakeKind::Sync,
            Some("wake" | "wake_sync") => WakeKind::Wake,
            other => panic!("unknown kind {other:?}"),
        };
        let waker = (num(&r["waker_pid"]) != 0).then_some(WAKER);
        let target = self.with_state(r, |cx, task| affine_target(cx, task, prev, waker, kind));
        let chosen = self.with_state(r, |cx, task| {
            select_task_rq_fair(cx, task, prev, waker, kind)
        });
        (target, chosen)
    }

    /// Puts the recorded state in.
    fn with_state<T>(&self, r: &Value, f: impl FnOnce(&mut Cx<CountingHost>, &mut Task) -> T) -> T {
        let sys = &self.sys;
        let (this, prev) = (cpu(&r["this_cpu"]), cpu(&r["prev_cpu"]));
        let mut host = CountingHost {
            now: (r["t"].as_f64().expect("a time") * 1e9) as u64 + 2_000_000_000,
            ..CountingHost::default()
        };
        recorded::store_cpus(sys, &r["cpus"]);
        store_llcs(sys, r, this, prev, &mut host);
        store_flips(sys, r, this, host.now);
        store_h_load(sys, r, this, prev, host.now);
        for g in r["groups"].as_array().into_iter().flatten() {
            let group = sys.topology.group(recorded_group(sys, g).1);
            group.state.capacity.store(num(&g[12]), Relaxed);
        }
        sys.task[WAKEE.idx()].cpu.store(prev.0, Relaxed);
        let recent = num(&r["recent_used_cpu"]) as u32;
        sys.task[WAKEE.idx()].recent_used_cpu.store(recent, Relaxed);
        let mut task = recorded_task(r);
        let mut cx = Cx {
            sys,
            host: &mut host,
            cpu: this,
            moving: &mut Vec::new(),
        };
        f(&mut cx, &mut task)
    }

    /// The sums over each group that the kernel looked at.
    fn check_groups(&mut self, r: &Value) {
        for g in r["groups"].as_array().expect("groups of the slow path") {
            let got = self.with_state(r, |cx, task| {
                let (sd, id) = recorded_group(cx.sys, g);
                group_load(cx, sd, id, task)
            });
            let values = [
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
            self.counts.groups += 1;
            if values.iter().zip(4..).any(|(v, i)| *v != num(&g[i])) {
                self.counts.groups_different += 1;
                self.differences.push(format!("{values:?} instead of {g}"));
            }
        }
    }
}

/// The domain and the id of a group in a record.
fn recorded_group<'a>(sys: &'a System, g: &Value) -> (&'a SchedDomain, GroupId) {
    let domains = sys.topology.domains(cpu(&g[1]));
    let sd = domains
        .iter()
        .find(|sd| Some(sd.kind.name()) == g[0].as_str());
    let sd = sd.expect("a domain");
    let mut ids = sd.groups.iter();
    let id = ids.find(|id| sys.topology.group(**id).first_cpu() == cpu(&g[3]));
    (sd, *id.expect("a group"))
}

fn recorded_task(r: &Value) -> Task {
    let mut task = Task::new(WAKEE, TgId::ROOT, 2_800_000);
    task.body.cpus_allowed = mask(&r["allowed"]);
    task.se.avg.load_avg = num(&r["p_load"]);
    task.se.avg.util_avg = num(&r["p_util"]);
    task.se.avg.runnable_avg = num(&r["p_runnable"]);
    task.se.avg.util_est = num(&r["p_util_est"]) as u32;
    task.se.avg.last_update_time = num(&r["p_attached"]);
    task
}

fn store_llcs(sys: &System, r: &Value, this: Cpu, prev: Cpu, host: &mut CountingHost) {
    for (at, side) in [(this, "this"), (prev, "prev")] {
        let llc = sys.topology.llc_of[at.idx()];
        let words = &sys.llc[llc.idx()];
        words.set_nr_idle_scan(llc, num(&r[format!("nr_idle_scan_{side}")]) as u32, host);
        let idle_cores = num(&r[format!("has_idle_cores_{side}")]) == 1;
        words.set_idle_cores(llc, idle_cores, host);
    }
}

fn store_flips(sys: &System, r: &Value, this: Cpu, now: u64) {
    let waker = if num(&r["waker_pid"]) == 0 {
        &sys.cpu[this.idx()].idle_task
    } else {
        &sys.task[WAKER.idx()]
    };
    let wakee = &sys.task[WAKEE.idx()];
    let stored = |v: &Value| num(v) as u32;
    waker.wakee_flips.store(stored(&r["waker_flips"]), Relaxed);
    wakee.wakee_flips.store(stored(&r["wakee_flips"]), Relaxed);
    waker.last_wakee.store(WAKEE.0, Relaxed);
    waker.wakee_flip_decay.store(now, Relaxed);
}

/// Sets the memos of hierarchical load, and the load of the running waker, such that the loads
/// compared are the recorded ones.
fn store_h_load(sys: &System, r: &Value, this: Cpu, prev: Cpu, now: u64) {
    let stamp = sys.features.jiffies(now) + 1;
    let memo = |at: Cpu, h_load: u64| {
        let words = sys.tg[0].cpu(at);
        words.h_load.store(h_load, Relaxed);
        words.h_load_stamp.store(stamp, Relaxed);
    };
    let load = |at: Cpu| sys.cpu[at.idx()].load_avg.load(Relaxed);
    memo(prev, load(prev));
    memo(this, load(this) + 1);
    let w = &r["wake_affine_weight"];
    if w.is_null() {
        return;
    }
    let (task_load, own) = (num(&w["task_load"]), num(&r["p_load"]));
    memo(prev, (task_load * (load(prev) + 1)).div_ceil(own.max(1)));
    let without = load(this) + task_load - num(&w["this_eff"]) / (100 * 1024);
    sys.cpu[this.idx()].curr_load_avg.store(without, Relaxed);
}

/// `different` and `groups_different` are zero in all: the rest of `expected` is
/// `[equal, changed_equal, changed_different, groups]`.
fn expect(file: &str, expected: [u32; 4]) {
    let replay = replay(file, &[]);
    let [equal, changed_equal, changed_different, groups] = expected;
    let expected = Counts {
        equal,
        changed_equal,
        changed_different,
        groups,
        ..Counts::default()
    };
    let shown = replay.differences.join("\n");
    assert_eq!(replay.counts, expected, "{file}\n{shown}");
}

#[test]
fn wakeups() {
    expect("wake_1x16", [658, 45, 1, 0]);
    expect("wake_2x8", [2234, 185, 4, 0]);
}

#[test]
fn wakeups_with_threads() {
    expect("wake_2x8x2", [271, 62, 0, 0]);
}

#[test]
fn forks() {
    expect("fork_1x16", [495, 8, 1, 7920]);
    expect("fork_2x8", [655, 15, 2, 6550]);
}

#[test]
fn forks_with_threads() {
    expect("fork_2x8x2", [361, 21, 2, 4332]);
}

#[test]
fn forks_and_wakeups_beside_other_work() {
    expect("fork_bg_2x8", [333, 10, 1, 1890]);
}

/// The records tell the kernel's rules from others: with one rule changed, choices differ.
#[test]
fn a_changed_rule_shows() {
    for (file, change, different) in [
        ("wake_2x8", ("wa_idle", "off"), 370),
        ("fork_bg_2x8", ("wa_weight", "off"), 8),
        ("wake_2x8", ("scan_budget", "all"), 115),
        ("wake_2x8", ("scan_budget", "prop"), 57),
        ("fork_2x8", ("idlest_tie", "first-group"), 85),
        ("fork_2x8", ("idlest_tie", "group-util"), 99),
        ("fork_2x8", ("idlest_tie", "nr-running"), 85),
    ] {
        let counts = replay(file, &[change]).counts;
        assert_eq!(counts.different, different, "{file} {change:?}");
    }
}

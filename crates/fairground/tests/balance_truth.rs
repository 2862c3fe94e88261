//! Balancing decisions and intervals against those of a real Linux 6.12.117: the recorded numbers
//! of each group go in, the decision must come out.

mod recorded;

use std::sync::atomic::Ordering::Relaxed;

use fairground::balance::interval::sd_balance_interval;
use fairground::balance::{
    BusiestGroup, IdleType, LbEnv, MigrationType, SdLbStats, SgLbStats, find_busiest,
    sched_balance_find_src_group, sched_balance_find_src_rq, should_we_balance,
};
use fairground::cx::Cx;
use fairground::system::System;
use fairground::topology::GroupType;
use fairground::value::{Cpu, GroupId};
use recorded::{CountingHost, features, num, read_gz, topology};
use serde_json::Value;

/// Two nodes of eight cores, all at full capacity.
fn system(threads: u32) -> System {
    let sys = System::new(features(), topology(16 * threads, 2, threads));
    for cpu in &sys.cpu {
        cpu.capacity.store(1024, Relaxed);
    }
    sys
}

/// One recorded group.
struct Group {
    id: GroupId,
    local: bool,
    recorded_type: u64,
    recorded_avg_load: u64,
    stats: SgLbStats,
    imbalanced: bool,
}

fn groups(sys: &System, env: &LbEnv<'_>, record: &Value) -> Vec<Group> {
    let list = record["groups"].as_array().unwrap();
    assert_eq!(list.len(), env.sd.groups.len());
    let parse = |(id, row): (&GroupId, &Value)| {
        let n = |i: usize| row[i].as_u64().unwrap();
        let group = sys.topology.group(*id);
        assert_eq!(u64::from(group.first_cpu().0), n(1), "ring order");
        assert_eq!(u64::from(group.weight), n(2));
        let stats = SgLbStats {
            group_weight: n(2) as u32,
            idle_cpus: n(4) as u32,
            group_load: n(5),
            group_capacity: n(6),
            group_util: n(7),
            group_runnable: n(8),
            sum_nr_running: n(9) as u32,
            sum_h_nr_running: n(10) as u32,
            ..SgLbStats::default()
        };
        Group {
            id: *id,
            local: n(0) == 1,
            recorded_type: n(3),
            recorded_avg_load: n(11),
            stats,
            imbalanced: n(12) == 1,
        }
    };
    env.sd.groups.iter().zip(list).map(parse).collect()
}

/// The one thing that sums over a group do not tell: a task alone on a CPU with reduced capacity.
/// For a group of one CPU it follows from the record.
fn misfit_load(env: &LbEnv<'_>, group: &Group) -> u64 {
    let s = &group.stats;
    let reduced = s.group_capacity * u64::from(env.sd.imbalance_pct) < 1024 * 100;
    let alone = s.group_weight == 1 && s.sum_h_nr_running == 1;
    if alone && reduced && !group.local && env.idle.is_idle() {
        s.group_load
    } else {
        0
    }
}

/// The amount was computed before the record was written, and that needs the average of a local
/// group that is about to be overloaded.
fn added_later(group: &Group) -> bool {
    let s = &group.stats;
    group.local && group.recorded_avg_load == s.group_load * 1024 / s.group_capacity
}

#[derive(Default, Debug, PartialEq, Eq)]
struct Tally {
    records: u32,
    balanced: u32,
    load: u32,
    util: u32,
    task: u32,
    /// Groups whose type the record's sums do not determine, and which were given it.
    type_given: u32,
    /// Decisions that need a number of such a group, which the record does not have: compared but
    /// for the amount.
    amount_unknown: u32,
    type_differs: u32,
    decision_differs: u32,
}

/// The attempt that a record is about.
fn attempt<'a>(sys: &'a System, record: &Value) -> LbEnv<'a> {
    let dst = recorded::cpu(&record["dst_cpu"]);
    let idle = [IdleType::Busy, IdleType::Idle, IdleType::NewlyIdle];
    let name = record["sd"].as_str().unwrap();
    let domains = sys.topology.domains(dst);
    let level = domains.iter().position(|sd| sd.kind.name() == name);
    let idle = idle[num(&record["idle"]) as usize];
    LbEnv::new(sys, level.unwrap(), dst, idle, &sys.cpus())
}

/// Replays one record.
fn replay(sys: &System, record: &Value, tally: &mut Tally) {
    let mut env = attempt(sys, record);
    let mut sds = SdLbStats::default();
    let mut given = None;
    for mut group in groups(sys, &env, record) {
        group.stats.misfit_task_load = misfit_load(&env, &group);
        let sg = sys.topology.group(group.id);
        group
            .stats
            .classify(&env, sg, group.local, group.imbalanced);
        if group.recorded_type == 2 && group.stats.group_weight > 1 {
            group.stats.group_type = GroupType::MisfitTask;
            group.stats.misfit_task_load = 1;
            given = Some(group.id);
            tally.type_given += 1;
        }
        let same_type = group.stats.group_type as u64 == group.recorded_type;
        let same_avg = group.stats.avg_load == group.recorded_avg_load || added_later(&group);
        if !(same_type && same_avg) {
            tally.type_differs += 1;
        }
        sds.account(&env, &sys.topology, group.id, &group.stats);
    }
    sds.finish(&sys.topology);
    let ours = find_busiest(&mut env, &mut sds, &sys.topology);
    compare(sys, record, ours, given, tally);
}

fn compare(
    sys: &System,
    record: &Value,
    ours: Option<BusiestGroup>,
    given: Option<GroupId>,
    tally: &mut Tally,
) {
    tally.records += 1;
    let theirs = &record["busiest"];
    let Some(busiest) = ours else {
        tally.balanced += u32::from(theirs.is_null());
        tally.decision_differs += u32::from(!theirs.is_null());
        return;
    };
    let unit = match busiest.migration_type {
        MigrationType::Load => (&mut tally.load, "load"),
        MigrationType::Util => (&mut tally.util, "util"),
        MigrationType::Task => (&mut tally.task, "task"),
        MigrationType::Misfit => panic!("all CPUs are equal"),
    };
    let group = sys.topology.group(busiest.group);
    let src = theirs["src_cpu"].as_u64();
    let mut same = theirs["group_first_cpu"].as_u64() == Some(u64::from(group.first_cpu().0))
        && theirs["migration_type"].as_str() == Some(unit.1)
        && src.is_none_or(|cpu| group.span.has(Cpu(cpu as u32)));
    if given == Some(busiest.group) {
        tally.amount_unknown += 1;
    } else {
        same &= theirs["imbalance"].as_i64() == Some(busiest.imbalance);
    }
    *unit.0 += u32::from(same);
    if !same {
        tally.decision_differs += 1;
        eprintln!("{busiest:?} {record}");
    }
}

fn replay_all(name: &str, threads: u32) -> Tally {
    let sys = system(threads);
    let mut tally = Tally::default();
    for line in read_gz(name).lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        replay(&sys, &record, &mut tally);
    }
    tally
}

#[test]
fn decisions_without_threads() {
    let name = "balance/lb_decisions_2x8.jsonl.gz";
    let expect = Tally {
        records: 3177,
        balanced: 2339,
        load: 95,
        util: 50,
        task: 693,
        type_given: 1,
        amount_unknown: 1,
        ..Tally::default()
    };
    assert_eq!(replay_all(name, 1), expect);
}

#[test]
fn decisions_with_threads() {
    let name = "balance/lb_decisions_2x8x2.jsonl.gz";
    let expect = Tally {
        records: 4749,
        balanced: 4531,
        load: 1,
        task: 217,
        ..Tally::default()
    };
    assert_eq!(replay_all(name, 2), expect);
}

/// Where every group is one CPU, the record tells the words of all CPUs of the domain: they are
/// stored, and the whole way from there is taken, down to the queue that is chosen.
fn from_words(sys: &System, record: &Value) -> Way {
    let rows = record["groups"].as_array().unwrap();
    for row in rows {
        let n = |i: usize| num(&row[i]);
        let words = &sys.cpu[n(1) as usize];
        words.nr_running.store(n(9) as u32, Relaxed);
        words.h_nr_runnable.store(n(10) as u32, Relaxed);
        words.curr_is_idle.store(n(4) == 1, Relaxed);
        words.load_avg.store(n(5), Relaxed);
        words.capacity.store(n(6), Relaxed);
        words.util_avg.store(n(7), Relaxed);
        words.runnable_avg.store(n(8), Relaxed);
    }
    let mut env = attempt(sys, record);
    for (id, row) in env.sd.groups.iter().zip(rows) {
        let state = &sys.topology.group(*id).state;
        state.capacity.store(num(&row[6]), Relaxed);
        state.imbalance.store(num(&row[12]) == 1, Relaxed);
    }
    let mut host = CountingHost::default();
    let mut cx = Cx {
        sys,
        host: &mut host,
        cpu: env.dst_cpu,
        moving: &mut Vec::new(),
    };
    let busiest = sched_balance_find_src_group(&mut cx, &mut env);
    let src = busiest.and_then(|b| sched_balance_find_src_rq(&mut cx, &env, b.group));
    let theirs = &record["busiest"];
    let Some(busiest) = busiest else {
        return if theirs.is_null() {
            Way::Balanced
        } else {
            Way::Different
        };
    };
    let same_amount = theirs["imbalance"].as_i64() == Some(busiest.imbalance);
    match theirs["src_cpu"].as_i64() {
        Some(-1) if same_amount => Way::TasksGone,
        cpu if same_amount && cpu == src.map(|cpu| i64::from(cpu.0)) => Way::SameQueue,
        _ => Way::Different,
    }
}

/// How a whole way through the decision compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Balanced,
    SameQueue,
    /// The kernel looked at the queues a moment after the groups, and found the tasks gone.
    TasksGone,
    Different,
}

#[test]
fn from_the_words_of_each_cpu_to_the_queue() {
    let mut ways = Vec::new();
    for (name, threads) in [("2x8", 1), ("2x8x2", 2)] {
        let sys = system(threads);
        for line in read_gz(&format!("balance/lb_decisions_{name}.jsonl.gz")).lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let single = |row: &Value| num(&row[2]) == 1;
            if record["groups"].as_array().unwrap().iter().all(single) {
                ways.push(from_words(&sys, &record));
            }
        }
    }
    let count = |way| ways.iter().filter(|w| **w == way).count();
    assert_eq!(count(Way::Balanced), 5991);
    assert_eq!(count(Way::SameQueue), 666);
    assert_eq!(count(Way::TasksGone), 4);
    assert_eq!(count(Way::Different), 0);
}

/// Only attempts that passed the test were recorded. Where the record tells that all CPUs of the
/// local group idle, or none does, it must have been the group's first CPU.
#[test]
fn the_right_cpu_balanced() {
    let mut checked = 0;
    for (name, threads) in [("2x8", 1), ("2x8x2", 2)] {
        let sys = system(threads);
        for line in read_gz(&format!("balance/lb_decisions_{name}.jsonl.gz")).lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let local = &record["groups"][0];
            let (idle, weight) = (num(&local[4]), num(&local[2]));
            let env = attempt(&sys, &record);
            let told = weight > 1 && (idle == 0 || idle == weight);
            if env.idle == IdleType::NewlyIdle || !told {
                continue;
            }
            let group = env.local_group(&sys);
            if idle == 0 && env.idle == IdleType::Idle {
                continue; // the CPU stopped idling between the test and the count
            }
            for cpu in group.span.iter() {
                let words = &sys.cpu[cpu.idx()];
                words.curr_is_idle.store(idle != 0, Relaxed);
                words.nr_running.store(u32::from(idle == 0), Relaxed);
            }
            for cpu in group.span.iter() {
                let mut host = CountingHost::default();
                let mut cx = Cx {
                    sys: &sys,
                    host: &mut host,
                    cpu,
                    moving: &mut Vec::new(),
                };
                let other = LbEnv {
                    dst_cpu: cpu,
                    ..env
                };
                let it = should_we_balance(&mut cx, &other);
                assert_eq!(it, cpu == env.dst_cpu, "CPU {} of {record}", cpu.0);
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 372);
}

#[test]
fn intervals() {
    let text = read_gz("balance/intervals.csv.gz");
    let mut compared = 0;
    for line in text.lines().skip(1) {
        let cells: Vec<_> = line.split(',').collect();
        let n = |i: usize| cells[i].parse::<u64>().unwrap();
        let cpus = if cells[0].contains("2x8x2") { 32 } else { 16 };
        let ours = sd_balance_interval(n(7), 16, n(6) == 1, 250, cpus);
        assert_eq!(ours, n(8), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 8871);
}

/// The replay notices a decision that is off by one task.
#[test]
fn a_wrong_record_is_noticed() {
    let sys = system(1);
    let text = read_gz("balance/lb_decisions_2x8.jsonl.gz");
    let line = text
        .lines()
        .find(|l| l.contains("\"imbalance\":1,"))
        .unwrap();
    let mut record: Value = serde_json::from_str(line).unwrap();
    let mut tally = Tally::default();
    replay(&sys, &record, &mut tally);
    assert_eq!(tally.decision_differs, 0);
    record["busiest"]["imbalance"] = 2.into();
    replay(&sys, &record, &mut tally);
    assert_eq!(tally.decision_differs, 1);
}

//! Balancing decisions and intervals against those of a real Linux 6.12.117: the recorded numbers
//! of each group go in, the decision must come out.

use std::io::Read;
use std::sync::atomic::Ordering::Relaxed;

use fairground::balance::interval::sd_balance_interval;
use fairground::balance::{
    BusiestGroup, GroupType, IdleType, LbEnv, MigrationType, SdLbStats, SgLbStats, find_busiest,
};
use fairground::policy::Features;
use fairground::system::System;
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, GroupId};
use serde_json::Value;

fn unpack(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(bytes);
    reader.read_to_string(&mut text).expect("a gzip file");
    text
}

/// Two nodes of eight cores.
fn system(threads: u32) -> System {
    let cpus = (0..16 * threads).map(|cpu| CpuPlace {
        core: cpu / threads,
        cluster: cpu / threads,
        llc: cpu / (8 * threads),
        package: cpu / (8 * threads),
        node: cpu / (8 * threads),
        capacity: 1024,
    });
    let machine = Machine {
        cpus: cpus.collect(),
        ..Machine::default()
    };
    System::new(Features::default(), Topology::build(&machine))
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

/// Replays one record.
fn replay(sys: &System, record: &Value, tally: &mut Tally) {
    let dst = Cpu(record["dst_cpu"].as_u64().unwrap() as u32);
    let idle = [IdleType::Busy, IdleType::Idle, IdleType::NewlyIdle]
        [record["idle"].as_u64().unwrap() as usize];
    let name = record["sd"].as_str().unwrap();
    let domains = sys.topology.domains(dst);
    let level = domains.iter().position(|sd| sd.kind.name() == name);
    let mut env = LbEnv::new(sys, level.unwrap(), dst, idle, &sys.cpus());
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

fn replay_all(bytes: &[u8], threads: u32) -> Tally {
    let sys = system(threads);
    for cpu in &sys.cpu {
        cpu.capacity.store(1024, Relaxed);
    }
    let mut tally = Tally::default();
    for line in unpack(bytes).lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        replay(&sys, &record, &mut tally);
    }
    tally
}

#[test]
fn decisions_without_threads() {
    let bytes = include_bytes!("data/balance/lb_decisions_2x8.jsonl.gz");
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
    assert_eq!(replay_all(bytes, 1), expect);
}

#[test]
fn decisions_with_threads() {
    let bytes = include_bytes!("data/balance/lb_decisions_2x8x2.jsonl.gz");
    let expect = Tally {
        records: 4749,
        balanced: 4531,
        load: 1,
        task: 217,
        ..Tally::default()
    };
    assert_eq!(replay_all(bytes, 2), expect);
}

#[test]
fn intervals() {
    let text = unpack(include_bytes!("data/balance/intervals.csv.gz"));
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
    let text = unpack(include_bytes!("data/balance/lb_decisions_2x8.jsonl.gz"));
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

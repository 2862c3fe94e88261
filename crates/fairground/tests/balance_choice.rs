//! Which CPU balances, which queue gives, what is worth pushing: cases that no recording shows,
//! each small enough to be checked by eye.

mod recorded;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use fairground::balance::{
    IdleType, LbEnv, MigrationType, need_active_balance, sched_balance_find_src_group,
    sched_balance_find_src_rq, should_we_balance, update_group_capacity, update_sd_lb_stats,
};
use fairground::cx::Cx;
use fairground::place::Kind;
use fairground::policy::Features;
use fairground::system::System;
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::Cpu;
use recorded::CountingHost;

/// One node of `cpus` CPUs, all idle.
fn machine(cpus: u32, nodes: u32, threads: u32) -> System {
    let topology = recorded::topology(cpus, nodes, threads);
    let sys = System::new(Features::default(), topology);
    for words in &sys.cpu {
        words.capacity.store(1024, Relaxed);
        words.curr_is_idle.store(true, Relaxed);
    }
    sys
}

/// Gives a CPU `tasks` tasks that load and use it so much in all.
fn busy(sys: &System, cpu: usize, tasks: u32, load: u64, util: u64) {
    let words = &sys.cpu[cpu];
    words.curr_is_idle.store(tasks == 0, Relaxed);
    words.nr_running.store(tasks, Relaxed);
    words.h_nr_queued.store(tasks, Relaxed);
    words.h_nr_runnable.store(tasks, Relaxed);
    words.load_avg.store(load, Relaxed);
    words.util_avg.store(util, Relaxed);
    words.runnable_avg.store(util, Relaxed);
}

fn with<T>(sys: &System, f: impl FnOnce(&mut Cx<CountingHost>) -> T) -> (T, CountingHost) {
    let mut host = CountingHost::default();
    let mut moving = Vec::new();
    let mut cx = Cx::new(sys, &mut host, Cpu(0), &mut moving);
    let out = f(&mut cx);
    (out, host)
}

/// The CPU among all that balances domain `level` of CPU 0's group.
fn balancer(sys: &System, level: usize) -> Vec<u32> {
    let may = |cpu: &u32| {
        let env = LbEnv::new(sys, level, Cpu(*cpu), IdleType::Idle, &sys.cpus());
        with(sys, |cx| should_we_balance(cx, &env)).0
    };
    let group = LbEnv::new(sys, level, Cpu(0), IdleType::Idle, &sys.cpus()).local_group(sys);
    group.span.iter().map(|cpu| cpu.0).filter(may).collect()
}

#[test]
fn an_idle_core_balances_before_an_idle_thread() {
    let sys = machine(16, 2, 2);
    assert_eq!(balancer(&sys, 2), [0]);
    busy(&sys, 0, 1, 1024, 1024); // its sibling 1 idles in a busy core
    assert_eq!(balancer(&sys, 2), [2]);
    for core in 1..4 {
        busy(&sys, core * 2 + 1, 1, 1024, 1024);
    }
    assert_eq!(balancer(&sys, 2), [1]); // no idle core: the first idle thread
    for cpu in 0..8 {
        busy(&sys, cpu, 1, 1024, 1024);
    }
    assert_eq!(balancer(&sys, 2), [0]); // nobody idles: the group's own balancer
}

#[test]
fn a_newly_idle_cpu_balances_unless_work_came() {
    let sys = machine(4, 1, 1);
    let env = LbEnv::new(&sys, 0, Cpu(3), IdleType::NewlyIdle, &sys.cpus());
    assert!(with(&sys, |cx| should_we_balance(cx, &env)).0);
    sys.cpu[3].ttwu_pending.store(true, Relaxed);
    assert!(!with(&sys, |cx| should_we_balance(cx, &env)).0);
    let mut others = sys.cpus();
    others.clear(Cpu(3));
    sys.cpu[3].ttwu_pending.store(false, Relaxed);
    let env = LbEnv::new(&sys, 0, Cpu(3), IdleType::NewlyIdle, &others);
    assert!(!with(&sys, |cx| should_we_balance(cx, &env)).0);
}

#[test]
fn the_queue_depends_on_what_is_moved() {
    let sys = machine(16, 2, 1);
    busy(&sys, 8, 2, 3000, 900);
    busy(&sys, 9, 3, 2000, 1000);
    busy(&sys, 10, 1, 9000, 1024);
    sys.cpu[11].misfit_task_load.store(700, Relaxed);
    busy(&sys, 11, 1, 700, 700);
    let mut env = LbEnv::new(&sys, 1, Cpu(0), IdleType::Idle, &sys.cpus());
    let far = env.sd.groups[1];
    let mut queue = |unit, imbalance| {
        env.migration_type = unit;
        env.imbalance = imbalance;
        let env = env;
        with(&sys, |cx| sched_balance_find_src_rq(cx, &env, far)).0
    };
    assert_eq!(queue(MigrationType::Task, 1), Some(Cpu(9)));
    assert_eq!(queue(MigrationType::Util, 100), Some(Cpu(9)));
    // CPU 10's only task is more than may be moved, unless its CPU has lost capacity.
    assert_eq!(queue(MigrationType::Load, 1000), Some(Cpu(8)));
    assert_eq!(queue(MigrationType::Load, 9000), Some(Cpu(10)));
    sys.cpu[10].capacity.store(800, Relaxed);
    assert_eq!(queue(MigrationType::Load, 1000), Some(Cpu(10)));
    assert_eq!(queue(MigrationType::Misfit, 1), Some(Cpu(11)));
}

#[test]
fn the_running_task_is_pushed_after_failures_or_from_a_reduced_cpu() {
    let sys = machine(4, 1, 1);
    busy(&sys, 2, 1, 1024, 1024);
    let mut env = LbEnv::new(&sys, 0, Cpu(0), IdleType::Idle, &sys.cpus());
    env.src_cpu = Cpu(2);
    env.migration_type = MigrationType::Task;
    let pushed = |env: &LbEnv<'_>| with(&sys, |cx| need_active_balance(cx, env)).0;
    env.sd.state.nr_balance_failed.store(3, Relaxed);
    assert!(!pushed(&env)); // cache_nice_tries + 2
    env.sd.state.nr_balance_failed.store(4, Relaxed);
    assert!(pushed(&env));
    env.migration_type = MigrationType::Load;
    assert!(!pushed(&env));
    sys.cpu[2].capacity.store(875, Relaxed); // 1024 / 1.17 = 875.2
    assert!(pushed(&env));
    env.idle = IdleType::Busy;
    assert!(!pushed(&env));
}

#[test]
fn capacity_adds_up_from_the_domain_below() {
    let sys = machine(16, 2, 2);
    sys.cpu[1].util_avg_rt.store(424, Relaxed);
    let sum = |level: usize| {
        let sd = &sys.topology.domains(Cpu(1))[level];
        with(&sys, |cx| update_group_capacity(cx, sd, Cpu(1), 100));
        let state = &sys.topology.group(sd.groups[0]).state;
        let [a, b, c] = [&state.capacity, &state.min_capacity, &state.max_capacity];
        (a.load(Relaxed), b.load(Relaxed), c.load(Relaxed))
    };
    assert_eq!(sum(0), (600, 600, 600));
    assert_eq!(sys.cpu[1].capacity.load(Relaxed), 600);
    assert_eq!(sum(1), (1624, 600, 1024));
    assert_eq!(sum(2), (7768, 600, 1024));
}

#[test]
fn looking_at_a_domain_reads_each_cpu_once_and_publishes_what_others_need() {
    let sys = machine(16, 2, 1);
    busy(&sys, 12, 2, 2048, 1024);
    let env = LbEnv::new(&sys, 1, Cpu(0), IdleType::Idle, &sys.cpus());
    let (sds, host) = with(&sys, |cx| update_sd_lb_stats(cx, &env));
    assert_eq!(sds.busiest, Some(env.sd.groups[1]));
    assert_eq!((sds.total_load, sds.total_capacity), (2048, 16 * 1024));
    assert!(sds.prefer_sibling);
    assert!(sys.rd.overloaded.load(Relaxed));
    for kind in [Kind::Rq, Kind::CfsRq] {
        let touched = host.touches.iter().filter(|t| t.0.kind == kind);
        let mut cpus: Vec<u32> = touched.map(|t| t.0.a).collect();
        cpus.sort_unstable();
        assert_eq!(cpus, (0..16).collect::<Vec<_>>());
    }
    busy(&sys, 12, 0, 0, 0);
    let _ = with(&sys, |cx| update_sd_lb_stats(cx, &env));
    assert!(!sys.rd.overloaded.load(Relaxed));
}

#[test]
fn the_cache_domain_publishes_how_far_to_search() {
    let sys = machine(16, 2, 1);
    for cpu in 0..8 {
        busy(&sys, cpu, 1, 512, 512);
    }
    let mut host = CountingHost::default();
    let limit = |host: &mut CountingHost| sys.llc[0].nr_idle_scan(sys.topology.llc_of[0], host);
    assert_eq!(limit(&mut host), 8);
    for (idle, expect) in [(IdleType::NewlyIdle, 8), (IdleType::Idle, 5)] {
        let env = LbEnv::new(&sys, 0, Cpu(0), idle, &sys.cpus());
        let _ = with(&sys, |cx| update_sd_lb_stats(cx, &env));
        assert_eq!(limit(&mut host), expect);
    }
}

/// A machine as [`machine`], with decisions.
fn machine_with(cpus: u32, nodes: u32, threads: u32, set: &[(&str, &str)]) -> System {
    let mut sys = machine(cpus, nodes, threads);
    sys.features.set_all(set).unwrap();
    sys
}

#[test]
fn before_6_6_the_first_idle_thread_balanced() {
    let sys = machine_with(16, 2, 2, &[("lb_smt", "ties")]);
    busy(&sys, 0, 1, 1024, 1024);
    assert_eq!(balancer(&sys, 2), [1], "though its core is busy");
}

/// The group that CPU 0 pulls from at its largest domain, and what it moves.
fn busiest(sys: &System, idle: IdleType) -> Option<(u32, MigrationType, i64)> {
    let level = sys.topology.domains(Cpu(0)).len() - 1;
    for cpu in sys.cpus().iter() {
        for sd in sys.topology.domains(cpu) {
            with(sys, |cx| update_group_capacity(cx, sd, cpu, 0));
        }
    }
    let mut env = LbEnv::new(sys, level, Cpu(0), idle, &sys.cpus());
    let found = with(sys, |cx| sched_balance_find_src_group(cx, &mut env)).0?;
    let first = sys.topology.group(found.group).span.first()?;
    Some((first.0, found.migration_type, found.imbalance))
}

#[test]
fn before_6_6_busy_cpus_spread_tasks_over_siblings_too() {
    // One node of four cores: core 0 has one task, core 1 three, on two threads each.
    for (smt, pulls) in [("cores", false), ("ties", true)] {
        let sys = machine_with(8, 1, 2, &[("lb_smt", smt)]);
        busy(&sys, 0, 1, 1024, 300);
        busy(&sys, 2, 2, 1024, 300);
        busy(&sys, 3, 1, 512, 100);
        assert_eq!(busiest(&sys, IdleType::Busy).is_some(), pulls, "{smt}");
    }
}

#[test]
fn before_5_10_room_was_utilisation_within_a_cache_too() {
    for (rule, unit) in [("off", MigrationType::Task), ("on", MigrationType::Util)] {
        let sys = machine_with(8, 1, 2, &[("lb_util_in_cache", rule)]);
        busy(&sys, 2, 4, 4096, 1024);
        busy(&sys, 3, 4, 4096, 1024);
        let found = busiest(&sys, IdleType::Idle).expect("an overloaded core");
        assert_eq!((found.0, found.1), (2, unit), "{rule}");
    }
}

#[test]
fn before_6_14_a_delayed_sleeper_was_a_task() {
    for (rule, pulls) in [("runnable", false), ("queued", true)] {
        let sys = machine_with(4, 1, 1, &[("lb_counts", rule)]);
        busy(&sys, 2, 2, 2048, 800);
        sys.cpu[2].h_nr_queued.store(2, Relaxed);
        sys.cpu[2].h_nr_runnable.store(1, Relaxed);
        assert_eq!(
            busiest(&sys, IdleType::NewlyIdle).is_some(),
            pulls,
            "{rule}"
        );
    }
}

#[test]
fn before_5_12_failures_to_move_load_had_a_task_pushed() {
    for (rule, pushed) in [("on-tasks", false), ("on-failures", true)] {
        let sys = machine_with(4, 1, 1, &[("lb_active", rule)]);
        let mut env = LbEnv::new(&sys, 0, Cpu(0), IdleType::Idle, &sys.cpus());
        (env.src_cpu, env.migration_type) = (Cpu(2), MigrationType::Load);
        let failed = env.sd.cache_nice_tries + 3;
        env.sd.state.nr_balance_failed.store(failed, Relaxed);
        assert_eq!(with(&sys, |cx| need_active_balance(cx, &env)).0, pushed);
    }
}

/// Core, cache and node of each CPU; some have fewer domains than others.
fn uneven(places: &[[u32; 3]]) -> System {
    let place = |[core, llc, node]: &[u32; 3]| CpuPlace {
        core: *core,
        cluster: *core,
        llc: *llc,
        package: *node,
        node: *node,
        capacity: 1024,
    };
    let machine = Machine {
        cpus: places.iter().map(place).collect(),
        ..Machine::default()
    };
    System::new(
        Features::default(),
        Topology::build(&machine).expect("a machine"),
    )
}

/// Whoever pulls for another CPU of its group, because tasks may not come to it, goes on with its
/// own domains: the other has none at that level, or has others below it.
#[test]
fn a_groups_capacity_is_that_of_its_cpus_whoever_pulls_and_for_whom() {
    let machines: [&[[u32; 3]]; 2] = [
        // CPU 4 has PKG and NUMA only.
        &[
            [0, 0, 0],
            [0, 0, 0],
            [1, 0, 0],
            [1, 0, 0],
            [2, 1, 0],
            [3, 2, 1],
            [4, 2, 1],
            [5, 2, 1],
            [6, 2, 1],
        ],
        // CPUs 0 and 1 have SMT below what the others have.
        &[
            [0, 0, 0],
            [0, 0, 0],
            [1, 0, 0],
            [2, 1, 0],
            [3, 1, 0],
            [4, 2, 1],
            [5, 2, 1],
            [6, 3, 1],
            [7, 3, 1],
        ],
    ];
    for sys in machines.map(uneven) {
        let lengths: BTreeSet<usize> = sys.topology.domains.iter().map(Vec::len).collect();
        assert!(lengths.len() > 1, "{lengths:?}");
        for owner in sys.cpus().iter() {
            for level in 0..sys.topology.domains(owner).len() {
                let mut env = LbEnv::new(&sys, level, owner, IdleType::Idle, &sys.cpus());
                let group = env.local_group(&sys);
                for dst in group.span.iter() {
                    env.dst_cpu = dst;
                    let (_, host) = with(&sys, |cx| update_sd_lb_stats(cx, &env));
                    let capacity = group.state.capacity.load(Relaxed);
                    let whose = format!("{owner:?} for {dst:?} at level {level}");
                    assert_eq!(capacity, 1024 * u64::from(group.weight), "{whose}");
                    let domains = host.touches.iter().filter(|t| t.0.kind == Kind::Sd);
                    let known = |cpu, level| sys.topology.domains(Cpu(cpu)).len() > level as usize;
                    for (object, ..) in domains {
                        assert!(known(object.a, object.b), "{whose} reads {object:?}");
                    }
                }
            }
        }
    }
}

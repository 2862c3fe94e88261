//! The runtime that embedders copy, under every profile and patch: what its page promises.

extern crate alloc;

#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../examples/two_cpus/runtime.rs"]
mod runtime;

use fairground::policy::{CATALOGUE, Features, PROFILES};
use fairground::system::System;
use fairground::task::Prev;
use fairground::topology::{CpuPlace, Machine};
use fairground::value::{Cpu, TaskId, TgId};
use runtime::Runtime;

const MS: u64 = 1_000_000;

fn machine(cpus: u32) -> Machine {
    let place = |core: u32| CpuPlace {
        core,
        cluster: core,
        ..CpuPlace::default()
    };
    Machine {
        cpus: (0..cpus).map(place).collect(),
        ..Machine::default()
    }
}

/// How long each task runs in `ms`, which none of them sleeps in.
fn run(runtime: &mut Runtime, tasks: &[TaskId], ms: u64) -> Vec<u64> {
    let end = runtime.now_ns() + ms * MS;
    let mut ran = vec![0; tasks.len()];
    while runtime.now_ns() < end {
        let (now, to) = (runtime.now_ns(), runtime.next_ns().min(end));
        for cpu in runtime.cpus().iter() {
            let at = tasks.iter().position(|t| runtime.current(cpu) == Some(*t));
            if let Some(at) = at {
                ran[at] += to - now;
            }
        }
        runtime.advance(to);
    }
    ran
}

/// Five hogs, one of them of a group with 30 ms in 100 ms, on three CPUs for 2 s.
fn hogs(features: Features) -> Vec<u64> {
    let mut runtime = Runtime::new(&machine(3), features);
    let limited = runtime.add_group(Some(30 * MS));
    let groups = [TgId::ROOT, TgId::ROOT, TgId::ROOT, TgId::ROOT, limited];
    let all = runtime.cpus();
    let tasks = groups.map(|tg| runtime.spawn(Cpu(0), tg, 0, all));
    run(&mut runtime, &tasks, 2000)
}

/// Every profile, and every published change: with what it sets, and with what the kernel without
/// it does.
fn all_features() -> Vec<(String, Features)> {
    let mut out = Vec::new();
    for profile in PROFILES {
        out.push((profile.name.into(), Features::of_profile(profile)));
    }
    for patch in CATALOGUE {
        let mut features = Features::default();
        patch.undo(&mut features);
        out.push((format!("without {}", patch.name), features.clone()));
        patch.apply(&mut features);
        out.push((patch.name.into(), features));
    }
    out
}

#[test]
fn the_quota_holds_no_cpu_is_idle_and_it_comes_out_the_same_again() {
    for (name, features) in all_features() {
        let ran = hogs(features.clone());
        assert!(ran.iter().sum::<u64>() > 3 * 1980 * MS, "{name}: {ran:?}");
        assert!(ran[4].abs_diff(600 * MS) < 30 * MS, "{name}: {ran:?}");
        let rest = &ran[..4];
        assert!(rest.iter().all(|r| *r > 900 * MS), "{name}: {ran:?}");
        assert_eq!(hogs(features), ran, "{name}");
    }
}

/// A hundred tasks that compute for 0.9 ms and sleep for 50, with 10 ms in 100 on two CPUs: each
/// CPU may owe a slice of quota and a tick. Every one of them comes by a switch, not by a tick.
#[test]
fn who_comes_by_a_switch_pays_for_quota_too() {
    const COMPUTES: u64 = 900_000;
    let mut runtime = Runtime::new(&machine(2), Features::default());
    let limited = runtime.add_group(Some(10 * MS));
    let all = runtime.cpus();
    let mut tasks: Vec<(TaskId, u64, Option<u64>)> = (0..100)
        .map(|_| (runtime.spawn(Cpu(0), limited, 0, all), COMPUTES, None))
        .collect();
    let begin = runtime.now_ns();
    let (mut ran, mut of_period) = (0, [0; 20]);
    while runtime.now_ns() < begin + 2000 * MS {
        let now = runtime.now_ns();
        let place = |id| tasks.iter().position(|t| Some(t.0) == id);
        let runs: Vec<(Cpu, usize)> = all
            .iter()
            .filter_map(|cpu| Some((cpu, place(runtime.current(cpu))?)))
            .collect();
        let ends = runs.iter().map(|(_, i)| now + tasks[*i].1);
        let wakes = tasks.iter().filter_map(|t| t.2);
        let to = ends.chain(wakes).fold(runtime.next_ns(), u64::min).max(now);
        for (_, i) in &runs {
            tasks[*i].1 -= to - now;
            ran += to - now;
        }
        let period = ((now - begin) / (100 * MS)) as usize;
        of_period[period.min(19)] += runs.len() as u64 * (to - now);
        runtime.advance(to);
        for (cpu, i) in runs {
            if tasks[i].1 == 0 && runtime.current(cpu) == Some(tasks[i].0) {
                (tasks[i].1, tasks[i].2) = (COMPUTES, Some(to + 50 * MS));
                runtime.leave(cpu, Prev::Sleeps);
            }
        }
        for task in tasks.iter_mut().filter(|t| t.2.is_some_and(|at| at <= to)) {
            task.2 = None;
            runtime.wake(Cpu(0), None, task.0);
        }
    }
    assert!(of_period.iter().all(|ran| *ran <= 22 * MS), "{of_period:?}");
    assert!(ran > 190 * MS, "{ran}");
}

#[test]
fn who_sleeps_is_with_the_host_until_it_is_woken() {
    let mut runtime = Runtime::new(&machine(2), Features::default());
    let all = runtime.cpus();
    let tasks = [0, 1].map(|_| runtime.spawn(Cpu(0), TgId::ROOT, 0, all));
    run(&mut runtime, &tasks, 20);
    let on = |runtime: &Runtime, id| all.iter().find(|c| runtime.current(*c) == Some(id));
    let cpu = on(&runtime, tasks[1]).expect("a CPU for each");
    runtime.leave(cpu, Prev::Sleeps);
    assert_eq!(run(&mut runtime, &tasks, 100), [100 * MS, 0]);
    runtime.wake(Cpu(0), None, tasks[1]);
    runtime.wake(Cpu(0), None, tasks[1]);
    let ran = run(&mut runtime, &tasks, 100);
    assert!(ran.iter().all(|r| *r > 98 * MS), "{ran:?}");
}

#[test]
fn the_shared_state_may_be_reached_by_all_cpus() {
    fn shared<T: Send + Sync>() {}
    shared::<System>();
}

#[test]
fn who_has_exited_is_not_woken() {
    let mut runtime = Runtime::new(&machine(1), Features::default());
    let all = runtime.cpus();
    let id = runtime.spawn(Cpu(0), TgId::ROOT, 0, all);
    runtime.leave(Cpu(0), Prev::Exits);
    runtime.wake(Cpu(0), None, id);
    assert_eq!(runtime.current(Cpu(0)), None);
}

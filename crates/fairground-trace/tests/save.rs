//! A derived scenario runs by itself and does what was recorded.

mod common;

use common::{machine, simulated, traced};
use fairground::policy::Features;
use fairground_sim::exact::{self, Exact};
use fairground_sim::machine::Setup;
use fairground_sim::spec::Scenario;
use fairground_sim::workload::{Env, Workload};
use fairground_trace::derive::Attributes;
use fairground_trace::measure::measure;
use fairground_trace::replay::{Place, Replay};
use fairground_trace::{Recording, save, simulated as of_run};

/// CPU time of the tasks of a recording, ms, and what the scenario that is derived from it runs.
fn saved(recording: &Recording) -> (f64, Workload) {
    let known = Attributes::parse(&recording.said).unwrap();
    let home = home();
    let plain = recording.without_acts();
    let recording = plain.as_ref().unwrap_or(recording);
    let replay = Replay::to_save(recording, &known, &home).unwrap();
    let derived = replay.derived(&known).unwrap();
    let text = save::scenario(&derived, "test", &[], &home.machine.id, "linux-6.18", 1000);
    let scenario = Scenario::parse("saved.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let workload = scenario.workload(&Env { cpus: 8 }).unwrap();
    (replay.recorded.cpu_ns() as f64 / 1e6, workload)
}

fn home() -> Place {
    Place {
        machine: machine(),
        features: Features::default(),
        tracer_ns: 0,
    }
}

/// CPU time of the tasks of a recording and of the scenario that is derived from it, ms.
fn recorded_and_saved(recording: &Recording) -> (f64, f64) {
    let (recorded, workload) = saved(recording);
    let home = home();
    let setup = Setup {
        machine: &home.machine,
        features: home.features.clone(),
        workload: &workload,
        seed: 1,
        trace: true,
    };
    let run = exact::run(&setup, &Exact::default(), 50_000_000).unwrap_or_else(|e| panic!("{e}"));
    let who = of_run::identities(&workload, &run.born);
    let events = of_run::told_recording(&run.outcome.trace, &run.thread_events, 8, &who);
    let saved = measure(&events.events, 8, events.span(), None);
    (recorded, saved.cpu_ns() as f64 / 1e6)
}

#[test]
fn a_saved_run_does_the_work_that_was_exported() {
    let told = Exact {
        thread_events: true,
        ..Exact::default()
    };
    for (words, within_pct) in [
        ("hogs -t 12 -d 100ms", 1.0),
        ("sleepers --tasks 6 -d 100ms", 5.0),
        // Calls that wake or sleep become semaphores, which are cheaper than sockets.
        ("hackbench --threads -g 2 -f 4 -l 50", 10.0),
        ("schbench -m 1 -t 4 -r 1", 5.0),
    ] {
        let (recording, ..) = traced(words, &told);
        let (recorded, saved) = recorded_and_saved(&recording);
        let off = 100.0 * (saved / recorded - 1.0);
        assert!(
            off.abs() < within_pct,
            "{words}: {recorded} ms became {saved}"
        );
    }
}

/// Those that no `cpu.weight` stands for, too.
#[test]
fn a_saved_scenario_has_the_weights_of_the_recording() {
    let (recording, ..) = traced("hogs -t 2 -d 10ms", &Exact::default());
    let all = [2, 3, 15, 512, 1000, 3121, 262_144];
    let groups = all.map(|n| format!("[[cgroup]]\npath = \"/g{n}\"\n\"cpu.shares\" = {n}\n"));
    let known = Attributes::parse(&groups.concat()).unwrap();
    let replay = Replay::to_save(&recording, &known, &home()).unwrap();
    let derived = replay.derived(&known).unwrap();
    let text = save::scenario(&derived, "test", &[], "test-8", "linux-6.18", 1000);
    let scenario = Scenario::parse("saved.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let workload = scenario.workload(&Env { cpus: 8 }).unwrap();
    let shares: Vec<u64> = workload.cgroups[1..].iter().map(|g| g.shares).collect();
    assert_eq!(shares, all);
    assert!(text.contains("\"cpu.weight\" = 50\n"), "{text}");
}

/// Idle CPUs poll in the scenario, too.
#[test]
fn a_saved_run_keeps_who_holds_cpu_dma_latency() {
    let told = Exact {
        thread_events: true,
        ..Exact::default()
    };
    for (words, polls) in [
        ("cyclictest -D 5ms", true),
        ("cyclictest -D 5ms --laptop", false),
    ] {
        let (recording, ..) = traced(words, &told);
        assert_eq!(saved(&recording).1.no_idle_states, polls, "{words}");
    }
}

#[test]
fn a_saved_recording_keeps_the_work_of_threads_that_outlive_their_creator() {
    let scenario = "duration = \"exit\"\n\
        [[task]]\nname = \"creator\"\nsteps = [{ run = \"10us\" }, { fork = \"child\" }]\n\
        [[task]]\nname = \"child\"\ntemplate = true\n\
        steps = [{ run = \"20ms\" }, { sleep = \"1ms\" }, { run = \"20ms\" }]\n";
    let recording = simulated(scenario);
    let (recorded, saved) = recorded_and_saved(&Recording {
        said: String::new(),
        ..recording
    });
    assert!(
        (saved / recorded - 1.0).abs() < 0.01,
        "{recorded} ms became {saved}"
    );
}

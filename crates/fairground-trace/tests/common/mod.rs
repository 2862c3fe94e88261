//! A simulated run as a recording.
#![allow(dead_code, reason = "each test file uses a part of it")]

use fairground::policy::Features;
use fairground_sim::exact::{self, Exact, Traced};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::spec::Scenario;
use fairground_sim::workload::{Env, Workload};
use fairground_trace::Recording;
use fairground_trace::derive::Attributes;
use fairground_trace::simulated;

/// 8 CPUs, so that a run takes milliseconds.
pub fn machine() -> Machine {
    Machine::from_path_or_id("xeon-8cpu-2013").unwrap()
}

/// The tracepoints of a benchmark on [`machine`].
pub fn simulated(words: &str) -> Recording {
    traced(words, &Exact::default()).0
}

/// The same with what else was kept, and the paths of the groups.
pub fn traced(words: &str, exact: &Exact) -> (Recording, Traced, Vec<String>) {
    traced_on(&machine(), words, exact)
}

/// [`traced`] on another machine of 8 CPUs.
pub fn traced_on(
    machine: &Machine,
    words: &str,
    exact: &Exact,
) -> (Recording, Traced, Vec<String>) {
    traced_with(machine, words, exact, 1)
}

/// [`traced_on`] with another seed.
pub fn traced_with(
    machine: &Machine,
    words: &str,
    exact: &Exact,
    seed: u64,
) -> (Recording, Traced, Vec<String>) {
    // A line break is in a scenario only, and `_` stands for a blank inside a word.
    let cpus = machine.topology.nr_cpus() as u32;
    let workload = if words.contains('\n') {
        let file = if words.starts_with('{') {
            "test.json"
        } else {
            "test.toml"
        };
        let scenario = Scenario::parse(file, words).unwrap();
        scenario.workload(&Env { cpus }).unwrap()
    } else {
        let argv: Vec<String> = words.split(' ').map(|w| w.replace('_', " ")).collect();
        Workload::from_argv(&argv, &Env { cpus: 8 }).unwrap()
    };
    let setup = Setup {
        machine,
        features: Features::default(),
        workload: &workload,
        seed,
        trace: true,
    };
    let run = exact::run(&setup, exact, u64::MAX).unwrap();
    let who = simulated::identities(&workload, &run.born);
    let mut recording =
        simulated::told_recording(&run.outcome.trace, &run.thread_events, cpus, &who);
    recording.said = Attributes::of_run(&setup, &run.born).text();
    let groups = workload.cgroups.iter().map(|g| g.path.clone()).collect();
    (recording, run, groups)
}

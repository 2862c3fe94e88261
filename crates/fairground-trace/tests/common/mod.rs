//! A simulated run as a recording.

use fairground::policy::Features;
use fairground_sim::exact::{self, Exact};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::{Env, Workload};
use fairground_trace::Recording;
use fairground_trace::simulated::{self, FIRST_TID, Identity};

/// 8 CPUs, so that a run takes milliseconds.
pub fn machine() -> Machine {
    Machine::from_path_or_id("xeon-8cpu-2013").unwrap()
}

/// The tracepoints of a benchmark on it.
pub fn simulated(words: &str) -> Recording {
    let machine = machine();
    let argv: Vec<String> = words.split(' ').map(String::from).collect();
    let workload = Workload::from_argv(&argv, &Env { cpus: 8 }).unwrap();
    let setup = Setup {
        machine: &machine,
        features: Features::default(),
        workload: &workload,
        seed: 1,
        trace: true,
    };
    let run = exact::run(&setup, &Exact::default(), u64::MAX).unwrap();
    let who: Vec<Identity> = (FIRST_TID..)
        .zip(&run.templates)
        .map(|(tid, template)| Identity {
            tid,
            prio: 120,
            comm: workload.templates[*template as usize].name.clone(),
        })
        .collect();
    simulated::recording(&run.outcome.trace, 8, &who)
}

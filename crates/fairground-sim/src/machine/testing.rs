//! Simulated machines for the unit tests of this folder.

use fairground::policy::Features;

use super::{Setup, Sim};
use crate::machine_file::Machine;
use crate::workload::{Env, Workload};

/// The first CPUs of a server, in whole cores.
pub(crate) fn server(cpus: usize) -> Machine {
    let machine = Machine::builtin("spr-8480-2s").unwrap();
    machine.shrunk(cpus).unwrap()
}

/// What `act` makes of `argv` on a machine, with seed 1 and `set` on top of the default profile,
/// before its first event.
pub(crate) fn on<T>(
    machine: &Machine,
    argv: &str,
    set: &[(&str, &str)],
    act: impl FnOnce(&mut Sim<'_>) -> T,
) -> T {
    with(machine, &workload(machine, argv), set, act)
}

/// What a command line means on a machine.
pub(super) fn workload(machine: &Machine, argv: &str) -> Workload {
    let argv: Vec<_> = argv.split(' ').map(String::from).collect();
    let cpus = machine.topology.nr_cpus() as u32;
    Workload::from_argv(&argv, &Env { cpus }).unwrap()
}

/// As [`on`], of a workload.
pub(crate) fn with<T>(
    machine: &Machine,
    workload: &Workload,
    set: &[(&str, &str)],
    act: impl FnOnce(&mut Sim<'_>) -> T,
) -> T {
    seeded(machine, workload, set, 1, act)
}

/// As [`with`], with another seed than 1.
pub(super) fn seeded<T>(
    machine: &Machine,
    workload: &Workload,
    set: &[(&str, &str)],
    seed: u64,
    act: impl FnOnce(&mut Sim<'_>) -> T,
) -> T {
    let mut features = Features::default();
    features.set_all(set).unwrap();
    let setup = Setup {
        machine,
        features,
        workload,
        seed,
        trace: false,
    };
    act(&mut Sim::new(&setup).unwrap())
}

/// Runs `workload` for 5 ms; then CPU 0 begins a step, and `act` goes on.
pub(super) fn at_5ms<T>(
    machine: &Machine,
    argv: &str,
    set: &[(&str, &str)],
    act: impl FnOnce(&mut Sim<'_>) -> T,
) -> T {
    on(machine, argv, set, |sim| {
        sim.run_to(5_000_000).unwrap();
        let now = sim.now;
        sim.host.begin(0, now);
        act(sim)
    })
}

/// CPU 0 of the two-CPU guest, with two hogs running, begins a step at 5 ms, and `act` goes on.
pub(super) fn on_guest(act: impl FnOnce(&mut Sim<'_>)) {
    let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
    at_5ms(&machine, "hogs --tasks 2 --duration 10ms", &[], act);
}

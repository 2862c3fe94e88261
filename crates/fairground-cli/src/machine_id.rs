//! A machine in a result: its name, its hash and what it consists of.

use fairground_report::{MachineId, MachineParts};
use fairground_sim::machine_file::Machine;

/// Name and hash of a machine.
pub fn machine_id(machine: &Machine) -> MachineId {
    MachineId {
        id: machine.id.clone(),
        hash: machine.hash(),
        topology: Some(parts(machine)),
    }
}

/// What it consists of.
fn parts(machine: &Machine) -> MachineParts {
    let t = &machine.topology;
    MachineParts {
        cpus: t.nr_cpus() as u64,
        cores: t.nr_cores() as u64,
        sockets: t.nr_sockets() as u64,
        llcs: t.nr_llcs() as u64,
    }
}

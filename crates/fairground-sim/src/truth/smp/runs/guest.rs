//! The emulated guest as a machine of the simulator.

use fairground::policy::Features;
use fairground::topology::Machine as Places;

use crate::machine::{Setup, Sim};
use crate::machine_file::{CpuPlace, Machine, Topology};
use crate::truth::smp::machine::Guest;
use crate::workload::program::Workload;

/// What is charged there, every figure with its origin.
const COSTS: &str = include_str!("tcg-guest.toml");

/// Seeds of the simulated runs.
pub(super) const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// The costs of the emulator on the recorded topology.
pub(super) fn machine(guest: &Guest) -> Result<Machine, String> {
    let mut machine = Machine::from_toml("tcg-guest.toml", COSTS).map_err(|e| e.to_string())?;
    machine.topology = topology(guest.places());
    Ok(machine)
}

fn topology(places: &Places) -> Topology {
    let nodes = places.cpus.iter().map(|p| p.node).max().unwrap_or(0) as usize + 1;
    let place = |(i, p): (usize, &fairground::topology::CpuPlace)| {
        let before = places.cpus[..i].iter().filter(|o| o.core == p.core);
        CpuPlace {
            socket: p.node,
            die: p.node,
            llc: p.llc,
            numa_node: p.node,
            cluster: p.cluster,
            core: p.core,
            thread: before.count() as u32,
        }
    };
    let row = |from: usize| (0..nodes).map(move |to| if from == to { 10 } else { 20 });
    let slit = match places.distance.len() == nodes {
        true => places.distance.clone(),
        false => (0..nodes).map(|from| row(from).collect()).collect(),
    };
    Topology {
        cpus: places.cpus.iter().enumerate().map(place).collect(),
        slit,
        siblings_apart: false,
    }
}

/// A traced run of `workload`, nothing done yet.
pub(super) fn sim<'a>(
    machine: &'a Machine,
    features: Features,
    workload: &'a Workload,
    seed: u64,
) -> Result<Sim<'a>, String> {
    let setup = Setup {
        machine,
        features,
        workload,
        seed,
        trace: true,
    };
    let mut sim = Sim::new(&setup).map_err(|e| e.to_string())?;
    sim.align_ticks(0);
    Ok(sim)
}

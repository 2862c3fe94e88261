//! A recorded state in the engine's published words, with a host that only knows the time.

use std::sync::atomic::Ordering::Relaxed;

use fairground::cx::Cx;
use fairground::system::System;
use fairground::topology::Topology;
use fairground::value::Cpu;

use super::machine::Guest;
pub(super) use crate::host::Quiet;

/// The machine of a recording with its kernel, some decisions changed, all CPUs at full capacity.
pub(super) fn system(guest: &Guest, changes: &[(&str, &str)]) -> System {
    let topology: Topology = guest.topology();
    let full: Vec<u64> = topology
        .places
        .iter()
        .map(|p| u64::from(p.capacity))
        .collect();
    let sys = System::new(super::features(changes), topology);
    for (cpu, full) in sys.cpu.iter().zip(full) {
        cpu.capacity.store(full, Relaxed);
    }
    sys
}

/// Calls `f` on behalf of `cpu`.
pub(super) fn on<T>(
    sys: &System,
    cpu: Cpu,
    now: u64,
    f: impl FnOnce(&mut Cx<'_, Quiet>) -> T,
) -> T {
    let mut cx = Cx {
        sys,
        host: &mut Quiet { now },
        cpu,
        moving: &mut Vec::new(),
    };
    f(&mut cx)
}

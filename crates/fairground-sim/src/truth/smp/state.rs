//! A recorded state in the engine's published words, and a host that only knows the time.

use std::sync::atomic::Ordering::Relaxed;

use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::system::System;
use fairground::task::Task;
use fairground::topology::Topology;
use fairground::value::Cpu;

use super::machine::Guest;

/// A host for decisions that read and answer.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// What the clock says, ns.
    pub now: u64,
}

impl Host for Quiet {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, _: Task) {}
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        0
    }
}

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

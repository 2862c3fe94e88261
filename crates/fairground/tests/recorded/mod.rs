//! The machines on which a real Linux 6.12 kernel was recorded, and its features.
#![allow(dead_code, reason = "each test uses a part")]

use fairground::event::Event;
use fairground::host::{Host, Kick, Timer};
use fairground::place::{Access, Fields, Object};
use fairground::policy::{Features, find_profile};
use fairground::task::Task;
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::Cpu;

/// The features of the recorded kernel.
pub fn features() -> Features {
    let profile = find_profile("linux-6.12-lts").expect("a profile of the recorded kernel");
    let mut features = Features::of_profile(profile);
    features.hz = 250;
    features
}

/// The machine of a recording: `cpus` CPUs, one cache a node, siblings side by side. That its
/// domains and groups are those of the recorded kernel is checked by `fairground truth`.
pub fn topology(cpus: u32, nodes: u32, threads: u32) -> Topology {
    let places = (0..cpus).map(|cpu| {
        let node = cpu * nodes / cpus;
        CpuPlace {
            core: cpu / threads,
            cluster: cpu / threads,
            llc: node,
            package: node,
            node,
            capacity: 1024,
        }
    });
    Topology::build(&Machine {
        cpus: places.collect(),
        ..Machine::default()
    })
    .expect("a machine")
}

/// A host that does nothing but count.
#[derive(Default)]
pub struct CountingHost {
    /// The time that `clock` gives, ns.
    pub now: u64,
    /// Touches so far.
    pub touches: Vec<(Object, Fields, Access)>,
    /// Turns of loops so far.
    pub turns: u32,
}

impl Host for CountingHost {
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
    fn touch(&mut self, object: Object, fields: Fields, access: Access) {
        self.touches.push((object, fields, access));
    }
    fn next_turn(&mut self) {
        self.turns += 1;
    }
    fn event(&mut self, _: Event) {}
}

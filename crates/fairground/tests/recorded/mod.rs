//! Machines and states as a real Linux 6.12 kernel recorded them.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use fairground::event::Event;
use fairground::host::{Host, Kick, Timer};
use fairground::place::{Access, Fields, Object};
use fairground::policy::{Features, find_profile};
use fairground::system::System;
use fairground::task::Task;
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask};
use serde_json::Value;

/// The text of a compressed file below `tests/data`.
pub fn read_gz(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text
}

/// A number of a record.
pub fn num(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("not a number: {v}"))
}

/// A CPU of a record.
pub fn cpu(v: &Value) -> Cpu {
    Cpu(num(v) as u32)
}

/// CPUs as in `0-3,8`.
pub fn mask(v: &Value) -> CpuMask {
    let text = v.as_str().expect("a list of CPUs");
    let mut out = CpuMask::empty();
    for part in text.split(',') {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        let end = |s: &str| s.parse::<u32>().expect("a CPU");
        (end(a)..=end(b)).for_each(|c| out.set(Cpu(c)));
    }
    out
}

/// The features of the recorded kernel.
pub fn features() -> Features {
    let mut features = Features::default();
    let profile = find_profile("linux-6.12-lts").expect("a profile of the recorded kernel");
    features.set_all(profile.sets);
    features.set_all(&[("hz", "250")]);
    features
}

/// The machine of a recording: `cpus` CPUs, one cache a node, siblings side by side. That its
/// domains and groups are those of the recorded kernel is checked in `topology_truth.rs`.
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
}

/// Stores the recorded per-CPU words.
pub fn store_cpus(sys: &System, cpus: &Value) {
    for (words, row) in sys.cpu.iter().zip(cpus.as_array().expect("CPUs")) {
        let at = |i: usize| num(&row[i]);
        words.nr_running.store(at(0) as u32, Relaxed);
        words.h_nr_queued.store(at(1) as u32, Relaxed);
        words.h_nr_runnable.store(at(2) as u32, Relaxed);
        words.curr_is_idle.store(at(3) == 1, Relaxed);
        words.load_avg.store(at(4), Relaxed);
        words.runnable_avg.store(at(5), Relaxed);
        words.util_avg.store(at(6), Relaxed);
        words.util_est.store(at(7) as u32, Relaxed);
        words
            .idle_stamp
            .store(row[8].as_u64().unwrap_or(0), Relaxed);
        words.capacity.store(1024, Relaxed);
        words.ttwu_pending.store(false, Relaxed);
    }
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
    fn work(&mut self, turns: u32) {
        self.turns += turns;
    }
    fn event(&mut self, _: Event) {}
}

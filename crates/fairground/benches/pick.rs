//! Pick and put of the bare engine: ns for one switch of one CPU with N runnable tasks.
//!
//! `cargo bench -p fairground --bench pick`. The host does nothing, so that this is the engine
//! alone: the clock moves by a slice, the running task is charged and put back into the tree,
//! the eligible task with the earliest deadline is picked and made current, load averages of
//! task and queue are aged. The quickest of many short rounds counts: whatever else the machine
//! does can only slow a round down.

use std::hint::black_box;
use std::time::Instant;

use fairground::cx::Cx;
use fairground::fair::{Enqueue, group, task};
use fairground::host::{Host, Kick, Timer};
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::system::System;
use fairground::task::Task;
use fairground::topology::{CpuPlace, Topology};
use fairground::value::{Cpu, TgId};

const ROUNDS: u32 = 400;
const SWITCHES: u32 = 5_000;

struct Bare {
    now: u64,
}

impl Host for Bare {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, _: Task) {}
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        4
    }
}

/// Nanoseconds of the quickest round, per switch, and the part of calls that switched.
fn switch_ns(tasks: u32) -> (f64, f64) {
    let place = CpuPlace {
        capacity: 1024,
        ..CpuPlace::default()
    };
    let topology = Topology {
        places: vec![place],
        ..Topology::default()
    };
    let mut sys = System::new(Features::default(), topology);
    let slice_ns = sys.features.tunables.base_slice_ns;
    let new: Vec<Task> = (0..tasks)
        .map(|_| Task::new(sys.add_task(TgId::ROOT), TgId::ROOT, slice_ns))
        .collect();
    let mut host = Bare { now: 1_000_000_000 };
    let mut rq = Rq::new(&sys, Cpu(0), host.now);
    let mut moving = Vec::new();
    let mut cx = Cx::new(&sys, &mut host, Cpu(0), &mut moving);
    for mut task in new {
        task.se.cfs_rq = group::ensure_cfs(&mut cx, &mut rq, TgId::ROOT);
        let slot = rq.take_in(task);
        task::enqueue_task_fair(&mut cx, &mut rq, slot, Enqueue::INITIAL);
    }
    let (mut best, mut switched) = (f64::MAX, 0u32);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..SWITCHES {
            cx.host.now += slice_ns;
            cx.update_rq_clock(&mut rq);
            let prev = rq.curr;
            rq.need_resched = false;
            rq.curr = task::pick_next_task_fair(&mut cx, &mut rq, prev);
            switched += u32::from(black_box(rq.curr) != prev);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(SWITCHES));
    }
    (best, f64::from(switched) / f64::from(ROUNDS * SWITCHES))
}

fn main() {
    for (tasks, floor) in [(8, Some(75.0)), (512, None)] {
        let (ns, switched) = switch_ns(tasks);
        let verdict = match floor {
            Some(f) if ns <= f => format!("floor {f} ns: met"),
            Some(f) => format!("floor {f} ns: MISSED"),
            None => "no floor".into(),
        };
        let part = 100.0 * switched;
        println!("pick + put, {tasks:>3} tasks: {ns:>6.1} ns ({part:.0} % switched), {verdict}");
    }
}

//! The shortest host: two tasks share one CPU, one of them with twice the weight.
//!
//! The host is the machine: it has the clock, calls the tick, and switches when it is asked to.
use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::sched;
use fairground::system::System;
use fairground::task::{Policy, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, TgId};

/// Not 0, which means "never" in some words.
const BEGIN_NS: u64 = 1_000_000;

struct OneCpu {
    now_ns: u64,
    resched: bool,
}

impl Host for OneCpu {
    fn clock(&mut self) -> u64 {
        self.now_ns
    }
    fn resched(&mut self, _: Cpu) {
        self.resched = true;
    }
    fn park(&mut self, _: Task) {} // nobody sleeps here
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        0
    }
}

fn main() {
    let topology = Topology::build(&Machine {
        cpus: vec![CpuPlace::default()],
        ..Machine::default()
    })
    .expect("a machine");
    let mut sys = System::new(Features::default(), topology);
    let ids = [0, -3].map(|nice| (sys.add_task(TgId::ROOT), nice));
    let mut rqs = vec![Rq::new(&sys, Cpu(0), BEGIN_NS)];
    let mut moving = Vec::with_capacity(sys.features.load_balance.nr_migrate as usize);
    let mut host = OneCpu {
        now_ns: BEGIN_NS,
        resched: false,
    };
    let mut cx = Cx::new(&sys, &mut host, Cpu(0), &mut moving);
    for (id, nice) in ids {
        let mut task = Task::new(id, TgId::ROOT, sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = sys.cpus();
        task.set_scheduler(Policy::Normal, nice);
        sched::sched_fork(&mut cx, &mut rqs, &mut task, None);
        let placed = sched::select_cpu(&mut cx, &mut task, None, WakeKind::Fork);
        sched::enqueue_woken(&mut cx, &mut rqs, task, placed, WakeKind::Fork);
    }
    let tick_ns = sys.features.tick_ns();
    let mut ran_ns = [0, 0];
    let mut running = None;
    while cx.host.now_ns < BEGIN_NS + 3_000_000_000 {
        if core::mem::take(&mut cx.host.resched) {
            running = sched::schedule(&mut cx, &mut rqs, Prev::Runnable).next;
        }
        cx.host.now_ns += tick_ns;
        if let Some(id) = running {
            ran_ns[id.idx()] += tick_ns;
        }
        sched::sched_tick(&mut cx, &mut rqs);
    }
    for ((id, nice), ns) in ids.iter().zip(ran_ns) {
        println!("task {} at nice {nice} ran {} ms", id.0, ns / 1_000_000);
    }
    // Weights 1024 and 1991: shares 34 % and 66 %.
    assert!((1000..1040).contains(&(ran_ns[0] / 1_000_000)));
}

//! A host and a machine for unit tests: nothing happens by itself, everything is written down.
#![allow(dead_code, reason = "each test uses what it needs")]

use alloc::vec::Vec;

use crate::cx::Cx;
use crate::event::Event;
use crate::host::{Host, Kick, Timer};
use crate::place::{Access, Fields, Func, Object};
use crate::policy::Features;
use crate::rq::Rq;
use crate::sched;
use crate::system::System;
use crate::task::{Placed, Task, WakeKind};
use crate::topology::{CpuPlace, Machine, Topology};
use crate::value::{Cpu, TaskId, TgId};

/// Writes down what the engine asks for.
#[derive(Debug, Default)]
pub struct TestHost {
    /// The scheduler clock of all CPUs, ns.
    pub now: u64,
    /// How often the clock was read.
    pub clock_reads: u32,
    /// Tasks that came back.
    pub parked: Vec<Task>,
    /// CPUs that were asked to reschedule.
    pub rescheds: Vec<Cpu>,
    /// Requests of timers; `None` = withdrawn.
    pub timers: Vec<(Timer, Option<u64>)>,
    /// Requests to CPUs.
    pub kicks: Vec<(Cpu, Kick)>,
    /// Touches.
    pub touches: Vec<(Object, Fields, Access)>,
    /// Functions entered.
    pub entered: Vec<Func>,
    /// Events.
    pub events: Vec<Event>,
}

impl Host for TestHost {
    fn clock(&mut self) -> u64 {
        self.clock_reads += 1;
        self.now
    }

    fn resched(&mut self, cpu: Cpu) {
        self.rescheds.push(cpu);
    }

    fn park(&mut self, task: Task) {
        self.parked.push(task);
    }

    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        self.timers.push((timer, Some(at_ns)));
    }

    fn cancel_timer(&mut self, timer: Timer) {
        self.timers.push((timer, None));
    }

    fn kick(&mut self, cpu: Cpu, work: Kick) {
        self.kicks.push((cpu, work));
    }

    fn random(&mut self) -> u32 {
        0
    }

    fn touch(&mut self, object: Object, fields: Fields, access: Access) {
        self.touches.push((object, fields, access));
    }

    fn enter(&mut self, func: Func) -> Func {
        self.entered.push(func);
        func
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    fn moment(&mut self) -> u64 {
        self.now
    }
}

/// A machine under test.
pub struct Bench {
    /// Shared state.
    pub sys: System,
    /// Run queues.
    pub rqs: Vec<Rq>,
    /// What was asked for.
    pub host: TestHost,
    moving: Vec<Task>,
}

impl Bench {
    /// `cpus` equal CPUs without sched domains, 1 ms after the beginning of time.
    pub fn new(cpus: usize, features: Features) -> Self {
        let place = CpuPlace {
            capacity: 1024,
            ..CpuPlace::default()
        };
        let topology = Topology {
            places: alloc::vec![place; cpus],
            ..Topology::default()
        };
        Self::with(topology, features)
    }

    /// `nodes` nodes with a cache of `each` CPUs, 1 ms after the beginning of time.
    pub fn nodes(nodes: u32, each: u32, features: Features) -> Self {
        let cpus = (0..nodes * each).map(|core| CpuPlace {
            core,
            cluster: core,
            llc: core / each,
            package: core / each,
            node: core / each,
            capacity: 1024,
        });
        let topology = Topology::build(&Machine {
            cpus: cpus.collect(),
            ..Machine::default()
        });
        Self::with(topology.expect("a machine"), features)
    }

    /// The CPUs of `topology`, 1 ms after the beginning of time.
    pub fn with(topology: Topology, features: Features) -> Self {
        let cpus = topology.nr_cpus();
        let now = 1_000_000;
        let sys = System::new(features, topology);
        let rqs = (0..cpus as u32).map(|cpu| Rq::new(&sys, Cpu(cpu), now));
        Self {
            rqs: rqs.collect(),
            sys,
            host: TestHost {
                now,
                ..TestHost::default()
            },
            moving: Vec::new(),
        }
    }

    /// A new task of `tg`, with the host.
    pub fn task(&mut self, tg: TgId) -> Task {
        let id = self.sys.add_task(tg);
        let mut task = Task::new(id, tg, self.sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = self.sys.cpus();
        task
    }

    /// A new task of `tg`, forked and queued on `cpu`.
    pub fn start(&mut self, cpu: u32, tg: TgId) -> TaskId {
        let mut task = self.task(tg);
        let id = task.body.id;
        let placed = Placed {
            cpu: Cpu(cpu),
            migrated: false,
        };
        self.call(cpu, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
        id
    }

    /// Runs `f` on `cpu`, with all queues.
    pub fn call<T>(&mut self, cpu: u32, f: impl FnOnce(&mut Cx<TestHost>, &mut Vec<Rq>) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.host, Cpu(cpu), &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    /// Runs `f` on `cpu`, with its queue.
    pub fn on<T>(&mut self, cpu: u32, f: impl FnOnce(&mut Cx<TestHost>, &mut Rq) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.host, Cpu(cpu), &mut self.moving);
        let rq = &mut self.rqs[cpu as usize];
        cx.update_rq_clock(rq);
        let out = f(&mut cx, rq);
        rq.publish(&self.sys);
        out
    }
}

//! A crude machine for runs of hogs: every busy CPU ticks, nothing costs time, and what the engine
//! asks for happens at once. It holds the engine to the rules of locking: a queue is reached by who
//! holds it, nobody holds two, and pools of quota come after.
#![allow(dead_code, reason = "each test uses what it needs")]

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

use fairground::cx::Cx;
use fairground::event::Event;
use fairground::host::{Host, Kick, KickWork, Timer};
use fairground::place::Lock;
use fairground::policy::Features;
use fairground::rq::{Rq, Rqs};
use fairground::sched;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

#[derive(Default)]
pub struct Asked {
    pub now: u64,
    /// How far the clock moves with each reading.
    pub creep_ns: u64,
    random: u32,
    due: VecDeque<(Cpu, Option<Kick>)>,
    /// The queue that is held.
    held: Rc<Cell<Option<Cpu>>>,
    pool: Option<TgId>,
    pub parked: Vec<Task>,
    pub migrations: u32,
    /// Ticks of CPUs that were not idle.
    pub busy_ticks: u32,
    /// Softirqs that balanced for idle CPUs, and idle CPUs that they had to look at.
    pub idle_balances: u32,
}

impl Host for Asked {
    fn clock(&mut self) -> u64 {
        self.now += self.creep_ns;
        self.now
    }
    fn resched(&mut self, cpu: Cpu) {
        self.due.push_back((cpu, None));
    }
    fn park(&mut self, task: Task) {
        self.parked.push(task);
    }
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, cpu: Cpu, work: Kick) {
        self.due.push_back((cpu, Some(work)));
    }
    fn random(&mut self) -> u32 {
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.random >> 16
    }
    fn lock(&mut self, lock: Lock) {
        assert_eq!(self.pool, None);
        match lock {
            Lock::Rq(cpu) => self.hold(cpu),
            Lock::Bandwidth(tg) => self.pool = Some(tg),
        }
    }
    fn unlock(&mut self, lock: Lock) {
        match lock {
            Lock::Rq(cpu) => self.release(cpu),
            Lock::Bandwidth(tg) => assert_eq!(self.pool.take(), Some(tg)),
        }
    }
    fn begin_lockless(&mut self, cpu: Cpu) {
        self.hold(cpu);
    }
    fn end_lockless(&mut self, cpu: Cpu) {
        self.release(cpu);
    }
    fn event(&mut self, event: Event) {
        if let Event::Migrate { .. } = event {
            self.migrations += 1;
        }
    }
}

impl Asked {
    fn hold(&mut self, cpu: Cpu) {
        assert_eq!(self.held.replace(Some(cpu)), None);
    }

    fn release(&mut self, cpu: Cpu) {
        assert_eq!((self.pool, self.held.take()), (None, Some(cpu)));
    }
}

/// The queues as the engine sees them.
pub struct Queues {
    rqs: Vec<Rq>,
    held: Rc<Cell<Option<Cpu>>>,
}

impl Deref for Queues {
    type Target = [Rq];
    fn deref(&self) -> &[Rq] {
        &self.rqs
    }
}

impl Rqs for Queues {
    fn rq(&mut self, cpu: Cpu) -> &mut Rq {
        assert_eq!(self.held.get(), Some(cpu), "reached without its lock");
        &mut self.rqs[cpu.idx()]
    }
}

pub struct Crude {
    pub sys: System,
    pub rqs: Queues,
    pub host: Asked,
    moving: Vec<Task>,
    tickless: Vec<bool>,
}

impl Crude {
    /// 250 ticks a second, and the newest kernel.
    pub fn new(machine: &Machine) -> Self {
        Self::with(machine, Features::default())
    }

    /// 250 ticks a second.
    pub fn with(machine: &Machine, mut features: Features) -> Self {
        features.hz = 250;
        let topology = Topology::build(machine).expect("a machine");
        let n = topology.nr_cpus();
        let now = 1_000_000_000;
        let sys = System::new(features, topology);
        let rq = |c| Rq::new(&sys, Cpu(c), now);
        let host = Asked {
            now,
            random: 1,
            ..Asked::default()
        };
        Self {
            rqs: Queues {
                rqs: (0..n as u32).map(rq).collect(),
                held: host.held.clone(),
            },
            sys,
            host,
            moving: Vec::with_capacity(64),
            tickless: vec![false; n],
        }
    }

    pub fn on<T>(&mut self, cpu: Cpu, f: impl FnOnce(&mut Cx<Asked>, &mut Queues) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.host, cpu, &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    /// A task that never sleeps, put on `cpu` without asking where it should go.
    pub fn hog(&mut self, cpu: Cpu, allowed: CpuMask) -> TaskId {
        self.hog_of(TgId::ROOT, cpu, allowed)
    }

    /// The same, in a group.
    pub fn hog_of(&mut self, tg: TgId, cpu: Cpu, allowed: CpuMask) -> TaskId {
        let id = self.sys.add_task(tg);
        let mut task = Task::new(id, tg, self.sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = allowed;
        let placed = Placed {
            cpu,
            migrated: false,
        };
        self.on(cpu, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
        self.settle();
        id
    }

    /// The task that runs on `cpu` goes to sleep.
    pub fn sleep(&mut self, cpu: Cpu) -> Option<TaskId> {
        let id = self.rqs[cpu.idx()].curr_task()?;
        self.schedule(cpu, Prev::Sleeps);
        self.settle();
        Some(id)
    }

    /// A sleeping task wakes, by an interrupt on `cpu`.
    pub fn wake(&mut self, cpu: Cpu, id: TaskId) {
        let kind = WakeKind::Wake;
        if !self.on(cpu, |cx, rqs| sched::wake_queued(cx, rqs, id, kind)) {
            let at = self.host.parked.iter().position(|t| t.body.id == id);
            let mut task = self
                .host
                .parked
                .remove(at.expect("asleep tasks are with the host"));
            self.on(cpu, |cx, rqs| {
                let placed = sched::select_cpu(cx, &mut task, None, kind);
                sched::enqueue_woken(cx, rqs, task, placed, kind);
            });
        }
        self.settle();
    }

    /// Does everything that was asked for.
    pub fn settle(&mut self) {
        while let Some((cpu, work)) = self.host.due.pop_front() {
            match work {
                None => self.schedule(cpu, Prev::Runnable),
                Some(Kick::Stop(work)) => {
                    self.on(cpu, |cx, rqs| {
                        let _ = sched::run_stopper(cx, rqs, work);
                    });
                }
                Some(Kick::Wakeups) => panic!("whoever wakes enqueues"),
                Some(Kick::Run(work)) => {
                    self.host.idle_balances += u32::from(work == KickWork::IdleBalance);
                    self.on(cpu, |cx, rqs| sched::run_kick(cx, rqs, work));
                }
            }
        }
    }

    pub fn schedule(&mut self, cpu: Cpu, prev: Prev) {
        let idle = self.on(cpu, |cx, rqs| sched::schedule(cx, rqs, prev).next.is_none());
        if idle && !self.tickless[cpu.idx()] {
            self.on(cpu, sched::nohz_enter_idle);
        }
        self.tickless[cpu.idx()] = idle;
    }

    /// `n` ticks of each CPU, spread evenly over the period.
    pub fn ticks(&mut self, n: u32) {
        let cpus = self.sys.nr_cpus() as u64;
        for _ in 0..n {
            for cpu in self.sys.cpus().iter() {
                self.host.now += self.sys.features.tick_ns() / cpus;
                if !self.tickless[cpu.idx()] {
                    self.host.busy_ticks += 1;
                    self.on(cpu, sched::sched_tick);
                    self.settle();
                }
            }
        }
    }

    /// All CPUs go idle first.
    pub fn idle(mut self) -> Self {
        for cpu in self.sys.cpus().iter() {
            self.schedule(cpu, Prev::Runnable);
        }
        self.settle();
        self
    }

    pub fn nr_running(&self) -> Vec<u32> {
        self.rqs.iter().map(|rq| rq.nr_running).collect()
    }
}

pub fn places(n: u32, place: impl Fn(u32) -> CpuPlace) -> Machine {
    Machine {
        cpus: (0..n).map(place).collect(),
        ..Machine::default()
    }
}

pub fn flat(n: u32) -> Machine {
    places(n, |cpu| CpuPlace {
        core: cpu,
        cluster: cpu,
        capacity: 1024,
        ..CpuPlace::default()
    })
}

/// Two packages with a cache each, two threads a core.
pub fn two_packages(n: u32) -> Machine {
    let half = n / 2;
    places(n, |cpu| CpuPlace {
        core: cpu / 2,
        cluster: cpu / 2,
        llc: cpu / half,
        package: cpu / half,
        capacity: 1024,
        ..CpuPlace::default()
    })
}

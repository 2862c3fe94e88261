//! Load balancing on a crude machine: every CPU ticks, nothing costs time, and what the engine
//! asks for happens at once. Hogs that start on one CPU must spread.

use std::collections::VecDeque;

use fairground::cx::Cx;
use fairground::event::Event;
use fairground::host::{Host, Kick, Timer};
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::sched;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

#[derive(Default)]
struct Asked {
    now: u64,
    random: u32,
    due: VecDeque<(Cpu, Option<Kick>)>,
    parked: Vec<Task>,
    migrations: u32,
}

impl Host for Asked {
    fn clock(&mut self) -> u64 {
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
    fn event(&mut self, event: Event) {
        if let Event::Migrate { .. } = event {
            self.migrations += 1;
        }
    }
}

struct Crude {
    sys: System,
    rqs: Vec<Rq>,
    host: Asked,
    moving: Vec<Task>,
    tickless: Vec<bool>,
}

impl Crude {
    fn new(machine: &Machine) -> Self {
        let mut features = Features::default();
        features.hz = 250;
        let topology = Topology::build(machine);
        let n = topology.nr_cpus();
        let now = 1_000_000_000;
        Self {
            sys: System::new(features, topology),
            rqs: (0..n as u32).map(|c| Rq::new(Cpu(c), now, 1024)).collect(),
            host: Asked {
                now,
                random: 1,
                ..Asked::default()
            },
            moving: Vec::with_capacity(64),
            tickless: vec![false; n],
        }
    }

    fn on<T>(&mut self, cpu: Cpu, f: impl FnOnce(&mut Cx<Asked>, &mut Vec<Rq>) -> T) -> T {
        let mut cx = Cx {
            sys: &self.sys,
            host: &mut self.host,
            cpu,
            moving: &mut self.moving,
        };
        f(&mut cx, &mut self.rqs)
    }

    /// A task that never sleeps, put on `cpu` without asking where it should go.
    fn hog(&mut self, cpu: Cpu, allowed: CpuMask) -> TaskId {
        let id = self.sys.add_task(TgId::ROOT);
        let mut task = Task::new(id, TgId::ROOT, self.sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = allowed;
        let placed = Placed {
            cpu,
            migrated: false,
        };
        self.on(cpu, |cx, rqs| {
            sched::sched_fork(cx, &mut task);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
        self.settle();
        id
    }

    /// Does everything that was asked for.
    fn settle(&mut self) {
        while let Some((cpu, work)) = self.host.due.pop_front() {
            match work {
                None => self.schedule(cpu, Prev::Runnable),
                Some(work @ (Kick::ActiveBalance | Kick::Migrate)) => {
                    self.on(cpu, |cx, rqs| {
                        let _ = sched::run_stopper(cx, rqs, work);
                    });
                }
                Some(work) => self.on(cpu, |cx, rqs| sched::run_kick(cx, rqs, work)),
            }
        }
    }

    fn schedule(&mut self, cpu: Cpu, prev: Prev) {
        let idle = self.on(cpu, |cx, rqs| sched::schedule(cx, rqs, prev).next.is_none());
        if idle && !self.tickless[cpu.idx()] {
            self.on(cpu, sched::nohz_enter_idle);
        } else if !idle && self.tickless[cpu.idx()] {
            self.on(cpu, sched::nohz_exit_idle);
        }
        self.tickless[cpu.idx()] = idle;
    }

    fn ticks(&mut self, n: u32) {
        for _ in 0..n {
            self.host.now += self.sys.features.tick_ns();
            for cpu in self.sys.cpus().iter() {
                if !self.tickless[cpu.idx()] {
                    self.on(cpu, sched::sched_tick);
                    self.settle();
                }
            }
        }
    }

    /// All CPUs go idle first.
    fn idle(mut self) -> Self {
        for cpu in self.sys.cpus().iter() {
            self.schedule(cpu, Prev::Runnable);
        }
        self.settle();
        self
    }

    fn nr_running(&self) -> Vec<u32> {
        self.rqs.iter().map(|rq| rq.nr_running).collect()
    }
}

fn places(n: u32, place: impl Fn(u32) -> CpuPlace) -> Machine {
    Machine {
        cpus: (0..n).map(place).collect(),
        ..Machine::default()
    }
}

fn flat(n: u32) -> Machine {
    places(n, |cpu| CpuPlace {
        core: cpu,
        cluster: cpu,
        capacity: 1024,
        ..CpuPlace::default()
    })
}

/// Two packages with a cache each, two threads a core.
fn two_packages(n: u32) -> Machine {
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

const TICKS_400_MS: u32 = 100;

#[test]
fn sixteen_hogs_end_up_one_on_each_cpu() {
    for machine in [flat(16), two_packages(16)] {
        let mut m = Crude::new(&machine).idle();
        for _ in 0..16 {
            m.hog(Cpu(0), CpuMask::first_n(16));
        }
        assert_eq!(m.nr_running()[0], 16);
        m.ticks(TICKS_400_MS);
        assert_eq!(m.nr_running(), [1; 16]);
        let settled = m.host.migrations;
        m.ticks(TICKS_400_MS);
        assert_eq!(m.host.migrations, settled, "balanced is left alone");
    }
}

#[test]
fn twenty_hogs_keep_sixteen_cpus_busy() {
    for machine in [flat(16), two_packages(16)] {
        let mut m = Crude::new(&machine).idle();
        for _ in 0..20 {
            m.hog(Cpu(5), CpuMask::first_n(16));
        }
        m.ticks(TICKS_400_MS);
        for _ in 0..TICKS_400_MS {
            m.ticks(1);
            let running = m.nr_running();
            assert!(running.iter().all(|n| *n >= 1), "{running:?}");
            assert_eq!(running.iter().sum::<u32>(), 20);
        }
    }
}

#[test]
fn three_hogs_share_two_cpus() {
    let mut m = Crude::new(&flat(2)).idle();
    let hogs: Vec<_> = (0..3).map(|_| m.hog(Cpu(0), CpuMask::first_n(2))).collect();
    m.ticks(TICKS_400_MS);
    let before = m.host.migrations;
    m.ticks(10 * TICKS_400_MS);
    assert!(m.host.migrations > before, "the third hog changes sides");
    let mut ran = Vec::new();
    for rq in &m.rqs {
        for (se, body) in rq.se.iter().zip(&rq.body) {
            ran.extend(body.as_ref().map(|b| (b.id, se.sum_exec_runtime)));
        }
    }
    ran.sort();
    assert_eq!(ran.iter().map(|r| r.0).collect::<Vec<_>>(), hogs);
    let least = ran.iter().map(|r| r.1).min();
    assert!(least > Some(2_000_000_000), "of 4.4 s on two CPUs: {ran:?}");
}

#[test]
fn pinned_hogs_stay_and_the_interval_grows() {
    let mut m = Crude::new(&flat(4)).idle();
    for _ in 0..4 {
        m.hog(Cpu(0), CpuMask::of(Cpu(0)));
    }
    m.hog(Cpu(1), CpuMask::first_n(4));
    m.ticks(4 * TICKS_400_MS);
    assert_eq!(m.nr_running()[0], 4);
    assert_eq!(m.nr_running().iter().sum::<u32>(), 5);
    let sd = &m.sys.topology.domains(Cpu(1))[0];
    let interval = sd
        .state
        .balance_interval_ms
        .load(std::sync::atomic::Ordering::Relaxed);
    assert!(interval > sd.min_interval_ms, "{interval} ms");
}

#[test]
fn a_cpu_that_runs_dry_pulls_at_once() {
    let mut m = Crude::new(&flat(2)).idle();
    m.hog(Cpu(0), CpuMask::first_n(2));
    m.hog(Cpu(1), CpuMask::first_n(2));
    m.hog(Cpu(0), CpuMask::first_n(2));
    m.ticks(1);
    assert_eq!(m.nr_running(), [2, 1]);
    // Old enough not to be hot, and no softirq in between.
    m.host.now += 2_000_000;
    m.schedule(Cpu(1), Prev::Sleeps);
    m.settle();
    assert_eq!(m.nr_running(), [1, 1]);
}

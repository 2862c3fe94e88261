//! Words that CPUs in parallel reach without a lock: a kick for idle balancing must not be lost
//! between who asks for it and who is asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use fairground::balance::trigger::Step;
use fairground::cx::Cx;
use fairground::host::{Host, Kick, KickWork, Timer};
use fairground::policy::Features;
use fairground::rq::{Rq, Rqs};
use fairground::sched::{self, Later};
use fairground::shared::nohz_kick;
use fairground::system::System;
use fairground::task::{Prev, Task, WakeKind};
use fairground::topology::{Machine, Topology};
use fairground::value::{Cpu, CpuMask, TgId};

/// The CPU that is idle; the others have two tasks each.
const IDLE: Cpu = Cpu(2);

struct Shared {
    sys: System,
    rqs: Vec<Mutex<Rq>>,
    now: AtomicU64,
    kicks: Mutex<VecDeque<KickWork>>,
    nr_kicks: AtomicU64,
}

struct Queues<'a> {
    all: &'a [Mutex<Rq>],
    held: Option<MutexGuard<'a, Rq>>,
}

impl Rqs for Queues<'_> {
    fn rq(&mut self, cpu: Cpu) -> &mut Rq {
        self.held
            .insert(self.all[cpu.idx()].lock().expect("no panic"))
    }

    fn release(&mut self, _: Cpu) {
        self.held = None;
    }
}

struct OfCpu<'a>(&'a Shared);

impl Host for OfCpu<'_> {
    fn clock(&mut self) -> u64 {
        self.0.now.load(Relaxed)
    }

    fn kick(&mut self, cpu: Cpu, kick: Kick) {
        if let (IDLE, Kick::Run(work)) = (cpu, kick) {
            self.0.nr_kicks.fetch_add(1, Relaxed);
            let mut kicks = self.0.kicks.lock().expect("no panic");
            if !kicks.contains(&work) {
                kicks.push_back(work);
            }
        }
    }

    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, _: Task) {}
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn random(&mut self) -> u32 {
        1
    }
}

impl Shared {
    /// Three CPUs, the first two with two tasks each, the third idle without a tick.
    fn new() -> Self {
        let machine = Topology::build(&Machine::flat(3)).expect("a machine");
        let mut sys = System::new(Features::default(), machine);
        let ids: Vec<_> = (0..4).map(|_| sys.add_task(TgId::ROOT)).collect();
        let now = 1_000_000_000;
        let rq = |cpu| Mutex::new(Rq::new(&sys, Cpu(cpu), now));
        let shared = Self {
            rqs: (0..3).map(rq).collect(),
            now: now.into(),
            kicks: Mutex::default(),
            nr_kicks: 0.into(),
            sys,
        };
        for (id, cpu) in ids.into_iter().zip([0, 1, 0, 1]) {
            let mut task = Task::new(id, TgId::ROOT, 700_000);
            task.body.cpus_allowed = CpuMask::of(Cpu(cpu));
            shared.on(cpu, |cx, rqs| {
                sched::sched_fork(cx, rqs, &mut task, None);
                let placed = sched::select_cpu(cx, &mut task, None, WakeKind::Fork);
                sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
            });
        }
        for cpu in 0..3 {
            let _ = shared.on(cpu, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        }
        shared.on(IDLE.0, |cx, rqs| sched::nohz_enter_idle(cx, rqs));
        shared
    }

    fn on<T>(&self, cpu: u32, f: impl FnOnce(&mut Cx<'_, OfCpu<'_>>, &mut Queues<'_>) -> T) -> T {
        let (mut host, mut moving) = (OfCpu(self), Vec::new());
        let mut cx = Cx::new(&self.sys, &mut host, Cpu(cpu), &mut moving);
        let all = &self.rqs;
        f(&mut cx, &mut Queues { all, held: None })
    }

    /// The idle CPU does what it was asked for.
    fn serve(&self) {
        let next = || self.kicks.lock().expect("no panic").pop_front();
        while let Some(work) = next() {
            self.on(IDLE.0, |cx, rqs| sched::run_kick(cx, rqs, work));
        }
    }

    /// CPU 0 asks it to refresh its averages, as a tick does that finds them old.
    fn ask(&self) {
        let flags = nohz_kick::STATS;
        let mut step = Some(Later::Trigger(Step::Swap { flags, ilb: IDLE }));
        while let Some(later) = step {
            step = self.on(0, |cx, rqs| sched::go_on(cx, rqs, later));
        }
    }
}

/// The flags may be cleared between the load and the swap of who asks: then the swap fails, for a
/// bit that is set without a kick under way would keep all later ones back.
#[test]
fn no_kick_is_lost_beside_who_takes_the_flags() {
    let shared = Shared::new();
    for round in 0..20 {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..50_000).for_each(|_| shared.ask());
                done.store(true, Relaxed);
            });
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    shared.serve();
                }
            });
        });
        shared.serve();
        let before = shared.nr_kicks.load(Relaxed);
        shared.ask();
        let after = shared.nr_kicks.load(Relaxed);
        assert_eq!(after, before + 1, "round {round}: who asks kicks");
        shared.serve();
    }
}

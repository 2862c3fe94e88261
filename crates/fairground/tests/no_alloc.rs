//! Wake-ups, ticks, picks, switches and balancing allocate nothing, from the first call on, once
//! each group has its queues and room is reserved for the tasks. A counting allocator (of this test
//! binary alone) says so.

use std::collections::VecDeque;

use fairground::cx::Cx;
use fairground::host::{Host, Kick, KickWork, Timer};
use fairground::policy::{Features, PROFILES};
use fairground::rq::Rq;
use fairground::sched;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

const CPUS: u32 = 4;
const TASKS: u32 = 24;

/// A host that keeps everything in room that it has from the start.
struct Room {
    now: u64,
    parked: Vec<Option<Task>>,
    kicks: VecDeque<(Cpu, Kick)>,
    random: u32,
    softirqs: u64,
}

impl Host for Room {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, task: Task) {
        let slot = task.body.id.idx();
        self.parked[slot] = Some(task);
    }
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, cpu: Cpu, work: Kick) {
        self.softirqs += u64::from(work == Kick::Run(KickWork::BalanceSoftirq));
        self.kicks.push_back((cpu, work));
    }
    fn random(&mut self) -> u32 {
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.random >> 8
    }
}

struct World {
    sys: System,
    host: Room,
    rqs: Vec<Rq>,
    moving: Vec<Task>,
    lists: Vec<VecDeque<(Task, Placed, WakeKind)>>,
    wakeups: u64,
    switches: u64,
}

impl World {
    fn new(features: Features) -> Self {
        let place = |core: u32| CpuPlace {
            core,
            capacity: 1024,
            ..CpuPlace::default()
        };
        let machine = Machine {
            cpus: (0..CPUS).map(place).collect(),
            distance: vec![vec![10]],
            reclaim_distance: 30,
        };
        let mut sys = System::new(features, Topology::build(&machine).expect("a machine"));
        let a = sys.add_group(TgId::ROOT);
        let groups = [TgId::ROOT, a, sys.add_group(a)];
        let host = Room {
            now: 1_000_000_000,
            parked: (0..TASKS).map(|_| None).collect(),
            kicks: VecDeque::with_capacity(64),
            random: 1,
            softirqs: 0,
        };
        let nr_migrate = sys.features.load_balance.nr_migrate;
        let mut world = Self {
            rqs: (0..CPUS)
                .map(|c| Rq::new(&sys, Cpu(c), 1_000_000_000))
                .collect(),
            sys,
            host,
            moving: Vec::with_capacity(nr_migrate as usize),
            lists: (0..CPUS)
                .map(|_| VecDeque::with_capacity(TASKS as usize))
                .collect(),
            wakeups: 0,
            switches: 0,
        };
        for id in 0..TASKS {
            world.create(groups[id as usize % 3]);
        }
        for cpu in 0..CPUS {
            world.rqs[cpu as usize].reserve(TASKS as usize);
            for tg in groups {
                world.call(cpu, |cx, rqs| sched::online_group(cx, rqs, tg, Cpu(cpu)));
            }
        }
        world
    }

    fn create(&mut self, tg: TgId) {
        let id = self.sys.add_task(tg);
        let mut task = Task::new(id, tg, self.sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = CpuMask::first_n(CPUS as usize);
        self.call(0, |cx, rqs| sched::sched_fork(cx, rqs, &mut task, None));
        let placed = self.call(0, |cx, _| {
            sched::select_cpu(cx, &mut task, None, WakeKind::Fork)
        });
        self.call(0, |cx, rqs| {
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
    }

    fn call<T>(&mut self, cpu: u32, f: impl FnOnce(&mut Cx<Room>, &mut Vec<Rq>) -> T) -> T {
        let mut cx = Cx {
            sys: &self.sys,
            host: &mut self.host,
            cpu: Cpu(cpu),
            moving: &mut self.moving,
        };
        f(&mut cx, &mut self.rqs)
    }

    fn schedule(&mut self, cpu: u32, prev: Prev) {
        self.switches += 1;
        let switch = self.call(cpu, |cx, rqs| sched::schedule(cx, rqs, prev));
        if switch.next.is_none() {
            self.call(cpu, sched::nohz_enter_idle);
        }
    }

    fn wake(&mut self, cpu: u32, id: TaskId) {
        if self.call(cpu, |cx, rqs| {
            sched::wake_queued(cx, rqs, id, WakeKind::Wake)
        }) {
            return;
        }
        let Some(mut task) = self.host.parked[id.idx()].take() else {
            return;
        };
        self.wakeups += 1;
        let waker = self.rqs[cpu as usize].curr_task();
        let kind = WakeKind::Wake;
        let placed = self.call(cpu, |cx, _| sched::select_cpu(cx, &mut task, waker, kind));
        let at = self.call(cpu, |cx, _| sched::ttwu_queue_wakelist(cx, id, placed.cpu));
        if at == sched::EnqueueAt::Target {
            self.lists[placed.cpu.idx()].push_back((task, placed, kind));
        } else {
            self.call(cpu, |cx, rqs| {
                sched::enqueue_woken(cx, rqs, task, placed, kind)
            });
        }
    }

    fn kicked(&mut self) {
        while let Some((cpu, work)) = self.host.kicks.pop_front() {
            match work {
                Kick::Wakeups => {
                    let mut list = std::mem::take(&mut self.lists[cpu.idx()]);
                    self.call(cpu.0, |cx, rqs| {
                        sched::sched_ttwu_pending(cx, rqs, &mut list)
                    });
                    self.lists[cpu.idx()] = list;
                }
                Kick::Stop(work) => {
                    let _ = self.call(cpu.0, |cx, rqs| sched::run_stopper(cx, rqs, work));
                }
                Kick::Run(work) => self.call(cpu.0, |cx, rqs| sched::run_kick(cx, rqs, work)),
            }
        }
    }

    /// A quarter of a millisecond on every CPU.
    fn step(&mut self, n: u64) {
        for cpu in 0..CPUS {
            self.host.now += 60_000;
            let dice = self.host.random();
            if n.is_multiple_of(4) {
                self.call(cpu, sched::sched_tick);
            }
            // Now and then many sleep, so that CPUs become idle and look for work elsewhere.
            let drowsy = if (n / 64).is_multiple_of(2) { 3 } else { 12 };
            let running = self.rqs[cpu as usize].curr.is_some();
            if running && dice.is_multiple_of(drowsy) {
                self.schedule(cpu, Prev::Sleeps);
            } else if self.rqs[cpu as usize].need_resched || !running {
                self.schedule(cpu, Prev::Runnable);
            }
            if dice % 5 < 2 {
                self.wake(cpu, TaskId(dice / 8 % TASKS));
            }
            self.kicked();
        }
    }
}

#[test]
fn hot_paths_allocate_nothing() {
    for profile in PROFILES {
        let features = Features::of_profile(profile);
        let mut world = World::new(features);
        let counted = allocation_counter::measure(|| (0..24_000).for_each(|n| world.step(n)));
        let name = profile.name;
        assert_eq!(counted.count_total, 0, "{name}: {counted:?}");
        // And something happened.
        assert!(world.wakeups > 6000, "{name}: {} wake-ups", world.wakeups);
        assert!(
            world.switches > 12_000,
            "{name}: {} switches",
            world.switches
        );
        let softirqs = world.host.softirqs;
        assert!(softirqs > 1000, "{name}: {softirqs} balancing softirqs");
    }
    // The counter counts.
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1, 2, 3])));
    assert_eq!(counted.count_total, 1);
}

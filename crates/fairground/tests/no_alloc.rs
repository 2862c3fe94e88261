//! Wake-ups, ticks, picks, switches, balancing, timers, kicks, the stopper, the way back to user
//! space and writes of attributes allocate nothing, from the first call on, once each group has its
//! queues and room is reserved for the tasks. Nor does the runtime of the example. A counting
//! allocator (of this test binary alone) says so.

extern crate alloc;

#[path = "../examples/two_cpus/runtime.rs"]
mod runtime;

use std::collections::VecDeque;

use fairground::cx::Cx;
use fairground::host::{Host, Kick, KickWork, Timer};
use fairground::policy::{Features, PROFILES};
use fairground::rq::Rq;
use fairground::sched::{self, Moved};
use fairground::system::System;
use fairground::task::{Placed, Policy, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};
use runtime::Runtime;

const CPUS: u32 = 4;
const TASKS: u32 = 24;
const MS: u64 = 1_000_000;

/// A host that keeps everything in room that it has from the start.
struct Room {
    now: u64,
    parked: Vec<Option<Task>>,
    kicks: VecDeque<(Cpu, Kick)>,
    timers: Vec<(Timer, u64)>,
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
    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        self.cancel_timer(timer);
        self.timers.push((timer, at_ns));
    }
    fn cancel_timer(&mut self, timer: Timer) {
        self.timers.retain(|(t, _)| *t != timer);
    }
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

/// How often something was done, so that it is known to have been tested.
#[derive(Default)]
struct Done {
    wakeups: u64,
    switches: u64,
    timers: u64,
    stoppers: u64,
    unthrottled: u64,
    /// Of tasks that a queue has, and of those that the host has.
    kept: u64,
    parked: u64,
}

struct World {
    sys: System,
    host: Room,
    rqs: Vec<Rq>,
    moving: Vec<Task>,
    lists: Vec<VecDeque<(Task, Placed, WakeKind)>>,
    groups: [TgId; 3],
    done: Done,
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
            timers: Vec::with_capacity(16),
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
            groups,
            done: Done::default(),
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
        let mut cx = Cx::new(&self.sys, &mut self.host, Cpu(cpu), &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    fn schedule(&mut self, cpu: u32, prev: Prev) {
        self.done.switches += 1;
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
        self.done.wakeups += 1;
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
                    self.done.stoppers += 1;
                    let _ = self.call(cpu.0, |cx, rqs| sched::run_stopper(cx, rqs, work));
                }
                Kick::Run(work) => {
                    self.done.unthrottled += u64::from(work == KickWork::Unthrottle);
                    self.call(cpu.0, |cx, rqs| sched::run_kick(cx, rqs, work));
                }
            }
        }
    }

    fn due_timers(&mut self, cpu: u32) {
        let now = self.host.now;
        let here = |timer: &Timer| match timer {
            Timer::Hrtick(own) => own.0 == cpu,
            Timer::Period(_) | Timer::Slack(_) => true,
        };
        let due = |timers: &[(Timer, u64)]| timers.iter().position(|(t, at)| *at <= now && here(t));
        while let Some(at) = due(&self.host.timers) {
            let (timer, _) = self.host.timers.swap_remove(at);
            self.done.timers += 1;
            self.call(cpu, |cx, rqs| sched::run_timer(cx, rqs, timer));
        }
    }

    /// An attribute of a task is written, wherever it is.
    fn write_task(&mut self, cpu: u32) {
        let (what, value) = (self.host.random() % 4, self.host.random());
        let id = TaskId(self.host.random() % TASKS);
        let nice = (value % 40) as i8 - 20;
        let tg = self.groups[value as usize % 3];
        let slice_ns = (value % 2 == 0).then_some(u64::from(value % 30) * MS);
        let allowed = CpuMask::from_words(|w| u64::from(w == 0) * u64::from(1 + value % 15));
        let kept = self.call(cpu, |cx, rqs| match what {
            0 => sched::set_nice(cx, rqs, id, Policy::Normal, nice),
            1 => sched::set_slice(cx, rqs, id, slice_ns),
            2 => sched::set_group(cx, rqs, id, tg),
            _ => sched::set_affinity(cx, rqs, id, allowed) != Moved::Parked,
        });
        self.done.kept += u64::from(kept);
        if kept {
            let ran = self.call(cpu, |cx, rqs| sched::task_sched_runtime(cx, rqs, id));
            let is = self.call(cpu, |cx, rqs| sched::with_task(cx, rqs, id, |_, b| b.id));
            // A sleeper that was still queued may have left.
            assert!(is.is_none_or(|is| is == id) && is.is_some() == ran.is_some());
            return;
        }
        let mut task = self.host.parked[id.idx()].take().expect("on no list");
        self.done.parked += 1;
        self.call(cpu, |cx, rqs| match what {
            0 => sched::set_nice_parked(cx, rqs, &mut task, Policy::Normal, nice),
            1 => sched::set_slice_parked(cx.sys, &mut task, slice_ns),
            2 => sched::set_group_parked(cx, rqs, &mut task, tg),
            _ => assert!(sched::set_affinity_parked(
                cx.sys, cx.cpu, &mut task, allowed
            )),
        });
        self.host.parked[id.idx()] = Some(task);
    }

    fn write_group(&mut self, cpu: u32) {
        let (what, value) = (self.host.random() % 3, u64::from(self.host.random()));
        let tg = self.groups[1 + value as usize % 2];
        let (quota, period) = ((5 + value % 60) * MS, 20 * MS);
        let quota = (value % 5 > 0).then_some(quota);
        self.call(cpu, |cx, rqs| match what {
            0 => sched::set_bandwidth(cx, rqs, tg, quota, period, 0).expect("a quota"),
            // An idle group takes no weight.
            1 => {
                let _ = sched::set_cpu_weight(cx, rqs, tg, 1 + value % 10_000);
            }
            _ => assert_eq!(
                sched::set_idle(cx, rqs, tg, value.is_multiple_of(3)),
                Ok(())
            ),
        });
    }

    /// As `step`, and attributes are written meanwhile.
    fn step_and_write(&mut self, n: u64) {
        self.step(n);
        let cpu = (n % u64::from(CPUS)) as u32;
        self.write_task(cpu);
        if n.is_multiple_of(40) {
            self.write_group(cpu);
        }
        self.kicked();
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
            self.due_timers(cpu);
            self.call(cpu, sched::exit_to_user);
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
        assert!(
            world.done.wakeups > 6000,
            "{name}: {} wake-ups",
            world.done.wakeups
        );
        assert!(
            world.done.switches > 12_000,
            "{name}: {} switches",
            world.done.switches
        );
        let softirqs = world.host.softirqs;
        assert!(softirqs > 1000, "{name}: {softirqs} balancing softirqs");
    }
}

#[test]
fn writes_of_attributes_and_quotas_allocate_nothing() {
    for profile in PROFILES {
        let mut world = World::new(Features::of_profile(profile));
        let steps = |world: &mut World| (0..12_000).for_each(|n| world.step_and_write(n));
        let counted = allocation_counter::measure(|| steps(&mut world));
        let name = profile.name;
        assert_eq!(counted.count_total, 0, "{name}: {counted:?}");
        let done = &world.done;
        assert!(done.timers > 50, "{name}: {} timers", done.timers);
        assert!(done.stoppers > 50, "{name}: {} stoppers", done.stoppers);
        let unthrottled = done.unthrottled;
        assert!(unthrottled > 50, "{name}: {unthrottled} kicks of a quota");
        assert!(done.kept > 1000, "{name}: {} of a queue's", done.kept);
        assert!(done.parked > 100, "{name}: {} of the host's", done.parked);
    }
}

/// From the first remote wake-up on, and the first timer of a quota.
#[test]
fn the_runtime_of_the_example_allocates_nothing_after_its_tasks_are_made() {
    let mut runtime = Runtime::new(&Machine::flat(2), Features::default());
    let limited = runtime.add_group(Some(30 * MS));
    let [sleeper, ..] =
        [TgId::ROOT, TgId::ROOT, limited].map(|tg| runtime.spawn(Cpu(0), tg, 0, runtime.cpus()));
    let mut slept = 0;
    let begin_ns = runtime.now_ns();
    let counted = allocation_counter::measure(|| {
        while runtime.now_ns() < begin_ns + 2000 * MS {
            runtime.advance(runtime.next_ns());
            let running = runtime
                .cpus()
                .iter()
                .find(|cpu| runtime.current(*cpu) == Some(sleeper));
            match running {
                Some(cpu) => {
                    runtime.leave(cpu, Prev::Sleeps);
                    slept += 1;
                }
                None => runtime.wake(Cpu(slept % 2), None, sleeper),
            }
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert!(slept > 100, "{slept} sleeps");
}

#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1, 2, 3])));
    assert_eq!(counted.count_total, 1);
}

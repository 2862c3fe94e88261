//! Laws of load tracking in a tree of groups on several CPUs, and a slow twin.
//!
//! Verified after each step: what the queues have published sums up to what the group has; a group
//! entity's utilisation is its queue's, but for one period of running (22 of 1024), which
//! propagation forgets as it makes sums anew from averages that are up to a period old; no queue
//! holds load that its list does not show. At the end, with nobody queued, everything decays to
//! zero and the lists are empty.

use fairground::cx::Cx;
use fairground::event::Event;
use fairground::fair::{Migrates, UpdateLoad, blocked, group, leaf, load};
use fairground::host::{Host, Kick, Timer};
use fairground::policy::{Features, TgLoadAvg};
use fairground::rq::Rq;
use fairground::system::System;
use fairground::task::Task;
use fairground::topology::{CpuPlace, Topology};
use fairground::value::{CfsId, Cpu, SeId, TgId};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// A period of load tracking, so that each step makes new averages.
const PERIOD: u64 = 1 << 20;

struct Clock(u64);

impl Host for Clock {
    fn clock(&mut self) -> u64 {
        self.0
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, _: Task) {}
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        0
    }
    fn event(&mut self, _: Event) {}
}

/// Where a task is.
enum Place {
    Queued(u32, SeId),
    Asleep(u32, Box<Task>),
}

/// CPUs, a group tree and tasks. Queues are joined and left by hand: only counts, weights and the
/// running entity, nothing of virtual time. Group weights stay as they are.
struct World {
    sys: System,
    rqs: Vec<Rq>,
    clock: Clock,
    tasks: Vec<Option<Place>>,
}

impl World {
    fn new(cpus: usize, features: Features) -> Self {
        let place = CpuPlace {
            capacity: 1024,
            ..CpuPlace::default()
        };
        let topology = Topology {
            places: vec![place; cpus],
            ..Topology::default()
        };
        let sys = System::new(features, topology);
        Self {
            rqs: (0..cpus as u32)
                .map(|cpu| Rq::new(&sys, Cpu(cpu), MS))
                .collect(),
            sys,
            clock: Clock(MS),
            tasks: Vec::new(),
        }
    }

    fn add_task(&mut self, tg: TgId, cpu: u32) {
        let id = self.sys.add_task(tg);
        let mut task = Task::new(id, tg, 3 * MS);
        load::init_entity_runnable_average(&mut task.se);
        self.tasks.push(Some(Place::Asleep(cpu, Box::new(task))));
    }

    fn on<T>(&mut self, cpu: u32, f: impl FnOnce(&mut Cx<Clock>, &mut Rq) -> T) -> T {
        let mut moving = Vec::new();
        let mut cx = Cx::new(&self.sys, &mut self.clock, Cpu(cpu), &mut moving);
        let rq = &mut self.rqs[cpu as usize];
        cx.update_rq_clock(rq);
        let out = f(&mut cx, rq);
        rq.publish(&self.sys);
        out
    }

    /// Wakes a sleeping task on `cpu`; a queued one moves there.
    fn wake(&mut self, index: usize, cpu: u32) {
        if let Some(Place::Queued(..)) = self.tasks[index] {
            self.leave(index, UpdateLoad::TG | UpdateLoad::DETACH);
        }
        let Some(Place::Asleep(from, mut task)) = self.tasks[index].take() else {
            return;
        };
        if from != cpu {
            self.on(cpu, |cx, _| {
                load::migrate_task_rq_fair(cx, &mut task, Cpu(from), Migrates::FromSleep);
            });
        }
        let slot = self.on(cpu, |cx, rq| {
            let tg = task.body.tg;
            let slot = rq.take_in(*task);
            group::set_task_rq(cx, rq, slot, tg);
            join(cx, rq, slot);
            if rq.curr.is_none() {
                run(cx, rq, Some(slot));
            }
            slot
        });
        self.tasks[index] = Some(Place::Queued(cpu, slot));
    }

    fn sleep(&mut self, index: usize) {
        self.leave(index, UpdateLoad::TG);
    }

    fn leave(&mut self, index: usize, flags: UpdateLoad) {
        let Some(Place::Queued(cpu, slot)) = self.tasks[index].take() else {
            return;
        };
        let next = self.tasks.iter().find_map(|place| match place {
            Some(Place::Queued(at, slot)) if *at == cpu => Some(*slot),
            _ => None,
        });
        let task = self.on(cpu, |cx, rq| {
            let was_running = rq.curr == Some(slot);
            part(cx, rq, slot, flags);
            if was_running {
                run(cx, rq, next);
            }
            let mut task = rq.give_out(slot).expect("a task is there");
            if flags.has(UpdateLoad::DETACH) {
                task.se.avg.last_update_time = 0;
            }
            task
        });
        self.tasks[index] = Some(Place::Asleep(cpu, Box::new(task)));
    }

    fn tick(&mut self) {
        for cpu in 0..self.rqs.len() as u32 {
            self.on(cpu, |cx, rq| {
                let mut at = rq.curr;
                while let Some(se) = at {
                    load::update_load_avg(cx, rq, rq.se[se.idx()].cfs_rq, se, UpdateLoad::TG);
                    at = rq.se[se.idx()].parent;
                }
            });
        }
    }

    fn blocked(&mut self) {
        for cpu in 0..self.rqs.len() as u32 {
            self.on(cpu, blocked::update_blocked_averages);
        }
    }

    fn check(&self) {
        for (tg, group) in self.sys.tg.iter().enumerate().skip(1) {
            let queues = self.rqs.iter().filter_map(|rq| {
                let cfs = rq.cfs_of(TgId(tg as u32))?;
                Some(&rq.cfs[cfs.idx()])
            });
            let published: u64 = queues.map(|q| q.tg_load_avg_contrib).sum();
            assert_eq!(published as i64, group.peek_load_avg(), "group {tg}");
        }
        for rq in &self.rqs {
            check_list(rq);
            for queue in &rq.cfs {
                let avg = &queue.avg;
                let loaded = queue.nr_queued > 0 || avg.load_avg > 0 || avg.util_avg > 0;
                assert!(queue.on_list || !loaded, "load off the list");
                let Some(se) = queue.se else { continue };
                if !queue.propagate && rq.se[se.idx()].avg.last_update_time == avg.last_update_time
                {
                    let entity = &rq.se[se.idx()].avg;
                    let off = entity.util_avg.abs_diff(avg.util_avg);
                    assert!(off <= 23, "{off}: {entity:?} {avg:?}");
                }
            }
        }
    }

    fn avg(&self, cpu: u32, cfs: CfsId) -> fairground::math::pelt::SchedAvg {
        self.rqs[cpu as usize].cfs[cfs.idx()].avg
    }
}

/// Children before parents, links in both directions.
fn check_list(rq: &Rq) {
    let (mut seen, mut prev, mut at) = (Vec::new(), None, rq.leaf_head);
    while let Some(cfs) = at {
        let queue = &rq.cfs[cfs.idx()];
        assert!(queue.on_list && queue.leaf_prev == prev);
        assert!(cfs == CfsId::ROOT || !seen.contains(&queue.parent));
        assert!(cfs == CfsId::ROOT || rq.cfs[queue.parent.idx()].on_list);
        seen.push(cfs);
        (prev, at) = (at, queue.leaf_next);
    }
    assert_eq!(seen.len(), rq.cfs.iter().filter(|q| q.on_list).count());
}

fn join(cx: &mut Cx<Clock>, rq: &mut Rq, task: SeId) {
    let mut at = Some(task);
    while let Some(se) = at {
        let cfs = rq.se[se.idx()].cfs_rq;
        load::update_load_avg(cx, rq, cfs, se, UpdateLoad::TG | UpdateLoad::ATTACH);
        load::se_update_runnable(rq, se);
        let queue = &mut rq.cfs[cfs.idx()];
        queue.h_nr_queued += 1;
        queue.h_nr_runnable += 1;
        if !rq.se[se.idx()].on_rq {
            rq.se[se.idx()].on_rq = true;
            queue.load.add(rq.se[se.idx()].load.weight);
            queue.nr_queued += 1;
            leaf::list_add_leaf_cfs_rq(cx, rq, cfs);
        }
        at = rq.se[se.idx()].parent;
    }
}

fn part(cx: &mut Cx<Clock>, rq: &mut Rq, task: SeId, flags: UpdateLoad) {
    let (mut at, mut leaves, mut flags) = (Some(task), true, flags);
    while let Some(se) = at {
        let cfs = rq.se[se.idx()].cfs_rq;
        load::update_load_avg(cx, rq, cfs, se, flags);
        load::se_update_runnable(rq, se);
        let queue = &mut rq.cfs[cfs.idx()];
        queue.h_nr_queued -= 1;
        queue.h_nr_runnable -= 1;
        if leaves {
            rq.se[se.idx()].on_rq = false;
            queue.load.sub(rq.se[se.idx()].load.weight);
            queue.nr_queued -= 1;
            leaves = queue.nr_queued == 0;
        }
        flags = UpdateLoad::TG;
        at = rq.se[se.idx()].parent;
    }
}

/// Puts the running task and runs `next`, at every level.
fn run(cx: &mut Cx<Clock>, rq: &mut Rq, next: Option<SeId>) {
    for task in [rq.curr, next] {
        let mut at = task;
        while let Some(se) = at {
            let cfs = rq.se[se.idx()].cfs_rq;
            if rq.se[se.idx()].on_rq {
                load::update_load_avg(cx, rq, cfs, se, UpdateLoad::TG);
            }
            rq.cfs[cfs.idx()].curr = (task == next).then_some(se);
            at = rq.se[se.idx()].parent;
        }
        rq.curr = task.filter(|_| task == next);
    }
    rq.curr = next;
    if next.is_none() {
        let avg = rq.cfs[CfsId::ROOT.idx()].avg;
        rq.clock.enter_idle(avg.util_sum.into());
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wake(usize, u32),
    Sleep(usize),
    Wait(u64),
    Blocked,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..6usize, 0..2u32).prop_map(|(task, cpu)| Step::Wake(task, cpu)),
        3 => (0..6usize).prop_map(Step::Sleep),
        4 => (500..20 * MS).prop_map(Step::Wait),
        1 => Just(Step::Blocked),
    ]
}

fn world(period_ns: u64) -> World {
    let features = Features {
        tg_load_avg: TgLoadAvg { period_ns },
        ..Features::default()
    };
    let mut world = World::new(2, features);
    let a = world.sys.add_group(TgId::ROOT);
    let b = world.sys.add_group(a);
    let c = world.sys.add_group(TgId::ROOT);
    for (tg, cpu) in [(a, 0), (b, 0), (b, 1), (c, 0), (c, 1), (TgId::ROOT, 0)] {
        world.add_task(tg, cpu);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn published_loads_add_up_and_decay(
        steps in prop::collection::vec(step(), 1..60),
        limited in any::<bool>(),
    ) {
        let mut world = world(if limited { MS } else { 0 });
        for step in steps {
            match step {
                Step::Wake(task, cpu) => world.wake(task, cpu),
                Step::Sleep(task) => world.sleep(task),
                Step::Blocked => world.blocked(),
                Step::Wait(ns) => {
                    world.clock.0 += ns;
                    world.tick();
                }
            }
            world.check();
        }
        for task in 0..6 {
            world.sleep(task);
        }
        for _ in 0..700 {
            world.clock.0 += 4 * MS;
            world.blocked();
        }
        world.check();
        for rq in &world.rqs {
            prop_assert!(rq.leaf_head.is_none() && !rq.has_blocked_load);
            for queue in &rq.cfs {
                let avg = &queue.avg;
                prop_assert_eq!((avg.load_avg, avg.util_avg, avg.runnable_avg), (0, 0, 0));
                prop_assert_eq!((avg.load_sum, avg.util_sum, avg.runnable_sum), (0, 0, 0));
            }
        }
        prop_assert!(world.sys.tg.iter().all(|tg| tg.peek_load_avg() == 0));
    }
}

/// Decayed part of time that is in `busy` (ns), straight from the definition: each unit of 1024 ns
/// counts `y^n`, n the periods of 1024 units since. Time before 0 was idle.
fn exact_part(busy: &[(u64, u64)], now: u64) -> f64 {
    let y = 0.5f64.powf(1.0 / 32.0);
    let period = 1 << 20;
    let present = now / period;
    let most = (now % period) as f64 + period as f64 * y / (1.0 - y);
    let mut sum = 0.0;
    for n in 0..=present {
        let from = (present - n) * period;
        let to = (from + period).min(now);
        let inside = |&(a, b): &(u64, u64)| b.min(to).saturating_sub(a.max(from));
        sum += y.powi(n as i32) * busy.iter().map(inside).sum::<u64>() as f64;
    }
    sum / most
}

/// One task two groups down that runs and sleeps: the averages at all three levels are those of the
/// task, and those are the definition's.
#[test]
fn two_levels_of_groups_equal_direct_arithmetic() {
    let mut world = World::new(1, Features::default());
    let a = world.sys.add_group(TgId::ROOT);
    let b = world.sys.add_group(a);
    world.add_task(b, 0);
    let mut busy = Vec::new();
    for (run, sleep) in [(7, 20), (3, 3), (40, 11), (1, 60), (13, 5)].repeat(8) {
        world.wake(0, 0);
        let start = world.clock.0;
        for _ in 0..run {
            world.clock.0 += PERIOD;
            world.tick();
        }
        world.sleep(0);
        busy.push((start, world.clock.0));
        for _ in 0..sleep {
            world.clock.0 += PERIOD;
            world.blocked();
        }
        let part = exact_part(&busy, world.clock.0);
        for cfs in [0, 1, 2].map(CfsId) {
            let util = world.avg(0, cfs).util_avg as f64;
            assert!(
                (util - 1024.0 * part).abs() < 3.0,
                "{cfs:?}: {util}, {part}"
            );
        }
        // All weights are 1024, and only one thing is queued at each level; the first load of a
        // new task is full, so wait until that is forgotten.
        if busy.len() > 20 {
            for cfs in [0, 1, 2].map(CfsId) {
                let load = world.avg(0, cfs).load_avg as f64;
                assert!((load - 1024.0 * part).abs() < 3.0, "{cfs:?}: {load}");
            }
        }
    }
}

/// A task that wakes on another CPU takes its averages along, and the old queue loses them at its
/// next update.
#[test]
fn a_waking_task_takes_its_load_along() {
    let mut world = World::new(2, Features::default());
    let a = world.sys.add_group(TgId::ROOT);
    world.add_task(a, 0);
    world.wake(0, 0);
    for _ in 0..200 {
        world.clock.0 += MS;
        world.tick();
    }
    let before = world.avg(0, CfsId(1));
    assert!(before.util_avg > 1000, "{before:?}");
    world.sleep(0);
    world.wake(0, 1);
    let moved = world.avg(1, CfsId(1));
    assert!(
        before.util_avg.abs_diff(moved.util_avg) < 4,
        "{before:?} {moved:?}"
    );
    world.blocked();
    let left = world.avg(0, CfsId(1));
    assert!(
        left.util_avg <= 1 && left.load_avg <= 1 && left.runnable_avg <= 1,
        "{left:?}"
    );
    let group = world.sys.tg[a.idx()].peek_load_avg();
    assert!((1000..1100).contains(&group), "{group}");
}

/// While it sleeps on an idle CPU nobody updates the queue; the lag is estimated when it leaves.
#[test]
fn a_long_sleeper_on_an_idle_cpu_arrives_decayed() {
    let mut world = World::new(2, Features::default());
    world.add_task(TgId::ROOT, 0);
    world.wake(0, 0);
    for _ in 0..200 {
        world.clock.0 += MS;
        world.tick();
    }
    world.sleep(0);
    let Some(Place::Asleep(_, task)) = &world.tasks[0] else {
        panic!("asleep");
    };
    let at_sleep = task.se.avg.util_avg;
    world.clock.0 += 32 * PERIOD; // a half-life
    world.wake(0, 1);
    let arrived = world.avg(1, CfsId::ROOT).util_avg;
    assert!(
        (at_sleep / 2).abs_diff(arrived) < 16,
        "{at_sleep} {arrived}"
    );
}

//! Wake-ups by the target's list, on a host whose other CPUs answer an IPI before the waker's call
//! has returned: none is lost if the list has the task before the kick, or is locked until it has.

use std::collections::VecDeque;

use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::sched::{self, EnqueueAt};
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

const WAKER: Cpu = Cpu(0);
const TARGET: Cpu = Cpu(1);
type Woken = (Task, Placed, WakeKind);

/// `TARGET` answers an IPI at once, or as soon as it gets the lock of its list.
#[derive(Default)]
struct Quick {
    now: u64,
    parked: Option<Task>,
    list: VecDeque<Woken>,
    list_locked: bool,
    ipi: bool,
    /// What `TARGET` has found on its list.
    found: VecDeque<Woken>,
}

impl Quick {
    fn answer(&mut self) {
        if self.ipi && !self.list_locked {
            self.ipi = false;
            self.found.append(&mut self.list);
        }
    }
}

impl Host for Quick {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, task: Task) {
        self.parked = Some(task);
    }
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, cpu: Cpu, work: Kick) {
        if work == Kick::Wakeups {
            assert_eq!(cpu, TARGET);
            self.ipi = true;
            self.answer();
        }
    }
    fn random(&mut self) -> u32 {
        0
    }
}

struct Twins {
    sys: System,
    rqs: Vec<Rq>,
    host: Quick,
    moving: Vec<Task>,
}

impl Twins {
    /// Two CPUs, each with a cache of its own, and a task that sleeps on `TARGET`.
    fn new() -> (Self, TaskId) {
        let place = |core| CpuPlace {
            core,
            cluster: core,
            llc: core,
            ..CpuPlace::default()
        };
        let topology = Topology::build(&Machine {
            cpus: (0..2).map(place).collect(),
            ..Machine::default()
        });
        let mut sys = System::new(Features::default(), topology.expect("a machine"));
        let id = sys.add_task(TgId::ROOT);
        let now = 1_000_000;
        let mut twins = Self {
            rqs: (0..2).map(|cpu| Rq::new(&sys, Cpu(cpu), now)).collect(),
            host: Quick {
                now,
                ..Quick::default()
            },
            moving: Vec::new(),
            sys,
        };
        let mut task = Task::new(id, TgId::ROOT, 0);
        task.body.cpus_allowed = CpuMask::of(TARGET);
        twins.on(TARGET, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            let placed = sched::select_cpu(cx, &mut task, None, WakeKind::Fork);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
        for prev in [Prev::Runnable, Prev::Sleeps] {
            let _ = twins.on(TARGET, |cx, rqs| sched::schedule(cx, rqs, prev));
        }
        (twins, id)
    }

    fn on<T>(&mut self, cpu: Cpu, f: impl FnOnce(&mut Cx<Quick>, &mut Vec<Rq>) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.host, cpu, &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    /// The first half of the wake-up.
    fn select(&mut self) -> (Task, Placed) {
        let mut task = self.host.parked.take().expect("asleep");
        let placed = self.on(WAKER, |cx, _| {
            sched::select_cpu(cx, &mut task, None, WakeKind::Wake)
        });
        assert_eq!(placed.cpu, TARGET);
        (task, placed)
    }

    /// Who runs on `TARGET` after it has done what it found.
    fn runs(&mut self) -> Option<TaskId> {
        let mut found = std::mem::take(&mut self.host.found);
        self.on(TARGET, |cx, rqs| {
            sched::sched_ttwu_pending(cx, rqs, &mut found);
            sched::schedule(cx, rqs, Prev::Runnable).next
        })
    }
}

#[test]
fn the_list_has_the_task_before_the_kick() {
    let (mut twins, id) = Twins::new();
    let (task, placed) = twins.select();
    twins.on(WAKER, |cx, rqs| {
        sched::ttwu_queue(cx, rqs, task, placed, WakeKind::Wake, |host, woken| {
            host.list.push_back(woken);
        });
    });
    assert_eq!(twins.runs(), Some(id));
    assert!(twins.host.list.is_empty());
}

/// With the two calls that the simulator has, and the lock of the list around both.
#[test]
fn a_lock_held_until_the_list_has_the_task_does_too() {
    for (locked, runs) in [(true, true), (false, false)] {
        let (mut twins, id) = Twins::new();
        let (task, placed) = twins.select();
        twins.host.list_locked = locked;
        let at = twins.on(WAKER, |cx, _| {
            sched::ttwu_queue_wakelist(cx, id, placed.cpu)
        });
        assert_eq!(at, EnqueueAt::Target);
        twins.host.list.push_back((task, placed, WakeKind::Wake));
        twins.host.list_locked = false;
        twins.host.answer();
        assert_eq!(twins.runs(), runs.then_some(id), "locked: {locked}");
    }
}

//! Where a task is, as other CPUs see it at every moment: if no queue keeps it and it is not on
//! its way to one, the host has it already. Else a waker would find it nowhere, and the wake-up be
//! lost.

use std::rc::Rc;

use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::place::Lock;
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::sched;
use fairground::shared::OnRq;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

/// A host that looks where another CPU could.
struct Watch {
    now: u64,
    sys: Rc<System>,
    parked: Vec<Task>,
    /// How often it has looked.
    looks: u32,
}

impl Watch {
    fn look(&mut self) {
        self.looks += 1;
        for (id, words) in (0..).map(TaskId).zip(&self.sys.task) {
            let host_has = self.parked.iter().any(|t| t.body.id == id);
            assert!(words.on_rq() != OnRq::No || host_has, "{id:?} is nowhere");
        }
    }
}

impl Host for Watch {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, task: Task) {
        self.look();
        self.parked.push(task);
    }
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        0
    }
    fn lock(&mut self, _: Lock) {
        self.look();
    }
    fn unlock(&mut self, _: Lock) {
        self.look();
    }
}

#[test]
fn a_task_is_always_somewhere() {
    let place = |core| CpuPlace {
        core,
        cluster: core,
        ..CpuPlace::default()
    };
    let machine = Machine {
        cpus: (0..2).map(place).collect(),
        ..Machine::default()
    };
    let topology = Topology::build(&machine).expect("a machine");
    let mut sys = System::new(Features::default(), topology);
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let id = sys.add_task(TgId::ROOT);
            let mut task = Task::new(id, TgId::ROOT, 3_000_000);
            task.body.cpus_allowed = sys.cpus();
            task
        })
        .collect();
    let sys = Rc::new(sys);
    let mut rqs: Vec<Rq> = (0..2).map(|c| Rq::new(&sys, Cpu(c), 1_000_000)).collect();
    let mut host = Watch {
        now: 1_000_000,
        sys: sys.clone(),
        parked: tasks,
        looks: 0,
    };
    let mut moving = Vec::new();
    let mut cx = Cx::new(&sys, &mut host, Cpu(0), &mut moving);
    while let Some(mut task) = cx.host.parked.pop() {
        // In the hands of the host, which nobody looks into here.
        sys.task[task.body.id.idx()].set_on_rq(OnRq::Migrating);
        sched::sched_fork(&mut cx, &mut rqs, &mut task, None);
        let placed = Placed {
            cpu: Cpu(0),
            migrated: false,
        };
        sched::enqueue_woken(&mut cx, &mut rqs, task, placed, WakeKind::Fork);
    }
    let first = sched::schedule(&mut cx, &mut rqs, Prev::Runnable).next;
    let first = first.expect("two are queued");
    cx.host.now += 5_000_000;
    // It has something to pay, so it stays queued, and is moved in its sleep.
    let _ = sched::schedule(&mut cx, &mut rqs, Prev::Sleeps);
    assert_eq!(sys.task[first.idx()].on_rq(), OnRq::Queued);
    let moved = sched::set_affinity(&mut cx, &mut rqs, first, CpuMask::of(Cpu(1)));
    assert_eq!(moved, sched::Moved::To(Cpu(1)));
    // The other CPU finds it at the head of its queue, and lets it go.
    cx.cpu = Cpu(1);
    let _ = sched::schedule(&mut cx, &mut rqs, Prev::Runnable);
    assert_eq!(sys.task[first.idx()].on_rq(), OnRq::No);
    assert_eq!(cx.host.parked.len(), 1);
    assert!(cx.host.looks > 10);
}

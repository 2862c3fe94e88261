//! The smallest machine that the fair class can run on: one CPU, a clock that the test moves.
//!
//! Shared by the tests beside it and, by path, by unit tests.
#![allow(dead_code, reason = "each test uses what it needs")]

use std::vec::Vec;

use fairground::cx::Cx;
use fairground::fair::{Dequeue, Enqueue, group, preempt, task};
use fairground::host::{Host, Kick, Timer};
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::system::System;
use fairground::task::{Policy, Task, WakeKind};
use fairground::topology::{CpuPlace, Topology};
use fairground::value::{Cpu, SeId, TaskId, TgId};

/// A host that remembers what it was asked.
#[derive(Debug, Default)]
pub struct TestHost {
    /// What the clock says, ns.
    pub now: u64,
    /// Tasks that have left.
    pub parked: Vec<Task>,
}

impl Host for TestHost {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, task: Task) {
        self.parked.push(task);
    }
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        4
    }
}

/// What a new task is like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spec {
    /// Its group.
    pub tg: TgId,
    /// Its policy.
    pub policy: Policy,
    /// Its nice value.
    pub nice: i8,
    /// Its own slice, ns.
    pub slice_ns: Option<u64>,
}

/// Nice `nice`, all else default.
pub fn nice(nice: i8) -> Spec {
    Spec {
        nice,
        ..Spec::default()
    }
}

/// One CPU of a machine of two, with its tasks.
pub struct Lab {
    /// Shared words.
    pub sys: System,
    /// Clock and parking place.
    pub host: TestHost,
    /// The CPU.
    pub rq: Rq,
    /// Next tick, ns.
    pub tick_at: u64,
    /// Execution by task, ns.
    pub ran: Vec<u64>,
    /// Lengths of the stretches of execution by task, ns.
    pub stretches: Vec<Vec<u64>>,
    since: u64,
    moving: Vec<Task>,
}

impl Lab {
    /// At time 1 s, the first tick a period later.
    pub fn new(features: Features) -> Self {
        let place = CpuPlace {
            capacity: 1024,
            ..CpuPlace::default()
        };
        let topology = Topology {
            places: std::vec![place; 2],
            ..Topology::default()
        };
        let tick_at = 1_000_000_000 + features.tick_ns();
        let sys = System::new(features, topology);
        Self {
            host: TestHost {
                now: 1_000_000_000,
                ..TestHost::default()
            },
            rq: Rq::new(&sys, Cpu(0), 1_000_000_000),
            sys,
            tick_at,
            ran: Vec::new(),
            stretches: Vec::new(),
            since: 1_000_000_000,
            moving: Vec::new(),
        }
    }

    /// Calls into the engine with the clock updated.
    pub fn with<T>(&mut self, f: impl FnOnce(&mut Cx<TestHost>, &mut Rq) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.host, Cpu(0), &mut self.moving);
        cx.update_rq_clock(&mut self.rq);
        f(&mut cx, &mut self.rq)
    }

    /// A new task that is with the host.
    pub fn task(&mut self, spec: Spec) -> Task {
        let id = self.sys.add_task(spec.tg);
        let base = self.sys.features.tunables.base_slice_ns;
        let mut task = Task::new(id, spec.tg, base);
        task.set_scheduler(spec.policy, spec.nice);
        task.set_slice(spec.slice_ns, base);
        self.ran.push(0);
        self.stretches.push(Vec::new());
        task
    }

    /// A new task is queued; as a new one with `INITIAL`, as an old one with `WAKEUP`.
    pub fn spawn(&mut self, spec: Spec, flags: Enqueue) -> SeId {
        let task = self.task(spec);
        self.enter(task, flags)
    }

    /// A task that is with the host is queued, and may preempt.
    pub fn enter(&mut self, task: Task, flags: Enqueue) -> SeId {
        let kind = match flags.has(Enqueue::INITIAL) {
            true => WakeKind::Fork,
            false => WakeKind::Wake,
        };
        self.enter_as(task, flags, kind)
    }

    /// [`Lab::enter`] by a wake-up of some kind.
    pub fn enter_as(&mut self, task: Task, flags: Enqueue, kind: WakeKind) -> SeId {
        let slot = self.with(|cx, rq| {
            let mut task = task;
            let cfs = group::ensure_cfs(cx, rq, task.body.tg);
            task.se.cfs_rq = cfs;
            task.se.parent = rq.cfs[cfs.idx()].se;
            task.se.depth = task.se.parent.map_or(0, |p| rq.se[p.idx()].depth + 1);
            let slot = rq.take_in(task);
            task::enqueue_task_fair(cx, rq, slot, flags);
            let _ = preempt::wakeup_preempt_fair(cx, rq, slot, kind);
            slot
        });
        if self.rq.curr.is_none() || self.rq.need_resched {
            self.schedule();
        }
        slot
    }

    /// Wakes a task wherever it is: as a delayed sleeper, or with the host.
    pub fn wake(&mut self, id: TaskId) -> SeId {
        if let Some(at) = self.host.parked.iter().position(|t| t.body.id == id) {
            let task = self.host.parked.remove(at);
            return self.enter(task, Enqueue::WAKEUP);
        }
        let slot = self.slot(id).expect("a task is queued or parked");
        self.with(|cx, rq| {
            if rq.se[slot.idx()].sched_delayed {
                task::enqueue_task_fair(cx, rq, slot, Enqueue::DELAYED);
                let _ = preempt::wakeup_preempt_fair(cx, rq, slot, WakeKind::Wake);
            }
        });
        if self.rq.need_resched {
            self.schedule();
        }
        slot
    }

    /// Where a task is on the CPU.
    pub fn slot(&self, id: TaskId) -> Option<SeId> {
        let bodies = self.rq.body.iter().enumerate();
        let mut mine = bodies.filter(|(_, b)| b.as_ref().is_some_and(|b| b.id == id));
        mine.next().map(|(i, _)| SeId(i as u32))
    }

    /// Lets time pass, with ticks.
    pub fn run(&mut self, ns: u64) {
        let end = self.host.now + ns;
        while self.tick_at <= end {
            self.host.now = self.tick_at;
            self.tick_at += self.sys.features.tick_ns();
            self.with(|cx, rq| preempt::task_tick_fair(cx, rq).is_yes());
            if self.rq.need_resched {
                self.schedule();
            }
        }
        self.host.now = end;
    }

    /// The running task sleeps; whether it left at once.
    pub fn sleep(&mut self) -> bool {
        let left = self.with(|cx, rq| {
            let curr = rq.curr.expect("somebody runs");
            task::dequeue_task_fair(cx, rq, curr, Dequeue::SLEEP)
        });
        self.schedule();
        left
    }

    /// Chooses who runs.
    pub fn schedule(&mut self) {
        let prev = self.rq.curr;
        let prev_id = prev.map(|p| self.rq.task_id(p));
        let next = self.with(|cx, rq| {
            rq.need_resched = false;
            let next = task::pick_next_task_fair(cx, rq, prev);
            if let (Some(prev), None) = (prev, next) {
                task::put_prev_task_fair(cx, rq, prev);
            }
            rq.curr = next;
            if let Some(prev) = prev.filter(|p| Some(*p) != next && !rq.se[p.idx()].on_rq) {
                task::block_task(cx, rq, prev);
            }
            next
        });
        if prev == next {
            return;
        }
        if let Some(id) = prev_id {
            let ran = self.host.now - self.since;
            self.ran[id.idx()] += ran;
            self.stretches[id.idx()].push(ran);
        }
        self.since = self.host.now;
    }
}

/// Runs `f` with 64 KiB of stack.
pub fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 10);
    let ended = thread.spawn(f).map(std::thread::JoinHandle::join);
    assert!(matches!(ended, Ok(Ok(()))));
}

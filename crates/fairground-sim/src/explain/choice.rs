//! The choice of a CPU, made again by a host that writes down what is looked at.

use std::sync::atomic::Ordering::Relaxed;

use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::place::{Access, Fields, Func, Kind, Object, rq as f};
use fairground::select::{affine_target, select_task_rq};
use fairground::task::{Task, WakeKind};
use fairground::value::{Cpu, TaskId};

use crate::cache::{NS, Ps};
use crate::host::{BOOT_NS, Jiffies};
use crate::machine::Sim;
use crate::machine::task::Life;
use crate::machine::todo::Todo;

/// What the test for idleness (`idle_cpu`) reads first of a run queue, and nobody else alone.
const IDLE_TEST: Fields = f::CURR;

/// A choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The CPU that chose.
    pub this: u32,
    /// Where the task was last.
    pub prev: u32,
    /// Whether the waker said that it will sleep at once.
    pub sync: bool,
    /// How many CPUs the task may use.
    pub allowed: usize,
    /// Which way the choice went.
    pub route: Route,
    /// CPUs that were tested for being idle, in order.
    pub examined: Vec<Examined>,
    /// What came out.
    pub chosen: Examined,
    /// Functions that the choice went through, in the order of their first call.
    pub functions: Vec<&'static str>,
}

/// Which way a choice went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// There is one CPU that it may use.
    Bound,
    /// Near the waker or its previous CPU; which of them.
    Fast(u32),
    /// Through the groups of the domains, to the idlest.
    Slow,
}

/// A CPU as others saw it at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// Which.
    pub cpu: u32,
    /// In which function it was looked at.
    pub by: &'static str,
    /// Its idle task runs, nothing is queued and nothing is on its way.
    pub idle: bool,
    /// It runs tasks of the idle policy only, and that counts as idle (`sched_idle_cpu`).
    pub idle_policy: bool,
    /// Tasks on its queue.
    pub nr_running: u32,
    /// Load average of its root queue.
    pub load_avg: u64,
    /// Utilisation average of its root queue.
    pub util_avg: u64,
}

/// Makes the choice that `this` is about to make for `task`; `sim` is of no use afterwards. `None`
/// if it is about to make none.
pub fn probe(sim: &mut Sim<'_>, this: u32, task: TaskId) -> Option<Choice> {
    let (kind, waker) = match sim.cpus[this as usize].todo.front() {
        Some(Todo::Wake {
            task: id,
            kind,
            waker,
            ..
        }) if *id == task => (*kind, *waker),
        _ => return None,
    };
    let mut woken = sim.host.parked[task.idx()].take()?;
    // A new task is placed as a fork by its parent.
    let state = &sim.tasks[task.idx()];
    let (kind, waker) = match state.life {
        Life::New => (WakeKind::Fork, state.parent),
        _ => (kind, waker),
    };
    Some(choose(sim, this, &mut woken, waker, kind))
}

/// Whether `cpu` is about to choose a CPU for `task`, of the fair class.
pub fn is_next(sim: &Sim<'_>, cpu: u32, task: TaskId) -> bool {
    let next = sim.cpus[cpu as usize].todo.front();
    let wakes = matches!(next, Some(Todo::Wake { task: id, .. }) if *id == task);
    wakes && sim.tasks[task.idx()].real_time.is_none()
}

/// Whether `task`, about to be woken, may still be on its way off its CPU when it is looked at.
pub fn may_be_leaving(sim: &Sim<'_>, task: TaskId) -> bool {
    sim.tasks[task.idx()].off_cpu_at > sim.now
}

/// Whether the wake-up of `task` waits for the CPU where it was last, though nothing was chosen.
pub fn is_left_to_its_cpu(sim: &Sim<'_>, task: TaskId) -> bool {
    let list = &sim.cpus[sim.task_cpu(task).idx()].wake_list;
    list.iter().any(|(t, ..)| t.body.id == task)
}

fn choose(
    sim: &mut Sim<'_>,
    this: u32,
    task: &mut Task,
    waker: Option<TaskId>,
    kind: WakeKind,
) -> Choice {
    let prev = Cpu(sim.sys.task[task.body.id.idx()].cpu.load(Relaxed));
    let mut notes = Notes {
        // The step is the next event.
        at: sim.queue.next_at().unwrap_or(sim.now),
        jiffies: sim.host.jiffies,
        stack: Vec::new(),
        looked: Vec::new(),
        functions: Vec::new(),
    };
    let mut cx = Cx::new(&sim.sys, &mut notes, Cpu(this), &mut sim.moving);
    let allowed = task.body.cpus_allowed.weight() as usize;
    let route = if allowed == 1 {
        Route::Bound
    } else {
        // Asked first: counting a flip twice in a row counts it once.
        match affine_target(&mut cx, task, prev, waker, kind) {
            Some(target) => Route::Fast(target.0),
            None => Route::Slow,
        }
    };
    cx.host.looked.clear();
    cx.host.functions.clear();
    let chosen = select_task_rq(&mut cx, task, prev, waker, kind);
    let mut examined: Vec<Examined> = Vec::new();
    for (cpu, by) in &notes.looked {
        if examined.iter().all(|e| e.cpu != *cpu || e.by != *by) {
            examined.push(look(sim, *cpu, by));
        }
    }
    Choice {
        this,
        prev: prev.0,
        sync: kind == WakeKind::Sync,
        allowed,
        route,
        chosen: look(sim, chosen.0, ""),
        examined,
        functions: notes.functions,
    }
}

fn look(sim: &Sim<'_>, cpu: u32, by: &'static str) -> Examined {
    let words = &sim.sys.cpu[cpu as usize];
    Examined {
        cpu,
        by,
        idle: words.idle_cpu(),
        idle_policy: sim.sys.features.sched_idle_cpu && words.sched_idle_cpu(),
        nr_running: words.nr_running.load(Relaxed),
        load_avg: words.load_avg.load(Relaxed),
        util_avg: words.util_avg.load(Relaxed),
    }
}

/// A host whose clock stands still and that writes down which CPUs are looked at.
struct Notes {
    at: Ps,
    jiffies: Jiffies,
    stack: Vec<Func>,
    looked: Vec<(u32, &'static str)>,
    functions: Vec<&'static str>,
}

impl Host for Notes {
    fn clock(&mut self) -> u64 {
        self.at / NS + BOOT_NS
    }

    fn jiffies(&mut self, tick_ns: u64) -> u64 {
        self.jiffies.at(self.at, tick_ns)
    }

    fn resched(&mut self, _: Cpu) {}

    fn park(&mut self, _: Task) {}

    fn start_timer(&mut self, _: Timer, _: u64) {}

    fn cancel_timer(&mut self, _: Timer) {}

    fn kick(&mut self, _: Cpu, _: Kick) {}

    fn random(&mut self) -> u32 {
        0
    }

    fn touch(&mut self, object: Object, fields: Fields, _: Access) {
        if object.kind == Kind::Rq && fields == IDLE_TEST {
            let by = self.stack.last().map_or("", |f| f.name());
            self.looked.push((object.a, by));
        }
    }

    // Clocks are read together with who runs; that is no test for idleness.
    fn touch_mixed(&mut self, _: Object, _: Fields, _: Fields) {}

    fn enter(&mut self, func: Func) -> Func {
        self.stack.push(func);
        if !self.functions.contains(&func.name()) {
            self.functions.push(func.name());
        }
        func
    }

    fn leave(&mut self, _: Func) {
        self.stack.pop();
    }
}

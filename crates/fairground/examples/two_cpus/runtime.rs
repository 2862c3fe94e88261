//! A small runtime around the engine, to be copied: any number of CPUs, sleeping and waking,
//! quota, idle CPUs without a tick. It needs `core` and `alloc` only.
//!
//! The engine never waits and never calls itself: what it asks for while it is called, the host
//! writes down (`Board`) and does when the call is over (`Runtime::settle`). In a kernel most of
//! these notes are no queue but the hardware: `resched` and `kick` of another CPU are an IPI,
//! `start_timer` programs a timer, and `settle` is what the handlers do.
//!
//! Nothing is allocated but where groups and tasks are made.
//!
//! Here one thread plays all CPUs. `examples/parallel` has one thread for each.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::sched;
use fairground::system::System;
use fairground::task::{Placed, Policy, Prev, Task, WakeKind};
use fairground::topology::{Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

/// The host: what the engine asks, and what it has asked for.
struct Board {
    now_ns: u64,
    random: u32,
    /// CPUs that shall choose again, and work for CPUs, in order.
    asked: VecDeque<(Cpu, Option<Kick>)>,
    timers: Vec<(Timer, u64)>,
    /// Tasks that sleep or have not begun, by number.
    parked: Vec<Option<Task>>,
    /// For each CPU the tasks that it is to enqueue itself.
    wake_lists: Vec<VecDeque<(Task, Placed, WakeKind)>>,
}

/// A request to switch, and the kinds of `Kick`.
const REQUESTS: usize = 8;

impl Board {
    /// What is still to be done is not noted twice, so the notes of a CPU are at most `REQUESTS`.
    fn ask(&mut self, cpu: Cpu, work: Option<Kick>) {
        if !self.asked.contains(&(cpu, work)) {
            self.asked.push_back((cpu, work));
        }
    }
}

impl Host for Board {
    fn clock(&mut self) -> u64 {
        self.now_ns
    }
    fn resched(&mut self, cpu: Cpu) {
        self.ask(cpu, None);
    }
    fn park(&mut self, task: Task) {
        let id = task.body.id.idx();
        self.parked[id] = Some(task);
    }
    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        self.cancel_timer(timer);
        self.timers.push((timer, at_ns));
    }
    fn cancel_timer(&mut self, timer: Timer) {
        self.timers.retain(|(t, _)| *t != timer);
    }
    fn kick(&mut self, cpu: Cpu, work: Kick) {
        self.ask(cpu, Some(work));
    }
    fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
}

/// CPUs, tasks, and the engine between them.
pub struct Runtime {
    sys: System,
    rqs: Vec<Rq>,
    board: Board,
    /// Room for tasks between two queues; empty between calls.
    moving: Vec<Task>,
    /// Changes places with a wake list, so that both keep their room; empty between calls.
    spare: VecDeque<(Task, Placed, WakeKind)>,
    current: Vec<Option<TaskId>>,
    /// Whether the CPU is idle and has stopped its tick.
    tickless: Vec<bool>,
    next_tick_ns: u64,
}

impl Runtime {
    /// A machine on which nothing runs yet. Its clock begins at 1 s: 0 means "never" in some words.
    pub fn new(machine: &Machine, features: Features) -> Self {
        let sys = System::new(features, Topology::build(machine).expect("a machine"));
        let cpus = sys.nr_cpus();
        let now_ns = 1_000_000_000;
        let mut runtime = Self {
            rqs: sys
                .cpus()
                .iter()
                .map(|cpu| Rq::new(&sys, cpu, now_ns))
                .collect(),
            board: Board {
                now_ns,
                random: 1,
                asked: VecDeque::with_capacity(REQUESTS * cpus),
                timers: Vec::with_capacity(cpus),
                parked: Vec::new(),
                wake_lists: (0..cpus).map(|_| VecDeque::new()).collect(),
            },
            // Else the first balance that moves tasks would allocate.
            moving: Vec::with_capacity(sys.features.load_balance.nr_migrate as usize),
            spare: VecDeque::new(),
            current: alloc::vec![None; cpus],
            tickless: alloc::vec![false; cpus],
            next_tick_ns: now_ns + sys.features.tick_ns(),
            sys,
        };
        for cpu in runtime.sys.cpus().iter() {
            runtime.switch(cpu, Prev::Runnable);
        }
        runtime
    }

    /// Who runs on a CPU; `None`: it is idle.
    pub fn current(&self, cpu: Cpu) -> Option<TaskId> {
        self.current[cpu.idx()]
    }

    /// All CPUs.
    pub fn cpus(&self) -> CpuMask {
        self.sys.cpus()
    }

    /// The clock, ns.
    pub fn now_ns(&self) -> u64 {
        self.board.now_ns
    }

    /// A group below the root; `quota_ns` of CPU time in each period of 100 ms, if it has a limit,
    /// 1 ms at least. Groups and tasks are made while no CPU is inside the engine.
    pub fn add_group(&mut self, quota_ns: Option<u64>) -> TgId {
        let tg = self.sys.add_group(TgId::ROOT);
        self.sys.open_group(tg);
        for cpu in self.sys.cpus().iter() {
            self.call(cpu, |cx, rqs| sched::online_group(cx, rqs, tg, cpu));
        }
        // `Hrtick` of each CPU, `Period` and `Slack` of each group.
        let timers = self.rqs.len() + 2 * self.sys.tg.len();
        let more = timers - self.board.timers.len();
        self.board.timers.reserve(more);
        let period = 100_000_000;
        self.call(Cpu(0), |cx, rqs| {
            sched::set_bandwidth(cx, rqs, tg, quota_ns, period, 0)
                .expect("a quota of 1 ms or more");
        });
        tg
    }

    /// A new task that may run on `allowed`; `cpu` creates it, and it is runnable at once.
    pub fn spawn(&mut self, cpu: Cpu, tg: TgId, nice: i8, allowed: CpuMask) -> TaskId {
        let id = self.sys.add_task(tg);
        self.board.parked.push(None);
        self.reserve_tasks();
        let mut task = Task::new(id, tg, self.sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = allowed.and(&self.sys.cpus());
        task.set_scheduler(Policy::Normal, nice);
        self.call(cpu, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            let placed = sched::select_cpu(cx, &mut task, None, WakeKind::Fork);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
        self.settle();
        id
    }

    /// Any CPU may come to have all tasks.
    fn reserve_tasks(&mut self) {
        let tasks = self.board.parked.len();
        for (rq, list) in self.rqs.iter_mut().zip(&mut self.board.wake_lists) {
            rq.reserve(tasks);
            list.reserve(tasks - list.len());
        }
        self.spare.reserve(tasks);
    }

    /// Somebody on `cpu` (`None`: an interrupt there) wakes a task.
    pub fn wake(&mut self, cpu: Cpu, waker: Option<TaskId>, id: TaskId) {
        let kind = WakeKind::Wake;
        // A queue may still have it: it sleeps with lag to pay (delayed dequeue).
        if !self.call(cpu, |cx, rqs| sched::wake_queued(cx, rqs, id, kind)) {
            let Some(mut task) = self.board.parked[id.idx()].take() else {
                return; // runnable already
            };
            self.call(cpu, |cx, rqs| {
                let placed = sched::select_cpu(cx, &mut task, waker, kind);
                // It is enqueued here, or by that CPU, which is kicked when its list has the task.
                sched::ttwu_queue(cx, rqs, task, placed, kind, |board, woken| {
                    board.wake_lists[placed.cpu.idx()].push_back(woken);
                });
            });
        }
        self.settle();
    }

    /// The task that runs on `cpu` sleeps or exits.
    pub fn leave(&mut self, cpu: Cpu, prev: Prev) {
        let id = self.current(cpu);
        self.switch(cpu, prev);
        if prev == Prev::Exits
            && let Some(dead) = id.and_then(|id| self.board.parked[id.idx()].take())
        {
            self.call(cpu, |cx, _| sched::task_dead(cx, dead));
        }
        self.settle();
    }

    /// The next moment at which something happens by itself: a tick or a timer, ns.
    pub fn next_ns(&self) -> u64 {
        let timers = self.board.timers.iter().map(|(_, at)| *at);
        timers
            .fold(self.next_tick_ns, u64::min)
            .max(self.board.now_ns)
    }

    /// The clock moves on, at most to `next_ns`; ticks and timers that are due then happen.
    pub fn advance(&mut self, to_ns: u64) {
        self.board.now_ns = to_ns;
        while let Some(timer) = self.take_due_timer() {
            // Of a group: on any CPU. A kernel takes the one that has started it.
            let cpu = match timer {
                Timer::Hrtick(cpu) => cpu,
                Timer::Period(_) | Timer::Slack(_) => Cpu(0),
            };
            self.call(cpu, |cx, rqs| sched::run_timer(cx, rqs, timer));
            self.settle();
        }
        if to_ns >= self.next_tick_ns {
            self.next_tick_ns += self.sys.features.tick_ns();
            for cpu in self.sys.cpus().iter() {
                if !self.tickless[cpu.idx()] {
                    self.call(cpu, sched::sched_tick);
                }
            }
            self.settle();
        }
        // So does who was interrupted.
        for cpu in self.sys.cpus().iter() {
            if self.current[cpu.idx()].is_some() {
                self.call(cpu, sched::exit_to_user);
            }
        }
        self.settle();
    }

    fn take_due_timer(&mut self) -> Option<Timer> {
        let now = self.board.now_ns;
        let due = self.board.timers.iter().position(|(_, at)| *at <= now)?;
        Some(self.board.timers.swap_remove(due).0)
    }

    /// A call into the engine on behalf of `cpu`.
    fn call<T>(&mut self, cpu: Cpu, f: impl FnOnce(&mut Cx<'_, Board>, &mut Vec<Rq>) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.board, cpu, &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    /// `cpu` chooses who runs. This is where a kernel switches stacks.
    fn switch(&mut self, cpu: Cpu, prev: Prev) {
        let switch = self.call(cpu, |cx, rqs| sched::schedule(cx, rqs, prev));
        self.switched(cpu, switch.next);
    }

    fn switched(&mut self, cpu: Cpu, next: Option<TaskId>) {
        self.current[cpu.idx()] = next;
        let idle = next.is_none();
        if idle && !self.tickless[cpu.idx()] {
            self.call(cpu, sched::nohz_enter_idle);
        }
        self.tickless[cpu.idx()] = idle;
        // On its way to user space: a task of a group without quota gives up the CPU there.
        if !idle {
            self.call(cpu, sched::exit_to_user);
        }
    }

    /// Does what the engine has asked for.
    fn settle(&mut self) {
        while let Some((cpu, work)) = self.board.asked.pop_front() {
            match work {
                None => self.switch(cpu, Prev::Runnable),
                Some(Kick::Wakeups) => {
                    let mut woken = mem::take(&mut self.spare);
                    mem::swap(&mut woken, &mut self.board.wake_lists[cpu.idx()]);
                    self.call(cpu, |cx, rqs| {
                        sched::sched_ttwu_pending(cx, rqs, &mut woken);
                    });
                    self.spare = woken;
                }
                // The stopper of that CPU moves a task away, and chooses again.
                Some(Kick::Stop(work)) => {
                    let switch = self.call(cpu, |cx, rqs| sched::run_stopper(cx, rqs, work));
                    self.switched(cpu, switch.next);
                }
                Some(Kick::Run(work)) => self.call(cpu, |cx, rqs| sched::run_kick(cx, rqs, work)),
            }
        }
    }
}

//! A cooperative executor of `std` futures on two CPUs: its tasks are shared out by the engine.
//!
//! A future cannot be preempted, so ticks, kicks and switches come between polls, and a share is
//! only as fine as a poll is short. A waker notes the id of its task and no more: it may be called
//! by any thread, within a poll too. A CPU drains these notes between polls.
//!
//! Time is simulated, and one thread plays both CPUs, so each run is the same. What a poll costs
//! is what its future says by `work`.
//!
//! ```text
//! cargo run -p fairground --example executor
//! ```
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::{mem, thread};

use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::policy::Features;
use fairground::rq::{CLOCK_BEGINS, Rq};
use fairground::sched;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{Machine, Topology};
use fairground::value::{Cpu, TaskId, TgId};

const CPUS: u32 = 2;
const MS: u64 = 1_000_000;
/// What a poll costs at least.
const POLL_NS: u64 = 1000;

/// What the engine has asked for, and who sleeps.
struct Board {
    now_ns: u64,
    random: u32,
    resched: [bool; CPUS as usize],
    kicks: [VecDeque<Kick>; CPUS as usize],
    wake_lists: [VecDeque<(Task, Placed, WakeKind)>; CPUS as usize],
    timers: Vec<(Timer, u64)>,
    parked: Vec<Option<Task>>,
}

impl Host for Board {
    fn clock(&mut self) -> u64 {
        self.now_ns
    }
    fn resched(&mut self, cpu: Cpu) {
        self.resched[cpu.idx()] = true;
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
        self.kicks[cpu.idx()].push_back(work);
    }
    fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
}

/// Ids of tasks that wakers have been called for. A real executor also unparks an idle CPU.
type Woken = Arc<Mutex<VecDeque<TaskId>>>;

struct TaskWaker {
    id: TaskId,
    woken: Woken,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock().expect("no waker panics");
        woken.push_back(self.id);
    }
}

struct Spawned {
    /// `None` once it is ready.
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    waker: Waker,
    /// Woken while it was polled: it is polled again instead of going to sleep.
    notified: bool,
    ran_ns: u64,
}

/// One CPU: an OS thread in a real executor.
#[derive(Default)]
struct Core {
    current: Option<TaskId>,
    /// The end of the poll that it is in, and whether the future is ready then.
    polls: Option<(u64, bool)>,
    next_tick_ns: u64,
    tickless: bool,
}

struct Executor {
    sys: System,
    rqs: Vec<Rq>,
    board: Board,
    moving: Vec<Task>,
    cores: [Core; CPUS as usize],
    tasks: Vec<Spawned>,
    woken: Woken,
    /// What the poll that goes on has cost.
    spent_ns: Rc<Cell<u64>>,
}

impl Executor {
    fn new(features: Features) -> Self {
        let topology = Topology::build(&Machine::flat(CPUS)).expect("a machine");
        let sys = System::new(features, topology);
        let rq = |cpu| Rq::new(&sys, cpu, CLOCK_BEGINS);
        let mut executor = Self {
            rqs: sys.cpus().iter().map(rq).collect(),
            board: Board {
                now_ns: CLOCK_BEGINS,
                random: 1,
                resched: Default::default(),
                kicks: Default::default(),
                wake_lists: Default::default(),
                timers: Vec::new(),
                parked: Vec::new(),
            },
            moving: Vec::with_capacity(sys.features.load_balance.nr_migrate as usize),
            cores: Default::default(),
            tasks: Vec::new(),
            woken: Woken::default(),
            spent_ns: Rc::default(),
            sys,
        };
        for cpu in executor.sys.cpus().iter() {
            executor.schedule(cpu, Prev::Runnable);
        }
        executor
    }

    /// A group with a weight; that of a new one is 100.
    fn add_group(&mut self, weight: u64) -> TgId {
        let tg = self.sys.add_group(TgId::ROOT);
        let taken = self.call(Cpu(0), |cx, rqs| sched::set_cpu_weight(cx, rqs, tg, weight));
        taken.expect("a weight of 1 to 10000");
        tg
    }

    fn spawn(&mut self, tg: TgId, future: impl Future<Output = ()> + 'static) -> TaskId {
        let id = self.sys.add_task(tg);
        let woken = self.woken.clone();
        self.tasks.push(Spawned {
            future: Some(Box::pin(future)),
            waker: Waker::from(Arc::new(TaskWaker { id, woken })),
            notified: false,
            ran_ns: 0,
        });
        self.board.parked.push(None);
        let mut task = Task::new(id, tg, self.sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = self.sys.cpus();
        self.call(Cpu(0), |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            let placed = sched::select_cpu(cx, &mut task, None, WakeKind::Fork);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
        id
    }

    fn call<T>(&mut self, cpu: Cpu, f: impl FnOnce(&mut Cx<'_, Board>, &mut Vec<Rq>) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.board, cpu, &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    fn schedule(&mut self, cpu: Cpu, prev: Prev) {
        self.board.resched[cpu.idx()] = false;
        let switch = self.call(cpu, |cx, rqs| sched::schedule(cx, rqs, prev));
        self.switched(cpu, switch.next);
    }

    fn switched(&mut self, cpu: Cpu, next: Option<TaskId>) {
        self.cores[cpu.idx()].current = next;
        let was_tickless = mem::replace(&mut self.cores[cpu.idx()].tickless, next.is_none());
        if next.is_none() && !was_tickless {
            self.call(cpu, sched::nohz_enter_idle);
        }
    }

    /// Time goes on to `end_ns`; whenever a CPU is between two polls, it does what has come.
    fn run_until(&mut self, end_ns: u64) {
        loop {
            while let Some(cpu) = self.sys.cpus().iter().find(|cpu| self.has_work(*cpu)) {
                self.between_polls(cpu);
            }
            let polls = self.cores.iter().filter_map(|core| core.polls);
            let timers = self.board.timers.iter().map(|(_, at)| *at);
            let next = polls.map(|(at, _)| at).chain(timers).fold(end_ns, u64::min);
            if next >= end_ns {
                self.board.now_ns = end_ns;
                return;
            }
            // A timer may have waited for the end of a poll.
            self.board.now_ns = next.max(self.board.now_ns);
        }
    }

    fn has_work(&self, cpu: Cpu) -> bool {
        let (board, core) = (&self.board, &self.cores[cpu.idx()]);
        match core.polls {
            Some((until_ns, _)) => until_ns <= board.now_ns,
            None => {
                core.current.is_some()
                    || board.resched[cpu.idx()]
                    || !board.kicks[cpu.idx()].is_empty()
                    || board.timers.iter().any(|(_, at)| *at <= board.now_ns)
                    || !self.woken.lock().expect("no waker panics").is_empty()
            }
        }
    }

    fn between_polls(&mut self, cpu: Cpu) {
        // First: a task that was woken during its poll is polled again, and does not go to sleep.
        self.drain(cpu);
        if let Some((_, ready)) = self.cores[cpu.idx()].polls.take() {
            self.end_poll(cpu, ready);
        }
        while let Some(timer) = self.take_due_timer() {
            self.call(cpu, |cx, rqs| sched::run_timer(cx, rqs, timer));
        }
        let now = self.board.now_ns;
        let core = &mut self.cores[cpu.idx()];
        if now >= core.next_tick_ns && !core.tickless {
            core.next_tick_ns = now + self.sys.features.tick_ns();
            self.call(cpu, sched::sched_tick);
        }
        loop {
            if let Some(work) = self.board.kicks[cpu.idx()].pop_front() {
                self.kicked(cpu, work);
                continue;
            }
            if self.cores[cpu.idx()].current.is_some() {
                self.call(cpu, sched::exit_to_user);
            }
            if !self.board.resched[cpu.idx()] {
                break;
            }
            self.schedule(cpu, Prev::Runnable);
        }
        if let Some(id) = self.cores[cpu.idx()].current {
            self.poll(cpu, id);
        }
    }

    fn kicked(&mut self, cpu: Cpu, work: Kick) {
        match work {
            Kick::Wakeups => {
                let mut list = mem::take(&mut self.board.wake_lists[cpu.idx()]);
                self.call(cpu, |cx, rqs| sched::sched_ttwu_pending(cx, rqs, &mut list));
                // It is empty, and keeps its room.
                self.board.wake_lists[cpu.idx()] = list;
            }
            Kick::Run(work) => self.call(cpu, |cx, rqs| sched::run_kick(cx, rqs, work)),
            Kick::Stop(work) => {
                let switch = self.call(cpu, |cx, rqs| sched::run_stopper(cx, rqs, work));
                self.switched(cpu, switch.next);
            }
        }
    }

    fn take_due_timer(&mut self) -> Option<Timer> {
        let now = self.board.now_ns;
        let due = self.board.timers.iter().position(|(_, at)| *at <= now)?;
        Some(self.board.timers.swap_remove(due).0)
    }

    fn poll(&mut self, cpu: Cpu, id: TaskId) {
        let task = &mut self.tasks[id.idx()];
        task.notified = false;
        self.spent_ns.set(0);
        let future = task.future.as_mut().expect("who is ready has exited");
        let polled = future.as_mut().poll(&mut Context::from_waker(&task.waker));
        let cost_ns = self.spent_ns.get().max(POLL_NS);
        task.ran_ns += cost_ns;
        if polled.is_ready() {
            task.future = None;
        }
        let until_ns = self.board.now_ns + cost_ns;
        self.cores[cpu.idx()].polls = Some((until_ns, polled.is_ready()));
    }

    fn end_poll(&mut self, cpu: Cpu, ready: bool) {
        let id = self.cores[cpu.idx()].current.expect("it was polled");
        let prev = match (ready, self.tasks[id.idx()].notified) {
            (true, _) => Prev::Exits,
            (false, true) => Prev::Runnable,
            (false, false) => Prev::Sleeps,
        };
        // A task that goes on leaves its CPU only if the engine has asked for it.
        if prev != Prev::Runnable {
            self.schedule(cpu, prev);
        }
        if ready && let Some(dead) = self.board.parked[id.idx()].take() {
            self.call(cpu, |cx, _| sched::task_dead(cx, dead));
        }
    }

    /// Wakes those whose wakers have been called, on behalf of nobody: who called is not known.
    fn drain(&mut self, cpu: Cpu) {
        let kind = WakeKind::Wake;
        loop {
            let next = self.woken.lock().expect("no waker panics").pop_front();
            let Some(id) = next else { return };
            if self.cores.iter().any(|core| core.current == Some(id)) {
                self.tasks[id.idx()].notified = true;
                continue;
            }
            if self.call(cpu, |cx, rqs| sched::wake_queued(cx, rqs, id, kind)) {
                continue;
            }
            let Some(mut task) = self.board.parked[id.idx()].take() else {
                continue; // it is on a wake list, or has exited
            };
            self.call(cpu, |cx, rqs| {
                let placed = sched::select_cpu(cx, &mut task, None, kind);
                sched::ttwu_queue(cx, rqs, task, placed, kind, |board, woken| {
                    board.wake_lists[placed.cpu.idx()].push_back(woken);
                });
            });
        }
    }
}

/// Lets others run, and goes on.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Computes for `total_ns`, in pieces of 0.3 ms.
async fn computes(spent_ns: Rc<Cell<u64>>, total_ns: u64) {
    let piece_ns = 3 * MS / 10;
    let mut left_ns = total_ns;
    while left_ns > 0 {
        spent_ns.set(spent_ns.get() + piece_ns);
        left_ns = left_ns.saturating_sub(piece_ns);
        yield_now().await;
    }
}

/// A device's completions, and who waits for them.
#[derive(Default)]
struct Mailbox {
    posted: u32,
    waits: Option<Waker>,
}

/// Waits for completions, and computes for 1 ms on each.
async fn serves(mailbox: Arc<Mutex<Mailbox>>, spent_ns: Rc<Cell<u64>>, served: Rc<Cell<u32>>) {
    loop {
        poll_fn(|cx| {
            let mut mailbox = mailbox.lock().expect("no device panics");
            if mailbox.posted > 0 {
                mailbox.posted -= 1;
                return Poll::Ready(());
            }
            mailbox.waits = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
        spent_ns.set(spent_ns.get() + MS);
        served.set(served.get() + 1);
    }
}

fn main() {
    let (rounds, round_ns) = (200_u32, 20 * MS);
    let mut executor = Executor::new(Features::default());
    let [heavy, light] = [300, 100].map(|weight| executor.add_group(weight));
    let spent_ns = executor.spent_ns.clone();
    let endless = |executor: &mut Executor, tg| {
        [(); 2].map(|()| executor.spawn(tg, computes(executor.spent_ns.clone(), u64::MAX)))
    };
    let heavies = endless(&mut executor, heavy);
    let lights = endless(&mut executor, light);
    let ends = executor.spawn(light, computes(spent_ns.clone(), 9 * MS));
    let (mailbox, served) = (Arc::<Mutex<Mailbox>>::default(), Rc::new(Cell::new(0)));
    let server = executor.spawn(
        TgId::ROOT,
        serves(mailbox.clone(), spent_ns, served.clone()),
    );
    let begin_ns = executor.board.now_ns;
    for _ in 0..rounds {
        executor.run_until(executor.board.now_ns + round_ns);
        // A thread that the executor knows nothing of.
        let mailbox = mailbox.clone();
        let device = thread::spawn(move || {
            let mut mailbox = mailbox.lock().expect("no server panics");
            mailbox.posted += 1;
            if let Some(waker) = mailbox.waits.take() {
                waker.wake();
            }
        });
        device.join().expect("the device does not panic");
    }
    let both_ns = (executor.board.now_ns - begin_ns) * u64::from(CPUS);
    let ran = |ids: &[TaskId]| ids.iter().map(|id| executor.tasks[id.idx()].ran_ns).sum();
    let share = |ids: &[TaskId]| {
        let ns: u64 = ran(ids);
        ns as f64 / both_ns as f64
    };
    println!("weight 300: {:.3}", share(&heavies));
    println!("weight 100: {:.3}", share(&lights));
    println!("served {} of {rounds}", served.get());
    assert!((0.70..0.76).contains(&share(&heavies)), "three quarters");
    assert!((0.23..0.26).contains(&share(&lights)), "one quarter");
    assert!(share(&[server]) > 0.024, "1 ms in 20 ms of one CPU");
    assert!(served.get() + 1 >= rounds, "no wake-up is lost");
    assert!(executor.tasks[ends.idx()].future.is_none(), "it has ended");
}

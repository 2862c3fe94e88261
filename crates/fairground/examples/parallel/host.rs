//! A host whose CPUs are OS threads.
//!
//! `Rqs::rq` locks the mutex of a queue and `Rqs::release` drops its guard, so `Host::lock` has
//! nothing to do for queues. What else such a host needs is here too: a lock for each task against
//! lost wake-ups, a lock for each group's pool of quota, IPIs as a flag and `unpark`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fairground::cx::Cx;
use fairground::host::{Host, Kick, Timer};
use fairground::place::Lock;
use fairground::policy::Features;
use fairground::rq::{CLOCK_BEGINS, Rq, Rqs};
use fairground::sched;
use fairground::system::System;
use fairground::task::{Placed, Prev, Switch, Task, WakeKind};
use fairground::topology::{Machine, Topology};
use fairground::value::{Cpu, TaskId, TgId};

/// Longer than any CPU of the example takes to leave a thread, on a busy computer too.
const TOO_LONG: Duration = Duration::from_secs(60);

pub const CPUS: u32 = 4;
pub const MS: u64 = 1_000_000;

/// What a thread of the load does over and over.
#[derive(Clone, Copy)]
pub enum Work {
    Computes,
    /// Wakes its server, then sleeps for 1 ms.
    Asks(TaskId),
    /// Sleeps until it is woken.
    Answers,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum State {
    Awake,
    /// Woken while it was awake: its next sleep is none.
    Woken,
    Asleep,
}

pub struct Thread {
    work: Work,
    /// Held from the decision to sleep to the end of `schedule`, and for the whole of a wake-up.
    pub state: Mutex<State>,
    /// Filled under the lock of a queue, so nobody calls the engine while holding this one.
    pub parked: Mutex<Option<Task>>,
    on_cpu: AtomicBool,
    pub turns: AtomicU64,
}

/// What others leave for a CPU.
#[derive(Default)]
pub struct Inbox {
    resched: AtomicBool,
    kicks: Mutex<VecDeque<Kick>>,
    pub wake_list: Mutex<VecDeque<(Task, Placed, WakeKind)>>,
    os_thread: OnceLock<thread::Thread>,
}

impl Inbox {
    /// The IPI.
    fn interrupt(&self) {
        if let Some(os_thread) = self.os_thread.get() {
            os_thread.unpark();
        }
    }
}

/// Everything that several CPUs reach.
pub struct Shared {
    pub sys: System,
    rqs: Vec<Mutex<Rq>>,
    /// For each group the lock of its pool of quota.
    pools: Vec<Mutex<()>>,
    pub inboxes: Vec<Inbox>,
    pub threads: Vec<Thread>,
    timers: Mutex<BTreeMap<Timer, u64>>,
    began: Instant,
    pub stop: AtomicBool,
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no other CPU has panicked")
}

/// The run queues as one CPU reaches them: at most one at a time.
pub struct Queues<'a> {
    all: &'a [Mutex<Rq>],
    held: Option<MutexGuard<'a, Rq>>,
}

impl Rqs for Queues<'_> {
    fn rq(&mut self, cpu: Cpu) -> &mut Rq {
        assert!(self.held.is_none(), "one queue at a time");
        self.held.insert(locked(&self.all[cpu.idx()]))
    }
    fn release(&mut self, _: Cpu) {
        self.held = None;
    }
}

/// The host, for the length of one call.
pub struct Board<'a> {
    shared: &'a Shared,
    pool: Option<MutexGuard<'a, ()>>,
    random: u32,
}

impl Host for Board<'_> {
    fn clock(&mut self) -> u64 {
        self.shared.now_ns()
    }
    fn resched(&mut self, cpu: Cpu) {
        let inbox = &self.shared.inboxes[cpu.idx()];
        inbox.resched.store(true, Ordering::Release);
        inbox.interrupt();
    }
    fn park(&mut self, task: Task) {
        let thread = &self.shared.threads[task.body.id.idx()];
        let before = locked(&thread.parked).replace(task);
        assert!(before.is_none(), "parked twice");
    }
    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        locked(&self.shared.timers).insert(timer, at_ns);
    }
    fn cancel_timer(&mut self, timer: Timer) {
        locked(&self.shared.timers).remove(&timer);
    }
    fn kick(&mut self, cpu: Cpu, work: Kick) {
        let inbox = &self.shared.inboxes[cpu.idx()];
        let mut kicks = locked(&inbox.kicks);
        if !kicks.contains(&work) {
            kicks.push_back(work);
        }
        drop(kicks);
        inbox.interrupt();
    }
    fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
    fn lock(&mut self, lock: Lock) {
        match lock {
            Lock::Rq(_) => {} // by `Queues`
            Lock::Bandwidth(tg) => self.pool = Some(locked(&self.shared.pools[tg.idx()])),
        }
    }
    fn unlock(&mut self, lock: Lock) {
        match lock {
            Lock::Rq(_) => {}
            Lock::Bandwidth(_) => self.pool = None,
        }
    }
}

impl Shared {
    /// One clock for all CPUs.
    pub fn now_ns(&self) -> u64 {
        CLOCK_BEGINS + self.began.elapsed().as_nanos() as u64
    }

    /// The machine, its groups and all threads that there will be, none of them started.
    pub fn new(load: &[(usize, Work)], groups: usize) -> (Self, Vec<TaskId>, Vec<TgId>) {
        let topology = Topology::build(&Machine::flat(CPUS)).expect("a machine");
        let mut sys = System::new(Features::default(), topology);
        let mut tgs = vec![TgId::ROOT];
        tgs.extend((1..groups).map(|_| sys.add_group(TgId::ROOT)));
        let ids = load.iter().map(|(tg, _)| sys.add_task(tgs[*tg])).collect();
        let thread = |(_, work): &(usize, Work)| Thread {
            work: *work,
            state: Mutex::new(State::Awake),
            parked: Mutex::new(None),
            on_cpu: AtomicBool::new(false),
            turns: AtomicU64::new(0),
        };
        let rq = |cpu| Mutex::new(Rq::new(&sys, cpu, CLOCK_BEGINS));
        let shared = Self {
            rqs: sys.cpus().iter().map(rq).collect(),
            pools: tgs.iter().map(|_| Mutex::new(())).collect(),
            inboxes: (0..CPUS).map(|_| Inbox::default()).collect(),
            threads: load.iter().map(thread).collect(),
            timers: Mutex::default(),
            began: Instant::now(),
            stop: AtomicBool::new(false),
            sys,
        };
        (shared, ids, tgs)
    }
}

/// What a CPU owns.
pub struct Core<'a> {
    pub shared: &'a Shared,
    cpu: Cpu,
    random: u32,
    /// Room for tasks between two queues; empty between calls.
    moving: Vec<Task>,
    /// Changes places with the wake list, so that both keep their room.
    spare: VecDeque<(Task, Placed, WakeKind)>,
    current: Option<TaskId>,
    tickless: bool,
    next_tick_ns: u64,
    /// Who is to be woken from here, and when.
    alarms: BinaryHeap<Reverse<(u64, TaskId)>>,
}

impl<'a> Core<'a> {
    pub fn new(shared: &'a Shared, cpu: Cpu) -> Self {
        let mut core = Self {
            shared,
            cpu,
            random: cpu.0 + 1,
            moving: Vec::with_capacity(shared.sys.features.load_balance.nr_migrate as usize),
            spare: VecDeque::new(),
            current: None,
            tickless: false,
            next_tick_ns: 0,
            alarms: BinaryHeap::new(),
        };
        core.schedule(Prev::Runnable);
        core
    }

    /// A call into the engine on behalf of this CPU.
    pub fn call<T>(&mut self, f: impl FnOnce(&mut Cx<'_, Board<'a>>, &mut Queues<'a>) -> T) -> T {
        let mut host = Board {
            shared: self.shared,
            pool: None,
            random: self.random,
        };
        let mut queues = Queues {
            all: &self.shared.rqs,
            held: None,
        };
        let mut cx = Cx::new(&self.shared.sys, &mut host, self.cpu, &mut self.moving);
        let out = f(&mut cx, &mut queues);
        self.random = host.random;
        out
    }

    pub fn spawn(&mut self, id: TaskId, tg: TgId) {
        let sys = &self.shared.sys;
        let mut task = Task::new(id, tg, sys.features.tunables.base_slice_ns);
        task.body.cpus_allowed = sys.cpus();
        self.call(|cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            let placed = sched::select_cpu(cx, &mut task, None, WakeKind::Fork);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
    }

    fn inbox(&self) -> &'a Inbox {
        &self.shared.inboxes[self.cpu.idx()]
    }

    fn schedule(&mut self, prev: Prev) {
        // Before the call: who asks during it is heard after it.
        self.inbox().resched.store(false, Ordering::Release);
        self.switch(|cx, rqs| sched::schedule(cx, rqs, prev));
    }

    /// From one thread to the next. The engine gives the former free before its stack has been
    /// left, so each CPU waits for its next one to be off the CPU where it was. Its own it gives up
    /// first: two CPUs may have been given each other's, as the stopper puts its one back in the
    /// midst of the call.
    fn switch(&mut self, choose: impl FnOnce(&mut Cx<'_, Board<'a>>, &mut Queues<'a>) -> Switch) {
        let threads = &self.shared.threads;
        let switch = self.call(choose);
        assert_eq!(switch.prev, self.current);
        self.current = switch.next;
        if switch.prev != switch.next {
            // Here a kernel goes over to a stack of the CPU's own. Only then:
            if let Some(id) = switch.prev {
                threads[id.idx()].on_cpu.store(false, Ordering::Release);
            }
            if let Some(id) = switch.next {
                let since = Instant::now();
                while threads[id.idx()].on_cpu.swap(true, Ordering::AcqRel) {
                    assert!(since.elapsed() < TOO_LONG, "{id:?} runs on two CPUs");
                    std::hint::spin_loop();
                }
                // Here it loads the stack of the next one.
            }
        }
        if self.current.is_none() && !self.tickless {
            self.call(sched::nohz_enter_idle);
        }
        self.tickless = self.current.is_none();
    }

    /// The running thread sleeps, unless somebody has woken it since its last sleep.
    fn sleep(&mut self, id: TaskId) {
        let mut state = locked(&self.shared.threads[id.idx()].state);
        if *state == State::Woken {
            *state = State::Awake;
            return;
        }
        *state = State::Asleep;
        self.schedule(Prev::Sleeps);
    }

    /// `waker` is who runs here, or `None` for an interrupt.
    fn wake(&mut self, waker: Option<TaskId>, id: TaskId) {
        let (kind, shared) = (WakeKind::Wake, self.shared);
        let thread = &shared.threads[id.idx()];
        let mut state = locked(&thread.state);
        if *state != State::Asleep {
            *state = State::Woken;
            return;
        }
        *state = State::Awake;
        if self.call(|cx, rqs| sched::wake_queued(cx, rqs, id, kind)) {
            return;
        }
        let parked = locked(&thread.parked).take();
        let mut task = parked.expect("asleep and on no queue");
        self.call(|cx, rqs| {
            let placed = sched::select_cpu(cx, &mut task, waker, kind);
            let list = &shared.inboxes[placed.cpu.idx()].wake_list;
            sched::ttwu_queue(cx, rqs, task, placed, kind, |_, woken| {
                locked(list).push_back(woken);
            });
        });
    }

    /// Everything that has come for this CPU, and then the way back to user space.
    fn interrupts(&mut self) {
        loop {
            let kick = locked(&self.inbox().kicks).pop_front();
            if let Some(work) = kick {
                self.kicked(work);
                continue;
            }
            let now = self.shared.now_ns();
            if let Some(timer) = self.take_due_timer(now) {
                self.call(|cx, rqs| sched::run_timer(cx, rqs, timer));
                continue;
            }
            if let Some(&Reverse((at, id))) = self.alarms.peek()
                && at <= now
            {
                self.alarms.pop();
                self.wake(None, id);
                continue;
            }
            if now >= self.next_tick_ns && !self.tickless {
                self.next_tick_ns = now + self.shared.sys.features.tick_ns();
                self.call(sched::sched_tick);
                continue;
            }
            if self.current.is_some() {
                self.call(sched::exit_to_user);
            }
            if !self.inbox().resched.load(Ordering::Acquire) {
                return;
            }
            self.schedule(Prev::Runnable);
        }
    }

    fn kicked(&mut self, work: Kick) {
        match work {
            Kick::Wakeups => {
                let mut woken = mem::take(&mut self.spare);
                mem::swap(&mut woken, &mut *locked(&self.inbox().wake_list));
                self.call(|cx, rqs| sched::sched_ttwu_pending(cx, rqs, &mut woken));
                self.spare = woken;
            }
            Kick::Stop(work) => self.switch(|cx, rqs| sched::run_stopper(cx, rqs, work)),
            Kick::Run(work) => self.call(|cx, rqs| sched::run_kick(cx, rqs, work)),
        }
    }

    /// CPU 0 has the timers of groups.
    fn take_due_timer(&self, now: u64) -> Option<Timer> {
        let here = |timer: &Timer| match timer {
            Timer::Hrtick(cpu) => *cpu == self.cpu,
            Timer::Period(_) | Timer::Slack(_) => self.cpu == Cpu(0),
        };
        let mut timers = locked(&self.shared.timers);
        let (due, _) = timers.iter().find(|(t, at)| **at <= now && here(t))?;
        let due = *due;
        timers.remove(&due);
        Some(due)
    }

    pub fn run(mut self) -> Self {
        let _ = self.inbox().os_thread.set(thread::current());
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.interrupts();
            match self.current {
                Some(id) => self.user_code(id),
                // Till an interrupt, or a timer of this CPU is due.
                None => thread::park_timeout(Duration::from_micros(200)),
            }
        }
        self
    }

    /// A piece of the running thread's code. Interrupts are looked at after it, so it is short.
    fn user_code(&mut self, id: TaskId) {
        let piece = Instant::now();
        while piece.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        let thread = &self.shared.threads[id.idx()];
        thread.turns.fetch_add(1, Ordering::Relaxed);
        match thread.work {
            Work::Computes => {}
            Work::Asks(server) => {
                self.wake(Some(id), server);
                self.alarms.push(Reverse((self.shared.now_ns() + MS, id)));
                self.sleep(id);
            }
            Work::Answers => self.sleep(id),
        }
    }
}

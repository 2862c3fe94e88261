//! The simulated machine as the engine's host: time passes as the engine touches, locks and works.
//!
//! One call into the engine happens on one CPU, from [`SimHost::begin`] on; [`SimHost::at`] is that
//! CPU's time and moves with everything the engine reports. What the engine asks for is collected
//! in `requests` and acted on by the machine when the call has returned.

mod jiffies;
mod lines;
mod locks;
mod mms;
mod outside;
mod pace;
mod places;
mod prices;
mod profile;
mod quiet;
mod request;
mod rounds;
mod smt;
mod stacks;
mod touch;
mod trace;
mod turn;

pub(crate) use jiffies::Jiffies;
pub use places::Places;
use places::{How, Site};
pub use prices::Prices;
pub use profile::{Place, Profile, function_names};
pub(crate) use quiet::Quiet;
pub(crate) use rounds::Rounds;
pub(crate) use smt::Smt;
pub use stacks::Stack;
pub use trace::{Counters, StillWaiting, TraceLine};
pub(crate) use turn::Turn;

use fairground::event::{Event, QuotaWork};
use fairground::host::{Host, Kick, Timer};
use fairground::place::{Access, Fields, Func, Lock, Object};
use fairground::task::Task;
use fairground::value::Cpu;

use crate::cache::{self, Cache, HwThread, NS, Ps};
use crate::costs::KernelOp;
use crate::machine_file::Machine;
use crate::rng::Generator;
use crate::samples::{ThreadTrace, Waited, Waits};
use crate::tails::Held;
use crate::watch::quota_work::Worked;
use locks::Locks;
pub use mms::{MmLine, Mms};
use pace::Pace;
pub use request::{Request, no_task};

/// The scheduler clock at the start of a run: the machine was booted some time ago, and a load
/// average that was updated at time zero would count as new, and no domain would have been
/// balanced before. It is a second and a multiple of both 2^20 ns and 10 ms: neither the periods of
/// load tracking nor the ticks depend on how long ago.
pub const BOOT_NS: u64 = 82_920_000_000;

/// The engine's view of the simulated machine.
pub struct SimHost {
    /// Time on the executing CPU.
    pub at: Ps,
    /// The executing CPU.
    pub cpu: u32,
    /// Its core, and which of the core's threads it is.
    thread: HwThread,
    /// Cache lines.
    pub cache: Cache,
    /// Where each object is.
    pub places: Places,
    /// Who used the time.
    pub profile: Profile,
    /// Prices.
    pub prices: Prices,
    /// What the engine asked for since it was last drained.
    pub requests: Vec<(Ps, Request)>,
    /// Tasks that no run queue owns, by id.
    pub parked: Vec<Option<Task>>,
    /// Counters and, if wanted, the trace.
    pub counters: Counters,
    /// What a tracer costs at each tracepoint; zero when nobody traces.
    pub tracer: Ps,
    /// What the way from a wake-up to the switch takes on a recorded machine.
    pub(crate) held: Option<Box<Held>>,
    /// What a tracer costs more at `sched_switch`, before it takes the time.
    pub tracer_at_switch: Ps,
    /// System calls cost nothing, nor do the words that they are about.
    pub(crate) calls_are_free: bool,
    /// Waits, if they are kept.
    pub waits: Option<Box<Waits>>,
    /// Tracepoints of the running event, if the run is watched.
    pub(crate) seen: Option<Vec<(Ps, Event)>>,
    /// What quotas made CPUs do in the running event, if the run is watched.
    pub(crate) worked: Option<Vec<Worked>>,
    /// What threads do between tracepoints, if it is kept.
    pub thread_trace: Option<Box<ThreadTrace>>,
    /// Time of `kick_ilb` in the compare-and-swap loop on the flags: in its load, in its swaps.
    pub ilb_cas: [Ps; 2],
    /// Address spaces.
    pub(crate) mms: Mms,
    /// The count of ticks.
    pub(crate) jiffies: Jiffies,
    /// The turn of the executing CPU, if CPUs share one stream of instructions.
    pub(crate) turn: Option<Turn>,
    /// Threads that share a core, if they slow each other down.
    pub(crate) smt: Option<Smt>,
    /// By how much the running step is stretched, by the sibling or on a slow CPU, in 65536ths.
    stretch: u64,
    /// How fast CPUs are.
    pub(crate) pace: Pace,
    /// When the running step began, and how long it has waited for lines, locks and messages.
    pub(crate) began: Ps,
    stalled: Ps,
    locks: Locks,
    rng: Generator,
}

impl SimHost {
    /// The host for `machine`.
    #[must_use]
    pub fn new(machine: &Machine, layout: &'static fairground::place::Layout, seed: u64) -> Self {
        let cpus = machine.topology.nr_cpus();
        let places = Places::new(machine, layout);
        let prices = Prices::new(machine);
        let (plain, scale) = (cache::Options::default(), machine.cost_scale());
        let occupancy = f64::from(plain.load_occupancy_permille) * scale.load_occupancy;
        let in_code = cache::Options {
            hits: false,
            load_occupancy_permille: occupancy.round() as u32,
            load_overlap_ns: plain.load_overlap_ns * scale.load_overlap,
            ..plain
        };
        Self {
            at: 0,
            cpu: 0,
            thread: HwThread::default(),
            cache: Cache::with_options(machine, seed, in_code),
            places,
            profile: Profile::default(),
            requests: Vec::new(),
            parked: Vec::new(),
            counters: Counters::default(),
            tracer: 0,
            held: None,
            tracer_at_switch: 0,
            calls_are_free: false,
            waits: None,
            seen: None,
            worked: None,
            thread_trace: None,
            ilb_cas: [0; 2],
            mms: Mms::default(),
            jiffies: Jiffies::default(),
            turn: None,
            smt: Smt::new(machine),
            stretch: pace::FULL,
            pace: Pace::new(&machine.topology),
            began: 0,
            stalled: 0,
            locks: Locks::new(cpus, prices.rounds),
            prices,
            rng: crate::rng::generator(seed, crate::rng::Purpose::Scheduler),
        }
    }

    /// This host with the numbers that `before` would draw next: what `before` did is forgotten.
    #[must_use]
    pub fn continuing(self, before: Self) -> Self {
        Self {
            rng: before.rng,
            ..self
        }
    }

    /// `cpu` begins to execute kernel code at `at`.
    #[inline]
    pub fn begin(&mut self, cpu: u32, at: Ps) {
        self.cpu = cpu;
        self.thread = self.cache.thread_of(cpu);
        self.at = at;
        self.cache.begin_step(self.thread.core, at);
        self.profile.resume(at);
        if let Some(smt) = &self.smt {
            self.stretch = smt.stretch(cpu, at);
            (self.began, self.stalled) = (at, 0);
        }
        if self.pace.differs() {
            let beside = self.smt.as_ref().map(|_| self.stretch);
            self.stretch = self.pace.stretch(cpu, beside);
        }
    }

    /// The step of the executing CPU is over; `runs` = it goes on to execute. For how long it has
    /// not executed where its sibling might have thought so; without end if it stops.
    pub fn end_step(&mut self, runs: bool) -> Ps {
        let Some(smt) = &mut self.smt else { return 0 };
        smt.step(self.cpu, self.began, self.at, self.stalled, runs);
        let stalled = if runs { self.stalled } else { Ps::MAX };
        (self.began, self.stalled) = (self.at, 0);
        stalled
    }

    /// How long the executing CPU takes for what takes `ps` on a core of its own.
    #[inline(always)]
    fn stretched(&self, ps: Ps) -> Ps {
        (ps * self.stretch) >> 16
    }

    /// The executing CPU executes what takes `ps` on a core of its own, in `place`.
    #[inline]
    pub fn spend(&mut self, place: Place, ps: Ps) {
        let ps = self.stretched(ps);
        self.profile.add(place, self.at, ps);
        self.at += ps;
    }

    /// The executing CPU stands still for `ps` in `place`.
    pub fn stall(&mut self, place: Place, ps: Ps) {
        self.profile.add(place, self.at, ps);
        self.at += ps;
        self.stalled += ps;
    }

    /// The executing CPU goes on with `place`, of which it does a part that takes `ps` on a core of
    /// its own.
    pub fn spend_more(&mut self, place: Place, ps: Ps) {
        let ps = self.stretched(ps);
        self.profile.add_time(place, self.at, ps);
        self.at += ps;
    }

    /// The executing CPU performs a kernel operation.
    #[inline]
    pub fn op(&mut self, op: KernelOp) {
        self.spend(Place::Op(op), self.prices.op[op as usize]);
    }

    /// The executing CPU waits in `place` until `until`.
    #[inline]
    pub fn wait_until(&mut self, place: Place, until: Ps) {
        let ps = until.saturating_sub(self.at);
        self.profile.add_time(place, self.at, ps);
        self.at += ps;
        self.stalled += ps;
    }

    /// The executing CPU copies `bytes` in the course of `op`.
    #[inline]
    pub fn copy(&mut self, op: KernelOp, bytes: u32) {
        let ps = u64::from(bytes) * self.prices.copy_per_kib / 1024;
        self.spend_more(Place::Op(op), ps);
    }

    /// Price of a kernel operation.
    #[must_use]
    pub fn op_price(&self, op: KernelOp) -> Ps {
        self.prices.op[op as usize]
    }

    /// From now on system calls cost nothing beyond the scheduler's part.
    pub fn free_calls(&mut self) {
        self.calls_are_free = true;
        self.prices.free_calls();
    }

    /// Times and traffic so far do not count: they are of the set-up, or of the warm-up.
    pub fn clear_counters(&mut self) {
        self.profile.clear();
        self.locks.clear_counters();
        self.cache.clear_counters();
        self.counters.ipis = 0;
        self.ilb_cas = [0; 2];
    }

    /// Sum of the time spent waiting for locks.
    #[must_use]
    pub fn lock_wait(&self) -> Ps {
        self.locks.wait()
    }
}

impl Host for SimHost {
    #[inline]
    fn clock(&mut self) -> u64 {
        self.at += self.stretched(self.prices.clock);
        let others = self.turn.map_or(0, |t| t.others(self.cpu, self.at));
        (self.at + others) / NS + BOOT_NS
    }

    /// Ticks lie on the machine's grid; the word is right at any time, without the lag of the CPU
    /// that writes it.
    #[inline]
    fn jiffies(&mut self, tick_ns: u64) -> u64 {
        self.jiffies.at(self.at, tick_ns)
    }

    #[inline]
    fn resched(&mut self, cpu: Cpu) {
        // The executing CPU looks at its flag when it is done.
        if cpu.0 != self.cpu {
            self.requests.push((self.at, Request::Resched(cpu)));
        }
    }

    fn park(&mut self, task: Task) {
        let slot = task.body.id.idx();
        self.parked[slot] = Some(task);
    }

    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        self.requests.push((self.at, Request::Start(timer, at_ns)));
    }

    fn cancel_timer(&mut self, timer: Timer) {
        self.requests.push((self.at, Request::Cancel(timer)));
    }

    fn kick(&mut self, cpu: Cpu, work: Kick) {
        self.requests.push((self.at, Request::Kick(cpu, work)));
    }

    fn random(&mut self) -> u32 {
        self.rng.bits() as u32
    }

    // Always inlined: the access is known where it is reported, and the ids go in registers.
    #[inline(always)]
    fn touch(&mut self, object: Object, fields: Fields, access: Access) {
        let Object { kind, a, b } = object;
        let how = match access {
            Access::Read | Access::CasLoad => How::Load,
            Access::Write => How::Store,
            Access::Update => How::Update,
            Access::Rmw | Access::CasLoop | Access::CasSwap => How::Atomic,
        };
        let site = Site::new(kind, fields.0, how);
        match access {
            Access::Read | Access::Write | Access::Update => self.touch_site(site, a, b),
            Access::Rmw => self.touch_atomic(site, a, b, cache::Access::Rmw),
            Access::CasLoop => self.touch_atomic(site, a, b, cache::Access::CasLoop),
            Access::CasLoad => {
                let from = self.at;
                self.touch_site(site, a, b);
                self.ilb_cas[0] += self.at - from;
            }
            Access::CasSwap => {
                let from = self.at;
                self.touch_atomic(site, a, b, cache::Access::Rmw);
                self.ilb_cas[1] += self.at - from;
            }
        }
    }

    #[inline(always)]
    fn touch_mixed(&mut self, object: Object, reads: Fields, updates: Fields) {
        let Object { kind, a, b } = object;
        self.touch_site(Site::mixed(kind, reads, updates), a, b);
        self.at += self.prices.of_update(object, updates);
    }

    #[inline(always)]
    fn enter(&mut self, func: Func) -> Func {
        let outer = self.profile.enter(func, self.at);
        self.at += self.stretched(self.prices.func[func as usize]);
        outer
    }

    #[inline]
    fn reenter(&mut self, func: Func) -> Func {
        self.profile.reenter(func, self.at)
    }

    #[inline]
    fn leave(&mut self, outer: Func) {
        self.profile.leave(outer, self.at);
    }

    #[inline(always)]
    fn call(&mut self, func: Func) {
        let ps = self.stretched(self.prices.func[func as usize]);
        self.profile.call(func, self.at, ps);
        self.at += ps;
    }

    #[inline]
    fn begin_scan(&mut self) {
        let work = self.stretched(self.prices.scan);
        self.cache.begin_scan(self.at, work);
    }

    #[inline]
    fn next_turn(&mut self) {
        self.at += self.stretched(self.prices.scan);
        let (at, id) = self.cache.next_turn(self.at);
        self.stalled_until(at, id);
    }

    #[inline]
    fn end_scan(&mut self) {
        let (at, id) = self.cache.end_scan(self.at);
        self.stalled_until(at, id);
    }

    #[inline]
    fn group_seen(&mut self) {
        self.at += self.prices.group_record;
    }

    fn lock(&mut self, lock: Lock) {
        let called = self.at;
        self.at += self.stretched(self.prices.func[Func::SpinLock as usize]);
        let asked = self.at;
        self.at = self.locks.lock(lock, self.at);
        self.stalled += self.at - asked;
        if self.at > asked {
            self.waited(asked, Waited::Lock(lock));
        }
        let (Object { kind, a, b }, fields) = places::lock_word(lock);
        let site = Site::new(kind, fields.0, How::Atomic);
        let (id, pattern) = self.places.find(site, a, b, &mut self.cache);
        let (from, before) = (self.at, self.cache.load_misses);
        self.at = self.cache.pass_lock(self.thread, id, pattern, from);
        self.stalled += self.at - from;
        self.waited_for_line(from, id);
        let missed = self.cache.load_misses - before;
        self.profile.missed_in(Func::SpinLock, missed);
        self.profile.call(Func::SpinLock, called, self.at - called);
    }

    fn unlock(&mut self, lock: Lock) {
        let (object, fields) = places::lock_word(lock);
        self.touch(object, fields, Access::Write);
        self.locks
            .unlock(lock, self.cache.seen(self.thread, self.at));
    }

    #[inline]
    fn moment(&mut self) -> u64 {
        self.at
    }

    #[inline]
    fn quota(&mut self, work: QuotaWork, since: u64) {
        if let Some(worked) = &mut self.worked {
            worked.push(Worked::new((since, self.at), self.cpu, work));
        }
    }

    #[inline]
    fn event(&mut self, event: Event) {
        if matches!(event, Event::Switch { .. }) {
            self.at += self.tracer_at_switch;
        }
        self.counters.event(self.at / NS, self.cpu, event);
        if let Some(held) = &mut self.held {
            held.see(self.at, self.cpu, event);
        }
        if let Some(seen) = &mut self.seen {
            seen.push((self.at, event));
        }
        self.at += self.tracer;
        if let Event::Switch { prev, next, .. } = event {
            self.context_switch(prev, next);
        }
    }
}

impl SimHost {
    /// Keeps a tracepoint of the machine's own (fork, exit), without the tracer's cost.
    pub fn note(&mut self, event: Event) {
        self.counters.event(self.at / NS, self.cpu, event);
    }
}

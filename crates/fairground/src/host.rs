//! What the engine asks of whoever runs it.

use crate::event::{Event, QuotaWork};
use crate::task::Task;
use crate::value::{Cpu, TgId};

pub use crate::place::{Access, Fields, Func, Lock, Object};

/// The engine's only way out. All calls go down and return; none calls the engine.
///
/// The host calls an entry point of [`sched`](crate::sched) on behalf of one CPU, the one in
/// [`Cx::cpu`](crate::cx::Cx). While that call lasts
///
/// 1. `clock` may be read at any time; it never runs backwards on one CPU;
/// 2. `enter`/`leave` bracket functions, properly nested; `touch` happens inside one of them;
/// 3. `lock`/`unlock` bracket the time in which a queue, or a group's pool of quota, is held, and
///    `begin_lockless`/`end_lockless` the use of a queue where the kernel takes no lock; at most
///    one queue is held, or used so, and at most one pool inside of that;
/// 4. `resched`, `start_timer`, `cancel_timer`, `kick` are requests: they take effect after the
///    entry point has returned, when the host calls the matching entry point.
///
/// An IPI to another CPU may be on its way before the entry point has returned, except that for a
/// wake-up, which comes after the task is on the list ([`kick`](Host::kick)).
///
/// On one CPU no entry point is called within another, by an interrupt say. Of one group, only one
/// CPU at a time writes an attribute: the words of the group are atomic each, but a change is of
/// several, and of a count of groups with a quota.
///
/// A host whose CPUs are never inside the engine at one time implements `clock`, `random`, the
/// requests and `park`; everything else has an empty default that compiles to nothing. One whose
/// CPUs run in parallel implements the four of rule 3 too: they are the engine's only mutual
/// exclusion.
pub trait Host {
    /// The scheduler clock of the calling CPU, ns. It has to begin at
    /// [`CLOCK_BEGINS`](crate::rq::CLOCK_BEGINS) or later: to words like the time of a last update,
    /// 0 says "never", and load tracking counts in that unit.
    ///
    /// It is steady: nobody sets it, and it stands still while the machine is suspended, since
    /// whoever runs is charged for all that passes. Clocks of two CPUs are close: a call for
    /// another CPU's queue reads that of the caller, and the queue's own time then stands still
    /// until the clock of its CPU has caught up. Where wake-ups cross CPUs all the time, each moves
    /// some of what runs to another account: measured, with one in a millisecond on four CPUs, a
    /// group is charged 3 % more or less than it ran where clocks differ by 2 ms, 7 % where by 5.
    /// With debug assertions a difference of more than 100 ms is a panic.
    ///
    /// A host that goes on after a gap, from a snapshot say, takes the gap off its clock. If it
    /// does not, nothing panics, but the gap is charged to who runs, and its group's quota is
    /// spent. Those who waited meanwhile then come first for as long as the gap was, and so does
    /// everybody who was there before newcomers: they begin at the mean of their queue, to which
    /// the gap belongs now. A gap of more than 104 days (2^53 ns) exceeds what the sums of a queue
    /// hold, as in the kernel: then the order of its tasks means nothing until those that ran have
    /// left it.
    fn clock(&mut self) -> u64;

    /// The number of ticks of `tick_ns` since boot (`jiffies`), as last counted. A kernel reads a
    /// word that it has, which is cheaper than a clock.
    #[inline]
    fn jiffies(&mut self, tick_ns: u64) -> u64 {
        self.clock() / tick_ns
    }

    /// The CPU should call [`schedule`](crate::sched::schedule) soon; an IPI if it is another one.
    /// This comes once until that CPU has switched, so it may not be dropped: nothing repeats it.
    fn resched(&mut self, cpu: Cpu);

    /// Takes back a task that has finally left its queue: to sleep or to stop, or because it has
    /// exited. One that has exited or stopped comes within the [`schedule`](crate::sched::schedule)
    /// that was told so; a sleeper may come later, whichever CPU lets it go. One that has exited
    /// goes to [`task_dead`](crate::sched::task_dead), not to those who can be woken.
    ///
    /// A queue is locked meanwhile, so this waits for no lock under which the engine is called, as
    /// that of a task may be ([`wake_queued`](crate::sched::wake_queued)).
    fn park(&mut self, task: Task);

    /// Asks for `timer` to be delivered to [`run_timer`](crate::sched::run_timer) at or after
    /// `at_ns`, on this CPU; replaces an earlier request.
    fn start_timer(&mut self, timer: Timer, at_ns: u64);

    /// Withdraws a request.
    fn cancel_timer(&mut self, timer: Timer);

    /// Asks for work on `cpu`, by IPI if it is another one. Requests of one kind for one CPU that
    /// are still to be done may be merged into one: what is to be done is with the CPU's queue, or
    /// on the host's list of wake-ups, and one call does all of it. One that comes twice finds
    /// nothing left to do. None may be dropped.
    ///
    /// [`Kick::Wakeups`] of [`ttwu_queue`](crate::sched::ttwu_queue) comes after the task is on the
    /// list. That of [`ttwu_queue_wakelist`](crate::sched::ttwu_queue_wakelist) and
    /// [`ttwu_on_cpu`](crate::sched::ttwu_on_cpu) comes before, as the host learns of it from their
    /// answer: where CPUs run in parallel, an IPI that is served in between would find nothing and
    /// the task would stay on the list. So the host either sends that IPI after it has put the task
    /// there, or holds the lock of the list from before the call until then.
    fn kick(&mut self, cpu: Cpu, work: Kick);

    /// A random number, each of a `u32` as likely: for when the period of a new quota begins, and
    /// for how often a newly idle CPU searches where that goes by success (`newidle_proportional`).
    fn random(&mut self) -> u32;

    /// A place is touched.
    #[inline]
    fn touch(&mut self, object: Object, fields: Fields, access: Access) {
        let _ = (object, fields, access);
    }

    /// One function reads `reads` of a place, and reads and writes `updates`, as compiled code does
    /// in one pass: a line that has fields of both is loaded once. The sets have no field in
    /// common.
    #[inline]
    fn touch_mixed(&mut self, object: Object, reads: Fields, updates: Fields) {
        self.touch(object, reads, Access::Read);
        self.touch(object, updates, Access::Update);
    }

    /// A function is entered; the answer goes to `leave`.
    #[inline]
    fn enter(&mut self, func: Func) -> Func {
        func
    }

    /// A function goes on that an earlier call on behalf of this CPU has entered and left
    /// unfinished ([`Later`](crate::sched::Later)); the answer goes to `leave`.
    #[inline]
    fn reenter(&mut self, func: Func) -> Func {
        func
    }

    /// The function entered by the matching `enter` is left.
    #[inline]
    fn leave(&mut self, outer: Func) {
        let _ = outer;
    }

    /// A function is entered and left again, with nothing to report in between.
    #[inline]
    fn call(&mut self, func: Func) {
        let outer = self.enter(func);
        self.leave(outer);
    }

    /// A loop over CPUs begins. Where it reads in one turn does not hang on what it has read in
    /// another, so a core has the loads of several turns on their way at once.
    #[inline]
    fn begin_scan(&mut self) {}

    /// The next turn of the loop begins.
    #[inline]
    fn next_turn(&mut self) {}

    /// The loop is over, and what it has read is needed.
    #[inline]
    fn end_scan(&mut self) {}

    /// Balancing has the sums of one group of CPUs: here a tracer can write down what it saw.
    #[inline]
    fn group_seen(&mut self) {}

    /// A lock is taken. What it guards is reached by who holds it only, so where CPUs run in
    /// parallel this waits until the lock is free.
    #[inline]
    fn lock(&mut self, lock: Lock) {
        let _ = lock;
    }

    /// A lock is released.
    #[inline]
    fn unlock(&mut self, lock: Lock) {
        let _ = lock;
    }

    /// The run queue of `cpu` is about to be used where the kernel takes no lock: words of the
    /// executing CPU's own queue that only it writes, and with `h_load = eager` the walk over
    /// another one before a balance. It costs nothing in the simulator. To Rust two references to
    /// one queue are never right, so a host whose CPUs run in parallel takes the same lock as for
    /// `Lock::Rq`.
    #[inline]
    fn begin_lockless(&mut self, cpu: Cpu) {
        let _ = cpu;
    }

    /// That use is over.
    #[inline]
    fn end_lockless(&mut self, cpu: Cpu) {
        let _ = cpu;
    }

    /// A time stamp of the host's own kind, which comes back as `since` of [`quota`](Self::quota).
    /// The default suits hosts that do not measure.
    #[inline]
    fn moment(&mut self) -> u64 {
        0
    }

    /// A quota has made this CPU do something, from the time stamp `since` on
    /// ([`moment`](Self::moment)).
    #[inline]
    fn quota(&mut self, work: QuotaWork, since: u64) {
        let _ = (work, since);
    }

    /// A tracepoint.
    #[inline]
    fn event(&mut self, event: Event) {
        let _ = event;
    }
}

/// Timers that the engine asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of a group's bandwidth period.
    Period(TgId),
    /// The return of unused runtime to waiting queues.
    Slack(TgId),
    /// The end of the turn of whoever runs on this CPU, by its own timer (`HRTICK`).
    Hrtick(Cpu),
}

/// Work for another CPU, by the entry point that does it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kick {
    /// Tasks were put on its remote wake-up list, or are about to be (see [`Host::kick`]):
    /// [`sched_ttwu_pending`](crate::sched::sched_ttwu_pending).
    Wakeups,
    /// Something for an interrupt or a softirq: [`run_kick`](crate::sched::run_kick).
    Run(KickWork),
    /// Something that needs the running task out of the way:
    /// [`run_stopper`](crate::sched::run_stopper). Until then the stopper counts as a task there,
    /// and the switch that its wake-up asks for is this one: [`Host::resched`] is not called for
    /// it.
    Stop(StopWork),
}

/// What an interrupt or a softirq does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KickWork {
    /// Balance on behalf of the idle CPUs (`nohz_csd`).
    IdleBalance,
    /// Run the balancing softirq soon (on the own CPU).
    BalanceSoftirq,
    /// Give unthrottled queues their runtime (`__cfsb_csd_unthrottle`).
    Unthrottle,
    /// Set its timer for the end of the running task's turn (`__hrtick_start`).
    Hrtick,
}

/// What the stopper does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StopWork {
    /// Push a task to `push_cpu`.
    ActiveBalance,
    /// Move tasks that are not allowed here any more.
    Migrate,
}

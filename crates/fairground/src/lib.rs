//! The Linux fair scheduler as a library that owns no clock, no thread and no file.
//!
//! ```text
//!   a task is woken, a tick,         ┌───────────┐   Switch { prev, next }, Placed
//!   a switch, a timer that fires ──► │ sched::*  │ ──► (the answer: who runs, where)
//!   on behalf of one CPU: Cx         └─────┬─────┘
//!                 System (shared), Rqs     │ Host: clock, resched, park, kick, start_timer;
//!                 (one queue per CPU)      ▼ touch, enter, lock, event (empty in a real kernel)
//! ```
//!
//! The behaviour is a value, [`Features`](policy::Features): Linux 6.18 by default, older kernels
//! and published changes by name ([`PROFILES`](policy::PROFILES),
//! [`CATALOGUE`](policy::CATALOGUE)). Start reading at [`sched`] (what a host calls), [`host`]
//! (what it answers), [`rq`] (what a CPU owns) and [`system`] (what all share); ARCHITECTURE.md
//! in the repository has the map. [`fair`], [`select`], [`balance`], [`math`], [`tree`] and
//! [`place`] are public to be read, and tested against recordings; a host calls nothing there, and
//! they may change with any version. What it needs of them is in [`sched`] and [`host`] too.
//!
//! # What is guaranteed
//!
//! - No entry point fails, but for writes of attributes: what else can be wrong is refused when the
//!   machine is built ([`Features::set`](policy::Features::set),
//!   [`Topology::build`](topology::Topology::build), [`System::new`](system::System::new)). A
//!   group's attributes, and a mask of CPUs of which the machine has none, are refused where they
//!   are written, as the kernel does, and then nothing changes.
//! - No allocation in wake-up, tick, pick, balance, timers, kicks, the stopper and writes of
//!   attributes, once [`Rq::reserve`](rq::Rq::reserve) has
//!   been called for the greatest number of tasks, [`Cx::moving`](cx::Cx::moving) has room, and the
//!   groups have their queues on the CPU ([`online_group`](sched::online_group); else the first
//!   task of a group there makes one).
//! - Same calls, same clock, same random numbers: same decisions, on every platform. Integers only.
//! - A task is in one keeping, a queue's or the host's, and travels by value. No function holds two
//!   queues.
//!
//! # What a host sees to
//!
//! - **A steady clock that does not begin at 0**, but at [`rq::CLOCK_BEGINS`] or later: on one CPU
//!   it never runs back, nobody sets it, and it stands still while the machine is suspended. Those
//!   of two CPUs are close; see [`Host::clock`](host::Host::clock).
//! - **Each request heard**: [`Host::resched`](host::Host::resched) comes once until that CPU has
//!   switched, and each kick at least once; neither may be dropped.
//! - **A wake-up on its list before the IPI**: [`ttwu_queue`](sched::ttwu_queue) sees to it; with
//!   [`ttwu_queue_wakelist`](sched::ttwu_queue_wakelist) and [`ttwu_on_cpu`](sched::ttwu_on_cpu) a
//!   host with CPUs in parallel does, see [`Host::kick`](host::Host::kick).
//! - **A point at which quotas take hold**: [`exit_to_user`](sched::exit_to_user) is called before
//!   any task's code goes on, in a host without user mode too. From 6.18 on, and so by default,
//!   nothing else stops a task whose group has no runtime left; and with `preempt=lazy`
//!   ([`Preemption`](policy::Preemption)) a task makes room there that would else at the next tick.
//! - **Sleep or wake-up**: that a task which decides to sleep is not woken before
//!   [`schedule`](sched::schedule) has been told, by a lock of the host's own; see
//!   [`wake_queued`](sched::wake_queued).
//! - **One call at a time on a CPU**: an entry point is not interrupted by another one there, so
//!   interrupts that call the engine are off meanwhile. The inner call could wait for ever for a
//!   lock that its own CPU holds, or for a task that it has in its hands.
//! - **One writer of a group at a time**: [`set_bandwidth`](sched::set_bandwidth),
//!   [`set_shares`](sched::set_shares) and [`set_idle`](sched::set_idle) of one group are not
//!   called by two CPUs at once, by a lock of the host's own (a kernel's control files have one).
//! - **An end for each task**: one that has exited is parked within that `schedule`, and goes to
//!   [`task_dead`](sched::task_dead); else its load stays on the CPU until it has decayed. Its id
//!   may be another task's after that.
//! - **A place for each task**: a new one ([`Task::new`](task::Task::new)) may run nowhere yet. Its
//!   mask of CPUs holds one of the machine when it is forked, and a group is open
//!   ([`System::open_group`](system::System::open_group)) before a task moves there.
//! - **A stack until it has been left**: `schedule` and its like give the task before free for
//!   other CPUs when the host still executes on its stack, and [`run_stopper`](sched::run_stopper)
//!   does so in the midst of the call. Where CPUs run in parallel a host has a flag of its own for
//!   each task, clears it (`Release`) when the registers are saved and the stack has been left, for
//!   one of the CPU's own, and only then waits for that of the next task (`Acquire`) and loads its
//!   stack. In the other order two CPUs that were given each other's task would wait for ever. The
//!   stack of a task that has exited is not freed in [`Host::park`](host::Host::park) or at
//!   [`task_dead`](sched::task_dead), but after that flag.
//! - **Locks**, where CPUs run in parallel: [`Host::lock`](host::Host::lock) and
//!   [`Host::begin_lockless`](host::Host::begin_lockless) make others wait. They are the engine's
//!   only mutual exclusion; [`Rqs`](rq::Rqs) locks nothing. All other calls of [`Host`](host::Host)
//!   but [`resched`](host::Host::resched) may come under the lock of a queue or a quota, so they
//!   wait for no lock under which the engine is called: a mailbox or a timer wheel has one of its
//!   own.
//! - **Timers on their CPU**: [`Timer::Hrtick`](host::Timer::Hrtick) on the one that it names,
//!   those of groups on any.
//! - **A task's attributes where it is**: `set_nice` and its like are for a task that a queue
//!   keeps, and say if none does; then the host has it, and calls the form for parked tasks. With
//!   CPUs in parallel it may be in the hands of a CPU that has just taken it off its list of
//!   wake-ups: a host that finds it nowhere asks the engine again.
//!
//! Kicks of one kind for one CPU may be merged. Deeper groups need no deeper stack.
//!
//! The target needs 64-bit atomics, whatever the size of its pointers. The feature `std` saves
//! memory with thousands of groups and changes no decision.
//!
//! # Embedding
//!
//! `examples/two_cpus/runtime.rs` is a whole host to copy, with `core` and `alloc` only: CPUs,
//! sleeping and waking, remote wake-ups, the stopper, quota and its timers, idle CPUs without a
//! tick. `examples/parallel` has a thread of the operating system for each CPU and a mutex for each
//! queue, without `unsafe`; `examples/executor.rs` schedules futures by weight. The crate's
//! README.md says how to test yours, and what a host with CPUs in parallel has to see to. The
//! shortest host, `examples/two_tasks.rs`, shares one CPU between two tasks by weight:
//!
//! ```
//! use fairground::cx::Cx;
//! use fairground::host::{Host, Kick, Timer};
//! use fairground::policy::Features;
//! use fairground::rq::Rq;
//! use fairground::sched;
//! use fairground::system::System;
//! use fairground::task::{Policy, Prev, Task, WakeKind};
//! use fairground::topology::{CpuPlace, Machine, Topology};
//! use fairground::value::{Cpu, TgId};
//!
//! /// Not 0, which means "never" in some words.
//! const BEGIN_NS: u64 = 1_000_000;
//!
//! struct OneCpu {
//!     now_ns: u64,
//!     resched: bool,
//! }
//!
//! impl Host for OneCpu {
//!     fn clock(&mut self) -> u64 {
//!         self.now_ns
//!     }
//!     fn resched(&mut self, _: Cpu) {
//!         self.resched = true;
//!     }
//!     fn park(&mut self, _: Task) {} // nobody sleeps here
//!     fn start_timer(&mut self, _: Timer, _: u64) {}
//!     fn cancel_timer(&mut self, _: Timer) {}
//!     fn kick(&mut self, _: Cpu, _: Kick) {}
//!     fn random(&mut self) -> u32 {
//!         0
//!     }
//! }
//!
//! fn main() {
//!     let topology = Topology::build(&Machine {
//!         cpus: vec![CpuPlace::default()],
//!         ..Machine::default()
//!     }).expect("a machine");
//!     let mut sys = System::new(Features::default(), topology);
//!     let ids = [0, -3].map(|nice| (sys.add_task(TgId::ROOT), nice));
//!     let mut rqs = vec![Rq::new(&sys, Cpu(0), BEGIN_NS)];
//!     let mut moving = Vec::with_capacity(sys.features.load_balance.nr_migrate as usize);
//!     let mut host = OneCpu {
//!         now_ns: BEGIN_NS,
//!         resched: false,
//!     };
//!     let mut cx = Cx::new(&sys, &mut host, Cpu(0), &mut moving);
//!     for (id, nice) in ids {
//!         let mut task = Task::new(id, TgId::ROOT, sys.features.tunables.base_slice_ns);
//!         task.body.cpus_allowed = sys.cpus();
//!         task.set_scheduler(Policy::Normal, nice);
//!         sched::sched_fork(&mut cx, &mut rqs, &mut task, None);
//!         let placed = sched::select_cpu(&mut cx, &mut task, None, WakeKind::Fork);
//!         sched::enqueue_woken(&mut cx, &mut rqs, task, placed, WakeKind::Fork);
//!     }
//!     let tick_ns = sys.features.tick_ns();
//!     let mut ran_ns = [0, 0];
//!     let mut running = None;
//!     while cx.host.now_ns < BEGIN_NS + 3_000_000_000 {
//!         if core::mem::take(&mut cx.host.resched) {
//!             running = sched::schedule(&mut cx, &mut rqs, Prev::Runnable).next;
//!         }
//!         cx.host.now_ns += tick_ns;
//!         if let Some(id) = running {
//!             ran_ns[id.idx()] += tick_ns;
//!         }
//!         sched::sched_tick(&mut cx, &mut rqs);
//!     }
//!     for ((id, nice), ns) in ids.iter().zip(ran_ns) {
//!         println!("task {} at nice {nice} ran {} ms", id.0, ns / 1_000_000);
//!     }
//!     // Weights 1024 and 1991: shares 34 % and 66 %.
//!     assert!((1000..1040).contains(&(ran_ns[0] / 1_000_000)));
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("fairground needs a target with 64-bit atomics");

extern crate alloc;
#[cfg(test)]
extern crate self as fairground;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod balance;
pub mod cx;
pub mod event;
pub mod fair;
pub mod host;
#[cfg(test)]
#[path = "../tests/lab/mod.rs"]
mod lab;
pub mod math;
pub mod place;
pub mod policy;
pub mod rq;
pub mod sched;
pub mod select;
pub mod shared;
pub mod system;
pub mod task;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod tree;
pub mod value;

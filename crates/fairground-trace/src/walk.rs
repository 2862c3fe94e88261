//! Walks a recording once and says what each thread did: facts, in order.
//!
//! Switches that are missing (lost events; kernels that do not report the switch from idle of some
//! CPU) are filled in: whoever executes an event is running, since its wake-up if its CPU was idle
//! then, and the time that such a switch takes, else since that event. Times are in nanoseconds on
//! the recording's clock.

use rustc_hash::FxHashMap;

use crate::event::{Context, Event, Kind, State};
use crate::told;
use crate::waits::Waits;

pub use crate::fact::{Fact, ThreadId, Waker};
pub use crate::thread::Thread;
use crate::thread::{At, CpuAt};

/// What is known after the walk.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// All threads, in order of appearance.
    pub threads: Vec<Thread>,
    by_tid: FxHashMap<u32, ThreadId>,
    cpus: Vec<CpuAt>,
    /// How often a CPU went back to a thread that had waited for it.
    returns: Vec<u32>,
    /// Whether a CPU has been idle.
    idled: Vec<bool>,
    /// No wake-up is recorded at all.
    switches_only: bool,
    start: u64,
    /// It is of a simulated run: every wake-up begins with `sched_waking`.
    told: bool,
    /// Where the event is from that is looked at.
    cpu: u32,
    /// Switches that were filled in.
    pub inferred: u64,
    /// Those of them to a thread at its next event, or at [`Kind::On`].
    pub late: u64,
    /// For how long it is not known of each thread whether it still ran, as the switch by which it
    /// left is missing: all of it counts as its CPU time.
    pub unknown_ns: FxHashMap<ThreadId, u64>,
    /// From wake-ups to switches from idle.
    waits: Waits,
}

/// Priority of nice 0.
const NICE_0: i16 = 120;

/// Threads that were preempted, come back so often before one that has never run: that one was not
/// waiting.
const PATIENCE: u32 = 8;

impl Walk {
    /// Walks over `events` and hands each fact to `sink`, with the threads as far as known.
    pub fn over(events: &[Event], cpus: u32, sink: impl FnMut(&[Thread], Fact)) -> Self {
        Self::to(events, cpus, 0, sink)
    }

    /// The same; who runs at the last event runs on until `end`.
    pub fn to(
        events: &[Event],
        cpus: u32,
        end: u64,
        mut sink: impl FnMut(&[Thread], Fact),
    ) -> Self {
        let start = events.first().map_or(0, |e| e.at_ns);
        let mut walk = Self {
            cpus: vec![CpuAt::default(); cpus as usize],
            returns: vec![0; cpus as usize],
            idled: vec![false; cpus as usize],
            switches_only: !events
                .iter()
                .any(|e| matches!(e.kind, Kind::Waking { .. } | Kind::Wakeup { .. })),
            start,
            told: told::is_told(events),
            ..Self::default()
        };
        for cpu in &mut walk.cpus {
            cpu.since = start;
        }
        for event in events {
            walk.event(event, &mut sink);
        }
        let end = events.last().map_or(0, |e| e.at_ns).max(end);
        for cpu in 0..walk.cpus.len() {
            walk.charge(cpu as u32, end, &mut sink);
        }
        walk
    }

    fn event(&mut self, event: &Event, sink: &mut impl FnMut(&[Thread], Fact)) {
        let (at, cpu) = (event.at_ns, event.cpu);
        self.cpu = cpu;
        match event.kind {
            Kind::Switch {
                prev,
                state,
                next,
                prev_prio,
                next_prio,
            } => {
                self.running(cpu, prev, at, sink);
                self.idled[cpu as usize] |= prev == 0 && at > self.start;
                if prev != 0 {
                    let prev = self.thread(prev, at);
                    self.prio(prev, prev_prio, at, sink);
                    self.out(prev, cpu, at, state, sink);
                }
                self.cpus[cpu as usize] = CpuAt::free(at);
                if next != 0 {
                    let next = self.thread(next, at);
                    self.prio(next, next_prio, at, sink);
                    if prev == 0
                        && let Some(since) = self.woken_on(next, cpu)
                    {
                        self.waits.see(at.saturating_sub(since));
                    }
                    self.switch_in(next, cpu, at, false, sink);
                }
            }
            Kind::Waking { tid, prio, .. } => {
                self.running(cpu, event.tid, at, sink);
                let thread = self.thread(tid, at);
                self.prio(thread, prio, at, sink);
                self.woken(thread, event, sink);
            }
            Kind::Wakeup { tid, prio, cpu: to } => {
                self.wakeup(event, (tid, prio, to), false, sink);
            }
            Kind::WakeupNew { tid, prio, cpu: to } => {
                self.wakeup(event, (tid, prio, to), true, sink);
            }
            Kind::Migrate { tid, to, .. } => {
                self.running(cpu, event.tid, at, sink);
                let thread = self.thread(tid, at);
                if let At::Runnable { cpu, .. } = &mut self.threads[thread].state {
                    *cpu = to;
                }
                sink(&self.threads, Fact::Migrated { thread, to, at });
            }
            Kind::Fork { parent, child } => {
                self.running(cpu, event.tid, at, sink);
                let parent = (parent != 0).then(|| self.thread(parent, at));
                let child = self.new_thread(child, at);
                self.threads[child].forked = true;
                sink(&self.threads, Fact::Forked { parent, child, at });
            }
            Kind::Exit { tid } => self.running(cpu, tid, at, sink),
            Kind::On => self.running(cpu, event.tid, at, sink),
            Kind::Told(what) => {
                let thread = self.thread(event.tid, at);
                sink(&self.threads, Fact::Told { thread, at, what });
            }
        }
    }

    /// A thread, its priority and its CPU: it is runnable there.
    fn wakeup(
        &mut self,
        event: &Event,
        (tid, prio, to): (u32, i16, u32),
        new: bool,
        sink: &mut impl FnMut(&[Thread], Fact),
    ) {
        let at = event.at_ns;
        self.running(event.cpu, event.tid, at, sink);
        let thread = self.thread(tid, at);
        self.prio(thread, prio, at, sink);
        if self.told && self.threads[thread].state == (At::Blocked { waking: false }) {
            // It has run meanwhile: a simulated CPU that takes in many says so at the end.
            return;
        }
        if new && !self.threads[thread].forked {
            self.forked(thread, event, sink);
        } else {
            self.woken(thread, event, sink);
        }
        if matches!(self.threads[thread].state, At::Blocked { .. } | At::Unknown) {
            self.threads[thread].state = At::Runnable {
                cpu: to,
                since: at,
                woken: true,
            };
            let cpu = to;
            sink(&self.threads, Fact::Runnable { thread, cpu, at });
        }
    }

    /// A new thread is first seen when it becomes runnable.
    fn forked(&mut self, child: ThreadId, event: &Event, sink: &mut impl FnMut(&[Thread], Fact)) {
        let parent = (event.tid != 0).then(|| self.thread(event.tid, event.at_ns));
        self.threads[child].forked = true;
        self.threads[child].state = At::Unknown;
        let at = event.at_ns;
        sink(&self.threads, Fact::Forked { parent, child, at });
    }

    fn woken(&mut self, thread: ThreadId, event: &Event, sink: &mut impl FnMut(&[Thread], Fact)) {
        let unseen = self.threads[thread].state == At::Unknown && !self.threads[thread].forked;
        let asleep = self.threads[thread].state == At::Blocked { waking: false };
        if !unseen && !asleep {
            return;
        }
        self.threads[thread].state = At::Blocked { waking: true };
        let by = match (event.context, self.by_tid.get(&event.tid)) {
            (Context::Interrupt, _) | (_, None) => Waker::Interrupt,
            (Context::Task, Some(by)) => Waker::Thread(*by),
            (Context::Unknown, Some(by)) => Waker::Perhaps(*by),
        };
        let (at, cpu) = (event.at_ns, event.cpu);
        sink(
            &self.threads,
            Fact::Woken {
                thread,
                at,
                by,
                cpu,
            },
        );
    }

    /// `tid` is current on `cpu` at `at`: if nobody said that it got there, it is said now.
    fn running(&mut self, cpu: u32, tid: u32, at: u64, sink: &mut impl FnMut(&[Thread], Fact)) {
        let now = self.cpus[cpu as usize];
        let current = (tid != 0).then(|| self.thread(tid, at));
        if now.known && now.current == current {
            self.cpus[cpu as usize].seen = at;
            return;
        }
        if !now.known {
            // The first that is heard of this CPU: a thread of which nothing is known has been
            // there since the start, another one since it was woken or, at the least, now.
            let since = match current {
                None => self.start,
                Some(t) if self.threads[t].state == At::Unknown && !self.threads[t].forked => {
                    self.start
                }
                Some(t) => self.woken_on(t, cpu).unwrap_or(at),
            };
            self.cpus[cpu as usize] = CpuAt::free(since);
            if let Some(thread) = current {
                self.switch_in(thread, cpu, since, since > self.start, sink);
            }
            return;
        }
        let Some(thread) = current else {
            // Idle, though a thread was thought to run: when it left is not known.
            if let Some(gone) = now.current {
                self.inferred += 1;
                self.unseen(gone, now, at);
                self.out(gone, cpu, at, State::Blocked(b'?'), sink);
            }
            self.cpus[cpu as usize] = CpuAt::free(at);
            return;
        };
        let idle = now.current.is_none();
        let woken = self
            .woken_on(thread, cpu)
            .filter(|since| idle && *since >= now.since);
        // When it got there is not recorded: it takes as long as with others.
        let usual = self.waits.usual();
        let since = woken.map_or(at, |woken| at.min(woken.saturating_add(usual)));
        if let Some(gone) = now.current {
            self.out(gone, cpu, since, State::Runnable, sink);
        }
        self.inferred += 1;
        self.late += u64::from(woken.is_none());
        self.switch_in(thread, cpu, since, true, sink);
    }

    /// `gone` has left its CPU up to `at`: since it was last seen there, nothing says that it ran.
    fn unseen(&mut self, gone: ThreadId, on: CpuAt, at: u64) {
        let ns = at.saturating_sub(on.since.max(on.seen));
        *self.unknown_ns.entry(gone).or_default() += ns;
    }

    /// Whether a thread that is first seen as it comes to `cpu` was asleep, and its wake-up is not
    /// in the recording: nobody waits from its start while others get the CPU again and again.
    /// Where no wake-up is recorded, an idle CPU says that it was asleep; else one that waited
    /// beside it waited for quota.
    fn has_slept(&self, thread: ThreadId, cpu: u32) -> bool {
        let about = &self.threads[thread];
        let unknown = about.state == At::Unknown && !about.forked;
        let idled = self.switches_only && self.idled[cpu as usize];
        unknown && (idled || self.returns[cpu as usize] > PATIENCE)
    }

    /// Since when `thread` has waited for `cpu` after a wake-up.
    fn woken_on(&self, thread: ThreadId, on: u32) -> Option<u64> {
        match self.threads[thread].state {
            At::Runnable {
                cpu,
                since,
                woken: true,
            } if cpu == on => Some(since),
            _ => None,
        }
    }

    fn switch_in(
        &mut self,
        thread: ThreadId,
        cpu: u32,
        at: u64,
        inferred: bool,
        sink: &mut impl FnMut(&[Thread], Fact),
    ) {
        let woken = match self.threads[thread].state {
            At::Runnable {
                since, woken: true, ..
            } => Some(since),
            state if state == (At::Blocked { waking: false }) || self.has_slept(thread, cpu) => {
                let by = Waker::Unseen;
                sink(
                    &self.threads,
                    Fact::Woken {
                        thread,
                        at,
                        by,
                        cpu,
                    },
                );
                None
            }
            _ => None,
        };
        if matches!(
            self.threads[thread].state,
            At::Runnable { woken: false, .. }
        ) {
            self.returns[cpu as usize] += 1;
        }
        // A thread runs in one place: if it was thought to run elsewhere, it has left there.
        let runs = self.threads[thread].state == At::Running;
        let mut cpus = self.cpus.iter().take(if runs { usize::MAX } else { 0 });
        let elsewhere = cpus.position(|c| c.current == Some(thread));
        if let Some(other) = elsewhere {
            self.charge(other as u32, at, sink);
            self.cpus[other].current = None;
        }
        self.threads[thread].state = At::Running;
        self.cpus[cpu as usize] = CpuAt {
            known: true,
            current: Some(thread),
            ..CpuAt::free(at)
        };
        sink(
            &self.threads,
            Fact::In {
                thread,
                cpu,
                at,
                woken,
                inferred,
            },
        );
    }

    fn out(
        &mut self,
        thread: ThreadId,
        cpu: u32,
        at: u64,
        state: State,
        sink: &mut impl FnMut(&[Thread], Fact),
    ) {
        self.charge(cpu, at, sink);
        self.cpus[cpu as usize].current = None;
        self.threads[thread].state = match state {
            State::Runnable => At::Runnable {
                cpu,
                since: at,
                woken: false,
            },
            State::Blocked(_) => At::Blocked { waking: false },
            State::Dead => At::Dead,
        };
        sink(
            &self.threads,
            Fact::Out {
                thread,
                cpu,
                at,
                state,
            },
        );
        if state == State::Dead {
            // The next thread with this number is another one.
            self.by_tid.remove(&self.threads[thread].tid);
        }
    }

    /// The thread on `cpu` has run up to `to`.
    fn charge(&mut self, cpu: u32, to: u64, sink: &mut impl FnMut(&[Thread], Fact)) {
        let now = &mut self.cpus[cpu as usize];
        let from = std::mem::replace(&mut now.since, to);
        if let Some(thread) = now.current
            && to > from
        {
            sink(
                &self.threads,
                Fact::Ran {
                    thread,
                    cpu,
                    from,
                    to,
                },
            );
        }
    }

    fn thread(&mut self, tid: u32, at: u64) -> ThreadId {
        match self.by_tid.get(&tid) {
            Some(thread) => *thread,
            None => self.new_thread(tid, at),
        }
    }

    /// An event names the thread's priority: the first is where it begins, another one is a change
    /// since.
    fn prio(
        &mut self,
        thread: ThreadId,
        prio: i16,
        at: u64,
        sink: &mut impl FnMut(&[Thread], Fact),
    ) {
        let about = &mut self.threads[thread];
        match about.prio_now.replace(prio) {
            None => about.prio = prio,
            Some(before) if before != prio => {
                sink(&self.threads, Fact::Reniced { thread, prio, at });
            }
            Some(_) => {}
        }
    }

    fn new_thread(&mut self, tid: u32, at: u64) -> ThreadId {
        let (born_ns, state, forked, born_on) = (at, At::Unknown, false, self.cpu);
        self.threads.push(Thread {
            tid,
            prio: NICE_0,
            prio_now: None,
            born_ns,
            forked,
            born_on,
            state,
        });
        self.by_tid.insert(tid, self.threads.len() - 1);
        self.threads.len() - 1
    }
}

//! The recording, thread by thread: stretches of computing, wake-ups that it causes, sleeps.

use crate::event::{Event, State};
use crate::measure::{Sight, sights_of};
use crate::walk::{Fact, Thread, ThreadId, Waker, Walk};

/// What a thread did, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It used a CPU for so long; waiting for one does not count.
    Run(u64),
    /// It woke a thread, or an interrupt that met it did.
    Wake {
        /// Whom.
        thread: ThreadId,
        /// Whether it may have been an interrupt.
        perhaps: bool,
        /// When.
        at: u64,
    },
    /// It created a thread.
    Fork(ThreadId),
    /// It went to sleep and may have released this thread before: one that had woken it, was
    /// preempted by it, and so needed no wake-up.
    Release(ThreadId),
    /// The other side of [`Step::Release`]: here it goes on after the preemption.
    Released(ThreadId),
    /// It left its CPU, runnable, though nobody had come to it since it got there: at a tick, or by
    /// itself (`sched_yield`).
    Left(u64),
    /// Here it is first seen on a second CPU.
    Moved,
    /// It slept.
    Block(Block),
}

/// A sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// From.
    pub from: u64,
    /// To, and what ended it; `None`: it lasts until the end.
    pub woken: Option<(u64, Waker)>,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// What it did.
    pub steps: Vec<Step>,
    /// Who created it inside the recording.
    pub parent: Option<ThreadId>,
    /// It ended inside the recording.
    pub exited: bool,
    /// It was running or runnable when the recording began.
    pub awake_at_start: bool,
    /// It was running or runnable when the recording ended.
    pub awake_at_end: bool,
    /// CPUs on which it ran.
    pub ran_on: Vec<u32>,
    /// What it had to put up with on the first of them.
    pub beside_idle: BesideIdle,
    /// Switches away while runnable.
    pub preempted_times: u64,
    /// All CPU time.
    pub cpu_ns: u64,
    running_since: Option<u64>,
    waiting_since: Option<u64>,
    /// Whom it has woken since it last got a CPU or slept.
    woke: Vec<ThreadId>,
    /// It waits since a preemption.
    preempted: bool,
    /// [`Logs::idle_ns`] when it began to wait.
    idle_before: u64,
}

/// What a thread would not have to put up with if it might run anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BesideIdle {
    /// Time that it waited for its CPU while another one was idle.
    pub waited_ns: u64,
    /// Wake-ups to its CPU, which was busy, though another one was idle.
    pub woken: u64,
}

/// All threads of a recording.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    /// Who they are.
    pub threads: Vec<Thread>,
    /// What they did, by the same index.
    pub logs: Vec<Log>,
    /// First and last time.
    pub span: (u64, u64),
    /// Times of involuntary switches away from a CPU to which nobody had come: ticks, mostly.
    pub preempted_at: Vec<u64>,
    /// Switches that were filled in.
    pub inferred: u64,
    busy: Vec<bool>,
    /// CPUs of which it is known when they are idle.
    seen: Vec<bool>,
    /// Whether somebody has come to the CPU since its last switch.
    come: Vec<bool>,
    /// Time up to `idle_at` at which any CPU was idle.
    idle_ns: u64,
    idle_at: u64,
}

impl Logs {
    /// Of events in order of time.
    #[must_use]
    pub fn of(events: &[Event], cpus: u32) -> Self {
        let at = |e: Option<&Event>| e.map_or(0, |e| e.at_ns);
        let span = (at(events.first()), at(events.last()));
        let mut all = Self {
            span,
            busy: vec![false; cpus as usize],
            seen: sights_of(events, cpus)
                .iter()
                .map(|s| *s == Sight::All)
                .collect(),
            come: vec![false; cpus as usize],
            idle_at: span.0,
            ..Self::default()
        };
        let walk = Walk::over(events, cpus, |threads, fact| {
            all.logs.resize_with(threads.len(), Log::default);
            all.fact(fact);
        });
        all.logs.resize_with(walk.threads.len(), Log::default);
        for log in &mut all.logs {
            log.awake_at_end = log.running_since.is_some() || log.waiting_since.is_some();
            log.flush(span.1);
        }
        all.threads = walk.threads;
        all.inferred = walk.inferred;
        all
    }

    fn fact(&mut self, fact: Fact) {
        match fact {
            Fact::Ran {
                thread, from, to, ..
            } => self.logs[thread].cpu_ns += to - from,
            Fact::In {
                thread, cpu, at, ..
            } => self.switch_in(thread, cpu, at),
            Fact::Out {
                thread,
                cpu,
                at,
                state,
            } => self.out(thread, cpu, at, state),
            Fact::Woken { thread, at, by, .. } => self.woken(thread, at, by),
            Fact::Runnable { thread, cpu, at } => {
                let idle = self.idle_until(at);
                self.come(cpu);
                let log = &mut self.logs[thread];
                log.waiting_since = Some(at);
                log.idle_before = self.idle_ns;
                log.preempted = false;
                if log.ran_on.len() < 2 {
                    log.beside_idle.woken +=
                        u64::from(idle && self.busy[cpu as usize % self.busy.len()]);
                }
            }
            Fact::Forked { parent, child, at } => {
                self.logs[child].parent = parent;
                if let Some(parent) = parent {
                    let log = &mut self.logs[parent];
                    log.flush(at);
                    log.steps.push(Step::Fork(child));
                }
            }
            Fact::Migrated { to, .. } => self.come(to),
        }
    }

    fn come(&mut self, cpu: u32) {
        if let Some(come) = self.come.get_mut(cpu as usize) {
            *come = true;
        }
    }

    /// Counts idle time up to `at`, before any CPU changes; whether one is idle.
    fn idle_until(&mut self, at: u64) -> bool {
        let idle = self
            .busy
            .iter()
            .zip(&self.seen)
            .any(|(busy, seen)| *seen && !busy);
        self.idle_ns += u64::from(idle) * at.saturating_sub(self.idle_at);
        self.idle_at = self.idle_at.max(at);
        idle
    }

    fn switch_in(&mut self, thread: ThreadId, cpu: u32, at: u64) {
        let start = self.span.0;
        self.idle_until(at);
        self.busy[cpu as usize] = true;
        self.come[cpu as usize] = false;
        let log = &mut self.logs[thread];
        if log.steps.is_empty() && log.parent.is_none() && log.running_since.is_none() {
            log.awake_at_start |= log.waiting_since.is_none() || at == start;
        }
        let waited = log.waiting_since.take().is_some();
        if waited && (log.ran_on.is_empty() || log.ran_on == [cpu]) {
            log.beside_idle.waited_ns += self.idle_ns - log.idle_before;
        }
        log.woke.clear();
        log.running_since = Some(at);
        if !log.ran_on.contains(&cpu) {
            if log.ran_on.len() == 1 {
                // What it slept through before may have ended where it was let go.
                let asleep = matches!(log.steps.last(), Some(Step::Block(_)));
                let place = log.steps.len() - usize::from(asleep);
                log.steps.insert(place, Step::Moved);
            }
            log.ran_on.push(cpu);
        }
    }

    fn out(&mut self, thread: ThreadId, cpu: u32, at: u64, state: State) {
        self.idle_until(at);
        self.busy[cpu as usize] = false;
        let come = std::mem::take(&mut self.come[cpu as usize]);
        let log = &mut self.logs[thread];
        log.flush(at);
        log.running_since = None;
        match state {
            State::Runnable => {
                log.waiting_since = Some(at);
                log.idle_before = self.idle_ns;
                log.preempted = true;
                log.preempted_times += 1;
                if !come {
                    log.steps.push(Step::Left(at));
                    self.preempted_at.push(at);
                }
            }
            State::Blocked(_) => {
                self.release(thread);
                let block = Block {
                    from: at,
                    woken: None,
                };
                self.logs[thread].steps.push(Step::Block(block));
            }
            State::Dead => log.exited = true,
        }
    }

    /// `thread` goes to sleep. If it was woken by one that it preempted, and that waits still, then
    /// whatever it did for that one needed no wake-up and is not in the recording.
    fn release(&mut self, thread: ThreadId) {
        let log = &self.logs[thread];
        let last = log.blocks().next_back().and_then(|b| b.woken);
        let Some((_, Waker::Thread(by) | Waker::Perhaps(by))) = last else {
            return;
        };
        let waits = &self.logs[by];
        let preempted = waits.preempted && waits.waiting_since.is_some();
        if by == thread || !preempted || !waits.woke.contains(&thread) || log.woke.contains(&by) {
            return;
        }
        self.logs[thread].steps.push(Step::Release(by));
        let other = &mut self.logs[by];
        other.woke.retain(|w| *w != thread);
        other.steps.push(Step::Released(thread));
    }

    fn woken(&mut self, thread: ThreadId, at: u64, by: Waker) {
        let start = self.span.0;
        let log = &mut self.logs[thread];
        if log.steps.is_empty() && log.parent.is_none() {
            // Asleep when the recording began.
            log.steps.push(Step::Block(Block {
                from: start,
                woken: None,
            }));
        }
        let Some(Step::Block(block)) = log.steps.last_mut() else {
            return;
        };
        if block.woken.is_some() {
            return;
        }
        block.woken = Some((at, by));
        let (waker, perhaps) = match by {
            Waker::Thread(waker) => (waker, false),
            Waker::Perhaps(waker) => (waker, true),
            Waker::Interrupt | Waker::Unseen => return,
        };
        let log = &mut self.logs[waker];
        log.flush(at);
        log.woke.push(thread);
        log.steps.push(Step::Wake {
            thread,
            perhaps,
            at,
        });
    }
}

impl Log {
    /// Up to `at` it has computed.
    fn flush(&mut self, at: u64) {
        let Some(since) = &mut self.running_since else {
            return;
        };
        let ran = at.saturating_sub(*since);
        *since = at;
        if ran == 0 {
            return;
        }
        match self.steps.last_mut() {
            Some(Step::Run(ns)) => *ns += ran,
            _ => self.steps.push(Step::Run(ran)),
        }
    }

    /// Its sleeps, in order.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.steps.iter().filter_map(|step| match step {
            Step::Block(block) => Some(block),
            _ => None,
        })
    }
}

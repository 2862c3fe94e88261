//! The recording, thread by thread: stretches of computing, wake-ups that it causes, sleeps.

use crate::event::{Event, State};
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
    /// Time that it waited for a CPU.
    pub waited: u64,
    /// Wake-ups to a busy CPU though another one was idle.
    pub woken_beside_idle: u64,
    /// All CPU time.
    pub cpu_ns: u64,
    running_since: Option<u64>,
    waiting_since: Option<u64>,
    /// Whom it has woken since it last got a CPU or slept.
    woke: Vec<ThreadId>,
    /// It waits since a preemption.
    preempted: bool,
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
    /// Times of involuntary switches.
    pub preempted_at: Vec<u64>,
    /// Switches that were filled in.
    pub inferred: u64,
    busy: Vec<bool>,
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
                let idle = self.busy.iter().any(|busy| !busy);
                let log = &mut self.logs[thread];
                log.waiting_since = Some(at);
                log.preempted = false;
                log.woken_beside_idle +=
                    u64::from(idle && self.busy[cpu as usize % self.busy.len()]);
            }
            Fact::Forked { parent, child, at } => {
                self.logs[child].parent = parent;
                if let Some(parent) = parent {
                    let log = &mut self.logs[parent];
                    log.flush(at);
                    log.steps.push(Step::Fork(child));
                }
            }
            Fact::Migrated { .. } => {}
        }
    }

    fn switch_in(&mut self, thread: ThreadId, cpu: u32, at: u64) {
        let start = self.span.0;
        self.busy[cpu as usize] = true;
        let log = &mut self.logs[thread];
        if log.steps.is_empty() && log.parent.is_none() && log.running_since.is_none() {
            log.awake_at_start |= log.waiting_since.is_none() || at == start;
        }
        if let Some(since) = log.waiting_since.take() {
            log.waited += at - since;
        }
        log.woke.clear();
        log.running_since = Some(at);
        if !log.ran_on.contains(&cpu) {
            log.ran_on.push(cpu);
        }
    }

    fn out(&mut self, thread: ThreadId, cpu: u32, at: u64, state: State) {
        self.busy[cpu as usize] = false;
        let log = &mut self.logs[thread];
        log.flush(at);
        log.running_since = None;
        match state {
            State::Runnable => {
                log.waiting_since = Some(at);
                log.preempted = true;
                self.preempted_at.push(at);
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

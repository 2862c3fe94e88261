//! The recording, thread by thread: stretches of computing, wake-ups that it causes, sleeps.

use crate::act::What;
use crate::event::{Event, State, Timer, Told};
use crate::measure::{Sight, sights_of};
use crate::told::{self, NR_SCHED_YIELD};
use crate::walk::{Fact, Thread, ThreadId, Waker, Walk};

pub use super::step::{Block, Step};

/// A run ends at the latest after so many times the recording's length, and this.
pub const LENGTHS_MAX: u64 = 3;
const ROOM_NS: u64 = 20_000_000;

/// Priorities below are real time.
pub const RT_PRIOS: i16 = 100;

/// A call of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    /// On a CPU since then.
    since: Option<u64>,
    /// CPU time of it before.
    ns: u64,
    /// It is in the recording by what it did: the replay does the same.
    shows: bool,
    yields: bool,
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
    /// How long on each of them.
    pub(super) ran_ns: Vec<u64>,
    /// CPUs on which it was woken, and how often.
    pub(super) woken_on: Vec<(u32, u64)>,
    /// What it had to put up with on the first of them.
    pub beside_idle: BesideIdle,
    /// Switches away while runnable.
    pub preempted_times: u64,
    /// It came to a real-time priority later.
    pub to_real_time: bool,
    /// All CPU time.
    pub cpu_ns: u64,
    /// What it does between tracepoints is told: only that counts as computing.
    told: bool,
    in_user_since: Option<u64>,
    /// It left user space then, and has done nothing since.
    left_user_at: Option<u64>,
    /// What it computes next is another stretch of its program.
    apart: bool,
    worked: Option<u64>,
    /// It is about what it began to do with others.
    in_act: bool,
    call: Option<Call>,
    timer: Option<(u64, Timer)>,
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
    /// What threads do between tracepoints is told.
    pub told: bool,
    busy: Vec<bool>,
    /// How long a thread ran on each CPU.
    pub(super) busy_ns: Vec<u64>,
    /// CPUs of which it is known when they are idle.
    pub(super) seen: Vec<bool>,
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
            told: told::is_told(events),
            busy: vec![false; cpus as usize],
            busy_ns: vec![0; cpus as usize],
            seen: sights_of(events, cpus)
                .iter()
                .map(|s| *s == Sight::All)
                .collect(),
            come: vec![false; cpus as usize],
            idle_at: span.0,
            ..Self::default()
        };
        let log = Log {
            told: all.told,
            ..Log::default()
        };
        let walk = Walk::over(events, cpus, |threads, fact| {
            all.logs.resize(threads.len(), log.clone());
            all.fact(fact);
        });
        all.logs.resize(walk.threads.len(), log);
        for log in &mut all.logs {
            log.awake_at_end = log.running_since.is_some() || log.waiting_since.is_some();
            log.flush(span.1);
            // It yielded and did not come back: it waits for quota, or the run has ended.
            if log.call.take().is_some_and(|call| call.yields) {
                log.steps.push(Step::Yield);
            }
        }
        all.threads = walk.threads;
        all.inferred = walk.inferred;
        all
    }

    fn fact(&mut self, fact: Fact) {
        match fact {
            Fact::Ran {
                thread,
                cpu,
                from,
                to,
            } => self.ran(thread, cpu, to - from),
            Fact::In {
                thread, cpu, at, ..
            } => self.switch_in(thread, cpu, at),
            Fact::Out {
                thread,
                cpu,
                at,
                state,
            } => self.out(thread, cpu, at, state),
            Fact::Woken {
                thread,
                at,
                by,
                cpu,
            } => {
                self.logs[thread].count_woken(by, cpu);
                self.woken(thread, at, by);
            }
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
                    log.call_shows();
                    log.steps.push(Step::Fork(child));
                }
            }
            Fact::Migrated { to, .. } => self.come(to),
            Fact::Reniced { thread, prio, at } => self.logs[thread].reniced(prio, at),
            Fact::Told { thread, at, what } => self.logs[thread].tell(at, what),
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
        if let Some(call) = &mut log.call {
            call.since = Some(at);
        }
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
        if let Some(call) = &mut log.call {
            call.ns += call.since.take().map_or(0, |since| at - since);
        }
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
                let log = &mut self.logs[thread];
                log.call_shows();
                let block = Block {
                    from: at,
                    woken: None,
                    timer: log.timer.take(),
                    in_act: log.in_act,
                };
                log.steps.push(Step::Block(block));
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
                timer: None,
                in_act: false,
            }));
        }
        let Some(Step::Block(block)) = log.steps.last_mut() else {
            return;
        };
        if block.woken.is_some() {
            return;
        }
        block.woken = Some((at, by));
        // What it waits for is told: who woke it did that by an act of its own.
        if self.told && (block.in_act || block.timed_out().is_some()) {
            return;
        }
        let (waker, perhaps) = match by {
            Waker::Thread(waker) => (waker, false),
            Waker::Perhaps(waker) => (waker, true),
            Waker::Interrupt | Waker::Unseen => return,
        };
        let log = &mut self.logs[waker];
        log.flush(at);
        log.call_shows();
        log.woke.push(thread);
        log.steps.push(Step::Wake {
            thread,
            perhaps,
            at,
        });
    }
}

impl Logs {
    /// Who was awake when the recording ended would have computed on: of a simulated run it is
    /// known that it was the run that ended.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.told && self.logs.iter().any(|log| log.awake_at_end)
    }

    /// Whether it is of a simulated run, from its beginning.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut all = self.threads.iter().zip(&self.logs);
        self.told && all.all(|(about, log)| about.forked || log.parent.is_some())
    }

    /// Whether all threads have come to their ends.
    #[must_use]
    pub fn all_exit(&self) -> bool {
        self.logs.iter().all(Log::has_ended)
    }

    /// How long a run of it takes at most, ns.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        let span = self.span.1 - self.span.0;
        match self.is_cut() {
            true => span,
            false => span * LENGTHS_MAX + ROOM_NS,
        }
    }
}

impl Log {
    /// Whether it came to its end, or was on the way out.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let exit = |step: &Step| matches!(step, Step::Act(act) if act.what == What::Exit);
        self.exited || self.steps.last().is_some_and(exit)
    }

    /// What it says of itself.
    fn tell(&mut self, at: u64, what: Told) {
        match what {
            Told::UserEnter => {
                self.end_call(at);
                (self.in_act, self.in_user_since) = (false, Some(at));
                // An interrupt takes time: only the end of a stretch of its program takes none.
                self.apart = self.left_user_at.take() == Some(at);
            }
            Told::UserExit => {
                if let Some(since) = self.in_user_since.take() {
                    // Less than a nanosecond may be left from before.
                    let most = at.saturating_sub(since).saturating_add(1);
                    let work = self.worked.take().unwrap_or(most - 1);
                    self.run(work.min(most));
                    self.left_user_at = Some(at);
                }
            }
            Told::Worked { instructions } => self.worked = Some(instructions),
            Told::Act(act) => {
                // What it takes from here on is that of the act.
                self.end_call(at);
                (self.in_user_since, self.in_act) = (None, true);
                self.steps.push(Step::Act(act));
            }
            Told::Call { nr } => {
                // Where acts are left out, nothing is between two calls.
                self.end_call(at);
                self.call = Some(Call {
                    since: Some(at),
                    ns: 0,
                    shows: self.in_act,
                    yields: nr == NR_SCHED_YIELD,
                });
            }
            Told::Timer(timer) => self.timer = Some((at, timer)),
        }
    }

    fn end_call(&mut self, at: u64) {
        let Some(call) = self.call.take() else {
            return;
        };
        let ns = call.ns + call.since.map_or(0, |since| at.saturating_sub(since));
        match (call.shows, call.yields) {
            (_, true) => self.steps.push(Step::Yield),
            (false, false) => self.run(ns),
            (true, false) => {}
        }
    }

    fn call_shows(&mut self) {
        if let Some(call) = &mut self.call {
            call.shows = true;
        }
    }

    /// A simulated run tells its changes itself; real-time priorities, also borrowed ones, are not
    /// replayed.
    fn reniced(&mut self, prio: i16, at: u64) {
        self.to_real_time |= prio < RT_PRIOS;
        if self.told || prio < RT_PRIOS {
            return;
        }
        self.flush(at);
        let nice = (prio - RT_PRIOS - 20).clamp(-20, 19) as i8;
        // What it slept through was changed by another one before it was woken.
        let asleep = matches!(self.steps.last(), Some(Step::Block(_)));
        let place = self.steps.len() - usize::from(asleep && self.running_since.is_none());
        self.steps.insert(place, Step::Nice(nice));
    }

    /// Up to `at` it has computed.
    fn flush(&mut self, at: u64) {
        if self.told {
            return;
        }
        let Some(since) = &mut self.running_since else {
            return;
        };
        let ran = at.saturating_sub(std::mem::replace(since, at));
        self.run(ran);
    }

    fn run(&mut self, ran: u64) {
        if ran == 0 {
            return;
        }
        match self.steps.last_mut() {
            Some(Step::Run(ns)) if !self.apart => *ns += ran,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Kind};

    fn event(at_ns: u64, tid: u32, kind: Kind) -> Event {
        let context = Context::Task;
        Event {
            at_ns,
            cpu: 0,
            tid,
            context,
            kind,
        }
    }

    fn switch(at_ns: u64, prev: u32, state: State, next: u32) -> Event {
        switch_of(at_ns, (prev, 120), state, (next, 120))
    }

    /// Between threads with their priorities.
    fn switch_of(at_ns: u64, prev: (u32, i16), state: State, next: (u32, i16)) -> Event {
        let kind = Kind::Switch {
            prev: prev.0,
            prev_prio: prev.1,
            state,
            next: next.0,
            next_prio: next.1,
        };
        event(at_ns, prev.0, kind)
    }

    /// One that renices itself as it runs, one that another renices as it sleeps, and one that
    /// borrows a real-time priority.
    #[test]
    fn other_priorities_are_other_nice_values() {
        let sleeps = State::Blocked(b'S');
        let (tid, prio, cpu) = (8, 119, 0);
        let events = [
            switch_of(1000, (0, 120), State::Runnable, (7, 120)),
            switch_of(2000, (7, 125), State::Runnable, (8, 110)),
            switch_of(3000, (8, 110), sleeps, (7, 125)),
            event(3500, 7, Kind::Waking { tid, prio, cpu }),
            event(3600, 7, Kind::Wakeup { tid, prio, cpu }),
            switch_of(4000, (7, 98), State::Runnable, (8, 119)),
            switch_of(5000, (8, 119), sleeps, (7, 125)),
        ];
        let logs = Logs::of(&events, 1);
        assert_eq!((logs.threads[0].prio, logs.threads[1].prio), (120, 110));
        let nice = |thread: ThreadId| {
            let steps = logs.logs[thread].steps.iter().enumerate();
            let nice = steps.filter_map(|(i, s)| match s {
                Step::Nice(nice) => Some((i, *nice)),
                _ => None,
            });
            nice.collect::<Vec<_>>()
        };
        assert_eq!(nice(0)[0], (1, 5), "{:?}", logs.logs[0].steps);
        assert!(nice(0)[1..].iter().all(|(_, n)| *n == 5), "back to its own");
        assert_eq!(nice(1), [(1, -1)], "{:?}", logs.logs[1].steps);
        assert!(matches!(logs.logs[1].steps[2], Step::Block(_)));
        let later = logs.logs.iter().map(|log| log.to_real_time);
        assert_eq!(later.collect::<Vec<_>>(), [true, false]);
    }

    /// A thread that computes, is interrupted, calls the kernel for nothing that shows, yields, and
    /// sleeps until its timer fires.
    #[test]
    fn of_what_is_told_only_computing_counts() {
        let told = |at_ns, told| event(at_ns, 7, Kind::Told(told));
        let timer = Timer {
            soft_ns: 5000,
            slack_ns: 50,
            relative: true,
        };
        let nr = |nr| Told::Call { nr };
        let waking = Kind::Waking {
            tid: 7,
            prio: 120,
            cpu: 0,
        };
        let mut waking = event(5020, 0, waking);
        waking.context = Context::Interrupt;
        let events = [
            switch(1000, 0, State::Runnable, 7),
            told(1100, Told::UserEnter),
            told(1400, Told::Worked { instructions: 200 }),
            told(1400, Told::UserExit),
            told(1500, Told::UserEnter),
            told(1600, Told::UserExit),
            told(1600, nr(1)),
            told(1630, Told::UserEnter),
            told(1700, Told::UserExit),
            told(1700, nr(NR_SCHED_YIELD)),
            told(1800, Told::UserEnter),
            told(2000, Told::UserExit),
            told(2000, nr(230)),
            told(2000, Told::Timer(timer)),
            switch(2100, 7, State::Blocked(b'S'), 0),
            waking,
            switch(5100, 0, State::Runnable, 7),
        ];
        let logs = Logs::of(&events, 1);
        assert!(logs.is_cut(), "it was awake at the end");
        let steps = &logs.logs[0].steps;
        assert_eq!(steps[..3], [Step::Run(400), Step::Yield, Step::Run(200)]);
        let Step::Block(block) = steps[3] else {
            panic!("{steps:?}")
        };
        assert_eq!(block.timed_out(), Some((2000, timer)));
        assert_eq!(steps.len(), 4);
        let early = Block {
            woken: Some((4999, Waker::Interrupt)),
            ..block
        };
        assert_eq!(early.timed_out(), None);
    }
}

//! Tracepoints as counters, wake-up latencies and, if wanted, lines.

use fairground::event::Event;
use hdrhistogram::Histogram;

use crate::histogram::{histogram, record};

/// One traced event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// When, ns.
    pub at_ns: u64,
    /// The CPU that executed it.
    pub cpu: u32,
    /// What happened.
    pub event: Event,
    /// Whether a timer's interrupt did it, whoever ran there.
    pub by_timer: bool,
}

impl TraceLine {
    /// What no timer did.
    #[must_use]
    pub fn new(at_ns: u64, cpu: u32, event: Event) -> Self {
        Self {
            at_ns,
            cpu,
            event,
            by_timer: false,
        }
    }
}

/// Counters of a run.
#[derive(Debug)]
pub struct Counters {
    /// Wake-ups that made a task runnable, first ones of new tasks included.
    pub wakeups: u64,
    /// Moves to another CPU, by what moved the task: placement, balance, active, affinity.
    pub migrations: [u64; 4],
    /// Context switches, those from and to idle included.
    pub switches: u64,
    /// Interrupts sent to other CPUs.
    pub ipis: u64,
    /// Throttlings of a group's queue.
    pub throttles: u64,
    /// From being runnable to running, ns.
    pub latency: Histogram<u64>,
    /// All events in order, if they are kept.
    pub trace: Option<Vec<TraceLine>>,
    /// A timer interrupt is being served, which will set the hardware at its end.
    pub in_timer: bool,
    /// Count from here on, ns.
    pub from_ns: u64,
    /// By task: time of the wake-up that it has not run for yet, plus one; [`RUNS`] while it runs.
    woken_at: Vec<u64>,
}

/// Wake-ups whose task has not run by the end, so that they have no latency yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StillWaiting {
    /// How many.
    pub waiting: u64,
    /// Of how many: these, and those that have one.
    pub wakeups: u64,
    /// The longest of these waits, ns.
    pub longest_ns: u64,
}

/// In `woken_at`: the task runs, so a wake-up only keeps it from going to sleep, and nobody waits.
const RUNS: u64 = u64::MAX;

impl Default for Counters {
    /// All zero.
    fn default() -> Self {
        Self {
            wakeups: 0,
            migrations: [0; 4],
            switches: 0,
            ipis: 0,
            throttles: 0,
            latency: histogram(),
            trace: None,
            in_timer: false,
            from_ns: 0,
            woken_at: Vec::new(),
        }
    }
}

impl Counters {
    /// Sum of all moves.
    #[must_use]
    pub fn all_migrations(&self) -> u64 {
        self.migrations.iter().sum()
    }

    /// Of the wake-ups that count, those whose task has not run by `end_ns`.
    #[must_use]
    pub fn still_waiting(&self, end_ns: u64) -> StillWaiting {
        let counts = |at: &&u64| **at > self.from_ns && **at <= end_ns + 1;
        let waits = self.woken_at.iter().filter(counts);
        let waits: Vec<u64> = waits.map(|at| end_ns + 1 - at).collect();
        let waiting = waits.len() as u64;
        StillWaiting {
            waiting,
            wakeups: waiting + self.latency.len(),
            longest_ns: waits.into_iter().max().unwrap_or(0),
        }
    }

    #[inline]
    pub(super) fn event(&mut self, at_ns: u64, cpu: u32, event: Event) {
        if let Some(trace) = &mut self.trace {
            let by_timer = self.in_timer;
            trace.push(TraceLine {
                at_ns,
                cpu,
                event,
                by_timer,
            });
        }
        let counts = at_ns >= self.from_ns;
        match event {
            Event::Wakeup { task, .. } | Event::WakeupNew { task, .. } => {
                self.wakeups += u64::from(counts);
                if self.woken_at.len() <= task.idx() {
                    self.woken_at.resize(task.idx() + 1, 0);
                }
                let woken = &mut self.woken_at[task.idx()];
                if *woken != RUNS {
                    *woken = at_ns + 1;
                }
            }
            Event::Switch { prev, next, .. } => {
                self.switches += u64::from(counts);
                if let Some(woken) = prev.and_then(|p| self.woken_at.get_mut(p.idx())) {
                    *woken = 0;
                }
                let Some(next) = next else { return };
                let Some(woken) = self.woken_at.get_mut(next.idx()) else {
                    return;
                };
                let at = core::mem::replace(woken, RUNS);
                if at > self.from_ns && at != RUNS {
                    record(&mut self.latency, (at_ns + 1).saturating_sub(at).max(1));
                }
            }
            Event::Migrate { why, .. } => {
                self.migrations[why as usize] += u64::from(counts);
            }
            Event::Throttle { throttled, .. } => self.throttles += u64::from(throttled && counts),
            Event::Waking { .. } | Event::Fork { .. } | Event::Exit { .. } | Event::Nice { .. } => {
            }
        }
    }
}

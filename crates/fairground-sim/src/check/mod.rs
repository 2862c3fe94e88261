//! Checkers that stand beside the simulated machine and look at its whole state between two events.
//!
//! Each file names the laws that it verifies. They compute what the engine keeps up incrementally a
//! second time, the slow way, from the tasks up; they change nothing and take no simulated time, so
//! a checked run has the same outcome as an unchecked one. Only tests call them.
//!
//! | file | laws |
//! | --- | --- |
//! | `keeping` | every task is in one keeping; machine and engine agree on who runs |
//! | `queues` | counts, weights, trees, virtual time and lags of every queue |
//! | `load` | published group load, leaf lists, load tracking of queues and members |
//! | `bandwidth` | runtime within quota and burst; throttled lists and counts; limbo |
//! | `published` | published words are the owner's; idle mask; clocks do not run back |
//! | `waiting` | no CPU stays idle while a movable task waits |

mod bandwidth;
mod keeping;
mod load;
mod published;
mod queues;
mod waiting;

use crate::cache::{NS, Ps};
use crate::host::TraceLine;
use crate::machine::{Sim, Stuck};

/// A law that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after event {event}, at {at_ns} ns: {law}: {what}")]
pub struct Broken {
    /// The law.
    pub law: &'static str,
    /// Events processed so far.
    pub event: u64,
    /// When, ns.
    pub at_ns: u64,
    /// What was found.
    pub what: String,
}

/// Why a checked run ended early.
#[derive(Debug, thiserror::Error)]
pub enum CheckedError {
    /// A law is broken.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Nothing can happen any more.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// More events than allowed.
    #[error("not at its end after {0} events")]
    Budget(u64),
}

/// What a law says when it does not hold: its name and what was found.
type Fault = (&'static str, String);

/// What a law answers.
type Verdict = Result<(), Fault>;

/// Fails with the law's name unless the condition holds.
macro_rules! holds {
    ($law:expr, $cond:expr, $($what:tt)+) => {
        if !$cond {
            return Err(($law, format!($($what)+)));
        }
    };
}
use holds;

/// The checkers' memory from one look to the next.
#[derive(Debug, Default)]
pub struct Checker {
    clocks: published::Clocks,
    waiting: waiting::Waiting,
    /// Looks so far.
    pub looks: u64,
}

impl Checker {
    /// Looks at everything.
    ///
    /// # Errors
    /// The first law that does not hold.
    pub fn check(&mut self, sim: &Sim<'_>) -> Result<(), Broken> {
        self.looks += 1;
        self.laws(sim).map_err(|(law, what)| Broken {
            law,
            event: sim.events,
            at_ns: sim.now / NS,
            what: what + &last_events(sim),
        })
    }

    fn laws(&mut self, sim: &Sim<'_>) -> Verdict {
        keeping::check(sim)?;
        for rq in &sim.rqs {
            queues::check(sim, rq)?;
            load::check_queues(sim, rq)?;
            bandwidth::check_queues(sim, rq)?;
        }
        load::check_groups(sim)?;
        bandwidth::check_pools(sim)?;
        published::check(sim)?;
        self.clocks.check(sim)?;
        self.waiting.check(sim)
    }
}

/// The last tracepoints, if they are kept.
fn last_events(sim: &Sim<'_>) -> String {
    let trace = sim.host.counters.trace.as_deref().unwrap_or_default();
    let last = &trace[trace.len().saturating_sub(24)..];
    let line = |l: &TraceLine| format!("\n{} CPU {} {:?}", l.at_ns, l.cpu, l.event);
    last.iter().map(line).collect()
}

impl Sim<'_> {
    /// Like [`Sim::run`], with a look at all laws after every `every` events, and at the end; at
    /// most `most` events.
    ///
    /// # Errors
    /// A broken law, a standstill, or a run that is too long.
    pub fn run_checked(&mut self, every: u64, most: u64) -> Result<Ps, CheckedError> {
        let mut checker = Checker::default();
        checker.check(self)?;
        while self.step()? {
            if self.events.is_multiple_of(every) {
                checker.check(self)?;
            }
            if self.events >= most {
                return Err(CheckedError::Budget(most));
            }
        }
        checker.check(self)?;
        Ok(self.now)
    }
}

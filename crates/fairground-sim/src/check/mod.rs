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
    overflowed: load::Overflowed,
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
            load::check_queues(sim, rq, &mut self.overflowed)?;
            bandwidth::check_queues(rq)?;
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
        while !self.has_ended() {
            self.one_event()?;
            if self.events.is_multiple_of(every) {
                checker.check(self)?;
            }
            if self.events >= most {
                return Err(CheckedError::Budget(most));
            }
        }
        checker.check(self)?;
        self.finish();
        Ok(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Setup;
    use crate::machine_file::Machine;
    use crate::workload::{Env, Workload};
    use fairground::policy::Features;
    use fairground::shared::OnRq;
    use fairground::value::Cpu;
    use std::sync::atomic::Ordering::Relaxed;

    /// A machine in the middle of its work, with one thing put wrong: the law that notices.
    fn noticed(sabotage: impl FnOnce(&mut Sim<'_>)) -> &'static str {
        let machine = Machine::builtin("spr-8480-2s").unwrap().shrunk(4).unwrap();
        let argv = [
            "hogs",
            "--tasks",
            "12",
            "--duration",
            "50ms",
            "--tree",
            "2:2",
        ];
        let workload = Workload::from_argv(&argv, &Env { cpus: 4 }).unwrap();
        let setup = Setup {
            machine: &machine,
            features: Features::default(),
            workload: &workload,
            seed: 3,
            trace: false,
        };
        let mut sim = Sim::new(&setup).unwrap();
        while sim.now < 30_000_000 * NS {
            sim.one_event().unwrap();
        }
        let mut checker = Checker::default();
        checker.check(&sim).unwrap();
        sabotage(&mut sim);
        let broken = checker.check(&sim).unwrap_err();
        assert!(broken.to_string().contains(broken.law));
        broken.law
    }

    /// A queued entity of CPU 0 that does not run.
    fn waiting(sim: &Sim<'_>) -> usize {
        let rq = &sim.rqs[0];
        let waits = |s: &usize| rq.nodes.contains(*s as u32);
        (0..rq.se.len()).find(waits).unwrap()
    }

    #[test]
    fn every_law_can_be_broken() {
        let law = noticed(|s| s.rqs[0].nr_running += 1);
        assert_eq!(law, "counts equal a recount");
        let law = noticed(|s| s.rqs[1].cfs[0].load.add(1024));
        assert_eq!(law, "a queue weighs as much as its entities");
        let law = noticed(|s| {
            let slot = waiting(s);
            s.rqs[0].se[slot].vruntime += 5;
        });
        assert_eq!(law, "the tree holds the queued entities");
        let law = noticed(|s| s.rqs[0].cfs[0].avg_vruntime.sum += 1);
        assert_eq!(law, "virtual time is the weighted mean");
        let law = noticed(|s| s.rqs[0].cfs[1].tg_load_avg_contrib += 1);
        assert_eq!(law, "published contributions sum to the group's load");
        let law = noticed(|s| s.rqs[0].cfs[0].avg.load_avg = 0);
        assert_eq!(law, "a queue is not below the sum of its members");
        let law = noticed(|s| s.rqs[0].cfs[1].avg.load_avg += 1);
        assert_eq!(law, "a group's words for wakers are its queue's");
        let law = noticed(|s| s.rqs[0].leaf_head = None);
        assert_eq!(law, "the list of queues with load is whole");
        let law = noticed(|s| s.rqs[0].cfs[1].throttle_count += 1);
        assert_eq!(law, "lists and counts of throttled queues agree");
        let law = noticed(|s| s.rqs[0].cfs[1].limbo = s.rqs[0].curr);
        assert_eq!(law, "throttled tasks wait in the limbo of their queue");
        let law = noticed(|s| s.sys.cpu[2].nr_running.store(77, Relaxed));
        assert_eq!(law, "published words are the owner's");
        let law = noticed(|s| s.sys.nohz.set_idle(Cpu(1), true, &mut s.host));
        assert_eq!(law, "the idle mask is the CPUs whose tick is stopped");
        let law = noticed(|s| s.rqs[2].clock.task -= 1);
        assert_eq!(law, "no clock runs back");
        let law = noticed(|s| s.sys.task[0].set_on_rq(OnRq::No));
        assert_eq!(law, "every task is in one keeping");
        let law = noticed(|s| s.cpus[0].curr = None);
        assert_eq!(law, "machine and engine agree on who runs");
    }

    #[test]
    fn an_idle_cpu_beside_waiting_tasks_is_noticed() {
        let law = noticed(|s| {
            // The last CPU of the cache looks idle for half a second.
            let mut seen = waiting::Waiting::default();
            seen.check(s).unwrap();
            s.rqs[3].curr = None;
            s.cpus[3].curr = None;
            seen.check(s).unwrap();
            s.now += 500_000_000 * NS;
            let (law, what) = seen.check(s).unwrap_err();
            assert!(law.contains("idle"), "{what}");
        });
        assert!(!law.is_empty());
    }
}

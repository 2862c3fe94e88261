//! Verifies that no CPU stays idle while a task that could run there waits.
//!
//! # Bound
//!
//! On one's own queue: a runnable task on an idle CPU is noticed by the interrupt that was sent for
//! it; 1 ms is far more than any interrupt takes.
//!
//! Across CPUs that share a last-level cache: a CPU with two tasks kicks an idle balancer at its
//! tick at the latest; the balancer looks at a domain once per interval, which doubles up to twice
//! the domain's weight in ms; a cache-hot task is let go once `cache_nice_tries` attempts have
//! failed. So a waiting task is moved after at most `1 + 1 + tries` attempts (tries = 1 below NUMA
//! levels), a tick each later:
//!
//! ```text
//!     bound = 4 attempts * (2 ms * CPUs of the cache + 2 ticks)
//! ```
//!
//! Nothing is claimed between caches: the kernel allows an imbalance between NUMA nodes for as long
//! as it lasts. Nor for tasks in limbo or delayed ones (not runnable), for tasks whose affinity
//! excludes the idle CPU, or for groups whose queue there is throttled; nor where a real-time task
//! has the CPU, which balancing sees only as its capacity falls.

use fairground::value::{Cpu, CpuMask};

use super::{Verdict, holds};
use crate::cache::{NS, Ps};
use crate::machine::Sim;

const LAW: &str = "no CPU is idle while a movable task waits";
const OWN: &str = "no CPU is idle with a runnable task of its own";

/// Waits of tasks and idle times of CPUs, as far as they were observed.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By task: CPU and execution so far when it was first seen waiting, and when that was.
    tasks: Vec<Option<(u32, u64, Ps)>>,
    /// By CPU: switches when it was first seen idle, and when that was.
    cpus: Vec<Option<(u64, Ps)>>,
}

impl Waiting {
    pub(super) fn check(&mut self, sim: &Sim<'_>) -> Verdict {
        self.tasks.resize(sim.tasks.len(), None);
        self.cpus.resize(sim.cpus.len(), None);
        for (rq, seen) in sim.rqs.iter().zip(&mut self.cpus) {
            let idle = rq.is_idle();
            let same = seen.filter(|(switches, _)| *switches == rq.nr_switches);
            *seen = idle.then_some(same.unwrap_or((rq.nr_switches, sim.now)));
        }
        let mut queued = vec![false; sim.tasks.len()];
        for rq in &sim.rqs {
            let topology = &sim.sys.topology;
            let llc = topology.llc_span[topology.llc_of[rq.cpu.idx()].idx()];
            let weight = u64::from(llc.weight());
            let bound = 4 * (2_000_000 * NS * weight + 2 * sim.tick);
            for (slot, body) in rq.body.iter().enumerate() {
                let Some(body) = body else { continue };
                let se = &rq.se[slot];
                let runs = rq.curr.is_some_and(|c| c.idx() == slot);
                let waits = se.on_rq && !se.sched_delayed && !runs;
                let throttled = rq.cfs[se.cfs_rq.idx()].throttle_count > 0;
                let halted = throttled || rq.higher.is_some();
                queued[body.id.idx()] = true;
                let seen = &mut self.tasks[body.id.idx()];
                if !waits || halted {
                    *seen = None;
                    continue;
                }
                let same = seen.filter(|s| (s.0, s.1) == (rq.cpu.0, se.sum_exec_runtime));
                let wait = same.unwrap_or((rq.cpu.0, se.sum_exec_runtime, sim.now));
                *seen = Some(wait);
                let own = self.idle_with(sim, rq.cpu, wait.2);
                holds!(
                    OWN,
                    own < 1_000_000 * NS,
                    "task {} on {}",
                    body.id.0,
                    rq.cpu.0
                );
                let there = llc.and(&body.cpus_allowed);
                self.elsewhere(sim, &there, wait.2, bound)
                    .map_err(|idle| (LAW, format!("task {} on {}, {idle}", body.id.0, rq.cpu.0)))?;
            }
        }
        // Who is asleep does not wait, and if it comes back its wait begins again.
        for (seen, queued) in self.tasks.iter_mut().zip(queued) {
            *seen = seen.filter(|_| queued);
        }
        Ok(())
    }

    /// How long `cpu` has been idle while a task has waited since `since`.
    fn idle_with(&self, sim: &Sim<'_>, cpu: Cpu, since: Ps) -> Ps {
        self.cpus[cpu.idx()].map_or(0, |(_, from)| sim.now - from.max(since))
    }

    fn elsewhere(
        &self,
        sim: &Sim<'_>,
        there: &CpuMask,
        since: Ps,
        bound: Ps,
    ) -> Result<(), String> {
        for cpu in there.iter() {
            let both = self.idle_with(sim, cpu, since);
            if both > bound {
                let (ms, most) = (both / NS / 1_000_000, bound / NS / 1_000_000);
                return Err(format!("CPU {} idle for {ms} ms, bound {most} ms", cpu.0));
            }
        }
        Ok(())
    }
}

//! Verifies that the words a CPU publishes are those of its run queue, that the mask of idle CPUs
//! is the set of those whose tick is stopped, and that no clock of a run queue runs back.

use std::sync::atomic::Ordering::Relaxed;

use fairground::rq::Rq;
use fairground::value::CpuMask;

use super::{Verdict, holds};
use crate::cache::Ps;
use crate::host::Quiet;
use crate::machine::Sim;

const WORDS: &str = "published words are the owner's";
const MASK: &str = "the idle mask is the CPUs whose tick is stopped";
const CLOCK: &str = "no clock runs back";

pub(super) fn check(sim: &Sim<'_>) -> Verdict {
    for rq in &sim.rqs {
        words(sim, rq)?;
    }
    let stopped: CpuMask = sim
        .rqs
        .iter()
        .filter(|rq| rq.nohz_tick_stopped)
        .map(|rq| rq.cpu)
        .collect();
    let mask = sim.sys.nohz.idle_cpus();
    holds!(MASK, mask == stopped, "{mask:?}, not {stopped:?}");
    let (nr, weight) = (sim.sys.nohz.nr_cpus(&mut Quiet::default()), mask.weight());
    holds!(
        MASK,
        nr as usize == weight as usize,
        "counted {nr}, not {weight}"
    );
    for (cpu, state) in sim.cpus.iter().enumerate() {
        // Out of the mask only at the next tick, as in the kernel: so in one direction.
        let listed = sim.rqs[cpu].nohz_tick_stopped;
        // A CPU without a domain takes no part.
        let alone = sim.sys.topology.domains[cpu].is_empty();
        holds!(
            MASK,
            listed || !state.nohz || alone,
            "CPU {cpu} has no tick, but is not listed"
        );
        let ticks = state.tick_on || state.idle.is_some();
        let switching = state.user_since.is_none();
        holds!(
            MASK,
            ticks || switching,
            "CPU {cpu} runs a task without a tick"
        );
    }
    Ok(())
}

fn words(sim: &Sim<'_>, rq: &Rq) -> Verdict {
    let (w, root) = (&sim.sys.cpu[rq.cpu.idx()], &rq.cfs[0]);
    let curr = rq.curr.map(|c| &rq.se[c.idx()]);
    let pairs: [(&str, u64, u64); 18] = [
        (
            "nr_running",
            w.nr_running.load(Relaxed).into(),
            rq.nr_running.into(),
        ),
        (
            "h_nr_queued",
            w.h_nr_queued.load(Relaxed).into(),
            root.h_nr_queued.into(),
        ),
        (
            "h_nr_runnable",
            w.h_nr_runnable.load(Relaxed).into(),
            root.h_nr_runnable.into(),
        ),
        (
            "h_nr_idle",
            w.h_nr_idle.load(Relaxed).into(),
            root.h_nr_idle.into(),
        ),
        (
            "curr_is_idle",
            w.curr_is_idle.load(Relaxed).into(),
            rq.is_idle().into(),
        ),
        (
            "curr_load_avg",
            w.curr_load_avg.load(Relaxed),
            curr.map_or(0, |c| c.avg.load_avg),
        ),
        (
            "curr_tg",
            w.curr_tg.load(Relaxed).into(),
            curr.map_or(0, |c| rq.cfs[c.cfs_rq.idx()].tg.0).into(),
        ),
        ("load_avg", w.load_avg.load(Relaxed), root.avg.load_avg),
        (
            "runnable_avg",
            w.runnable_avg.load(Relaxed),
            root.avg.runnable_avg,
        ),
        ("util_avg", w.util_avg.load(Relaxed), root.avg.util_avg),
        (
            "util_est",
            w.util_est.load(Relaxed).into(),
            root.avg.util_est.into(),
        ),
        ("idle_stamp", w.idle_stamp.load(Relaxed), rq.idle_stamp),
        ("avg_idle", w.avg_idle.load(Relaxed), rq.avg_idle),
        (
            "misfit_task_load",
            w.misfit_task_load.load(Relaxed),
            rq.misfit_task_load,
        ),
        ("clock_idle", w.clock_idle.load(Relaxed), rq.clock.idle),
        (
            "clock_pelt_idle",
            w.clock_pelt_idle.load(Relaxed),
            rq.clock.pelt_idle,
        ),
        (
            "has_blocked_load",
            w.has_blocked_load.load(Relaxed).into(),
            rq.has_blocked_load.into(),
        ),
        (
            "nohz_tick_stopped",
            w.nohz_tick_stopped.load(Relaxed).into(),
            rq.nohz_tick_stopped.into(),
        ),
    ];
    for (name, told, is) in pairs {
        holds!(
            WORDS,
            told == is,
            "CPU {}: {name} {told}, not {is}",
            rq.cpu.0
        );
    }
    Ok(())
}

/// The clocks of each run queue at the last look.
#[derive(Debug, Default)]
pub struct Clocks {
    now: Ps,
    seen: Vec<[u64; 4]>,
}

impl Clocks {
    pub(super) fn check(&mut self, sim: &Sim<'_>) -> Verdict {
        holds!(
            CLOCK,
            sim.now >= self.now,
            "simulated time: {} to {}",
            self.now,
            sim.now
        );
        self.now = sim.now;
        self.seen.resize(sim.rqs.len(), [0; 4]);
        for (rq, seen) in sim.rqs.iter().zip(&mut self.seen) {
            let clock = &rq.clock;
            let now = [
                clock.clock,
                clock.task,
                clock.pelt(),
                rq.cfs[0].avg.last_update_time,
            ];
            let forward = now.iter().zip(seen.iter()).all(|(a, b)| a >= b);
            holds!(CLOCK, forward, "CPU {}: {seen:?} to {now:?}", rq.cpu.0);
            *seen = now;
        }
        Ok(())
    }
}

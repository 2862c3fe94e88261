//! A settled start: what balancing and virtual time would have done in seconds is done in the
//! warm-up.
//!
//! Where threads are after minutes is decided by rules that this machine follows, but slowly: a
//! domain of 224 CPUs is balanced every 0.2 s by an idle CPU, every 3.6 s by a busy one, and a task
//! that is alone on its CPU moves after five attempts that failed. In the first part of the warm-up
//! each domain is due at every tick instead, so a tick stands for a whole interval. Who balances,
//! what is moved, and all wake-ups are as ever. With CFS virtual time runs faster meanwhile: how
//! far tasks that sleep often are ahead of others grows by a part of the time only, and a wake-up
//! preempts from some milliseconds on. The rest of the warm-up runs at its own pace: what
//! wake-ups undo within milliseconds is undone before anything is measured.

use fairground::balance::interval::make_due;
use fairground::policy::Pick;
use fairground::system::Hurry;

use super::Sim;
use crate::cache::NS;
use crate::host::{BOOT_NS, Quiet};

/// Virtual time runs 2^this times as fast in the first part of the warm-up.
const HURRY: u32 = 4;

/// Load tracking's time in the first and in the second half of it. Averages forget where they began
/// in the first; in the second they come to be of more than the last 2 ms.
const HURRY_LOAD: [u32; 2] = [4, 2];

impl Sim<'_> {
    /// Before anything runs.
    pub(super) fn settle_from_start(&mut self) {
        let until = self.workload.settle_ns.min(self.workload.warmup_ns);
        let at = [0, until / 2, until].map(|ns| BOOT_NS + ns);
        let stretch = |i: usize| Hurry {
            from: at[i],
            until: at[i + 1],
            shift: HURRY_LOAD[i],
        };
        self.sys.hurry_load_time([stretch(0), stretch(1)]);
    }

    /// At a tick, before the scheduler's part of it.
    #[inline]
    pub(super) fn settle_at_tick(&mut self) {
        // Never in what is measured.
        let until = self.workload.settle_ns.min(self.workload.warmup_ns);
        if self.now < until * NS {
            self.hurry_balancing();
            if self.sys.features.pick == Pick::Cfs {
                self.sys.hurry_vruntime(HURRY);
            }
        } else {
            self.sys.hurry_vruntime(0);
        }
    }

    #[cold]
    fn hurry_balancing(&mut self) {
        let now = self.jiffies_now();
        if now == self.settled_at {
            return;
        }
        self.settled_at = now;
        // No CPU pays for it.
        make_due(&self.sys, now, &mut Quiet::default());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use fairground::policy::find_profile;

    use super::*;
    use crate::machine::testing;
    use crate::machine_file::Machine;

    /// After `run_ms` of a workload on a machine, of which `settle_ms` were to settle and
    /// `warmup_ms` are not measured, `look`.
    fn after<T>(
        machine: &Machine,
        line: &str,
        seed: u64,
        [settle_ms, warmup_ms, run_ms]: [u64; 3],
        look: impl Fn(&mut Sim) -> T,
    ) -> T {
        let mut workload = testing::workload(machine, line);
        workload.settle_ns = settle_ms * 1_000_000;
        workload.warmup_ns = warmup_ms * 1_000_000;
        let set = find_profile("linux-6.5").unwrap().sets;
        testing::seeded(machine, &workload, set, seed, |sim| {
            sim.run_to(run_ms * 1_000_000).unwrap();
            look(sim)
        })
    }

    /// How many of the 40 threads of a group of hackbench are on each socket of two after 50 ms;
    /// and how many events that took.
    fn sockets(seed: u64, settle_ms: u64, warmup_ms: u64) -> ([usize; 2], u64) {
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let line = "hackbench -g 1 -f 20 --threads --pipe -l 100000";
        after(&machine, line, seed, [settle_ms, warmup_ms, 50], on_sockets)
    }

    fn on_sockets(sim: &mut Sim) -> ([usize; 2], u64) {
        let mut on = [0, 0];
        for task in 1..=40 {
            let cpu = sim.sys.task[task].cpu.load(Relaxed);
            on[sim.distance.cpus[cpu as usize].socket as usize] += 1;
        }
        (on, sim.events)
    }

    /// While it settles; what wake-ups make of that later, they do at their own pace. With some
    /// seeds they have their way meanwhile, so most count.
    #[test]
    fn a_group_of_hackbench_comes_to_both_sockets_as_it_settles() {
        let seeds = [1, 2, 3, 4, 5];
        let on_one = |settle_ms| seeds.map(|s| sockets(s, settle_ms, 60).0.contains(&40));
        assert_eq!(on_one(0), [true; 5]);
        let settled = on_one(60);
        assert!(
            settled.iter().filter(|one| **one).count() <= 2,
            "{settled:?}"
        );
        assert_eq!(sockets(1, 60, 60), sockets(1, 60, 60), "the same again");
    }

    /// Wake-ups in the 4 ms after each of `ages_ms` of four groups of hackbench on 8 CPUs that
    /// settle for `settle_ms` of 30.
    fn wakeups<const N: usize>(settle_ms: u64, ages_ms: [u64; N]) -> [u64; N] {
        let machine = Machine::builtin("icx-8358-2s").unwrap().shrunk(8).unwrap();
        let line = "hackbench -g 4 -f 20 --threads --pipe -l 100000";
        after(&machine, line, 1, [settle_ms, 30, 0], |sim| {
            ages_ms.map(|ms| {
                let [before, after] = [ms, ms + 4].map(|ms| {
                    sim.run_to(ms * 1_000_000).unwrap();
                    sim.host.counters.wakeups
                });
                after - before
            })
        })
    }

    /// Settled for 30 ms, as the rows of hackbench are, and at its own pace, both seen at ten
    /// ages: one window is chance.
    #[test]
    fn readers_have_come_to_preempt_writers_after_a_settled_start() {
        let ages = [32, 40, 50, 60, 70, 80, 90, 100, 110, 120];
        let [own_pace, settled] = [0, 30].map(|ms| wakeups(ms, ages).iter().sum::<u64>());
        assert!(
            settled > 2 * own_pace,
            "{settled} wake-ups, {own_pace} without"
        );
    }

    /// Sum of what the CPUs of a busy machine are used, of 1024 each, after 20 ms of hogs.
    fn utilisation(settle_ms: u64) -> u64 {
        let machine = Machine::builtin("icx-8358-2s").unwrap().shrunk(8).unwrap();
        after(&machine, "hogs --tasks 16", 1, [settle_ms, 20, 20], |sim| {
            let util = |cpu: &fairground::shared::CpuShared| cpu.util_avg.load(Relaxed);
            sim.sys.cpu.iter().map(util).sum()
        })
    }

    /// Averages over 32 ms would need a fifth of a second for it.
    #[test]
    fn busy_cpus_are_fully_used_after_a_settled_start() {
        let (soon, settled) = (utilisation(0), utilisation(15));
        assert!(settled > 8 * 1000, "{settled}");
        assert!(soon < 8 * 900, "{soon}");
    }

    #[test]
    #[ignore = "the figures of docs/settled-start.md"]
    fn sleepers_ahead_as_at_their_own_pace() {
        let ages = [32, 40, 60, 80, 100, 160, 200, 300, 340, 380, 420];
        for (name, settle_ms) in [("at its own pace", 0), ("settled until 30 ms", 30)] {
            println!("{ages:?} ms, {name}: {:?}", wakeups(settle_ms, ages));
        }
    }

    /// Recorded cases are compared from their start on.
    #[test]
    fn without_a_warm_up_nothing_settles() {
        assert_eq!(sockets(1, 20, 0), sockets(1, 0, 0));
    }
}

//! A settled start: what balancing would have done in seconds is done in the warm-up.
//!
//! Where threads are after minutes is decided by rules that this machine follows, but slowly: a
//! domain of 224 CPUs is balanced every 0.2 s by an idle CPU, every 4 s by a busy one, and a task
//! that is alone on its CPU moves after five attempts that failed. In the first part of the warm-up
//! each domain is due at every tick instead, so a tick stands for a whole interval. Who balances,
//! what is moved, and all wake-ups are as ever. The rest of the warm-up runs at its own pace: what
//! wake-ups undo within milliseconds is undone before anything is measured.

use fairground::balance::interval::make_due;

use super::Sim;
use crate::cache::NS;
use crate::host::Quiet;

impl Sim<'_> {
    /// At a tick, before the scheduler's part of it.
    #[inline]
    pub(super) fn settle_at_tick(&mut self) {
        // Never in what is measured.
        let until = self.workload.settle_ns.min(self.workload.warmup_ns);
        if self.now < until * NS {
            self.hurry_balancing();
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

    use fairground::policy::{Features, find_profile};

    use super::*;
    use crate::machine::Setup;
    use crate::machine_file::Machine;
    use crate::workload::{Env, Workload};

    /// How many of the 20 threads of a group of hackbench are on each socket of two after 24 ms, of
    /// which `settle_ms` were to settle and `warmup_ms` are not measured; and how many events that
    /// took.
    fn sockets(settle_ms: u64, warmup_ms: u64) -> ([usize; 2], u64) {
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let line = "hackbench -g 1 -f 10 --threads --pipe -l 100000";
        let argv: Vec<_> = line.split(' ').map(String::from).collect();
        let mut workload = Workload::from_argv(&argv, &Env { cpus: 224 }).unwrap();
        workload.settle_ns = settle_ms * 1_000_000;
        workload.warmup_ns = warmup_ms * 1_000_000;
        let mut features = Features::default();
        features.set_all(find_profile("linux-6.5").unwrap().sets);
        let setup = Setup {
            machine: &machine,
            features,
            workload: &workload,
            seed: 1,
            trace: false,
        };
        let mut sim = Sim::new(&setup).unwrap();
        sim.run_to(24_000_000).unwrap();
        let mut on = [0, 0];
        for task in 1..=20 {
            let cpu = sim.sys.task[task].cpu.load(Relaxed);
            on[sim.distance.cpus[cpu as usize].socket as usize] += 1;
        }
        (on, sim.events)
    }

    #[test]
    fn a_group_of_hackbench_is_on_both_sockets_after_a_settled_start() {
        let (at_once, _) = sockets(0, 20);
        assert!(at_once.contains(&20), "{at_once:?}");
        let (settled, events) = sockets(20, 20);
        assert!(settled.iter().all(|n| *n >= 5), "{settled:?}");
        assert_eq!(sockets(20, 20), (settled, events), "the same again");
    }

    /// Recorded cases are compared from their start on.
    #[test]
    fn without_a_warm_up_nothing_settles() {
        assert_eq!(sockets(20, 0), sockets(0, 0));
    }
}

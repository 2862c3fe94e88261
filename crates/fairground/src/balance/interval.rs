//! How often a domain is balanced.
//!
//! Intervals are kept in ms and used in jiffies.

use crate::host::Host;
use crate::shared::Relaxed;
use crate::system::System;
use crate::topology::SchedDomain;

/// Jiffies of at least `ms` milliseconds (`msecs_to_jiffies`).
#[inline]
#[must_use]
pub const fn msecs_to_jiffies(ms: u64, hz: u32) -> u64 {
    (ms * hz as u64).div_ceil(1000)
}

/// Longest interval of any domain: a tenth of a second for each CPU, jiffies
/// (`max_load_balance_interval`).
#[inline]
#[must_use]
pub const fn max_load_balance_interval(hz: u32, nr_cpus: usize) -> u64 {
    hz as u64 * nr_cpus as u64 / 10
}

/// Jiffies between two balances of a domain whose interval is `interval_ms`. A busy CPU balances
/// `busy_factor` times more rarely, and one jiffy short of that, so that levels whose intervals
/// are multiples do not meet (`get_sd_balance_interval`).
#[must_use]
pub fn sd_balance_interval(
    interval_ms: u64,
    busy_factor: u32,
    busy: bool,
    hz: u32,
    nr_cpus: usize,
) -> u64 {
    let interval = if busy {
        msecs_to_jiffies(interval_ms * u64::from(busy_factor), hz).saturating_sub(1)
    } else {
        msecs_to_jiffies(interval_ms, hz)
    };
    interval.min(max_load_balance_interval(hz, nr_cpus)).max(1)
}

/// The interval of `sd` now, jiffies.
#[must_use]
pub fn get_sd_balance_interval(sys: &System, sd: &SchedDomain, busy: bool) -> u64 {
    let interval_ms = sd.state.balance_interval_ms.load(Relaxed);
    let hz = sys.features.hz;
    sd_balance_interval(interval_ms, sd.busy_factor, busy, hz, sys.nr_cpus())
}

/// Moves `next_balance` (jiffies) forward to when an idle CPU balances `sd` next, if that is
/// earlier (`update_next_balance`).
pub fn update_next_balance(sys: &System, sd: &SchedDomain, next_balance: &mut u64) {
    let next = sd.state.last_balance.load(Relaxed) + get_sd_balance_interval(sys, sd, false);
    *next_balance = next.min(*next_balance);
}

/// The domains of all CPUs were built at jiffy `now`: the first balance of each is one interval
/// later (`sd_init`, `rq_attach_root`).
pub fn start_intervals<H: Host>(sys: &System, now: u64, host: &mut H) {
    for cpu in sys.cpus().iter() {
        let mut next = now + 60 * u64::from(sys.features.hz);
        for sd in sys.topology.domains(cpu) {
            sd.state.last_balance.store(now, Relaxed);
            update_next_balance(sys, sd, &mut next);
        }
        sys.cpu[cpu.idx()].set_next_balance(cpu, next, host);
    }
    sys.nohz.set_next_balance(now, host);
    sys.nohz.set_next_blocked(now, host);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_up_to_jiffies() {
        assert_eq!(msecs_to_jiffies(1, 250), 1);
        assert_eq!(msecs_to_jiffies(8, 250), 2);
        assert_eq!(msecs_to_jiffies(10, 300), 3);
        assert_eq!(msecs_to_jiffies(17, 1000), 17);
    }

    #[test]
    fn a_busy_cpu_is_a_jiffy_short_of_a_multiple() {
        assert_eq!(sd_balance_interval(16, 16, true, 250, 16), 63);
        assert_eq!(sd_balance_interval(16, 16, false, 250, 16), 4);
        assert_eq!(sd_balance_interval(512, 16, true, 250, 2), 50);
    }

    #[test]
    fn a_machine_that_has_just_been_built_balances_an_interval_later() {
        use crate::policy::Features;
        use crate::testing::Bench;
        use crate::topology::{CpuPlace, Machine, Topology};
        let cpus = (0..8).map(|core| CpuPlace {
            core,
            cluster: core,
            node: core / 4,
            llc: core / 4,
            capacity: 1024,
            ..CpuPlace::default()
        });
        let topology = Topology::build(&Machine {
            cpus: cpus.collect(),
            ..Machine::default()
        });
        let mut bench = Bench::with(topology, Features::default());
        start_intervals(&bench.sys, 1000, &mut bench.host);
        for cpu in bench.sys.cpus().iter() {
            let next = bench.sys.cpu[cpu.idx()].next_balance(cpu, &mut bench.host);
            assert_eq!(
                next, 1004,
                "four CPUs in the first domain, 4 ms, 1000 ticks a second"
            );
            for sd in bench.sys.topology.domains(cpu) {
                assert_eq!(sd.state.last_balance.load(Relaxed), 1000);
            }
        }
    }
}

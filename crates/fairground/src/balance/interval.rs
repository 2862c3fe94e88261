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

/// Jiffies between two balances of a domain whose interval is `interval_ms`. A busy CPU (`Some`)
/// balances `busy_factor` times more rarely, short of that by so many jiffies
/// (`get_sd_balance_interval`, [`busy_short_by`](crate::policy::DomainLimits::busy_short_by)).
#[must_use]
pub fn sd_balance_interval(
    interval_ms: u64,
    busy_factor: u32,
    busy: Option<u64>,
    hz: u32,
    nr_cpus: usize,
) -> u64 {
    let interval = match busy {
        Some(short_by) => {
            msecs_to_jiffies(interval_ms * u64::from(busy_factor), hz).saturating_sub(short_by)
        }
        None => msecs_to_jiffies(interval_ms, hz),
    };
    interval.min(max_load_balance_interval(hz, nr_cpus)).max(1)
}

/// How often a CPU balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// It has tasks to run that are not of the idle policy.
    Busy,
    /// It has time.
    Idle,
}

/// The interval of `sd` now, jiffies.
#[must_use]
pub fn get_sd_balance_interval(sys: &System, sd: &SchedDomain, pace: Pace) -> u64 {
    let interval_ms = sd.state.balance_interval_ms.load(Relaxed);
    let hz = sys.features.hz;
    let busy = match pace {
        Pace::Busy => Some(sys.features.load_balance.limits.busy_short_by()),
        Pace::Idle => None,
    };
    sd_balance_interval(interval_ms, sd.busy_factor, busy, hz, sys.nr_cpus())
}

/// Moves `next_balance` (jiffies) forward to when an idle CPU balances `sd` next, if that is
/// earlier (`update_next_balance`).
pub fn update_next_balance(sys: &System, sd: &SchedDomain, next_balance: &mut u64) {
    let next = sd.state.last_balance.load(Relaxed) + get_sd_balance_interval(sys, sd, Pace::Idle);
    *next_balance = next.min(*next_balance);
}

/// The machine has run for long when jiffy `now` begins: each domain of each CPU was balanced
/// `ago(n)` jiffies before, less than the `n` at which a busy CPU balances it.
pub fn start_intervals<H: Host>(
    sys: &System,
    now: u64,
    host: &mut H,
    mut ago: impl FnMut(u64) -> u64,
) {
    for cpu in sys.cpus().iter() {
        let mut next = now + 60 * u64::from(sys.features.hz);
        for sd in sys.topology.domains(cpu) {
            let since = ago(get_sd_balance_interval(sys, sd, Pace::Busy));
            let last = now.saturating_sub(since);
            sd.state.last_balance.store(last, Relaxed);
            update_next_balance(sys, sd, &mut next);
        }
        sys.cpu[cpu.idx()].set_next_balance(cpu, next, host);
    }
    sys.nohz.set_next_balance(now, host);
    sys.nohz.set_next_blocked(now, host);
}

/// Every domain of every CPU is due at jiffy `now`, and so is balancing on behalf of idle CPUs,
/// whenever they were balanced last: a simulator's way to let the rules that decide where tasks are
/// do in a tick what takes an interval. Who balances and what is moved is not touched.
pub fn make_due<H: Host>(sys: &System, now: u64, host: &mut H) {
    for cpu in sys.cpus().iter() {
        for sd in sys.topology.domains(cpu) {
            let interval = get_sd_balance_interval(sys, sd, Pace::Busy);
            let last = now.saturating_sub(interval);
            sd.state.last_balance.store(last, Relaxed);
        }
        sys.cpu[cpu.idx()].set_next_balance(cpu, now, host);
    }
    sys.nohz.set_next_balance(now, host);
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
        assert_eq!(sd_balance_interval(16, 16, Some(1), 250, 16), 63);
        assert_eq!(sd_balance_interval(16, 16, None, 250, 16), 4);
        assert_eq!(sd_balance_interval(512, 16, Some(1), 250, 2), 50);
    }

    #[test]
    fn the_phases_of_balancing_are_those_of_a_machine_that_runs() {
        use crate::policy::Features;
        use crate::testing::Bench;
        use alloc::vec::Vec;
        let mut bench = Bench::nodes(2, 4, Features::default());
        let mut asked = Vec::new();
        start_intervals(&bench.sys, 1000, &mut bench.host, |interval| {
            asked.push(interval);
            asked.len() as u64
        });
        assert_eq!(
            asked[..2],
            [63, 127],
            "a busy CPU: 16 ms for each CPU of the domain"
        );
        for cpu in bench.sys.cpus().iter() {
            let nth = 2 * cpu.idx() as u64 + 1;
            let next = bench.sys.cpu[cpu.idx()].next_balance(cpu, &mut bench.host);
            assert_eq!(
                next,
                1000 - nth + 4,
                "an idle CPU: 4 ms for the first domain"
            );
            for (sd, ago) in bench.sys.topology.domains(cpu).iter().zip(nth..) {
                assert_eq!(sd.state.last_balance.load(Relaxed), 1000 - ago);
            }
        }
    }

    #[test]
    fn what_is_made_due_is_due_for_busy_cpus_too() {
        use crate::policy::Features;
        use crate::testing::Bench;
        let mut bench = Bench::nodes(2, 2, Features::default());
        start_intervals(&bench.sys, 1000, &mut bench.host, |_| 0);
        let due = |bench: &mut Bench| {
            let (sys, cpus) = (&bench.sys, bench.sys.cpus());
            let mut domains = cpus.iter().flat_map(|c| sys.topology.domains(c));
            let all = domains.all(|sd| {
                let interval = get_sd_balance_interval(sys, sd, Pace::Busy);
                sd.state.last_balance.load(Relaxed) + interval <= 1001
            });
            let host = &mut bench.host;
            all && cpus
                .iter()
                .all(|c| sys.cpu[c.idx()].next_balance(c, host) <= 1001)
        };
        assert!(!due(&mut bench));
        make_due(&bench.sys, 1001, &mut bench.host);
        assert!(due(&mut bench));
        assert!(bench.sys.nohz.next_balance(&mut bench.host) <= 1001);
    }
}

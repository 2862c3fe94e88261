//! Details of load balancing that changed between kernels.

use super::{BigTask, LbActive, LbCounts, LbOrder, LbSerialize, LbSmt, Throttle};

/// How often domains balance, and which imbalance they leave alone.
///
/// Sources: values of `kernel.sched_domain.*` as reports of users print them, of 3.x, 4.x and 5.x;
/// "sched: Rework sched_domain topology definition", Vincent Guittot, 2014, for 3.16;
/// "sched/fair: Reduce minimal imbalance threshold" and "sched/fair: Reduce busy load balance
/// interval", Vincent Guittot, 2020, for 5.10; between nodes "sched/numa: Rewrite the CONFIG_NUMA
/// sched domain support", Peter Zijlstra, 2012, for 3.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DomainLimits {
    /// 1 to 2 ms among the threads of a core, 1 to 4 ms in a node, between nodes a ms for each CPU
    /// and at most twice that, busy CPUs 64 (between nodes 32) times more rarely (3.5 to 3.15).
    Fixed,
    /// A ms for each CPU, at most twice that; busy CPUs 32 times more rarely (up to 5.9).
    Weight32,
    /// The same, busy CPUs 16 times more rarely (5.10 and later).
    Weight16,
}

/// The limits of one domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainLimit {
    /// Shortest and longest interval, ms.
    pub interval_ms: [u64; 2],
    /// How much rarer a busy CPU balances.
    pub busy_factor: u32,
    /// Imbalance that is left alone, per cent.
    pub imbalance_pct: u32,
}

impl DomainLimits {
    /// Those of a domain of `weight` CPUs: threads of a core (`smt`), within a last-level cache
    /// (`llc`), between nodes (`numa`), or none of these.
    #[must_use]
    pub const fn of(self, weight: u32, [smt, llc, numa]: [bool; 3]) -> DomainLimit {
        let by_weight = [weight as u64, 2 * weight as u64];
        let (interval_ms, busy_factor) = match self {
            Self::Fixed if smt => ([1, 2], 64),
            Self::Fixed if numa => (by_weight, 32),
            Self::Fixed => ([1, 4], 64),
            Self::Weight32 => (by_weight, 32),
            Self::Weight16 => (by_weight, 16),
        };
        let imbalance_pct = match self {
            _ if smt => 110,
            Self::Weight16 => 117,
            Self::Weight32 if llc => 117,
            Self::Weight32 | Self::Fixed => 125,
        };
        DomainLimit {
            interval_ms,
            busy_factor,
            imbalance_pct,
        }
    }

    /// By how many jiffies a busy CPU's interval falls short, so that levels whose intervals are
    /// multiples do not meet (5.10 and later).
    #[inline]
    #[must_use]
    pub const fn busy_short_by(self) -> u64 {
        matches!(self, Self::Weight16) as u64
    }
}

/// What `sched_balance_rq` may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadBalance {
    /// `sysctl_sched_nr_migrate`: most tasks looked at under one lock.
    pub nr_migrate: u32,
    /// A newly idle CPU pulls one task at most (`CONFIG_PREEMPTION`, as distributions build
    /// with `PREEMPT_DYNAMIC`).
    pub newidle_moves_one: bool,
    /// Tasks that have had more than their share are moved only after a failed attempt ("sched:
    /// Prioritize migrating eligible tasks in sched_balance_rq()", Hao Jia, for 6.14).
    pub eligible_first: bool,
    /// Which tasks of a queue are looked at first.
    pub order: LbOrder,
    /// Which of them are too big.
    pub big_task: BigTask,
    /// What the threads of a core count.
    pub smt: LbSmt,
    /// When the running task is pushed.
    pub active: LbActive,
    /// Within a cache, too, room in the local group is counted in utilisation where the busiest
    /// group is overloaded, not in tasks (up to 5.9; "sched/fair: Ensure tasks spreading in LLC
    /// during LB", Vincent Guittot, 2020, for 5.10).
    pub util_in_cache: bool,
    /// A task is hot for another thread of its core, too (up to 5.9; "sched/fair: Ignore cache
    /// hotness for SMT migration", Josh Don, 2020, for 5.10).
    pub hot_for_sibling: bool,
    /// Intervals and margins of domains.
    pub limits: DomainLimits,
    /// What a delayed sleeper counts.
    pub counts: LbCounts,
    /// When the word is taken that lets one CPU at a time balance between nodes.
    pub serialize: LbSerialize,
}

impl LoadBalance {
    /// As in Linux 6.18.
    pub const LINUX_6_18: Self = Self {
        nr_migrate: 32,
        newidle_moves_one: true,
        eligible_first: true,
        order: LbOrder::ColdestSwitch,
        big_task: BigTask::Shift,
        smt: LbSmt::Cores,
        active: LbActive::OnTasks,
        util_in_cache: false,
        hot_for_sibling: false,
        limits: DomainLimits::Weight16,
        serialize: LbSerialize::NewidleToo,
        counts: LbCounts::Runnable,
    };

    /// Whether an attempt after `failed` failures in a row passes by tasks that are not eligible.
    #[inline]
    #[must_use]
    pub const fn prefers_eligible(self, failed: u32) -> bool {
        self.eligible_first && failed == 0
    }
}

impl Throttle {
    /// Whether a throttled queue keeps its tasks from being moved away, besides keeping others
    /// from being moved to it.
    #[inline]
    #[must_use]
    pub const fn pins_waiting_tasks(self) -> bool {
        matches!(self, Self::WholeQueue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_that_the_kernels_print() {
        let of = |limits: DomainLimits, weight, level| {
            let l = limits.of(weight, level);
            (l.interval_ms, l.busy_factor, l.imbalance_pct)
        };
        let (smt, llc) = ([true, true, false], [false, true, false]);
        let (package, numa) = ([false; 3], [false, false, true]);
        // 3.x: SIBLING and MC of four CPUs.
        assert_eq!(of(DomainLimits::Fixed, 2, smt), ([1, 2], 64, 110));
        assert_eq!(of(DomainLimits::Fixed, 4, llc), ([1, 4], 64, 125));
        assert_eq!(of(DomainLimits::Fixed, 16, numa), ([16, 32], 32, 125));
        // 4.x: SMT and MC of eight CPUs, NUMA of 36.
        assert_eq!(of(DomainLimits::Weight32, 2, smt), ([2, 4], 32, 110));
        assert_eq!(of(DomainLimits::Weight32, 8, llc), ([8, 16], 32, 117));
        assert_eq!(of(DomainLimits::Weight32, 36, numa), ([36, 72], 32, 125));
        // 6.x
        assert_eq!(of(DomainLimits::Weight16, 2, smt), ([2, 4], 16, 110));
        assert_eq!(of(DomainLimits::Weight16, 16, package), ([16, 32], 16, 117));
    }
}

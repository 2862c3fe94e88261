//! Limits of newly-idle balancing.
//!
//! Source: "sched/fair: Proportional newidle balance", Peter Zijlstra, 2025, for 6.19 and the
//! stable kernels 6.18 and 6.12.

use crate::math::pelt::update_avg;

/// What has to be worth the search of a CPU that runs dry.
///
/// Sources: "sched/balancing: Consider max cost of idle balance per sched domain", Jason Low, 3.13;
/// "sched/fair: Implement fast idling of CPUs when the system is partially loaded", Tim Chen, 3.17;
/// "sched/fair: Remove sysctl_sched_migration_cost condition", Vincent Guittot, 5.16; the average
/// "sched: Reduce overestimating rq->avg_idle", Jason Low, 3.13.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewidleGate {
    /// The average idle period is not below the migration cost; an idle period of more than
    /// twice that sets the average to that (up to 3.12).
    MigrationCostOnly,
    /// And some CPU of the machine is overloaded, and each level costs less than is left of the
    /// average idle period (up to 5.15).
    MigrationCost,
    /// Only that: overload, and the levels' own costs (5.16 and later).
    DomainCost,
}

impl NewidleGate {
    /// Whether the walk over blocked averages is part of the first level's cost ("sched/fair:
    /// Account update_blocked_averages in newidle_balance cost", Vincent Guittot, for 5.16).
    #[inline]
    #[must_use]
    pub const fn counts_blocked_walk(self) -> bool {
        matches!(self, Self::DomainCost)
    }
}

/// When a CPU that runs dry looks for work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newidle {
    /// `sched_migration_cost`, ns: how long a task counts as cache-hot after it ran, the least
    /// upper bound of the idle periods that are averaged, and the average below which a CPU that
    /// runs dry does not promise to decay blocked load.
    pub migration_cost_ns: u64,
    /// What has to be worth it.
    pub gate: NewidleGate,
    /// Attempts are made in proportion to their recent success, by a random number
    /// (`NI_RANDOM`, 6.19 and stable kernels since).
    pub proportional: bool,
}

impl Newidle {
    /// Whether a CPU whose idle periods last `avg_idle_ns` looks at all, where the first level
    /// costs `first_cost_ns`.
    #[inline]
    pub fn looks(
        self,
        avg_idle_ns: u64,
        first_cost_ns: u64,
        overloaded: impl FnOnce() -> bool,
    ) -> bool {
        match self.gate {
            NewidleGate::MigrationCostOnly => avg_idle_ns >= self.migration_cost_ns,
            NewidleGate::MigrationCost => avg_idle_ns >= self.migration_cost_ns && overloaded(),
            NewidleGate::DomainCost => overloaded() && avg_idle_ns >= first_cost_ns,
        }
    }

    /// The average idle period after one of `idle_ns`, where a search costs `cost_ns` at most.
    #[inline]
    #[must_use]
    pub fn average_idle(self, mut avg_idle_ns: u64, idle_ns: u64, cost_ns: u64) -> u64 {
        let most = match self.gate {
            NewidleGate::MigrationCostOnly => 2 * self.migration_cost_ns,
            NewidleGate::MigrationCost | NewidleGate::DomainCost => 2 * cost_ns,
        };
        if self.gate == NewidleGate::MigrationCostOnly && idle_ns > most {
            return most;
        }
        update_avg(&mut avg_idle_ns, idle_ns);
        avg_idle_ns.min(most)
    }

    /// Whether a level that costs `cost_ns` at most, after `spent_ns`, is worth it.
    #[inline]
    #[must_use]
    pub const fn goes_on(self, avg_idle_ns: u64, spent_ns: u64, cost_ns: u64) -> bool {
        matches!(self.gate, NewidleGate::MigrationCostOnly) || avg_idle_ns >= spent_ns + cost_ns
    }

    /// Whether a CPU looks again that cannot run what it has found. Up to 3.14 the search came
    /// before the choice, once.
    #[inline]
    #[must_use]
    pub const fn looks_again(self) -> bool {
        !matches!(self.gate, NewidleGate::MigrationCostOnly)
    }

    /// Whether to try a level whose attempts succeeded `ratio` times of 1024; if so, for how many
    /// attempts a success stands, because the others were not made.
    #[inline]
    #[must_use]
    pub fn dice(self, ratio: u32, random: impl FnOnce() -> u32) -> Option<u32> {
        if !self.proportional {
            return Some(1);
        }
        let chance = 1 + ratio;
        if random() % 1024 > chance {
            return None;
        }
        Some((1024 + chance / 2) / chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: Newidle = Newidle {
        migration_cost_ns: 500_000,
        gate: NewidleGate::DomainCost,
        proportional: true,
    };

    #[test]
    fn a_success_stands_for_the_attempts_that_were_not_made() {
        assert_eq!(RANDOM.dice(1023, || 1023), Some(1));
        assert_eq!(RANDOM.dice(511, || 512), Some(2));
        assert_eq!(RANDOM.dice(511, || 513), None);
        assert_eq!(RANDOM.dice(0, || 1), Some(1024));
        assert_eq!(RANDOM.dice(0, || 2), None);
    }

    #[test]
    fn without_proportion_no_random_number_is_drawn() {
        let always = Newidle {
            proportional: false,
            ..RANDOM
        };
        assert_eq!(always.dice(0, || unreachable!()), Some(1));
    }

    #[test]
    fn one_long_idle_period_overestimated_the_average() {
        let average = |gate, avg, idle, cost| {
            let newidle = Newidle { gate, ..RANDOM };
            newidle.average_idle(avg, idle, cost)
        };
        let old = NewidleGate::MigrationCostOnly;
        assert_eq!(average(old, 10_000, 1_000_001, 0), 1_000_000);
        assert_eq!(average(old, 10_000, 810_000, 0), 110_000);
        let new = NewidleGate::DomainCost;
        assert_eq!(average(new, 10_000, 1_610_000, 500_000), 210_000);
        assert_eq!(average(new, 10_000, 16_000_000, 500_000), 1_000_000);
    }

    #[test]
    fn short_idle_periods_do_not_search_where_the_migration_cost_counts() {
        let of = |gate| Newidle { gate, ..RANDOM };
        let looks = |gate, idle| of(gate).looks(idle, 20_000, || true);
        assert!(looks(NewidleGate::DomainCost, 100_000));
        assert!(!looks(NewidleGate::DomainCost, 19_000));
        assert!(!looks(NewidleGate::MigrationCost, 100_000));
        assert!(looks(NewidleGate::MigrationCost, 500_000));
        let calm = |gate| of(gate).looks(900_000, 0, || false);
        assert!(calm(NewidleGate::MigrationCostOnly));
        assert!(!calm(NewidleGate::MigrationCost) && !calm(NewidleGate::DomainCost));
        assert!(!of(NewidleGate::MigrationCost).goes_on(100, 60, 41));
        assert!(of(NewidleGate::MigrationCostOnly).goes_on(100, 60, 41));
    }
}

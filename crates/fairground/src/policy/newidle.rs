//! Limits of newly-idle balancing.
//!
//! Source: "sched/fair: Proportional newidle balance", Peter Zijlstra, 2025, for 6.19 and the
//! stable kernels 6.18 and 6.12.

/// When a CPU that runs dry looks for work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newidle {
    /// `sched_migration_cost`, ns: how long a task counts as cache-hot after it ran, the least
    /// upper bound of the idle periods that are averaged, and the average below which a CPU that
    /// runs dry does not promise to decay blocked load.
    pub migration_cost_ns: u64,
    /// Attempts are made in proportion to their recent success, by a random number
    /// (`NI_RANDOM`, 6.19 and stable kernels since).
    pub proportional: bool,
}

impl Newidle {
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
}

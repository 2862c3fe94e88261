//! When a `cfs_rq` folds its load into `TaskGroup::load_avg` (patch `tg-load-avg-ratelimit`).
//!
//! Source: "sched/fair: ratelimit update to tg->load_avg", Aaron Lu, 2023, merged for 6.7.

/// The publish rate of a group's load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TgLoadAvg {
    /// Shortest time between two updates by one queue, ns. 0 = every change beyond 1/64.
    pub period_ns: u64,
}

impl TgLoadAvg {
    /// Every change beyond 1/64, up to 6.6.
    pub const ON_CHANGE: Self = Self { period_ns: 0 };
    /// At most once a millisecond, from 6.7.
    pub const RATE_LIMITED: Self = Self {
        period_ns: 1_000_000,
    };

    /// Whether an update may be made at `now`, the last one being at `last` (ns). That one may have
    /// been made by another CPU, whose clock is a little ahead: then it was just now.
    #[inline]
    #[must_use]
    pub const fn is_due(self, now: u64, last: u64) -> bool {
        self.period_ns == 0 || now.saturating_sub(last) >= self.period_ns
    }

    /// Whether the rule looks at the clock at all: the rate limit reads the scheduler clock, the
    /// old rule does not.
    #[inline]
    #[must_use]
    pub const fn reads_clock(self) -> bool {
        self.period_ns != 0
    }

    /// Whether `load` differs enough from what was published, `contrib`: by more than 1/64.
    #[inline]
    #[must_use]
    pub const fn is_worth(self, load: u64, contrib: u64) -> bool {
        load.abs_diff(contrib) > contrib / 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_after_a_period_and_never_before_the_last() {
        let rule = TgLoadAvg::RATE_LIMITED;
        let due = [999, 1_000_999, 1_001_000].map(|now| rule.is_due(now, 1000));
        assert_eq!(due, [false, false, true]);
        assert!(TgLoadAvg::ON_CHANGE.is_due(999, 1000));
    }

    #[test]
    fn worth_it_beyond_a_64th_in_both_directions() {
        let rule = TgLoadAvg::RATE_LIMITED;
        let worth = [630, 629, 650, 651].map(|load| rule.is_worth(load, 640));
        assert_eq!(worth, [false, true, false, true]);
        assert!(rule.is_worth(1, 0) && !rule.is_worth(0, 0));
    }
}

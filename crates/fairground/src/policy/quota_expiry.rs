//! Whether runtime that a queue has drawn ends with the period for which it was drawn.
//!
//! Up to 5.3 it should: what a CPU had drawn and not used was lost when the group's period ended.
//! A queue remembers the deadline that the pool had when it drew (`runtime_expires`), and the
//! pool's moves on with each refill. Clocks of two CPUs differ a little, so a deadline that has
//! passed by one's own clock may not have by that of the CPU which refills. Then it is a tick.
//!
//! Sources, all changelogs: "sched: Expire invalid runtime" and "sched: Return unused runtime on
//! group dequeue" (3.2); "sched/fair: Fix bandwidth timer clock drift condition" and "sched/fair:
//! Advance global expiration when period timer is restarted" (4.18), which say what was wrong from
//! 3.16 on; "sched/fair: Fix low cpu usage with high throttling by removing expiration of cpu-local
//! slices" (5.4).

use crate::shared::Deadline;

/// What ends with the period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuotaExpiry {
    /// Nothing: a queue uses later what it has not used (since 5.4).
    Off,
    /// Meant as `Period`, with a test for drifting clocks that takes every deadline older than the
    /// pool's for drift. Lost is what was drawn for the pool's own deadline, if that has passed:
    /// until the first refill after the period timer has rested (3.16 to 4.17).
    Drift,
    /// What was drawn for an earlier period than the pool's (3.2 to 3.15, 4.18 to 5.3).
    Period,
}

/// What becomes of a queue's runtime.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// It can be used.
    Keep,
    /// The clocks seem to differ: it can be used for a tick more.
    Extend,
    /// It is lost.
    Expire,
}

impl QuotaExpiry {
    /// Whether queues and pools have deadlines.
    #[inline]
    #[must_use]
    pub const fn has_deadlines(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether the pool's deadline moves on when the period timer starts again after a rest, too,
    /// not only when it fires.
    #[inline]
    #[must_use]
    pub const fn renews_at_start(self) -> bool {
        matches!(self, Self::Period)
    }

    /// Of runtime drawn for the deadline `own`, at `now`, while the pool's is `group`.
    #[inline]
    pub const fn judge(self, now: u64, own: Deadline, group: Deadline) -> Expiry {
        match self {
            Self::Off => Expiry::Keep,
            _ if now < own.at => Expiry::Keep,
            Self::Drift if own.at != group.at => Expiry::Extend,
            Self::Period if own.seq == group.seq => Expiry::Extend,
            Self::Drift | Self::Period => Expiry::Expire,
        }
    }

    /// Whether runtime drawn for `own` may go back to the pool when its queue empties.
    #[inline]
    #[must_use]
    pub const fn can_return(self, own: Deadline, group: Deadline) -> bool {
        match self {
            Self::Off => true,
            Self::Drift => own.at == group.at,
            Self::Period => own.seq == group.seq,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Deadline = Deadline { at: 100, seq: 1 };
    const NEXT: Deadline = Deadline { at: 200, seq: 2 };
    const ALL: [QuotaExpiry; 3] = [QuotaExpiry::Off, QuotaExpiry::Drift, QuotaExpiry::Period];

    fn judged(now: u64, own: Deadline, group: Deadline) -> [Expiry; 3] {
        ALL.map(|expiry| expiry.judge(now, own, group))
    }

    #[test]
    fn before_its_deadline_all_is_kept() {
        assert_eq!(judged(99, FIRST, FIRST), [Expiry::Keep; 3]);
        assert_eq!(judged(99, FIRST, NEXT), [Expiry::Keep; 3]);
    }

    #[test]
    fn after_a_refill_only_period_lets_it_expire() {
        let after = [Expiry::Keep, Expiry::Extend, Expiry::Expire];
        assert_eq!(judged(100, FIRST, NEXT), after);
        let extended = Deadline { at: 104, ..FIRST };
        assert_eq!(judged(104, extended, NEXT), after);
    }

    #[test]
    fn without_a_refill_drift_takes_the_deadline_for_real_and_period_for_drift() {
        let before = [Expiry::Keep, Expiry::Expire, Expiry::Extend];
        assert_eq!(judged(100, FIRST, FIRST), before);
    }

    #[test]
    fn what_is_not_of_the_present_period_stays_out_of_the_pool() {
        for expiry in ALL {
            assert!(expiry.can_return(FIRST, FIRST));
            let old_may = expiry == QuotaExpiry::Off;
            assert_eq!(expiry.can_return(FIRST, NEXT), old_may);
        }
    }
}

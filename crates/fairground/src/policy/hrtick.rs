//! `HRTICK`: whether a timer of its own ends a slice, or the next tick does.
//!
//! Sources: changelog "sched: high-res preemption tick" (Peter Zijlstra, 2008, 2.6.25; off unless
//! asked for up to 7.0); postings "sched/eevdf: Fix HRTICK duration", "sched/fair: Simplify
//! hrtick_update()" and "sched: Default enable HRTICK when deferred rearming is enabled" (Peter
//! Zijlstra, 2026-02-24, for 7.1). No recording holds either against a kernel.

use crate::math::weight::NICE_0_LOAD;
use crate::task::SchedEntity;

/// What ends the turn of a task that is not alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hrtick {
    /// The first tick after its slice (the default up to 7.0).
    Off,
    /// A timer, when it has run for its slice since it was picked; set again whenever somebody
    /// joins or leaves, and withdrawn at each choice (2.6.25 to 7.0 with the feature on).
    Slice,
    /// A timer, when it reaches its deadline; it is left alone until somebody else is picked (7.1,
    /// where it is the default).
    Deadline,
}

impl Hrtick {
    /// Whether there is such a timer.
    #[inline]
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether each choice withdraws the timer, and who joins or leaves sets it anew.
    #[inline]
    #[must_use]
    pub const fn follows_queue(self) -> bool {
        matches!(self, Self::Slice)
    }

    /// What is left of the turn of `se`, ns; negative if it is over. `slice_ns` is its slice;
    /// `by_deadline` = its queue picks by deadline: CFS has none, so there a turn is the slice.
    #[inline]
    #[must_use]
    pub fn left_ns(self, se: &SchedEntity, slice_ns: u64, by_deadline: bool) -> i64 {
        if self.follows_queue() || !by_deadline {
            let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime;
            return slice_ns.wrapping_sub(ran) as i64;
        }
        let left = se.deadline.wrapping_sub(se.vruntime) as i64;
        let real = i128::from(left) * i128::from(se.load.weight) / i128::from(NICE_0_LOAD);
        real as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::weight::LoadWeight;

    #[test]
    fn a_turn_ends_with_the_slice_or_with_the_deadline() {
        let se = SchedEntity {
            load: LoadWeight::new(2 * NICE_0_LOAD),
            vruntime: 5_000_000,
            deadline: 5_350_000,
            sum_exec_runtime: 9_000_000,
            prev_sum_exec_runtime: 8_500_000,
            ..SchedEntity::default()
        };
        assert_eq!(Hrtick::Slice.left_ns(&se, 1_400_000, true), 900_000);
        assert_eq!(Hrtick::Slice.left_ns(&se, 400_000, true), -100_000);
        // The heavier one's virtual time is slower.
        assert_eq!(Hrtick::Deadline.left_ns(&se, 1_400_000, true), 700_000);
        assert_eq!(Hrtick::Deadline.left_ns(&se, 1_400_000, false), 900_000);
    }
}

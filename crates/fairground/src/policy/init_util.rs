//! First utilisation of a new task.
//!
//! Source: "sched/fair: Fix initial util_avg calculation", Dawei Li, 2024, for 6.10: the weight in
//! the product had the fixed point of weights, the load below the line had not.

use crate::math::weight::scale_load_down;

/// What a new task's part of its queue's utilisation is computed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitUtil {
    /// The weight as it is kept, 1024 times that of load averages: nearly always more than the
    /// bound, half of what the queue has left (up to 6.9).
    ScaledWeight,
    /// The weight of load averages (6.10 and later).
    Weight,
}

impl InitUtil {
    /// Part of a queue with `util_avg` (capacity scale) and `load_avg` (unscaled load) for an
    /// entity with a weight in load units.
    #[inline]
    #[must_use]
    pub const fn part_of(self, util_avg: u64, load_avg: u64, weight: u64) -> u64 {
        let weight = match self {
            Self::ScaledWeight => weight,
            Self::Weight => scale_load_down(weight),
        };
        util_avg.wrapping_mul(weight) / (load_avg + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::weight::NICE_0_LOAD;

    #[test]
    fn the_fixed_point_of_the_weight_counted_once() {
        let part = |how: InitUtil| how.part_of(100, 2047, NICE_0_LOAD);
        assert_eq!(part(InitUtil::Weight), 50);
        assert_eq!(part(InitUtil::ScaledWeight), 51_200);
    }
}

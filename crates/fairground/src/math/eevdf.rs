//! Virtual time, lag, eligibility and deadlines.
//!
//! Read first: I. Stoica, H. Abdel-Wahab, "Earliest Eligible Virtual Deadline First: A Flexible
//! and Accurate Mechanism for Proportional Share Resource Allocation", TR-95-22, Old Dominion
//! University, 1995. Section numbers below are the paper's.
//!
//! Units. Virtual times (`vruntime`, `deadline`, lag) are ns that a nice-0 entity would have run;
//! as absolute values they are `u64` on a ring and only differences mean anything. Weights are
//! unscaled (nice 0 = 1024, 2..=2^18) unless a name says otherwise.
//!
//! # Symbols
//!
//! ```text
//!     w_i   weight of entity i on a queue           W = sum w_i
//!     v_i   its vruntime: service received / w_i    V   virtual time of the queue
//!     l_i   its lag: service due - received         l_i = w_i * (V - v_i)
//!     r_i   its request (slice), as real time       d_i = v_i at the request + r_i / w_i
//! ```
//!
//! What one entity is behind another must be ahead: the lags sum to zero (section 3), so
//!
//! ```text
//!     sum w_i (V - v_i) = 0     =>     V = sum w_i v_i / W                          (1)
//! ```
//!
//! The virtual time needs no clock: it is the weighted mean of what the entities carry.

use super::weight::{LoadWeight, calc_delta_fair};

/// Whether virtual time `a` is before `b` on the ring.
#[inline]
pub const fn vruntime_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// Whether deadline `a` is before `b`. Equal deadlines are not before each other.
#[inline]
pub const fn deadline_before(a: u64, b: u64) -> bool {
    vruntime_before(a, b)
}

/// The earlier of two virtual times.
#[inline]
pub const fn vruntime_min(a: u64, b: u64) -> u64 {
    if vruntime_before(b, a) { b } else { a }
}

/// The later of two virtual times.
#[inline]
pub const fn vruntime_max(a: u64, b: u64) -> u64 {
    if vruntime_before(a, b) { b } else { a }
}

/// An entity's vruntime relative to the queue's reference `v0`.
#[inline]
pub const fn entity_key(vruntime: u64, v0: u64) -> i64 {
    vruntime.wrapping_sub(v0) as i64
}

/// Numerator and denominator of the mean (1), relative to a reference `v0` of the queue.
///
/// # Derivation
///
/// With `k_i = v_i - v0` for any `v0`,
///
/// ```text
///     V = v0 + (sum w_i k_i) / W                                                    (2)
/// ```
///
/// `v0` is kept near the entities, so keys are small, products with weights stay below 2^63 and
/// the ring's wrap does not matter. Moving `v0` by `e` makes every key smaller by `e`, which is
/// `W * e` for the sum: [`AvgVruntime::shift`].
///
/// The queue keeps this for the entities in its tree; the current one changes all the time and
/// is added when a question is asked: [`AvgVruntime::with`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvgVruntime {
    /// `sum w_i k_i`.
    pub sum: i64,
    /// `W`.
    pub load: i64,
}

impl AvgVruntime {
    /// Adds an entity.
    #[inline]
    pub const fn add(&mut self, key: i64, weight: u64) {
        self.sum = self.sum.wrapping_add(key.wrapping_mul(weight as i64));
        self.load += weight as i64;
    }

    /// Takes an entity away; `key` must be relative to the present reference.
    #[inline]
    pub const fn remove(&mut self, key: i64, weight: u64) {
        self.sum = self.sum.wrapping_sub(key.wrapping_mul(weight as i64));
        self.load -= weight as i64;
    }

    /// The reference has moved forward by `delta`.
    #[inline]
    pub const fn shift(&mut self, delta: i64) {
        self.sum = self.sum.wrapping_sub(self.load.wrapping_mul(delta));
    }

    /// The same, with the current entity counted in.
    #[inline]
    #[must_use]
    pub const fn with(mut self, key: i64, weight: u64) -> Self {
        self.add(key, weight);
        self
    }

    /// `V - v0`, rounded down (towards earlier, also when negative); 0 of nothing.
    ///
    /// Down, so that an entity placed at this `V`, with lag 0, is eligible by the exact test of
    /// [`entity_eligible`]: rounded up it would stand just ahead of the mean.
    #[inline]
    pub const fn mean_key(&self) -> i64 {
        if self.load <= 0 {
            return 0;
        }
        let bias = if self.sum < 0 { self.load - 1 } else { 0 };
        self.sum.wrapping_sub(bias).wrapping_div(self.load)
    }

    /// The virtual time `V` of the queue. `curr` is the key and the weight of the current entity
    /// while it is on the queue (but not in what `self` sums).
    #[inline]
    pub const fn avg_vruntime(&self, v0: u64, curr: Option<(i64, u64)>) -> u64 {
        let all = match curr {
            Some((key, weight)) => self.with(key, weight),
            None => *self,
        };
        v0.wrapping_add(all.mean_key() as u64)
    }
}

/// Whether an entity has received no more than its due.
///
/// # Derivation
///
/// Eligible is who has lag >= 0 (section 4), that is `v_i <= V`. With (2) and `W > 0`,
///
/// ```text
///     v_i - v0 <= (sum w_j k_j) / W     <=>     (v_i - v0) * W <= sum w_j k_j
/// ```
///
/// which needs no division and loses nothing to rounding. `all` must include the current entity.
/// The answer is monotone: who has a smaller vruntime than an eligible entity is eligible.
#[inline]
pub const fn entity_eligible(all: &AvgVruntime, v0: u64, vruntime: u64) -> bool {
    all.sum >= entity_key(vruntime, v0).wrapping_mul(all.load)
}

/// The lag an entity keeps, as virtual time: `V - v_i` within limits.
///
/// # Derivation
///
/// In a steady system the lag is bounded by the larger of the entity's request and one quantum,
/// `-r_max < l_i < max(r_max, q)` (theorem 1). Beyond that, it comes from joining and leaving or
/// from late ticks, and to keep it would let an entity hog the CPU later, or starve.
/// [`LagLimit`](crate::policy::LagLimit) says what a kernel takes for the bound; in virtual time,
///
/// ```text
///     |V - v_i| <= limit / w_i
/// ```
///
/// `load` is the entity's (scaled) weight; `limit_ns` is real time.
#[inline]
pub const fn entity_lag(avg_vruntime: u64, vruntime: u64, limit_ns: u64, load: &LoadWeight) -> i64 {
    let limit = calc_delta_fair(limit_ns, load) as i64;
    let lag = avg_vruntime.wrapping_sub(vruntime) as i64;
    if lag < -limit {
        -limit
    } else if lag > limit {
        limit
    } else {
        lag
    }
}

/// The lag with which an entity has to be placed so that it has the lag `vlag` afterwards.
///
/// # Derivation
///
/// Before, the queue has weight `W` and mean `V`. An entity of weight `w` placed at `v = V - x`
/// moves the mean:
///
/// ```text
///     V' = (W V + w (V - x)) / (W + w) = V - x w / (W + w)
/// ```
///
/// so its lag, measured against the new mean, is
///
/// ```text
///     V' - v = x - x w / (W + w) = x W / (W + w)
/// ```
///
/// less than `x` in size: each sleep would eat a part of the lag. For `V' - v = vlag` take
///
/// ```text
///     x = vlag (W + w) / W
/// ```
///
/// `queue_load` is `W`, with the current entity, and must not contain `w`. On an empty queue the
/// lag has no meaning; the caller does not ask, and 0 is taken as 1.
#[inline]
pub const fn place_lag(vlag: i64, queue_load: i64, weight: u64) -> i64 {
    debug_assert!(queue_load > 0);
    let load = if queue_load > 0 { queue_load } else { 1 };
    vlag.wrapping_mul(queue_load + weight as i64)
        .wrapping_div(load)
}

/// A relative virtual time of an entity after its weight changed from `old` to `new`.
///
/// # Derivation
///
/// Reweighting must neither give nor take service. The real lag `w (V - v_i)` stays, so the
/// virtual lag scales by `old / new`. The unused rest of the request, `w (d_i - v_i)`, stays as
/// well, so a deadline relative to the vruntime scales in the same way; and so does the end of
/// the protected part of the slice, where it is kept as virtual time. Hence the rule for
/// reweighting an entity:
///
/// ```text
///     vlag' = rescale(vlag)    d' - v' = rescale(d - v)    vprot' - v' = rescale(vprot - v)
/// ```
///
/// and then the entity is placed again with its lag. Rounds towards zero. Both weights are in the
/// same resolution (the kernel uses scaled ones).
///
/// That is one with the pace of the vruntime only from 2048 on: the pace is by the unscaled weight,
/// which is at least 2. A group's entity that falls from 1729 to 2 keeps its pace and gets 864
/// times its lag, so its vruntime may be hours from the mean, far beyond the bound of its new
/// weight. There it stays until the others have caught up, or its weight changes again, which cuts
/// the lag to the bound.
#[inline]
pub const fn rescale(value: i64, old: u64, new: u64) -> i64 {
    debug_assert!(new as i64 > 0);
    let divisor = if new as i64 > 0 { new as i64 } else { 1 };
    value.wrapping_mul(old as i64).wrapping_div(divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::weight::NICE_0_LOAD;

    #[test]
    fn order_survives_the_wrap() {
        assert!(vruntime_before(u64::MAX, 0));
        assert!(!vruntime_before(0, u64::MAX));
        assert!(!deadline_before(7, 7));
        assert_eq!(vruntime_min(u64::MAX - 3, 5), u64::MAX - 3);
        assert_eq!(vruntime_max(u64::MAX - 3, 5), 5);
        assert_eq!(entity_key(2, u64::MAX), 3);
    }

    #[test]
    fn mean_rounds_down_on_both_sides() {
        let mut avg = AvgVruntime::default();
        assert_eq!(avg.mean_key(), 0);
        avg.add(1, 2);
        avg.add(0, 1);
        assert_eq!(avg.mean_key(), 0); // 2 / 3
        avg.remove(1, 2);
        avg.add(-1, 2);
        assert_eq!(avg.mean_key(), -1); // -2 / 3
        assert_eq!(avg.avg_vruntime(100, None), 99);
        assert_eq!(avg.avg_vruntime(100, Some((5, 2))), 101); // 8 / 5
    }

    #[test]
    fn moving_the_reference_moves_nothing() {
        let mut avg = AvgVruntime::default();
        avg.add(50, 1024);
        avg.add(-20, 335);
        let before = avg.avg_vruntime(1000, None);
        avg.shift(-300);
        assert_eq!(avg.avg_vruntime(700, None), before);
    }

    #[test]
    fn the_mean_itself_is_eligible_and_one_past_it_is_not() {
        let mut avg = AvgVruntime::default();
        avg.add(10, 1024);
        avg.add(20, 1024);
        assert!(entity_eligible(&avg, 0, 15));
        assert!(!entity_eligible(&avg, 0, 16));
    }

    #[test]
    fn lag_is_limited() {
        let load = LoadWeight::new(NICE_0_LOAD);
        assert_eq!(entity_lag(5000, 0, 2000, &load), 2000);
        assert_eq!(entity_lag(0, 5000, 2000, &load), -2000);
        assert_eq!(entity_lag(1500, 0, 2000, &load), 1500);
        // A light entity's virtual time is longer: 2000 ns at weight 512.
        assert_eq!(
            entity_lag(9000, 0, 2000, &LoadWeight::new(NICE_0_LOAD / 2)),
            3999
        );
    }

    #[test]
    fn placed_lag_comes_out_as_asked() {
        let (v, load, weight, vlag) = (1_000_000, 3072, 1024, 9000);
        let x = place_lag(vlag, load, weight);
        assert_eq!(x, 12_000);
        let mut avg = AvgVruntime { sum: 0, load };
        avg.add(-x, weight);
        assert_eq!(avg.avg_vruntime(v, None) - (v - x as u64), vlag as u64);
    }

    #[test]
    fn reweight_there_and_back() {
        assert_eq!(rescale(-1123, NICE_0_LOAD, 2), -588_775_424);
        assert_eq!(rescale(-588_775_424, 2, NICE_0_LOAD), -1123);
        assert_eq!(rescale(-3, 1, 2), -1);
    }
}

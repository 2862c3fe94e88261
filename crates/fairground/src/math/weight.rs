//! Weights: nice levels, `cpu.weight`, the two resolutions, and the division by a weight.
//!
//! Units. A weight exists in two resolutions. *Scaled* weights carry [`FIXEDPOINT_SHIFT`] extra
//! bits, so nice 0 is `1 << 20`; [`LoadWeight`] and group shares are scaled. *Unscaled* weights
//! have nice 0 at 1024; load averages and virtual-time sums use those. [`scale_load`] and
//! [`scale_load_down`] convert. (The 64-bit rule of Linux; on 32 bits both are the same.)

use super::mul_shift;

/// Extra bits of a scaled weight.
pub const FIXEDPOINT_SHIFT: u32 = 10;

/// Scaled weight of nice 0: 2^20. Virtual time of such an entity runs at the speed of real time.
pub const NICE_0_LOAD: u64 = 1 << (10 + FIXEDPOINT_SHIFT);

/// Unscaled weight of a `SCHED_IDLE` task.
pub const WEIGHT_IDLEPRIO: u32 = 3;

/// Inverse of [`WEIGHT_IDLEPRIO`].
pub const INV_WEIGHT_IDLEPRIO: u32 = u32::MAX / WEIGHT_IDLEPRIO;

/// Smallest shares of a group: as `cpu.shares` and as a group entity's (scaled) weight.
pub const MIN_SHARES: u64 = 2;

/// Largest shares of a group, unscaled.
pub const MAX_SHARES: u64 = 1 << 18;

/// `cpu.weight` of a new cgroup; corresponds to nice 0.
pub const CGROUP_WEIGHT_DFL: u64 = 100;

/// Smallest `cpu.weight`.
pub const CGROUP_WEIGHT_MIN: u64 = 1;

/// Largest `cpu.weight`.
pub const CGROUP_WEIGHT_MAX: u64 = 10_000;

/// Unscaled weight of each nice level, -20 first.
///
/// Two neighbours differ by about 1.25, so that one nice level moves about 10 % of a CPU between
/// two tasks. The published numbers are not exactly a power of 1.25, so the table is data.
pub const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// 2^32 / weight of each nice level, -20 first.
pub const INV_WEIGHTS: [u32; 40] = inverses(&WEIGHTS);

/// Unscaled weight of `nice`, which is clamped to -20..=19.
#[inline]
pub const fn nice_to_weight(nice: i8) -> u32 {
    WEIGHTS[nice_index(nice)]
}

/// Inverse (2^32 / weight) of the weight of `nice`, which is clamped to -20..=19.
#[inline]
pub const fn nice_to_inv_weight(nice: i8) -> u32 {
    INV_WEIGHTS[nice_index(nice)]
}

/// From the unscaled to the scaled resolution.
#[inline]
pub const fn scale_load(weight: u64) -> u64 {
    weight << FIXEDPOINT_SHIFT
}

/// From the scaled to the unscaled resolution; what is not zero stays at least 2.
///
/// Zero means "nothing here" to load tracking, and a division by one or less is no use to the
/// callers, hence the floor.
#[inline]
pub const fn scale_load_down(weight: u64) -> u64 {
    let down = weight >> FIXEDPOINT_SHIFT;
    if down >= 2 {
        return down;
    }
    core::hint::cold_path();
    if weight == 0 { 0 } else { 2 }
}

/// Unscaled shares of a `cpu.weight` (1..=10000): closest to `weight * 1024 / 100`. Not what
/// `sched::set_shares` takes, which is scaled; `sched::set_cpu_weight` takes the weight itself.
#[inline]
pub const fn shares_from_cgroup(cpu_weight: u64) -> u64 {
    div_round_closest(cpu_weight * 1024, CGROUP_WEIGHT_DFL)
}

/// `cpu.weight` of unscaled shares: closest to `shares * 100 / 1024`, clamped to 1..=10000.
#[inline]
pub const fn shares_to_cgroup(shares: u64) -> u64 {
    let weight = div_round_closest(shares * CGROUP_WEIGHT_DFL, 1024);
    if weight < CGROUP_WEIGHT_MIN {
        CGROUP_WEIGHT_MIN
    } else if weight > CGROUP_WEIGHT_MAX {
        CGROUP_WEIGHT_MAX
    } else {
        weight
    }
}

/// Scaled shares of a group that asks for `shares` (unscaled), held in the legal range.
#[inline]
pub const fn group_shares(shares: u64) -> u64 {
    let clamped = if shares < MIN_SHARES {
        MIN_SHARES
    } else if shares > MAX_SHARES {
        MAX_SHARES
    } else {
        shares
    };
    scale_load(clamped)
}

/// A scaled weight with its inverse, so that dividing by it is a multiplication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadWeight {
    /// Scaled weight.
    pub weight: u64,
    /// About 2^32 / unscaled weight; 0 = not computed since the weight changed.
    pub inv_weight: u32,
}

impl LoadWeight {
    /// A weight whose inverse is found when first needed.
    #[inline]
    pub const fn new(weight: u64) -> Self {
        Self {
            weight,
            inv_weight: 0,
        }
    }

    /// The weight of a task of `nice` (-20..=19).
    #[inline]
    pub const fn from_nice(nice: i8) -> Self {
        let weight = scale_load(nice_to_weight(nice) as u64);
        Self {
            weight,
            inv_weight: nice_to_inv_weight(nice),
        }
    }

    /// The weight of a `SCHED_IDLE` task.
    #[inline]
    pub const fn idle_prio() -> Self {
        let weight = scale_load(WEIGHT_IDLEPRIO as u64);
        Self {
            weight,
            inv_weight: INV_WEIGHT_IDLEPRIO,
        }
    }

    /// Adds `weight` (scaled).
    #[inline]
    pub fn add(&mut self, weight: u64) {
        self.set(self.weight.wrapping_add(weight));
    }

    /// Takes `weight` (scaled) away.
    #[inline]
    pub fn sub(&mut self, weight: u64) {
        debug_assert!(self.weight >= weight);
        self.set(self.weight.wrapping_sub(weight));
    }

    /// Replaces the weight.
    #[inline]
    pub fn set(&mut self, weight: u64) {
        *self = Self::new(weight);
    }

    /// Computes and keeps the inverse, so that later divisions need none.
    #[inline]
    pub fn fill_inverse(&mut self) {
        self.inv_weight = self.inverse();
    }

    /// The inverse; computed as (2^32 - 1) / unscaled weight where it is not known.
    ///
    /// For nice 0 this is one less than the 2^32 / 1024 of [`INV_WEIGHTS`]: a group entity and a
    /// task of the same weight can differ in the last bit, and in the kernel they do.
    #[inline]
    pub const fn inverse(&self) -> u32 {
        if self.inv_weight != 0 {
            return self.inv_weight;
        }
        match scale_load_down(self.weight) {
            0 => u32::MAX,
            w if w >= u32::MAX as u64 => 1,
            w => u32::MAX / w as u32,
        }
    }
}

/// `delta * weight / load.weight` in 32-bit fixed point.
///
/// # Derivation
///
/// Let `w` be the unscaled `weight`, `L` the unscaled `load.weight` and `I = floor(2^32 / L)`.
/// Then `delta * w / L ~ delta * w * I / 2^32`. The multiplier of the 64-bit `delta` has to fit
/// 32 bits, so `F = w * I` is shortened: as long as its upper half is not empty, one bit is
/// dropped from `F` and one from the final shift `s` (first 32):
///
/// ```text
///     F_k = floor(w * I / 2^k) < 2^32        result = floor(delta * F_k / 2^(32 - k))
/// ```
///
/// `w` itself is shortened first when it is above 2^32. The dropped bits make the result at most
/// about delta * w / L * 2^-31 too small, beside the 2^-32 * L of the truncated inverse.
///
/// `delta` and the result have the same unit (ns); both weights are scaled.
#[inline]
pub const fn calc_delta(delta: u64, weight: u64, load: &LoadWeight) -> u64 {
    let (w, drop_w) = fit_u32(scale_load_down(weight));
    let (factor, drop_f) = fit_u32(w as u64 * load.inverse() as u64);
    let drop = drop_w + drop_f;
    debug_assert!(drop <= 32);
    mul_shift(delta, factor, 32u32.saturating_sub(drop))
}

/// Virtual time of an entity of weight `load` that runs `delta` ns: `delta * 2^20 / load.weight`.
///
/// An entity of [`NICE_0_LOAD`] gets `delta` itself, not the fixed-point product.
///
/// # Derivation
///
/// [`calc_delta`] with `w = 2^10`. There `F = 2^10 I` is below 2^42, so at most ten bits are
/// dropped, and they are zeros: the result is `delta * I / 2^22`, whatever `I` is.
#[inline]
pub const fn calc_delta_fair(delta: u64, load: &LoadWeight) -> u64 {
    if load.weight == NICE_0_LOAD {
        delta
    } else {
        mul_shift(delta, load.inverse(), 32 - FIXEDPOINT_SHIFT)
    }
}

/// Drops low bits of `value` until it fits 32 bits; also says how many.
#[inline]
const fn fit_u32(value: u64) -> (u32, u32) {
    let drop = 32 - ((value >> 32) as u32).leading_zeros();
    ((value >> drop) as u32, drop)
}

#[inline]
const fn nice_index(nice: i8) -> usize {
    let nice = if nice < -20 {
        -20
    } else if nice > 19 {
        19
    } else {
        nice
    };
    (nice + 20) as usize
}

const fn div_round_closest(value: u64, divisor: u64) -> u64 {
    (value + divisor / 2) / divisor
}

/// 2^32 / weight, rounded to the closest; except that the published table rounds four of the large
/// ones down (nice 14, weight 45, is exactly 95443717.69). Virtual times of these depend on it in
/// the last bit.
const fn inverses(weights: &[u32; 40]) -> [u32; 40] {
    let mut inverse = [0; 40];
    let mut i = 0;
    while i < weights.len() {
        inverse[i] = div_round_closest(1 << 32, weights[i] as u64) as u32;
        i += 1;
    }
    let mut down = 0;
    while down < ROUNDED_DOWN.len() {
        inverse[nice_index(ROUNDED_DOWN[down])] -= 1;
        down += 1;
    }
    inverse
}

/// Nice values whose inverse the table has rounded down, though its fraction is above a half.
const ROUNDED_DOWN: [i8; 4] = [13, 14, 16, 17];

const _: () = {
    assert!(INV_WEIGHTS[0] == 48_388);
    assert!(INV_WEIGHTS[nice_index(-1)] == 3_363_326);
    assert!(INV_WEIGHTS[nice_index(0)] == 4_194_304);
    assert!(INV_WEIGHTS[nice_index(12)] == 61_356_676);
    assert!(INV_WEIGHTS[nice_index(13)] == 76_695_844);
    assert!(INV_WEIGHTS[nice_index(14)] == 95_443_717);
    assert!(INV_WEIGHTS[nice_index(15)] == 119_304_647);
    assert!(INV_WEIGHTS[nice_index(16)] == 148_102_320);
    assert!(INV_WEIGHTS[nice_index(17)] == 186_737_708);
    assert!(INV_WEIGHTS[39] == 286_331_153);
    assert!(INV_WEIGHT_IDLEPRIO == 1_431_655_765);
    assert!(scale_load(WEIGHTS[nice_index(0)] as u64) == NICE_0_LOAD);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_nice_levels_differ_by_a_quarter() {
        for pair in WEIGHTS.windows(2) {
            let ratio_pct = pair[0] * 100 / pair[1];
            assert!((119..=131).contains(&ratio_pct), "{pair:?}: {ratio_pct} %");
        }
    }

    #[test]
    fn scaling_keeps_something_of_everything() {
        assert_eq!(scale_load_down(0), 0);
        assert_eq!(scale_load_down(1), 2);
        assert_eq!(scale_load_down(MIN_SHARES), 2);
        assert_eq!(scale_load_down(3 << 10), 3);
        assert_eq!(scale_load_down(NICE_0_LOAD), 1024);
    }

    #[test]
    fn cgroup_weights_and_shares() {
        assert_eq!(shares_from_cgroup(100), 1024);
        assert_eq!(shares_from_cgroup(1), 10);
        assert_eq!(shares_from_cgroup(10_000), 102_400);
        assert_eq!(shares_from_cgroup(33), 338); // 337.92
        assert_eq!(shares_to_cgroup(2), 1); // 0.195, clamped
        assert_eq!(shares_to_cgroup(MAX_SHARES), 10_000);
        for weight in CGROUP_WEIGHT_MIN..=CGROUP_WEIGHT_MAX {
            assert_eq!(shares_to_cgroup(shares_from_cgroup(weight)), weight);
        }
        assert_eq!(group_shares(0), 2 << 10);
        assert_eq!(group_shares(u64::MAX), 1 << 28);
    }

    #[test]
    fn nice_0_runs_at_the_speed_of_time() {
        let load = LoadWeight::from_nice(0);
        assert_eq!(calc_delta_fair(1_000_003, &load), 1_000_003);
        // A group entity of that weight too, though its inverse is one less.
        assert_eq!(
            calc_delta_fair(1_000_003, &LoadWeight::new(NICE_0_LOAD)),
            1_000_003
        );
        assert_eq!(LoadWeight::new(NICE_0_LOAD).inverse(), 4_194_303);
    }

    #[test]
    fn division_is_close_to_exact_and_never_above() {
        for nice in -20..=19 {
            let load = LoadWeight::from_nice(nice);
            for delta in [1, 999, 700_000, 4_000_000, 10_000_000_000] {
                let got = calc_delta_fair(delta, &load);
                let exact = delta as u128 * 1024 / nice_to_weight(nice) as u128;
                let slack = 1 + exact / (1 << 14); // inverse of nice -20: 48388 has 15.6 bits
                assert!(got as u128 <= exact + slack && got as u128 + slack >= exact);
            }
        }
    }

    #[test]
    fn virtual_time_is_a_share_of_nice_0() {
        for shift in 0..32 {
            for inv_weight in [1, 3, 1 << 21, u32::MAX - 2].map(|i| i << shift | 1) {
                let load = LoadWeight {
                    weight: 1,
                    inv_weight,
                };
                for delta in [1, 999_983, u64::MAX / 3, u64::MAX] {
                    let general = calc_delta(delta, NICE_0_LOAD, &load);
                    assert_eq!(calc_delta_fair(delta, &load), general, "{inv_weight}");
                }
            }
        }
    }

    #[test]
    fn heavy_queues_drop_bits() {
        // A share of a period: delta * w / L with w near L, so F is just below 2^32.
        let load = LoadWeight::new(scale_load(3 * 1024));
        assert_eq!(calc_delta(6_000_000, NICE_0_LOAD, &load), 1_999_999);
        // w / L far above 1: F needs more than 32 bits.
        let light = LoadWeight::idle_prio();
        assert_eq!(
            calc_delta(3_000_000, scale_load(88_761), &light),
            88_760_999_977
        );
    }
}

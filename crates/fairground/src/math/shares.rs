//! The weight of a group's entity on one CPU, and loads across levels of the hierarchy.
//!
//! Units: `shares` and queue weights are scaled (nice 0 = 2^20), loads are unscaled (a nice-0
//! task that always runs has load 1024). See [`weight`](super::weight).

use super::weight::{MIN_SHARES, scale_load_down};

/// Scaled weight of the entity that stands for a group on one CPU.
///
/// # Derivation
///
/// A group with shares `S` has on CPU `i` a queue of weight `W_i`. Fair is
///
/// ```text
///     s_i = S * W_i / sum_j W_j                                                     (1)
/// ```
///
/// but the sum would touch every CPU at each change. So it is replaced by what the CPUs publish
/// now and then: averages `l_j`, of which the group keeps the sum `T = sum_j l_j` as last
/// published. In (1) that gives `s_i = S * l_i / T`, which is slow: a queue that was empty has
/// `l_i = 0` and would wait for its average to grow. The momentary weight is known for the own
/// CPU at no cost, so it stands in for the own average, in both places, and the own published
/// part `c_i` is taken out of `T`:
///
/// ```text
///     L = max(W_i, l_i)
///     s_i = S * L / (T - c_i + L)                                                   (2)
/// ```
///
/// `W_i` alone would be wrong while the queue's tasks sleep for a moment (they count in `l_i`
/// still), and `l_i` alone just after they wake: hence the maximum. With all other CPUs idle
/// `T - c_i` is 0 and (2) is `S`, as it should be. The result is held in `[MIN_SHARES, S]`.
///
/// - `tg_shares`: `S`, scaled. `cfs_weight`: weight of the queue, scaled.
/// - `cfs_load_avg`: `l_i`. `tg_load_avg`: `T`. `contrib`: `c_i`, what this CPU has in `T`.
///
/// `T` can be behind `c_i` for a moment as both change at different times; the kernel computes
/// in signed numbers, and so does this.
#[inline]
pub const fn calc_group_shares(
    tg_shares: u64,
    cfs_weight: u64,
    cfs_load_avg: u64,
    tg_load_avg: u64,
    contrib: u64,
) -> u64 {
    let weight = scale_load_down(cfs_weight);
    let load = if weight > cfs_load_avg {
        weight
    } else {
        cfs_load_avg
    };
    let tg_weight = tg_load_avg.wrapping_sub(contrib).wrapping_add(load) as i64;
    let product = tg_shares.wrapping_mul(load) as i64;
    let shares = if tg_weight == 0 {
        product
    } else {
        product.wrapping_div(tg_weight)
    };
    if shares < MIN_SHARES as i64 {
        MIN_SHARES
    } else if shares > tg_shares as i64 {
        tg_shares
    } else {
        shares as u64
    }
}

/// Hierarchical load of the queue below a group entity.
///
/// `h_load` of a queue is the part of the root queue's load that comes through it. A parent
/// queue with hierarchical load `H` and average `A` divides it among its entities as their
/// averages `a` stand: `H * a / A`. The divisor is `A + 1`, as an average can be 0.
#[inline]
pub const fn h_load_child(parent_h_load: u64, se_load_avg: u64, parent_cfs_load_avg: u64) -> u64 {
    parent_h_load.wrapping_mul(se_load_avg) / parent_cfs_load_avg.wrapping_add(1)
}

/// Load of a task as its CPU's root queue sees it: its part of its own queue's `h_load`.
#[inline]
pub const fn task_h_load(task_load_avg: u64, cfs_h_load: u64, cfs_load_avg: u64) -> u64 {
    h_load_child(cfs_h_load, task_load_avg, cfs_load_avg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::weight::NICE_0_LOAD;

    #[test]
    fn alone_on_one_cpu_gets_all() {
        assert_eq!(
            calc_group_shares(NICE_0_LOAD, NICE_0_LOAD, 0, 0, 0),
            NICE_0_LOAD
        );
        assert_eq!(
            calc_group_shares(NICE_0_LOAD, NICE_0_LOAD, 700, 700, 700),
            NICE_0_LOAD
        );
    }

    #[test]
    fn four_equal_cpus_get_a_quarter_each() {
        let shares = calc_group_shares(NICE_0_LOAD, NICE_0_LOAD, 1024, 4096, 1024);
        assert_eq!(shares, NICE_0_LOAD / 4);
    }

    #[test]
    fn never_below_two_nor_above_the_group() {
        assert_eq!(calc_group_shares(2048, 2, 0, 1 << 40, 0), MIN_SHARES);
        assert_eq!(calc_group_shares(NICE_0_LOAD, 0, 0, 0, 0), MIN_SHARES);
        // The published sum is behind the own part: negative divisor, then too small a divisor.
        assert_eq!(
            calc_group_shares(NICE_0_LOAD, NICE_0_LOAD, 0, 0, 5000),
            MIN_SHARES
        );
        assert_eq!(
            calc_group_shares(NICE_0_LOAD, NICE_0_LOAD, 0, 0, 1000),
            NICE_0_LOAD
        );
    }

    #[test]
    fn hierarchical_load_splits_as_the_averages_stand() {
        // Two levels: half of the root's 2048, then a third of that.
        let group = h_load_child(2048, 1024, 2047);
        assert_eq!(group, 1024);
        assert_eq!(task_h_load(100, group, 299), 341);
        assert_eq!(task_h_load(0, group, 0), 0);
    }
}

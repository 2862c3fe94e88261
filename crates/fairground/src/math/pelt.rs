//! Per-entity load tracking: averages in which what happened `n` ms ago counts `y^n`.
//!
//! Read first: "Per-entity load tracking" (J. Corbet, LWN 531853, 2013) and the kernel's
//! `Documentation/scheduler/schedutil.rst`. The rules are those of Linux 5.7 to 6.18.
//! Older trackers (separate runnable sums, capacity scaling inside) are not modelled.
//!
//! Units. Time arrives in ns of the PELT clock (which stands still while idle and runs slower on
//! a slow CPU), is counted in units of 1024 ns ("us") and in periods of 1024 units ("ms").
//! `*_sum` are decayed sums of units, `*_avg` are 0..=1024 per entity of nice 0 (capacity
//! scale), except `load_avg`, which is multiplied by the unscaled weight.
//!
//! # Definitions
//!
//! Let `u_n` in 0..=1024 be how many units of the `n`-th period back an entity was active; `u_0`
//! belongs to the present period, of which `p` units have gone. With `y^32 = 1/2`:
//!
//! ```text
//!     sum = u_0 + u_1 y + u_2 y^2 + ...        avg = sum / (sum with u_0 = p, all others 1024)
//! ```
//!
//! In integers, the largest sum that repeated decaying and adding 1024 comes to is
//! [`LOAD_AVG_MAX`]. Of it, `LOAD_AVG_MAX - 1024` is past, so the divisor of the average is
//! `LOAD_AVG_MAX - 1024 + p`: see [`get_pelt_divider`]. Dividing by the full maximum would make an
//! always-running task's average saw up and down by 2 % within each period.

use super::mul_shift;
use crate::value::SCHED_CAPACITY_SCALE;

/// Shift of one full CPU (1024) in `runnable_sum` and `util_sum`.
pub const CAPACITY_SHIFT: u32 = 10;

/// Units of 1024 ns per period.
pub const PERIOD: u64 = 1024;

/// Periods after which an activity counts half.
pub const HALF_LIFE: u64 = 32;

/// Largest decayed sum that integer arithmetic reaches (47742; exact would be 47788).
pub const LOAD_AVG_MAX: u64 = load_avg_max();

/// Smallest divisor of an average.
pub const PELT_MIN_DIVIDER: u64 = LOAD_AVG_MAX - PERIOD;

/// `y^n` for n in 0..32, times 2^32 - 1, rounded down.
pub const DECAY: [u32; HALF_LIFE as usize] = decay_table();

/// 2^47 by the divider of each [`SchedAvg::period_contrib`], rounded up: see [`average`].
static RECIPROCAL: [u32; PERIOD as usize] = reciprocals();

/// Flag in [`SchedAvg::util_est`]: `util_avg` has not changed since the estimate was made.
pub const UTIL_AVG_UNCHANGED: u32 = 1 << 31;

/// Differences of the utilisation estimate below this (about 1 % of a CPU) are not followed.
pub const UTIL_EST_MARGIN: u64 = SCHED_CAPACITY_SCALE / 100;

const UTIL_EST_WEIGHT_SHIFT: u32 = 2;

/// Load-tracking state of a task, a group entity or a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAvg {
    /// PELT clock (ns, a multiple of 1024 behind `now`) up to which the sums are complete.
    pub last_update_time: u64,
    /// Decayed units on a queue; of a queue: times its unscaled weight.
    pub load_sum: u64,
    /// Decayed units on a queue, running or waiting, times 1024 (and the number of tasks).
    pub runnable_sum: u64,
    /// Decayed units running, times 1024.
    pub util_sum: u32,
    /// Units of the present period that have gone: 0..1024.
    pub period_contrib: u32,
    /// Load: unscaled weight times the part of time on a queue.
    pub load_avg: u64,
    /// Part of time on a queue, capacity scale; of a queue: mean number of tasks * 1024.
    pub runnable_avg: u64,
    /// Part of time running, capacity scale.
    pub util_avg: u64,
    /// Estimate of the utilisation when the task next wakes, with [`UTIL_AVG_UNCHANGED`] in the
    /// top bit; of a queue: the sum over its tasks, no flag.
    pub util_est: u32,
}

/// Divisor that turns sums into averages: the sum of somebody who was always active.
#[inline]
pub const fn get_pelt_divider(sa: &SchedAvg) -> u64 {
    PELT_MIN_DIVIDER + sa.period_contrib as u64
}

/// `value * y^periods`.
///
/// Every 32 periods halve, which is a shift; the rest is one product with [`DECAY`]. After 2016
/// periods (2 s) nothing of a 64-bit value is left.
#[inline]
pub const fn decay_load(value: u64, periods: u64) -> u64 {
    Decay::of(periods).apply(value)
}

/// What [`decay_load`] does to a value, found once for all values of an update.
#[derive(Clone, Copy, Debug, Default)]
struct Decay {
    halvings: u32,
    factor: u32,
}

impl Decay {
    #[inline]
    const fn of(periods: u64) -> Self {
        if periods > HALF_LIFE * 63 {
            return Self {
                halvings: 0,
                factor: 0,
            };
        }
        Self {
            halvings: (periods / HALF_LIFE) as u32,
            factor: DECAY[(periods % HALF_LIFE) as usize],
        }
    }

    #[inline]
    const fn apply(self, value: u64) -> u64 {
        mul_shift(value >> self.halvings, self.factor, 32)
    }
}

/// Whether anything is to do for [`update_load_sum`] at `now` (PELT clock, ns): a unit of time has
/// gone since the last update, or time ran backwards.
#[inline]
pub const fn is_due(now: u64, sa: &SchedAvg) -> bool {
    now.wrapping_sub(sa.last_update_time) >> 10 != 0
}

/// Brings the sums up to `now` (PELT clock, ns). True if at least one period ended, so that the
/// averages need to follow.
///
/// `load` is the unscaled weight (of a task: 1) while on a queue, else 0; `runnable` the number
/// of tasks there; `running` whether it has the CPU. They hold for all the time since the last
/// update. An entity that is on no queue is neither runnable nor running, whatever is passed: a
/// task being dequeued can still be the current one.
///
/// If time ran backwards (the clocks of two CPUs at a migration), only the stamp follows.
#[inline]
pub fn update_load_sum(
    now: u64,
    sa: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
    passed: &mut Passed,
) -> bool {
    let delta_ns = now.wrapping_sub(sa.last_update_time);
    if (delta_ns as i64) < 0 {
        sa.last_update_time = now;
        return false;
    }
    let delta = delta_ns >> 10;
    if delta == 0 {
        return false;
    }
    // What is left of a unit waits for the next update.
    sa.last_update_time = now.wrapping_sub(delta_ns % 1024);
    let queued = load != 0;
    let runnable = if queued { runnable } else { 0 };
    accumulate_sum(delta, sa, load, runnable, running && queued, passed)
}

/// Computes the averages from the sums, which `reciprocal` turns into averages (see [`average`]).
/// `load` is the unscaled weight that `load_sum` has not been multiplied with: of an entity its
/// weight, of a queue 1.
#[inline]
fn update_load_avg(sa: &mut SchedAvg, load: u64, reciprocal: u32) {
    let load_sum = load.wrapping_mul(sa.load_sum);
    let (runnable_sum, util_sum) = (sa.runnable_sum, u64::from(sa.util_sum));
    if (load_sum | runnable_sum | util_sum) >> EXACT_BITS != 0 {
        let divider = get_pelt_divider(sa);
        return divide_all(sa, [load_sum, runnable_sum, util_sum], divider);
    }
    sa.load_avg = average(load_sum, reciprocal);
    sa.runnable_avg = average(runnable_sum, reciprocal);
    sa.util_avg = average(util_sum, reciprocal);
}

/// Sums with more bits than this are divided: see [`average`].
const EXACT_BITS: u32 = 31;

/// `sum` by the divider whose [`RECIPROCAL`] is `m`, rounded down.
///
/// # Derivation
///
/// There are only 1024 dividers `d`, so `m = ceil(2^47 / d)` is a table. With `m d = 2^47 + e`,
/// `0 <= e < d`,
///
/// ```text
///     sum m / 2^47  =  sum / d  +  (sum e / 2^47) / d
/// ```
///
/// which does not reach the next whole number while `sum e < 2^47`: for sums below 2^31, as
/// `e < d < 2^16`. Greater ones (above 30 or so nice-0 tasks) are divided.
#[inline]
const fn average(sum: u64, m: u32) -> u64 {
    debug_assert!(sum >> EXACT_BITS == 0);
    (sum * m as u64) >> 47
}

#[cold]
#[inline(never)]
fn divide_all(sa: &mut SchedAvg, sums: [u64; 3], divider: u64) {
    let [load_avg, runnable_avg, util_avg] = sums.map(|sum| sum / divider);
    (sa.load_avg, sa.runnable_avg, sa.util_avg) = (load_avg, runnable_avg, util_avg);
}

/// Sums, then averages: see [`update_load_sum`] and [`update_load_avg`], of which `weight` is the
/// `load`.
#[inline(always)]
fn update(
    now: u64,
    sa: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
    weight: u64,
    passed: &mut Passed,
) -> bool {
    let decayed = update_load_sum(now, sa, load, runnable, running, passed);
    if decayed {
        update_load_avg(sa, weight, passed.reciprocal);
    }
    decayed
}

/// Update of an entity that is on no queue: only decay. `weight` unscaled. True if the averages
/// changed.
#[inline]
pub fn update_load_avg_blocked_se(now: u64, sa: &mut SchedAvg, weight: u64) -> bool {
    update(now, sa, 0, 0, false, weight, &mut Passed::default())
}

/// Update of a task or group entity. True if the averages changed.
///
/// - `on_rq`: it is queued or running. `running`: it is its queue's current entity.
/// - `runnable`: a task counts 1 while it is queued and not in delayed dequeue, a group entity
///   counts the runnable tasks below it.
/// - `weight`: unscaled.
///
/// A change also clears [`UTIL_AVG_UNCHANGED`], so that the next dequeue makes a new estimate.
#[inline]
pub fn update_load_avg_se(
    now: u64,
    sa: &mut SchedAvg,
    on_rq: bool,
    runnable: u64,
    running: bool,
    weight: u64,
) -> bool {
    let mut passed = Passed::default();
    update_load_avg_se_with(now, sa, on_rq, runnable, running, weight, &mut passed)
}

/// [`update_load_avg_se`] with what the last update of the same CPU has found.
#[inline(always)]
pub(crate) fn update_load_avg_se_with(
    now: u64,
    sa: &mut SchedAvg,
    on_rq: bool,
    runnable: u64,
    running: bool,
    weight: u64,
    passed: &mut Passed,
) -> bool {
    let decayed = update(now, sa, on_rq as u64, runnable, running, weight, passed);
    if decayed {
        sa.util_est &= !UTIL_AVG_UNCHANGED;
    }
    decayed
}

/// Update of a queue. `weight_scaled_down` is its unscaled weight, `h_nr_runnable` the number of
/// runnable tasks in it and below, `running` whether it has a current entity. True if the
/// averages changed.
#[inline]
pub fn update_load_avg_cfs_rq(
    now: u64,
    sa: &mut SchedAvg,
    weight_scaled_down: u64,
    h_nr_runnable: u64,
    running: bool,
) -> bool {
    let mut passed = Passed::default();
    update_load_avg_cfs_rq_with(
        now,
        sa,
        weight_scaled_down,
        h_nr_runnable,
        running,
        &mut passed,
    )
}

/// [`update_load_avg_cfs_rq`] with what the last update of the same CPU has found.
#[inline(always)]
pub(crate) fn update_load_avg_cfs_rq_with(
    now: u64,
    sa: &mut SchedAvg,
    weight_scaled_down: u64,
    h_nr_runnable: u64,
    running: bool,
    passed: &mut Passed,
) -> bool {
    let load = weight_scaled_down;
    update(now, sa, load, h_nr_runnable, running, 1, passed)
}

/// Update of what the tasks of a higher class use of a CPU, of which one has been `running` or
/// none. True if the average changed.
pub(crate) fn update_load_avg_rt(
    now: u64,
    sa: &mut SchedAvg,
    running: bool,
    passed: &mut Passed,
) -> bool {
    update(now, sa, running.into(), running.into(), running, 1, passed)
}

/// The utilisation estimate of a task that has just been dequeued to sleep; `None` if it stays
/// as it is. The rules of Linux 6.12 to 6.18.
///
/// - `util_est`: the estimate with its flag. `util_avg`, `runnable_avg`: of the task.
/// - `capacity`: capacity of the CPU it ran on, 0..=1024 (up to 6.15), or anything above.
///
/// `util_avg` falls while a task sleeps, so a task with long periods would look small at each
/// wake-up. The estimate `e` remembers what it was at the end of each activation, `u`:
///
/// - nothing if `u` has not been updated since the last estimate (flag);
/// - `e <= u`: jump up to `u`, as being too small costs more than being too big;
/// - otherwise it goes down as `e + (u - e) / 4`, but not for less than the margin, not if `u`
///   is above the CPU's capacity (then it is no measure), and not if the task wanted more than it
///   got (runnable more than it ran).
#[inline]
pub const fn util_est_update(
    util_est: u32,
    util_avg: u64,
    runnable_avg: u64,
    capacity: u64,
) -> Option<u32> {
    if util_est & UTIL_AVG_UNCHANGED != 0 {
        return None;
    }
    let ewma = util_est as u64;
    if ewma <= util_avg {
        return Some(util_avg as u32 | UTIL_AVG_UNCHANGED);
    }
    let above = ewma - util_avg;
    if above < UTIL_EST_MARGIN {
        return Some(util_est | UTIL_AVG_UNCHANGED);
    }
    if util_avg > capacity {
        return None;
    }
    if util_avg + UTIL_EST_MARGIN < runnable_avg {
        return Some(util_est | UTIL_AVG_UNCHANGED);
    }
    let next = ((ewma << UTIL_EST_WEIGHT_SHIFT) - above) >> UTIL_EST_WEIGHT_SHIFT;
    Some(next as u32 | UTIL_AVG_UNCHANGED)
}

/// Utilisation that a task is expected to have: the greater of the average and the estimate.
#[inline]
pub const fn task_util_est(sa: &SchedAvg) -> u64 {
    let estimate = util_est_value(sa.util_est);
    if sa.util_avg > estimate {
        sa.util_avg
    } else {
        estimate
    }
}

/// The estimate without its flag.
#[inline]
pub const fn util_est_value(util_est: u32) -> u64 {
    (util_est & !UTIL_AVG_UNCHANGED) as u64
}

/// Running average: moves an eighth of the way to `sample`. For the mean idle time (`avg_idle`).
#[inline]
pub const fn update_avg(average: &mut u64, sample: u64) {
    let diff = sample.wrapping_sub(*average) as i64;
    *average = average.wrapping_add((diff / 8) as u64);
}

/// Adds `delta` units of activity; whether a period ended.
#[inline(always)]
fn accumulate_sum(
    delta: u64,
    sa: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
    passed: &mut Passed,
) -> bool {
    let old_contrib = sa.period_contrib;
    let total = u64::from(old_contrib) + delta;
    let (mut load_sum, mut runnable_sum) = (sa.load_sum, sa.runnable_sum);
    let (mut util_sum, mut contrib) = (u64::from(sa.util_sum), delta);
    let decays = total >= PERIOD;
    if decays {
        if (passed.delta, passed.old_contrib) != (delta, old_contrib) {
            passed.find(delta, old_contrib);
        }
        load_sum = passed.decay.apply(load_sum);
        runnable_sum = passed.decay.apply(runnable_sum);
        util_sum = passed.decay.apply(util_sum);
        contrib = passed.contrib;
        sa.period_contrib = passed.period_contrib;
    } else {
        sa.period_contrib = total as u32;
    }
    sa.load_sum = load_sum.wrapping_add(load.wrapping_mul(contrib));
    let scaled = contrib << CAPACITY_SHIFT;
    sa.runnable_sum = runnable_sum.wrapping_add(runnable.wrapping_mul(scaled));
    sa.util_sum = util_sum.wrapping_add(if running { scaled } else { 0 }) as u32;
    decays
}

/// What a time in which at least one period ended does to the sums that it passes over.
///
/// It is kept from one update to the next: on one CPU most of what is aged at one moment, entities
/// and queues of all levels, was last aged at one moment too.
///
/// # Derivation
///
/// The time since the last update falls into three parts: what completes the old period (`d1`),
/// whole periods, and the beginning of the present one (`d3`):
///
/// ```text
///      last update                                           now
///           v                                                 v
///     |--p--|--d1--|----1024----|----1024----| ... |----d3----|
///      oldest                                       present
///              p' = number of period borders in between
/// ```
///
/// All old sums fall by `y^p'`, and the new activity is, seen from the present period,
///
/// ```text
///     d1 * y^p'  +  1024 * (y^(p'-1) + ... + y)  +  d3
/// ```
///
/// The middle is a difference of two endless tails, and an endless tail from 0 is the maximum
/// `M`: `1024 (y^1 + ... + y^(p'-1)) = M - M y^p' - 1024`. So no loop and no second table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Its length in units; 0 = nothing is known yet.
    delta: u64,
    /// `period_contrib` at its begin.
    old_contrib: u32,
    /// The same at its end.
    period_contrib: u32,
    /// What is left of the old sums.
    decay: Decay,
    /// The new activity.
    contrib: u64,
    /// [`RECIPROCAL`] of the divider at its end.
    reciprocal: u32,
}

impl Passed {
    /// In place: as a value that is copied, its fields would be read before they have arrived.
    #[inline(never)]
    fn find(&mut self, delta: u64, old_contrib: u32) {
        let total = u64::from(old_contrib) + delta;
        let decay = Decay::of(total / PERIOD);
        let (d1, d3) = (PERIOD - u64::from(old_contrib), total % PERIOD);
        let whole = LOAD_AVG_MAX - decay.apply(LOAD_AVG_MAX) - PERIOD;
        *self = Self {
            delta,
            old_contrib,
            period_contrib: d3 as u32,
            decay,
            contrib: decay.apply(d1) + whole + d3,
            reciprocal: RECIPROCAL[d3 as usize],
        };
    }
}

const fn reciprocals() -> [u32; PERIOD as usize] {
    let mut table = [0; PERIOD as usize];
    let mut contrib = 0;
    while contrib < table.len() {
        table[contrib] = (1u64 << 47).div_ceil(PELT_MIN_DIVIDER + contrib as u64) as u32;
        contrib += 1;
    }
    table
}

/// Decays and adds a full period until it changes nothing.
const fn load_avg_max() -> u64 {
    let mut sum = 0;
    loop {
        let next = decay_load(sum, 1) + PERIOD;
        if next == sum {
            return sum;
        }
        sum = next;
    }
}

/// `y = 2^(-1/32)` is five square roots of 1/2. In 62-bit fixed point, so that 31 products in a
/// row are still good to 2^-56, and rounding down to 32 bits meets no border.
const fn decay_table() -> [u32; HALF_LIFE as usize] {
    const ONE: u128 = 1 << 62;
    let mut y = ONE / 2;
    let mut root = 0;
    while root < 5 {
        y = (y << 62).isqrt();
        root += 1;
    }
    let mut table = [0; HALF_LIFE as usize];
    let mut power = ONE;
    let mut n = 0;
    while n < table.len() {
        table[n] = ((power * u32::MAX as u128) >> 62) as u32;
        power = (power * y) >> 62;
        n += 1;
    }
    table
}

const _: () = {
    assert!(LOAD_AVG_MAX == 47_742);
    assert!(DECAY[0] == 0xffff_ffff);
    assert!(DECAY[1] == 0xfa83_b2da);
    assert!(DECAY[16] == 0xb504_f333);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The well-known inverse powers, as published.
    const PUBLISHED: [u32; 32] = [
        0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb,
        0xdbfbb796, 0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9,
        0xbd08a39e, 0xb8fbaf46, 0xb504f333, 0xb123f581, 0xad583ee9, 0xa9a15ab4, 0xa5fed6a9,
        0xa2704302, 0x9ef5325f, 0x9b8d39b9, 0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a,
        0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698,
    ];

    fn new() -> Passed {
        Passed::default()
    }

    #[test]
    fn the_computed_table_is_the_published_one() {
        assert_eq!(DECAY, PUBLISHED);
    }

    #[test]
    fn averages_are_quotients_rounded_down() {
        for contrib in 0..PERIOD as u32 {
            let m = RECIPROCAL[contrib as usize];
            let divider = PELT_MIN_DIVIDER + u64::from(contrib);
            let last = (1 << 31) / divider;
            for quotient in (0..last).step_by(97).chain([last]) {
                for sum in [quotient * divider, (quotient + 1) * divider - 1] {
                    if sum >> EXACT_BITS == 0 {
                        assert_eq!(average(sum, m), quotient, "{sum} / {divider}");
                    }
                }
            }
            let last = (1 << EXACT_BITS) - 1;
            assert_eq!(average(last, m), last / divider);
        }
    }

    #[test]
    fn half_is_gone_after_32_periods_and_all_after_two_seconds() {
        assert_eq!(decay_load(1000, 0), 999); // 2^32 - 1 of 2^32: the table's 1 is a bit less
        assert_eq!(decay_load(100_000, 32), 49_999);
        assert_eq!(decay_load(u64::MAX, 32 * 63), 0);
        assert_eq!(decay_load(u64::MAX, 32 * 63 + 1), 0);
    }

    #[test]
    fn always_running_comes_to_rest_at_full_capacity() {
        let mut sa = SchedAvg::default();
        for tick in 1..=1000 {
            update_load_avg_se(tick * 4_000_000, &mut sa, true, 1, true, 1024);
            assert!(sa.util_avg <= 1024);
        }
        assert!(sa.util_avg >= 1023, "{sa:?}");
        assert!(sa.load_avg >= 1023, "{sa:?}");
        assert_eq!(sa.runnable_avg, sa.util_avg);
    }

    #[test]
    fn what_the_last_update_has_found_changes_nothing() {
        let mut passed = Passed::default();
        let mut with = [SchedAvg::default(); 3];
        let mut without = with;
        let mut now = 1 << 40;
        for step in 0..4000u64 {
            // From units to more than two seconds; the last one is aged at other moments.
            now += (step * 7919 % 1021) << (8 + step % 24);
            for i in 0..2 + (step % 3 == 0) as usize {
                let (queued, tasks) = (step % 5 != i as u64, step % 70);
                let (sa, own) = (&mut with[i], &mut without[i]);
                let decayed =
                    update_load_avg_se_with(now, sa, queued, tasks, true, 1024, &mut passed);
                let alone = update_load_avg_se(now, own, queued, tasks, true, 1024);
                assert_eq!((decayed, *sa), (alone, *own));
                let divider = get_pelt_divider(sa);
                if decayed {
                    assert_eq!(sa.runnable_avg, sa.runnable_sum / divider);
                    assert_eq!(sa.load_avg, 1024 * sa.load_sum / divider);
                }
            }
        }
    }

    #[test]
    fn time_that_runs_back_only_moves_the_stamp() {
        let before = SchedAvg {
            last_update_time: 5 << 20,
            util_sum: 77,
            ..SchedAvg::default()
        };
        let mut sa = before;
        assert!(!update_load_sum(4 << 20, &mut sa, 1, 1, true, &mut new()));
        assert_eq!(
            sa,
            SchedAvg {
                last_update_time: 4 << 20,
                ..before
            }
        );
    }

    #[test]
    fn less_than_a_unit_waits() {
        let mut sa = SchedAvg::default();
        assert!(!update_load_sum(1023, &mut sa, 1, 1, true, &mut new()));
        assert_eq!(sa, SchedAvg::default());
        assert!(!update_load_sum(1030, &mut sa, 1, 1, true, &mut new()));
        assert_eq!(
            (sa.last_update_time, sa.load_sum, sa.util_sum),
            (1024, 1, 1024)
        );
    }

    #[test]
    fn off_the_queue_nothing_is_added() {
        let mut sa = SchedAvg::default();
        assert!(update_load_sum(10 << 20, &mut sa, 0, 3, true, &mut new()));
        assert_eq!((sa.load_sum, sa.runnable_sum, sa.util_sum), (0, 0, 0));
    }

    #[test]
    fn estimate_jumps_up_and_glides_down() {
        let flag = UTIL_AVG_UNCHANGED;
        assert_eq!(util_est_update(100 | flag, 900, 900, 1024), None);
        assert_eq!(util_est_update(100, 500, 500, 1024), Some(500 | flag));
        assert_eq!(util_est_update(500, 100, 100, 1024), Some(400 | flag));
        assert_eq!(util_est_update(500, 491, 491, 1024), Some(500 | flag)); // 9 < margin
        assert_eq!(util_est_update(500, 490, 490, 1024), Some(497 | flag)); // 497.5
        assert_eq!(util_est_update(500, 400, 400, 399), None);
        assert_eq!(util_est_update(500, 400, 411, 1024), Some(500 | flag));
        assert_eq!(util_est_update(500, 400, 410, 1024), Some(475 | flag));
    }

    #[test]
    fn an_update_clears_the_unchanged_flag_with_the_first_period() {
        let mut sa = SchedAvg {
            util_est: 300 | UTIL_AVG_UNCHANGED,
            ..SchedAvg::default()
        };
        update_load_avg_se(512 << 10, &mut sa, true, 1, true, 1024);
        assert_eq!(sa.util_est, 300 | UTIL_AVG_UNCHANGED);
        update_load_avg_se(1024 << 10, &mut sa, true, 1, true, 1024);
        assert_eq!((sa.util_est, task_util_est(&sa)), (300, 300));
    }

    #[test]
    fn running_average_truncates_to_zero() {
        let mut avg = 1000;
        update_avg(&mut avg, 1800);
        assert_eq!(avg, 1100);
        update_avg(&mut avg, 1093);
        assert_eq!(avg, 1100); // -7 / 8
        update_avg(&mut avg, 0);
        assert_eq!(avg, 963); // -137.5
    }
}

//! On which scale base and patch are held against each other.
//!
//! The spread of a latency grows with it: 10.6 ms +- 2 % becomes 418 ms +- 53 % where a limit is
//! too low, and the interval of the difference, [-58, 873] ms, says that it may be none, though
//! each seed is 20 to 60 times as slow. On the scale of logarithms a difference is a ratio, and
//! both spreads are of one size:
//!
//! ```text
//!   l_i = ln(patch_i) - ln(base_i)
//!   interval of the ratio = exp(l -+ t(0.975, n - 1) * se(l))
//! ```
//!
//! Which of the two scales is meant to have an even spread is told by the values (Box and Cox 1964,
//! their lambda of 1 and 0): where the sums of squares on the scales of `y` and of `g ln(y)` are
//! compared, with `g` the geometric mean of all values, the smaller one is the more likely. A
//! difference is what a table shows, so it stays unless the other spread is smaller by a fifth: of
//! small changes and small spreads, both are the same to second order. In simulated samples
//! without an effect this choice finds one in 4 to 7 of 100 (`it_finds_nothing_...`).
//!
//! The table has arithmetic means, and a ratio of geometric ones need not be that of those beside
//! it. Where the interval of ratios does not hold the change of the means, a few runs far from the
//! rest make the change, or there are so many runs that both are known well. Then the means are
//! what is asked for, and the difference, for which the central limit theorem speaks, is taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Change, Fit, paired_change, paired_fit, welch_change, welch_fit};

/// What an interval is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interval {
    /// The difference between the means.
    #[default]
    Difference,
    /// The ratio between the geometric means: of values above 0 whose spread grows with them.
    LogRatio,
}

/// The spread of logarithms is at most this part of the plain one.
const CLEARLY: f64 = 0.8;
/// Fewer runs of a side do not tell how spread grows.
const RUNS_MIN: usize = 3;
/// A sum and an exponential are not known any better.
const ROUNDING: f64 = 1e-9;

impl Interval {
    /// For JSON, where it goes without saying.
    pub(crate) fn is_difference(&self) -> bool {
        *self == Self::Difference
    }
}

/// [`paired_change`] on the scale that fits.
pub(crate) fn paired_change_to_scale(pairs: &[(f64, f64)]) -> Option<Change> {
    let change = paired_change(pairs)?;
    let of_logs = || {
        let logs: Option<Vec<(f64, f64)>> = pairs.iter().map(|(b, p)| ln(*b).zip(ln(*p))).collect();
        let all = logs.iter().flatten().flat_map(|(b, p)| [*b, *p]).collect();
        change.of_ratio(paired_fit(pairs)?, paired_fit(&logs?)?, all)
    };
    Some(
        of_logs()
            .filter(|_| pairs.len() >= RUNS_MIN)
            .unwrap_or(change),
    )
}

/// [`welch_change`] on the scale that fits.
pub(crate) fn welch_change_to_scale(base: &[f64], patch: &[f64]) -> Option<Change> {
    let change = welch_change(base, patch)?;
    let of_logs = || {
        let logs = |side: &[f64]| side.iter().map(|v| ln(*v)).collect::<Option<Vec<f64>>>();
        let (b, p) = logs(base).zip(logs(patch))?;
        let all = [&b[..], &p[..]].concat();
        change.of_ratio(welch_fit(base, patch)?, welch_fit(&b, &p)?, all)
    };
    let fewest = base.len().min(patch.len());
    Some(of_logs().filter(|_| fewest >= RUNS_MIN).unwrap_or(change))
}

impl Change {
    /// With the interval of the ratio, if that fits better. `logs` are those of all values.
    fn of_ratio(self, plain: Fit, of_logs: Fit, logs: Vec<f64>) -> Option<Self> {
        let geometric = exp(logs.iter().sum::<f64>() / logs.len() as f64)?;
        let fits = of_logs.spread * geometric < CLEARLY * plain.spread;
        let half = of_logs.half.filter(|_| fits)?;
        let ends = [exp(of_logs.centre - half)?, exp(of_logs.centre + half)?];
        let of_means = plain.patch_mean() / plain.base_mean;
        let holds =
            ends[0] <= of_means * (1.0 + ROUNDING) && of_means * (1.0 - ROUNDING) <= ends[1];
        let ends = [ends[0].min(of_means), ends[1].max(of_means)];
        holds.then(|| Self {
            ci95: Some(ends.map(|ratio| plain.base_mean * (ratio - 1.0))),
            ci95_pct: Some(ends.map(|ratio| 100.0 * (ratio - 1.0))),
            interval: Interval::LogRatio,
            ..self
        })
    }
}

fn ln(value: f64) -> Option<f64> {
    (value > 0.0).then(|| same_everywhere(value.ln()))
}

fn exp(value: f64) -> Option<f64> {
    Some(same_everywhere(value.exp())).filter(|value| value.is_finite())
}

/// Twelve digits: the last bits of `ln` and `exp` differ between platforms.
fn same_everywhere(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{near, near_ci, splitmix};
    use super::*;

    fn pairs(base: &[f64], patch: &[f64]) -> Vec<(f64, f64)> {
        base.iter().copied().zip(patch.iter().copied()).collect()
    }

    /// p99 of a service, ms, without a limit and with one that is too low. The interval is
    /// `exp(mean(l) -+ 4.30265 * sd(l) / sqrt(3)) - 1`, computed apart from this.
    #[test]
    fn what_is_tens_of_times_as_slow_in_every_seed_is_no_noise() {
        let (slow, quick) = ([208.0, 648.0, 398.0], [10.3, 10.7, 10.8]);
        let change = paired_change_to_scale(&pairs(&quick, &slow)).unwrap();
        assert!(
            !paired_change(&pairs(&quick, &slow))
                .unwrap()
                .excludes_zero()
        );
        assert_eq!(change.interval, Interval::LogRatio);
        near(change.pct.unwrap(), 100.0 * (1254.0 / 31.8 - 1.0));
        near_ci(change.ci95_pct, [807.7595016626847, 13851.26645087761]);
        assert!(change.excludes_zero());
        let falls = paired_change_to_scale(&pairs(&slow, &quick)).unwrap();
        let [lo, hi] = falls.ci95_pct.unwrap();
        assert!(
            -100.0 < lo && lo < falls.pct.unwrap() && hi < -88.0,
            "{lo} {hi}"
        );
        let other_seeds = welch_change_to_scale(&quick, &slow).unwrap();
        assert_eq!(
            (other_seeds.interval, other_seeds.excludes_zero()),
            (Interval::LogRatio, true)
        );
    }

    #[test]
    fn a_shift_a_zero_and_two_runs_stay_a_difference() {
        let base = [1.0, 5.0, 9.0];
        for patch in [[0.9, 4.9, 8.9], [0.0, 50.0, 900.0]] {
            let change = paired_change_to_scale(&pairs(&base, &patch));
            assert_eq!(change, paired_change(&pairs(&base, &patch)), "{patch:?}");
        }
        let two = [(1.0, 20.0), (1.0, 60.0)];
        assert_eq!(paired_change_to_scale(&two), paired_change(&two));
        assert_eq!(paired_change_to_scale(&[]), None);
        assert_eq!(welch_change_to_scale(&[1.0], &[]), None);
    }

    /// A ratio that is the same in each seed has an interval of no width, but for rounding.
    #[test]
    fn the_change_is_in_its_interval() {
        let halved = paired_change_to_scale(&[(3.0, 1.5), (7.1, 3.55), (11.0, 5.5)]).unwrap();
        near_ci(halved.ci95_pct, [-50.0, -50.0]);
        let mut state = 3;
        for n in 3..40 {
            // Of many runs with a few far outliers the ratio of the means is none of the medians.
            let far = |state: &mut u64| {
                if splitmix(state).is_multiple_of(10) {
                    1000.0
                } else {
                    1.0
                }
            };
            let mut value = || far(&mut state) + (splitmix(&mut state) % 100) as f64 / 1000.0;
            let pairs: Vec<(f64, f64)> = (0..n).map(|_| (1.0, value())).collect();
            let change = paired_change_to_scale(&pairs).unwrap();
            let ([lo, hi], pct) = (change.ci95_pct.unwrap(), change.pct.unwrap());
            assert!(lo <= pct && pct <= hi, "{n} runs: {pct} in [{lo}, {hi}]");
        }
    }

    /// Alike on both sides: normal with 5 % of spread, and logarithms that are normal.
    #[test]
    fn it_finds_nothing_where_there_is_nothing_as_often_as_it_says() {
        let mut state = 11u64;
        let mut uniform = || (splitmix(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        for (spread, runs) in [
            (0.05, 3),
            (0.05, 10),
            (0.3, 5),
            (1.0, 3),
            (1.0, 5),
            (2.0, 10),
        ] {
            let mut value = || match spread < 0.1 {
                true => 1.0 + spread * normal(),
                false => (spread * normal()).exp(),
            };
            let mut found = 0;
            for _ in 0..3000 {
                let pairs: Vec<(f64, f64)> = (0..runs).map(|_| (value(), value())).collect();
                found += i32::from(paired_change_to_scale(&pairs).unwrap().excludes_zero());
            }
            assert!(
                (100..=220).contains(&found),
                "{spread}, {runs}: {found} of 3000"
            );
        }
    }
}

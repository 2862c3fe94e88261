//! Means, Student-t intervals, and the change from base to patch.
//!
//! Base and patch run with the same seeds, so their results come in pairs and what the seed does
//! to both cancels. With differences `d_i = patch_i - base_i`, `n` of them:
//!
//! ```text
//!   d  = mean(d_i)              se = sd(d_i) / sqrt(n)
//!   interval = d -+ t(0.975, n - 1) * se                      (paired t)
//! ```
//!
//! Where the seeds differ (two saved results), the two samples are independent:
//!
//! ```text
//!   se = sqrt(vb + vp)          vb = sd(base)^2 / nb,  vp = sd(patch)^2 / np
//!   df = (vb + vp)^2 / (vb^2 / (nb - 1) + vp^2 / (np - 1))    (Welch)
//! ```
//!
//! Percentages are the same numbers divided by `|mean(base)|`. So the change in percent is exactly
//! what one computes from the two means in the table, and the interval excludes 0 exactly when
//! the t test says so; the mean of base is taken as the unit, its own error is not added. Where
//! spread grows with size, the interval is that of log ratios (`stats/scale.rs`); the change stays.
//!
//! Times, counts and shares are not negative. Where no value of a sample is, its interval ends at
//! 0, and that of the change at -100 %: what lies beyond is impossible, so nothing is lost with it.
//! The interval of a share ends at the whole for the same reason ([`Summary::up_to`]).

mod scale;

use statrs::distribution::{ContinuousCDF, StudentsT};

pub use scale::Interval;
pub(crate) use scale::{paired_change_to_scale, welch_change_to_scale};

/// Size, mean and spread of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with `n - 1`; `None` for a single value.
    pub sd: Option<f64>,
    /// 95 % Student-t interval of the mean; `None` for a single value.
    pub ci95: Option<[f64; 2]>,
}

impl Summary {
    /// The same of a share: nothing is above the whole. Without one, as it is.
    #[must_use]
    pub fn up_to(self, whole: Option<f64>) -> Self {
        // A mean may be above by a rounding error.
        let top = whole.map_or(f64::MAX, |whole| whole.max(self.mean));
        Self {
            ci95: self.ci95.map(|[lo, hi]| [lo, hi.min(top)]),
            ..self
        }
    }
}

/// The change from base to patch, in the unit of the metric and in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Mean of patch minus mean of base.
    pub diff: f64,
    /// Its 95 % interval; `None` where there are too few values.
    pub ci95: Option<[f64; 2]>,
    /// `diff` in percent of `|mean(base)|`; `None` if base is 0 and patch is not.
    pub pct: Option<f64>,
    /// The interval in percent; `None` where either part is.
    pub ci95_pct: Option<[f64; 2]>,
    /// What the interval is of.
    pub interval: Interval,
}

/// What an interval is made of, on one scale.
#[derive(Clone, Copy, Debug)]
struct Fit {
    base_mean: f64,
    /// Of patch less base.
    centre: f64,
    /// Half of its interval; `None` of too few values.
    half: Option<f64>,
    /// Root of the sum of squares that the means leave, to be compared between scales.
    spread: f64,
}

impl Fit {
    fn patch_mean(&self) -> f64 {
        self.base_mean + self.centre
    }
}

impl Change {
    /// Whether the interval excludes 0.
    pub fn excludes_zero(&self) -> bool {
        self.ci95.is_some_and(|[lo, hi]| lo > 0.0 || hi < 0.0)
    }

    /// The same where the values are a selection, so that their spread says nothing.
    #[must_use]
    pub fn without_interval(self) -> Self {
        Self {
            ci95: None,
            ci95_pct: None,
            interval: Interval::Difference,
            ..self
        }
    }

    /// The same between shares, of which those of base have this mean: nothing is above the whole.
    /// Without one, as it is.
    #[must_use]
    pub fn up_to(self, whole: Option<f64>, base_mean: f64) -> Self {
        let Some(whole) = whole else {
            return self;
        };
        let top = (whole - base_mean).max(self.diff);
        let cut = |ends: [f64; 2], top: f64| [ends[0], ends[1].min(top)];
        let percent = 100.0 * top / base_mean.abs();
        Self {
            ci95: self.ci95.map(|ends| cut(ends, top)),
            // A base of 0 has no percentage, or all are 0.
            ci95_pct: self.ci95_pct.map(|ends| match percent.is_finite() {
                true => cut(ends, percent),
                false => ends,
            }),
            ..self
        }
    }

    /// `lowest` is the smallest value of either sample.
    fn new(fit: Fit, lowest: f64) -> Self {
        let (diff, base_mean) = (fit.centre, fit.base_mean);
        let floor = if lowest >= 0.0 { -base_mean } else { f64::MIN };
        let ci95 = fit.half.map(|half| [(diff - half).max(floor), diff + half]);
        let all_zero = base_mean == 0.0 && diff == 0.0 && fit.half.unwrap_or(0.0) == 0.0;
        let scale = 100.0 / base_mean.abs();
        let percent = |value: f64| {
            if all_zero {
                Some(0.0)
            } else {
                finite(value * scale)
            }
        };
        Self {
            diff,
            ci95,
            pct: percent(diff),
            ci95_pct: ci95.and_then(|[lo, hi]| Some([percent(lo)?, percent(hi)?])),
            interval: Interval::Difference,
        }
    }
}

/// Summarises a sample; `None` if it is empty. All values must be finite.
pub fn summary(values: &[f64]) -> Option<Summary> {
    debug_assert!(values.iter().all(|v| v.is_finite()));
    if values.is_empty() {
        return None;
    }
    let n = values.len();
    let mean = mean(values);
    let sd = (n > 1).then(|| variance(values, mean).sqrt());
    let ci95 = sd.map(|sd| {
        let half = half_width(sd / (n as f64).sqrt(), (n - 1) as f64);
        let floor = if lowest(values) >= 0.0 { 0.0 } else { f64::MIN };
        [(mean - half).max(floor), mean + half]
    });
    Some(Summary { n, mean, sd, ci95 })
}

/// The change over pairs `(base, patch)` of the same seed; `None` if there is no pair.
pub fn paired_change(pairs: &[(f64, f64)]) -> Option<Change> {
    let values = pairs.iter().flat_map(|&(b, p)| [b, p]);
    let lowest = values.fold(f64::INFINITY, f64::min);
    Some(Change::new(paired_fit(pairs)?, lowest))
}

/// The change between two independent samples; `None` if one is empty. No interval if one of
/// them has a single value.
pub fn welch_change(base: &[f64], patch: &[f64]) -> Option<Change> {
    let lowest = lowest(base).min(lowest(patch));
    Some(Change::new(welch_fit(base, patch)?, lowest))
}

fn paired_fit(pairs: &[(f64, f64)]) -> Option<Fit> {
    let base: Vec<f64> = pairs.iter().map(|&(b, _)| b).collect();
    let diffs: Vec<f64> = pairs.iter().map(|&(b, p)| p - b).collect();
    let base_mean = summary(&base)?.mean;
    let Summary { n, mean, sd, .. } = summary(&diffs)?;
    Some(Fit {
        base_mean,
        centre: mean,
        half: sd.map(|sd| half_width(sd / (n as f64).sqrt(), (n - 1) as f64)),
        spread: sd.unwrap_or(0.0) * (n as f64 - 1.0).sqrt(),
    })
}

fn welch_fit(base: &[f64], patch: &[f64]) -> Option<Fit> {
    let (b, p) = (summary(base)?, summary(patch)?);
    let half = b.sd.zip(p.sd).map(|(sd_b, sd_p)| {
        let (vb, vp) = (sd_b * sd_b / b.n as f64, sd_p * sd_p / p.n as f64);
        let denominator = vb * vb / (b.n - 1) as f64 + vp * vp / (p.n - 1) as f64;
        if denominator == 0.0 {
            return 0.0;
        }
        half_width((vb + vp).sqrt(), (vb + vp) * (vb + vp) / denominator)
    });
    let squares = |s: &Summary| s.sd.unwrap_or(0.0).powi(2) * (s.n as f64 - 1.0);
    Some(Fit {
        base_mean: b.mean,
        centre: p.mean - b.mean,
        half,
        spread: (squares(&b) + squares(&p)).sqrt(),
    })
}

/// `value` if it is finite.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn mean(values: &[f64]) -> f64 {
    // Around the first value: exact where all values are equal.
    let origin = values[0];
    origin + values.iter().map(|v| v - origin).sum::<f64>() / values.len() as f64
}

fn lowest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn variance(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (values.len() - 1) as f64
}

/// Half of the 95 % interval: `t(0.975, df) * se`.
///
/// The quantile is the only number here that goes through `exp` and `ln`, whose last bits differ
/// between platforms. Rounded to 10 decimals it is the same everywhere, and so are all results.
fn half_width(se: f64, df: f64) -> f64 {
    if se == 0.0 {
        return 0.0;
    }
    let t = StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |t| t.inverse_cdf(0.975));
    (t * 1e10).round() / 1e10 * se
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 5] = [10.1, 11.3, 9.7, 10.9, 10.4];
    const PATCH: [f64; 5] = [9.2, 10.8, 9.1, 9.9, 9.8];

    pub(super) fn near(got: f64, want: f64) {
        assert!(
            (got - want).abs() <= 1e-9 * want.abs().max(1.0),
            "got {got}, want {want}"
        );
    }

    pub(super) fn near_ci(got: Option<[f64; 2]>, want: [f64; 2]) {
        let [lo, hi] = got.unwrap();
        near(lo, want[0]);
        near(hi, want[1]);
    }

    fn pairs(base: &[f64], patch: &[f64]) -> Vec<(f64, f64)> {
        base.iter().copied().zip(patch.iter().copied()).collect()
    }

    /// scipy 1.x: `stats.t.ppf(0.975, df)`.
    #[test]
    fn t_quantiles_are_those_of_scipy() {
        let table = [
            (1.0, 12.706204736174694),
            (2.0, 4.302652729749462),
            (4.0, 2.7764451051977934),
            (7.3, 2.345066736547703),
            (29.0, 2.045229642132703),
            (1000.0, 1.9623390808264083),
        ];
        for (df, want) in table {
            near(half_width(1.0, df), want);
        }
    }

    /// scipy: `t.interval(.95, 4, mean, sem)`, `ttest_rel(p, b).confidence_interval(.95)`.
    #[test]
    fn summary_and_paired_interval_are_those_of_scipy() {
        let s = summary(&BASE).unwrap();
        near(s.mean, 10.48);
        near(s.sd.unwrap(), 0.6340346993658948);
        near_ci(s.ci95, [9.692741940185423, 11.267258059814578]);

        let change = paired_change(&pairs(&BASE, &PATCH)).unwrap();
        near(change.diff, -0.72);
        near_ci(change.ci95, [-0.9891863402337903, -0.4508136597662097]);
        near(change.pct.unwrap(), -6.870229007633593);
        near_ci(change.ci95_pct, [-9.438800956429295, -4.301657058837878]);
        assert!(change.excludes_zero());
    }

    /// scipy: `ttest_ind(p, b, equal_var=False).confidence_interval(.95)`.
    #[test]
    fn welch_interval_is_that_of_scipy() {
        let change = welch_change(&BASE, &[9.9, 12.1, 10.8]).unwrap();
        near(change.diff, 0.45333333333333137);
        near_ci(change.ci95, [-1.856865686990465, 2.7635323536571277]);
        assert!(!change.excludes_zero());
    }

    #[test]
    fn an_interval_of_what_cannot_be_negative_ends_at_zero() {
        let s = summary(&[0.0, 4.0]).unwrap();
        assert_eq!(s.ci95.unwrap()[0], 0.0);
        assert!(s.ci95.unwrap()[1] > 20.0);
        let change = paired_change(&[(4.0, 1.0), (4.0, 3.0)]).unwrap();
        assert_eq!(change.ci95_pct.unwrap()[0], -100.0);
        assert_eq!(change.ci95.unwrap()[0], -4.0);
        let change = welch_change(&[4.0, 4.0], &[1.0, 3.0]).unwrap();
        assert_eq!(change.ci95_pct.unwrap()[0], -100.0);
        let below = summary(&[-1.0, 4.0]).unwrap();
        assert!(below.ci95.unwrap()[0] < -20.0);
        let change = paired_change(&[(4.0, -1.0), (4.0, 3.0)]).unwrap();
        assert!(change.ci95_pct.unwrap()[0] < -100.0);
    }

    #[test]
    fn an_interval_of_shares_ends_at_the_whole() {
        let s = summary(&[90.0, 100.0]).unwrap();
        assert!(s.ci95.unwrap()[1] > 150.0 && s.up_to(None) == s);
        assert_eq!(s.up_to(Some(100.0)).ci95.unwrap()[1], 100.0);
        let above = summary(&[100.5, 100.5]).unwrap().up_to(Some(100.0));
        assert_eq!(above.ci95, Some([100.5; 2]));

        let change = paired_change(&[(80.0, 90.0), (80.0, 100.0)]).unwrap();
        assert!(change.ci95.unwrap()[1] > 70.0 && change.up_to(None, 80.0) == change);
        let cut = change.up_to(Some(100.0), 80.0);
        assert_eq!(cut.ci95.unwrap()[1], 20.0);
        assert_eq!(cut.ci95_pct.unwrap()[1], 25.0);
        assert_eq!(cut.pct, change.pct);
        let zeros = paired_change(&[(0.0, 0.0); 3]).unwrap();
        assert_eq!(zeros.up_to(Some(100.0), 0.0), zeros);
    }

    #[test]
    fn change_in_percent_is_what_the_two_means_say() {
        let (base, patch) = (summary(&BASE).unwrap().mean, summary(&PATCH).unwrap().mean);
        let want = 100.0 * (patch - base) / base;
        near(
            paired_change(&pairs(&BASE, &PATCH)).unwrap().pct.unwrap(),
            want,
        );
        near(welch_change(&BASE, &PATCH).unwrap().pct.unwrap(), want);
    }

    /// A percentile bootstrap (20 000 resamples of the differences) is narrower than t by about
    /// `sqrt((n - 1) / n)` and the factor t / z: for n = 12 the t interval is 1.17 times as wide.
    #[test]
    fn bootstrap_agrees_with_the_t_interval() {
        let base = [
            100., 102., 98., 101., 99., 103., 97., 100., 101., 99., 98., 102.,
        ];
        let patch = [
            98., 101., 99., 97., 99., 100., 96., 101., 98., 97., 99., 100.,
        ];
        let change = paired_change(&pairs(&base, &patch)).unwrap();
        near_ci(change.ci95, [-2.33791510892127, -0.1620848910787298]);
        let diffs: Vec<f64> = pairs(&base, &patch).iter().map(|(b, p)| p - b).collect();
        let mut state = 7u64;
        let mut means: Vec<f64> = (0..20_000)
            .map(|_| {
                (0..12)
                    .map(|_| diffs[(splitmix(&mut state) % 12) as usize])
                    .sum::<f64>()
                    / 12.0
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let [lo, hi] = change.ci95.unwrap();
        let ratio = (hi - lo) / (means[19_499] - means[500]);
        assert!((1.07..1.27).contains(&ratio), "{ratio}");
        let centre = (means[19_499] + means[500]) / 2.0;
        assert!((centre - change.diff).abs() < 0.1, "{centre}");
    }

    pub(super) fn splitmix(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Where base and patch are one distribution, 95 of 100 intervals must hold 0.
    #[test]
    fn intervals_hold_zero_as_often_as_they_say() {
        let mut state = 1u64;
        let mut uniform = || (splitmix(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0 + 50.0;
        let (mut paired, mut welch) = (0, 0);
        for _ in 0..4000 {
            let base: Vec<f64> = (0..5).map(|_| normal()).collect();
            let patch: Vec<f64> = (0..5).map(|_| normal()).collect();
            paired += i32::from(
                !paired_change(&pairs(&base, &patch))
                    .unwrap()
                    .excludes_zero(),
            );
            welch += i32::from(!welch_change(&base, &patch).unwrap().excludes_zero());
        }
        // 3800 expected, standard deviation 14; Welch is known to be a little cautious.
        assert!((3745..=3855).contains(&paired), "{paired}");
        assert!((3745..=3900).contains(&welch), "{welch}");
    }

    #[test]
    fn equal_runs_do_not_differ() {
        let change = paired_change(&pairs(&BASE, &BASE)).unwrap();
        assert_eq!(change.ci95_pct, Some([0.0, 0.0]));
        assert!(!change.excludes_zero());
        let zeros = paired_change(&[(0.0, 0.0); 3]).unwrap();
        assert_eq!((zeros.pct, zeros.ci95_pct), (Some(0.0), Some([0.0, 0.0])));
    }

    #[test]
    fn a_base_of_zero_has_no_percentage_but_a_difference() {
        let change = paired_change(&[(0.0, 5.0), (0.0, 6.0), (0.0, 7.0)]).unwrap();
        assert_eq!(
            (change.diff, change.pct, change.ci95_pct),
            (6.0, None, None)
        );
        assert!(change.excludes_zero());
    }

    #[test]
    fn one_run_has_no_interval() {
        let change = paired_change(&[(10.0, 5.0)]).unwrap();
        assert_eq!((change.pct, change.ci95), (Some(-50.0), None));
        assert!(!change.excludes_zero());
        assert_eq!(welch_change(&[1.0], &[2.0, 3.0]).unwrap().ci95, None);
        assert!(paired_change(&[]).is_none());
        assert!(welch_change(&[], &[1.0]).is_none());
    }

    #[test]
    fn constant_samples_that_differ_exclude_zero() {
        let change = welch_change(&[4.0, 4.0], &[5.0, 5.0]).unwrap();
        assert_eq!(change.ci95_pct, Some([25.0, 25.0]));
        assert!(change.excludes_zero());
    }
}

//! The knee of a metric over one setting: where raising the setting stops to pay.
//!
//! Both axes are scaled to 0 to 1 between the first and the last point. A metric that falls from
//! (0, 1) to (1, 0) has its knee where it is furthest below the straight line between them
//! (Kneedle: Satopää, Albrecht, Irwin, Raghavan 2011):
//!
//! ```text
//!   distance = 1 - x - y        0: on the line; near 1: all of the fall is in the first step
//! ```
//!
//! There is none where it would be an accident: fewer points than [`POINTS_MIN`], a fall within
//! the intervals of its ends or too small to matter, a metric that rises again, or a line that is
//! nearly straight. Points that do not sustain their load, or where some run has no value, take no
//! part: what is known of them is of this length of run, or a lower bound. Nor do metrics of which
//! less is not better: nobody raises a limit for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axis, Point, Spread};
use crate::catalogue::{Better, MetricInfo};

/// Fewer points have no shape.
const POINTS_MIN: usize = 4;
/// A knee is at least so far from the straight line.
const DISTANCE_MIN: f64 = 0.2;
/// So much of the whole fall may be taken back on the way: latencies are never quite smooth.
const RISES_MAX: f64 = 0.1;

/// A fall by less than this part does not pay for anything.
const FALL_MIN: f64 = 0.05;

/// Where a metric has its knee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The metric.
    pub metric: String,
    /// The point, by its place in `points`.
    pub point: usize,
    /// Its distance from the straight line between the first and the last point, both axes scaled
    /// to 0 to 1.
    pub distance: f64,
}

/// The knees of these metrics, if one setting with sizes was swept.
pub(super) fn knees(over: &[Axis], points: &[Point], metrics: &[MetricInfo]) -> Vec<Knee> {
    let [axis] = over else { return Vec::new() };
    let Some(sizes) = &axis.sizes else {
        return Vec::new();
    };
    let knee = |info: &MetricInfo| {
        let metric = &info.name;
        let has = |point: &Point| {
            let mut runs = point.variant.runs.iter();
            point.not_sustained.is_empty() && runs.all(|run| run.metric(metric).is_some())
        };
        // A limit without end has no place on the axis.
        let mut curve: Vec<(usize, f64, Spread)> = points
            .iter()
            .enumerate()
            .filter(|(_, point)| has(point))
            .filter_map(|(i, point)| {
                let size = sizes.get(i).copied().flatten()?;
                Some((i, size, *point.summary.get(metric)?))
            })
            .collect();
        curve.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (point, distance) = furthest(&curve)?;
        Some(Knee {
            metric: metric.clone(),
            point,
            distance,
        })
    };
    let lower = metrics.iter().filter(|m| m.better == Some(Better::Lower));
    lower.filter_map(knee).collect()
}

/// The point furthest below the straight line, and how far it is.
fn furthest(curve: &[(usize, f64, Spread)]) -> Option<(usize, f64)> {
    let [first, .., last] = curve else {
        return None;
    };
    let (width, fall) = (last.1 - first.1, first.2.mean - last.2.mean);
    let falls = falls_beyond_noise(&first.2, &last.2) && fall >= FALL_MIN * first.2.mean.abs();
    if curve.len() < POINTS_MIN || width <= 0.0 || !falls {
        return None;
    }
    let steps = curve.windows(2).map(|pair| pair[1].2.mean - pair[0].2.mean);
    let rises: f64 = steps.filter(|step| *step > 0.0).sum();
    if rises > RISES_MAX * fall {
        return None;
    }
    let distance = |(place, size, spread): &(usize, f64, Spread)| {
        let x = (size - first.1) / width;
        let y = (spread.mean - last.2.mean) / fall;
        (*place, 1.0 - x - y)
    };
    let all = curve.iter().map(distance);
    // Of equals the smallest setting.
    let most = all.reduce(|a, b| if b.1 > a.1 { b } else { a });
    most.filter(|(_, distance)| *distance >= DISTANCE_MIN)
}

/// Whether the intervals of both ends are apart; one run has none, and then there is no knee.
fn falls_beyond_noise(first: &Spread, last: &Spread) -> bool {
    match (first.ci95[0], last.ci95[1]) {
        (Some(low), Some(high)) => low > high,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sweep_of;
    use super::*;

    /// Place of the knee and its distance in hundredths, over settings of equal steps.
    fn knee(means: &[f64]) -> Option<(usize, i64)> {
        let sweep = sweep_of(means);
        let knee = sweep.knees.iter().find(|k| k.metric == "test.p99")?;
        Some((knee.point, (knee.distance * 100.0).round() as i64))
    }

    #[test]
    fn a_knee_is_where_the_fall_ends() {
        // x of the second is 0.25 and its y 0.
        assert_eq!(knee(&[100.0, 20.0, 20.0, 20.0, 20.0]), Some((1, 75)));
        assert_eq!(knee(&[100.0, 60.0, 24.0, 20.0, 20.0]), Some((2, 45)));
        // A little up on the way.
        assert_eq!(knee(&[100.0, 20.0, 24.0, 21.0, 20.0]), Some((1, 75)));
    }

    #[test]
    fn what_is_straight_short_noisy_or_rising_has_none() {
        assert_eq!(knee(&[100.0, 80.0, 60.0, 40.0, 20.0]), None, "straight");
        assert_eq!(
            knee(&[100.0, 99.0, 98.0, 97.0, 20.0]),
            None,
            "above the line"
        );
        assert_eq!(knee(&[100.0, 20.0, 20.0]), None, "three points");
        assert_eq!(knee(&[20.0, 60.0, 80.0, 100.0]), None, "it rises");
        assert_eq!(knee(&[100.0, 20.0, 90.0, 20.0]), None, "up and down");
        // The intervals are 2.5 wide on either side.
        assert_eq!(knee(&[24.0, 20.0, 20.0, 20.0]), None, "noise");
    }

    /// Of 100, 20, 20, 20, 20 with a knee at the second point; `lame` changes the sweep's input.
    fn without(lame: impl Fn(&mut [Point], &mut MetricInfo)) -> Vec<Knee> {
        let mut sweep = sweep_of(&[100.0, 20.0, 20.0, 20.0, 20.0]);
        let mut info = sweep.info("test.p99").unwrap().clone();
        lame(&mut sweep.points, &mut info);
        knees(&sweep.over, &sweep.points, &[info])
    }

    #[test]
    fn lower_bounds_and_metrics_without_a_direction_have_no_knee() {
        assert_eq!(without(|_, _| ()).len(), 1);
        assert!(without(|_, info| info.better = None).is_empty());
        assert!(without(|_, info| info.better = Some(Better::Higher)).is_empty());
        let grows = |points: &mut [Point], _: &mut MetricInfo| {
            points[0].not_sustained = vec!["web".into()];
        };
        assert!(
            without(grows).is_empty(),
            "the fall is from what grows with the run"
        );
        let lacks = |points: &mut [Point], _: &mut MetricInfo| {
            points[0].variant.runs[1]
                .metrics
                .insert("test.p99".into(), None);
        };
        assert!(without(lacks).is_empty());
        let elsewhere = |points: &mut [Point], _: &mut MetricInfo| {
            points[1].not_sustained = vec!["web".into()];
        };
        assert_eq!(without(elsewhere)[0].point, 2);
    }

    #[test]
    fn a_fall_that_nobody_would_pay_for_has_no_knee() {
        assert_eq!(
            knee(&[1000.0, 980.0, 980.0, 980.0]),
            None,
            "2 %, beyond noise"
        );
        assert!(knee(&[1000.0, 900.0, 900.0, 900.0]).is_some());
    }
}

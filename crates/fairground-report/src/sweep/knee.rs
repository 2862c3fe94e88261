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
//! the intervals of its ends, a metric that rises again, or a line that is nearly straight.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axis, Point, Spread};

/// Fewer points have no shape.
const POINTS_MIN: usize = 4;
/// A knee is at least so far from the straight line.
const DISTANCE_MIN: f64 = 0.2;
/// So much of the whole fall may be taken back on the way: latencies are never quite smooth.
const RISES_MAX: f64 = 0.1;

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
pub(super) fn knees(over: &[Axis], points: &[Point], metrics: &[String]) -> Vec<Knee> {
    let [axis] = over else { return Vec::new() };
    let Some(sizes) = &axis.sizes else {
        return Vec::new();
    };
    let knee = |metric: &String| {
        // A limit without end has no place on the axis.
        let mut curve: Vec<(usize, f64, Spread)> = points
            .iter()
            .enumerate()
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
    metrics.iter().filter_map(knee).collect()
}

/// The point furthest below the straight line, and how far it is.
fn furthest(curve: &[(usize, f64, Spread)]) -> Option<(usize, f64)> {
    let [first, .., last] = curve else {
        return None;
    };
    let (width, fall) = (last.1 - first.1, first.2.mean - last.2.mean);
    let falls = falls_beyond_noise(&first.2, &last.2);
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
}

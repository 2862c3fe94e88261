//! Percentiles of requests of which some are still open at the end of the run. Units: nanoseconds.
//!
//! What waits longest is open at the end, so a percentile of those that were answered is one of the
//! lucky ones. An open request has taken its age, and will take longer: it is *censored*.
//!
//! ```text
//!   sorted by duration, an open one (o) at its age:     a  a  o  a  a  a  o
//!   n = 7 places; each counts 1 at first                1  1     |        |
//!   past an o with k to its right, each of these k
//!   counts (k + 1) / k times as much                          5/4  5/4  5/4   (last o: lost)
//! ```
//!
//! The percentile q is where the counts of the answered ones reach q n. So an open one that is
//! older than the percentile has its place above it, and one that is younger is taken to end as
//! those do that took longer than its age (the estimate of Kaplan and Meier, in the form that
//! Efron gave it). If no answered one is beyond an open one, its count is lost: q n may never be
//! reached, and then the percentile is not known. At least it is what it would be if all open ones
//! ended now.

use hdrhistogram::Histogram;

use super::marks::Durations;
use super::time::Ns;

/// Of counts, which are not whole numbers.
const ROUNDING: f64 = 1e-9;

/// A percentile of all requests, answered or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percentile {
    /// It is this.
    Known(Ns),
    /// It is this or more.
    AtLeast(Ns),
}

/// The percentile of requests that ended and of open ones of these `ages`, sorted; `None` of none.
pub(crate) fn percentile(
    ended: &Histogram<u64>,
    exact: &Durations,
    ages: &[Ns],
    permille: u32,
) -> Option<Percentile> {
    let all = ended.len() + ages.len() as u64;
    if all == 0 {
        return None;
    }
    let wanted = f64::from(permille) / 1e3 * all as f64 * (1.0 - ROUNDING);
    let (mut count, mut reached, mut right) = (1.0, 0.0, all as f64);
    let mut open = ages.iter().peekable();
    for slot in ended.iter_recorded() {
        let value = exact.within(slot.value_iterated_to());
        while open.next_if(|age| **age < value).is_some() {
            right -= 1.0;
            count *= (right + 1.0) / right;
        }
        let here = slot.count_since_last_iteration() as f64;
        reached += count * here;
        right -= here;
        if reached >= wanted {
            return Some(Percentile::Known(value));
        }
    }
    Some(Percentile::AtLeast(at_least(ended, exact, ages, permille)))
}

/// What the percentile would be if all open ones ended now, as none of them can get shorter.
pub(crate) fn at_least(
    ended: &Histogram<u64>,
    exact: &Durations,
    ages: &[Ns],
    permille: u32,
) -> Ns {
    let slots = ended.iter_recorded();
    let slots = slots.map(|slot| {
        let value = exact.within(slot.value_iterated_to());
        (value, slot.count_since_last_iteration())
    });
    let mut all: Vec<(Ns, u64)> = slots.chain(ages.iter().map(|age| (*age, 1))).collect();
    all.sort_unstable();
    let of = ended.len() + ages.len() as u64;
    let mut left = (u64::from(permille) * of).div_ceil(1000).max(1);
    for (value, count) in all {
        if count >= left {
            return value;
        }
        left -= count;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::super::marks::Marks;
    use super::super::metric::{Better, From, MetricDef};
    use super::super::program::Workload;
    use super::*;

    const US: Ns = 1000;

    /// Requests that took these times, and open ones of these ages, us.
    fn marks(took: impl Iterator<Item = Ns>, ages: &[Ns]) -> Marks {
        let mut w = Workload::new("test", Vec::new());
        w.requests = vec!["request".into()];
        let mut marks = w.empty_marks();
        took.for_each(|us| _ = marks.request(0, 0, us * US));
        for age in ages {
            marks.left_open(0, 0, age * US);
        }
        marks
    }

    fn found(marks: &Marks, permille: u32) -> Percentile {
        let (ended, exact) = (&marks.requests[0], &marks.exact[0]);
        percentile(ended, exact, marks.ages(0), permille).unwrap()
    }

    fn about(found: Percentile, us: Ns) -> bool {
        matches!(found, Percentile::Known(ns) if ns.abs_diff(us * US) * 1000 <= us * US)
    }

    /// Of a thousand requests nine never end: the 99th percentile is the 990th of 991.
    #[test]
    fn who_never_ends_has_the_ranks_at_the_top() {
        let stuck = marks(1..=991, &[1_000_000; 9]);
        assert!(about(found(&stuck, 990), 990), "{:?}", found(&stuck, 990));
        assert!(about(found(&stuck, 500), 500));
        assert_eq!(found(&stuck, 1000), Percentile::AtLeast(1_000_000 * US));
        let value = |permille| {
            let from = From::LatencyQuantileUs {
                request: 0,
                permille,
            };
            MetricDef::new("m", "us", Better::Lower, from).value(&stuck)
        };
        assert_eq!(value(990).map(f64::round), Some(990.0));
        assert_eq!(value(1000), None);
        // Ten more, and it is above all that were answered.
        let more = marks(1..=981, &[5000; 19]);
        assert_eq!(found(&more, 990), Percentile::AtLeast(5000 * US));
    }

    #[test]
    fn one_in_flight_leaves_nothing_open() {
        let young = marks(1..=999, &[1]);
        for (permille, us) in [(500, 500), (990, 990), (1000, 999)] {
            let found = found(&young, permille);
            assert!(about(found, us), "{permille}: {found:?}");
        }
    }

    /// Without open ones it is what the histogram says; and of two kinds of places by hand.
    #[test]
    fn counts_are_those_of_the_drawing() {
        let none = marks(1..=150, &[]);
        for permille in [1, 500, 900, 950, 990, 999, 1000] {
            let quantile = none.requests[0].value_at_quantile(f64::from(permille) / 1e3);
            assert_eq!(
                found(&none, permille),
                Percentile::Known(quantile.min(150 * US))
            );
        }
        // 1 and 2 count 1, then 5/4 each: 3.25, 4.5 and 5.75 of 7 are reached.
        let drawn = marks([10, 20, 40, 50, 60].into_iter(), &[30, 70]);
        for (permille, us) in [
            (285, 20),
            (464, 40),
            (465, 50),
            (642, 50),
            (643, 60),
            (821, 60),
        ] {
            assert!(about(found(&drawn, permille), us), "{permille}");
        }
        assert_eq!(found(&drawn, 822), Percentile::AtLeast(60 * US));
        assert_eq!(
            found(&marks([].into_iter(), &[3, 7]), 500),
            Percentile::AtLeast(3 * US)
        );
    }
}

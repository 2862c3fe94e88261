//! Published tables beside simulated ones, row by row, and what the difference is called.
//!
//! ```text
//!   published (base, patch, change)  ─┐
//!                                     ├─► classify ─► Class
//!   simulated (base, patch, change,  ─┘
//!              95 % interval)
//! ```
//!
//! The rules are those of a reader who wants to be convinced: a change must have the sign that
//! was published, and its size within a factor of two, to count as reproduced. A value that is
//! itself published (a share, a count) must be within a factor of two. What was published as
//! noise must be noise here as well.

mod headline;
mod row;
mod text;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use crate::number::Number;

pub use crate::number::number;
pub use headline::{Headline, Of};
pub use row::{Evidence, Made, Published, Row, Simulated, level};
pub use text::{level_text, reproduce_text, tally_line};

/// Changes smaller than this (percent) are noise where noise was published.
const NOISE_PCT: f64 = 5.0;
/// A change of less than this part of the published one is not that change.
const LEAST_PART: f64 = 0.1;
/// How far apart two numbers may be and still agree.
const FACTOR: f64 = 2.0;

/// What of a row is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The change from base to patch.
    Change,
    /// The change, which was published as noise or as "unchanged".
    Noise,
    /// The values themselves: shares and counts.
    Value,
    /// The values themselves, of which a factor of two says nothing (a share of 81 %): they must be
    /// within so many units of the published ones.
    Points(u32),
    /// The values are published as upper limits.
    AtMost,
    /// The value of base must be between the published ones, which are limits: least and most.
    Range,
    /// The values must be equal: the number of a CPU.
    Exact,
}

/// How a simulated row agrees with the published one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Same sign, and the change within a factor of two; for shares and counts the values.
    Factor2,
    /// Same sign, at least a tenth of the size, and an interval without 0 if there is one.
    Sign,
    /// Noise was published, and the simulated change is below 5 % or its interval holds 0.
    Noise,
    /// Anything else, and what is not simulated.
    Miss,
}

/// How `simulated` agrees with `published`.
pub fn classify(kind: Kind, published: &Published, simulated: &Simulated) -> Class {
    let sides = [
        (published.base, simulated.base),
        (published.patch, simulated.patch),
    ];
    let all = |fits: &dyn Fn(f64, f64) -> bool| {
        let asked = || sides.iter().filter(|(want, _)| want.is_some());
        let ok = |(want, got): &(Number, Number)| want.zip(*got).is_some_and(|(w, g)| fits(w, g));
        if asked().next().is_some() && asked().all(ok) {
            Class::Factor2
        } else {
            Class::Miss
        }
    };
    match kind {
        // A change of nothing is no change that was found, and no noise either.
        Kind::Change | Kind::Noise if simulated.stands_still() => Class::Miss,
        Kind::Change => change_class(published.change_pct, simulated),
        Kind::Noise => match simulated.change_pct {
            Some(change) if change.abs() < NOISE_PCT || simulated.holds_zero() => Class::Noise,
            _ => Class::Miss,
        },
        Kind::Value => all(&|want, got| got == want || near(want, got)),
        Kind::Points(most) => all(&|want, got| (got - want).abs() <= f64::from(most)),
        Kind::AtMost => all(&|limit, got| got <= limit),
        Kind::Range => match (published.base, published.patch, simulated.base) {
            (Some(least), Some(most), Some(got)) if (least..=most).contains(&got) => Class::Factor2,
            _ => Class::Miss,
        },
        Kind::Exact => all(&|want, got| want == got),
    }
}

/// Whether the runs can tell what the row asks, whatever its class says.
///
/// Of noise the interval must be no wider than the limit of noise on either side; of a change it
/// must be narrower than the published change, so that it does not hold both that and none. Values
/// that are compared themselves tell unless nothing happened, and so do exact ones.
pub fn tells(kind: Kind, row: &Row) -> bool {
    // The lower end may be cut at -100 %.
    let upper = row.simulated.ci95_pct[1].zip(row.simulated.change_pct);
    let half = upper.map(|(hi, change)| hi - change);
    let within = |limit: f64| half.is_some_and(|half| half <= limit);
    row.dead.is_none()
        && match kind {
            Kind::Noise => within(NOISE_PCT),
            Kind::Change => row.published.change_pct.is_some_and(|c| within(c.abs())),
            Kind::Value | Kind::Points(_) | Kind::AtMost | Kind::Range | Kind::Exact => true,
        }
}

/// A change that its own interval does not tell from none, or that is a small part of the published
/// one, has no sign to speak of.
fn change_class(published: Number, simulated: &Simulated) -> Class {
    match published.zip(simulated.change_pct) {
        Some((want, got)) if near(want, got) => Class::Factor2,
        Some((want, got)) if got / want >= LEAST_PART && !simulated.holds_zero() => Class::Sign,
        _ => Class::Miss,
    }
}

/// Same sign and within a factor of two.
fn near(want: f64, got: f64) -> bool {
    want * got > 0.0 && (1.0 / FACTOR..=FACTOR).contains(&(got / want))
}

/// Schema of the rows that `fairground reproduce --json` writes, as JSON text.
pub fn reproduce_schema() -> String {
    format!("{:#}\n", schema_for!(Vec<Row>).to_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(base: f64, patch: f64) -> Published {
        Published::new(Some(base), Some(patch))
    }

    fn simulated(base: f64, patch: f64) -> Simulated {
        Simulated::of(&[Some(base)], &[Some(patch)])
    }

    #[test]
    fn a_change_needs_the_sign_and_half_to_twice_the_size() {
        let want = published(100.0, 120.0);
        let class = |patch| classify(Kind::Change, &want, &simulated(100.0, patch));
        assert_eq!(class(110.0), Class::Factor2);
        assert_eq!(class(140.0), Class::Factor2);
        assert_eq!(class(109.9), Class::Sign);
        assert_eq!(class(140.1), Class::Sign);
        assert_eq!(class(100.0), Class::Miss);
        assert_eq!(class(99.0), Class::Miss);
        let falls = published(100.0, 80.0);
        let class = |patch| classify(Kind::Change, &falls, &simulated(100.0, patch));
        assert_eq!(class(85.0), Class::Factor2);
        assert_eq!(class(97.9), Class::Sign);
        assert_eq!(class(98.1), Class::Miss, "less than a tenth of it");
        assert_eq!(class(101.0), Class::Miss);
    }

    #[test]
    fn a_change_inside_its_own_interval_has_no_sign() {
        let want = published(100.0, 120.0);
        let class = |s: &Simulated| classify(Kind::Change, &want, s);
        let unsure = Simulated::of(&[Some(100.0), Some(100.0)], &[Some(101.0), Some(107.0)]);
        assert!(unsure.holds_zero() && unsure.change_pct.unwrap() > 2.0);
        assert_eq!(class(&unsure), Class::Miss);
        let sure = Simulated::of(&[Some(100.0), Some(100.0)], &[Some(104.0), Some(104.1)]);
        assert!(sure.excludes_zero());
        assert_eq!(class(&sure), Class::Sign);
    }

    #[test]
    fn noise_is_small_or_holds_zero() {
        let want = published(100.0, 101.0);
        let noise = |s: &Simulated| classify(Kind::Noise, &want, s);
        assert_eq!(noise(&simulated(100.0, 104.9)), Class::Noise);
        assert_eq!(noise(&simulated(100.0, 95.1)), Class::Noise);
        assert_eq!(noise(&simulated(100.0, 105.0)), Class::Miss);
        let spread = Simulated::of(&[Some(100.0), Some(90.0)], &[Some(100.0), Some(120.0)]);
        assert!(spread.change_pct.unwrap() > 5.0 && spread.holds_zero());
        assert_eq!(noise(&spread), Class::Noise);
        let clear = Simulated::of(&[Some(100.0), Some(90.0)], &[Some(120.0), Some(110.0)]);
        assert!(clear.excludes_zero());
        assert_eq!(noise(&clear), Class::Miss);
    }

    #[test]
    fn a_change_from_or_to_nothing_is_a_miss() {
        let want = published(100.0, 101.0);
        for (base, patch) in [(0.0, 0.0), (0.0, 5.0), (5.0, 0.0)] {
            let got = simulated(base, patch);
            for kind in [Kind::Noise, Kind::Change] {
                assert_eq!(classify(kind, &want, &got), Class::Miss, "{base} {patch}");
            }
        }
        let one_alive = Simulated::of(&[Some(0.0), Some(10.0)], &[Some(0.0), Some(10.0)]);
        assert_eq!(classify(Kind::Noise, &want, &one_alive), Class::Noise);
    }

    #[test]
    fn values_are_compared_themselves() {
        let share = published(0.7, 0.2);
        let class = |b, p| classify(Kind::Value, &share, &simulated(b, p));
        assert_eq!(class(0.4, 0.4), Class::Factor2);
        assert_eq!(class(0.7, 0.41), Class::Miss);
        assert_eq!(class(0.3, 0.2), Class::Miss);
        let base_only = Published::new(Some(81.0), None);
        let got = simulated(70.0, 0.0);
        assert_eq!(classify(Kind::Value, &base_only, &got), Class::Factor2);
        let none = Published::new(Some(0.0), None);
        let zero = simulated(0.0, 9.0);
        assert_eq!(classify(Kind::Value, &none, &zero), Class::Factor2);
    }

    #[test]
    fn points_are_a_distance() {
        let share = Published::new(Some(81.0), None);
        let class = |b| classify(Kind::Points(12), &share, &simulated(b, 0.0));
        assert_eq!([class(69.0), class(93.0)], [Class::Factor2; 2]);
        assert_eq!([class(68.9), class(93.1)], [Class::Miss; 2]);
    }

    #[test]
    fn limits_and_exact_values() {
        let limit = Published::new(Some(0.1), None);
        let class = |b| classify(Kind::AtMost, &limit, &simulated(b, 0.0));
        assert_eq!(class(0.001), Class::Factor2);
        assert_eq!(class(0.1), Class::Factor2);
        assert_eq!(class(0.11), Class::Miss);
        let limits = published(7.0, 80.0);
        let class = |b| classify(Kind::Range, &limits, &simulated(b, 0.0));
        assert_eq!(class(7.0), Class::Factor2);
        assert_eq!(class(80.1), Class::Miss);
        assert_eq!(class(6.9), Class::Miss);
        let cpus = published(7.0, 8.0);
        let class = |b, p| classify(Kind::Exact, &cpus, &simulated(b, p));
        assert_eq!(class(7.0, 8.0), Class::Factor2);
        assert_eq!(class(7.0, 9.0), Class::Miss);
    }

    #[test]
    fn a_wide_interval_cannot_tell() {
        let row = |half: Option<f64>| Row {
            change: String::new(),
            machine: String::new(),
            workload: String::new(),
            load: String::new(),
            metric: String::new(),
            published: published(100.0, 112.0),
            simulated: Simulated {
                base: Some(100.0),
                patch: Some(101.0),
                change_pct: Some(1.0),
                ci95_pct: [half.map(|h| 1.0 - h), half.map(|h| 1.0 + h)],
            },
            level: None,
            class: Class::Noise,
            evidence: None,
            dead: None,
            made: None,
        };
        let told = |kind, half| tells(kind, &row(half));
        assert!(told(Kind::Noise, Some(4.9)) && !told(Kind::Noise, Some(5.1)));
        assert!(told(Kind::Change, Some(11.9)) && !told(Kind::Change, Some(12.1)));
        assert!(!told(Kind::Noise, None) && !told(Kind::Change, None));
        assert!(told(Kind::Value, None) && told(Kind::Exact, None));
        let mut dead = row(Some(0.1));
        dead.dead = Some("no task ran".into());
        assert!(!tells(Kind::Noise, &dead) && !tells(Kind::Value, &dead));
    }

    #[test]
    fn what_is_not_simulated_is_a_miss() {
        for kind in [
            Kind::Change,
            Kind::Noise,
            Kind::Value,
            Kind::Points(12),
            Kind::AtMost,
            Kind::Range,
            Kind::Exact,
        ] {
            let want = published(1.0, 2.0);
            assert_eq!(classify(kind, &want, &Simulated::NONE), Class::Miss);
        }
    }

    #[test]
    fn a_seed_without_a_value_does_not_count() {
        let s = Simulated::of(&[Some(1.0), None], &[Some(2.0), Some(9.0)]);
        assert_eq!((s.base, s.patch), (Some(1.0), Some(2.0)));
        assert_eq!(s.ci95_pct, [None; 2]);
    }
}

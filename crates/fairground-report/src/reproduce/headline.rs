//! The sentences by which a change became known, each a band for one simulated row.

use serde::{Deserialize, Serialize};

use super::{Class, Row};

/// Which number of a row a headline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// The change in percent.
    Change,
    /// The value of base.
    Base,
    /// The value of patch.
    Patch,
    /// Patch minus base, in the metric's unit.
    Diff,
    /// The row's class: it must be `noise`.
    IsNoise,
    /// The row's class: it must not be `miss`.
    NoMiss,
}

/// A headline: a band for one number.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The sentence.
    pub text: String,
    /// Which number.
    pub of: Of,
    /// Lower end of the band.
    pub min: Option<f64>,
    /// Upper end of the band.
    pub max: Option<f64>,
}

impl Headline {
    /// The number that the band is for.
    pub fn value(&self, row: &Row) -> Option<f64> {
        let s = &row.simulated;
        match self.of {
            Of::Change => s.change_pct,
            Of::Base => s.base,
            Of::Patch => s.patch,
            Of::Diff => s.base.zip(s.patch).map(|(b, p)| p - b),
            Of::IsNoise => s.change_pct,
            Of::NoMiss => None,
        }
    }

    /// Whether the row keeps it. One in whose window nothing happened does not.
    pub fn holds(&self, row: &Row) -> bool {
        if row.dead.is_some() {
            return false;
        }
        match self.of {
            Of::IsNoise => row.class == Class::Noise,
            Of::NoMiss => row.class != Class::Miss,
            _ => self.value(row).is_some_and(|v| {
                self.min.is_none_or(|min| v >= min) && self.max.is_none_or(|max| v <= max)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Published, Simulated};
    use super::*;

    #[test]
    fn a_dead_window_keeps_no_band() {
        let headline = Headline {
            text: "LLC misses: -11 to -44 %".into(),
            of: Of::Change,
            min: Some(-44.0),
            max: Some(-11.0),
        };
        let mut row = Row {
            change: String::new(),
            machine: String::new(),
            workload: String::new(),
            load: String::new(),
            metric: String::new(),
            published: Published::new(Some(100.0), Some(79.0)),
            simulated: Simulated::of(&[Some(100.0)], &[Some(79.0)]),
            level: None,
            class: Class::Factor2,
            evidence: None,
            dead: None,
            made: None,
        };
        assert!(headline.holds(&row));
        row.dead = Some("no task ran".into());
        assert!(!headline.holds(&row));
    }
}

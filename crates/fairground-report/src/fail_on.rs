//! `--fail-on`: when a comparison should end with exit code 1.
//!
//! ```text
//!   METRIC:worse   METRIC:better        the verdict, so only beyond noise
//!   METRIC>5%      METRIC<-3.5%         the change of the means, whatever its interval
//! ```

use crate::catalogue::{Catalogue, MetricInfo, UnknownMetric};
use crate::result::{Compare, Comparison, Verdict};
use crate::text::number;

/// One parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub struct FailOn {
    metric: String,
    test: Test,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Test {
    Above(f64),
    Below(f64),
    Verdict(Verdict),
}

/// A condition that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// One line for the user.
    pub reason: String,
}

/// Why a condition cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FailOnError {
    /// Not of the form above.
    #[error(
        "`{0}` is no condition; expected METRIC>N%, METRIC<N%, METRIC:worse or METRIC:better, \
         e.g. `wakeup_latency_us.p99>5%`"
    )]
    Syntax(String),
    /// The metric does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownMetric),
    /// The metric exists, but one side has no value.
    #[error("`{0}` cannot be decided: base or patch has no value")]
    NoValue(String),
    /// The metric has no direction, so its verdict is never worse nor better.
    #[error(
        "`{0}` is neither better nor worse by itself, so the condition would never be met; \
         use `{0}>N%` or `{0}<N%`"
    )]
    NoDirection(String),
    /// One run each says nothing about noise, so no verdict is worse or better.
    #[error(
        "`{0}` has no verdict with one seed, so the condition would never be met; use `--seeds`"
    )]
    OneSeed(String),
}

impl FailOn {
    /// Parses one condition. The metric is not looked up yet, see [`FailOn::check`].
    ///
    /// # Errors
    /// [`FailOnError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, FailOnError> {
        let syntax = || FailOnError::Syntax(text.into());
        let at = text.find(['>', '<', ':']).ok_or_else(syntax)?;
        let (metric, rest) = text.split_at(at);
        let (sign, rest) = rest.split_at(1);
        let percent = || {
            let number = rest.trim().strip_suffix('%').ok_or_else(syntax)?;
            let number: f64 = number.trim().parse().map_err(|_| syntax())?;
            if number.is_finite() {
                Ok(number)
            } else {
                Err(syntax())
            }
        };
        let test = match (sign, rest.trim()) {
            (">", _) => Test::Above(percent()?),
            ("<", _) => Test::Below(percent()?),
            (_, "worse") => Test::Verdict(Verdict::Worse),
            (_, "better") => Test::Verdict(Verdict::Better),
            _ => return Err(syntax()),
        };
        let metric = metric.trim().to_string();
        if metric.is_empty() {
            Err(syntax())
        } else {
            Ok(Self { metric, test })
        }
    }

    /// Refuses an unknown metric, and a verdict that there cannot be, before minutes are spent on
    /// simulating `seeds` runs of each variant.
    ///
    /// # Errors
    /// [`FailOnError::Unknown`] with the nearest name; [`FailOnError::NoDirection`];
    /// [`FailOnError::OneSeed`].
    pub fn check(&self, catalogue: &Catalogue, seeds: usize) -> Result<(), FailOnError> {
        let metric = catalogue.get(&self.metric)?;
        match self.test {
            Test::Verdict(_) if metric.better.is_none() => {
                Err(FailOnError::NoDirection(self.metric.clone()))
            }
            Test::Verdict(_) if seeds < 2 => Err(FailOnError::OneSeed(self.metric.clone())),
            _ => Ok(()),
        }
    }

    /// Whether there is its metric.
    #[must_use]
    pub fn is_about(&self, info: &[MetricInfo]) -> bool {
        info.iter().any(|info| info.name == self.metric)
    }

    /// Whether the condition is met.
    ///
    /// A base of 0 counts as a change without limit, in the direction of the patch.
    ///
    /// # Errors
    /// As [`FailOn::check`], or if the comparison has no value for the metric.
    pub fn evaluate(&self, compare: &Compare) -> Result<Option<Met>, FailOnError> {
        let catalogue = Catalogue::new(compare.metric_info.iter().cloned());
        let seeds = compare.variants.iter().map(|v| v.runs.len()).min();
        self.check(&catalogue, seeds.unwrap_or(0))?;
        let row = compare
            .comparison
            .iter()
            .find(|row| row.metric == self.metric);
        let row = row.ok_or_else(|| FailOnError::NoValue(self.metric.clone()))?;
        let change = change_pct(row).ok_or_else(|| FailOnError::NoValue(self.metric.clone()))?;
        let (met, what) = match self.test {
            Test::Above(limit) => (change > limit, format!("above {limit}%")),
            Test::Below(limit) => (change < limit, format!("below {limit}%")),
            Test::Verdict(Verdict::Better) => (row.verdict == Verdict::Better, "better".into()),
            Test::Verdict(verdict) => (row.verdict == verdict, "worse".into()),
        };
        let by = match (change.is_finite(), row.patch) {
            (false, Some(patch)) => format!("from 0 to {}", number(Some(patch))),
            _ => format!("by {change:+.2}%"),
        };
        let reason = format!("{} changed {by}: {what}", self.metric);
        Ok(met.then_some(Met { reason }))
    }
}

fn change_pct(row: &Comparison) -> Option<f64> {
    row.change_pct.or_else(|| {
        let diff = row.diff.filter(|_| row.base == Some(0.0))?;
        Some(if diff > 0.0 {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        })
    })
}

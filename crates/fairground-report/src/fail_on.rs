//! `--fail-on`: when a comparison should end with exit code 1.
//!
//! ```text
//!   METRIC:worse   METRIC:better        the verdict, so only beyond noise
//!   METRIC>5%      METRIC<-3.5%         the change of the means, whatever its interval; of what
//!                                       the verdict is on: of a total maybe per unit of work
//!   METRIC>20ms    METRIC<=5            the mean of patch, like a target of a sweep
//! ```
//!
//! Runs without a value are no chance selection: under overload those of them that have one are the
//! quicker. So with such a run nothing can be decided, but for one case: all of base is known, less
//! is better, and what is known of patch at least is worse already.

use crate::catalogue::{Better, Catalogue, MetricInfo, UnknownMetric};
use crate::compare::{Basis, compare_metric, idle_runs};
use crate::number::number;
use crate::result::{Compare, Comparison, Variant, Verdict};
use crate::sweep::{Target, TargetError};

/// One parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub struct FailOn {
    metric: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Above(f64),
    Below(f64),
    Verdict(Verdict),
    Value(Target),
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
        "`{0}` is no condition; expected METRIC>N% or METRIC<N% (the change), METRIC:worse or \
         METRIC:better, METRIC>N or METRIC<N (what patch has), e.g. `wakeup_latency_us.p99>5%` or \
         `wakeup_latency_us.p99>2ms`"
    )]
    Syntax(String),
    /// A number that the metric cannot be held against.
    #[error(transparent)]
    Number(#[from] TargetError),
    /// Some runs of patch have no value.
    #[error(
        "`{metric}` cannot be decided: it has no value in {patch} of {runs} runs of patch; see the \
         notes"
    )]
    PatchWithout {
        /// The metric.
        metric: String,
        /// Runs without a value.
        patch: usize,
        /// Of how many.
        runs: usize,
    },
    /// The metric does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownMetric),
    /// The metric exists, but one side has no value.
    #[error("`{0}` cannot be decided: base or patch has no value")]
    NoValue(String),
    /// Some runs have no value.
    #[error(
        "`{metric}` cannot be decided: it has no value in {base} of {runs} runs of base and in \
         {patch} of {patch_runs} of patch; see the notes"
    )]
    SomeWithout {
        /// The metric.
        metric: String,
        /// Runs of base without a value.
        base: usize,
        /// Of how many.
        runs: usize,
        /// The same of patch.
        patch: usize,
        /// Of how many.
        patch_runs: usize,
    },
    /// There is no interval, so no verdict.
    #[error("`{0}` cannot be decided: there is no verdict on it; see the notes")]
    NoVerdict(String),
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
            (">" | "<", number) if !number.ends_with('%') => {
                Test::Value(Target::parse(text).map_err(|_| syntax())?)
            }
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
    /// [`FailOnError::OneSeed`]; [`FailOnError::Number`].
    pub fn check(&self, catalogue: &Catalogue, seeds: usize) -> Result<(), FailOnError> {
        let metric = catalogue.get(&self.metric)?;
        match &self.test {
            Test::Value(target) => Ok(target.check(catalogue)?),
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
        if let Test::Value(target) = &self.test {
            return self.evaluate_value(target, catalogue.get(&self.metric)?, compare);
        }
        let row = compare
            .comparison
            .iter()
            .find(|row| row.metric == self.metric);
        let no_value = || FailOnError::NoValue(self.metric.clone());
        if let Some(undecided) = self.runs_without(compare) {
            let info = catalogue.get(&self.metric)?;
            return self.evaluate_at_least(info, compare).ok_or(undecided);
        }
        let row = row.ok_or_else(no_value)?;
        let idle: usize = compare.variants.iter().map(idle_runs).sum();
        if row.per.is_some() && idle > 0 {
            return Err(FailOnError::NoVerdict(self.metric.clone()));
        }
        let change = change_pct(row).ok_or_else(no_value)?;
        let known = row.better == catalogue.get(&self.metric)?.better;
        let known = known && row.judged().ci95_diff[0].is_some();
        if matches!(self.test, Test::Verdict(_)) && !known {
            return Err(FailOnError::NoVerdict(self.metric.clone()));
        }
        let met = match &self.test {
            Test::Above(limit) => change > *limit,
            Test::Below(limit) => change < *limit,
            Test::Verdict(verdict) => row.verdict == *verdict,
            Test::Value(_) => false,
        };
        let by = match (change.is_finite(), row.judged().patch) {
            (false, Some(patch)) => format!("from 0 to {}", number(Some(patch))),
            _ => format!("by {change:+.2}%"),
        } + &row.per_words();
        Ok(met.then(|| self.met(&by)))
    }

    fn met(&self, by: &str) -> Met {
        let what = match &self.test {
            Test::Above(limit) => format!("above {limit}%"),
            Test::Below(limit) => format!("below {limit}%"),
            Test::Verdict(Verdict::Better) => "better".into(),
            Test::Verdict(_) => "worse".into(),
            Test::Value(target) => target.text().into(),
        };
        Met {
            reason: format!("{} changed {by}: {what}", self.metric),
        }
    }

    /// Whether the mean of patch is so; or that of what its runs have at least, if that decides.
    fn evaluate_value(
        &self,
        target: &Target,
        info: &MetricInfo,
        compare: &Compare,
    ) -> Result<Option<Met>, FailOnError> {
        let runs = compare.variants.last().map_or(&[][..], |v| &v.runs);
        let without = runs.iter().filter(|r| r.metric(&self.metric).is_none());
        let without = without.count();
        let undecided = || FailOnError::PatchWithout {
            metric: self.metric.clone(),
            patch: without,
            runs: runs.len(),
        };
        let least = runs.iter().map(|run| run.at_least(&self.metric));
        let least: Vec<f64> = least.collect::<Option<_>>().ok_or_else(undecided)?;
        let mean = least.iter().sum::<f64>() / least.len() as f64;
        let is_so = target.is_met_by(mean, info);
        if !mean.is_finite() || (without > 0 && is_so == target.is_below()) {
            return Err(undecided());
        }
        let bound = if without > 0 { "at least " } else { "" };
        let metric = &self.metric;
        // A number of something has none to show.
        let unit = if info.unit == "1" {
            ""
        } else {
            &format!(" {}", info.unit)
        };
        let (mean, text) = (number(Some(mean)), target.text());
        Ok(is_so.then(|| Met {
            reason: format!("{metric} of patch is {bound}{mean}{unit}: {text}"),
        }))
    }

    /// The reason why nothing can be decided, if runs lack a value.
    fn runs_without(&self, compare: &Compare) -> Option<FailOnError> {
        let [base, patch] = &compare.variants[..] else {
            return None;
        };
        let without = |v: &Variant| {
            let runs = v.runs.iter();
            runs.filter(|run| run.metric(&self.metric).is_none())
                .count()
        };
        let (in_base, in_patch) = (without(base), without(patch));
        let (runs, patch_runs) = (base.runs.len(), patch.runs.len());
        match in_base + in_patch {
            0 => None,
            // Of nothing, or nothing of one side.
            _ if in_base == runs || in_patch == patch_runs => {
                Some(FailOnError::NoValue(self.metric.clone()))
            }
            _ => Some(FailOnError::SomeWithout {
                metric: self.metric.clone(),
                base: in_base,
                runs,
                patch: in_patch,
                patch_runs,
            }),
        }
    }

    /// What can be said for sure where runs of patch have no value, but one that it is at least.
    fn evaluate_at_least(&self, info: &MetricInfo, compare: &Compare) -> Option<Option<Met>> {
        let [base, patch] = &compare.variants[..] else {
            return None;
        };
        let of_base = base.runs.iter().map(|run| run.metric(&self.metric));
        let of_base: Vec<f64> = of_base.collect::<Option<_>>()?;
        let most = of_base.into_iter().reduce(f64::max)?;
        let mut least = patch.clone();
        for run in &mut least.runs {
            let known = run.metric(&self.metric);
            let at_least = run.at_least(&self.metric)?;
            // A bound that is much larger than the rest widens the interval, and is no less worse.
            if known.is_none() && at_least <= most {
                return None;
            }
            run.set_metric(&self.metric, at_least);
        }
        let basis = Basis::of(base, &least);
        let row = compare_metric(info, base, &least, &basis, &mut Vec::new());
        let change = change_pct(&row)?;
        let is_worse = row.verdict == Verdict::Worse && info.better == Some(Better::Lower);
        match self.test {
            Test::Above(limit) if change > limit => {}
            Test::Below(limit) if change >= limit => return Some(None),
            Test::Verdict(Verdict::Worse) if is_worse => {}
            Test::Verdict(Verdict::Better) if is_worse => return Some(None),
            _ => return None,
        }
        Some(Some(self.met(&format!("by at least {change:+.2}%"))))
    }
}

fn change_pct(row: &Comparison) -> Option<f64> {
    let on = row.judged();
    on.change_pct.or_else(|| {
        let diff = on.diff.filter(|_| on.base == Some(0.0))?;
        Some(if diff > 0.0 {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redo::Redo;
    use crate::result::{OpenRequests, Run, Setup};

    const NAME: &str = "web.latency_us.p99";

    /// Runs with these values; without one, with what it is at least, if that is known.
    fn variant(values: &[Result<f64, Option<f64>>]) -> Variant {
        let run = |(seed, value): (u64, &Result<f64, Option<f64>>)| {
            let mut run = Run::new(seed);
            run.set_metric(NAME, value.unwrap_or(f64::NAN));
            let bounds = value.err().flatten();
            run.open_requests = vec![OpenRequests {
                request: "web".into(),
                undecided: bounds.map(|_| NAME.to_string()).into_iter().collect(),
                at_least: bounds
                    .map(|us| (NAME.to_string(), us))
                    .into_iter()
                    .collect(),
                ..OpenRequests::default()
            }];
            run
        };
        Variant {
            runs: (1..).zip(values).map(run).collect(),
            ..Variant::default()
        }
    }

    /// A comparison whose workload says that less of a metric is better.
    fn about(metric: &str, unit: &str) -> Setup {
        Setup {
            fairground: String::new(),
            machine: serde_json::from_str(r#"{"id": "m", "hash": "h"}"#).unwrap(),
            profile: String::new(),
            workload: Vec::new(),
            workload_metrics: vec![MetricInfo {
                name: metric.into(),
                unit: unit.into(),
                better: Some(Better::Lower),
                description: String::new(),
            }],
            redo: Redo::default(),
        }
    }

    fn evaluate(
        condition: &str,
        base: &[Result<f64, Option<f64>>],
        patch: &[Result<f64, Option<f64>>],
    ) -> Result<bool, String> {
        let setup = about(NAME, "us");
        let compare = Compare::new(setup, variant(base), variant(patch));
        let condition = FailOn::parse(&format!("{NAME}{condition}")).unwrap();
        let met = condition.evaluate(&compare);
        met.map(|met| met.is_some()).map_err(|e| e.to_string())
    }

    #[test]
    fn with_a_run_without_a_value_nothing_is_decided() {
        let known = [Ok(10.0), Ok(11.0), Ok(12.0)];
        let lacking = [Ok(30.0), Ok(31.0), Err(None)];
        for condition in [":worse", ":better", ">5%", "<-5%"] {
            for (base, patch) in [(known, lacking), (lacking, known)] {
                let why = evaluate(condition, &base, &patch).unwrap_err();
                assert!(why.contains("in 1 of 3"), "{why}");
            }
            let why = evaluate(condition, &known, &[Err(None); 3]).unwrap_err();
            assert!(why.contains("base or patch has no value"), "{why}");
        }
        assert_eq!(
            evaluate(":worse", &known, &[Ok(30.0), Ok(31.0), Ok(32.0)]),
            Ok(true)
        );
        assert_eq!(evaluate(":worse", &known, &known), Ok(false));
    }

    /// Twenty to sixty times as slow with each seed, so that patch varies as much as it is slower.
    #[test]
    fn what_is_far_slower_with_every_seed_is_worse() {
        let (quick, slow) = ([10.3, 10.7, 10.8].map(Ok), [208.0, 648.0, 398.0].map(Ok));
        assert_eq!(evaluate(":worse", &quick, &slow), Ok(true));
        assert_eq!(evaluate(":better", &slow, &quick), Ok(true));
    }

    #[test]
    fn counts_of_periods_of_another_length_cannot_be_decided() {
        let with = |max: &str, throttled: f64| {
            let mut variant = variant(&[Ok(1.0); 3]);
            for run in &mut variant.runs {
                run.set_metric("nr_throttled", throttled);
                run.groups = vec![crate::result::GroupStat {
                    path: "/pod".into(),
                    max: max.into(),
                    ..Default::default()
                }];
            }
            variant
        };
        let met = |patch: &str| {
            let setup = about("nr_throttled", "count");
            let compare = Compare::new(setup, with("20000 10000", 200.0), with(patch, 20.0));
            let condition = FailOn::parse("nr_throttled:better").unwrap();
            condition.evaluate(&compare).map(|met| met.is_some())
        };
        let undecided = FailOnError::NoVerdict("nr_throttled".into());
        assert_eq!(met("50000 100000"), Err(undecided));
        assert_eq!(met("10000 10000"), Ok(true));
    }

    #[test]
    fn what_patch_has_is_held_against_a_number() {
        let quick = [Ok(10.0), Ok(11.0), Ok(12.0)];
        let slow = [Ok(30_000.0), Ok(31_000.0), Ok(32_000.0)];
        assert_eq!(evaluate(">20ms", &quick, &slow), Ok(true));
        assert_eq!(evaluate(">20ms", &slow, &quick), Ok(false));
        assert_eq!(evaluate("<=11", &slow, &quick), Ok(true));
        assert_eq!(evaluate("<11us", &slow, &quick), Ok(false));
        // What runs without a value have at least decides one way.
        let open = [Ok(30_000.0), Ok(31_000.0), Err(Some(33_000.0))];
        assert_eq!(evaluate(">20ms", &quick, &open), Ok(true));
        assert_eq!(evaluate("<20ms", &quick, &open), Ok(false));
        for condition in [">40ms", "<40ms"] {
            let why = evaluate(condition, &quick, &open).unwrap_err();
            assert!(why.contains("1 of 3 runs of patch"), "{why}");
        }
        assert!(evaluate(">20ms", &quick, &[Err(None); 3]).is_err());
        // Base may lack what it likes.
        assert_eq!(evaluate(">20ms", &[Err(None); 3], &slow), Ok(true));
        let never = evaluate("<-1ms", &quick, &slow).unwrap_err();
        assert!(never.contains("at least 0"), "{never}");
    }

    #[test]
    fn what_is_worse_at_least_is_worse() {
        let known = [Ok(10.0), Ok(11.0), Ok(12.0)];
        let worse = [Ok(30.0), Ok(31.0), Err(Some(33.0))];
        assert_eq!(evaluate(":worse", &known, &worse), Ok(true));
        assert_eq!(evaluate(":worse", &known, &[Err(Some(40.0)); 3]), Ok(true));
        assert_eq!(evaluate(":better", &known, &worse), Ok(false));
        assert_eq!(evaluate(">5%", &known, &worse), Ok(true));
        assert_eq!(evaluate("<-5%", &known, &worse), Ok(false));
        // It might be much more, or not; and of base as much as one likes.
        let near = [Ok(30.0), Ok(31.0), Err(Some(11.5))];
        assert!(evaluate(":worse", &known, &near).is_err());
        assert!(evaluate(":worse", &worse, &known).is_err());
        assert!(evaluate(">900%", &known, &worse).is_err());
        // So far apart that the interval holds 0.
        assert!(evaluate(":worse", &known, &[Ok(13.0), Ok(14.0), Err(Some(9e9))]).is_err());
    }
}

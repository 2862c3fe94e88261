//! A target, and which is the smallest point that meets it.
//!
//! ```text
//!   METRIC<N   METRIC>N        N in the metric's unit, or a time with its own: 20ms
//!   METRIC<=N  METRIC>=N
//! ```
//!
//! Of a point in one of whose runs a metric has no value (so many requests were open at the end) it
//! is unknown whether it meets a target about it, however good the other runs are; unless what is
//! known at least is beyond the target already. A point whose load is not sustained
//! (`notes/not_sustained.rs`) meets none: its latencies grow with the run.
//!
//! Met by the interval: all of the 95 % interval of the mean is on the right side. Met by the mean:
//! only the mean is, so other seeds may say no; or a target is about throttling, and a run has too
//! few periods (`notes/few_periods.rs`), whose interval is one by chance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::{by_size, sizes};
use super::{Point, Spread, Sweep};
use crate::catalogue::{Catalogue, MetricInfo, UnknownMetric};
use crate::notes::{has_few_periods, too_short_for};
use crate::result::{Note, Variant};

/// One parsed target.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    text: String,
    metric: String,
    below: bool,
    /// The number itself will do.
    or_equal: bool,
    number: f64,
    /// Nanoseconds of the number's own unit.
    unit_ns: Option<f64>,
    /// It was given in per cent.
    percent: bool,
}

/// Why a target cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not of the form above.
    #[error(
        "`{0}` is no target; expected METRIC<N or METRIC>N, e.g. `web.latency_us.p99<20000` or \
         `web.latency_us.p99<20ms`"
    )]
    Syntax(String),
    /// The metric does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownMetric),
    /// A time or a share for something that is none.
    #[error("`{text}`: `{metric}` is no {what}, its unit is {unit}")]
    Unit {
        /// The target.
        text: String,
        /// Its metric.
        metric: String,
        /// What it is not.
        what: &'static str,
        /// The unit of that.
        unit: String,
    },
    /// No value can be so.
    #[error("`{text}` can never be so: `{metric}` is {bounds}")]
    Never {
        /// The target.
        text: String,
        /// Its metric.
        metric: String,
        /// What its values are.
        bounds: &'static str,
    },
}

/// How far a point meets all targets.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Meets {
    /// Its load is not sustained: what was measured is of this length of run.
    NotSustained,
    /// The mean does not.
    No,
    /// Runs without a value may or may not.
    Unknown,
    /// The mean does, the interval does not, or there is none.
    Mean,
    /// The whole interval does.
    Interval,
}

/// Which point meets the targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The targets as they were given, with the metric's unit behind a number that had none.
    pub targets: Vec<String>,
    /// Their metrics.
    pub metrics: Vec<String>,
    /// Their numbers, in the units of the metrics.
    pub limits: Vec<f64>,
    /// The smallest point whose intervals meet them.
    pub by_interval: Option<Reached>,
    /// The smallest point whose means meet them, if it is smaller than that.
    pub by_mean: Option<Reached>,
    /// If none does: the one that comes nearest, of those that are sustained.
    pub nearest: Option<Reached>,
    /// Points that are larger than the answer and do not meet the targets, by their means.
    pub larger_that_miss: Vec<usize>,
}

/// A point and what it reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// Its place in `points`.
    pub point: usize,
    /// Its values.
    pub values: Vec<String>,
    /// The metric of each target there.
    pub reached: Vec<Spread>,
}

impl Target {
    /// What it is about.
    #[must_use]
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Parses one target. The metric is not looked up yet.
    ///
    /// # Errors
    /// [`TargetError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let syntax = || TargetError::Syntax(text.into());
        let at = text.find(['<', '>']).ok_or_else(syntax)?;
        let (metric, rest) = text.split_at(at);
        let (sign, number) = rest.split_at(1);
        let (or_equal, number) = match number.strip_prefix('=') {
            Some(number) => (true, number.trim()),
            None => (false, number.trim()),
        };
        // Behind the last digit, so that an exponent is none: 1e3us.
        let unit_at = number
            .rfind(|c: char| !c.is_ascii_alphabetic())
            .map_or(0, |at| {
                at + number[at..].chars().next().map_or(0, char::len_utf8)
            });
        let (number, unit) = number.split_at(unit_at);
        let number = number.trim();
        let (number, percent) = match number.strip_suffix('%') {
            Some(number) => (number, true),
            None => (number, false),
        };
        let unit_ns = match unit {
            "" => None,
            unit => Some(unit_ns(unit).ok_or_else(syntax)?),
        };
        let number: f64 = number.parse().map_err(|_| syntax())?;
        if metric.trim().is_empty() || !number.is_finite() {
            return Err(syntax());
        }
        Ok(Self {
            text: text.into(),
            metric: metric.trim().into(),
            below: sign == "<",
            or_equal,
            number,
            unit_ns,
            percent,
        })
    }

    /// As it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The same, with the metric's unit if it was given none: who writes `latency_us.p99<20` and
    /// means milliseconds sees what was understood.
    fn text_with_unit(&self, info: &MetricInfo) -> String {
        let open = self.unit_ns.is_none() && !self.percent;
        match open && (unit_ns(&info.unit).is_some() || info.unit == "%") {
            true => format!("{} {}", self.text, info.unit),
            false => self.text.clone(),
        }
    }

    /// Whether it is met by what is small enough.
    pub(crate) fn is_below(&self) -> bool {
        self.below
    }

    /// Whether a value of the metric meets it.
    pub(crate) fn is_met_by(&self, value: f64, info: &MetricInfo) -> bool {
        self.fits(value, self.limit(info))
    }

    /// Refuses an unknown metric, a time for what is none, or what no value can meet, before
    /// anything is simulated.
    ///
    /// # Errors
    /// Those.
    pub fn check(&self, catalogue: &Catalogue) -> Result<(), TargetError> {
        let info = catalogue.get(&self.metric)?;
        let other = |what| TargetError::Unit {
            text: self.text.clone(),
            metric: self.metric.clone(),
            what,
            unit: info.unit.clone(),
        };
        if self.percent && info.unit != "%" {
            return Err(other("share in per cent"));
        }
        if self.unit_ns.is_some() && unit_ns(&info.unit).is_none() {
            return Err(other("time"));
        }
        // All metrics are amounts.
        let bounds = match (self.below, info.whole()) {
            (true, _) if !self.is_met_by(0.0, info) => "at least 0",
            (false, Some(1.0)) if !self.is_met_by(1.0, info) => "at most 1",
            (false, Some(whole)) if !self.is_met_by(whole, info) => "at most 100 %",
            _ => return Ok(()),
        };
        Err(TargetError::Never {
            text: self.text.clone(),
            metric: self.metric.clone(),
            bounds,
        })
    }

    /// The number in the unit of the metric.
    fn limit(&self, info: &MetricInfo) -> f64 {
        match (self.unit_ns, unit_ns(&info.unit)) {
            (Some(given), Some(own)) => self.number * given / own,
            _ => self.number,
        }
    }

    fn fits(&self, value: f64, limit: f64) -> bool {
        let beyond = match self.below {
            true => value < limit,
            false => value > limit,
        };
        beyond || (self.or_equal && value == limit)
    }

    /// Whether the point meets it, as far as that is known.
    fn met_by(&self, point: &Point, limit: f64) -> Meets {
        if all_have(&point.variant, &self.metric) {
            let spread = point.summary.get(&self.metric);
            let meets = spread.map_or(Meets::No, |spread| self.meets(spread, limit));
            // An interval of what is chance is one by chance.
            return match has_few_periods(&point.variant, &self.metric) {
                true => meets.min(Meets::Mean),
                false => meets,
            };
        }
        match point.at_least.get(&self.metric) {
            Some(bound) if self.below && !self.fits(*bound, limit) => Meets::No,
            _ => Meets::Unknown,
        }
    }

    fn meets(&self, spread: &Spread, limit: f64) -> Meets {
        let fits = |value: f64| self.fits(value, limit);
        let [lo, hi] = spread.ci95;
        let worst = if self.below { hi } else { lo };
        match (fits(spread.mean), worst.is_some_and(fits)) {
            (false, _) => Meets::No,
            (true, false) => Meets::Mean,
            (true, true) => Meets::Interval,
        }
    }
}

fn unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

/// Finds the answer and marks the points, if there are targets.
///
/// # Errors
/// A metric that there is not.
pub(super) fn answer(
    sweep: &mut Sweep,
    targets: &[Target],
    catalogue: &Catalogue,
) -> Result<(), UnknownMetric> {
    if targets.is_empty() {
        return Ok(());
    }
    let infos = targets.iter().map(|t| catalogue.get(&t.metric));
    let infos = infos.collect::<Result<Vec<_>, _>>()?;
    let with_infos = || targets.iter().zip(&infos);
    let limits: Vec<f64> = with_infos().map(|(t, info)| t.limit(info)).collect();
    let texts = with_infos().map(|(t, info)| t.text_with_unit(info));
    let texts = texts.collect();
    for point in &mut sweep.points {
        let one = |(target, limit): (&Target, &f64)| target.met_by(point, *limit);
        let all = targets.iter().zip(&limits).map(one);
        let grows = concerns(&point.not_sustained, targets).then_some(Meets::NotSustained);
        // What it takes is what the run leaves it, which may be less than in a longer one.
        let short = concerns(&too_short_for(&point.variant), targets).then_some(Meets::Unknown);
        let all = all.chain(grows).chain(short).min();
        point.meets = all.filter(|_| point.refused.is_none());
    }
    note_silent(sweep, targets);
    let order = by_size(&sweep.over, &sweep.points);
    let meets = |i: usize, least: Meets| sweep.points[i].meets.is_some_and(|m| m >= least);
    let first = |least| order.iter().position(|&i| meets(i, least));
    let (interval, mean) = (first(Meets::Interval), first(Meets::Mean));
    let reached = |place: usize| {
        let point = order[place];
        let of = |t: &Target| known_of(&sweep.points[point], &t.metric);
        Reached {
            point,
            values: sweep.points[point].values.clone(),
            reached: targets.iter().filter_map(of).collect(),
        }
    };
    let nearest = || nearest(sweep, targets, &limits, &order).map(reached);
    let met = interval.or(mean);
    let later = met.map_or(&[][..], |at| &order[at + 1..]);
    let sizes = |i| sizes(&sweep.over, &sweep.points[i]);
    // One of the same size is no larger one.
    let larger = |i: &usize| met.is_some_and(|at| sizes(*i) != sizes(order[at]));
    let misses = |i: &usize| !meets(*i, Meets::Mean);
    let larger_that_miss = later
        .iter()
        .copied()
        .filter(larger)
        .filter(misses)
        .collect();
    let answer = Answer {
        targets: texts,
        metrics: targets.iter().map(|t| t.metric.clone()).collect(),
        by_interval: interval.map(reached),
        by_mean: mean.filter(|at| Some(*at) != interval).map(reached),
        nearest: if mean.is_none() { nearest() } else { None },
        larger_that_miss,
        limits,
    };
    sweep.answer = Some(answer);
    Ok(())
}

/// The place in `order` of the point that comes nearest to all targets, by its means.
fn nearest(sweep: &Sweep, targets: &[Target], limits: &[f64], order: &[usize]) -> Option<usize> {
    let miss = |i: usize| {
        let one = |(t, limit): (&Target, &f64)| {
            let point = &sweep.points[i];
            let mean = known_of(point, &t.metric)?.mean;
            if point.meets == Some(Meets::NotSustained) {
                return None;
            }
            let over = (mean - limit) / limit.abs().max(f64::MIN_POSITIVE);
            Some(if t.below { over } else { -over })
        };
        let misses: Option<Vec<f64>> = targets.iter().zip(limits).map(one).collect();
        misses.map(|m| m.into_iter().fold(f64::NEG_INFINITY, f64::max))
    };
    let places = (0..order.len()).filter_map(|at| Some((at, miss(order[at])?)));
    let least = places.min_by(|(_, a), (_, b)| a.total_cmp(b));
    least.map(|(at, _)| at)
}

/// Whether the targets are about one of these kinds of request, or about none at all: then each
/// matters.
fn concerns(kinds: &[String], targets: &[Target]) -> bool {
    let metrics = || targets.iter().map(Target::metric);
    let about = |kind: &String| {
        let mut metrics = metrics().filter_map(|metric| metric.strip_prefix(kind.as_str()));
        metrics.any(|rest| rest.starts_with('.'))
    };
    kinds.iter().any(about)
        || (!kinds.is_empty() && metrics().all(|metric| !metric.contains(".latency_us.")))
}

/// The metric there, or what it is at least, where not every run has a value.
fn known_of(point: &Point, metric: &str) -> Option<Spread> {
    if all_have(&point.variant, metric) {
        return point.summary.get(metric).copied();
    }
    let bound = |mean: &f64| Spread {
        mean: *mean,
        sd: None,
        ci95: [None; 2],
    };
    point.at_least.get(metric).map(bound)
}

/// Whether every run has a value of the metric.
fn all_have(variant: &Variant, metric: &str) -> bool {
    variant.runs.iter().all(|run| run.metric(metric).is_some())
}

/// Says of which points it is not known whether they meet a target.
fn note_silent(sweep: &mut Sweep, targets: &[Target]) {
    let mut notes = Vec::new();
    for target in targets {
        let metric = &target.metric;
        let silent = |p: &&Point| p.meets == Some(Meets::Unknown) && !all_have(&p.variant, metric);
        let points: Vec<String> = sweep
            .points
            .iter()
            .filter(silent)
            .map(|p| p.values.join(" "))
            .collect();
        if !points.is_empty() {
            notes.push(Note::Said(format!(
                "not every run has a value of `{metric}` with {}: whether such a point meets a \
                 target about it is unknown",
                points.join(", ")
            )));
        }
    }
    sweep.notes.extend(notes);
}

#[cfg(test)]
mod tests {
    use super::super::tests::{sweep_of, sweep_to};
    use super::*;

    fn info(unit: &str) -> MetricInfo {
        MetricInfo {
            name: "x.p99".into(),
            unit: unit.into(),
            better: None,
            description: String::new(),
        }
    }

    #[test]
    fn a_number_without_a_unit_is_shown_with_the_metrics() {
        for (text, unit, said) in [
            ("x.p99<20", "us", "x.p99<20 us"),
            ("x.p99<20ms", "us", "x.p99<20ms"),
            ("x.p99<20", "%", "x.p99<20 %"),
            ("x.p99<20%", "%", "x.p99<20%"),
            ("x.p99<20", "count", "x.p99<20"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.text_with_unit(&info(unit)), said);
        }
    }

    #[test]
    fn targets_are_read_with_their_units() {
        for (text, unit, wanted) in [
            ("x.p99<20000", "us", 20000.0),
            ("x.p99 < 20ms", "us", 20000.0),
            ("x.p99<=0.5s", "ms", 500.0),
            ("x.p99>5%", "%", 5.0),
        ] {
            assert_eq!(
                Target::parse(text).unwrap().limit(&info(unit)),
                wanted,
                "{text}"
            );
        }
        for text in ["x", "<5", "x<", "x<y", "x<5parsec", "x<inf", "x=5"] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
        let check = |text: &str, unit: &str| {
            let catalogue = Catalogue::new([info(unit)]);
            let checked = Target::parse(text).unwrap().check(&catalogue);
            checked.map_err(|e| e.to_string())
        };
        for (text, unit, bounds) in [
            ("x.p99<-1ms", "us", "at least 0"),
            ("x.p99<0", "us", "at least 0"),
            ("x.p99>100%", "%", "at most 100 %"),
        ] {
            let error = check(text, unit).unwrap_err();
            assert!(
                error.contains("can never be so") && error.ends_with(bounds),
                "{error}"
            );
        }
        for (text, unit) in [("x.p99<=0", "us"), ("x.p99>=100%", "%"), ("x.p99>-1", "us")] {
            assert_eq!(check(text, unit), Ok(()));
        }
        let catalogue = Catalogue::new([info("count")]);
        let error = Target::parse("x.p99<2ms")
            .unwrap()
            .check(&catalogue)
            .unwrap_err();
        assert!(error.to_string().contains("is no time"), "{error}");
        let error = Target::parse("x.p99<5%")
            .unwrap()
            .check(&catalogue)
            .unwrap_err();
        assert!(error.to_string().contains("is no share"), "{error}");
        let error = Target::parse("x.p98<2")
            .unwrap()
            .check(&catalogue)
            .unwrap_err();
        assert!(
            error.to_string().contains("did you mean `x.p99`"),
            "{error}"
        );
    }

    #[test]
    fn the_answer_tells_the_mean_from_the_interval() {
        // Means 30, 20 and 10 with an interval of about 2.5 to either side.
        let answer = |target: &str| sweep_to(&[30.0, 20.0, 10.0], target).answer.unwrap();
        let found = answer("test.p99<25");
        assert_eq!(found.by_interval.unwrap().values, ["2ms/10ms"]);
        assert!(found.by_mean.is_none() && found.nearest.is_none());
        let found = answer("test.p99<21");
        assert_eq!(found.by_interval.unwrap().values, ["3ms/10ms"]);
        assert_eq!(found.by_mean.unwrap().values, ["2ms/10ms"]);
        let found = answer("test.p99<5");
        assert!(found.by_interval.is_none() && found.by_mean.is_none());
        assert_eq!(found.nearest.unwrap().values, ["3ms/10ms"]);
        let found = answer("test.p99>25");
        assert_eq!(found.by_interval.unwrap().values, ["1ms/10ms"]);
        assert_eq!(found.larger_that_miss, [1, 2]);
    }

    /// 2ms/10ms and 1ms/5ms are one limit.
    #[test]
    fn a_point_of_the_same_size_is_no_larger_one() {
        let mut sweep = sweep_of(&[30.0, 20.0, 10.0]);
        sweep.over[0].sizes = Some(vec![Some(0.2), Some(0.2), Some(0.3)]);
        let catalogue = Catalogue::new(sweep.metric_info.clone());
        let target = Target::parse("test.p99>25").unwrap();
        answer(&mut sweep, &[target], &catalogue).unwrap();
        assert_eq!(sweep.answer.unwrap().larger_that_miss, [2]);
    }

    #[test]
    fn larger_points_that_miss_are_told() {
        for (target, end) in [("test.p99>25", " do not"), ("test.p99>15", " does not")] {
            let sweep = sweep_to(&[30.0, 20.0, 10.0], target);
            let said = crate::sweep::text::sentences(&sweep, sweep.answer.as_ref().unwrap());
            assert!(said.last().unwrap().ends_with(end), "{said:?}");
        }
    }

    #[test]
    fn the_number_itself_and_exponents_are_as_written() {
        let spread = Spread {
            mean: 0.0,
            sd: Some(0.0),
            ci95: [Some(0.0); 2],
        };
        let meets = |text: &str| Target::parse(text).unwrap().meets(&spread, 0.0);
        assert_eq!((meets("a<0"), meets("a>0")), (Meets::No, Meets::No));
        assert_eq!(
            (meets("a<=0"), meets("a>=0")),
            (Meets::Interval, Meets::Interval)
        );
        for (text, number) in [("a>1e9", 1e9), ("a<2.5e-1us", 0.25), ("a<1E3 ms", 1e3)] {
            assert_eq!(Target::parse(text).unwrap().number, number, "{text}");
        }
    }

    /// Seven of ten runs in which nobody was served, and three lucky ones.
    #[test]
    fn a_point_with_runs_without_a_value_meets_nothing() {
        let mut sweep = sweep_of(&[10.0, 30.0]);
        let run = &mut sweep.points[0].variant.runs[0];
        run.metrics.insert("test.p99".into(), None);
        let catalogue = Catalogue::new(sweep.metric_info.clone());
        let target = Target::parse("test.p99<20").unwrap();
        answer(&mut sweep, &[target], &catalogue).unwrap();
        assert_eq!(sweep.points[0].meets, Some(Meets::Unknown));
        let found = sweep.answer.as_ref().unwrap();
        assert!(found.by_mean.is_none() && found.by_interval.is_none());
        assert_eq!(found.nearest.as_ref().unwrap().point, 1);
        assert!(
            sweep
                .notes
                .last()
                .unwrap()
                .to_string()
                .contains("not every run")
        );
    }

    #[test]
    fn what_is_known_at_least_is_no_or_the_nearest() {
        let with_bound = |bound: f64| {
            let mut sweep = sweep_of(&[10.0, 40.0]);
            let point = &mut sweep.points[0];
            point.variant.runs[0]
                .metrics
                .insert("test.p99".into(), None);
            point.at_least.insert("test.p99".into(), bound);
            let catalogue = Catalogue::new(sweep.metric_info.clone());
            let target = Target::parse("test.p99<20").unwrap();
            answer(&mut sweep, &[target], &catalogue).unwrap();
            sweep
        };
        let unknown = with_bound(15.0);
        assert_eq!(unknown.points[0].meets, Some(Meets::Unknown));
        let no = with_bound(30.0);
        assert_eq!(no.points[0].meets, Some(Meets::No));
        let nearest = no.answer.as_ref().unwrap().nearest.as_ref().unwrap();
        assert_eq!((nearest.point, nearest.reached[0].mean), (0, 30.0));
        let text = super::super::sweep_text(&no, crate::text::Style::default());
        assert!(text.contains("test.p99 at least 30.00"), "{text}");
        assert!(text.contains(">=30.00"), "{text}");
    }

    #[test]
    fn what_is_not_sustained_is_never_the_answer() {
        let with_target = |targets: &str| {
            let mut sweep = sweep_of(&[10.0, 15.0, 40.0]);
            sweep.points[0].not_sustained = vec!["test".into()];
            let catalogue = Catalogue::new(sweep.metric_info.clone());
            let target = Target::parse(targets).unwrap();
            answer(&mut sweep, &[target], &catalogue).unwrap();
            sweep
        };
        let sweep = with_target("test.p99<20");
        assert_eq!(sweep.points[0].meets, Some(Meets::NotSustained));
        let found = sweep.answer.as_ref().unwrap();
        assert_eq!(found.by_interval.as_ref().unwrap().point, 1);
        let text = super::super::sweep_text(&sweep, crate::text::Style::default());
        assert!(text.contains("not sustained"), "{text}");
        let json = serde_json::to_value(&sweep).unwrap();
        assert_eq!(json["points"][0]["meets"], "not-sustained");
        let sweep = with_target("test.p99<5");
        assert_eq!(sweep.answer.unwrap().nearest.unwrap().point, 1);
    }

    #[test]
    fn throttling_of_few_periods_is_met_by_the_mean_at_best() {
        let met = |periods: f64, target: &str| {
            let mut sweep = sweep_of(&[10.0, 15.0]);
            for run in sweep.points.iter_mut().flat_map(|p| &mut p.variant.runs) {
                run.set_metric("nr_periods", periods);
                run.set_metric("throttled_pct", 5.0);
            }
            let throttled = Spread {
                mean: 5.0,
                sd: Some(0.0),
                ci95: [Some(5.0); 2],
            };
            for point in &mut sweep.points {
                point.summary.insert("throttled_pct".into(), throttled);
            }
            let all = sweep.metric_info.clone().into_iter();
            let limited = crate::LIMITED.iter().map(|m| (*m).into());
            let target = Target::parse(target).unwrap();
            answer(&mut sweep, &[target], &Catalogue::new(all.chain(limited))).unwrap();
            let text = super::super::sweep_text(&sweep, crate::text::Style::default());
            let said = text.contains("by the mean only, for there are few periods");
            (sweep.points[0].meets, said)
        };
        let (mean, interval) = (Some(Meets::Mean), Some(Meets::Interval));
        assert_eq!(met(10.0, "throttled_pct<20"), (mean, true));
        assert_eq!(met(100.0, "throttled_pct<20"), (interval, false));
        assert_eq!(met(10.0, "test.p99<20"), (interval, false));
    }

    #[test]
    fn another_kind_of_request_does_not_matter() {
        let kinds = ["web".to_string()];
        let concerns = |target: &str| concerns(&kinds, &[Target::parse(target).unwrap()]);
        assert!(concerns("web.latency_us.p99<5"));
        assert!(!concerns("webs.latency_us.p99<5"));
        assert!(concerns("throttled_pct<5"));
        assert!(!super::concerns(
            &[],
            &[Target::parse("throttled_pct<5").unwrap()]
        ));
    }

    #[test]
    fn the_smallest_is_told_by_size_not_by_order() {
        let mut sweep = sweep_of(&[10.0, 10.0, 10.0]);
        sweep.over[0].sizes = Some(vec![Some(0.3), Some(0.1), None]);
        let catalogue = Catalogue::new(sweep.metric_info.clone());
        let target = Target::parse("test.p99<20").unwrap();
        answer(&mut sweep, &[target], &catalogue).unwrap();
        assert_eq!(sweep.answer.unwrap().by_interval.unwrap().point, 1);
    }
}

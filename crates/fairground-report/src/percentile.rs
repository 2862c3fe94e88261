//! Percentiles: how many values they need, and those that few values lie beyond.
//!
//! A percentile is one value of a run, in order: of 430 requests the 99th has four above it. Had
//! one of these been a little quicker, it would be another value. Where fewer than
//! [`BEYOND_MIN`] are beyond it, chance decides much of it: the number of values beyond the true
//! percentile is binomial, so with ten expected its standard deviation is a third of that.
//!
//! Values are in the JSON whatever stands behind them, with their numbers (`samples`). Tables leave
//! out those of [`IF_KNOWN`] that have too few, and say so. Median and 99th percentile are what
//! everybody asks for: they are shown, and noted.

use crate::result::Variant;

/// Fewer values beyond a percentile say little of it, an assumption.
pub(crate) const BEYOND_MIN: u64 = 10;

/// Percentiles that tables have only where they are known well.
const IF_KNOWN: [&str; 3] = ["p90", "p95", "p99_9"];

/// Percent of a metric that is a percentile: 99.9 of `web.latency_us.p99_9`.
fn percent(metric: &str) -> Option<f64> {
    let (_, last) = metric.rsplit_once('.')?;
    let percent: f64 = last.strip_prefix('p')?.replace('_', ".").parse().ok()?;
    (percent > 0.0 && percent < 100.0).then_some(percent)
}

/// The run of the variant with fewest values behind a percentile, if they are too few: how many
/// values, and how many of them are beyond it.
pub(crate) fn few_beyond(variant: &Variant, metric: &str) -> Option<(u64, u64)> {
    let percent = percent(metric)?;
    // Why there is no value is said elsewhere.
    let runs = variant.runs.iter();
    let runs = runs.filter(|run| run.metric(metric).is_some());
    let values = runs.filter_map(|run| run.samples.get(metric).copied());
    let values = values.min()?;
    let beyond = values as f64 * (100.0 - percent) / 100.0;
    // Not a whole one less for the last bit of a fraction.
    let beyond = (beyond + 1e-6).floor() as u64;
    (beyond < BEYOND_MIN).then_some((values, beyond))
}

/// Whether it is a percentile beside the usual ones.
pub(crate) fn is_further(metric: &str) -> bool {
    let last = metric.rsplit('.').next();
    last.is_some_and(|last| IF_KNOWN.contains(&last))
}

/// Whether tables leave the metric out.
pub(crate) fn is_left_out(variants: &[Variant], metric: &str) -> bool {
    is_further(metric) && variants.iter().any(|v| few_beyond(v, metric).is_some())
}

/// How many values a percentile of this name needs, so that it is another than the largest.
pub(crate) fn needs(metric: &str) -> Option<u64> {
    let beyond = (100.0 - percent(metric)?) / 100.0;
    Some((1.0 / beyond - 1e-6).ceil() as u64)
}

/// The fewest values behind a percentile in a run of the variant, if they are too few for one.
pub(crate) fn too_few(variant: &Variant, metric: &str) -> Option<u64> {
    let needed = needs(metric)?;
    // Why there is no value is said elsewhere.
    let runs = variant.runs.iter();
    let runs = runs.filter(|run| run.metric(metric).is_some());
    let counts = runs.filter_map(|run| run.samples.get(metric).copied());
    counts.min().filter(|n| *n < needed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::result::Run;

    pub(crate) fn variant(counts: &[u64]) -> Variant {
        let run = |(seed, n): (u64, &u64)| {
            let mut run = Run::new(seed);
            for metric in ["r.p50", "r.p90", "r.p95", "r.p99", "r.p99_9"] {
                run.samples.insert(metric.into(), *n);
                run.set_metric(metric, 1.0);
            }
            run
        };
        Variant {
            name: "base".into(),
            runs: (1..).zip(counts).map(run).collect(),
            ..Variant::default()
        }
    }

    #[test]
    fn beyond_are_those_above_in_the_smallest_run() {
        let few = |n, metric| few_beyond(&variant(&[5000, n]), metric);
        assert_eq!(few(430, "r.p99"), Some((430, 4)));
        assert_eq!(few(999, "r.p99"), Some((999, 9)));
        assert_eq!(few(1000, "r.p99"), None);
        assert_eq!(few(100, "r.p90"), None);
        assert_eq!(few(199, "r.p95"), Some((199, 9)));
        assert_eq!(few(200, "r.p95"), None);
        assert_eq!(few(5000, "r.p99_9"), Some((5000, 5)));
        assert_eq!(few(5000, "r.max"), None);
        assert_eq!(few_beyond(&variant(&[10_000]), "r.p99_9"), None);
    }

    #[test]
    fn a_percentile_needs_so_many_that_it_is_not_the_largest() {
        for (metric, needed) in [
            ("web.latency_us.p50", Some(2)),
            ("a.p95", Some(20)),
            ("web.latency_us.p99", Some(100)),
            ("schbench.wakeup_us.p99_9", Some(1000)),
            ("web.latency_us.max", None),
            ("web.per_s", None),
        ] {
            assert_eq!(needs(metric), needed, "{metric}");
        }
    }
}

//! Percentiles that few values lie beyond.
//!
//! A percentile is one value of a run, in order: of 430 requests the 99th has four above it. Had
//! one of these been a little quicker, it would be another value. Where fewer than
//! [`BEYOND_MIN`] are beyond it, chance decides much of it: the number of values beyond the true
//! percentile is binomial, so with ten expected its standard deviation is a third of that.
//!
//! Values are in the JSON whatever stands behind them, with their numbers (`samples`). Tables leave
//! out those of [`IF_KNOWN`] that have too few, and say so. Median and 99th percentile are what
//! everybody asks for: they are shown, and noted.

use std::collections::BTreeMap;

use crate::requests::too_few;
use crate::result::Variant;

/// Fewer values beyond a percentile say little of it, an assumption.
pub(crate) const BEYOND_MIN: u64 = 10;

/// Percentiles that tables have only where they are known well.
const IF_KNOWN: [&str; 3] = ["p90", "p95", "p99_9"];

/// Percent of a metric that is a percentile: 99.9 of `web.latency_us.p99_9`.
pub(crate) fn percent(metric: &str) -> Option<f64> {
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

/// What to say of the percentiles among these metrics that few values lie beyond, and of those that
/// are left out.
pub(crate) fn few_beyond_notes<'a>(
    variants: &[Variant],
    metrics: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut notes = Vec::new();
    // Of one service, all stand on as many requests.
    let mut left_out: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for metric in metrics {
        let few = variants.iter().map(|v| (v, few_beyond(v, metric)));
        let few: Vec<_> = few.filter_map(|(v, few)| Some((v, few?))).collect();
        let Some((values, beyond)) = few.iter().map(|(_, few)| *few).min() else {
            continue;
        };
        if is_left_out(variants, metric) {
            let quoted = format!("`{metric}`");
            left_out.entry(values).or_default().push(quoted);
            continue;
        }
        let names: Vec<&str> = few.iter().map(|(v, _)| &*v.name).collect();
        // One that is the largest value is said to be that.
        if variants.iter().all(|v| too_few(v, metric).is_none()) {
            let whose = (variants.len() > 1).then(|| names.join(" and "));
            notes.push(few_beyond_words(metric, whose, (values, beyond)));
        }
    }
    for (values, metrics) in left_out {
        notes.push(format!(
            "not shown: {}. Of {values} values in a run fewer than {BEYOND_MIN} are beyond; a \
             longer run has more, and --json has all",
            metrics.join(", ")
        ));
    }
    notes
}

/// `whose` percentile, if there are others, has so few of so many values beyond it.
pub(crate) fn few_beyond_words(
    metric: &str,
    whose: Option<String>,
    (values, beyond): (u64, u64),
) -> String {
    let are = if beyond == 1 { "is" } else { "are" };
    let whose = whose.map_or(String::new(), |whose| format!(" of {whose}"));
    format!(
        "`{metric}`{whose} stands on few: of {values} values in a run {beyond} {are} beyond \
         it, and {BEYOND_MIN} would say something; a longer run has more"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Run;

    fn variant(counts: &[u64]) -> Variant {
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
    fn what_is_left_out_is_named_with_the_number_and_the_usual_ones_are_noted() {
        let all = ["r.p50", "r.p90", "r.p95", "r.p99", "r.p99_9", "r.max"];
        let notes = |n: u64| few_beyond_notes(&[variant(&[n])], all.into_iter());
        let left_out = |n: u64| {
            let shown = [variant(&[n])];
            all.map(|m| is_left_out(&shown, m))
        };
        assert_eq!(left_out(430), [false, false, false, false, true, false]);
        let said = notes(430);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(
            said[0].starts_with("`r.p99` stands on few: of 430 values in a run 4 are"),
            "{said:?}"
        );
        assert!(
            said[1].starts_with("not shown: `r.p99_9`. Of 430 values"),
            "{said:?}"
        );
        assert_eq!(left_out(60), [false, true, true, false, true, false]);
        // Its p99 is the largest: that is said elsewhere.
        let said = notes(60);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("`r.p90`, `r.p95`, `r.p99_9`"), "{said:?}");
        assert!(notes(10_000).is_empty());
    }
}

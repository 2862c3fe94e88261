//! Percentiles of too few values: those that are only the largest, and those with few beyond them.

use std::collections::BTreeMap;

use crate::percentile::{BEYOND_MIN, few_beyond, is_left_out, too_few};
use crate::result::{Note, OfValues, Variant};

/// What to say of percentiles of too few requests in each of these variants.
pub(crate) fn few_requests<'a>(
    variants: &[Variant],
    metrics: impl Iterator<Item = &'a str>,
) -> Vec<Note> {
    let mut notes = Vec::new();
    for metric in metrics.filter(|metric| !is_left_out(variants, metric)) {
        let few = variants
            .iter()
            .filter_map(|v| Some((v, too_few(v, metric)?)));
        let few: Vec<(&Variant, u64)> = few.collect();
        let names: Vec<&str> = few.iter().map(|(v, _)| &*v.name).collect();
        let fewest = few.iter().map(|(_, n)| *n).min();
        if let Some(fewest) = fewest {
            notes.push(Note::Values(OfValues::FewRequests {
                metric: metric.into(),
                whose: (variants.len() > 1).then(|| names.join(" and ")),
                fewest,
            }));
        }
    }
    notes
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
    use crate::percentile::tests::variant;
    use crate::result::Run;

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

    #[test]
    fn percentiles_of_few_requests_are_told() {
        let with = |counts: &[u64]| {
            let run = |(seed, n): (u64, &u64)| {
                let mut run = Run::new(seed);
                run.samples.insert("r.p99".into(), *n);
                run.set_metric("r.p99", if *n > 0 { 1.0 } else { f64::NAN });
                run
            };
            Variant {
                name: "base".into(),
                runs: (1..).zip(counts).map(run).collect(),
                ..Variant::default()
            }
        };
        let notes = |counts: &[u64]| few_requests(&[with(counts)], ["r.p99"].into_iter());
        assert!(notes(&[100, 250]).is_empty());
        assert!(notes(&[0, 250]).is_empty());
        let said = notes(&[12, 250]).into_iter().map(String::from);
        let said = said.collect::<String>();
        assert!(said.contains("`r.p99` is the largest value"), "{said}");
        assert!(
            said.contains("as few as 12 in a run, and it needs 100"),
            "{said}"
        );
    }
}

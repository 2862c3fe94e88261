//! What stands behind percentiles of requests: how many there were, what is known where there is no
//! value, and whether requests took longer for as long as the run lasted.
//!
//! **Not sustained.** Where requests come faster than they are answered, the queue grows with the
//! run, and every latency with it: a percentile says how long the run was. In a stable system both
//! halves of the measured time are alike. So a load is not sustained if its requests took longer in
//! the second half, on average, than in the first
//!
//! - beyond chance: the 95 % interval of the difference over the seeds is above 0. Within one run
//!   nothing says what is chance, for requests in one queue are late together;
//! - by a fifth: a queue that begins empty fills up for a while, which the first half has more of.
//!   Without limit it grows like time, which makes the second half three times as slow as the
//!   first, and still by a fifth after a warm-up of twice the measured time;
//! - and by a hundredth of the time between their middles. Of a load `l` a capacity `c` answers at
//!   `t` who came at `c t / l`, so that request took `(1 - c / l) t`: in all of that time
//!   `1 - c / l` is the part of the load that is not carried. Clients that wait for their answers
//!   bound it; and of many points some would be beyond chance by chance, but where requests are
//!   quick not by so much.
//!
//! One run has no interval, and that of two is twelve standard errors to each side. So being twice
//! as slow in every run is taken to be beyond chance, however many there are, if the halves have
//! some requests each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::MetricInfo;
use crate::few_beyond::{is_left_out, percent};
use crate::note::{Note, OfValues};
use crate::result::{Number, Run, Variant};
use crate::stats::paired_change;

/// Growth that a queue which fills up does not have.
const GROWTH_MIN: f64 = 1.2;
/// Part of the load that is beyond the capacity, at least.
const EXCESS_MIN: f64 = 0.01;
/// [`GROWTH_MIN`] of each run by itself.
const GROWTH_MIN_ALONE: f64 = 2.0;
/// Fewer requests in a half of one run have no mean to speak of.
const REQUESTS_MIN_ALONE: u64 = 10;

/// How long requests of one kind took in each half of the measured time: those that ended in it,
/// and those that were open at its end with the time they had taken by then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Halves {
    /// The kind's name.
    pub request: String,
    /// How many.
    pub requests: [u64; 2],
    /// Mean of what they took; `null` of none.
    pub mean_us: [Number; 2],
}

impl Run {
    /// The metric's value; where open requests leave it unknown, what it is at least.
    pub(crate) fn at_least(&self, metric: &str) -> Number {
        let bounds = self.open_requests.iter();
        let bound = || bounds.clone().find_map(|o| o.at_least.get(metric).copied());
        self.metric(metric).or_else(bound)
    }
}

/// For each metric that some run has no value of: its mean with what those runs have at least, if
/// that is known of all.
pub(crate) fn lower_bounds(info: &[MetricInfo], variant: &Variant) -> BTreeMap<String, f64> {
    let bound = |info: &MetricInfo| {
        let runs = || variant.runs.iter();
        if runs().all(|run| run.metric(&info.name).is_some()) {
            return None;
        }
        let values: Option<Vec<f64>> = runs().map(|run| run.at_least(&info.name)).collect();
        let values = values?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some((info.name.clone(), mean))
    };
    info.iter().filter_map(bound).collect()
}

/// The kinds of request that the variant does not sustain.
pub(crate) fn not_sustained(variant: &Variant) -> Vec<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for halves in variant.runs.iter().flat_map(|run| &run.halves) {
        if !kinds.contains(&&*halves.request) {
            kinds.push(&halves.request);
        }
    }
    kinds.retain(|kind| grows(variant, kind));
    kinds.into_iter().map(String::from).collect()
}

fn grows(variant: &Variant, kind: &str) -> bool {
    let of_kind = |run: &&Run| {
        let halves = run.halves.iter().find(|halves| halves.request == kind);
        halves.cloned()
    };
    let runs = variant.runs.iter().collect::<Vec<_>>();
    let halves: Vec<Halves> = runs.iter().filter_map(of_kind).collect();
    let means = |h: &Halves| h.mean_us[0].zip(h.mean_us[1]);
    let pairs: Vec<(f64, f64)> = halves.iter().filter_map(means).collect();
    let sum = |half: fn(&(f64, f64)) -> f64| pairs.iter().map(half).sum::<f64>();
    let (first, second) = (sum(|pair| pair.0), sum(|pair| pair.1));
    // From the middle of one half to that of the other, of all runs together.
    let apart_s = runs.iter().filter_map(|run| run.metric("sim_time_s"));
    let apart_us = apart_s.sum::<f64>() / 2.0 * 1e6;
    if second - first < EXCESS_MIN * apart_us {
        return false;
    }
    let slower = |(first, second): &(f64, f64)| *second >= GROWTH_MIN_ALONE * first;
    let fewest = halves.iter().flat_map(|h| h.requests).min();
    let each =
        pairs.len() == runs.len() && pairs.iter().all(slower) && fewest >= Some(REQUESTS_MIN_ALONE);
    let interval = paired_change(&pairs).and_then(|change| change.ci95);
    each || interval.is_some_and(|[low, _]| low > 0.0 && second >= GROWTH_MIN * first)
}

/// The note on loads that are not sustained. `whose`: by which variants or points, where there are
/// several.
pub(crate) fn not_sustained_words(kinds: &[String], whose: Option<&str>) -> String {
    format!(
        "not sustained: {}`{}` took longer in the second half of the measured time than in the \
         first, beyond chance. Requests come faster than they are answered, and latencies grow \
         with the length of the run; or it has not settled: then a longer warm-up says so",
        whose.map_or(String::new(), |whose| format!("{whose}, ")),
        kinds.join("`, `")
    )
}

/// The same of a run, or of two sides.
pub(crate) fn not_sustained_note(variants: &[Variant]) -> Option<Note> {
    let found = variants.iter().map(|v| (&*v.name, not_sustained(v)));
    let found: Vec<(&str, Vec<String>)> = found.filter(|(_, kinds)| !kinds.is_empty()).collect();
    let mut kinds: Vec<String> = Vec::new();
    for kind in found.iter().flat_map(|(_, kinds)| kinds) {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    let whose = format!("in {}", names.join(" and "));
    let whose = (variants.len() > 1).then_some(whose);
    (!kinds.is_empty()).then_some(Note::Values(OfValues::NotSustained { whose, kinds }))
}

/// How many values a percentile of this name needs, so that it is another than the largest.
fn needs(metric: &str) -> Option<u64> {
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

/// The percentile of `of_whom` (` of base`) is of as few as `fewest` values.
pub(crate) fn few_words(metric: &str, of_whom: &str, fewest: u64) -> String {
    let needed = needs(metric).unwrap_or(0);
    format!(
        "`{metric}`{of_whom} is the largest value of a run, not a percentile: there are as few \
         as {fewest} in a run, and it needs {needed}; a longer run helps, more seeds do not"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 20 ms of each pair of means, us, with so many requests in each half.
    fn variant(pairs: &[(f64, f64)], requests: u64) -> Variant {
        let run = |(seed, (first, second)): (u64, &(f64, f64))| {
            let mut run = Run::new(seed);
            run.set_metric("sim_time_s", 0.02);
            run.halves = vec![Halves {
                request: "web".into(),
                requests: [requests; 2],
                mean_us: [Some(*first), Some(*second)],
            }];
            run
        };
        Variant {
            runs: (1..).zip(pairs).map(run).collect(),
            ..Variant::default()
        }
    }

    #[test]
    fn a_load_is_not_sustained_if_the_second_half_is_slower_beyond_chance() {
        let grows = |pairs: &[(f64, f64)]| !not_sustained(&variant(pairs, 100)).is_empty();
        // A queue that grows from nothing: three times as slow.
        assert!(grows(&[(100.0, 300.0), (80.0, 290.0), (130.0, 310.0)]));
        // After a warm-up of twice the measured time.
        assert!(grows(&[(450.0, 550.0), (440.0, 560.0), (456.0, 554.0)]));
        // What is quick and has no room to grow may be slower by chance.
        assert!(!grows(&[(10.0, 30.0), (8.0, 29.0), (13.0, 31.0)]));
        // Up and down by chance; by little, but always; faster.
        assert!(!grows(&[(100.0, 300.0), (280.0, 90.0), (130.0, 310.0)]));
        assert!(!grows(&[
            (1000.0, 1110.0),
            (1001.0, 1112.0),
            (999.0, 1109.0)
        ]));
        assert!(!grows(&[(300.0, 100.0), (310.0, 90.0), (290.0, 80.0)]));
        assert!(!grows(&[]));
    }

    /// The interval of two runs holds 0 for nearly everything.
    #[test]
    fn twice_as_slow_in_every_run_is_beyond_chance() {
        let grows = |pairs: &[(f64, f64)], n| !not_sustained(&variant(pairs, n)).is_empty();
        let two = [(1000.0, 2100.0), (1000.0, 9000.0)];
        assert!(grows(&two, 10));
        assert!(!grows(&two, 9), "of few requests");
        assert!(
            !grows(&[(1000.0, 1900.0), (1000.0, 9000.0)], 100),
            "not in each"
        );
        let spread = [(1000.0, 2100.0), (1000.0, 2100.0), (1000.0, 30000.0)];
        assert!(grows(&spread, 10));
    }

    #[test]
    fn a_run_and_both_sides_say_that_they_do_not_sustain_their_load() {
        let of = |name: &str, second: f64| Variant {
            name: name.into(),
            ..variant(&[(100.0, second)], 50)
        };
        let note =
            |variants: &[Variant]| not_sustained_note(variants).map_or(String::new(), String::from);
        let alone = note(&[of("base", 300.0)]);
        assert!(
            alone.starts_with("not sustained: `web` took longer"),
            "{alone}"
        );
        let patch = note(&[of("base", 100.0), of("patch", 300.0)]);
        assert!(
            patch.starts_with("not sustained: in patch, `web` took"),
            "{patch}"
        );
        let both = note(&[of("base", 300.0), of("patch", 300.0)]);
        assert!(both.contains("in base and patch, `web` took"), "{both}");
        assert_eq!(note(&[of("base", 100.0), of("patch", 100.0)]), "");
    }

    #[test]
    fn one_run_has_to_be_twice_as_slow_and_of_some_requests() {
        let grows = |pair, requests| !not_sustained(&variant(&[pair], requests)).is_empty();
        assert!(grows((100.0, 300.0), 50));
        assert!(!grows((100.0, 300.0), 5));
        assert!(!grows((100.0, 180.0), 50));
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

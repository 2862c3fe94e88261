//! Whether requests took longer for as long as the run lasted.
//!
//! Where requests come faster than they are answered, the queue grows with the run, and every
//! latency with it: a percentile says how long the run was. In a stable system both halves of the
//! measured time are alike. So a load is not sustained if its requests took longer in the second
//! half, on average, than in the first
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

use crate::result::{Halves, Note, OfValues, Run, Variant};
use crate::stats::paired_change;

/// Growth that a queue which fills up does not have.
const GROWTH_MIN: f64 = 1.2;
/// Part of the load that is beyond the capacity, at least.
const EXCESS_MIN: f64 = 0.01;
/// [`GROWTH_MIN`] of each run by itself.
const GROWTH_MIN_ALONE: f64 = 2.0;
/// Fewer requests in a half of one run have no mean to speak of.
const REQUESTS_MIN_ALONE: u64 = 10;

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
}

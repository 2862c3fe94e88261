//! Whether requests took longer for as long as the run lasted.
//!
//! Where requests come faster than they are answered, the queue grows with the run, and every
//! latency with it: a percentile says how long the run was. In a stable system both halves of the
//! measured time are alike. So a load is not sustained if its requests took longer in the second
//! half, on average, than in the first
//!
//! - by a hundredth of the time between their middles. Of a load `l` a capacity `c` answers at
//!   `t` who came at `c t / l`, so that request took `(1 - c / l) t`: in all of that time
//!   `1 - c / l` is the part of the load that is not carried. Clients that wait for their answers
//!   bound it; and of many points some would be beyond chance by chance, but where requests are
//!   quick not by so much;
//! - beyond chance, which one of three says.
//!
//! **The interval** of the difference over the seeds is above 0, and the second half slower by a
//! fifth: a queue that begins empty fills up for a while, which the first half has more of. Without
//! limit it grows like time, which makes the second half three times as slow as the first, and
//! still by a fifth after a warm-up of twice the measured time.
//!
//! **Each run** is twice as slow in its second half, and the halves have some requests each: one
//! run has no interval, and that of two is twelve standard errors to each side. Where a backlog is
//! known it says more: at 95 % of what is carried, a queue that begins empty made the second half
//! twice as slow in 9 of 48 runs of 5 s, and its backlog was never beyond chance.
//!
//! **The backlog**: more requests are open at the end than at the beginning, by more than of a load
//! that is just carried. If requests come at random and are answered at random, `n` of them on
//! average, the number that came less that of answers varies by `s = sqrt(2 n)`. A queue that
//! begins empty cannot fall below that, so at a load of 1 its length is like `|N(0, s)|`: `0.8 s`
//! on average, with a standard deviation of `0.6 s` (Kingman's heavy traffic; `SOURCES.md`). The
//! mean of `r` runs is above `0.8 s + 2.33 * 0.6 s / sqrt(r)` once in a hundred times; for one run
//! that is 3.1 times the root of `n`. A load below 1 has a queue that stays shorter. This does not
//! depend on the warm-up, and needs one run. It is about requests that each come from a task of
//! their own: clients that wait for an answer cannot have more open than there are clients, which
//! all may be in the end, though nothing grows.
//!
//! Where clients wait, and the measured time has few requests of each, longer ones in the second
//! half say that it is too short, whatever the load.

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
/// Mean and standard deviation of the absolute value of a normal variable.
const REFLECTED: [f64; 2] = [0.797_884_560_8, 0.602_810_275_0];
/// What a normal variable exceeds once in a hundred times, in standard deviations.
const ONE_IN_A_HUNDRED: f64 = 2.326_347_874;
/// Fewer requests of each client than this are few.
const OF_A_CLIENT_MIN: u64 = 4;

/// The kinds of request that the variant does not sustain.
pub(crate) fn not_sustained(variant: &Variant) -> Vec<String> {
    let grow = kinds(variant).into_iter();
    let grow = grow.filter(|kind| !is_short(variant, kind) && grows(variant, kind));
    grow.map(String::from).collect()
}

/// The kinds of request that take about as long as the measured time, of clients that wait.
pub(crate) fn too_short_for(variant: &Variant) -> Vec<String> {
    let short = kinds(variant).into_iter();
    let short = short.filter(|kind| is_short(variant, kind) && grows(variant, kind));
    short.map(String::from).collect()
}

fn kinds(variant: &Variant) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    for halves in variant.runs.iter().flat_map(|run| &run.halves) {
        if !kinds.contains(&&*halves.request) {
            kinds.push(&halves.request);
        }
    }
    kinds
}

fn of_kind<'a>(variant: &'a Variant, kind: &str) -> Vec<&'a Halves> {
    let find = |run: &'a Run| run.halves.iter().find(|halves| halves.request == kind);
    variant.runs.iter().filter_map(find).collect()
}

impl Halves {
    /// Requests that ended in the measured time or were open at its end: those of both halves,
    /// less those that were open between them and count in each.
    fn all(&self) -> Option<u64> {
        let twice = self.open?[1];
        (self.requests[0] + self.requests[1]).checked_sub(twice)
    }

    /// How many began in the measured time, and in its second half.
    fn came(&self) -> Option<[u64; 2]> {
        let [first, middle, _] = self.open?;
        let second = self.requests[1].checked_sub(middle)?;
        Some([self.all()?.checked_sub(first)?, second])
    }

    /// Whether hardly a task asks twice, and others go on to ask: nobody waits for an answer before
    /// the next request.
    fn is_open_loop(&self) -> Option<bool> {
        let [came, second] = self.came()?;
        Some(2 * self.askers? > self.all()? && came >= REQUESTS_MIN_ALONE && 3 * second >= came)
    }

    /// How many more were open at the end than at the beginning, in standard deviations of arrivals
    /// less answers; 0 unless they became more in both halves.
    fn backlog(&self) -> Option<f64> {
        let ([first, middle, last], [came, _]) = (self.open?, self.came()?);
        let steady = first < middle && middle < last && self.is_open_loop()?;
        let more = last.saturating_sub(first) as f64;
        Some(if steady {
            more / (2.0 * came as f64).sqrt()
        } else {
            0.0
        })
    }
}

/// Whether more are open than if the load were just carried.
fn backlog_grows(variant: &Variant, kind: &str) -> bool {
    let of_runs = of_kind(variant, kind).into_iter().map(Halves::backlog);
    let Some(of_runs) = of_runs.collect::<Option<Vec<f64>>>() else {
        return false;
    };
    let runs = of_runs.len() as f64;
    let [mean, sd] = REFLECTED;
    let by_chance = mean + ONE_IN_A_HUNDRED * sd / runs.sqrt();
    of_runs.iter().sum::<f64>() > by_chance * runs && of_runs.len() == variant.runs.len()
}

/// Whether its clients wait for answers, and had time for a few requests only.
fn is_short(variant: &Variant, kind: &str) -> bool {
    let few = |h: &Halves| Some(h.all()? < OF_A_CLIENT_MIN * h.askers? && !h.is_open_loop()?);
    of_kind(variant, kind)
        .into_iter()
        .any(|h| few(h) == Some(true))
}

fn grows(variant: &Variant, kind: &str) -> bool {
    let halves = of_kind(variant, kind);
    let means = |h: &&Halves| h.mean_us[0].zip(h.mean_us[1]);
    let pairs: Vec<(f64, f64)> = halves.iter().filter_map(means).collect();
    let sum = |half: fn(&(f64, f64)) -> f64| pairs.iter().map(half).sum::<f64>();
    let (first, second) = (sum(|pair| pair.0), sum(|pair| pair.1));
    // From the middle of one half to that of the other, of all runs together.
    let runs = &variant.runs;
    let apart_s = runs.iter().filter_map(|run| run.metric("sim_time_s"));
    let apart_us = apart_s.sum::<f64>() / 2.0 * 1e6;
    if second - first < EXCESS_MIN * apart_us {
        return false;
    }
    let slower = |(first, second): &(f64, f64)| *second >= GROWTH_MIN_ALONE * first;
    let fewest = halves.iter().flat_map(|h| h.requests).min();
    let has_backlog = halves.iter().all(|h| h.is_open_loop() == Some(true));
    let each = pairs.len() == runs.len()
        && pairs.iter().all(slower)
        && fewest >= Some(REQUESTS_MIN_ALONE)
        && !has_backlog;
    let interval = paired_change(&pairs).and_then(|change| change.ci95);
    let beyond = interval.is_some_and(|[low, _]| low > 0.0 && second >= GROWTH_MIN * first);
    each || beyond || backlog_grows(variant, kind)
}

/// The notes on a run, or on two sides.
pub(crate) fn not_sustained_notes(variants: &[Variant]) -> Vec<Note> {
    let of = |found: &dyn Fn(&Variant) -> Vec<String>,
              note: fn(Option<String>, Vec<String>) -> OfValues| {
        let found = variants.iter().map(|v| (&*v.name, found(v)));
        let found: Vec<(&str, Vec<String>)> =
            found.filter(|(_, kinds)| !kinds.is_empty()).collect();
        let mut kinds: Vec<String> = Vec::new();
        for kind in found.iter().flat_map(|(_, kinds)| kinds) {
            if !kinds.contains(kind) {
                kinds.push(kind.clone());
            }
        }
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        let whose = format!("in {}", names.join(" and "));
        let whose = (variants.len() > 1).then_some(whose);
        (!kinds.is_empty()).then(|| Note::Values(note(whose, kinds)))
    };
    let grow = of(&not_sustained, |whose, kinds| OfValues::NotSustained {
        whose,
        kinds,
    });
    let short = of(&too_short_for, |whose, kinds| OfValues::TooShort {
        whose,
        kinds,
    });
    grow.into_iter().chain(short).collect()
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
                ..Halves::default()
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
            |variants: &[Variant]| Note::sentences(&not_sustained_notes(variants)).join("\n");
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

    /// Runs of 5 s, each with `open` requests at the beginning, in the middle and at the end, of so
    /// many that came in each half, at a mean of a second and of a tenth more.
    fn backlogs(runs: &[[u64; 3]], came: u64, askers: Option<u64>) -> Variant {
        let run = |(seed, open): (u64, &[u64; 3])| {
            let mut run = Run::new(seed);
            run.set_metric("sim_time_s", 5.0);
            run.halves = vec![Halves {
                request: "web".into(),
                requests: [open[0] + came, open[1] + came],
                mean_us: [Some(1e6), Some(1.1e6)],
                open: Some(*open),
                askers: askers.or(Some(open[0] + 2 * came)),
            }];
            run
        };
        Variant {
            runs: (1..).zip(runs).map(run).collect(),
            ..Variant::default()
        }
    }

    /// After any warm-up, so that the halves are nearly alike.
    #[test]
    fn a_backlog_that_grows_is_seen_in_one_run() {
        let grows = |runs: &[[u64; 3]]| !not_sustained(&backlogs(runs, 1125, None)).is_empty();
        // 12 % of 2250; the limit is 2.2 * sqrt(4500) = 148.
        assert!(grows(&[[0, 125, 250]]) && grows(&[[5000, 5125, 5250]]));
        assert!(
            !grows(&[[0, 70, 140]]),
            "a queue at a load of 1 may do that"
        );
        assert!(
            !grows(&[[0, 200, 190]]) && !grows(&[[200, 190, 400]]),
            "not steadily"
        );
        // Over three seeds 1.61 * sqrt(4500) = 108 of each.
        let three = |more: u64| grows(&[[0, more / 2, more]; 3]);
        assert!(three(112) && !three(104));
        assert!(!grows(&[[250, 125, 0]]) && !grows(&[[0, 3, 7]]));
    }

    /// One run at 95 % of what is carried, from an empty queue.
    #[test]
    fn a_queue_that_fills_up_is_not_a_backlog_that_grows() {
        let mut fills = backlogs(&[[0, 12, 25]], 1125, None);
        fills.runs[0].halves[0].mean_us = [Some(2e4), Some(7e4)];
        assert_eq!(not_sustained(&fills), Vec::<String>::new());
        fills.runs[0].halves[0].open = None;
        assert_eq!(not_sustained(&fills), ["web"], "nothing else is known");
    }

    #[test]
    fn clients_that_wait_have_no_backlog_but_maybe_too_short_a_run() {
        // Forty clients with many requests each: all wait in the end.
        let many = backlogs(&[[0, 20, 40]], 50, Some(40));
        assert_eq!(
            (not_sustained(&many), too_short_for(&many)),
            (vec![], vec![])
        );
        // One whose only request takes longer than the window, in each of three seeds.
        let mut one = variant(&[(2e6, 7e6), (2.1e6, 7.1e6), (1.9e6, 6.9e6)], 1);
        for run in &mut one.runs {
            run.set_metric("sim_time_s", 10.0);
            run.halves[0].open = Some([0, 1, 1]);
            run.halves[0].askers = Some(1);
        }
        assert_eq!(not_sustained(&one), Vec::<String>::new());
        assert_eq!(too_short_for(&one), ["web"]);
        let said = Note::sentences(&not_sustained_notes(&[one])).join("\n");
        assert!(
            said.starts_with("too short: `web` takes about as long as"),
            "{said}"
        );
    }
}

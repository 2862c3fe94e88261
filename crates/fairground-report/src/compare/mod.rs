//! From runs to rows: pairs the runs of base and patch by seed, and says what came of it.

mod basis;
mod sides;
mod unlike;

use crate::catalogue::{Better, MetricInfo};
use crate::result::{Comparison, Note, OfMetric, OfSeeds, Variant, Verdict};
pub(crate) use basis::{Basis, idle_runs};
use sides::{Difference, Sides, same_seeds};
use unlike::unlike;
pub(crate) use unlike::{limited_in_one, of_other_periods};

/// Compares two variants in every metric of `info` that either has.
///
/// Runs are paired when both variants have the same seeds; else the samples are taken as
/// independent. A seed counts once. Totals of runs that end at a time are judged per unit of work.
/// What a reader must know about a row is pushed to `notes`.
pub fn compare_metrics(
    info: &[MetricInfo],
    base: &Variant,
    patch: &Variant,
    notes: &mut Vec<Note>,
) -> Vec<Comparison> {
    let one = match [base.runs.len() < 2, patch.runs.len() < 2] {
        [true, true] => Some(None),
        [true, false] => Some(Some(0)),
        [false, true] => Some(Some(1)),
        [false, false] => None,
    };
    notes.extend(one.map(|side| Note::Seeds(OfSeeds::One(side))));
    let same = patch.counts_as(base);
    if base.runs.len().min(patch.runs.len()) == 2 && !same {
        notes.push(Note::Seeds(OfSeeds::Two));
    }
    if !same_seeds(base, patch) {
        notes.push(Note::Seeds(OfSeeds::Others));
    }
    let basis = Basis::of(base, patch);
    let row = |info: &MetricInfo| Comparison {
        same,
        ..compare_metric(info, base, patch, &basis, notes)
    };
    let rows: Vec<Comparison> = info.iter().map(row).collect();
    notes.extend(zero_bases(&rows));
    notes.extend(other_periods(&rows, base, patch));
    notes.extend(basis.note(&rows, base, patch));
    rows
}

/// The row of one metric.
pub(crate) fn compare_metric(
    info: &MetricInfo,
    base: &Variant,
    patch: &Variant,
    basis: &Basis,
    notes: &mut Vec<Note>,
) -> Comparison {
    let sides = Sides::of(base, patch, |run| run.metric(&info.name));
    let metric = || info.name.clone();
    let of_one_length = of_other_periods(&info.name, base, patch).is_empty();
    let better = info.better.filter(|_| of_one_length);
    if sides.drops_some() {
        notes.push(Note::Metric(OfMetric::Dropped {
            metric: metric(),
            have: sides.have,
            runs: base.runs.len(),
            both: sides.in_both().len(),
        }));
    }
    let unlike = unlike(info, base, patch);
    let withheld = unlike.is_some() || basis.withholds(&info.name);
    notes.extend(unlike.map(Note::Metric));
    let total = sides.difference(info.whole(), withheld);
    let per_unit = basis.judge(&info.name, base, patch);
    let judged = per_unit.as_ref().unwrap_or(&total);
    if judged.coincides {
        notes.push(Note::Metric(OfMetric::Coincidence(metric())));
    }
    Comparison {
        metric: metric(),
        unit: info.unit.clone(),
        base: total.base.map(|s| s.mean),
        patch: total.patch.map(|s| s.mean),
        change_pct: total.change_pct(),
        ci95_pct: total.ci95_pct(),
        better,
        verdict: verdict(better, judged),
        differs: judged.tells(),
        same: false,
        diff: total.change.map(|c| c.diff),
        ci95_diff: total.ci95_diff(),
        base_sd: total.base.and_then(|s| s.sd),
        patch_sd: total.patch.and_then(|s| s.sd),
        method: total.method,
        interval: total.interval(),
        per: per_unit.and_then(|found| basis.row(&found)),
    }
}

fn verdict(better: Option<Better>, found: &Difference) -> Verdict {
    let Some(change) = found.change.filter(|_| found.tells()) else {
        return Verdict::Noise;
    };
    match (better, change.diff < 0.0) {
        (None, _) => Verdict::Noise,
        (Some(Better::Lower), true) | (Some(Better::Higher), false) => Verdict::Better,
        (Some(Better::Lower), false) | (Some(Better::Higher), true) => Verdict::Worse,
    }
}

/// Which metrics count periods of another length on each side.
fn other_periods(rows: &[Comparison], base: &Variant, patch: &Variant) -> Option<Note> {
    let of = |row: &Comparison| of_other_periods(&row.metric, base, patch);
    let found = rows.iter().map(|row| (&row.metric, of(row)));
    let found: Vec<(&String, Vec<String>)> = found.filter(|(_, of)| !of.is_empty()).collect();
    let mut groups: Vec<String> = Vec::new();
    for group in found.iter().flat_map(|(_, groups)| groups) {
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    let metrics = found
        .into_iter()
        .map(|(metric, _)| metric.clone())
        .collect();
    (!groups.is_empty()).then_some(Note::Metric(OfMetric::OtherPeriods { metrics, groups }))
}

/// Which changes have no percentage: of one with its size, which of several are in the table.
fn zero_bases(rows: &[Comparison]) -> Option<Note> {
    let rows = rows.iter();
    let of_zero: Vec<&Comparison> = rows
        .filter(|row| row.change_pct.is_none() && row.diff.is_some())
        .collect();
    let of = match of_zero[..] {
        [] => return None,
        [row] => OfMetric::FromZero {
            metric: row.metric.clone(),
            unit: row.unit.clone(),
            diff: row.diff,
            ci95_diff: row.ci95_diff,
        },
        _ => OfMetric::FromZeros(of_zero.iter().map(|row| row.metric.clone()).collect()),
    };
    Some(Note::Metric(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{GroupStat, Method, Run};

    /// The row of a metric, and the sentences of its notes.
    fn told(
        info: &MetricInfo,
        base: &Variant,
        patch: &Variant,
        said: &mut Vec<String>,
    ) -> Comparison {
        let mut notes = Vec::new();
        let row = compare_metric(info, base, patch, &Basis::of(base, patch), &mut notes);
        said.extend(notes.into_iter().map(String::from));
        row
    }

    /// A variant whose runs have these latencies, by seed.
    fn variant(values: &[Option<f64>]) -> Variant {
        let run = |(seed, value): (u64, &Option<f64>)| {
            let mut run = Run::new(seed);
            run.metrics.insert("late".into(), *value);
            run
        };
        Variant {
            runs: (1..).zip(values).map(run).collect(),
            ..Variant::default()
        }
    }

    /// A share of the periods of `/a` on one side is none of those of `/a` and `/b` on the other.
    #[test]
    fn shares_of_other_groups_have_no_verdict() {
        let limited = |limits: &[(&str, &str)], share: f64| {
            let mut variant = variant(&[None; 3]);
            for run in &mut variant.runs {
                run.set_metric("throttled_pct", share + run.seed as f64 / 10.0);
                run.set_metric("late", share + run.seed as f64 / 10.0);
                let group = |(path, max): &(&str, &str)| GroupStat {
                    path: (*path).into(),
                    max: (*max).into(),
                    ..GroupStat::default()
                };
                run.groups = limits.iter().map(group).collect();
            }
            variant
        };
        let (limit, none) = ("20000 100000", "max 100000");
        let one = limited(&[("/a", limit), ("/b", none)], 20.0);
        let both = limited(&[("/a", limit), ("/b", limit)], 70.0);
        let neither = limited(&[("/a", none), ("/b", none)], 0.0);
        let word = |base: &Variant, patch: &Variant, metric: &str| {
            let info = MetricInfo {
                name: metric.into(),
                unit: "%".into(),
                better: Some(Better::Lower),
                description: String::new(),
            };
            let mut notes = Vec::new();
            let row = told(&info, base, patch, &mut notes);
            (
                row.word(),
                notes.iter().any(|note| note.contains("alone limits /b")),
            )
        };
        assert_eq!(word(&one, &both, "throttled_pct"), ("-", true));
        assert_eq!(word(&both, &one, "throttled_pct"), ("-", true));
        assert_eq!(word(&one, &both, "late"), ("worse", false));
        assert_eq!(word(&neither, &both, "throttled_pct"), ("worse", false));
        assert_eq!(word(&both, &both, "throttled_pct"), ("noise", false));
    }

    /// 20 ms of each 10 ms against 50 ms of each 100 ms: a tenth of the periods is no merit.
    #[test]
    fn counts_of_periods_of_another_length_are_neither_better_nor_worse() {
        let limited = |max: &str, throttled: f64| {
            let mut variant = variant(&[None; 3]);
            for run in &mut variant.runs {
                run.set_metric("nr_throttled", throttled + run.seed as f64);
                run.set_metric("throttled_usec", throttled + run.seed as f64);
                run.groups = vec![GroupStat {
                    path: "/pod".into(),
                    max: max.into(),
                    ..GroupStat::default()
                }];
            }
            variant
        };
        let base = limited("20000 10000", 200.0);
        let info = [of("nr_throttled", "count"), of("throttled_usec", "us")];
        let words = |patch: &Variant| {
            let mut notes = Vec::new();
            let rows = compare_metrics(&info, &base, patch, &mut notes);
            let words: Vec<&str> = rows.iter().map(Comparison::word).collect();
            (
                words,
                notes
                    .into_iter()
                    .map(String::from)
                    .collect::<Vec<_>>()
                    .join("\n"),
            )
        };
        let (said, notes) = words(&limited("50000 100000", 20.0));
        assert_eq!(said, ["differs", "better"]);
        let note = "`nr_throttled` counts periods of /pod, which are of another length in patch";
        assert!(notes.starts_with(note), "{notes}");
        let (said, notes) = words(&limited("10000 10000", 20.0));
        assert_eq!((&said[..], &*notes), (&["better", "better"][..], ""));
        assert_eq!(
            words(&limited("max 100000", 20.0)).0[0],
            "better",
            "no periods at all"
        );
    }

    /// In two of four runs of patch nobody was served, and the other two are quick.
    #[test]
    fn runs_without_a_value_leave_no_interval_and_means_of_what_is_compared() {
        let info = MetricInfo {
            name: "late".into(),
            unit: "us".into(),
            better: Some(Better::Lower),
            description: String::new(),
        };
        let base = variant(&[Some(10.0), Some(12.0), Some(100.0), Some(110.0)]);
        let patch = variant(&[Some(5.0), Some(6.0), None, None]);
        let mut notes = Vec::new();
        let row = told(&info, &base, &patch, &mut notes);
        assert_eq!((row.base, row.patch), (Some(11.0), Some(5.5)));
        assert!(row.change_pct.is_some_and(|pct| (pct + 50.0).abs() < 1e-9));
        assert_eq!((row.ci95_pct, row.method), ([None; 2], Method::None));
        assert_eq!((row.verdict, row.differs), (Verdict::Noise, false));
        assert!(
            notes[0].contains("4 of 4 runs of base and in 2 of patch"),
            "{notes:?}"
        );
        let whole = told(&info, &base, &base, &mut Vec::new());
        assert_eq!(whole.method, Method::PairedT);
    }

    fn of(name: &str, unit: &str) -> MetricInfo {
        MetricInfo {
            name: name.into(),
            unit: unit.into(),
            better: Some(Better::Lower),
            description: String::new(),
        }
    }

    #[test]
    fn sides_that_are_the_same_in_all_counts_say_so() {
        let base = variant(&[Some(10.0), Some(12.0)]);
        let mut patch = base.clone();
        let word = |patch: &Variant| {
            let rows = compare_metrics(&[of("late", "us")], &base, patch, &mut Vec::new());
            (rows[0].word(), rows[0].verdict)
        };
        assert_eq!(word(&patch), ("same", Verdict::Noise));
        patch.runs[1].set_metric("other", 1.0);
        assert_eq!(word(&patch), ("noise", Verdict::Noise), "not in all counts");
        patch = base.clone();
        patch.runs[1].seed = 7;
        assert_ne!(word(&patch).0, "same", "of other seeds it is chance");
    }

    #[test]
    fn several_changes_from_zero_are_one_note_and_two_runs_are_few() {
        let of_runs = |seeds: u64, value: f64| {
            let mut variant = variant(&vec![None; seeds as usize]);
            for run in &mut variant.runs {
                run.set_metric("late", value);
                run.set_metric("slow", value);
            }
            variant
        };
        let notes = |seeds: u64, info: &[MetricInfo]| {
            let mut notes = Vec::new();
            compare_metrics(info, &of_runs(seeds, 0.0), &of_runs(seeds, 7.0), &mut notes);
            notes.into_iter().map(String::from).collect::<Vec<_>>()
        };
        let [late, slow] = ["late", "slow"].map(|name| of(name, "us"));
        let [one] = &notes(3, std::slice::from_ref(&late))[..] else {
            panic!("one note");
        };
        let words = "`late` is 0 in base, so its change of 7.000 us, 95 % CI [7.000, 7.000], has";
        assert!(one.starts_with(words), "{one}");
        let [few, both] = &notes(2, &[late, slow])[..] else {
            panic!("two notes");
        };
        assert!(few.starts_with("two runs tell almost nothing"), "{few}");
        assert!(
            both.starts_with("`late`, `slow` are 0 in base, so"),
            "{both}"
        );
    }

    #[test]
    fn shares_have_intervals_up_to_the_whole() {
        let base = variant(&[Some(80.0), Some(80.0)]);
        let patch = variant(&[Some(90.0), Some(100.0)]);
        let ends = |unit: &str| {
            let info = of("late", unit);
            let row = told(&info, &base, &patch, &mut Vec::new());
            [row.ci95_diff[1], row.ci95_pct[1]]
        };
        assert_eq!(ends("%"), [Some(20.0), Some(25.0)]);
        assert!(ends("us")[0].is_some_and(|hi| hi > 70.0));
    }

    #[test]
    fn the_side_with_one_run_is_named() {
        let (one, two) = (variant(&[Some(1.0)]), variant(&[Some(1.0), Some(2.0)]));
        for (base, patch, said) in [
            (&two, &one, "patch has one run, which has no spread"),
            (&one, &two, "base has one run, which has no spread"),
            (&one, &one, "one run per variant has no spread"),
        ] {
            let mut notes = Vec::new();
            compare_metrics(&[of("late", "us")], base, patch, &mut notes);
            assert!(notes[0].to_string().starts_with(said), "{notes:?}");
        }
    }

    /// The interval has no width, and a change of a ten-thousandth of a percent is shown as none.
    #[test]
    fn what_two_seeds_share_by_chance_or_nobody_sees_has_no_verdict() {
        let info = of("late", "us");
        let mut notes = Vec::new();
        let two = |values: [f64; 2]| variant(&values.map(Some));
        let row = told(&info, &two([8.0, 9.0]), &two([10.0, 11.0]), &mut notes);
        assert_eq!((row.method, row.differs), (Method::None, false));
        assert!(
            notes[0].contains("differs by the same in both seeds"),
            "{notes:?}"
        );
        // A count that is fixed may change for certain.
        let row = told(&info, &two([8.0, 8.0]), &two([10.0, 10.0]), &mut notes);
        assert!(row.differs);
        let tiny = two([8.000_10, 9.000_11]);
        let row = told(&info, &two([8.0, 9.0]), &tiny, &mut notes);
        assert_eq!((row.verdict, row.differs), (Verdict::Noise, false));
    }

    /// Saved by two commands, each with a usual time of its own.
    #[test]
    fn slow_periods_of_two_yardsticks_have_no_verdict() {
        let slow = |slow_ns: u64, pct: [f64; 2]| {
            let runs = [1, 2].map(|seed| {
                let mut run = Run::new(seed);
                run.set_metric("slow_periods_pct", pct[seed as usize - 1]);
                run.groups = vec![GroupStat {
                    path: "/web".into(),
                    max: "20000 100000".into(),
                    wait: Some(crate::result::QuotaWait {
                        slow_ns: Some(slow_ns),
                        ..Default::default()
                    }),
                    ..GroupStat::default()
                }];
                run
            });
            Variant {
                runs: runs.into(),
                ..variant(&[])
            }
        };
        let info = of("slow_periods_pct", "%");
        let (base, mut notes) = (slow(16, [5.0, 6.0]), Vec::new());
        let row = told(&info, &base, &slow(16, [25.0, 26.1]), &mut notes);
        assert!(row.differs && notes.is_empty(), "{notes:?}");
        let row = told(&info, &base, &slow(15, [25.0, 26.1]), &mut notes);
        assert_eq!((row.method, row.differs), (Method::None, false));
        assert!(
            notes[0].contains("its own usual time for what is slow in /web"),
            "{notes:?}"
        );
        // Of other seeds there is no pair, but what was slow is known all the same.
        let later = |slow_ns: u64| {
            let mut patch = slow(slow_ns, [25.0, 26.1]);
            patch.runs.iter_mut().for_each(|run| run.seed += 10);
            told(&info, &base, &patch, &mut Vec::new()).method
        };
        assert_eq!((later(15), later(16)), (Method::None, Method::WelchT));
    }
}

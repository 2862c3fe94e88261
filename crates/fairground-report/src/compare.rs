//! From runs to rows: pairs the runs of base and patch by seed, and says what came of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::{Better, MetricInfo};
use crate::differing::differing;
use crate::groups::{limited_in_one, own_yardsticks};
use crate::redo::Redo;
use crate::result::{Compare, Comparison, Method, Setup, Variant, Verdict};
use crate::saved::Saved;
use crate::stats::{Change, Summary, paired_change, summary, welch_change};
use crate::text::number;

/// What two runs of a variant leave open: the t distribution with one degree of freedom.
pub(crate) const TWO_RUNS: &str = "two runs tell almost nothing about a difference: an interval is \
     12.7 standard errors to each side, and noise does not mean that there is none; with 5 runs it \
     is 2.8, so take 5 or more";

/// Compares two variants in every metric of `info` that either has.
///
/// Runs are paired when both variants have the same seeds; else the samples are taken as
/// independent. A seed counts once. What a reader must know about a row is pushed to `notes`.
pub fn compare_metrics(
    info: &[MetricInfo],
    base: &Variant,
    patch: &Variant,
    notes: &mut Vec<String>,
) -> Vec<Comparison> {
    let one = match [base.runs.len() < 2, patch.runs.len() < 2] {
        [true, true] => Some("one run per variant has"),
        [true, false] => Some("base has one run, which has"),
        [false, true] => Some("patch has one run, which has"),
        [false, false] => None,
    };
    notes.extend(one.map(|who| {
        format!("{who} no spread, so there is no interval and no verdict; give more seeds")
    }));
    let same = patch.counts_as(base);
    if base.runs.len().min(patch.runs.len()) == 2 && !same {
        notes.push(TWO_RUNS.into());
    }
    if !same_seeds(base, patch) {
        notes.push("base and patch ran with different seeds: independent samples, Welch".into());
    }
    let row = |info: &MetricInfo| Comparison {
        same,
        ..compare_metric(info, base, patch, notes)
    };
    let rows: Vec<Comparison> = info.iter().map(row).collect();
    notes.extend(zero_bases(&rows));
    rows
}

/// Compares two saved results, say of two builds of a changed engine.
///
/// Of a saved comparison, `base` gives its base and `patch` its patch; so a comparison held
/// against itself is that comparison. Differences of machine, profile, workload and version are
/// noted, not refused.
pub fn compare_saved(base: Saved, patch: Saved) -> Compare {
    let left_out = left_out(&base, &patch);
    let (base_setup, base_variant) = base.into_variant("base");
    let (patch_setup, patch_variant) = patch.into_variant("patch");
    let mut notes = setup_notes(&base_setup, &patch_setup);
    notes.splice(0..0, left_out);
    let mut metrics = base_setup.workload_metrics.clone();
    metrics.extend(patch_setup.workload_metrics);
    let profile = match patch_setup.profile == base_setup.profile {
        true => patch_setup.profile,
        false => format!("{} (base: {})", patch_setup.profile, base_setup.profile),
    };
    let other = Some(patch_setup.machine).filter(|machine| !machine.is(&base_setup.machine));
    let setup = Setup {
        workload_metrics: metrics,
        profile,
        ..base_setup
    };
    let mut compare = Compare::new(setup, base_variant, patch_variant);
    compare.patch_machine = other;
    let seeds = |side: usize| -> Vec<u64> {
        let runs = &compare.variants[side].runs;
        runs.iter().map(|run| run.seed).collect()
    };
    let (of_base, of_patch) = (seeds(0), seeds(1));
    compare.redo = Redo {
        command: format!("{}\n{}", compare.redo.command, patch_setup.redo.command),
        patch_seeds: if of_patch == of_base {
            Vec::new()
        } else {
            of_patch
        },
        seeds: of_base,
        ..compare.redo
    };
    compare.notes.splice(0..0, notes);
    compare
}

/// What two saved comparisons have that is in none of the columns.
fn left_out(base: &Saved, patch: &Saved) -> Vec<String> {
    if base == patch {
        return Vec::new();
    }
    let of = |saved: &Saved, side: usize, file: &str, taken: &str, other: &str| {
        let Saved::Compare(compare) = saved else {
            return None;
        };
        let sets = differing(&compare.variants[0], &compare.variants[1]);
        let value = |(name, values): &(String, [String; 2])| format!("{name} = {}", values[side]);
        let sets: Vec<String> = sets.iter().map(value).collect();
        Some(format!(
            "the {file} result is a comparison: its {taken} is taken, its {other} ({}) is left out",
            sets.join(", ")
        ))
    };
    let notes = [
        of(base, 1, "first", "base", "patch"),
        of(patch, 0, "second", "patch", "base"),
    ];
    notes.into_iter().flatten().collect()
}

fn setup_notes(base: &Setup, patch: &Setup) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differ = |what: &str, b: String, p: String| {
        if b != p {
            notes.push(format!("the results differ in {what}: base {b}, patch {p}"));
        }
    };
    let machine = |s: &Setup| format!("{} ({})", s.machine.id, s.machine.hash);
    differ("machine", machine(base), machine(patch));
    differ("profile", base.profile.clone(), patch.profile.clone());
    differ(
        "workload",
        base.workload.join(" "),
        patch.workload.join(" "),
    );
    differ("version", base.fairground.clone(), patch.fairground.clone());
    let (b, p) = (&base.redo.conditions, &patch.redo.conditions);
    let keys: BTreeSet<&String> = b.keys().chain(p.keys()).collect();
    for key in keys {
        let of = |side: &BTreeMap<String, String>| side.get(key).map_or("none", |v| v).to_string();
        differ(key, of(b), of(p));
    }
    notes
}

/// The row of one metric.
pub(crate) fn compare_metric(
    info: &MetricInfo,
    base: &Variant,
    patch: &Variant,
    notes: &mut Vec<String>,
) -> Comparison {
    let (mut base_values, mut patch_values) = (values(base, &info.name), values(patch, &info.name));
    let paired = same_seeds(base, patch);
    let lopsided = lopsided(base, &base_values) || lopsided(patch, &patch_values);
    if paired && lopsided {
        note_dropped(info, (&base_values, &patch_values), base.runs.len(), notes);
        // The means are of what is compared.
        let in_both = |seed: &u64| patch_values.contains_key(seed);
        let both: BTreeSet<u64> = base_values.keys().copied().filter(in_both).collect();
        if !both.is_empty() {
            base_values.retain(|seed, _| both.contains(seed));
            patch_values.retain(|seed, _| both.contains(seed));
        }
    }
    let base_summary = summary(&to_vec(&base_values));
    let patch_summary = summary(&to_vec(&patch_values));
    let mut coincides = false;
    let change = if paired {
        let pair = |(seed, b): (&u64, &f64)| Some((*b, *patch_values.get(seed)?));
        let pairs: Vec<(f64, f64)> = base_values.iter().filter_map(pair).collect();
        coincides = is_coincidence(&pairs);
        paired_change(&pairs)
    } else {
        welch_change(&to_vec(&base_values), &to_vec(&patch_values))
    };
    let base_mean = base_summary.map_or(0.0, |s| s.mean);
    let change = change.map(|change| change.up_to(info.whole(), base_mean));
    let unlike = unlike(info, base, patch);
    let is_unlike = unlike.is_some();
    notes.extend(unlike);
    if coincides {
        notes.push(format!(
            "`{}` differs by the same in both seeds, which is chance where it varies from seed to \
             seed: no interval",
            info.name
        ));
    }
    // Runs without a value are no chance selection: those in which nothing was ever served.
    let change = change.map(|change| match lopsided || is_unlike || coincides {
        true => change.without_interval(),
        false => change,
    });
    let method = match change.and_then(|c| c.ci95) {
        None => Method::None,
        Some(_) if paired => Method::PairedT,
        Some(_) => Method::WelchT,
    };
    row(info, base_summary, patch_summary, change, method)
}

/// Why what base and patch say of a metric is not to be held against each other, if so.
fn unlike(info: &MetricInfo, base: &Variant, patch: &Variant) -> Option<String> {
    let in_one = limited_in_one(&info.name, base, patch);
    if !in_one.is_empty() {
        return Some(format!(
            "`{}` is of all groups with a limit, but one side alone limits {}: no verdict",
            info.name,
            in_one.join(", ")
        ));
    }
    let own = own_yardsticks(&info.name, base, patch);
    (!own.is_empty()).then(|| {
        format!(
            "`{}`: base and patch were made apart, and each took its own usual time for what is \
             slow in {}: no verdict; compare them in one command, or give both the same --slow",
            info.name,
            own.join(", ")
        )
    })
}

/// Whether two seeds differ by the same though neither side is the same in both: an interval of no
/// width would be of chance.
fn is_coincidence(pairs: &[(f64, f64)]) -> bool {
    let [(b1, p1), (b2, p2)] = pairs else {
        return false;
    };
    b1 != b2 && p1 - b1 == p2 - b2 && p1 != b1
}

fn row(
    info: &MetricInfo,
    base: Option<Summary>,
    patch: Option<Summary>,
    change: Option<Change>,
    method: Method,
) -> Comparison {
    let ends = |ci: Option<[f64; 2]>| ci.map_or([None; 2], |[lo, hi]| [Some(lo), Some(hi)]);
    Comparison {
        metric: info.name.clone(),
        unit: info.unit.clone(),
        base: base.map(|s| s.mean),
        patch: patch.map(|s| s.mean),
        change_pct: change.and_then(|c| c.pct),
        ci95_pct: ends(change.and_then(|c| c.ci95_pct)),
        better: info.better,
        verdict: verdict(info.better, change),
        differs: change.is_some_and(tells),
        same: false,
        diff: change.map(|c| c.diff),
        ci95_diff: ends(change.and_then(|c| c.ci95)),
        base_sd: base.and_then(|s| s.sd),
        patch_sd: patch.and_then(|s| s.sd),
        method,
    }
}

fn verdict(better: Option<Better>, change: Option<Change>) -> Verdict {
    let Some(change) = change.filter(|change| tells(*change)) else {
        return Verdict::Noise;
    };
    match (better, change.diff < 0.0) {
        (None, _) => Verdict::Noise,
        (Some(Better::Lower), true) | (Some(Better::Higher), false) => Verdict::Better,
        (Some(Better::Lower), false) | (Some(Better::Higher), true) => Verdict::Worse,
    }
}

/// Whether there is a difference, and one that a reader would see: no verdict stands beside 0.00 %.
fn tells(change: Change) -> bool {
    change.excludes_zero() && change.pct.is_none_or(|pct| pct.abs() >= 0.005)
}

/// The finite values of a metric by seed.
fn values(variant: &Variant, metric: &str) -> BTreeMap<u64, f64> {
    variant
        .runs
        .iter()
        .filter_map(|run| Some((run.seed, run.metric(metric)?)))
        .collect()
}

fn to_vec(values: &BTreeMap<u64, f64>) -> Vec<f64> {
    values.values().copied().collect()
}

fn same_seeds(base: &Variant, patch: &Variant) -> bool {
    let seeds =
        |variant: &Variant| -> BTreeSet<u64> { variant.runs.iter().map(|run| run.seed).collect() };
    seeds(base) == seeds(patch)
}

/// Whether some of a variant's runs have a value and others have none.
fn lopsided(variant: &Variant, values: &BTreeMap<u64, f64>) -> bool {
    let seeds: BTreeSet<u64> = variant.runs.iter().map(|run| run.seed).collect();
    !values.is_empty() && values.len() < seeds.len()
}

fn note_dropped(
    info: &MetricInfo,
    (base, patch): (&BTreeMap<u64, f64>, &BTreeMap<u64, f64>),
    of: usize,
    notes: &mut Vec<String>,
) {
    let both = base.keys().filter(|seed| patch.contains_key(seed)).count();
    notes.push(format!(
        "`{}` has a value in {} of {of} runs of base and in {} of patch: means and change are of \
         the {both} seeds that have both, without an interval, for it is no chance who has none",
        info.name,
        base.len(),
        patch.len(),
    ));
}

/// Which changes have no percentage: of one with its size, which of several are in the table.
fn zero_bases(rows: &[Comparison]) -> Option<String> {
    let rows = rows.iter();
    let of_zero: Vec<&Comparison> = rows
        .filter(|row| row.change_pct.is_none() && row.diff.is_some())
        .collect();
    match of_zero[..] {
        [] => None,
        [row] => {
            let interval = match row.ci95_diff {
                [lo @ Some(_), hi @ Some(_)] => {
                    format!(", 95 % CI [{}, {}],", number(lo), number(hi))
                }
                _ => String::new(),
            };
            Some(format!(
                "`{}` is 0 in base, so its change of {} {}{interval} has no percentage",
                row.metric,
                number(row.diff),
                row.unit,
            ))
        }
        _ => {
            let names: Vec<String> = of_zero.iter().map(|r| format!("`{}`", r.metric)).collect();
            Some(format!(
                "{} are 0 in base, so their changes have no percentage; the JSON has their \
                 intervals (`ci95_diff`)",
                names.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::GroupStat;
    use crate::result::Run;

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
            let row = compare_metric(&info, base, patch, &mut notes);
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
        let row = compare_metric(&info, &base, &patch, &mut notes);
        assert_eq!((row.base, row.patch), (Some(11.0), Some(5.5)));
        assert!(row.change_pct.is_some_and(|pct| (pct + 50.0).abs() < 1e-9));
        assert_eq!((row.ci95_pct, row.method), ([None; 2], Method::None));
        assert_eq!((row.verdict, row.differs), (Verdict::Noise, false));
        assert!(
            notes[0].contains("4 of 4 runs of base and in 2 of patch"),
            "{notes:?}"
        );
        let whole = compare_metric(&info, &base, &base, &mut Vec::new());
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
            notes
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
        assert_eq!(few, TWO_RUNS);
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
            let row = compare_metric(&info, &base, &patch, &mut Vec::new());
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
            assert!(notes[0].starts_with(said), "{notes:?}");
        }
    }

    /// The interval has no width, and a change of a ten-thousandth of a percent is shown as none.
    #[test]
    fn what_two_seeds_share_by_chance_or_nobody_sees_has_no_verdict() {
        let info = of("late", "us");
        let mut notes = Vec::new();
        let two = |values: [f64; 2]| variant(&values.map(Some));
        let row = compare_metric(&info, &two([8.0, 9.0]), &two([10.0, 11.0]), &mut notes);
        assert_eq!((row.method, row.differs), (Method::None, false));
        assert!(
            notes[0].contains("differs by the same in both seeds"),
            "{notes:?}"
        );
        // A count that is fixed may change for certain.
        let row = compare_metric(&info, &two([8.0, 8.0]), &two([10.0, 10.0]), &mut notes);
        assert!(row.differs);
        let tiny = two([8.000_10, 9.000_11]);
        let row = compare_metric(&info, &two([8.0, 9.0]), &tiny, &mut notes);
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
                    wait: Some(crate::watched::QuotaWait {
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
        let row = compare_metric(&info, &base, &slow(16, [25.0, 26.1]), &mut notes);
        assert!(row.differs && notes.is_empty(), "{notes:?}");
        let row = compare_metric(&info, &base, &slow(15, [25.0, 26.1]), &mut notes);
        assert_eq!((row.method, row.differs), (Method::None, false));
        assert!(
            notes[0].contains("its own usual time for what is slow in /web"),
            "{notes:?}"
        );
        // Of other seeds there is no pair, but what was slow is known all the same.
        let later = |slow_ns: u64| {
            let mut patch = slow(slow_ns, [25.0, 26.1]);
            patch.runs.iter_mut().for_each(|run| run.seed += 10);
            compare_metric(&info, &base, &patch, &mut Vec::new()).method
        };
        assert_eq!((later(15), later(16)), (Method::None, Method::WelchT));
    }
}

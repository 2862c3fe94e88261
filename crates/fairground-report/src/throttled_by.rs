//! By whose quota the tasks of a group were kept off the CPU: its own, or that of a group above.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::{Run, Variant};

/// Most groups whose rows a result keeps.
const GROUPS_MAX: usize = 64;
/// Most groups that a note names.
const HELD_NOTED: usize = 3;

/// For how long the quota of one group kept the tasks of a group off the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThrottledBy {
    /// Path of the group whose tasks waited: its own, and those of groups below.
    pub group: String,
    /// Path of the group whose quota was used up: the same, or one above. Of several that were
    /// throttled at once on the task's CPU, the nearest.
    pub by: String,
    /// How long in the measured time, summed over tasks, waits that were open at its end included.
    pub ns: u64,
}

/// Keeps the rows of the same groups in all runs: those whose tasks waited longest in all together.
pub(crate) fn cut(variants: &mut [Variant]) {
    let mut waited: BTreeMap<&str, u64> = BTreeMap::new();
    for row in runs(variants).flat_map(|run| &run.throttled_by) {
        *waited.entry(&row.group).or_default() += row.ns;
    }
    let mut order: Vec<(Reverse<u64>, &str)> = waited
        .into_iter()
        .map(|(path, ns)| (Reverse(ns), path))
        .collect();
    order.sort_unstable();
    let kept = order.into_iter().take(GROUPS_MAX);
    let kept: BTreeSet<String> = kept.map(|(_, path)| path.to_string()).collect();
    for run in variants.iter_mut().flat_map(|v| &mut v.runs) {
        run.throttled_by.retain(|row| kept.contains(&row.group));
    }
}

/// Pairs of a group and the one whose quota it waited for, each once, in the order of the first run
/// that has it. None where no group waited for another's: then the group's own counters say it all.
pub(crate) fn pairs(variants: &[Variant]) -> Vec<(&str, &str)> {
    let rows = || runs(variants).flat_map(|run| &run.throttled_by);
    if rows().all(|row| row.group == row.by) {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let pairs = rows().map(|row| (&*row.group, &*row.by));
    let mut pairs: Vec<(&str, &str)> = pairs.filter(|pair| seen.insert(*pair)).collect();
    // All rows of a group together, though a side may know more of them than the first.
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for (group, _) in &pairs {
        let next = place.len();
        place.entry(group).or_insert(next);
    }
    pairs.sort_by_key(|(group, _)| place[group]);
    pairs
}

/// Mean over the runs of a variant of what one pair has, ms, and its share in percent of all that
/// the group's tasks waited for quota; `None` if the variant says nothing of it.
pub(crate) fn mean(variant: &Variant, group: &str, by: &str) -> Option<(f64, Option<f64>)> {
    let rows = || variant.runs.iter().flat_map(|run| &run.throttled_by);
    let of_group = rows().filter(|row| row.group == group);
    let of_pair = of_group.clone().filter(|row| row.by == by);
    of_pair.clone().next()?;
    let sum = |rows: &mut dyn Iterator<Item = &ThrottledBy>| rows.map(|row| row.ns).sum::<u64>();
    let (pair, all) = (sum(&mut of_pair.clone()), sum(&mut of_group.clone()));
    let share = (all > 0).then(|| 100.0 * pair as f64 / all as f64);
    Some((pair as f64 / 1e6 / variant.runs.len() as f64, share))
}

/// Groups with a limit of their own whose tasks waited mostly for a quota above, with the group
/// that most of it was for: raising their own limit alone changes little.
pub(crate) fn held_from_above(variant: &Variant) -> Vec<(String, String)> {
    let mut waited: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in variant.runs.iter().flat_map(|run| &run.throttled_by) {
        *waited.entry((&row.group, &row.by)).or_default() += row.ns;
    }
    let of = |group: &str| {
        let rows = waited.iter().filter(move |((of, _), _)| *of == group);
        rows.map(|((_, by), ns)| (*by, *ns)).collect::<Vec<_>>()
    };
    // One without a limit of its own has no other row, and no limit to raise.
    let limited = waited.keys().filter(|(group, by)| group == by);
    let held = limited.filter_map(|(group, _)| {
        let rows = of(group);
        let all: u64 = rows.iter().map(|(_, ns)| ns).sum();
        let own: u64 = rows.iter().filter(|r| r.0 == *group).map(|r| r.1).sum();
        let (by, _) = rows.iter().max_by_key(|(_, ns)| *ns)?;
        (2 * own < all).then(|| ((*group).to_string(), (*by).to_string()))
    });
    held.collect()
}

/// What to say of that; `whose`: of which sides or points.
pub(crate) fn held_words(held: &[(String, String)], whose: &str) -> Option<String> {
    let pair = |(group, by): &(String, String)| format!("{group} for that of {by}");
    let mut told: Vec<String> = held.iter().take(HELD_NOTED).map(pair).collect();
    if held.len() > HELD_NOTED {
        told.push(format!("{} more", held.len() - HELD_NOTED));
    }
    (!held.is_empty()).then(|| {
        format!(
            "{whose}tasks waited mostly for a quota above their group's own: {}. A higher limit of \
             the group itself changes little there",
            told.join(", ")
        )
    })
}

/// The note of a run or of two sides.
pub(crate) fn held_notes(variants: &[Variant]) -> Vec<String> {
    let of = |variant: &Variant| {
        let whose = match variants.len() {
            1 => String::new(),
            _ => format!("in {}, ", variant.name),
        };
        held_words(&held_from_above(variant), &whose)
    };
    variants.iter().filter_map(of).collect()
}

fn runs(variants: &[Variant]) -> impl Iterator<Item = &Run> {
    variants.iter().flat_map(|v| &v.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(runs: &[&[(&str, &str, u64)]]) -> Variant {
        let row = |(group, by, ms): &(&str, &str, u64)| ThrottledBy {
            group: (*group).into(),
            by: (*by).into(),
            ns: ms * 1_000_000,
        };
        let run = |(seed, rows): (u64, &&[(&str, &str, u64)])| Run {
            throttled_by: rows.iter().map(row).collect(),
            ..Run::new(seed)
        };
        Variant {
            runs: (1..).zip(runs).map(run).collect(),
            ..Variant::default()
        }
    }

    #[test]
    fn rows_are_means_and_shares_of_the_groups_waiting() {
        let one = variant(&[
            &[("/p", "/p", 90), ("/p/a", "/p/a", 10), ("/p/a", "/p", 90)],
            &[("/p", "/p", 0), ("/p/a", "/p/a", 50), ("/p/a", "/p", 50)],
        ]);
        let mean = |group, by| mean(&one, group, by);
        assert_eq!(mean("/p/a", "/p"), Some((70.0, Some(70.0))));
        assert_eq!(mean("/p/a", "/p/a"), Some((30.0, Some(30.0))));
        assert_eq!(mean("/p", "/p"), Some((45.0, Some(100.0))));
        assert_eq!(mean("/q", "/p"), None);
        let idle = variant(&[&[("/p", "/p", 0)]]);
        assert_eq!(super::mean(&idle, "/p", "/p"), Some((0.0, None)));
    }

    #[test]
    fn who_waits_for_a_quota_above_is_named_with_that() {
        let one = variant(&[
            &[
                ("/p", "/p", 90),
                ("/p/a", "/p/a", 10),
                ("/p/a", "/p", 90),
                ("/p/b", "/p", 1),
            ],
            &[
                ("/p", "/p", 0),
                ("/p/a", "/p/a", 75),
                ("/p/a", "/p", 5),
                ("/p/b", "/p", 1),
            ],
        ]);
        let held = [("/p/a".to_string(), "/p".to_string())];
        assert_eq!(held_from_above(&one), held);
        let said = held_notes(std::slice::from_ref(&one)).concat();
        assert!(
            said.starts_with("tasks waited mostly for a quota above"),
            "{said}"
        );
        assert!(
            said.contains("own: /p/a for that of /p. A higher"),
            "{said}"
        );
        let own = variant(&[&[("/p", "/p", 0), ("/p/a", "/p/a", 50), ("/p/a", "/p", 50)]]);
        let none = variant(&[&[("/p", "/p", 0), ("/p/a", "/p/a", 0), ("/p/a", "/p", 0)]]);
        assert!(held_notes(&[own, none]).is_empty());
    }

    #[test]
    fn a_group_keeps_its_rows_together_and_one_level_has_none() {
        let base = variant(&[&[("/p", "/p", 1), ("/q", "/q", 1)]]);
        assert_eq!(pairs(std::slice::from_ref(&base)), [("", ""); 0]);
        let patch = variant(&[&[("/p", "/p", 1), ("/p", "/", 1)]]);
        let all = [("/p", "/p"), ("/p", "/"), ("/q", "/q")];
        assert_eq!(pairs(&[base, patch]), all);
    }

    #[test]
    fn of_many_groups_those_that_waited_longest_are_kept() {
        let paths: Vec<String> = (0..70).map(|i| format!("/{i}")).collect();
        let rows: Vec<(&str, &str, u64)> = (0..)
            .zip(&paths)
            .map(|(i, path)| (&**path, "/", i))
            .collect();
        let mut variants = [variant(&[&rows])];
        cut(&mut variants);
        let left = &variants[0].runs[0].throttled_by;
        assert_eq!((left.len(), &*left[0].group), (64, "/6"));
    }
}

//! By whose quota the tasks of a group were kept off the CPU: its own, or that of a group above.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::result::{Run, ThrottledBy, Variant};

/// Most groups whose rows a result keeps.
const GROUPS_MAX: usize = 64;

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

fn runs(variants: &[Variant]) -> impl Iterator<Item = &Run> {
    variants.iter().flat_map(|v| &v.runs)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn variant(runs: &[&[(&str, &str, u64)]]) -> Variant {
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

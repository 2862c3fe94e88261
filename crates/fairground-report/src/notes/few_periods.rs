//! Whether runs had enough periods of a quota for what they say of throttling.

use std::collections::BTreeMap;

use crate::result::{Note, OfValues, Variant};

/// With fewer, one period more or less that is throttled is more than a twentieth of them all.
pub(super) const PERIODS_MIN: u64 = 20;

/// What is said of periods, of one group or of all.
const OF_THROTTLING: [&str; 4] = [
    "throttled_pct",
    "slow_periods_pct",
    "nr_throttled",
    "throttled_usec",
];

/// Groups with too few periods in a run of the variant, with their fewest. Those without any were
/// not throttled for certain.
pub(crate) fn few_periods(variant: &Variant) -> BTreeMap<&str, u64> {
    let mut fewest: BTreeMap<&str, u64> = BTreeMap::new();
    for group in variant.runs.iter().flat_map(|run| &run.groups) {
        let periods = group.stat.nr_periods;
        if (1..PERIODS_MIN).contains(&periods) {
            let known = fewest.entry(&group.path).or_insert(periods);
            *known = periods.min(*known);
        }
    }
    fewest
}

/// Whether the metric is about throttling, and a run of the variant has too few periods for it.
pub(crate) fn has_few_periods(variant: &Variant, metric: &str) -> bool {
    let (group, name) = match metric.rsplit_once('/') {
        Some((group, name)) => (Some(group), name),
        None => (None, metric),
    };
    let few = || match group {
        Some(group) => few_periods(variant).contains_key(group),
        None => variant.runs.iter().any(|run| {
            let periods = run.metric("nr_periods").unwrap_or(0.0);
            periods > 0.0 && periods < PERIODS_MIN as f64
        }),
    };
    OF_THROTTLING.contains(&name) && few()
}

/// The note on these groups, if there are any.
pub(crate) fn few_periods_of(groups: BTreeMap<&str, u64>, runs_have: &str) -> Option<Note> {
    let named = groups.into_iter().map(|(path, n)| (path.to_string(), n));
    let groups: BTreeMap<String, u64> = named.collect();
    let runs_have = runs_have.to_string();
    (!groups.is_empty()).then_some(Note::Values(OfValues::FewPeriods { runs_have, groups }))
}

/// That of a run, or of two sides.
pub(crate) fn few_periods_note(variants: &[Variant]) -> Option<Note> {
    let found = variants.iter().map(|v| (v, few_periods(v)));
    let found: Vec<_> = found.filter(|(_, groups)| !groups.is_empty()).collect();
    let names: Vec<&str> = found.iter().map(|(v, _)| &*v.name).collect();
    let runs_have = match variants {
        [one] if one.runs.len() == 1 => "the run has".into(),
        [_] => "runs have as few as".into(),
        _ => format!("runs of {} have as few as", names.join(" and ")),
    };
    few_periods_of(
        fewest(found.into_iter().map(|(_, groups)| groups)),
        &runs_have,
    )
}

/// The fewest of several variants.
pub(crate) fn fewest<'a>(
    all: impl Iterator<Item = BTreeMap<&'a str, u64>>,
) -> BTreeMap<&'a str, u64> {
    let mut fewest = BTreeMap::new();
    for (path, periods) in all.flatten() {
        let known = fewest.entry(path).or_insert(periods);
        *known = periods.min(*known);
    }
    fewest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{CpuStat, GroupStat, Run};

    fn variant(name: &str, runs: &[&[(&str, u64)]]) -> Variant {
        let group = |(path, nr_periods): &(&str, u64)| GroupStat {
            path: (*path).into(),
            stat: CpuStat {
                nr_periods: *nr_periods,
                ..CpuStat::default()
            },
            ..GroupStat::default()
        };
        let run = |(seed, groups): (u64, &&[(&str, u64)])| {
            let mut run = Run::new(seed);
            run.groups = groups.iter().map(group).collect();
            let sum: u64 = groups.iter().map(|(_, periods)| periods).sum();
            run.set_metric("nr_periods", sum as f64);
            run
        };
        Variant {
            name: name.into(),
            runs: (1..).zip(runs).map(run).collect(),
            ..Variant::default()
        }
    }

    #[test]
    fn few_periods_are_told_with_their_groups() {
        let note =
            |variants: &[Variant]| few_periods_note(variants).map_or(String::new(), String::from);
        let one = variant("base", &[&[("/web", 1)]]);
        let said = note(std::slice::from_ref(&one));
        assert!(said.starts_with("the run has 1 period of /web: "), "{said}");
        assert!(said.contains("chance below 20"), "{said}");
        let enough = variant("base", &[&[("/web", 20), ("/idle", 0)]]);
        assert_eq!(note(std::slice::from_ref(&enough)), "");
        let said = note(&[enough, variant("patch", &[&[("/web", 30)], &[("/web", 7)]])]);
        assert!(
            said.starts_with("runs of patch have as few as 7 periods of /web: "),
            "{said}"
        );
        let many = ["/a", "/b", "/c", "/d", "/e"].map(|path| (path, 3));
        let said = note(&[variant("base", &[&many])]);
        assert!(said.contains("3 periods of /a, /b, /c, 2 more: "), "{said}");
        let nested = note(&[variant("base", &[&[("/a", 2), ("/a/b", 10), ("/c", 2)]])]);
        let each = "the run has 2 periods of /a, /c, 10 of /a/b: ";
        assert!(nested.starts_with(each), "{nested}");
        let mixed = [("/a", 2), ("/b", 3), ("/c", 4), ("/d", 5), ("/e", 6)];
        let said = note(&[variant("base", &[&mixed])]);
        let each = "the run has 2 periods of /a, 3 of /b, 4 of /c, few of 2 more: ";
        assert!(said.starts_with(each), "{said}");
    }

    #[test]
    fn metrics_of_throttling_need_periods() {
        let few = |metric: &str| {
            let runs: [&[_]; 2] = [&[("/web", 5), ("/in", 30)], &[("/web", 60)]];
            has_few_periods(&variant("base", &runs), metric)
        };
        assert!(few("/web/throttled_pct") && !few("/in/throttled_pct"));
        assert!(!few("throttled_pct"), "all groups together have enough");
        assert!(!few("/web/usage_usec") && !few("web.latency_us.p99"));
        let alone = variant("base", &[&[("/web", 5)]]);
        assert!(has_few_periods(&alone, "slow_periods_pct"));
    }
}

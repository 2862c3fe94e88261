//! Metrics of groups that base and patch have of other groups, or by another measure.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::{GROUP_METRICS, MetricInfo};
use crate::groups::limited;
use crate::result::{GroupStat, OfMetric, Variant};

/// Metrics of groups with a limit that count periods, what is done in each, or a share of them.
const OF_PERIODS: [&str; 7] = [
    "throttled_pct",
    "slow_periods_pct",
    "nr_throttled",
    "nr_periods",
    "nr_bursts",
    "quota_walks",
    "quota_moves",
];

/// Groups whose periods are of another length in patch than in base, if `metric` counts periods of
/// theirs: of ten times as many periods more are throttled, whatever that costs.
pub(crate) fn of_other_periods(metric: &str, base: &Variant, patch: &Variant) -> Vec<String> {
    let (path, name) = metric.rsplit_once('/').unwrap_or(("", metric));
    if !OF_PERIODS.contains(&name) {
        return Vec::new();
    }
    let (base, patch) = (periods(base), periods(patch));
    let differ = |(group, own): (&&str, &BTreeSet<&str>)| {
        let others = patch.get(group)?;
        (others != own && (path.is_empty() || path == *group)).then(|| (*group).to_string())
    };
    base.iter().filter_map(differ).collect()
}

/// The lengths of the periods, us, of each group that has a limit.
fn periods(variant: &Variant) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for group in variant.runs.iter().flat_map(|run| &run.groups) {
        let later = group.limits.iter().map(|limit| &*limit.max);
        for (quota, period) in later
            .chain([&*group.max])
            .filter_map(|max| max.split_once(' '))
        {
            if quota != "max" {
                all.entry(&group.path).or_default().insert(period);
            }
        }
    }
    all
}

/// Why what base and patch say of a metric is not to be held against each other, if so.
pub(super) fn unlike(info: &MetricInfo, base: &Variant, patch: &Variant) -> Option<OfMetric> {
    let metric = info.name.clone();
    let groups = limited_in_one(&metric, base, patch);
    if !groups.is_empty() {
        return Some(OfMetric::OtherGroups { metric, groups });
    }
    let groups = own_yardsticks(&metric, base, patch);
    (!groups.is_empty()).then_some(OfMetric::OwnYardsticks { metric, groups })
}

/// Groups that have a limit in one of the variants only, if `metric` is a share of the periods of
/// all that have one: then it is of other periods there, and more or less of them says nothing. A
/// variant without any limit has no such periods, and a share of 0, which is what it is.
pub(crate) fn limited_in_one(metric: &str, base: &Variant, patch: &Variant) -> Vec<String> {
    let limited_in = |variant| limited(std::slice::from_ref(variant));
    let (base, patch) = (limited_in(base), limited_in(patch));
    if !GROUP_METRICS.contains(&metric) || base.is_empty() || patch.is_empty() {
        return Vec::new();
    }
    let paths = base.symmetric_difference(&patch);
    paths.map(|path| (*path).to_string()).collect()
}

/// Groups whose slow periods were told by another time in patch than in base, if `metric` is the
/// share of those, of one group or of all. Each of two saved results has its own.
fn own_yardsticks(metric: &str, base: &Variant, patch: &Variant) -> Vec<String> {
    let Some(path) = metric.strip_suffix("slow_periods_pct") else {
        return Vec::new();
    };
    let slow_of = |variant: &Variant| {
        let mut all: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        for run in &variant.runs {
            let meant = |g: &&GroupStat| path.is_empty() || path.strip_suffix('/') == Some(&g.path);
            for group in run.groups.iter().filter(meant) {
                if let Some(ns) = group.wait.as_ref().and_then(|wait| wait.slow_ns) {
                    all.entry(group.path.clone())
                        .or_default()
                        .insert(run.seed, ns);
                }
            }
        }
        all
    };
    let (base, patch) = (slow_of(base), slow_of(patch));
    let own = |(path, base): (String, BTreeMap<u64, u64>)| {
        let patch = patch.get(&path)?;
        let both = base.iter().filter(|(seed, _)| patch.contains_key(seed));
        let own = match both.clone().count() {
            // Of other seeds: one time for all of them, as with `--slow`, or each its own.
            0 => {
                base.values()
                    .chain(patch.values())
                    .collect::<BTreeSet<_>>()
                    .len()
                    > 1
            }
            _ => both.clone().any(|(seed, ns)| patch[seed] != *ns),
        };
        own.then_some(path)
    };
    base.into_iter().filter_map(own).collect()
}

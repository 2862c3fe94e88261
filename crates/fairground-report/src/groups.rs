//! Groups with a limit or a weight of their own: what `cpu.stat` says of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::result::{BurstFrom, CpuStat, GroupStat, LimitFrom, Run, Variant, WeightFrom};
use crate::stats::finite;

/// Most groups that a result keeps by themselves.
const GROUPS_MAX: usize = 64;

impl GroupStat {
    /// `cpu.max`, or what it was at first, and what it became: `10000 100000, max from 400 ms`.
    fn max_text(&self) -> String {
        let [first, later @ .., last] = &self.limits[..] else {
            return self.max.clone();
        };
        let short = |limit: &LimitFrom| match limit.max.starts_with("max") {
            true => "max".to_string(),
            false => limit.max.clone(),
        };
        let from = |limit: &LimitFrom| (short(limit), limit.from_ns);
        course(short(first), later.iter().map(from), from(last))
    }

    /// The same of `cpu.max.burst`.
    fn burst_text(&self) -> String {
        let [first, later @ .., last] = &self.bursts[..] else {
            return self.burst.to_string();
        };
        let from = |burst: &BurstFrom| (burst.burst.to_string(), burst.from_ns);
        course(first.burst.to_string(), later.iter().map(from), from(last))
    }

    /// `cpu.weight`, or shares that none stands for.
    pub(crate) fn own_weight_text(&self) -> String {
        let shares = self.shares.map(|shares| format!("{shares} shares"));
        shares.unwrap_or_else(|| self.weight.to_string())
    }

    /// The same of `cpu.weight`.
    fn weight_text(&self) -> String {
        if let [first, later @ .., last] = &self.weights[..] {
            let from = |w: &WeightFrom| (w.weight.clone(), w.from_ns);
            return course(first.weight.clone(), later.iter().map(from), from(last));
        }
        match self.idle {
            true => "idle".into(),
            false => self.own_weight_text(),
        }
    }
}

/// A value, what it became and when; of more than three the last.
fn course(
    first: String,
    later: impl ExactSizeIterator<Item = (String, u64)>,
    last: (String, u64),
) -> String {
    let from = |(value, ns): (String, u64)| format!("{value} from {}", time_text(ns));
    let between = match later.len() {
        0 => String::new(),
        1 => later.map(|one| from(one) + ", ").collect(),
        more => format!("{more} more, "),
    };
    format!("{first}, {between}{}", from(last))
}

/// A time in whole or broken seconds or milliseconds, as people write it: `2 s`, `1.5 ms`.
#[must_use]
pub fn time_text(ns: u64) -> String {
    match ns {
        _ if ns > 0 && ns.is_multiple_of(1_000_000_000) => format!("{} s", ns / 1_000_000_000),
        _ => format!("{} ms", ns as f64 / 1e6),
    }
}

/// Keeps the same groups in all runs: those that were throttled longest in all of them together,
/// then in order of their paths; the others are summed.
pub(crate) fn cut_groups(variants: &mut [Variant]) {
    let mut throttled: BTreeMap<String, u64> = BTreeMap::new();
    for group in runs(variants).flat_map(|run| &run.groups) {
        *throttled.entry(group.path.clone()).or_default() += group.stat.throttled_usec;
    }
    let mut order: Vec<(Reverse<u64>, String)> = throttled
        .into_iter()
        .map(|(path, us)| (Reverse(us), path))
        .collect();
    order.sort();
    let places = order.iter().take(GROUPS_MAX).enumerate();
    let place: BTreeMap<&str, usize> = places.map(|(i, (_, path))| (&**path, i)).collect();
    for run in variants.iter_mut().flat_map(|v| &mut v.runs) {
        let (mut kept, rest): (Vec<_>, Vec<_>) = run
            .groups
            .drain(..)
            .partition(|g| place.contains_key(&*g.path));
        kept.sort_by_key(|g| place.get(&*g.path));
        run.groups = kept;
        for group in rest.into_iter().filter(|g| g.counted) {
            let others = run.other_groups.get_or_insert_default();
            others.groups += 1;
            others.stat.add(&group.stat);
        }
    }
}

/// A group in one variant: means over its runs.
pub(crate) struct GroupMeans {
    /// Path, or how many others there are.
    pub name: String,
    /// `cpu.max`, and `cpu.max.burst` in us; none of others.
    pub limit: Option<(String, String)>,
    /// `cpu.weight`, or `idle` where `cpu.idle` is 1; none of others.
    pub weight: Option<String>,
    pub periods: f64,
    pub throttled: f64,
    pub throttled_ms: f64,
    pub bursts: f64,
    pub burst_ms: f64,
    pub usage_ms: f64,
    /// CPUs that it used on average.
    pub cpus: Option<f64>,
}

impl GroupMeans {
    /// Share of periods that were throttled, percent.
    pub fn throttled_pct(&self) -> f64 {
        if self.periods > 0.0 {
            100.0 * self.throttled / self.periods
        } else {
            0.0
        }
    }
}

/// Paths of the groups that have a limit in any variant, as they are to be shown; `None` at the end
/// if there are others.
pub(crate) fn listed(variants: &[Variant]) -> Vec<Option<&str>> {
    let limited = limited(variants);
    let mut paths: Vec<Option<&str>> = Vec::new();
    paths.extend(all(variants).filter(|p| limited.contains(p)).map(Some));
    if runs(variants).any(|run| run.other_groups.is_some()) {
        paths.push(None);
    }
    paths
}

/// How many groups with a limit are kept as a sum only.
pub(crate) fn summed(variants: &[Variant]) -> u64 {
    let others = runs(variants).filter_map(|run| run.other_groups.as_ref());
    others.map(|others| others.groups).max().unwrap_or(0)
}

/// Paths of the groups that have a weight of their own and no limit in any variant.
pub(crate) fn weighed(variants: &[Variant]) -> Vec<&str> {
    let limited = limited(variants);
    all(variants).filter(|p| !limited.contains(p)).collect()
}

/// Paths of all groups, each once, in the order of the first run that has it.
fn all(variants: &[Variant]) -> impl Iterator<Item = &str> {
    let mut seen = BTreeSet::new();
    let groups = runs(variants).flat_map(|run| &run.groups);
    let paths = groups.map(|g| g.path.as_str());
    paths.filter(move |path| seen.insert(*path))
}

/// Groups that have a limit at the end of a run of some variant, or had one during it.
pub(crate) fn limited(variants: &[Variant]) -> BTreeSet<&str> {
    let groups = runs(variants).flat_map(|run| &run.groups);
    let is_limit = |max: &str| !max.starts_with("max");
    let limited = groups.filter(|g| {
        let later = g.limits.iter().any(|limit| is_limit(&limit.max));
        is_limit(&g.max) || later || g.stat.nr_periods > 0
    });
    limited.map(|g| g.path.as_str()).collect()
}

/// What a variant says about a group (`None`: the others), if anything.
pub(crate) fn means(variant: &Variant, path: Option<&str>) -> Option<GroupMeans> {
    let mut sum = CpuStat::default();
    let (mut found, mut group, mut others) = (0u64, None, 0);
    let mut time_s = 0.0;
    for run in &variant.runs {
        let stat = match path {
            Some(path) => run.groups.iter().find(|g| g.path == path).map(|g| {
                group = Some(g);
                &g.stat
            }),
            None => run.other_groups.as_ref().map(|o| {
                others = others.max(o.groups);
                &o.stat
            }),
        };
        let Some(stat) = stat else { continue };
        sum.add(stat);
        time_s += run.metric("sim_time_s").unwrap_or(0.0);
        found += 1;
    }
    if found == 0 {
        return None;
    }
    let mean = |n: u64| n as f64 / found as f64;
    Some(GroupMeans {
        name: path.map_or_else(|| format!("{others} others"), String::from),
        limit: group.map(|g| (g.max_text(), g.burst_text())),
        weight: group.map(GroupStat::weight_text),
        periods: mean(sum.nr_periods),
        throttled: mean(sum.nr_throttled),
        throttled_ms: mean(sum.throttled_usec) / 1e3,
        bursts: mean(sum.nr_bursts),
        burst_ms: mean(sum.burst_usec) / 1e3,
        usage_ms: mean(sum.usage_usec) / 1e3,
        cpus: finite(sum.usage_usec as f64 / 1e6 / time_s),
    })
}

fn runs(variants: &[Variant]) -> impl Iterator<Item = &Run> {
    variants.iter().flat_map(|v| &v.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, groups: u64) -> Run {
        let group = |i: u64| GroupStat {
            path: format!("/g{i}"),
            counted: true,
            max: "20000 100000".into(),
            weight: 100,
            stat: CpuStat {
                nr_periods: 10,
                nr_throttled: i % 10,
                throttled_usec: 1000 * i,
                ..CpuStat::default()
            },
            ..GroupStat::default()
        };
        Run {
            groups: (0..groups).map(group).collect(),
            ..Run::new(seed)
        }
    }

    fn variant(runs: Vec<Run>) -> Variant {
        Variant {
            name: "base".into(),
            runs,
            ..Variant::default()
        }
    }

    #[test]
    fn the_most_throttled_stay_and_the_rest_is_summed() {
        let mut variants = [variant(vec![run(1, 1000), run(2, 1000)])];
        cut_groups(&mut variants);
        let [
            Run {
                groups,
                other_groups: Some(others),
                ..
            },
            _,
        ] = &variants[0].runs[..]
        else {
            panic!("two runs with others");
        };
        assert_eq!((groups.len(), others.groups), (64, 936));
        assert_eq!(groups[0].path, "/g999");
        assert_eq!(others.stat.nr_periods, 9360);
        assert_eq!(others.stat.throttled_usec, 1000 * (0..936).sum::<u64>());
        assert_eq!(listed(&variants).len(), 65);
        // Read back from a file and cut again, it is the same.
        let before = variants.clone();
        cut_groups(&mut variants);
        assert_eq!(variants, before);
    }

    #[test]
    fn a_burst_that_changed_is_shown_with_its_times() {
        let from = |&(from_ns, burst): &(u64, u64)| BurstFrom { from_ns, burst };
        let shown = |bursts: &[(u64, u64)]| {
            GroupStat {
                burst: 7,
                bursts: bursts.iter().map(from).collect(),
                ..GroupStat::default()
            }
            .burst_text()
        };
        assert_eq!(shown(&[]), "7");
        assert_eq!(shown(&[(0, 5000), (2_000_000, 0)]), "5000, 0 from 2 ms");
    }

    #[test]
    fn a_limit_that_changed_is_shown_with_its_times() {
        let limit = |(ms, max): &(u64, &str)| LimitFrom {
            from_ns: ms * 1_000_000,
            max: (*max).into(),
        };
        let shown = |limits: &[(u64, &str)]| {
            let limits = limits.iter().map(limit).collect();
            GroupStat {
                max: "5000 100000".into(),
                limits,
                ..GroupStat::default()
            }
            .max_text()
        };
        let (ten, max) = ((0, "10000 100000"), (400, "max 100000"));
        assert_eq!(shown(&[]), "5000 100000");
        assert_eq!(shown(&[ten, max]), "10000 100000, max from 400 ms");
        let back = (2000, "5000 100000");
        let text = "10000 100000, max from 400 ms, 5000 100000 from 2 s";
        assert_eq!(shown(&[ten, max, back]), text);
        let text = "10000 100000, 2 more, 5000 100000 from 2 s";
        assert_eq!(shown(&[ten, max, max, back]), text);
    }

    #[test]
    fn means_are_over_the_runs_that_have_the_group() {
        let few = variant(vec![run(1, 3), run(2, 2)]);
        let mean = means(&few, Some("/g2")).unwrap();
        assert_eq!((mean.periods, mean.throttled_ms), (10.0, 2.0));
        assert_eq!(mean.throttled_pct(), 20.0);
        assert!(means(&few, Some("/x")).is_none() && means(&few, None).is_none());
    }
}

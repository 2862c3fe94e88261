//! Tables of what runs were watched for.

use std::cmp::Reverse;
use std::fmt;

use super::groups::{by_group, more_than_shown, shown};
use super::head::labelled;
use super::quota_work::work_text;
use super::table::{Align, render};
use super::throttled_by::throttled_by_text;
use crate::number::{few, number};
use crate::result::{Delay, DelayedStretch, IdleWaste, QuotaWait, Run, VainWait, Variant};
use crate::stats::finite;

/// What the sides were watched for. `why` says how to look at the longest wait of a side, and is
/// told the seed, and whether that is the last side.
pub fn watched_text(
    variants: &[Variant],
    why: &dyn Fn(TaskAt, u64, bool) -> Option<String>,
) -> String {
    let last = variants.last().map(|v| v.name.clone());
    let why =
        |v: &Variant, seed: u64, wait: TaskAt| why(wait, seed, Some(&v.name) == last.as_ref());
    let tables = [
        quota_text(variants, &why),
        throttled_by_text(variants),
        work_text(variants),
        idle_text(variants, &why),
    ];
    tables
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// How to look at the longest wait of a side: with its seed.
type Why<'a> = &'a dyn Fn(&Variant, u64, TaskAt) -> Option<String>;

/// With another run of the seed.
pub fn run_why(_: &Variant, seed: u64, wait: TaskAt) -> Option<String> {
    Some(format!("run --seed {seed} --explain {wait}"))
}

/// A wait as `--explain` is asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskAt {
    tid: u32,
    from_ns: u64,
}

impl fmt::Display for TaskAt {
    /// What is explained is the last stretch that had begun by then, so its start is rounded up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.from_ns.div_ceil(100) as f64 / 1e4;
        write!(f, "{}@{ms:.4}ms", self.tid)
    }
}

/// How long CPUs were idle while tasks waited, and the worst case of it.
pub fn idle_text(variants: &[Variant], why: Why<'_>) -> String {
    const HEADER: [&str; 7] = [
        "idle while tasks waited",
        "CPU ms",
        "of all",
        "same cache",
        "> 100 us",
        "> 1 ms",
        "> 10 ms",
    ];
    let row = |variant: &Variant| {
        let means = IdleMeans::of(variant)?;
        let share = |pct: Option<f64>| pct.map_or("-".into(), |pct| format!("{pct:.3}%"));
        Some(vec![
            side(variant, variants).unwrap_or("mean").into(),
            number(Some(means.cpu_ms)),
            share(means.share),
            share(means.same_cache),
            few(means.us_100),
            few(means.ms_1),
            few(means.ms_10),
        ])
    };
    let rows: Vec<Vec<String>> = variants.iter().filter_map(row).collect();
    let mut align = [Align::Right; HEADER.len()];
    align[0] = Align::Left;
    let longest = variants
        .iter()
        .filter_map(|v| longest_text(v, side(v, variants), why));
    render(&HEADER, &rows, &align) + &longest.collect::<String>()
}

/// What a variant is called, if it is not the only one of a run, which is no base of anything.
fn side<'a>(variant: &'a Variant, variants: &[Variant]) -> Option<&'a str> {
    (variants.len() > 1 || variant.name != "base").then_some(&variant.name)
}

fn longest_text(variant: &Variant, side: Option<&str>, why: Why<'_>) -> Option<String> {
    let (seed, worst) = IdleMeans::of(variant)?.longest?;
    let place = if worst.same_cache { ", same cache" } else { "" };
    let line = format!(
        "{}{} us, {} on CPU {} beside CPU {}{place}",
        side.map_or(String::new(), |side| format!("{side}: ")),
        number(Some(worst.ns as f64 / 1e3)),
        worst.task,
        worst.cpu,
        worst.idle_cpu,
    );
    let (tid, from_ns) = (worst.tid, worst.from_ns);
    let why = why(variant, seed, TaskAt { tid, from_ns });
    Some(labelled("longest", &line) + &why_text(why))
}

fn why_text(why: Option<String>) -> String {
    why.map_or(String::new(), |why| labelled("", &format!("why: {why}")))
}

/// Idle CPUs: means over the runs of a variant, and the longest wait of all.
pub(crate) struct IdleMeans<'a> {
    pub cpu_ms: f64,
    /// Of all CPU time, percent.
    pub share: Option<f64>,
    /// The same where CPU and task share a cache.
    pub same_cache: Option<f64>,
    pub us_100: f64,
    pub ms_1: f64,
    pub ms_10: f64,
    /// With its seed.
    pub longest: Option<(u64, &'a VainWait)>,
}

impl<'a> IdleMeans<'a> {
    /// Of a variant, if it was watched.
    pub fn of(variant: &'a Variant) -> Option<Self> {
        let seen = |run: &'a Run| Some((run.seed, run.idle_waste.as_ref()?));
        let all: Vec<(u64, &IdleWaste)> = variant.runs.iter().filter_map(seen).collect();
        let mean = |of: fn(&IdleWaste) -> u64| {
            all.iter().map(|(_, w)| of(w)).sum::<u64>() as f64 / all.len() as f64
        };
        // The mean of the runs' shares, as `idle_waste_pct` is.
        let share = |of: fn(&IdleWaste) -> u64| {
            let pct = |(_, w): &(u64, &IdleWaste)| 100.0 * of(w) as f64 / w.capacity_ns as f64;
            finite(all.iter().map(pct).sum::<f64>() / all.len() as f64)
        };
        let longest = all
            .iter()
            .filter_map(|(s, w)| Some((*s, w.longest.as_ref()?)));
        (!all.is_empty()).then(|| Self {
            cpu_ms: mean(|w| w.cpu_ns) / 1e6,
            share: share(|w| w.cpu_ns),
            same_cache: share(|w| w.same_cache_ns),
            us_100: mean(|w| w.waits.us_100),
            ms_1: mean(|w| w.waits.ms_1),
            ms_10: mean(|w| w.waits.ms_10),
            longest: longest.max_by_key(|(seed, w)| (w.ns, Reverse(*seed))),
        })
    }
}

/// How long the tasks of each group with a limit waited for quota, and in how many periods that
/// made somebody slow.
pub fn quota_text(variants: &[Variant], why: Why<'_>) -> String {
    const HEADER: [&str; 8] = [
        "stretches",
        "waited",
        "p50 ms",
        "p99 ms",
        "usual ms",
        "periods",
        "harmless",
        "slow",
    ];
    let groups = variants
        .iter()
        .flat_map(|v| &v.runs)
        .flat_map(|r| &r.groups);
    if groups.into_iter().all(|group| group.wait.is_none()) {
        return String::new();
    }
    let groups = shown(variants);
    let text = by_group(
        "waiting for quota",
        &HEADER,
        variants,
        groups,
        |variant, path| Some(QuotaMeans::of(variant, path?)?.cells()),
    );
    let longest = variants
        .iter()
        .filter_map(|v| longest_wait_text(v, side(v, variants), why));
    text + &more_than_shown(variants) + &longest.collect::<String>()
}

/// The stretch that waited longest for quota, of all groups of a variant.
fn longest_wait_text(variant: &Variant, side: Option<&str>, why: Why<'_>) -> Option<String> {
    let (seed, path, worst) = longest_wait(variant)?;
    let line = format!(
        "{}{} ms for quota, {} of {path}",
        side.map_or(String::new(), |side| format!("{side}: ")),
        number(Some(worst.waited_ns as f64 / 1e6)),
        worst.task,
    );
    let (tid, from_ns) = (worst.tid, worst.held_from_ns);
    let why = why(variant, seed, TaskAt { tid, from_ns });
    Some(labelled("longest", &line) + &why_text(why))
}

/// With its seed and group; of several groups above each other the one that is named first, of
/// several seeds the first.
fn longest_wait(variant: &Variant) -> Option<(u64, &str, &DelayedStretch)> {
    let groups = variant.runs.iter().flat_map(|run| {
        let groups = run.groups.iter().enumerate();
        groups.map(move |(place, group)| (run.seed, place, group))
    });
    let waits = groups.filter_map(|(seed, place, group)| {
        let longest = group.wait.as_ref()?.longest.as_ref()?;
        Some((seed, place, &*group.path, longest))
    });
    // One that was saved before this was told has no time.
    let known = waits.filter(|(.., wait)| wait.waited_ns > 0 && wait.held_from_ns > 0);
    let worst = known
        .max_by_key(|(seed, place, _, wait)| (wait.waited_ns, Reverse(*seed), Reverse(*place)));
    worst.map(|(seed, _, path, wait)| (seed, path, wait))
}

/// Means over the runs of a variant.
pub(crate) struct QuotaMeans {
    pub stretches: f64,
    pub delayed: f64,
    /// How long those took that waited, of runs in which some did; `None` if none did in any.
    pub delay_ms: Option<[f64; 3]>,
    /// What is usual, of runs in which something is; `None` if in none.
    pub usual_ms: Option<f64>,
    pub periods: f64,
    /// Those that were slow; `None` where no stretch ended, so that nothing is usual.
    pub slow: Option<f64>,
}

impl QuotaMeans {
    /// Of a group, if it was watched.
    pub fn of(variant: &Variant, path: &str) -> Option<Self> {
        let groups = variant.runs.iter().flat_map(|run| &run.groups);
        let found = groups.filter(|g| g.path == path);
        let found: Vec<&QuotaWait> = found.filter_map(|g| g.wait.as_ref()).collect();
        let mean = |of: fn(&QuotaWait) -> u64| {
            found.iter().map(|w| of(w)).sum::<u64>() as f64 / found.len() as f64
        };
        (!found.is_empty()).then(|| Self {
            stretches: mean(|w| w.stretches),
            delayed: mean(|w| w.delayed),
            delay_ms: delay_ms(&found),
            usual_ms: usual_ms(&found),
            periods: mean(|w| w.periods_waited),
            slow: found
                .iter()
                .all(|w| w.slow_ns.is_some() || w.periods_waited == 0)
                .then(|| mean(|w| w.periods_slow)),
        })
    }

    fn cells(&self) -> Vec<String> {
        vec![
            few(self.stretches),
            few(self.delayed),
            number(self.delay_ms.map(|d| d[0])),
            number(self.delay_ms.map(|d| d[1])),
            number(self.usual_ms),
            few(self.periods),
            self.harmless().map_or("-".into(), few),
            self.slow.map_or("-".into(), few),
        ]
    }

    /// Periods with waiting that made nobody slow.
    pub fn harmless(&self) -> Option<f64> {
        self.slow.map(|slow| self.periods - slow)
    }
}

/// What is usual, ms: the mean over the runs in which something is. Older results have 0 where
/// nothing was.
fn usual_ms(waits: &[&QuotaWait]) -> Option<f64> {
    let known = || waits.iter().filter_map(|w| w.usual_ns).filter(|ns| *ns > 0);
    let runs = known().count();
    (runs > 0).then(|| known().sum::<u64>() as f64 / runs as f64 / 1e6)
}

/// Median, 99th percentile and longest of the waits, ms: means over the runs that have some, as one
/// without has none that is 0 ms long.
fn delay_ms(waits: &[&QuotaWait]) -> Option<[f64; 3]> {
    let some = || waits.iter().filter(|w| w.delayed > 0).map(|w| &w.delay);
    let runs = some().count() as f64;
    let mean =
        |of: fn(&Delay) -> Option<u64>| some().filter_map(of).sum::<u64>() as f64 / runs / 1e6;
    (runs > 0.0).then(|| [mean(|d| d.p50_ns), mean(|d| d.p99_ns), mean(|d| d.max_ns)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{GroupStat, WaitsOver};

    fn run(seed: u64, ns: u64) -> Run {
        let longest = VainWait {
            task: "worker-1009".into(),
            tid: 1009,
            cpu: 130,
            idle_cpu: 7,
            same_cache: ns > 2_000_000,
            from_ns: 1_873_265_601,
            ns,
        };
        Run {
            idle_waste: Some(IdleWaste {
                capacity_ns: 1_000_000_000,
                cpu_ns: 5_000_000,
                same_cache_ns: 1_000_000,
                waits: WaitsOver {
                    us_10: 100,
                    us_100: 10,
                    ms_1: seed,
                    ms_10: 0,
                },
                longest: Some(longest),
            }),
            groups: vec![GroupStat {
                path: "/web".into(),
                wait: Some(QuotaWait {
                    stretches: 4198,
                    delayed: 337,
                    usual_ns: Some(13_170_000),
                    slow_ns: Some(14_487_000),
                    delay: Delay::of(1, [15_180_000, 58_120_000, 65_200_000]),
                    periods_waited: 44 + seed,
                    periods_slow: 30,
                    ..QuotaWait::default()
                }),
                ..GroupStat::default()
            }],
            ..Run::new(seed)
        }
    }

    fn side(name: &str, runs: Vec<Run>) -> Variant {
        Variant {
            name: name.into(),
            runs,
            ..Variant::default()
        }
    }

    #[test]
    fn a_run_alone_has_no_side() {
        let text = idle_text(&[side("base", vec![run(1, 3_000_000)])], &run_why);
        assert!(text.contains("\nmean ") && !text.contains("base"), "{text}");
        assert!(text.contains("\nlongest   3000 us, "), "{text}");
    }

    #[test]
    fn the_longest_wait_of_all_seeds_can_be_explained() {
        let base = side("base", vec![run(1, 1_000_000), run(2, 3_000_000)]);
        let text = idle_text(&[base, side("patch", vec![run(1, 500_000)])], &run_why);
        assert!(
            text.contains("0.500%      0.100%        10     1.5"),
            "{text}"
        );
        let worst = "base: 3000 us, worker-1009 on CPU 130 beside CPU 7, same cache\n";
        assert!(text.contains(worst), "{text}");
        let why = "why: run --seed 2 --explain 1009@1873.2657ms\n";
        assert!(text.contains(why), "{text}");
        assert!(text.lines().all(|l| l.len() < 100), "{text}");
        assert_eq!(idle_text(&[side("base", vec![Run::new(1)])], &run_why), "");
    }

    #[test]
    fn periods_are_harmless_or_slow() {
        let mut two = vec![run(1, 1), run(2, 1)];
        let wait = two[1].groups[0].wait.as_mut().unwrap();
        (wait.stretches, wait.delayed) = (4199, 338);
        let base = side("base", two);
        let text = quota_text(&[base, side("patch", vec![Run::new(1)])], &run_why);
        assert!(text.contains("45.5      15.5    30\n"), "{text}");
        // Both with a decimal, so that no more seem to have waited than there were.
        assert!(text.contains("   4198.5   337.5 "), "{text}");
        assert!(text.lines().all(|l| l.len() < 100), "{text}");
        assert_eq!(quota_text(&[side("base", vec![Run::new(1)])], &run_why), "");
    }

    #[test]
    fn periods_of_which_nothing_is_usual_are_neither() {
        let mut unknown = run(1, 1);
        if let Some(wait) = &mut unknown.groups[0].wait {
            (wait.usual_ns, wait.slow_ns, wait.periods_slow) = (None, None, 0);
        }
        let text = quota_text(&[side("base", vec![unknown])], &run_why);
        assert!(text.contains("-       45         -     -\n"), "{text}");
    }

    #[test]
    fn the_longest_wait_for_quota_can_be_explained() {
        let stretch = |waited_ns: u64| DelayedStretch {
            task: "hog-1000".into(),
            tid: 1000,
            from_ns: 100,
            took_ns: 2 * waited_ns,
            waited_ns,
            held_from_ns: 1_873_265_601,
        };
        let with = |seed: u64, waited_ns: u64| {
            let mut run = run(seed, 1);
            run.groups[0].wait.as_mut().unwrap().longest = Some(stretch(waited_ns));
            run
        };
        let base = side("base", vec![with(1, 1_000_000), with(2, 3_500_000)]);
        let text = quota_text(&[base, side("patch", vec![with(3, 0)])], &run_why);
        let worst = "longest   base: 3.500 ms for quota, hog-1000 of /web\n          \
                     why: run --seed 2 --explain 1000@1873.2657ms\n";
        assert!(text.ends_with(worst), "{text}");
        let alone = quota_text(&[side("base", vec![with(1, 9_000_000)])], &run_why);
        assert!(
            alone.contains("\nlongest   9.000 ms for quota, hog"),
            "{alone}"
        );
    }
}

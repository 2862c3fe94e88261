//! What runs were watched for: CPUs that were idle while tasks waited, and waiting for quota.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::note::{Note, OfWaiting};
use crate::result::Variant;

/// CPUs that were idle while a task waited that could have run there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleWaste {
    /// Time of all CPUs together, measured.
    pub capacity_ns: u64,
    /// The part of it that was lost so.
    pub cpu_ns: u64,
    /// The part of that in which CPU and task shared the last-level cache.
    pub same_cache_ns: u64,
    /// How often one task waited so, by how long.
    pub waits: WaitsOver,
    /// The longest of these waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<VainWait>,
}

/// Wake-ups whose task had not run by the end of the run: `wakeup_latency_us` cannot have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StillWaiting {
    /// How many.
    pub waiting: u64,
    /// Of how many wake-ups: these, and those that are in `wakeup_latency_us`.
    pub wakeups: u64,
    /// How long the longest of these waits had lasted by then.
    pub longest_ns: u64,
}

/// Requests of one kind that were not answered by the end of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenRequests {
    /// Its name.
    pub request: String,
    /// How many were open.
    pub open: u64,
    /// How many had been answered in the measured time.
    pub ended: u64,
    /// For how long the oldest had been open.
    pub longest_ns: u64,
    /// Metrics that have no value for that reason: so many were open that the percentile of all may
    /// be above every one that was answered.
    pub undecided: Vec<String>,
    /// What each of these is at least: its value if all that were open had been answered then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_least: BTreeMap<String, f64>,
}

/// Numbers of waits by length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitsOver {
    /// More than 10 us.
    pub us_10: u64,
    /// More than 100 us.
    pub us_100: u64,
    /// More than 1 ms.
    pub ms_1: u64,
    /// More than 10 ms.
    pub ms_10: u64,
}

/// A task that waited while a CPU was idle that it could have used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VainWait {
    /// Name and thread id.
    pub task: String,
    /// Thread id, as `--explain` takes it.
    pub tid: u32,
    /// Where it waited.
    pub cpu: u32,
    /// A CPU that was idle when the wait began.
    pub idle_cpu: u32,
    /// Whether the two share the last-level cache.
    pub same_cache: bool,
    /// From when, counted from the start of the run, warm-up included.
    pub from_ns: u64,
    /// How long.
    pub ns: u64,
}

/// Waiting for quota of the tasks of a group. A stretch is from a wake-up to the next sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaWait {
    /// Stretches.
    pub stretches: u64,
    /// Those that waited for quota.
    pub delayed: u64,
    /// What is usual: 99 % of the stretches took no longer that touched no period with waiting for
    /// quota (or, where these are few, would not have, had none waited), on the side whose
    /// stretches waited least; 0 where none has ended.
    pub usual_ns: u64,
    /// Too many waited for quota there to tell what is usual. Not where `--slow` says what is slow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usual_is_unreliable: bool,
    /// Longer than that is slow: a tenth more, or what was asked for; `null` where no stretch has
    /// ended, so that nothing is usual.
    pub slow_ns: Option<u64>,
    /// How long stretches waited for quota, of those that did.
    pub delay: Delay,
    /// Periods in which a task waited for quota.
    pub periods_waited: u64,
    /// Those of them in which that made a stretch slow.
    pub periods_slow: u64,
    /// Those in which a task waited that `nr_periods` lacks: a write of `max` cut them off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// The stretch that waited longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<DelayedStretch>,
}

/// What throttling the queues of a group made CPUs do. A queue is that of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaWork {
    /// Queues that were throttled.
    pub throttled: u64,
    /// Queues that were unthrottled.
    pub unthrottled: u64,
    /// Groups visited by both (`tg_throttle_down`, `tg_unthrottle_up`).
    pub walked: u64,
    /// Tasks that were taken off the queues.
    pub put_off: u64,
    /// Tasks that were put back.
    pub put_back: u64,
    /// Groups visited in a period in which a queue was throttled or unthrottled.
    pub walked_in_period: Quantiles,
    /// Tasks taken off and put back in such a period.
    pub moved_in_period: Quantiles,
    /// The period timer's handler, where it handed out quota.
    pub timer: IrqsOff,
    /// Throttling one queue.
    pub throttle: IrqsOff,
    /// Unthrottling one queue, in the timer's handler or an interrupt.
    pub unthrottle: IrqsOff,
}

/// Quantiles of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Most.
    pub max: u64,
}

/// Stretches of a CPU with its interrupts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IrqsOff {
    /// How many.
    pub times: u64,
    /// How long.
    #[serde(flatten)]
    pub took: Delay,
    /// On which CPU the longest was; `null` if there was none.
    pub cpu: Option<u32>,
    /// When it began, counted from the start of the run, warm-up included.
    pub from_ns: Option<u64>,
}

/// Quantiles of a delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delay {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// A stretch that waited for quota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DelayedStretch {
    /// Name and thread id.
    pub task: String,
    /// Thread id, as `--explain` takes it.
    pub tid: u32,
    /// Its wake-up, counted from the start of the run, warm-up included.
    pub from_ns: u64,
    /// Until it slept again.
    pub took_ns: u64,
    /// How much of that it waited for quota.
    pub waited_ns: u64,
    /// When the longest of these waits began, counted as `from_ns`: the time for `--explain`.
    #[serde(default)]
    pub held_from_ns: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Most groups whose notes are given one by one.
const GROUPS_NOTED: usize = 3;

/// That nothing is usual, or that what is usual is not known well, of groups where many waited for
/// quota on all sides.
pub(crate) fn doubtful_usual<'a>(variants: impl Iterator<Item = &'a Variant> + Clone) -> Vec<Note> {
    let none = groups_where(variants.clone(), |w| w.slow_ns.is_none());
    let mut doubtful = groups_where(variants, |w| w.usual_is_unreliable);
    doubtful.retain(|path| !none.contains(path));
    let none = told(&none).map(OfWaiting::NothingUsual);
    let doubtful = told(&doubtful).map(OfWaiting::UnreliableUsual);
    none.into_iter()
        .chain(doubtful)
        .map(Note::Waiting)
        .collect()
}

/// The words on groups in which nothing is usual.
pub(crate) fn nothing_usual_words(groups: &[String]) -> String {
    format!(
        "nothing is usual in {}: in a run no stretch ended in a sleep, so which periods are \
         harmless or slow has no value (`-`). A quota takes the throughput of tasks that never \
         sleep; they have no latency that it could make worse",
        groups.join(", ")
    )
}

/// Paths of groups that waited for quota in a run in which something holds.
fn groups_where<'a>(
    variants: impl Iterator<Item = &'a Variant>,
    holds: fn(&QuotaWait) -> bool,
) -> BTreeSet<&'a str> {
    let groups = variants.flat_map(|v| &v.runs).flat_map(|run| &run.groups);
    let waits = groups.filter_map(|g| Some((&*g.path, g.wait.as_ref()?)));
    let found = waits.filter(|(_, w)| w.periods_waited > 0 && holds(w));
    found.map(|(path, _)| path).collect()
}

/// The first of some groups, and how many more.
fn told(paths: &BTreeSet<&str>) -> Option<Vec<String>> {
    let mut told: Vec<String> = Vec::new();
    told.extend(paths.iter().take(GROUPS_NOTED).map(|path| (*path).into()));
    if paths.len() > GROUPS_NOTED {
        told.push(format!("{} more", paths.len() - GROUPS_NOTED));
    }
    (!told.is_empty()).then_some(told)
}

/// What to say of wake-ups that percentiles do not have; nothing where all of these waits are
/// still shorter than the 99th.
pub(crate) fn still_waiting(variant: &Variant, whose: Option<String>) -> Option<Note> {
    let mut all = StillWaiting::default();
    let (mut runs, mut matters) = (0, false);
    for run in &variant.runs {
        let Some(found) = run.still_waiting else {
            continue;
        };
        let p99_us = run.metric("wakeup_latency_us.p99").unwrap_or(0.0);
        matters |= found.longest_ns as f64 > p99_us * 1e3;
        runs += 1;
        all.waiting += found.waiting;
        all.wakeups += found.wakeups;
        all.longest_ns = all.longest_ns.max(found.longest_ns);
    }
    let runs = [runs, variant.runs.len()];
    matters.then_some(Note::Waiting(OfWaiting::Still { whose, all, runs }))
}

/// What to say of requests that leave metrics undecided.
pub(crate) fn open_requests(variant: &Variant, whose: &Option<String>) -> Vec<Note> {
    let mut all: BTreeMap<&str, (usize, OpenRequests)> = BTreeMap::new();
    let open = variant.runs.iter().flat_map(|run| &run.open_requests);
    for found in open.filter(|found| !found.undecided.is_empty()) {
        let (runs, sum) = all.entry(&found.request).or_default();
        *runs += 1;
        sum.request.clone_from(&found.request);
        sum.open += found.open;
        sum.ended += found.ended;
        sum.longest_ns = sum.longest_ns.max(found.longest_ns);
        for metric in &found.undecided {
            if !sum.undecided.contains(metric) {
                sum.undecided.push(metric.clone());
            }
        }
    }
    let say = |(runs, all)| {
        Note::Waiting(OfWaiting::Open {
            whose: whose.clone(),
            all,
            runs: [runs, variant.runs.len()],
        })
    };
    all.into_values().map(say).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::GroupStat;
    use crate::result::Run;

    #[test]
    fn only_groups_that_waited_without_a_good_yardstick_are_noted() {
        let group = |(path, usual_is_unreliable, periods_waited): (&str, bool, u64)| GroupStat {
            path: path.into(),
            wait: Some(QuotaWait {
                usual_is_unreliable,
                slow_ns: Some(1),
                periods_waited,
                ..QuotaWait::default()
            }),
            ..GroupStat::default()
        };
        let noted = |groups: &[(&str, bool, u64)]| {
            let run = Run {
                groups: groups.iter().copied().map(group).collect(),
                ..Run::new(1)
            };
            let runs = vec![run.clone(), run];
            let variant = Variant {
                runs,
                ..Variant::default()
            };
            let notes = doubtful_usual([&variant, &variant].into_iter());
            notes.into_iter().map(String::from).collect::<String>()
        };
        assert_eq!(noted(&[("/a", false, 9), ("/b", true, 0)]), "");
        let note = noted(&[("/b", true, 2), ("/a", true, 9)]);
        assert!(
            note.starts_with("what is usual in /a, /b is unreliable"),
            "{note}"
        );
        let many = ["/a", "/b", "/c", "/d", "/e"].map(|path| (path, true, 1));
        assert!(noted(&many).contains("in /a, /b, /c, 2 more is"));
    }

    #[test]
    fn where_nothing_is_usual_it_is_not_called_unreliable() {
        let group = |path: &str, slow_ns| GroupStat {
            path: path.into(),
            wait: Some(QuotaWait {
                usual_is_unreliable: true,
                slow_ns,
                periods_waited: 3,
                ..QuotaWait::default()
            }),
            ..GroupStat::default()
        };
        let run = Run {
            groups: vec![group("/a", None), group("/b", Some(1))],
            ..Run::new(1)
        };
        let variant = Variant {
            runs: vec![run],
            ..Variant::default()
        };
        let notes = doubtful_usual([&variant].into_iter());
        let notes: Vec<String> = notes.into_iter().map(String::from).collect();
        let [none, doubtful] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(
            none.starts_with("nothing is usual in /a: in a run no stretch ended"),
            "{none}"
        );
        assert!(
            doubtful.starts_with("what is usual in /b is unreliable"),
            "{doubtful}"
        );
    }
}

//! Notes on wake-ups and requests that came to no end, and on groups in which nobody knows how long
//! is usual, because they waited for quota.

use std::collections::{BTreeMap, BTreeSet};

use crate::result::{Note, OfWaiting, OpenRequests, QuotaWait, StillWaiting, Variant};

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
    use crate::result::{GroupStat, Run};

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

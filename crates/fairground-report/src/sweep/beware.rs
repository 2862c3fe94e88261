//! What a reader must know of the points of a sweep before believing them: each once, with the
//! points that it is about.

use super::target::Target;
use super::{Point, Sweep, notes};
use crate::compare::{limited_in_one, of_other_periods};
use crate::notes::{
    few_beyond_words, few_periods, few_periods_of, fewest, held_from_above, held_words,
    other_periods_words, too_short_for, without_value,
};
use crate::percentile::{few_beyond, too_few};
use crate::result::{Note, OfValues};

/// Adds the notes.
pub(super) fn note(sweep: &mut Sweep, targets: &[Target]) {
    let mut notes: Vec<Note> = Vec::new();
    notes.extend(not_sustained(sweep));
    notes.extend(too_short(sweep));
    notes.extend(from_above(sweep).map(Note::Said));
    notes.extend(periods(sweep));
    notes.extend(without_values(sweep));
    notes.extend(other_periods(sweep).map(Note::Said));
    let shown = sweep.metrics.iter().map(String::as_str);
    let targeted = targets.iter().map(Target::metric);
    let mut metrics: Vec<&str> = Vec::new();
    for metric in shown.chain(targeted) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    for metric in metrics {
        let of = |point: &Point| too_few(&point.variant, metric);
        let points = &sweep.points;
        if let Some(fewest) = points.iter().filter_map(of).min() {
            notes.push(Note::Values(OfValues::FewRequests {
                metric: metric.into(),
                whose: Some(named(sweep, |point| of(point).is_some())),
                fewest,
            }));
        }
        notes.extend(stands_on_few(sweep, metric).map(Note::Said));
        notes.extend(other_groups(sweep, metric).map(Note::Said));
    }
    sweep.notes.extend(notes);
}

fn not_sustained(sweep: &Sweep) -> Option<Note> {
    let mut kinds: Vec<String> = Vec::new();
    for kind in sweep.points.iter().flat_map(|point| &point.not_sustained) {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    let points = named(sweep, |point| !point.not_sustained.is_empty());
    let whose = Some(format!("with {points}"));
    (!kinds.is_empty()).then_some(Note::Values(OfValues::NotSustained { whose, kinds }))
}

fn too_short(sweep: &Sweep) -> Option<Note> {
    let mut kinds: Vec<String> = Vec::new();
    for kind in sweep
        .points
        .iter()
        .flat_map(|point| too_short_for(&point.variant))
    {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let points = named(sweep, |point| !too_short_for(&point.variant).is_empty());
    let whose = Some(format!("with {points}"));
    (!kinds.is_empty()).then_some(Note::Values(OfValues::TooShort { whose, kinds }))
}

/// Of the points with waiting for a quota above.
fn from_above(sweep: &Sweep) -> Option<String> {
    let mut held: Vec<(String, String)> = Vec::new();
    for pair in sweep
        .points
        .iter()
        .flat_map(|point| held_from_above(&point.variant))
    {
        if !held.contains(&pair) {
            held.push(pair);
        }
    }
    let whose = named(sweep, |point| !held_from_above(&point.variant).is_empty());
    held_words(&held, &format!("with {whose}, "))
}

fn periods(sweep: &Sweep) -> Option<Note> {
    let points = sweep.points.iter();
    let groups = fewest(points.map(|point| few_periods(&point.variant)));
    let whose = named(sweep, |point| !few_periods(&point.variant).is_empty());
    few_periods_of(groups, &format!("runs with {whose} have as few as"))
}

/// Of the metrics that are shown, each once.
fn without_values(sweep: &Sweep) -> Vec<Note> {
    let points = sweep.points.iter();
    let of_points: Vec<_> = points.map(|point| without_value(&point.variant)).collect();
    let one = |metric: &String| {
        let lacks = |place: usize| of_points[place].get(&**metric).copied();
        let lacking = (0..of_points.len()).filter_map(|i| Some((i, lacks(i)?)));
        let mut lacking = lacking.peekable();
        lacking.peek()?;
        let in_all = lacking.all(|(i, count)| count == sweep.points[i].variant.runs.len());
        let whose = named_at(sweep, |place| lacks(place).is_some());
        Some(Note::Said(match in_all {
            true => format!("`{metric}` has no value in any run with {whose}"),
            false => {
                format!("`{metric}` has no value in some runs with {whose}, which means leave out")
            }
        }))
    };
    sweep.metrics.iter().filter_map(one).collect()
}

/// Of the points whose percentile is not just the largest value of a run.
fn stands_on_few(sweep: &Sweep, metric: &str) -> Option<String> {
    let of = |point: &Point| match too_few(&point.variant, metric) {
        None => few_beyond(&point.variant, metric),
        Some(_) => None,
    };
    let fewest = sweep.points.iter().filter_map(of).min()?;
    let whose = named(sweep, |point| of(point).is_some());
    Some(few_beyond_words(metric, Some(whose), fewest))
}

/// Shares of periods are compared with those of the first point.
fn other_groups(sweep: &Sweep, metric: &str) -> Option<String> {
    let base = sweep
        .points
        .iter()
        .find(|point| !point.variant.runs.is_empty())?;
    let in_one = |point: &Point| limited_in_one(metric, &base.variant, &point.variant);
    let first = sweep
        .points
        .iter()
        .map(in_one)
        .find(|paths| !paths.is_empty())?;
    let points = named(sweep, |point| !in_one(point).is_empty());
    Some(format!(
        "`{metric}` is of all groups with a limit, and with {points} these are others than in the \
         first point, by {}: no verdict",
        first.join(", ")
    ))
}

/// Counts of periods are compared with those of the first point.
fn other_periods(sweep: &Sweep) -> Option<String> {
    let mut points = sweep.points.iter();
    let base = &points.find(|point| !point.variant.runs.is_empty())?.variant;
    let of = |metric: &String, point: &Point| of_other_periods(metric, base, &point.variant);
    let in_some = |metric: &&String| sweep.points.iter().any(|p| !of(metric, p).is_empty());
    let metrics: Vec<String> = sweep.metrics.iter().filter(in_some).cloned().collect();
    let in_point = |point: &Point| {
        let found = metrics.iter().flat_map(|metric| of(metric, point));
        found.collect::<Vec<String>>()
    };
    let mut groups: Vec<String> = sweep.points.iter().flat_map(in_point).collect();
    groups.sort();
    groups.dedup();
    let points = named(sweep, |point| !in_point(point).is_empty());
    let words = other_periods_words(&metrics, &groups);
    let words = format!("{words} with {points} than in the first point: neither better nor worse");
    (!groups.is_empty()).then_some(words)
}

/// These points in few words.
fn named(sweep: &Sweep, is: impl Fn(&Point) -> bool) -> String {
    named_at(sweep, |place| is(&sweep.points[place]))
}

fn named_at(sweep: &Sweep, is: impl Fn(usize) -> bool) -> String {
    let places: Vec<usize> = (0..sweep.points.len()).filter(|&i| is(i)).collect();
    let whose = notes::whose(&sweep.over, &sweep.points, &places);
    whose.unwrap_or_else(|| "all points".into())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sweep_of;
    use super::*;
    use crate::result::GroupStat;

    fn notes(mut sweep: Sweep) -> String {
        sweep.notes.clear();
        note(&mut sweep, &[]);
        let said = sweep.notes.into_iter().map(String::from);
        said.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_is_said_once_with_its_points() {
        assert_eq!(notes(sweep_of(&[3.0, 2.0, 1.0])), "");
        let mut sweep = sweep_of(&[3.0, 2.0, 1.0]);
        sweep.points[0].not_sustained = vec!["web".into()];
        for point in &mut sweep.points {
            point.variant.runs[1].samples.insert("test.p99".into(), 7);
        }
        let said = notes(sweep);
        assert!(
            said.contains("not sustained: with /web/cpu.max=1ms/10ms, `web` took longer"),
            "{said}"
        );
        assert!(
            said.contains("`test.p99` of all points is the largest value"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 2, "{said}");
    }

    #[test]
    fn a_metric_without_values_is_told_once_if_it_is_shown() {
        let mut sweep = sweep_of(&[3.0, 2.0, 1.0]);
        let lacks = |sweep: &mut Sweep, at: usize, runs: usize, metric: &str| {
            for run in &mut sweep.points[at].variant.runs[..runs] {
                run.metrics.insert(metric.into(), None);
            }
        };
        lacks(&mut sweep, 0, 3, "test.p99");
        lacks(&mut sweep, 1, 3, "test.p99");
        lacks(&mut sweep, 2, 1, "busy_pct");
        lacks(&mut sweep, 2, 3, "not.shown");
        let said = notes(sweep);
        let all = "`test.p99` has no value in any run with /web/cpu.max=1ms/10ms,2ms/10ms";
        let some = "`busy_pct` has no value in some runs with /web/cpu.max=3ms/10ms, which";
        assert!(said.contains(all) && said.contains(some), "{said}");
        assert!(!said.contains("not.shown"), "{said}");
    }

    #[test]
    fn counts_of_periods_of_another_length_are_told_once() {
        let mut sweep = sweep_of(&[3.0, 2.0, 1.0]);
        sweep.metrics = vec!["nr_throttled".into(), "throttled_pct".into()];
        for (at, max) in [(0, "1000 10000"), (1, "2000 10000"), (2, "10000 100000")] {
            for run in &mut sweep.points[at].variant.runs {
                run.groups = vec![GroupStat {
                    path: "/a".into(),
                    max: max.into(),
                    ..GroupStat::default()
                }];
            }
        }
        let said = notes(sweep);
        let words = "`nr_throttled`, `throttled_pct` count periods of /a, which are of another \
                     length with /web/cpu.max=3ms/10ms than in the first point";
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn shares_of_other_groups_than_the_first_are_told() {
        let mut sweep = sweep_of(&[3.0, 2.0, 1.0]);
        sweep.metrics = vec!["throttled_pct".into()];
        for (at, limited) in [(0, 1), (1, 1), (2, 2)] {
            for run in &mut sweep.points[at].variant.runs {
                let group = |path: &&str| GroupStat {
                    path: (*path).into(),
                    max: "1000 10000".into(),
                    ..GroupStat::default()
                };
                run.groups = ["/a", "/b"][..limited].iter().map(group).collect();
            }
        }
        let said = notes(sweep);
        assert!(
            said.contains("with /web/cpu.max=3ms/10ms these are others"),
            "{said}"
        );
        assert!(said.contains("by /b: no verdict"), "{said}");
    }
}

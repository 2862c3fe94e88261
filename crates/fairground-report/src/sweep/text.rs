//! The tables of a sweep: a row for each point, as many metrics side by side as fit.

use super::{Answer, Axis, Knee, Meets, Point, Reached, Spread, Sweep};
use crate::notes::has_few_periods;
use crate::number::number;
use crate::percentile::too_few;
use crate::result::{Comparison, Note, Variant};
use crate::text::{
    Align, EACH_ALONE, PER_WORDS, SAME_WORDS, Style, VERDICTS, foot, in_colour, labelled, render,
};

/// Columns that nothing may reach.
const WIDTH: usize = 99;

/// Runs of a point below which an interval is not to be trusted by itself: a mean of 99th
/// percentiles is far from normal.
const FEW_RUNS: usize = 10;

/// Most machines that the head names.
const MACHINES_MAX: usize = 16;

/// What was swept, the tables, the answer to targets, groups with a limit, and how to redo it.
#[must_use]
pub fn sweep_text(sweep: &Sweep, style: Style) -> String {
    let mut about = about(sweep);
    let runs = sweep
        .points
        .iter()
        .map(|p| p.variant.runs.len())
        .max()
        .unwrap_or(0);
    about += &labelled(
        "runs",
        &format!("{runs} for each of {} points", sweep.points.len()),
    );
    for axis in &sweep.over {
        about += &labelled(
            "over",
            &format!("{} = {}", axis.name, axis.values.join(", ")),
        );
    }
    let mut parts = vec![about];
    parts.extend(tables(sweep, style));
    parts.push(knees(sweep));
    parts.push(refusals(sweep));
    parts.push(
        sweep
            .answer
            .as_ref()
            .map_or(String::new(), |a| answer_text(sweep, a)),
    );
    parts.push(foot(&sweep.redo, &Note::sentences(&sweep.notes)) + &legend(sweep));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// What was simulated; of several machines each with its hash.
fn about(sweep: &Sweep) -> String {
    let machines = sweep.machines_swept();
    let machine = match machines[..] {
        [] => sweep.machine.with_parts(),
        _ => "swept".into(),
    };
    let mut text = labelled(
        "machine",
        &format!("{machine}, fairground {}", sweep.fairground),
    );
    for machine in machines.iter().take(MACHINES_MAX) {
        text += &labelled("", &machine.with_parts());
    }
    let more = machines.len().saturating_sub(MACHINES_MAX);
    if more > 0 {
        text += &labelled("", &format!("and {more} more, in the JSON"));
    }
    text += &labelled("profile", sweep.profile_words());
    text + &labelled("workload", &sweep.workload.join(" "))
}

/// The knees in sentences.
fn knees(sweep: &Sweep) -> String {
    let line = |(i, knee): (usize, &Knee)| {
        let point = sweep.points.get(knee.point)?;
        let place = super::label(&sweep.over, &point.values);
        let words = format!(
            "{} at {place}, {:.2} below the straight line",
            knee.metric, knee.distance
        );
        Some(labelled(if i == 0 { "knee" } else { "" }, &words))
    };
    sweep.knees.iter().enumerate().filter_map(line).collect()
}

fn legend(sweep: &Sweep) -> String {
    let words = [
        "means over the seeds, +- half of the 95 % interval; verdicts against the first point, \
         paired by seed",
        EACH_ALONE,
        "differs: the interval of the difference excludes 0, but neither direction is better",
    ];
    let mut points = sweep.points.iter();
    let first = points.find(|p| p.refused.is_none());
    let same = points.any(|p| p.comparison.iter().any(|row| row.same));
    let same = first.filter(|_| same).map(|_| SAME_WORDS);
    let mut rows = sweep.points.iter().flat_map(|p| &p.comparison);
    let per = rows.any(|row| row.per.is_some()).then_some(PER_WORDS);
    let words = words.into_iter().chain(same).chain(per);
    words.map(|line| labelled("", line)).collect()
}

/// Metrics in groups that fit the width.
fn tables(sweep: &Sweep, style: Style) -> Vec<String> {
    let mut tables: Vec<Vec<&str>> = Vec::new();
    // The first says which points meet the targets.
    let with_targets = |number: usize| number == 0 && sweep.answer.is_some();
    for metric in &sweep.metrics {
        let number = tables.len().saturating_sub(1);
        let fits = tables.last_mut().filter(|last| {
            let with = [&last[..], &[metric]].concat();
            let text = table(sweep, &with, with_targets(number));
            text.lines().all(|line| line.len() <= WIDTH)
        });
        match fits {
            Some(last) => last.push(metric),
            None => tables.push(vec![metric]),
        }
    }
    let shown = |(number, metrics): (usize, &Vec<&str>)| {
        coloured(&table(sweep, metrics, with_targets(number)), style)
    };
    tables.iter().enumerate().map(shown).collect()
}

fn table(sweep: &Sweep, metrics: &[&str], targets: bool) -> String {
    let mut header = short_names(&sweep.over);
    let mut align = vec![Align::Left; header.len()];
    for metric in metrics {
        header.extend([in_two(metric), String::new()]);
        align.extend([Align::Right, Align::Left]);
    }
    if targets {
        header.push("target".into());
        align.push(Align::Left);
    }
    let row = |point: &Point| {
        let mut cells = point.values.clone();
        for metric in metrics {
            cells.push(mean_words(point, metric, plus_minus));
            cells.push(verdict_and_knee(sweep, point, metric));
        }
        if targets {
            cells.push(meets(point).into());
        }
        cells
    };
    let rows: Vec<Vec<String>> = sweep.points.iter().map(row).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    render(&header, &rows, &align)
}

/// Names without the group, if all are files of one.
fn short_names(over: &[Axis]) -> Vec<String> {
    let parts = |axis: &Axis| {
        let parts = axis.name.rsplit_once('/');
        parts.map(|(group, file)| (group.to_string(), file.to_string()))
    };
    let groups: std::collections::BTreeSet<String> = over
        .iter()
        .filter_map(parts)
        .map(|(group, _)| group)
        .collect();
    let short = |axis: &Axis| match parts(axis) {
        Some((_, file)) if groups.len() == 1 => file,
        _ => axis.name.clone(),
    };
    over.iter().map(short).collect()
}

/// A long name over two lines, so that columns are as wide as their numbers.
fn in_two(metric: &str) -> String {
    match metric.rfind('.').filter(|at| *at > 0) {
        Some(at) => format!("{}\n{}", &metric[..at], &metric[at..]),
        None => metric.into(),
    }
}

/// `44296 +-16726`: the mean and half of its interval, of which one end may be cut at 0 or, of a
/// share, at the whole.
fn plus_minus(spread: &Spread) -> String {
    let mean = number(Some(spread.mean));
    match spread.ci95 {
        [Some(lo), Some(hi)] => {
            let half = (hi - spread.mean).max(spread.mean - lo);
            format!("{mean} +-{}", number(Some(half)))
        }
        _ => mean,
    }
}

/// The mean, as `known` writes it; or, if some runs have no value, what it is at least.
pub(super) fn mean_words(point: &Point, metric: &str, known: fn(&Spread) -> String) -> String {
    if let Some(bound) = point.at_least.get(metric) {
        return format!(">={}", number(Some(*bound)));
    }
    point.summary.get(metric).map_or("-".into(), known)
}

/// `44296 [27570, 61022]`.
pub(super) fn interval(spread: &Spread) -> String {
    let mean = number(Some(spread.mean));
    match spread.ci95 {
        [Some(lo), Some(hi)] => format!("{mean} [{}, {}]", number(Some(lo)), number(Some(hi))),
        _ => mean,
    }
}

pub(super) fn verdict(sweep: &Sweep, point: &Point, metric: &str) -> &'static str {
    if point.refused.is_some() {
        return "refused";
    }
    let first = sweep.points.iter().find(|p| p.refused.is_none());
    if first.is_some_and(|first| first.values == point.values) {
        return "base";
    }
    let row = point.comparison.iter().find(|row| row.metric == metric);
    row.map_or("", Comparison::word)
}

/// The same, what it is on if not on the mean, and that the metric has its knee here.
pub(super) fn verdict_and_knee(sweep: &Sweep, point: &Point, metric: &str) -> String {
    let word = verdict(sweep, point, metric);
    let row = point.comparison.iter().find(|row| row.metric == metric);
    let on = row.filter(|row| row.word() == word);
    let on = on.map_or(String::new(), Comparison::per_words);
    match sweep.knee_at(point, metric) {
        Some(_) => format!("{word}{on}, knee"),
        None => format!("{word}{on}"),
    }
}

pub(super) fn meets(point: &Point) -> &'static str {
    match point.meets {
        Some(Meets::Interval) => "met",
        Some(Meets::Mean) => "by mean",
        Some(Meets::No) => "no",
        Some(Meets::Unknown) => "unknown",
        Some(Meets::NotSustained) => "not sustained",
        None => "",
    }
}

/// The table with its verdicts in colour. After layout: escape codes have no width.
fn coloured(table: &str, style: Style) -> String {
    if !style.colour {
        return table.into();
    }
    let mut text = table.to_string();
    for word in VERDICTS {
        text = text.replace(&format!(" {word}"), &format!(" {}", in_colour(word)));
    }
    text
}

fn refusals(sweep: &Sweep) -> String {
    let refused = |point: &Point| Some(labelled("refused", point.refused.as_ref()?));
    sweep.points.iter().filter_map(refused).collect()
}

/// The answer in sentences.
pub(super) fn sentences(sweep: &Sweep, answer: &Answer) -> Vec<String> {
    let what = |reached: &Reached| {
        let point = super::label(&sweep.over, &reached.values);
        let bounds = sweep.points.get(reached.point).map(|point| &point.at_least);
        let values = answer.metrics.iter().zip(&reached.reached);
        let values = values.map(|(metric, s)| match bounds.and_then(|b| b.get(metric)) {
            Some(bound) => format!("{metric} at least {}", number(Some(*bound))),
            None => format!("{metric} {}", interval(s)),
        });
        format!("{point}: {}", values.collect::<Vec<_>>().join(", "))
    };
    let mut lines = Vec::new();
    if let Some(found) = &answer.by_interval {
        lines.push(format!("the smallest that meets it: {}", what(found)));
    }
    if let Some(found) = &answer.by_mean {
        let smaller = if answer.by_interval.is_some() {
            "smaller, but met"
        } else {
            "met"
        };
        lines.push(format!(
            "{smaller} by the mean only, {}: {}",
            why_by_mean(sweep, answer, found),
            what(found)
        ));
    }
    let runs = sweep.points.iter().map(|p| p.variant.runs.len()).max();
    let found = answer.by_interval.as_ref().or(answer.by_mean.as_ref());
    match (found, runs) {
        (Some(found), _) if is_of_few(sweep, answer, found) => lines.push(
            "each run has too few requests for that percentile: confirm it with longer ones \
             (`duration`), not with more"
                .into(),
        ),
        (Some(_), Some(runs @ 1..FEW_RUNS)) => lines.push(format!(
            "{runs} {} few of the rare events that tails are made of: confirm it with more \
             (--seeds 20)",
            if runs == 1 { "run shows" } else { "runs show" }
        )),
        _ => {}
    }
    if let Some(found) = &answer.nearest {
        lines.push(format!("no point meets it; the nearest: {}", what(found)));
    } else if found.is_none() {
        lines.push("no point meets it".into());
    }
    if !answer.larger_that_miss.is_empty() {
        let points = answer.larger_that_miss.iter();
        let points = points.map(|&i| super::label(&sweep.over, &sweep.points[i].values));
        let points: Vec<String> = points.collect();
        lines.push(format!(
            "not all that are larger meet it: {} {} not",
            points.join("; "),
            if points.len() == 1 { "does" } else { "do" }
        ));
    }
    lines
}

/// Why no interval meets the targets.
fn why_by_mean(sweep: &Sweep, answer: &Answer, reached: &Reached) -> &'static str {
    let variant = sweep.points.get(reached.point).map(|point| &point.variant);
    let few = |v: &Variant| answer.metrics.iter().any(|m| has_few_periods(v, m));
    match variant {
        Some(variant) if variant.runs.len() == 1 => "for one run has no interval",
        Some(variant) if few(variant) => "for there are few periods",
        _ => "not by the interval",
    }
}

/// Whether the point has too few requests for a percentile that a target is about.
fn is_of_few(sweep: &Sweep, answer: &Answer, reached: &Reached) -> bool {
    let of = |point: &Point| {
        let mut metrics = answer.metrics.iter();
        metrics.any(|metric| too_few(&point.variant, metric).is_some())
    };
    sweep.points.get(reached.point).is_some_and(of)
}

fn answer_text(sweep: &Sweep, answer: &Answer) -> String {
    let mut text = labelled("target", &answer.targets.join(" and "));
    for line in sentences(sweep, answer) {
        text += &labelled("", &line);
    }
    text
}

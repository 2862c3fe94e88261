//! The report page of a sweep.

use super::text::{interval, mean_words, meets, sentences, sweep_text, verdict, verdict_and_knee};
use super::{Answer, Axis, Point, Reached, Sweep};
use crate::html::{Cell, Column, Dot, Figure, Page, PageError, Plot, Row, Series, Table, page};
use crate::result::{Note, word_class};
use crate::text::Style;

/// The page: the answer, the table, a plot for each metric.
///
/// # Errors
/// Only if the page itself is at fault.
pub fn sweep_page(sweep: &Sweep, style: Style) -> Result<String, PageError> {
    let machines: Vec<String> = match &sweep.machines_swept()[..] {
        [] => vec![sweep.machine.with_parts()],
        several => several.iter().map(|m| m.with_parts()).collect(),
    };
    let mut facts = vec![
        ("machine".into(), machines.join("; ")),
        ("profile".into(), sweep.profile_words().into()),
        ("seeds".into(), sweep.redo.seeds.len().to_string()),
        ("points".into(), sweep.points.len().to_string()),
    ];
    for axis in &sweep.over {
        facts.push((axis.name.clone(), axis.values.join(", ")));
    }
    if let Some(answer) = &sweep.answer {
        facts.push((answer.targets.join(" and "), short_answer(sweep, answer)));
    }
    let mut notes = Note::sentences(&sweep.notes);
    notes.extend(sweep.redo.not_modelled_text());
    let about = Page {
        title: sweep.workload.join(" "),
        lead: match sweep.has_several(&["machine"]) {
            true => "fairground sweep over machines".into(),
            false => format!("fairground sweep on {}", sweep.machine.id),
        },
        facts,
        tables: vec![table(sweep)],
        text: sweep_text(
            sweep,
            Style {
                colour: false,
                ..style
            },
        ),
        figures: sweep.metrics.iter().map(|m| figure(sweep, m)).collect(),
        notes,
        redo: sweep.redo.command.clone(),
        json: serde_json::to_string(sweep)?,
        ..Page::default()
    };
    page(&about, &[])
}

/// The point, and how sure that is.
fn short_answer(sweep: &Sweep, answer: &Answer) -> String {
    let point = |reached: &Reached| super::label(&sweep.over, &reached.values);
    match (&answer.by_interval, &answer.by_mean) {
        (Some(found), _) => format!("met by {}", point(found)),
        (None, Some(found)) => format!("met by the mean only: {}", point(found)),
        (None, None) => "met by no point".into(),
    }
}

fn table(sweep: &Sweep) -> Table {
    let answer = sweep.answer.as_ref();
    let mut note = answer.map_or(String::new(), |answer| {
        let said = sentences(sweep, answer).join("; ");
        format!("{}: {said}. ", answer.targets.join(" and "))
    });
    note += "Means over the seeds with their 95 % intervals; verdicts against the first point, \
             paired by seed.";
    let mut columns: Vec<Column> = sweep.over.iter().map(|a| Column::left(&a.name)).collect();
    for metric in &sweep.metrics {
        let words = sweep.info(metric).map_or(String::new(), |i| {
            format!("{} ({})", i.description.trim_end_matches('.'), i.unit)
        });
        columns.push(Column::right(metric).title(&words));
        columns.push(Column::left(""));
    }
    if sweep.answer.is_some() {
        columns.push(Column::left("target"));
    }
    Table {
        id: "points-table".into(),
        caption: "Points".into(),
        note,
        columns,
        rows: sweep.points.iter().map(|point| row(sweep, point)).collect(),
    }
}

fn row(sweep: &Sweep, point: &Point) -> Row {
    let mut cells: Vec<Cell> = point
        .values
        .iter()
        .map(|v| Cell::text(v).class("name"))
        .collect();
    for metric in &sweep.metrics {
        let spread = point.summary.get(metric);
        let words = mean_words(point, metric, interval);
        let refused = point.refused.as_deref().unwrap_or_default();
        cells.push(Cell::number(spread.map(|s| s.mean), words).title(refused));
        let word = verdict(sweep, point, metric);
        let words = verdict_and_knee(sweep, point, metric);
        cells.push(Cell::text(&words).class(word_class(word)));
    }
    if sweep.answer.is_some() {
        cells.push(Cell::text(meets(point)));
    }
    Row::from(cells)
}

/// The metric over the first axis with several values; a line for each combination of the others.
fn figure(sweep: &Sweep, metric: &str) -> Figure {
    let across = sweep
        .over
        .iter()
        .position(|axis| axis.values.len() > 1)
        .unwrap_or(0);
    let info = sweep.info(metric);
    let unit = info.map_or("", |i| &*i.unit);
    let plot = Plot {
        title: format!("{metric}, {unit}"),
        across: sweep
            .over
            .get(across)
            .map_or(String::new(), |axis| axis.name.clone()),
        places: sweep.over.get(across).map_or(Vec::new(), places),
        series: series(sweep, metric, across),
        levels: levels(sweep, metric),
        knee: knee(sweep, metric, across),
    };
    Figure {
        id: metric.replace(['.', '/', ' '], "-"),
        caption: metric.into(),
        note: info.map_or(String::new(), |i| {
            format!("{} Unit: {unit}.", i.description)
        }),
        svg: plot.svg(),
    }
}

/// Values by their sizes, or side by side where one has none or it is without end.
fn places(axis: &Axis) -> Vec<(String, f64)> {
    let sizes = axis.sizes.iter().flatten().copied();
    let sizes: Vec<f64> = sizes.collect::<Option<_>>().unwrap_or_default();
    let at = |i: usize| sizes.get(i).map_or(i as f64, |size| *size);
    axis.values
        .iter()
        .enumerate()
        .map(|(i, value)| (value.clone(), at(i)))
        .collect()
}

fn series(sweep: &Sweep, metric: &str, across: usize) -> Vec<Series> {
    let places = sweep.over.get(across).map_or(Vec::new(), places);
    let mut all: Vec<Series> = Vec::new();
    for point in &sweep.points {
        let others = sweep.over.iter().zip(&point.values).enumerate();
        let others = others.filter(|(i, (axis, _))| *i != across && axis.values.len() > 1);
        let name = others.map(|(_, (axis, value))| format!("{}={value}", axis.name));
        let name = name.collect::<Vec<_>>().join(" ");
        let place = places
            .iter()
            .position(|(v, _)| point.values.get(across) == Some(v));
        let (Some(spread), Some(place)) = (point.summary.get(metric), place) else {
            continue;
        };
        let dot = Dot {
            place,
            mean: spread.mean,
            ci: spread.ci95[0].zip(spread.ci95[1]).map(|(lo, hi)| [lo, hi]),
        };
        match all.iter_mut().find(|s| s.name == name) {
            Some(series) => series.dots.push(dot),
            None => all.push(Series {
                name,
                dots: vec![dot],
            }),
        }
    }
    for series in &mut all {
        series
            .dots
            .sort_by(|a, b| places[a.place].1.total_cmp(&places[b.place].1));
    }
    all
}

/// The place of the metric's knee on the axis.
fn knee(sweep: &Sweep, metric: &str, across: usize) -> Option<usize> {
    let at = |point: &&Point| sweep.knee_at(point, metric).is_some();
    let value = sweep.points.iter().find(at)?.values.get(across)?;
    let axis = sweep.over.get(across)?;
    axis.values.iter().position(|v| v == value)
}

fn levels(sweep: &Sweep, metric: &str) -> Vec<(String, f64)> {
    let Some(answer) = &sweep.answer else {
        return Vec::new();
    };
    let all = answer
        .targets
        .iter()
        .zip(&answer.metrics)
        .zip(&answer.limits);
    let here = all.filter(|((_, m), _)| *m == metric);
    here.map(|((text, _), limit)| (text.clone(), *limit))
        .collect()
}

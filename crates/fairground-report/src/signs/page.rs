//! The report page of a sign table.

use super::text::{COUNTERS, counter, explained, sentences, signs_text};
use super::{Place, Signs, Tally, row};
use crate::html::{Cell, Column, Dot, Figure, Page, PageError, Plot, Row, Series, Table, page};
use crate::text::{Style, bare_change, change, number};

/// The page: the verdicts, a table and a plot for each workload and metric, what explains them.
///
/// # Errors
/// Only if the page itself is at fault.
pub fn signs_page(signs: &Signs, style: Style) -> Result<String, PageError> {
    let mut facts = vec![
        ("profile".into(), signs.profile.clone()),
        ("seeds".into(), signs.redo.seeds.len().to_string()),
        ("places".into(), signs.places.len().to_string()),
    ];
    for tally in &signs.tallies {
        facts.push((tally.metric.clone(), sentences(tally).join("; ")));
    }
    let refused = signs.places.iter().filter_map(|place| {
        let why = place.refused.as_ref()?;
        Some(format!(
            "not run: {}, {} CPUs: {why}",
            place.machine, place.cpus
        ))
    });
    let mut notes: Vec<String> = refused.collect();
    if !signs.redo.not_modelled.is_empty() {
        notes.push(format!(
            "not modelled: {}",
            signs.redo.not_modelled.join(", ")
        ));
    }
    let plain = Style {
        colour: false,
        ..style
    };
    let workloads = signs.tallies.iter().map(|tally| tally.workload.join(" "));
    let mut titles: Vec<String> = workloads.collect();
    titles.dedup();
    let about = Page {
        title: titles.join("; "),
        lead: format!("fairground compare in {} places", signs.places.len()),
        facts,
        tables: signs
            .tallies
            .iter()
            .enumerate()
            .map(|t| table(signs, t))
            .collect(),
        text: signs_text(signs, plain),
        figures: signs
            .tallies
            .iter()
            .enumerate()
            .map(|t| figure(signs, t))
            .collect(),
        notes,
        redo: signs.redo.command.clone(),
        json: serde_json::to_string(signs)?,
        ..Page::default()
    };
    page(&about, &[])
}

fn of<'a>(signs: &'a Signs, tally: &'a Tally) -> impl Iterator<Item = &'a Place> {
    let here = |place: &&Place| place.workload == tally.workload && place.result.is_some();
    signs.places.iter().filter(here)
}

fn table(signs: &Signs, (number, tally): (usize, &Tally)) -> Table {
    let mut columns = vec![
        Column::left("machine"),
        Column::right("CPUs"),
        Column::right("base"),
        Column::right("patch"),
        Column::right("change"),
        Column::right("95 % interval").title("of the change, over the seeds"),
        Column::left("verdict"),
    ];
    for (words, metric) in COUNTERS {
        columns.push(Column::right(&words.replace('\n', " ")).title(metric));
    }
    columns.push(Column::left("what moved most"));
    Table {
        id: format!("places-{number}"),
        caption: format!("{}: {}", tally.workload.join(" "), tally.metric),
        note: "Changes of counters where they are more than noise. Runs are paired by seed.".into(),
        columns,
        rows: of(signs, tally)
            .filter_map(|place| cells(place, tally))
            .collect(),
    }
}

fn cells(place: &Place, tally: &Tally) -> Option<Row> {
    let result = place.result.as_ref()?;
    let row = row(result, &tally.metric)?;
    let [lo, hi] = row.ci95_pct.map(|end| end.map(bare_change));
    let interval = lo.zip(hi).map(|(lo, hi)| format!("[{lo}, {hi}]"));
    let mut cells = vec![
        Cell::text(&place.machine).class("name"),
        Cell::number(Some(place.cpus as f64), place.cpus.to_string()),
        Cell::number(row.base, number(row.base)),
        Cell::number(row.patch, number(row.patch)),
        Cell::number(row.change_pct, change(row.change_pct)),
        Cell::text(interval.as_deref().unwrap_or("-")),
        Cell::text(row.word()).class(row.word()),
    ];
    let counters = COUNTERS.map(|(_, metric)| Cell::text(&counter(result, metric)));
    cells.extend(counters);
    let why = explained(place).into_iter();
    let why = why.map(|[name, amounts, what]| format!("{name}: {amounts} {what}"));
    cells.push(Cell::text(&why.collect::<Vec<_>>().join("; ")));
    Some(Row::from(cells))
}

/// The change in percent over the places, with its interval.
fn figure(signs: &Signs, (number, tally): (usize, &Tally)) -> Figure {
    let places: Vec<&Place> = of(signs, tally).collect();
    let dot = |(at, place): (usize, &&Place)| {
        let row = row(place.result.as_ref()?, &tally.metric)?;
        let [lo, hi] = row.ci95_pct;
        Some(Dot {
            place: at,
            mean: row.change_pct?,
            ci: lo.zip(hi).map(|(lo, hi)| [lo, hi]),
        })
    };
    let label = |(at, place): (usize, &&Place)| (signs.label(place), at as f64);
    let plot = Plot {
        title: format!("change of {}, %", tally.metric),
        across: "machine".into(),
        places: places.iter().enumerate().map(label).collect(),
        series: vec![Series {
            name: String::new(),
            dots: places.iter().enumerate().filter_map(dot).collect(),
        }],
        levels: vec![("no change".into(), 0.0)],
    };
    Figure {
        id: format!("change-{number}"),
        caption: format!("{}: {}", tally.workload.join(" "), tally.metric),
        note: "Change in percent with its 95 % interval; machines side by side.".into(),
        svg: plot.svg(),
    }
}

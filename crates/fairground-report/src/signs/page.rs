//! The report page of a sign table.

use super::block::place_parts;
use super::counted::sentences;
use super::text::{COUNTERS, counter, explained, signs_text};
use super::{Place, Signs, Tally, row};
use crate::html::{Cell, Column, Dot, Figure, Page, PageError, Plot, Row, Series, Table, page};
use crate::number::{change, interval, number};
use crate::result::word_class;
use crate::text::Style;

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
        facts.push((tally.metric.clone(), short(tally)));
    }
    let refused = signs.places.iter().filter_map(|place| {
        let why = place.refused.as_ref()?;
        Some(format!(
            "not run: {}, {} CPUs: {why}",
            place.machine, place.cpus
        ))
    });
    let mut notes: Vec<String> = refused.chain(signs.notes()).collect();
    notes.extend(signs.redo.not_modelled_text());
    let plain = Style {
        colour: false,
        ..style
    };
    let workloads = signs.tallies.iter().map(|tally| tally.workload.join(" "));
    let mut titles: Vec<String> = workloads.collect();
    titles.dedup();
    const TITLES: usize = 3;
    let more = titles.len().saturating_sub(TITLES);
    titles.truncate(TITLES);
    if more > 0 {
        titles.push(format!("and {more} more"));
    }
    let about = Page {
        title: titles.join("; "),
        lead: format!("fairground compare in {} places", signs.places.len()),
        facts,
        tables: tables(signs),
        text: signs_text(signs, plain),
        figures: (0..)
            .zip(&signs.tallies)
            .map(|(i, t)| figure(signs, i, t))
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

/// `better 3, noise 4`.
fn short(tally: &Tally) -> String {
    let lists = [
        ("better", &tally.better),
        ("worse", &tally.worse),
        ("differs", &tally.differs),
        ("noise", &tally.noise),
        ("same", &tally.same),
        ("no verdict", &tally.open),
    ];
    let there = lists.iter().filter(|(_, list)| !list.is_empty());
    let counts = there.map(|(word, list)| format!("{word} {}", list.len()));
    counts.collect::<Vec<_>>().join(", ")
}

fn name(tally: &Tally) -> String {
    format!("{}: {}", tally.workload.join(" "), tally.metric)
}

/// Of each workload and metric what the change does; of each workload what moved most.
fn tables(signs: &Signs) -> Vec<Table> {
    let mut tables = Vec::new();
    for (number, tally) in signs.tallies.iter().enumerate() {
        tables.push(changes(signs, number, tally));
        let next = signs.tallies.get(number + 1);
        if next.is_none_or(|next| next.workload != tally.workload) {
            tables.push(moved(signs, number, tally));
        }
    }
    tables
}

fn changes(signs: &Signs, number: usize, tally: &Tally) -> Table {
    let mut columns = vec![
        Column::left("machine"),
        Column::right("CPUs"),
        Column::right("sockets").wide(),
        Column::right("LLCs").title("last-level caches").wide(),
        Column::right("base"),
        Column::right("patch"),
        Column::right("change"),
        Column::right("95 % interval").title("of the change, over the seeds"),
        Column::left("verdict"),
    ];
    for (words, metric) in COUNTERS {
        columns.push(Column::right(&words.replace('\n', " ")).title(metric));
    }
    Table {
        id: format!("places-{number}"),
        caption: name(tally),
        note: format!(
            "{}. Changes of counters are shown where they are more than noise; runs are paired by \
             seed.",
            sentences(tally).join("; ")
        ),
        columns,
        rows: of(signs, tally)
            .filter_map(|place| change_row(place, tally))
            .collect(),
    }
}

fn change_row(place: &Place, tally: &Tally) -> Option<Row> {
    let result = place.result.as_ref()?;
    let row = row(result, &tally.metric)?;
    let on = row.judged();
    let interval = interval(on.ci95_pct);
    let mut cells = vec![
        Cell::text(&place.machine).class("name"),
        Cell::number(Some(place.cpus as f64), place.cpus.to_string()),
    ];
    cells.extend(
        place_parts(place)
            .iter()
            .map(|n| Cell::text(n).class("num")),
    );
    cells.extend([
        Cell::number(on.base, number(on.base)),
        Cell::number(on.patch, number(on.patch)),
        Cell::number(on.change_pct, change(on.change_pct)),
        Cell::text(interval.as_deref().unwrap_or("-")),
        Cell::text(&(row.word().to_string() + &row.per_words())).class(word_class(row.word())),
    ]);
    cells.extend(COUNTERS.map(|(_, metric)| Cell::text(&counter(result, metric))));
    Some(Row::from(cells))
}

fn moved(signs: &Signs, number: usize, tally: &Tally) -> Table {
    let rows = of(signs, tally).flat_map(|place| {
        explained(place).into_iter().map(|[name, amounts, what]| {
            Row::from(vec![
                Cell::text(&place.machine).class("name"),
                Cell::number(Some(place.cpus as f64), place.cpus.to_string()),
                Cell::text(&name).class("name"),
                Cell::text(&amounts),
                Cell::text(&what),
            ])
        })
    });
    Table {
        id: format!("moved-{number}"),
        caption: "What moved most".into(),
        note: "The cache line whose waiting changed most, a run, and the function whose share of \
               the busy CPU time did."
            .into(),
        columns: vec![
            Column::left("machine"),
            Column::right("CPUs"),
            Column::left("line, function"),
            Column::right("base -> patch"),
            Column::left(""),
        ],
        rows: rows.collect(),
    }
}

/// The change in percent with its interval: over the numbers of CPUs with a line for each machine
/// if one has several, else machine by machine.
fn figure(signs: &Signs, number: usize, tally: &Tally) -> Figure {
    let places: Vec<&Place> = of(signs, tally).collect();
    let mut sizes: Vec<u64> = places.iter().map(|place| place.cpus).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let grows = !tally.from_cpus.is_empty();
    let ticks: Vec<String> = match grows {
        true => sizes.iter().map(u64::to_string).collect(),
        false => places.iter().map(|place| signs.label(place)).collect(),
    };
    let mut series: Vec<Series> = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let found = place.result.as_ref().and_then(|r| row(r, &tally.metric));
        let Some((on, mean)) = found.and_then(|row| Some((row.judged(), row.judged().change_pct?)))
        else {
            continue;
        };
        let [lo, hi] = on.ci95_pct;
        let dot = Dot {
            place: match grows {
                true => sizes.iter().position(|n| *n == place.cpus).unwrap_or(0),
                false => at,
            },
            mean,
            ci: lo.zip(hi).map(|(lo, hi)| [lo, hi]),
        };
        match series.iter_mut().find(|s| s.name == place.machine) {
            Some(line) => line.dots.push(dot),
            None => series.push(Series {
                name: place.machine.clone(),
                dots: vec![dot],
            }),
        }
    }
    for line in &mut series {
        line.dots.sort_by_key(|dot| dot.place);
    }
    let plot = Plot {
        title: format!("change of {}, %", tally.metric),
        across: if grows { "CPUs" } else { "machine" }.into(),
        places: ticks.into_iter().zip((0..).map(f64::from)).collect(),
        series,
        levels: vec![("no change".into(), 0.0)],
        knee: None,
    };
    Figure {
        id: format!("change-{number}"),
        caption: format!("Change of {}", tally.metric),
        note: format!("{}: change in percent with its 95 % interval.", name(tally)),
        svg: plot.svg(),
    }
}

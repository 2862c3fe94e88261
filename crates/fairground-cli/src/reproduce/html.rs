//! `--report`: both tables side by side on one page that opens without a network.

use fairground_report::html::{Bar, Cell, Column, Page, PageError, Table, page};
use fairground_report::reproduce::{
    Class, Row, level_text, number, reproduce_text, tally_line, tells,
};

use super::experiment::{RowSpec, RunSpec};
use super::reasons::{grouped, why};
use super::{Reproduced, headlines, runs_missing, telling_line, verdict};

/// Changes in percent beyond this are cut in the drawings of intervals.
const BAR_MOST: f64 = 100.0;

/// The page.
///
/// # Errors
/// Only if the page itself is at fault.
pub fn report(done: &[Reproduced], command: &str) -> Result<String, PageError> {
    let all: Vec<&Row> = done.iter().flat_map(Reproduced::all_rows).collect();
    let owned: Vec<Row> = all.iter().map(|row| (*row).clone()).collect();
    let mut facts = vec![
        ("rows".to_string(), tally_line(&owned)),
        ("certainty".to_string(), telling_line(done)),
    ];
    facts.extend(done.iter().flat_map(headlines).map(|(headline, row)| {
        let (value, held) = verdict(&headline, row);
        (headline.text.clone(), format!("{held}: {value}"))
    }));
    let about = Page {
        title: "Published changes, reproduced".into(),
        lead: "fairground reproduce: published tables beside simulated ones".into(),
        facts,
        tables: done.iter().map(table).collect(),
        text: reproduce_text(&owned),
        notes: done.iter().flat_map(notes).collect(),
        redo: command.into(),
        json: serde_json::to_string(&all)?,
        ..Page::default()
    };
    page(&about, &[])
}

fn table(change: &Reproduced) -> Table {
    let e = &change.experiment;
    let rows = change.rows.iter().flat_map(|(run, rows)| {
        let row = |(spec, row)| line(run, spec, row);
        run.rows.iter().zip(rows).map(row)
    });
    Table {
        id: e.change.clone(),
        caption: format!("{}: {}", e.change, e.title),
        note: format!(
            "{}. Intervals hold at 95 % over the seeds, drawn from -{BAR_MOST:.0} % to \
             +{BAR_MOST:.0} %. `?`: too wide to tell.",
            e.source
        ),
        columns: vec![
            Column::left("class"),
            Column::left("run"),
            Column::left("load"),
            Column::left("metric"),
            Column::right("published base"),
            Column::right("patch"),
            Column::right("change"),
            Column::right("simulated base"),
            Column::right("patch"),
            Column::right("change"),
            Column::right("level"),
            Column::left("95 % interval"),
        ],
        rows: rows.map(Into::into).collect(),
    }
}

fn line(run: &RunSpec, spec: &RowSpec, row: &Row) -> Vec<Cell> {
    let percent = |c: Option<f64>| c.map_or("-".to_string(), |c| format!("{c:+.1} %"));
    let value = |v: Option<f64>| Cell::number(v, number(v));
    let change = |c: Option<f64>| Cell::number(c, percent(c));
    let (p, s) = (&row.published, &row.simulated);
    let told = if tells(spec.kind, row) { "" } else { " ?" };
    let (class, look) = match row.class {
        class if row.evidence.is_some() => (class.name().to_string(), "dim"),
        Class::Miss => ("miss".to_string(), "worse"),
        Class::Noise => (format!("noise{told}"), "noise"),
        class => (format!("{}{told}", class.name()), "better"),
    };
    let apart = row.evidence.map(|e| format!(" ({})", e.name()));
    let class = class + &apart.unwrap_or_default();
    let why = match row.class {
        Class::Miss => Some(why(spec, row)),
        _ => spec.caution.as_deref(),
    };
    vec![
        Cell::text(&class).class(look).title(why.unwrap_or("")),
        Cell::text(&run.name)
            .class("name")
            .title(&format!("{}: {}", row.machine, row.workload)),
        Cell::text(&row.load),
        Cell::text(&row.metric),
        value(p.base),
        value(p.patch),
        change(p.change_pct),
        value(s.base),
        value(s.patch),
        change(s.change_pct),
        Cell::text(&level_text(row)),
        interval(row),
    ]
}

fn interval(row: &Row) -> Cell {
    let s = &row.simulated;
    let ([Some(lo), Some(hi)], Some(mean)) = (s.ci95_pct, s.change_pct) else {
        return Cell::text("-").class("dim");
    };
    Cell {
        bar: Some(Bar::of([lo, hi], mean, BAR_MOST)),
        ..Cell::default()
    }
    .title(&format!("[{lo:+.1}, {hi:+.1}] %"))
}

/// The reasons of the misses, and what to know of other rows; what is not simulated, assumed and
/// left out.
fn notes(change: &Reproduced) -> Vec<String> {
    let mut named = Vec::new();
    for (run, rows) in &change.rows {
        for (spec, row) in run.rows.iter().zip(rows) {
            let name = || format!("{} {}", run.name, row.metric);
            if row.class == Class::Miss {
                named.push((name(), why(spec, row).into()));
            }
            named.extend(spec.caution.clone().map(|caution| (name(), caution)));
        }
    }
    let said = |(names, text)| format!("{names}: {text}");
    let mut notes: Vec<String> = grouped(named).into_iter().map(said).collect();
    notes.extend(runs_missing(change).map(|run| format!("{}: not run", run.name)));
    let e = &change.experiment;
    let of_change = |text: &String| format!("{}: {text}", e.change);
    notes.extend(e.unknowns.iter().chain(&e.left_out).map(of_change));
    notes
}

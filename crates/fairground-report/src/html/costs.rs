//! Cache lines in the columns of `perf c2c report`, and functions.

use super::table::{Cell, Column, Row, Table};
use crate::number::{bare_change, count};
use crate::result::Variant;
use crate::text::{FunctionRow, Functions, MeanCost, Traffic, places_by_wait, traffic};

/// Shared places by waiting. `perf c2c` counts loads that hit a modified line (HITM), local and
/// remote; here each touch that had to fetch the line from another core counts.
pub fn lines(variants: &[Variant], most: usize) -> Option<Table> {
    let tables: Vec<_> = variants.iter().map(traffic).collect();
    let places = places_by_wait(&tables);
    let mut rows = Vec::new();
    for (index, place) in places.iter().take(most).enumerate() {
        for (side, (variant, table)) in variants.iter().zip(&tables).enumerate() {
            let t = table.get(place).copied().unwrap_or_default();
            let all: Traffic = table.values().fold(Traffic::default(), |sum, t| sum.and(t));
            let mut cells = match side {
                0 => vec![
                    Cell::text(&(index + 1).to_string()).class("num dim"),
                    Cell::text(place.0).class("name"),
                    Cell::text(&place.1.replace(',', ", ")).class("fields"),
                ],
                _ => vec![Cell::default(), Cell::default(), Cell::default()],
            };
            if variants.len() > 1 {
                cells.push(Cell::text(&variant.name).class(&variant.name));
            }
            cells.extend(numbers(&t, &all));
            rows.push(Row {
                cells,
                joined: side + 1 < variants.len(),
            });
        }
    }
    let dropped = places.len().saturating_sub(most);
    let mut columns = vec![
        Column::right("#"),
        Column::left("object"),
        Column::left("fields on the line"),
    ];
    if variants.len() > 1 {
        columns.push(Column::left(""));
    }
    columns.extend(heads());
    let note = match variants.iter().all(|v| v.runs.len() < 2) {
        true => "The line that was waited for most first.",
        false => "Means over the seeds, the line that was waited for most first.",
    };
    let note = match dropped {
        0 => note.to_string(),
        n => format!("{note} {n} more in the JSON."),
    };
    let table = Table {
        id: "lines-table".into(),
        caption: "Cache lines".into(),
        note,
        columns,
        rows,
    };
    Some(table).filter(|t| !t.rows.is_empty())
}

fn heads() -> Vec<Column> {
    vec![
        Column::right("HITM")
            .title("the line's share of all touches that fetched from another core"),
        Column::right("transfers").title("touches that fetched the line from another core"),
        Column::right("local").title("from a core of the same socket"),
        Column::right("remote").title("from a core of another socket"),
        Column::right("loads"),
        Column::right("stores"),
        Column::right("atomics"),
        Column::right("upgrades").title("stores that only had to invalidate other copies"),
        Column::right("false").title("misses of words that nobody wrote: false sharing"),
        Column::right("ns").title("waiting for the line, mean of a touch"),
        Column::right("wait").title("the line's share of all waiting for lines"),
    ]
}

fn numbers(t: &Traffic, all: &Traffic) -> Vec<Cell> {
    let percent = |part: f64, whole: f64| {
        let share = if whole > 0.0 {
            100.0 * part / whole
        } else {
            0.0
        };
        Cell::number(Some(share), format!("{share:.1} %"))
    };
    let mean = |value: f64| Cell::number(Some(value), count(value));
    let touches = t.reads + t.writes + t.rmws;
    let each = if touches > 0.0 {
        t.wait_ns / touches
    } else {
        0.0
    };
    vec![
        percent(t.transfers, all.transfers),
        mean(t.transfers),
        mean(t.transfers - t.remote),
        mean(t.remote),
        mean(t.reads),
        mean(t.writes),
        mean(t.rmws),
        mean(t.upgrades),
        mean(t.false_sharing),
        Cell::number(Some(each), format!("{each:.1}")),
        percent(t.wait_ns, all.wait_ns),
    ]
}

/// Functions by their share of the busy time.
pub fn functions(variants: &[Variant], most: usize) -> Option<Table> {
    let functions = Functions::of(variants);
    let misses = functions.have_misses();
    let row = |f: &FunctionRow<'_>| {
        let mut cells = vec![Cell::text(f.name).class("name")];
        let percent = |cost: &MeanCost| 100.0 * cost.share;
        let shares: Vec<f64> = f.costs.iter().map(percent).collect();
        let shown = |v: &f64| Cell::number(Some(*v), format!("{v:.2} %"));
        cells.extend(shares.iter().map(shown));
        if let [base, patch] = shares[..] {
            cells.push(Cell::number(Some(patch - base), bare_change(patch - base)));
        }
        let missed = f
            .costs
            .iter()
            .map(|cost| cost.llc_misses)
            .filter(|_| misses);
        cells.extend(missed.map(|n| Cell::number(Some(n), count(n))));
        Row::from(cells)
    };
    let mut columns = vec![Column::left("function")];
    let title = "share of the busy time of all CPUs, without callees";
    columns.extend(variants.iter().map(|v| match variants.len() {
        1 => Column::right("self").title(title),
        _ => Column::right(&v.name).title(title),
    }));
    if variants.len() == 2 {
        columns.push(Column::right("points"));
    }
    if misses {
        columns.extend(variants.iter().map(|v| {
            let name = match variants.len() {
                1 => "LLC misses".to_string(),
                _ => format!("LLC misses {}", v.name),
            };
            Column::right(&name).title("loads that missed the last-level cache")
        }));
    }
    let table = Table {
        id: "functions-table".into(),
        caption: "Functions by self time".into(),
        note: String::new(),
        columns,
        rows: functions.rows.iter().take(most).map(row).collect(),
    };
    Some(table).filter(|t| !t.rows.is_empty())
}

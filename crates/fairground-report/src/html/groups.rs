//! The tables of groups with a limit, and of those with a weight of their own.

use super::names::{name_heads, rows_of};
use super::table::{Cell, Column, Table};
use crate::groups::{GroupMeans, listed, means, weighed};
use crate::number::number;
use crate::result::Variant;

/// What each group with a limit used and how it was throttled, most throttled time first; and what
/// those used that have only a weight. None if there are none.
pub fn of(variants: &[Variant]) -> Vec<Table> {
    let limited = Table {
        id: "groups-table".into(),
        caption: "Groups with a limit".into(),
        note: "Means over the seeds, in the words of cpu.stat. Throttled time is that of all \
               queues of the group together, one for each CPU."
            .into(),
        ..table(variants, &listed(variants), heads(), cells)
    };
    let paths: Vec<Option<&str>> = weighed(variants).into_iter().map(Some).collect();
    let weighed = Table {
        id: "weights-table".into(),
        caption: "Groups with a weight".into(),
        note: "Means over the seeds. Groups with the weight of a new one (100) and no limit are \
               left out."
            .into(),
        ..table(variants, &paths, weight_heads(), weight_cells)
    };
    let both = [limited, weighed].into_iter();
    both.filter(|table| !table.rows.is_empty()).collect()
}

/// A row for each of `paths` and each variant.
fn table(
    variants: &[Variant],
    paths: &[Option<&str>],
    heads: Vec<Column>,
    cells: fn(&GroupMeans) -> Vec<Cell>,
) -> Table {
    let mut rows = Vec::new();
    for &path in paths {
        let found = variants.iter().find_map(|variant| means(variant, path));
        let name = found.as_ref().map_or(path.unwrap_or("others"), |g| &g.name);
        rows.extend(rows_of(name, variants, |variant| {
            let unknown = || vec![dash(); heads.len()];
            Some(means(variant, path).as_ref().map_or_else(unknown, cells))
        }));
    }
    let mut columns = name_heads(variants.len(), "group");
    columns.extend(heads);
    Table {
        columns,
        rows,
        ..Table::default()
    }
}

fn dash() -> Cell {
    Cell::text("-").class("dim")
}

fn ms(value: f64) -> Cell {
    Cell::number(Some(value), format!("{value:.1}"))
}

fn weight_heads() -> Vec<Column> {
    vec![
        Column::right("cpu.weight"),
        Column::right("CPUs").title("usage_usec by the measured time"),
        Column::right("usage, ms").title("usage_usec").wide(),
    ]
}

fn weight_cells(g: &GroupMeans) -> Vec<Cell> {
    vec![
        g.weight.as_ref().map_or_else(dash, |w| Cell::text(w)),
        Cell::number(g.cpus, number(g.cpus)),
        ms(g.usage_ms),
    ]
}

fn heads() -> Vec<Column> {
    vec![
        Column::right("cpu.max"),
        Column::right("burst").title("cpu.max.burst, us"),
        Column::right("weight").wide(),
        Column::right("CPUs").title("usage_usec by the measured time"),
        Column::right("periods").title("nr_periods"),
        Column::right("throttled").title("nr_throttled"),
        Column::right("share").title("nr_throttled / nr_periods"),
        Column::right("throttled, ms").title("throttled_usec"),
        Column::right("bursts").title("nr_bursts").wide(),
        Column::right("burst used, ms").title("burst_usec").wide(),
        Column::right("usage, ms").title("usage_usec").wide(),
    ]
}

fn cells(g: &GroupMeans) -> Vec<Cell> {
    let whole = |value: f64| Cell::number(Some(value), number(Some(value)));
    let limit = g.limit.as_ref();
    vec![
        limit.map_or_else(dash, |(max, _)| Cell::text(max)),
        limit.map_or_else(dash, |(_, burst)| Cell::text(burst)),
        g.weight.as_ref().map_or_else(dash, |w| Cell::text(w)),
        Cell::number(g.cpus, number(g.cpus)),
        whole(g.periods),
        whole(g.throttled),
        Cell::number(
            Some(g.throttled_pct()),
            format!("{:.1} %", g.throttled_pct()),
        ),
        ms(g.throttled_ms),
        whole(g.bursts),
        ms(g.burst_ms),
        ms(g.usage_ms),
    ]
}

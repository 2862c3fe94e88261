//! The table of groups with a limit.

use super::table::{Cell, Column, Row, Table};
use super::watched_tables::{name_heads, names};
use crate::groups::{GroupMeans, listed, means};
use crate::result::Variant;
use crate::text::number;

/// What each group with a limit used and how it was throttled, most throttled time first; none if
/// no group has a limit.
pub fn of(variants: &[Variant]) -> Option<Table> {
    let mut rows = Vec::new();
    for path in listed(variants) {
        for (side, variant) in variants.iter().enumerate() {
            let found = means(variant, path);
            let name = found.as_ref().map_or(path.unwrap_or("others"), |g| &g.name);
            let mut row = names(name, side, variant, variants.len());
            row.extend(cells(found.as_ref()));
            rows.push(Row {
                cells: row,
                joined: side + 1 < variants.len(),
            });
        }
    }
    let mut columns = name_heads(variants.len(), "group");
    columns.extend(heads());
    let table = Table {
        id: "groups-table".into(),
        caption: "Groups with a limit".into(),
        note: "Means over the seeds, in the words of cpu.stat. Throttled time is that of all \
               queues of the group together, one for each CPU."
            .into(),
        columns,
        rows,
    };
    Some(table).filter(|t| !t.rows.is_empty())
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

fn cells(group: Option<&GroupMeans>) -> Vec<Cell> {
    let Some(g) = group else {
        return vec![Cell::text("-").class("dim"); heads().len()];
    };
    let ms = |value: f64| Cell::number(Some(value), format!("{value:.1}"));
    let whole = |value: f64| Cell::number(Some(value), number(Some(value)));
    let dash = || Cell::text("-").class("dim");
    let limit = g.limit.as_ref();
    vec![
        limit.map_or_else(dash, |(max, _)| Cell::text(max)),
        limit.map_or_else(dash, |(_, burst)| Cell::text(&burst.to_string())),
        g.weight.map_or_else(dash, |w| Cell::text(&w.to_string())),
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

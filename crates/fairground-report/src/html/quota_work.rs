//! The table of what throttling made CPUs do.

use super::names::{name_heads, rows_of};
use super::table::{Cell, Column, Table};
use crate::groups::listed;
use crate::number::{few, number};
use crate::result::Variant;
use crate::text::WorkMeans;

/// What throttling made CPUs do, for each group with a limit that was throttled.
pub fn of(variants: &[Variant]) -> Table {
    let mut rows = Vec::new();
    for path in listed(variants).into_iter().flatten() {
        rows.extend(rows_of(path, variants, |variant| {
            let means = WorkMeans::of(variant, path);
            let means = means.filter(|m| m.throttled + m.unthrottled > 0.0)?;
            Some(numbers(&means))
        }));
    }
    let mut columns = name_heads(variants.len(), "group");
    columns.extend(heads());
    Table {
        id: "quota-work-table".into(),
        caption: "Work of throttling".into(),
        note: "Means over the seeds: queues that were throttled, each that of one CPU; groups \
               visited because of it; tasks taken off and put back; and for how long that kept \
               interrupts off: in the handler of the period timer where it hands out quota, and \
               for each queue that is unthrottled."
            .into(),
        columns,
        rows,
    }
}

fn heads() -> Vec<Column> {
    vec![
        Column::right("throttled").title("Queues throttled"),
        Column::right("unthrottled")
            .title("Queues unthrottled")
            .wide(),
        Column::right("walked").title("Groups visited by tg_throttle_down and tg_unthrottle_up"),
        Column::right("a period").title("Median over the periods with throttling"),
        Column::right("p99")
            .title("99th percentile of these periods")
            .wide(),
        Column::right("put off").title("Tasks taken off the queues"),
        Column::right("put back").title("Tasks put back"),
        Column::right("a period").title("Tasks taken off and put back, median"),
        Column::right("timer p50, us").title("Period timers that handed out quota"),
        Column::right("p99, us"),
        Column::right("throttle p99, us")
            .title("Throttling one queue")
            .wide(),
        Column::right("unthrottle p99, us").title("Unthrottling one queue"),
        Column::right("longest, us").wide(),
        Column::left("longest timer"),
    ]
}

fn numbers(means: &WorkMeans) -> Vec<Cell> {
    let whole = |value: f64| Cell::number(Some(value), few(value));
    let us = |value: Option<f64>| Cell::number(value, number(value));
    let longest = means.longest.map_or_else(
        || Cell::text("-").class("dim"),
        |(us, cpu, from, seed)| {
            let at = from as f64 / 1e6;
            let us_text = number(Some(us));
            let words = format!("{us_text} us on CPU {cpu}, at {at:.4} ms of seed {seed}");
            Cell::number(Some(us), words)
        },
    );
    vec![
        whole(means.throttled),
        whole(means.unthrottled),
        whole(means.walked),
        whole(means.walked_in[0]),
        whole(means.walked_in[1]),
        whole(means.put_off),
        whole(means.put_back),
        whole(means.moved_in[0]),
        us(means.timer_us[0]),
        us(means.timer_us[1]),
        us(means.throttle_us[1]),
        us(means.unthrottle_us[1]),
        us(means.unthrottle_us[2]),
        longest,
    ]
}

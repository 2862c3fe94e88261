//! Tables of what runs were watched for.

use super::names::{name_heads, rows_of};
use super::table::{Cell, Column, Row, Table};
use crate::groups::listed;
use crate::number::{few, number};
use crate::result::Variant;
use crate::text::{IdleMeans, QuotaMeans};
use crate::throttled_by::{mean, pairs};

/// Waiting for quota, the work of throttling, and CPUs that were idle while tasks waited.
pub fn of(variants: &[Variant]) -> Vec<Table> {
    let tables = [
        quota(variants),
        throttled_by(variants),
        super::quota_work::of(variants),
        idle(variants),
        super::idle_states::of(variants),
    ];
    tables.into_iter().filter(|t| !t.rows.is_empty()).collect()
}

fn quota(variants: &[Variant]) -> Table {
    let mut rows = Vec::new();
    for path in listed(variants).into_iter().flatten() {
        rows.extend(rows_of(path, variants, |variant| {
            let means = QuotaMeans::of(variant, path)?;
            Some(vec![
                whole(means.stretches),
                whole(means.delayed),
                ms_or_none(means.delay_ms.map(|d| d[0])),
                ms_or_none(means.delay_ms.map(|d| d[1])),
                ms_or_none(means.delay_ms.map(|d| d[2])),
                ms_or_none(means.usual_ms),
                whole(means.periods),
                whole_or_unknown(means.harmless()),
                whole_or_unknown(means.slow),
            ])
        }));
    }
    let mut columns = name_heads(variants.len(), "group");
    columns.extend([
        Column::right("stretches").title("From a wake-up of a task to its next sleep"),
        Column::right("waited").title("Stretches that waited for quota"),
        Column::right("p50, ms").title("How long these waited: median"),
        Column::right("p99, ms").title("99th percentile"),
        Column::right("longest, ms").wide(),
        Column::right("usual, ms")
            .title("99 % of those took no longer that touched no period with waiting for quota"),
        Column::right("periods").title("Periods in which a task waited for quota"),
        Column::right("harmless").title("Those that made no stretch slow"),
        Column::right("slow").title("Those in which waiting made a stretch slow"),
    ]);
    Table {
        id: "quota-table".into(),
        caption: "Waiting for quota".into(),
        note: "Means over the seeds. A stretch is slow if it waited for quota and took longer, by \
               a tenth, than 99 % of those that touched no period with waiting for quota, or \
               longer than --slow says."
            .into(),
        columns,
        rows,
    }
}

fn throttled_by(variants: &[Variant]) -> Table {
    let mut rows = Vec::new();
    for (group, by) in pairs(variants) {
        rows.extend(rows_of(group, variants, |variant| {
            let (waited_ms, share) = mean(variant, group, by)?;
            let percent = share.map_or("-".into(), |share| format!("{share:.1} %"));
            Some(vec![
                Cell::text(if group == by { "its own" } else { by }).class("name"),
                ms(waited_ms),
                Cell::number(share, percent),
            ])
        }));
    }
    let mut columns = name_heads(variants.len(), "group");
    columns.extend([
        Column::left("by quota of"),
        Column::right("task time, ms").title("Waiting of its tasks, all together"),
        Column::right("share").title("Of all that its tasks waited for quota"),
    ]);
    Table {
        id: "throttled-by-table".into(),
        caption: "Kept off the CPU by whose quota".into(),
        note:
            "Means over the seeds. Tasks of a group are those in it and below. Of several groups \
               above a task that were throttled at once on its CPU, the nearest counts."
                .into(),
        columns,
        rows,
    }
}

fn idle(variants: &[Variant]) -> Table {
    let row = |variant: &Variant| {
        let means = IdleMeans::of(variant)?;
        let percent =
            |v: Option<f64>| Cell::number(v, v.map_or("-".into(), |v| format!("{v:.3} %")));
        let longest = means.longest.map_or_else(
            || Cell::text("-").class("dim"),
            |(seed, w)| {
                let us = w.ns as f64 / 1e3;
                let place = if w.same_cache { ", same cache" } else { "" };
                let words = format!(
                    "{} us: {} on CPU {} beside CPU {}{place}, at {:.4} ms of seed {seed}",
                    number(Some(us)),
                    w.task,
                    w.cpu,
                    w.idle_cpu,
                    w.from_ns as f64 / 1e6
                );
                Cell::number(Some(us), words)
            },
        );
        Some(Row::from(vec![
            Cell::text(&variant.name).class(&variant.name),
            ms(means.cpu_ms),
            percent(means.share),
            percent(means.same_cache),
            whole(means.us_100),
            whole(means.ms_1),
            whole(means.ms_10).class("wide"),
            longest,
        ]))
    };
    Table {
        id: "idle-table".into(),
        caption: "Idle while tasks waited".into(),
        note:
            "Means over the seeds: time of CPUs that were idle while a task waited behind another \
               one that it could have run on; how often a task waited so; and the longest of these \
               waits. The kernel does not promise that there are none."
                .into(),
        columns: vec![
            Column::left(""),
            Column::right("CPU, ms"),
            Column::right("of all CPU time"),
            Column::right("same cache").title("Idle CPU and task below one last-level cache"),
            Column::right("> 100 us").title("Waits of a task"),
            Column::right("> 1 ms"),
            Column::right("> 10 ms").wide(),
            Column::left("longest"),
        ],
        rows: variants.iter().filter_map(row).collect(),
    }
}

fn ms(value: f64) -> Cell {
    Cell::number(Some(value), number(Some(value)))
}

fn ms_or_none(value: Option<f64>) -> Cell {
    Cell::number(value, number(value))
}

fn whole(value: f64) -> Cell {
    Cell::number(Some(value), few(value))
}

fn whole_or_unknown(value: Option<f64>) -> Cell {
    Cell::number(value, value.map_or("-".into(), few))
}

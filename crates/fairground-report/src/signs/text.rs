//! The tables of a sign table: what the change does in each place, which counters moved with it,
//! and what moved most.

use std::collections::BTreeSet;

use super::block::{Block, Row, blocks};
use super::{Place, Signs, moved, row};
use crate::number::{change, interval, number};
use crate::result::{Compare, Comparison};
use crate::text::{
    Align, EACH_ALONE, PER_WORDS, SAME_WORDS, Style, VERDICTS, foot, in_colour, labelled, render,
    variants_head,
};

/// Counters that explain: words of the heading, metric.
pub(super) const COUNTERS: [(&str, &str); 7] = [
    ("sched\npct", "sched_pct"),
    ("lock\nwait", "lock_wait_ns"),
    ("line\ntransfers", "line_transfers"),
    ("wake-up\np99", "wakeup_latency_us.p99"),
    ("switches", "switches"),
    ("migrations", "migrations"),
    ("idle\nwaste", "idle_waste_pct"),
];

/// What was compared, the tables, the verdicts counted, and how to redo it.
#[must_use]
pub fn signs_text(signs: &Signs, style: Style) -> String {
    let mut parts = vec![head(signs)];
    for block in blocks(signs) {
        for (metric, counted) in block.metrics.iter().zip(&block.counted) {
            let lines = counted.iter().map(|line| labelled("", line));
            let counted = format!("\n{}", lines.collect::<String>());
            parts.push(coloured(&changes(&block, metric), style) + &counted);
        }
        parts.push(counters(&block));
        parts.push(moved_text(&block));
    }
    parts.push(refusals(signs));
    parts.push(foot(&signs.redo, &signs.notes()) + &legend(signs));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn head(signs: &Signs) -> String {
    let mut text = labelled("profile", &signs.profile);
    let first = signs.places.iter().find_map(|place| place.result.as_ref());
    if let Some(first) = first {
        text += &variants_head(&first.variants);
    }
    text + &labelled("", &format!("fairground {}", signs.fairground))
}

/// The metric in each place.
fn changes(block: &Block, metric: &str) -> String {
    const NUMBERS: [&str; 5] = ["base", "patch", "change", "95 % CI (%)", "verdict"];
    let mut header = block.header.clone();
    header.extend(&block.parts);
    header.extend(NUMBERS);
    let mut align = vec![Align::Right; header.len()];
    align[0] = Align::Left;
    align[header.len() - 1] = Align::Left;
    let found = || {
        block.rows.iter().filter_map(|named| {
            let row = row(named.place.result.as_ref()?, metric)?;
            Some((named, row))
        })
    };
    let rows: Vec<Vec<String>> = found()
        .map(|(named, row)| {
            let mut cells = named.name.clone();
            cells.extend(named.parts.iter().cloned());
            let on = row.judged();
            cells.extend([
                number(on.base),
                number(on.patch),
                change(on.change_pct),
                interval(on.ci95_pct).unwrap_or("-".into()),
                row.word().into(),
            ]);
            cells
        })
        .collect();
    let mut units = found().map(|(_, row)| row.unit.as_str());
    let unit = units.find(|unit| !unit.is_empty());
    let unit = unit.map_or(String::new(), |unit| format!(", {unit}"));
    let per = found().map(|(_, row)| row.per_words());
    let unit = unit + &per.max().unwrap_or_default();
    let mut text = block.head.clone();
    text += &labelled("metric", &format!("{metric}{unit}"));
    text + "\n" + &render(&header, &rows, &align)
}

/// The change of a counter where it is more than noise.
pub(super) fn counter(result: &Compare, metric: &str) -> String {
    let shown = |row: &Comparison| match (row.differs, row.judged().change_pct) {
        (true, Some(pct)) => change(Some(pct)),
        // From nothing to something has no percentage.
        (true, None) => "new".into(),
        (false, _) if row.is_open() => "-".into(),
        (false, _) => ".".into(),
    };
    row(result, metric).map_or("-".into(), shown)
}

fn counters(block: &Block) -> String {
    let mut header = block.header.clone();
    header[0] = "what moved with it";
    header.extend(COUNTERS.map(|(words, _)| words));
    let mut align = vec![Align::Right; header.len()];
    align[0] = Align::Left;
    let cells = |named: &Row| {
        let result = named.place.result.as_ref()?;
        let mut cells = named.short.clone();
        cells.extend(COUNTERS.map(|(_, metric)| counter(result, metric)));
        Some(cells)
    };
    let rows: Vec<Vec<String>> = block.rows.iter().filter_map(cells).collect();
    render(&header, &rows, &align)
}

/// The line and the function of each place that explain its change.
pub(super) fn explained(place: &Place) -> Vec<[String; 3]> {
    let Some([base, patch]) = place.result.as_ref().map(|r| &r.variants[..]) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    if let Some(line) = moved::line(base, patch) {
        let amounts = [line.base, line.patch].map(|ms| number(Some(ms)));
        rows.push([
            line.name,
            format!("{} -> {}", amounts[0], amounts[1]),
            "ms of waiting".into(),
        ]);
    }
    if let Some(function) = moved::function(base, patch) {
        let amounts = [function.base, function.patch].map(|pct| format!("{pct:.2}%"));
        rows.push([
            function.name,
            format!("{} -> {}", amounts[0], amounts[1]),
            "of busy time".into(),
        ]);
    }
    rows
}

fn moved_text(block: &Block) -> String {
    let mut header = block.header.clone();
    header[0] = "what moved most";
    let names = header.len();
    header.extend(["line, function", "base -> patch", ""]);
    let mut rows = Vec::new();
    for named in &block.rows {
        for (i, row) in explained(named.place).into_iter().enumerate() {
            let mut cells = match i {
                0 => named.short.clone(),
                _ => vec![String::new(); names],
            };
            cells.extend(row);
            rows.push(cells);
        }
    }
    let mut align = vec![Align::Right; names];
    align[0] = Align::Left;
    align.extend([Align::Left, Align::Right, Align::Left]);
    render(&header, &rows, &align)
}

fn refusals(signs: &Signs) -> String {
    let refused = |place: &Place| {
        let why = place.refused.as_ref()?;
        Some(labelled(
            "not run",
            &format!("{}, {} CPUs: {why}", place.machine, place.cpus),
        ))
    };
    let mut lines: Vec<String> = signs.places.iter().filter_map(refused).collect();
    // A machine that has no such idle state is one reason, whatever should have run there.
    let mut said = BTreeSet::new();
    lines.retain(|line| said.insert(line.clone()));
    lines.concat()
}

fn legend(signs: &Signs) -> String {
    let words = [
        "the same seeds for base and patch; each place alone gives the same bytes (see --json)",
        EACH_ALONE,
        "`.`: the interval of the counter's change holds 0",
    ];
    let same = signs.tallies.iter().any(|tally| !tally.same.is_empty());
    let results = signs
        .places
        .iter()
        .filter_map(|place| place.result.as_ref());
    let mut rows = results.flat_map(|result| &result.comparison);
    let per = rows.any(|row| row.per.is_some());
    let more = [same.then_some(SAME_WORDS), per.then_some(PER_WORDS)];
    let words = words.into_iter().chain(more.into_iter().flatten());
    words.map(|line| labelled("", line)).collect()
}

/// The table with its verdicts in colour. After layout: escape codes have no width.
fn coloured(table: &str, style: Style) -> String {
    if !style.colour {
        return table.into();
    }
    let colour = |line: &str| {
        for word in VERDICTS {
            if let Some(start) = line.strip_suffix(word) {
                return format!("{start}{}\n", in_colour(word));
            }
        }
        format!("{line}\n")
    };
    table.lines().map(colour).collect()
}

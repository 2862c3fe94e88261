//! The tables of a sign table: what the change does in each place, which counters moved with it,
//! and what moved most.

use super::{Place, Signs, Tally, moved, row};
use crate::result::{Compare, Comparison};
use crate::text::{
    Align, Style, bare_change, change, foot, labelled, number, render, variants_head,
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
    let mut left = &signs.tallies[..];
    while let [first, ..] = left {
        let same = left.iter().take_while(|t| t.workload == first.workload);
        let (tallies, rest) = left.split_at(same.count());
        left = rest;
        let places = of(signs, first);
        for tally in tallies {
            parts.push(coloured(&changes(tally, &places), style) + &counted(tally));
        }
        parts.push(counters(&places));
        parts.push(moved_text(&places));
    }
    parts.push(refusals(signs));
    parts.push(foot(&signs.redo, &[]) + &legend());
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

fn of<'a>(signs: &'a Signs, tally: &Tally) -> Vec<&'a Place> {
    let here = |place: &&Place| place.workload == tally.workload && place.result.is_some();
    signs.places.iter().filter(here).collect()
}

/// The metric in each place.
fn changes(tally: &Tally, places: &[&Place]) -> String {
    const HEADER: [&str; 7] = [
        "machine",
        "CPUs",
        "base",
        "patch",
        "change",
        "95 % CI (%)",
        "verdict",
    ];
    let mut align = [Align::Right; HEADER.len()];
    align[0] = Align::Left;
    align[HEADER.len() - 1] = Align::Left;
    let cells = |place: &&Place| {
        let row = row(place.result.as_ref()?, &tally.metric)?;
        let [lo, hi] = row.ci95_pct.map(|end| end.map(bare_change));
        Some(vec![
            place.machine.clone(),
            place.cpus.to_string(),
            number(row.base),
            number(row.patch),
            change(row.change_pct),
            lo.zip(hi)
                .map_or("-".into(), |(lo, hi)| format!("[{lo}, {hi}]")),
            row.word().into(),
        ])
    };
    let rows: Vec<Vec<String>> = places.iter().filter_map(cells).collect();
    let unit = places.iter().find_map(|place| {
        let row = row(place.result.as_ref()?, &tally.metric)?;
        Some(row.unit.as_str()).filter(|unit| !unit.is_empty())
    });
    let unit = unit.map_or(String::new(), |unit| format!(", {unit}"));
    let mut text = labelled("workload", &tally.workload.join(" "));
    text += &labelled("metric", &format!("{}{unit}", tally.metric));
    text + "\n" + &render(&HEADER, &rows, &align)
}

/// The verdicts in sentences.
pub(super) fn sentences(tally: &Tally) -> Vec<String> {
    let all = [&tally.better, &tally.worse, &tally.differs, &tally.noise];
    let total: usize = all.iter().map(|list| list.len()).sum();
    let words = ["better", "worse", "differs", "noise"];
    let named = words.iter().zip(all).filter(|(_, list)| !list.is_empty());
    let said = |(word, list): (&&str, &Vec<String>)| {
        format!("{word} on {} of {total}: {}", list.len(), list.join(", "))
    };
    let mut lines: Vec<String> = named.map(said).collect();
    for growth in &tally.from_cpus {
        let machine = &growth.machine;
        lines.push(match growth.cpus {
            Some(cpus) => format!("{machine}: it shows from {cpus} CPUs on, of those tried"),
            None => format!("{machine}: noise with the most CPUs"),
        });
    }
    lines
}

fn counted(tally: &Tally) -> String {
    let lines = sentences(tally);
    let lines = lines.iter().map(|line| labelled("", line));
    format!("\n{}", lines.collect::<String>())
}

/// The change of a counter where it is more than noise.
pub(super) fn counter(result: &Compare, metric: &str) -> String {
    let shown = |row: &Comparison| match (row.differs, row.change_pct) {
        (true, Some(pct)) => change(Some(pct)),
        // From nothing to something has no percentage.
        (true, None) => "new".into(),
        (false, _) => ".".into(),
    };
    row(result, metric).map_or("-".into(), shown)
}

fn counters(places: &[&Place]) -> String {
    let mut header = vec!["what moved with it", "CPUs"];
    header.extend(COUNTERS.map(|(words, _)| words));
    let mut align = vec![Align::Right; header.len()];
    align[0] = Align::Left;
    let cells = |place: &&Place| {
        let result = place.result.as_ref()?;
        let mut cells = vec![place.machine.clone(), place.cpus.to_string()];
        cells.extend(COUNTERS.map(|(_, metric)| counter(result, metric)));
        Some(cells)
    };
    let rows: Vec<Vec<String>> = places.iter().filter_map(cells).collect();
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

fn moved_text(places: &[&Place]) -> String {
    const HEADER: [&str; 5] = [
        "what moved most",
        "CPUs",
        "line, function",
        "base -> patch",
        "",
    ];
    let mut rows = Vec::new();
    for place in places {
        for (i, [name, amounts, what]) in explained(place).into_iter().enumerate() {
            let (machine, cpus) = match i {
                0 => (place.machine.clone(), place.cpus.to_string()),
                _ => (String::new(), String::new()),
            };
            rows.push(vec![machine, cpus, name, amounts, what]);
        }
    }
    let align = [
        Align::Left,
        Align::Right,
        Align::Left,
        Align::Right,
        Align::Left,
    ];
    render(&HEADER, &rows, &align)
}

fn refusals(signs: &Signs) -> String {
    let refused = |place: &Place| {
        let why = place.refused.as_ref()?;
        Some(labelled(
            "not run",
            &format!("{}, {} CPUs: {why}", place.machine, place.cpus),
        ))
    };
    signs.places.iter().filter_map(refused).collect()
}

fn legend() -> String {
    let words = [
        "the same seeds for base and patch; each place alone gives the same bytes (see --json)",
        "each interval holds at 95 % by itself: of 20 rows without effect, about one excludes 0",
        "`.`: the interval of the counter's change holds 0",
    ];
    words.map(|line| labelled("", line)).concat()
}

/// The table with its verdicts in colour. After layout: escape codes have no width.
fn coloured(table: &str, style: Style) -> String {
    if !style.colour {
        return table.into();
    }
    let colour = |line: &str| {
        for (word, code) in [("better", "32"), ("worse", "31"), ("noise", "2")] {
            if let Some(start) = line.strip_suffix(word) {
                return format!("{start}\x1b[{code}m{word}\x1b[0m\n");
            }
        }
        format!("{line}\n")
    };
    table.lines().map(colour).collect()
}

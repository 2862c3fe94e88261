//! The page of a replay: recorded, replayed, and what if.

use std::collections::BTreeMap;

use fairground_report::html::{
    Cell, Column, Page, Periods, Row, Samples, Table, functions, groups, lines, page,
    period_figures, watched,
};
use fairground_report::{
    FidelityVerdict, Style, WhatIfRow, change_text, interval_text, number_text,
};
use fairground_sim::host::Stack;
use fairground_sim::watch::quota::QuotaWait;
use fairground_trace::derive::Attributes;
use fairground_trace::measure::Measured;
use fairground_trace::replay::{Replay, Run};
use fairground_trace::simulated::Throttle;
use fairground_trace::{Kind, Recording};

use crate::failure::Failure;
use crate::replay::json;
use crate::replay::quantities::quantities;
use crate::replay::quantity::Quantity;
use crate::replay::text::{self, Sides};
use crate::report::{Source, samples};
use crate::report_periods;

/// Threads in the first table.
const THREADS: usize = 20;

/// The page.
///
/// # Errors
/// The page itself is at fault.
pub fn text(s: &Sides<'_>, replay: &Replay<'_>, known: &Attributes) -> Result<String, Failure> {
    let trace = s.path.file_name().unwrap_or(s.path.as_os_str());
    let trace = trace.to_string_lossy();
    let mut tables = vec![table(s), verdicts(s)];
    tables.extend(
        s.results
            .what_if
            .iter()
            .map(|other| what_if_table(&other.rows)),
    );
    let mut facts = vec![
        (
            "trace".to_string(),
            format!("{trace} ({})", s.recording.format),
        ),
        ("events".into(), s.recording.tracepoints().to_string()),
        ("tick".into(), tick(s)),
    ];
    facts.extend(s.about.facts());
    let mut notes = text::notes(s);
    let stopped = text::stopped(&s.results.replayed.mean);
    notes.extend(stopped.map(|note| format!("replayed: {note}")));
    let what_if = s.results.what_if.as_ref();
    let what_if = what_if.and_then(|other| text::stopped(&other.beside));
    notes.extend(what_if.map(|note| format!("what if: {note}")));
    notes.extend(s.about.page_notes());
    tables.extend(groups(&s.results.costs));
    tables.extend(watched(&s.results.costs));
    let style = Style::default();
    let about = Page {
        title: trace.to_string(),
        lead: "fairground replay".into(),
        facts,
        tables,
        text: text::text(s),
        notes,
        lines: lines(&s.results.costs, style.lines),
        functions: functions(&s.results.costs, style.functions),
        redo: s.about.redo.command.clone(),
        json: json::json(s)?,
        ..Page::default()
    };
    let samples = sides(s, replay, known);
    let about = Page {
        figures: period_figures(&samples),
        ..about
    };
    page(&about, &samples).map_err(Failure::new)
}

fn tick(s: &Sides<'_>) -> String {
    let assumed = if s.doubts.hz_assumed { ", assumed" } else { "" };
    format!("{} Hz{assumed}", s.home.features.hz)
}

fn sides(s: &Sides<'_>, replay: &Replay<'_>, known: &Attributes) -> Vec<Samples> {
    let one =
        |name: &str, r: &Recording, m: &Measured, stacks: &[Stack], throttles: &[Throttle]| {
            let inherited = inherited(r, known);
            let group_of = |tid| group_of(tid, r, &inherited, known);
            samples(&Source {
                variant: name,
                about: format!("From the start of the recording: {name}"),
                recording: r,
                from_ns: m.window.0,
                origin_ns: m.window.0,
                groups: known.groups(),
                group_of: &group_of,
                throttles: throttles.to_vec(),
                stacks,
                latency: latencies(m),
            })
        };
    let run = |name: &str, run: &Run, waits: &[QuotaWait]| {
        let side = one(
            name,
            &run.events,
            &run.measured,
            &run.stacks,
            &run.throttles,
        );
        Samples {
            periods: periods(run, waits, known),
            ..side
        }
    };
    let what_if = s.results.what_if.iter();
    let runs = std::iter::once(("replayed", &s.results.replayed))
        .chain(what_if.map(|other| ("what if", &other.side)));
    let recorded = one("recorded", s.recording, &replay.recorded, &[], &[]);
    std::iter::once(recorded)
        .chain(
            runs.zip(&s.results.quota)
                .map(|((name, side), waits)| run(name, side.first(), waits)),
        )
        .collect()
}

/// The periods of a replay: a recording does not have any.
fn periods(run: &Run, waits: &[QuotaWait], known: &Attributes) -> Vec<Periods> {
    let inherited = inherited(&run.events, known);
    report_periods::periods(&report_periods::Source {
        waits,
        workload: &run.derived.workload,
        recording: &run.events,
        origin_ns: run.derived.lead_ns,
        group_of: &|tid| group_of(tid, &run.events, &inherited, known),
        throttles: &run.throttles,
    })
}

/// The number of a thread's group, by what is known of it or of its creator.
fn group_of(
    tid: u32,
    recording: &Recording,
    inherited: &BTreeMap<u32, u32>,
    known: &Attributes,
) -> u32 {
    let own = || known.group_of(tid, &recording.names.get(tid));
    inherited.get(&tid).copied().unwrap_or_else(own)
}

/// The groups of threads of which only their creator's is known, which is theirs too.
fn inherited(r: &Recording, known: &Attributes) -> BTreeMap<u32, u32> {
    let mut groups: BTreeMap<u32, u32> = BTreeMap::new();
    for event in &r.events {
        let Kind::Fork { parent, child } = event.kind else {
            continue;
        };
        if known.path_of(child, &r.names.get(child)).is_none() {
            let own = || known.group_of(parent, &r.names.get(parent));
            let group = groups.get(&parent).copied().unwrap_or_else(own);
            groups.insert(child, group);
        }
    }
    groups
}

fn latencies(m: &Measured) -> Vec<(u64, u64)> {
    let mut counts = BTreeMap::new();
    for ns in m.threads.values().flat_map(|t| &t.latency_ns) {
        *counts.entry(*ns).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

/// The replay beside the recording: means over its seeds.
fn table(s: &Sides<'_>) -> Table {
    let f = &s.results.replayed.mean;
    let row = |q: &Quantity| {
        let [a, b, shown] = text::shown_of(q);
        let diff = Some(q.pair.diff_pct()).filter(|d| d.is_finite() && !q.at_least[0]);
        Row::from(vec![
            Cell::text(&q.label),
            Cell::number(Some(q.pair.recorded), a),
            Cell::number(Some(q.pair.replayed), b),
            Cell::number(diff, shown),
        ])
    };
    let all = quantities((f, None));
    let some = all.iter().filter(|q| q.is_shown(THREADS, f.busy_pct.len()));
    Table {
        id: "replay-table".into(),
        caption: "Recorded and replayed".into(),
        note: seeds_note(s),
        columns: vec![
            Column::left(""),
            Column::right("recorded"),
            Column::right("replayed"),
            Column::right("difference"),
        ],
        rows: some.map(row).collect(),
    }
}

fn seeds_note(s: &Sides<'_>) -> String {
    match s.results.replayed.runs.len() {
        1 => String::new(),
        n => format!("Replayed: means over {n} seeds."),
    }
}

/// How faithful the replay is.
fn verdicts(s: &Sides<'_>) -> Table {
    let seeds = s.results.replayed.runs.len();
    let row = |v: &FidelityVerdict| {
        let off = v.off.map(|off| format!("{off:+.1}{}", v.unit_sign()));
        let why = v.why_not.clone().or_else(|| v.of.clone());
        let met = v.met.map(|_| format!("{} of {seeds}", v.seeds_met));
        Row::from(vec![
            Cell::text(&v.label),
            Cell::text(&format!("{}{}", v.limit, v.unit_sign())),
            Cell::number(v.off, off.unwrap_or("-".into())),
            Cell::text(v.word()),
            Cell::text(&met.unwrap_or_default()),
            Cell::text(&why.unwrap_or_default()),
        ])
    };
    Table {
        id: "fidelity-table".into(),
        caption: "Is the replay faithful?".into(),
        note: "Of several threads or CPUs, that which is furthest off.".into(),
        columns: vec![
            Column::left(""),
            Column::right("limit"),
            Column::right("off"),
            Column::left("verdict"),
            Column::left("seeds that meet it"),
            Column::left("furthest off"),
        ],
        rows: s.results.fidelity.verdicts.iter().map(row).collect(),
    }
}

/// The what-if beside the replay.
fn what_if_table(rows: &[WhatIfRow]) -> Table {
    let row = |row: &WhatIfRow| {
        let c = &row.comparison;
        let bound = |text: String, at_least: bool| match at_least && text != "-" {
            true => format!("> {text}"),
            false => text,
        };
        let [a, b] = row.at_least;
        Row::from(vec![
            Cell::text(&row.label),
            Cell::number(c.base, bound(number_text(c.base), a)),
            Cell::number(c.patch, bound(number_text(c.patch), b)),
            Cell::number(c.change_pct, bound(change_text(c.change_pct), b)),
            Cell::text(&interval_text(c.ci95_pct).unwrap_or("-".into())),
            Cell::text(&row.word()),
        ])
    };
    Table {
        id: "what-if-table".into(),
        caption: "Replayed and what if".into(),
        note: "Means over the seeds, with the 95 % interval of the change in percent. `?`: at \
               home the replay is off by more than its limit in this, so do not believe it here."
            .into(),
        columns: vec![
            Column::left(""),
            Column::right("replayed"),
            Column::right("what if"),
            Column::right("change"),
            Column::right("95 % CI (%)"),
            Column::left("verdict"),
        ],
        rows: rows.iter().map(row).collect(),
    }
}

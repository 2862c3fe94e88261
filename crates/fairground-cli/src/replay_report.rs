//! The page of a replay: recorded, replayed, and what if.

use std::collections::BTreeMap;

use fairground_report::html::{
    Cell, Column, Page, Row, Samples, Table, functions, groups, lines, page, watched,
};
use fairground_report::{Style, Variant};
use fairground_sim::host::Stack;
use fairground_sim::outcome::Outcome;
use fairground_trace::derive::Attributes;
use fairground_trace::fidelity::Pair;
use fairground_trace::measure::Measured;
use fairground_trace::replay::{Replay, Run};
use fairground_trace::simulated::Throttle;
use fairground_trace::{Kind, Recording};

use crate::failure::Failure;
use crate::glue;
use crate::replay_json;
use crate::replay_text::{self, Both, Sides};
use crate::report::{Source, samples};
use crate::simulate;
use crate::usual;

/// The page.
///
/// # Errors
/// The page itself is at fault.
pub fn text(s: &Sides<'_>, replay: &Replay<'_>, known: &Attributes) -> Result<String, Failure> {
    let trace = s.path.file_name().unwrap_or(s.path.as_os_str());
    let trace = trace.to_string_lossy();
    let mut tables = vec![table(
        "replay-table",
        "Recorded and replayed",
        ["recorded", "replayed"],
        (s.at_home, None),
    )];
    if let Some((_, sides, _)) = s.what_if {
        tables.push(table(
            "what-if-table",
            "Replayed and what if",
            ["replayed", "what if"],
            (sides, Some(s.at_home)),
        ));
    }
    let mut facts = vec![
        (
            "trace".to_string(),
            format!("{trace} ({})", s.recording.format),
        ),
        ("events".into(), s.recording.tracepoints().to_string()),
        ("tick".into(), tick(s)),
    ];
    facts.extend(s.about.facts());
    let mut notes = replay_text::notes(s);
    notes.extend(replay_text::stopped(s.at_home).map(|note| format!("replayed: {note}")));
    let what_if = s.what_if.map(|(_, sides, _)| sides);
    let what_if = what_if.and_then(replay_text::stopped);
    notes.extend(what_if.map(|note| format!("what if: {note}")));
    notes.extend(s.about.page_notes());
    let costs = costs(s);
    tables.extend(groups(&costs));
    tables.extend(watched(&costs));
    let style = Style::default();
    let about = Page {
        title: trace.to_string(),
        lead: "fairground replay".into(),
        facts,
        tables,
        text: replay_text::text(s),
        notes,
        lines: lines(&costs, style.lines),
        functions: functions(&costs, style.functions),
        redo: s.about.redo.command.clone(),
        json: replay_json::json(s)?,
        ..Page::default()
    };
    page(&about, &sides(s, replay, known)).map_err(Failure::new)
}

fn tick(s: &Sides<'_>) -> String {
    let assumed = if s.doubts.hz_assumed { ", assumed" } else { "" };
    format!("{} Hz{assumed}", s.home.features.hz)
}

/// What the simulated kernel cost in the replay, and what if: a recording does not say it.
pub fn costs(s: &Sides<'_>) -> Vec<Variant> {
    let runs = std::iter::once(("replayed", s.run)).chain(s.what_if.map(|w| ("what if", &w.2)));
    let outcome = |(_, run): (_, &Run)| {
        let mut outcome = run.outcome.clone();
        simulate::slow_from(&mut outcome, s.slow_ns);
        vec![outcome]
    };
    let mut outcomes: Vec<Vec<Outcome>> = runs.clone().map(outcome).collect();
    usual::share(&mut outcomes);
    let variant = |((name, run), outcome): ((&str, &Run), Outcome)| {
        let names = &s.recording.names;
        let who = |task: u32| run.who.get(task as usize);
        let tid = |task: u32| who(task).map_or(0, |w| names.kernel_id(w.tid));
        let mut side = glue::run_of(outcome, &tid);
        // Times of a replay count from the recording's start.
        let earlier = |ns: &mut u64| *ns = ns.saturating_sub(run.derived.lead_ns);
        let longest = side.idle_waste.as_mut().and_then(|w| w.longest.as_mut());
        if let Some(wait) = longest {
            earlier(&mut wait.from_ns);
        }
        let of_groups = side.groups.iter_mut().filter_map(|g| g.wait.as_mut());
        for wait in of_groups.filter_map(|wait| wait.longest.as_mut()) {
            earlier(&mut wait.from_ns);
            earlier(&mut wait.held_from_ns);
        }
        Variant {
            name: name.into(),
            runs: vec![side],
            ..Variant::default()
        }
    };
    runs.zip(outcomes.into_iter().flatten())
        .map(variant)
        .collect()
}

fn sides(s: &Sides<'_>, replay: &Replay<'_>, known: &Attributes) -> Vec<Samples> {
    let one =
        |name: &str, r: &Recording, m: &Measured, stacks: &[Stack], throttles: &[Throttle]| {
            let inherited = inherited(r, known);
            let group_of = |tid: u32| match inherited.get(&tid) {
                Some(group) => *group,
                None => known.group_of(tid, &r.names.get(tid)),
            };
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
    let run = |name: &str, run: &Run| {
        one(
            name,
            &run.events,
            &run.measured,
            &run.stacks,
            &run.throttles,
        )
    };
    let mut all = vec![
        one("recorded", s.recording, &replay.recorded, &[], &[]),
        run("replayed", s.run),
    ];
    all.extend(s.what_if.map(|(_, _, other)| run("what if", other)));
    all
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

fn table(id: &str, caption: &str, [a, b]: [&str; 2], both: Both<'_>) -> Table {
    let f = both.0;
    let bounded = |name: String, p: Pair, at_least: [bool; 2]| {
        let [a, b, shown] = replay_text::shown(p, at_least);
        let diff = Some(p.diff_pct()).filter(|d| d.is_finite() && !at_least[0]);
        Row::from(vec![
            Cell::text(&name),
            Cell::number(Some(p.recorded), a),
            Cell::number(Some(p.replayed), b),
            Cell::number(diff, shown),
        ])
    };
    let row = |name: String, p: Pair| bounded(name, p, [false; 2]);
    let stopped = replay_text::stopped_sides(both);
    let mut rows = vec![
        bounded("elapsed, ms".into(), f.elapsed_ms, stopped),
        bounded("CPU time, ms".into(), f.cpu_ms, stopped),
        row("switches from sleepers".into(), f.voluntary),
        row("switches from runnable threads".into(), f.involuntary),
    ];
    for (name, pair) in ["p50", "p90", "p99"]
        .iter()
        .zip(f.latency_us.into_iter().flatten())
    {
        rows.push(row(format!("wake-up latency {name}, µs"), pair));
    }
    for t in f.threads.iter().take(20) {
        let undone = replay_text::undone_sides(both, t);
        let name = format!("{}: CPU time, ms", t.name);
        rows.push(bounded(name, t.cpu_ms, undone));
        rows.push(row(format!("{}: switches", t.name), t.switches));
    }
    Table {
        id: id.into(),
        caption: caption.into(),
        note: String::new(),
        columns: vec![
            Column::left(""),
            Column::right(a),
            Column::right(b),
            Column::right("difference"),
        ],
        rows,
    }
}

//! What `fairground replay` prints and writes.

use std::fmt::Write as _;
use std::path::Path;

use fairground_report::{
    WhatIfRow, faithful_text, fidelity_text, groups_text, labelled, watched_text, what_if_text,
};
use fairground_trace::Recording;
use fairground_trace::fidelity::{Fidelity, Pair};
use fairground_trace::recording::{list_of, number_of};
use fairground_trace::replay::{Place, Run};

use crate::replay::about::About;
use crate::replay::doubts::Doubts;
use crate::replay::early;
use crate::replay::judged::{beyond_note, quota_note};
use crate::replay::quantities::{quantities, ranges};
use crate::replay::quantity::Quantity;
use crate::replay::results::{Other, Results};
use crate::replay::seeds::Side;

/// All that is known of a replay.
pub struct Sides<'a> {
    /// The trace.
    pub path: &'a Path,
    /// Read.
    pub recording: &'a Recording,
    /// What was asked for.
    pub about: &'a About,
    /// Where it was made.
    pub home: &'a Place,
    /// What is not known of it.
    pub doubts: Doubts,
    /// What is known of its kernel.
    pub kernel: Option<String>,
    /// What came of the replays.
    pub results: &'a Results,
    /// Most threads to show.
    pub threads: usize,
}

/// For people.
pub fn text(s: &Sides<'_>) -> String {
    let mut text = String::new();
    let r = s.recording;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{}: {}, {}, {}, {:.3} ms",
        s.path.display(),
        r.format,
        number_of(r.tracepoints() as u64, "event", "events"),
        number_of(r.cpus.into(), "CPU", "CPUs"),
        s.results.replayed.mean.elapsed_ms.recorded
    );
    for note in before(s) {
        let _ = writeln!(text, "  {note}");
    }
    let hz = s.home.features.hz;
    let _ = writeln!(text, "\nreplayed on {} ({hz} Hz)", s.home.machine.id);
    text += &s.about.home_text();
    table(s, &mut text);
    let seeds = s.results.replayed.runs.len();
    text += &format!("\n{}", fidelity_text(&s.results.fidelity, seeds));
    unfinished(
        &s.results.replayed.runs,
        &s.results.replayed.mean,
        &mut text,
    );
    if let (None, Some(note)) = (&s.results.what_if, without_quota(s)) {
        text += &labelled("note", &note);
    }
    if let Some(other) = &s.results.what_if {
        let _ = writeln!(
            text,
            "\n{}",
            faithful_text(&s.results.fidelity, &other.early)
        );
        text += &what_if(s, other);
    }
    let first = s.about.redo.seeds.first().copied();
    let watched = watched_text(&s.results.costs, &|wait, seed, last| {
        // Only what runs last is explained, with the first seed unless another one is named.
        let seed = match Some(seed) == first {
            true => String::new(),
            false => format!("--seed {seed} "),
        };
        last.then(|| format!("{seed}--explain {wait}"))
    });
    let beside: String = beside(s).iter().map(|note| format!("{note}\n")).collect();
    let parts = [
        text,
        groups_text(&s.results.costs),
        watched,
        beside,
        s.about.foot(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// The what-if: where, what differs, and each quantity beside that of the replay at home.
fn what_if(s: &Sides<'_>, other: &Other) -> String {
    let mut text = format!("what if, on {}\n", other.machine);
    text += &s.about.what_if_text();
    let both = (&other.beside, Some(&s.results.replayed.mean));
    let cpus = other.beside.busy_pct.len();
    let all = quantities(both);
    let rows = all.iter().zip(&other.rows);
    let rows = rows.filter(|(q, _)| q.is_shown(s.threads, cpus));
    let rows: Vec<&WhatIfRow> = rows.map(|(_, row)| row).collect();
    text += &what_if_text(&rows);
    let early = early::note(&other.early);
    for note in beyond(s).into_iter().chain(early).chain(without_quota(s)) {
        text += &labelled("note", &note);
    }
    for note in new_notes(s, other) {
        text += &format!("  {note}\n");
    }
    unfinished(&other.side.runs, &other.beside, &mut text);
    text
}

/// That the what-if is not judged in all, because of what nobody recorded.
fn beyond(s: &Sides<'_>) -> Option<String> {
    let other = s.results.what_if.as_ref()?;
    beyond_note(&s.results.replayed.mean, &other.beside)
}

/// What wake-up latency is not, if a group has a limit.
fn without_quota(s: &Sides<'_>) -> Option<String> {
    let runs = s.results.costs.iter().flat_map(|side| &side.runs);
    let limited = runs.flat_map(|run| &run.groups).any(|group| group.counted);
    let home = std::iter::once(&s.about.home);
    let sides = home.chain(&s.about.what_if);
    let throttle = sides.filter_map(|side| side.variant.decisions.get("throttle"));
    let throttle: Vec<&str> = throttle.map(String::as_str).collect();
    limited.then(|| quota_note(&throttle))
}

/// Notes on what runs elsewhere that the replay at home does not have.
fn new_notes<'a>(s: &'a Sides<'_>, other: &'a Other) -> impl Iterator<Item = &'a String> {
    let known = &s.results.replayed.first().derived.notes;
    let notes = other.side.first().derived.notes.iter();
    notes.filter(move |note| !known.contains(note))
}

/// All that is to be known of trace and replay beside the figures, but what was asked for.
pub fn notes(s: &Sides<'_>) -> Vec<String> {
    let mut notes = before(s);
    if let Some(other) = &s.results.what_if {
        notes.extend(new_notes(s, other).cloned());
    }
    notes.extend(beyond(s));
    let early = s.results.what_if.as_ref().map(|other| &other.early[..]);
    notes.extend(early.and_then(early::note));
    notes.extend(without_quota(s));
    notes.extend(beside(s));
    notes
}

/// What to know of the trace before the figures.
fn before(s: &Sides<'_>) -> Vec<String> {
    let left_out = s.recording.left_out.text();
    let mut notes: Vec<String> = left_out.lines().map(Into::into).collect();
    match s.doubts.inferred {
        0 => {}
        1 => notes.push("1 switch is missing and was filled in".into()),
        n => notes.push(format!("{n} switches are missing and were filled in")),
    }
    if s.doubts.at_least {
        let note = "CPU times are lower bounds: of many switches it is not known when they were";
        notes.push(note.into());
    }
    if s.doubts.at_most {
        let note = "CPU times are upper bounds: the switches by which threads left their CPUs to \
                    the idle task are missing, so when they left is not known";
        notes.push(note.into());
    }
    if s.recording.whole_us {
        let note = "times are whole us: use --ns (`perf script --ns`, `trace-cmd report -t`)";
        notes.push(note.into());
    }
    notes.extend(s.results.replayed.first().derived.notes.iter().cloned());
    notes.extend(silent(s));
    let cpus = s.home.machine.topology.nr_cpus();
    if cpus != s.recording.cpus as usize {
        let recorded = number_of(s.recording.cpus.into(), "CPU", "CPUs");
        notes.push(format!(
            "the trace has {recorded}, the replay {cpus} (`--recorded-on`)"
        ));
    }
    notes.extend(s.kernel.clone());
    if s.doubts.hz_assumed {
        let hz = s.home.features.hz;
        notes.push(format!(
            "the tick does not show: {hz} Hz are assumed (`hz` in --attributes)"
        ));
    }
    notes
}

/// That CPUs have no event, and what the replay makes of them.
fn silent(s: &Sides<'_>) -> Option<String> {
    let cpus = s.recording.silent_cpus();
    let named = list_of(&cpus);
    let (all, first) = (s.recording.cpus, cpus.first()?);
    let (word, have, are) = match cpus.len() {
        1 => ("CPU", "has", "is"),
        _ => ("CPUs", "have", "are"),
    };
    let told = if s.doubts.keeps_away {
        "threads stay away from what was not recorded".to_string()
    } else {
        let fewer = match cpus.iter().copied().eq(*first..all) && *first > 0 {
            true if *first == 1 => " of one CPU".to_string(),
            true => format!(" of {first} CPUs"),
            false => String::new(),
        };
        format!(
            "threads may go there in the replay; if {word} {named} {are} not part of it, name a \
             machine{fewer} with --recorded-on"
        )
    };
    Some(format!(
        "{word} {named} of {all} {have} no event, being idle throughout or not recorded (`perf \
         record -C`): {told}"
    ))
}

/// What costs and idle times have in them beside the recording, of each replay: means.
fn beside(s: &Sides<'_>) -> Vec<String> {
    let what_if = s.results.what_if.as_ref();
    let what_if = what_if.map(|other| ("what if", &other.side));
    let sides = std::iter::once(("replayed", &s.results.replayed)).chain(what_if);
    let words = |(name, side): (&str, &Side)| {
        let mean = |f: &dyn Fn(&Run) -> u64| {
            let sum: u64 = side.runs.iter().map(f).sum();
            sum as f64 / side.runs.len() as f64 / 1e6
        };
        let before = mean(&|run| run.derived.lead_ns);
        let all = mean(&|run| run.outcome.elapsed_ns);
        let after = mean(&|run| {
            let ends_ns = run.derived.lead_ns + run.elapsed_ns;
            run.outcome.elapsed_ns.saturating_sub(ends_ns)
        });
        // A simulated run that is replayed has a beginning of its own.
        (side.first().derived.workload.warmup_ns == 0 && before + after > 0.0).then(|| {
            format!(
                "{name}: costs and idle times are of {all:.2} ms, of which {before:.2} ms are \
                 before the recording and {after:.2} ms after it"
            )
        })
    };
    sides.filter_map(words).collect()
}

/// A thread as the tables write it, `hog0 (27196)` or `cc1 (2235 #2)`, in the words that
/// `--explain` knows.
pub fn plain(who: &str) -> String {
    let id = |inside: &str| -> Option<u32> { inside.split(" #").next()?.parse().ok() };
    let parts = who.strip_suffix(')').and_then(|w| w.rsplit_once(" ("));
    match parts.and_then(|(name, inside)| Some((name, id(inside)?))) {
        Some((name, id)) => format!("{name}-{id}"),
        None => who.to_string(),
    }
}

fn unfinished(runs: &[Run], sides: &Fidelity, text: &mut String) {
    let counts = runs.iter().map(|run| run.unfinished);
    let (least, most) = counts.fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    let up_to = if least < most { "up to " } else { "" };
    match (stopped(sides), most) {
        (Some(note), _) => *text += &(note + "\n"),
        (None, 0) => {}
        (None, 1) => {
            *text += &format!("{up_to}1 thread had not done its recorded work at the end\n")
        }
        (None, n) => {
            *text += &format!("{up_to}{n} threads had not done their recorded work at the end\n");
        }
    }
}

/// What to know of a replay that was stopped.
pub fn stopped(sides: &Fidelity) -> Option<String> {
    const SHOWN: usize = 6;
    let ms = sides.stopped_ms?;
    let names = &sides.undone[..sides.undone.len().min(SHOWN)];
    let more = match sides.undone.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "stopped at {ms:.0} ms, three times the recording: values with `>` are lower bounds, and \
         latencies and busy shares are of what was done by then, as {} not done all that was \
         recorded: {}{more}",
        number_of(sides.undone.len() as u64, "thread had", "threads had"),
        names.join(", ")
    ))
}

/// Numbers of a row as they are shown, with `>` before lower bounds: of two sides, and how far
/// apart they are, of which that is known only if the first is exact.
pub fn shown(p: Pair, at_least: [bool; 2]) -> [String; 3] {
    let bound = |x: String, at_least: bool| match at_least {
        true => format!("> {x}"),
        false => x,
    };
    let diff = match p.diff_pct() {
        d if d.is_finite() && !at_least[0] => bound(percent(d), at_least[1]),
        _ => "-".to_string(),
    };
    [
        bound(number(p.recorded), at_least[0]),
        bound(number(p.replayed), at_least[1]),
        diff,
    ]
}

/// With its sign, unless it is shown as zero.
fn percent(x: f64) -> String {
    match format!("{x:+.1} %") {
        text if text[1..] == *"0.0 %" => "0.0 %".into(),
        text => text,
    }
}

/// A quantity as it is shown: `-` where a side does not have it.
pub fn shown_of(q: &Quantity) -> [String; 3] {
    let [mut a, mut b, mut diff] = shown(q.pair, q.at_least);
    for (side, absent) in [&mut a, &mut b].into_iter().zip(q.absent) {
        if absent {
            (*side, diff) = ("-".into(), "-".into());
        }
    }
    [a, b, diff]
}

/// The replay beside the recording: means over the seeds and, of several, how far these are apart.
fn table(s: &Sides<'_>, text: &mut String) {
    let f = &s.results.replayed.mean;
    let seeds = s.results.replayed.runs.len();
    let ranges = ranges(&s.results.replayed.each);
    let range = |q: &Quantity| match ranges.get(&q.name) {
        _ if seeds == 1 || q.absent[1] => String::new(),
        Some((a, b)) => match [number(*a), number(*b)] {
            [a, b] if a == b => "the same".into(),
            [a, b] => format!("{a} to {b}"),
        },
        None => String::new(),
    };
    let head = match seeds {
        1 => String::new(),
        n => format!("with {n} seeds"),
    };
    let mut show = |name: &str, [a, b, diff]: [&str; 3], range: &str| {
        let line = format!("{name:<36} {a:>12} {b:>12} {diff:>10}  {range}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    show("", ["recorded", "replayed", "difference"], &head);
    let all = quantities((f, None));
    for q in all
        .iter()
        .filter(|q| q.is_shown(s.threads, f.busy_pct.len()))
    {
        let [a, b, diff] = shown_of(q);
        show(&q.label, [&a, &b, &diff], &range(q));
    }
}

/// Four digits, or more where the number has them.
pub fn number(x: f64) -> String {
    match x.abs() {
        a if a >= 1000.0 || a.fract() == 0.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_may_be_named_as_the_tables_name_them() {
        for (who, plain) in [
            ("hog0 (27196)", "hog0-27196"),
            ("cc1 (2235 #2)", "cc1-2235"),
            ("a b (7)", "a b-7"),
            ("(sd-pam)", "(sd-pam)"),
            ("x (y)", "x (y)"),
            ("27196", "27196"),
        ] {
            assert_eq!(super::plain(who), plain);
        }
    }

    #[test]
    fn lists_of_cpus_are_short() {
        assert_eq!(list_of(&[0, 4, 5, 6, 9]), "0,4-6,9");
    }

    #[test]
    fn what_is_shown_as_zero_has_no_sign() {
        let shown = [-0.04, 0.04, 0.0, -0.06, 12.0].map(percent);
        assert_eq!(shown, ["0.0 %", "0.0 %", "0.0 %", "-0.1 %", "+12.0 %"]);
    }
}

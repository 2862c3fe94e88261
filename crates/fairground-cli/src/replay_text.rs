//! What `fairground replay` prints and writes.

use std::fmt::Write as _;
use std::path::Path;

use fairground_report::{groups_text, task_at, watched_text};
use fairground_trace::Recording;
use fairground_trace::derive::Attributes;
use fairground_trace::fidelity::{CPU_PCT, Fidelity, LATENCY_PCT, Pair, SWITCHES_PCT, ThreadRow};
use fairground_trace::replay::{Place, Replay, Run};

use crate::replay_about::About;
use crate::replay_report;

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
    /// The run there.
    pub run: &'a Run,
    /// Recorded against replayed.
    pub at_home: &'a Fidelity,
    /// Replayed against what if: machine, sides, the run.
    pub what_if: Option<&'a (String, Fidelity, Run)>,
    /// Most threads to show.
    pub threads: usize,
    /// Which stretches that waited for quota are slow, if it was said.
    pub slow_ns: Option<u64>,
}

/// What a trace does not say.
#[derive(Clone, Copy, Debug)]
pub struct Doubts {
    /// Switches that it lacks.
    pub inferred: u64,
    /// Recorded CPU times are lower bounds.
    pub at_least: bool,
    /// Nobody says its tick, and it does not show.
    pub hz_assumed: bool,
}

impl Doubts {
    /// Of a recording and what is known besides.
    pub fn of(replay: &Replay<'_>, known: &Attributes) -> Self {
        Self {
            inferred: replay.recorded.inferred,
            at_least: replay.recorded.is_at_least(),
            hz_assumed: known.hz.is_none() && !replay.shows_tick(),
        }
    }
}

/// For people.
pub fn text(s: &Sides<'_>) -> String {
    let mut text = String::new();
    let r = s.recording;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{}: {}, {} events, {} CPUs, {:.3} ms",
        s.path.display(),
        r.format,
        r.tracepoints(),
        r.cpus,
        s.at_home.elapsed_ms.recorded
    );
    for note in before(s) {
        let _ = writeln!(text, "  {note}");
    }
    let hz = s.home.features.hz;
    let _ = writeln!(text, "\nreplayed on {} ({hz} Hz)", s.home.machine.id);
    text += &s.about.home_text();
    let heads = ["recorded", "replayed"];
    table((s.at_home, None), heads, s.threads, &mut text);
    let names = [
        "CPU time of each thread with 1 % of it or more,",
        "switches",
        "wake-up latency p50",
        "the same in the second half, which nothing is fitted to,",
    ];
    let limits = [CPU_PCT, SWITCHES_PCT, LATENCY_PCT, LATENCY_PCT];
    for (i, ((name, limit), met)) in names.iter().zip(limits).zip(s.at_home.met()).enumerate() {
        let verdict = match met {
            _ if i == 0 && s.doubts.at_least => "not known, as the recorded times are lower bounds",
            _ if i >= 2 && is_coarse(s, i) => "not known, as the recorded times are whole us",
            Some(true) => "met",
            Some(false) => "missed",
            None => "nothing to compare",
        };
        let _ = writeln!(text, "fidelity: {name} within {limit} %: {verdict}");
    }
    unfinished(s.run, s.at_home, &mut text);
    if let Some((machine, sides, other)) = s.what_if {
        let _ = writeln!(text, "\nwhat if, on {machine}");
        text += &s.about.what_if_text();
        let both = (sides, Some(s.at_home));
        table(both, ["replayed", "what if"], s.threads, &mut text);
        for note in &other.derived.notes {
            if !s.run.derived.notes.contains(note) {
                let _ = writeln!(text, "  {note}");
            }
        }
        unfinished(other, sides, &mut text);
    }
    let costs = replay_report::costs(s);
    let watched = watched_text(&costs, &|wait, last| {
        last.then(|| format!("--explain {}", task_at(wait)))
    });
    let beside: String = beside(s).iter().map(|note| format!("{note}\n")).collect();
    let parts = [text, groups_text(&costs), watched, beside, s.about.foot()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// All that is to be known of trace and replay beside the figures, but what was asked for.
pub fn notes(s: &Sides<'_>) -> Vec<String> {
    let mut notes = before(s);
    if let Some((_, _, other)) = s.what_if {
        let new = |note: &&String| !s.run.derived.notes.contains(note);
        notes.extend(other.derived.notes.iter().filter(new).cloned());
    }
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
    if s.recording.whole_us {
        let note = "times are whole us: use --ns (`perf script --ns`, `trace-cmd report -t`)";
        notes.push(note.into());
    }
    notes.extend(s.run.derived.notes.iter().cloned());
    let cpus = s.home.machine.topology.nr_cpus();
    if cpus != s.recording.cpus as usize {
        let recorded = s.recording.cpus;
        notes.push(format!(
            "the trace has {recorded} CPUs, the replay {cpus} (`--recorded-on`)"
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

/// What costs and idle times have in them beside the recording, of each replay.
fn beside(s: &Sides<'_>) -> Vec<String> {
    let runs = std::iter::once(("replayed", s.run)).chain(s.what_if.map(|w| ("what if", &w.2)));
    let words = |(name, run): (&str, &Run)| {
        let before_ns = run.derived.lead_ns;
        let after_ns = run
            .outcome
            .elapsed_ns
            .saturating_sub(before_ns + run.elapsed_ns);
        let ms = |ns: u64| ns as f64 / 1e6;
        // A simulated run that is replayed has a beginning of its own.
        (run.derived.workload.warmup_ns == 0 && before_ns + after_ns > 0).then(|| {
            format!(
                "{name}: costs and idle times are of {:.2} ms, of which {:.2} ms are before the \
                 recording and {:.2} ms after it",
                ms(run.outcome.elapsed_ns),
                ms(before_ns),
                ms(after_ns)
            )
        })
    };
    runs.filter_map(words).collect()
}

/// Medians that are shorter say little if times are whole microseconds.
const COARSE_US: f64 = 10.0;

/// Whether the latency of this verdict is known too coarsely for one.
fn is_coarse(s: &Sides<'_>, verdict: usize) -> bool {
    let f = s.at_home;
    let latency = match verdict {
        2 => f.latency_us.map(|l| l[0]),
        _ => f.late_latency_us,
    };
    s.recording.whole_us && latency.is_some_and(|l| l.recorded < COARSE_US)
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

fn unfinished(run: &Run, sides: &Fidelity, text: &mut String) {
    match stopped(sides) {
        Some(note) => *text += &(note + "\n"),
        None if run.unfinished == 1 => {
            *text += "1 thread had not done its recorded work at the end\n";
        }
        None if run.unfinished > 0 => {
            let _ = writeln!(
                text,
                "{} threads had not done their recorded work at the end",
                run.unfinished
            );
        }
        None => {}
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
        "stopped at {ms:.0} ms, three times the recording: values with `>` are lower bounds, as {} \
         threads had not done their recorded work: {}{more}",
        sides.undone.len(),
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

/// Which of two sides were stopped; the first one may be a replay, too.
pub fn stopped_sides((f, before): Both<'_>) -> [bool; 2] {
    let stopped = |f: &Fidelity| f.stopped_ms.is_some();
    [before.is_some_and(stopped), stopped(f)]
}

/// On which of two sides a thread had not done what was recorded.
pub fn undone_sides((_, before): Both<'_>, thread: &ThreadRow) -> [bool; 2] {
    let same = before.and_then(|f| f.threads.iter().find(|t| t.name == thread.name));
    [same.is_some_and(|t| t.undone), thread.undone]
}

/// Two sides and, if the first one is a replay, that one beside the recording.
pub type Both<'a> = (&'a Fidelity, Option<&'a Fidelity>);

fn table(both: Both<'_>, heads: [&str; 2], threads: usize, text: &mut String) {
    let f = both.0;
    let [a, b] = heads;
    let _ = writeln!(text, "{:<36} {a:>14} {b:>14} {:>10}", "", "difference");
    let mut show = |name: &str, [a, b, diff]: [String; 3]| {
        let _ = writeln!(text, "{name:<36} {a:>14} {b:>14} {diff:>10}");
    };
    let stopped = stopped_sides(both);
    show("elapsed, ms", shown(f.elapsed_ms, stopped));
    show("CPU time, ms", shown(f.cpu_ms, stopped));
    let mut row = |name: &str, p: Pair| show(name, shown(p, [false; 2]));
    row("switches from sleepers", f.voluntary);
    row("switches from runnable threads", f.involuntary);
    if let Some(latency) = f.latency_us {
        for (name, pair) in ["p50", "p90", "p99"].iter().zip(latency) {
            row(&format!("wake-up latency {name}, us"), pair);
        }
    }
    if let Some(late) = f.late_latency_us {
        row("  p50 in the second half, us", late);
    }
    for (cpu, busy) in f.busy_pct.iter().enumerate() {
        // On a large machine only CPUs that were used.
        if f.busy_pct.len() <= 16 || busy.recorded + busy.replayed >= 1.0 {
            show(&format!("CPU {cpu} busy, %"), busy_of(f, cpu, *busy));
        }
    }
    for t in f.threads.iter().take(threads) {
        let name = format!("{}: CPU time, ms", t.name);
        show(&name, shown(t.cpu_ms, undone_sides(both, t)));
        show("  in the first half, ms", shown(t.half_ms, [false; 2]));
        show("  switches", shown(t.switches, [false; 2]));
    }
}

/// `-` where a side does not have the CPU.
fn busy_of(f: &Fidelity, cpu: usize, busy: Pair) -> [String; 3] {
    let [mut a, mut b, mut diff] = shown(busy, [false; 2]);
    for (side, cpus) in [&mut a, &mut b].into_iter().zip(f.cpus) {
        if cpu >= cpus {
            (*side, diff) = ("-".into(), "-".into());
        }
    }
    [a, b, diff]
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
    fn what_is_shown_as_zero_has_no_sign() {
        let shown = [-0.04, 0.04, 0.0, -0.06, 12.0].map(percent);
        assert_eq!(shown, ["0.0 %", "0.0 %", "0.0 %", "-0.1 %", "+12.0 %"]);
    }
}

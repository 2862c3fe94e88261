//! `fairground replay --cases`: how faithful the replay of each recorded case is.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairground_sim::limited;
use fairground_sim::truth::{self, Case};
use fairground_trace::derive::{Attributes, truth::of_case};
use fairground_trace::fidelity::{Fidelity, Item, LATENCY_PCT, Pair};
use fairground_trace::replay::Replay;
use rayon::prelude::*;

use crate::failure::Failure;
use crate::output;
use crate::replay::args::ReplayArgs;
use crate::replay::home::home;
use crate::replay::known::Words;
use crate::replay::open::open;
use crate::replay::text::number;

/// Traces of a case: what stands in the table, and the files that it may be in.
const TRACES: [(&str, &[&str]); 3] = [
    ("text", &["run1.script.txt.gz", "run1.script.txt"]),
    ("perf.data", &["run-perf.data.xz", "run-perf.data"]),
    (
        "trace.dat",
        &["run-ftrace.trace.dat.xz", "run-ftrace.trace.dat"],
    ),
];

/// Between these the table stands in a page.
const BEGIN: &str = "<!-- cases -->\n";
const END: &str = "<!-- /cases -->\n";

/// One trace, with and without what the case says beyond it.
struct Row {
    case: String,
    kind: &'static str,
    known: Fidelity,
    alone: Fidelity,
    /// With other seeds, where something is missed.
    others: Vec<Fidelity>,
}

/// So many seeds are run where something is missed.
const SEEDS: u64 = 5;

/// Replays all and prints the table.
///
/// # Errors
/// A case or trace that cannot be read or run.
pub fn replay(args: &ReplayArgs, dir: &Path) -> Result<(), Failure> {
    let names = truth::names(dir, &args.case).map_err(Failure::new)?;
    let mut work = Vec::new();
    for name in &names {
        for (kind, files) in TRACES {
            let path = files.iter().map(|f| dir.join("cases").join(name).join(f));
            if let Some(path) = path.into_iter().find(|p| p.is_file()) {
                work.push((name.clone(), kind, path));
            }
        }
    }
    if work.is_empty() {
        return Err(Failure::new(format!("no trace in {}", dir.display())));
    }
    let rows: Result<Vec<Row>, Failure> = work
        .into_par_iter()
        .map(|(name, kind, path)| row(args, dir, name, kind, path))
        .collect();
    let table = table(&rows?);
    match &args.table {
        Some(page) => insert(page, &table),
        None => output::stdout(&table),
    }
}

fn row(
    args: &ReplayArgs,
    dir: &Path,
    case: String,
    kind: &'static str,
    path: PathBuf,
) -> Result<Row, Failure> {
    let file = dir.join("cases").join(&case).join("case.json");
    let fail = |e: String| Failure::new(format!("{}: {e}", file.display()));
    let text = limited::read_text(&file, truth::BYTES_MAX).map_err(|e| fail(e.to_string()))?;
    let attributes = of_case(&Case::parse(&text).map_err(fail)?);
    let recording = open(&path, args.no_progress)?;
    let first = args.what.seed.unwrap_or(1);
    let fidelity = |known: &Attributes, more: bool| -> Result<Vec<Fidelity>, Failure> {
        let fail = |e: String| Failure::new(format!("{}: {e}", path.display()));
        let home = home(args, &recording, known, &Words::default())?;
        let replay = Replay::new(&recording, known, &home).map_err(fail)?;
        let mut all = Vec::new();
        for n in 0..SEEDS {
            let seed = first.wrapping_add(n);
            let run = replay.run(&home, seed).map_err(fail)?;
            let one = Fidelity::new(&replay.recorded, &run, &recording.names);
            let met = !one.met().contains(&Some(false));
            all.push(one);
            if !more || (all.len() == 1 && met) {
                break;
            }
        }
        Ok(all)
    };
    let mut others = fidelity(&attributes, true)?;
    let mut alone = fidelity(&Attributes::default(), false)?;
    Ok(Row {
        known: others.remove(0),
        alone: alone.remove(0),
        others,
        case,
        kind,
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| case | trace | CPU time, worst thread | switches | latency p50, us | p50 of the \
         second half | missed, and why | missed by the trace alone |\n| --- | --- | --- | --- | \
         --- | --- | --- | --- |\n",
    );
    for row in rows {
        let f = &row.known;
        let worst = f.worst().map_or("-".to_string(), |t| {
            let share = t.cpu_ms.diff_pct();
            format!("{share:+.2} % {}", t.name)
        });
        let sides = |p: Pair| {
            let (a, b) = (number(p.recorded), number(p.replayed));
            format!("{a} / {b}")
        };
        let latency = f.latency_us.map_or("-".into(), |l| sides(l[0]));
        let late = f.late_latency_us.map_or("-".into(), sides);
        let missed = missed(f).map(|item| format!("{}: {}", ITEMS[item], row.why(item).1));
        let missed: Vec<String> = missed.collect();
        let alone: Vec<&str> = self::missed(&row.alone).map(|item| ITEMS[item]).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {worst} | {} | {latency} | {late} | {} | {} |",
            row.case,
            row.kind,
            sides(f.switches()),
            missed.join("; "),
            alone.join(", "),
        );
    }
    text += "\n";
    met(rows, &mut text);
    reasons(rows, &mut text);
    text
}

/// How many of the traces meet each limit.
fn met(rows: &[Row], text: &mut String) {
    let halves = rows.iter().filter_map(|r| r.known.halves_us);
    let halves: Vec<Pair> = halves
        .map(|(recorded, replayed)| Pair { recorded, replayed })
        .collect();
    let alike = halves.iter().filter(|p| p.within(LATENCY_PCT)).count();
    let _ = writeln!(
        text,
        "The recording's own latency p50 in its second half is within {LATENCY_PCT} % of that in \
         its first: {alike} of {}.\n",
        halves.len()
    );
    for (title, side) in [
        (
            "with what the case says",
            (|r| &r.known) as fn(&Row) -> &Fidelity,
        ),
        ("by the trace alone", |r| &r.alone),
    ] {
        let count = |index: usize| {
            let all: Vec<bool> = rows.iter().filter_map(|r| side(r).met()[index]).collect();
            let met = all.iter().filter(|met| **met).count();
            format!("{met} of {}", all.len())
        };
        let _ = writeln!(
            text,
            "Met {title}: CPU time {}, switches {}, latency {}, latency in the second half {}.\n",
            count(0),
            count(1),
            count(2),
            count(3)
        );
        let chosen = [Item::Elapsed, Item::Busy, Item::FirstHalf];
        let chosen = chosen.map(|item| {
            let verdicts = rows.iter().filter_map(|r| side(r).verdict(item).met());
            let all: Vec<bool> = verdicts.collect();
            let met = all.iter().filter(|met| **met).count();
            format!("{} {met} of {}", item.words(), all.len())
        });
        let _ = writeln!(text, "And {title}: {}.\n", chosen.join(", "));
    }
}

/// What may be missed, in the order of [`Fidelity::met`].
const ITEMS: [&str; 4] = ["CPU time", "switches", "latency", "second half"];

/// Items that are missed.
fn missed(f: &Fidelity) -> impl Iterator<Item = usize> {
    let met = f.met();
    (0..ITEMS.len()).filter(move |item| met[*item] == Some(false))
}

/// Why something is missed, as far as it can be told from numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The replay is where the recording's median may be.
    Open,
    /// The recording's halves differ by more than is allowed.
    Halves,
    /// With another seed it is met.
    Seeds,
    /// None of these.
    Model,
}

impl Row {
    fn why(&self, item: usize) -> (Why, String) {
        let f = &self.known;
        let pair = |f: &Fidelity| match item {
            0 => f.worst().map(|t| t.cpu_ms),
            1 => Some(f.switches()),
            2 => f.latency_us.map(|l| l[0]),
            _ => f.late_latency_us,
        };
        let Some(here) = pair(f) else {
            return (Why::Model, String::new());
        };
        let known = (item >= 2).then(|| f.known_us[item - 2]).flatten();
        if let Some((a, b)) = known
            && (a..=b).contains(&here.replayed)
        {
            let (a, b) = (number(a), number(b));
            return (Why::Open, format!("the median is {a} to {b}"));
        }
        let halves = f.halves_us.filter(|_| item >= 2);
        if let Some((recorded, replayed)) = halves
            && !(Pair { recorded, replayed }).within(LATENCY_PCT)
        {
            let (a, b) = (number(recorded), number(replayed));
            return (Why::Halves, format!("halves {a} and {b}"));
        }
        let seeds = self.others.iter().chain([f]).filter_map(pair);
        let seeds: Vec<f64> = seeds.map(|p| p.replayed).collect();
        let met = self.others.iter().any(|f| f.met()[item] == Some(true));
        let least = seeds.iter().copied().fold(f64::MAX, f64::min);
        let most = seeds.iter().copied().fold(0.0, f64::max);
        let range = format!("seeds {} to {}", number(least), number(most));
        match met {
            true => (Why::Seeds, range),
            false if item == 0 => (Why::Model, "model".into()),
            false => (Why::Model, format!("model ({range})")),
        }
    }
}

/// How many are missed for which reason.
fn reasons(rows: &[Row], text: &mut String) {
    for (item, name) in ITEMS.iter().enumerate() {
        let whys = rows.iter().filter(|r| r.known.met()[item] == Some(false));
        let whys: Vec<Why> = whys.map(|row| row.why(item).0).collect();
        let count = |why: Why| whys.iter().filter(|w| **w == why).count();
        let _ = writeln!(
            text,
            "Missed {name}: {}, of which {} where the recording leaves its median open, {} whose \
             halves differ by more, {} that another seed meets, {} by the model.\n",
            whys.len(),
            count(Why::Open),
            count(Why::Halves),
            count(Why::Seeds),
            count(Why::Model),
        );
    }
}

/// Puts the table between the marks of a page.
fn insert(page: &Path, table: &str) -> Result<(), Failure> {
    let fail = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", page.display()));
    let text = std::fs::read_to_string(page).map_err(|e| fail(&e))?;
    let begin = text.find(BEGIN).map(|at| at + BEGIN.len());
    let end = text.find(END);
    let (Some(begin), Some(end)) = (begin, end.filter(|end| begin.is_some_and(|b| b <= *end)))
    else {
        return Err(fail(&format!(
            "no `{}` before `{}`",
            BEGIN.trim(),
            END.trim()
        )));
    };
    let new = format!("{}{table}{}", &text[..begin], &text[end..]);
    output::Place::own(page)?.write(&new)
}

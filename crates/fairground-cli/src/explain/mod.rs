//! `--explain TASK@TIME`: why this CPU, and why now.

mod names;
mod queues;
mod rule;

use std::fmt::Write as _;

use fairground::event::Migration;
use fairground::value::{TaskId, TgId};
use fairground_sim::exact::Exact;
use fairground_sim::explain::{
    self, Choice, Episode, Explained, Parts, Question, Start, TimerWait,
};
use fairground_sim::machine::Setup;
use fairground_sim::workload::program::Born;
use fairground_trace::simulated::{FIRST_TID, Identity};

use crate::asked::Asked;
use crate::explain::names::Names;
use crate::explain::queues::why_now;
use crate::explain::rule::{moved, pushed, real_time, rule};
use crate::failure::Failure;

/// A run that is asked about.
pub struct Asking<'a> {
    /// The run.
    pub setup: &'a Setup<'a>,
    /// What is fixed in it.
    pub exact: &'a Exact,
    /// Who the tasks are, from what each began with.
    pub identities: &'a dyn Fn(&[Born]) -> Vec<Identity>,
    /// Times are told from here on, ns.
    pub origin_ns: u64,
    /// Whose threads it has: of a recording they have their own ids.
    pub of_recording: bool,
}

/// The answer, for people.
///
/// # Errors
/// Anything that keeps it from running; no task has that name.
pub fn answer(asking: &Asking<'_>, asked: &Asked) -> Result<String, Failure> {
    let meant = |born: &[Born]| -> Vec<TaskId> {
        let all = (asking.identities)(born);
        let fits = |i: &Identity| {
            let (tid, who) = (i.tid.to_string(), asked.who.as_str());
            // `NAME-TID` is how tables and `perf script` write a thread.
            let both = who.strip_suffix(&tid).and_then(|w| w.strip_suffix('-'));
            i.comm == who || tid == who || both == Some(&i.comm)
        };
        (0..)
            .zip(&all)
            .filter(|(_, i)| fits(i))
            .map(|(n, _)| TaskId(n))
            .collect()
    };
    let question = Question {
        who: &meant,
        at_ns: asked.at_ns + asking.origin_ns,
    };
    let found = explain::explain(asking.setup, asking.exact, &question).map_err(Failure::new)?;
    let Some(found) = found else {
        let templates = &asking.setup.workload.templates;
        let names: Vec<&str> = templates.iter().map(|t| t.name.as_str()).collect();
        let help = match fairground_report::nearest(&asked.who, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if asking.of_recording => recorded_names(&names),
            None => format!("tasks have the thread ids from {FIRST_TID} on"),
        };
        return Err(Failure::with_help(
            format!("no task `{}` ran", asked.who),
            help,
        ));
    };
    let names = Names {
        who: (asking.identities)(&found.born),
        setup: asking.setup,
        origin_ns: asking.origin_ns,
    };
    Ok(not_then(&found, question.at_ns, &names) + &text(&found, &names))
}

/// Who can be asked about in a replay.
fn recorded_names(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let mut shown: Vec<&str> = Vec::new();
    for name in names {
        if !shown.contains(name) && shown.len() < SHOWN {
            shown.push(name);
        }
    }
    let shown = shown.join(", ");
    format!("expected a name or thread id of the recording; names are {shown}, ...")
}

/// What stands above the answer if the task is neither runnable nor running at the time.
fn not_then(found: &Explained, at_ns: u64, names: &Names<'_>) -> String {
    let e = &found.episode;
    let (words, which) = match e.out {
        _ if at_ns > found.ended_ns => {
            let end = names.at(found.ended_ns);
            (format!("the run has ended, at {end}"), "the last turn")
        }
        _ if e.start_ns > at_ns => ("it has not been runnable yet".into(), "its first turn"),
        Some((out, _)) if out < names.origin_ns => (
            "it has not been runnable yet".into(),
            "how it came to where the recording begins",
        ),
        Some((out, _)) if out < at_ns => ("it is not runnable".into(), "its last turn before"),
        _ => return String::new(),
    };
    format!("at that time {words}; this is {which}\n\n")
}

fn us(ns: u64) -> String {
    format!("{:.3} us", ns as f64 / 1e3)
}

fn text(e: &Explained, names: &Names<'_>) -> String {
    let mut t = String::new();
    let _ = writeln!(t, "{}", names.task(Some(e.task)));
    course(e, names, &mut t);
    if let Some(rt) = e.real_time {
        real_time(rt, &mut t);
        latency(e, names, &mut t);
        return t;
    }
    match (&e.choice, e.episode.start) {
        (Some(choice), _) => why_here(choice, &e.episode, &mut t),
        (None, Start::Woken { prev, .. }) if e.was_leaving => {
            let _ = writeln!(
                t,
                "\nwhy here: it was still being switched out on CPU {} (p->on_cpu), to which the \
                 wake-up is left; no CPU was chosen",
                prev.0
            );
        }
        (None, Start::Woken { .. }) => {
            let _ = writeln!(
                t,
                "\nwhy here: it was still on its queue, asleep with lag to pay; a wake-up leaves \
                 it where it is"
            );
        }
        (None, Start::Pushed { from, why, .. }) => {
            let _ = writeln!(t, "\nwhy here: {}", pushed(from, why));
        }
        (None, _) => {
            let where_to = match e.episode.moves.is_empty() {
                true => "it waits where it ran",
                false => "it was moved while it waited",
            };
            let _ = writeln!(t, "\nwhy here: {where_to}; no CPU was chosen");
        }
    }
    if e.episode.switched_in.is_some() {
        why_now(e, names, &mut t);
    }
    latency(e, names, &mut t);
    t
}

/// What happened, line by line.
fn course(explained: &Explained, names: &Names<'_>, t: &mut String) {
    let e = &explained.episode;
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut line = |at: u64, words: String| lines.push((at, words));
    line(e.start_ns, began(explained, names));
    if let Some((at, cpu)) = e.enqueued {
        line(at, format!("on the queue of CPU {cpu}"));
    }
    for m in &e.moves {
        let why = moved(m.why, explained.real_time.is_some());
        line(
            m.at_ns,
            format!("{why}: CPU {} to CPU {}", m.from.0, m.to.0),
        );
    }
    if let Some((_, at, cpu)) = e.switched_in {
        let how = if e.preempts {
            ", which is still runnable"
        } else {
            ""
        };
        let instead = names.task(e.instead_of);
        line(at, format!("runs on CPU {cpu}, after {instead}{how}"));
    }
    match e.out {
        Some((at, true)) => line(at, "leaves the CPU, still runnable".into()),
        Some((at, false)) => line(at, "leaves the CPU, to sleep or to exit".into()),
        None => {}
    }
    lines.sort_by_key(|(at, _)| *at);
    for (at, words) in lines {
        let _ = writeln!(t, "{:>18}  {words}", names.at(at));
    }
}

/// How it became runnable.
fn began(explained: &Explained, names: &Names<'_>) -> String {
    let from = |by: Option<TaskId>, by_timer: bool, cpu: u32| match by {
        Some(_) if by_timer => {
            let ran = names.task(by);
            format!("by a timer's interrupt on CPU {cpu}, where {ran} ran")
        }
        Some(_) => format!("by {} on CPU {cpu}", names.task(by)),
        None => format!("by an interrupt on idle CPU {cpu}"),
    };
    match explained.episode.start {
        Start::Woken {
            cpu,
            by,
            by_timer,
            prev,
            ..
        } => {
            let by = from(by, by_timer, cpu);
            format!("woken {by}; was last on CPU {}", prev.0)
        }
        Start::New {
            cpu, by, by_timer, ..
        } => format!("created {}", from(by, by_timer, cpu)),
        Start::Preempted { by, cpu } => had_to_leave(by, cpu, explained.out_of_quota, names),
        Start::Pushed { from, to, why } => {
            let by = match why {
                Migration::Active | Migration::Balance => "active balancing",
                Migration::Affinity => "a change of its affinity",
                Migration::Placement => "exec",
            };
            format!("ran on CPU {from} and was pushed to CPU {to} by {by}")
        }
    }
}

/// Why it is not on the CPU on which it ran, though it could go on.
fn had_to_leave(
    by: Option<TaskId>,
    cpu: u32,
    out_of_quota: Option<TgId>,
    names: &Names<'_>,
) -> String {
    match (out_of_quota, by) {
        (Some(group), _) => format!(
            "had to leave CPU {cpu}: group {} has used its quota (next there is {})",
            names.group(group),
            names.task(by)
        ),
        (None, None) => format!("left CPU {cpu} to the idle task, still runnable"),
        (None, Some(_)) => format!("had to leave CPU {cpu} for {}", names.task(by)),
    }
}

fn why_here(c: &Choice, e: &Episode, t: &mut String) {
    let _ = writeln!(t, "\nwhy here: {}", rule(c));
    let (first, later) = ("CPU  idle  running  load  util  looked at in", 6);
    if !c.examined.is_empty() {
        let _ = writeln!(t, "  {first}");
    }
    const MOST: usize = 32;
    for x in c.examined.iter().take(MOST) {
        let mark = if x.cpu == c.chosen.cpu {
            "  <- chosen"
        } else {
            ""
        };
        let _ = writeln!(
            t,
            "  {:>3}  {:>4}  {:>7}  {:>4}  {:>4}  {}{mark}",
            x.cpu,
            if x.idle { "yes" } else { "no" },
            x.nr_running,
            x.load_avg,
            x.util_avg,
            x.by
        );
    }
    if c.examined.len() > MOST {
        let _ = writeln!(
            t,
            "  {:>later$} and {} more",
            "...",
            c.examined.len() - MOST
        );
    }
    if !c.functions.is_empty() {
        let _ = writeln!(t, "  through {}", c.functions.join(", "));
    }
    let placed = e.moves.iter().find(|m| m.why == Migration::Placement);
    let came = placed.map(|m| m.to.0).or(e.enqueued.map(|(_, cpu)| cpu));
    if came.is_some_and(|cpu| cpu != c.chosen.cpu) {
        let _ = writeln!(
            t,
            "  made again the choice is CPU {}: something changed within the step",
            c.chosen.cpu
        );
    }
}

/// What the slack of a timer was spent on.
fn in_slack(timer: &TimerWait) -> String {
    let slack = us(timer.slack_ns);
    if timer.in_slack_ns < timer.slack_ns {
        format!("in its slack of {slack}, until another timer's interrupt took it along")
    } else {
        format!("its slack of {slack}, in which no other timer's interrupt came")
    }
}

fn interrupt(timer: &TimerWait) -> String {
    match &timer.left {
        Some(state) => format!("the CPU's way out of {state}, and the interrupt"),
        None => "the interrupt, and what the CPU did before it could come".into(),
    }
}

fn latency(e: &Explained, names: &Names<'_>, t: &mut String) {
    let p: &Parts = &e.parts;
    let whole = us(p.choosing_ns + p.sending_ns + p.queued_ns);
    if let Some(timer) = &e.timer {
        let late = us(timer.in_slack_ns + timer.interrupt_ns);
        let due = names.at(timer.due_ns);
        let _ = writeln!(
            t,
            "\nlate: {late} from the time of its timer ({}) to the wake-up",
            due.trim()
        );
        for (ns, words) in [
            (timer.in_slack_ns, in_slack(timer)),
            (timer.interrupt_ns, interrupt(timer)),
        ] {
            let _ = writeln!(t, "  {:>14}  {words}", us(ns));
        }
    }
    let _ = match e.episode.switched_in {
        Some(_) => writeln!(t, "\nlatency: {whole} from being runnable to running"),
        None => writeln!(
            t,
            "\nlatency: {whole} and more: it has not run until the end of the run"
        ),
    };
    let mut line = |ns: u64, words: &str| {
        let _ = writeln!(t, "  {:>14}  {words}", us(ns));
    };
    line(p.choosing_ns, "choosing a CPU");
    line(
        p.sending_ns,
        "on the way to its queue: its lock, or an interrupt and the way out of idle",
    );
    for (group, ns) in &p.throttled {
        let group = names.group(*group);
        line(
            *ns,
            &format!("waiting for quota: group {group} was throttled there"),
        );
    }
    let for_quota: u64 = p.throttled.iter().map(|(_, ns)| ns).sum();
    line(
        p.queued_ns - for_quota,
        "on the queue, waiting for its turn",
    );
    const MOST: usize = 8;
    let (shown, more) = p.others.split_at(p.others.len().min(MOST));
    for (task, ns) in shown {
        let what = match task {
            None => "the CPU was idle, or on its way out of that".to_string(),
            Some(_) => format!("{} ran", names.task(*task)),
        };
        line(*ns, &format!("  {what}"));
    }
    if !more.is_empty() {
        let ns = more.iter().map(|(_, ns)| ns).sum();
        line(ns, &format!("  {} more, each for less time", more.len()));
    }
    line(
        p.lock_ns,
        "waiting for locks, in steps of its CPU and of the waker's",
    );
    line(p.line_ns, "waiting for cache lines, likewise");
}

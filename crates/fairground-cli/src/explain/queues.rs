//! The queues from which a task was picked, in words and columns.

use std::fmt::Write as _;

use fairground_sim::explain::{Explained, Level};

use crate::explain::names::Names;

/// Who could have run instead, and the rule.
pub(crate) fn why_now(e: &Explained, names: &Names<'_>, t: &mut String) {
    let Some((_, _, cpu)) = e.episode.switched_in else {
        return;
    };
    let _ = writeln!(
        t,
        "\nwhy now: the queues of CPU {cpu} just before the switch"
    );
    for level in &e.levels {
        level_text(level, e, names, t);
    }
    let mut entities = e.levels.iter().flat_map(|level| &level.entities);
    if e.levels.is_empty() {
        let _ = writeln!(t, "  empty: it came with the switch");
    } else if !entities.any(|x| x.task == Some(e.task)) {
        let _ = writeln!(
            t,
            "  it is not among them: it came in the step that switched to it (newly idle balance)"
        );
    }
    if e.real_time_over {
        let _ = writeln!(
            t,
            "  real-time tasks are there, too: fair ones have the CPU because where they wait they \
             have 50 ms of\n  each second, and the real-time ones have had the rest"
        );
    }
    let rule = if e.by_deadline {
        "of the eligible ones (lag >= 0) the earliest deadline runs"
    } else {
        "the least virtual run time, which is the most lag, runs, but for buddies close to it"
    };
    let entities = || e.levels.iter().flat_map(|level| &level.entities);
    let running = match entities().any(|x| x.leaves) {
        true => "who goes to sleep is not among them",
        false => "what runs now is charged at the switch",
    };
    let _ = writeln!(t, "  {rule}; {running}");
    if entities().any(|x| x.delayed) {
        let _ = writeln!(
            t,
            "  one that is asleep leaves when it is its turn, and the choice is made again"
        );
    }
}

fn level_text(level: &Level, e: &Explained, names: &Names<'_>, t: &mut String) {
    let group = names.group(level.group);
    let throttled = if level.throttled { ", throttled" } else { "" };
    let _ = writeln!(t, "  {group}{throttled}");
    // Deadlines, requests and eligibility mean nothing to CFS.
    let _ = match e.by_deadline {
        true => writeln!(
            t,
            "    {:>12} {:>12} {:>10} {:>7}  {:<9} who",
            "lag us", "deadline us", "slice us", "weight", "eligible"
        ),
        false => writeln!(t, "    {:>12} {:>7}  who", "lag us", "weight"),
    };
    const MOST: usize = 16;
    for x in level.entities.iter().take(MOST) {
        let who = match x.group {
            Some(group) => format!("group {}", names.group(group)),
            None => names.task(x.task),
        };
        let mut marks = String::new();
        for (is, word) in [
            (x.current && !x.leaves, "running"),
            (x.leaves, "running, goes to sleep"),
            (x.delayed, "asleep, pays its lag"),
            (x.task == Some(e.task), "<-"),
        ] {
            if is {
                marks += "  ";
                marks += word;
            }
        }
        let lag_us = x.lag_ns as f64 / 1e3;
        let _ = match e.by_deadline {
            true => writeln!(
                t,
                "    {lag_us:>12.3} {:>12.3} {:>10.3} {:>7}  {:<9} {who}{marks}",
                x.deadline_ns as f64 / 1e3,
                x.slice_ns as f64 / 1e3,
                x.weight,
                match (x.leaves, x.eligible) {
                    (true, _) => "-",
                    (false, true) => "yes",
                    (false, false) => "no",
                },
            ),
            false => writeln!(t, "    {lag_us:>12.3} {:>7}  {who}{marks}", x.weight),
        };
    }
    if level.entities.len() > MOST {
        let _ = writeln!(t, "    ... and {} more", level.entities.len() - MOST);
    }
}

//! A derived workload as a scenario file, for editing (docs/scenario.md).

use std::fmt::Write as _;

use fairground_sim::exact::Start;
use fairground_sim::workload::program::{
    Cgroup, CgroupWrite, Dur, KERNEL_PROCESS, Op, Policy, TaskTemplate, Workload,
};

use crate::derive::Derived;

/// The scenario's text; `notes` say what to know of it.
#[must_use]
pub fn scenario(
    derived: &Derived,
    title: &str,
    notes: &[String],
    machine: &str,
    profile: &str,
    hz: u32,
) -> String {
    let w = &derived.workload;
    let names = unique_names(w);
    let at_ns = |start: &Start| match *start {
        Start::Asleep { until_ns } => until_ns,
        Start::Created { at_ns, .. } => at_ns,
    };
    let mut starts = derived.starts.iter().map(at_ns);
    let first = starts.clone().min().unwrap_or(0);
    // What is before the recording is no part of it, and does not count.
    let warmup_ns = derived.lead_ns.max(w.warmup_ns).saturating_sub(first);
    let polls = if w.no_idle_states {
        "cpu_dma_latency = 0\n"
    } else {
        ""
    };
    let mut text = format!(
        "# Derived from a recording: {}\n# One semaphore for each thread that another one wakes: \
         the waker posts it, the thread waits for it.\n{}name = \"replay\"\nmachine = {}\n\
         profile = {}\nhz = {hz}\nduration = \"exit\"\nwarmup = \"{warmup_ns}ns\"\nseeds = 1\n{}",
        title.replace(|c: char| c.is_control(), " "),
        comments(notes),
        quoted(machine),
        quoted(profile),
        polls,
    );
    semaphores(w, &mut text);
    groups(w, &mut text);
    events(w, first, &mut text);
    for (index, template) in w.templates.iter().enumerate() {
        let _ = write!(text, "\n[[task]]\nname = {}\n", quoted(&names[index]));
        if w.initial.contains(&(index as u32)) {
            let start = starts.next().unwrap_or(0) - first;
            if start > 0 {
                let _ = writeln!(text, "start = \"{start}ns\"");
            }
        } else {
            text += "template = true\n";
        }
        let forked = !w.initial.contains(&(index as u32));
        scheduling(w, template, forked, &mut text);
        // What is forked would be in its creator's group.
        if let Some(group) = template.cgroup.filter(|g| *g != 0 || forked) {
            let path = &w.cgroups[group as usize].path;
            let _ = writeln!(text, "cgroup = {}", quoted(path));
        }
        process(template, &mut text);
        text += "steps = [\n";
        let ops = &w.programs[template.program as usize].ops;
        let of_class = |op: &&Op| template.real_time.is_none() || !is_of_fair(**op);
        let ops: Vec<Op> = ops.iter().filter(of_class).copied().collect();
        steps(&ops, w, &names, &mut text);
        text += "]\n";
    }
    text
}

/// Those that are used.
fn semaphores(w: &Workload, text: &mut String) {
    let mut used: Vec<u32> = Vec::new();
    for op in w.programs.iter().flat_map(|p| &p.ops) {
        if let Op::SemWait(s) | Op::SemPost(s) = op {
            used.push(*s);
        }
    }
    used.sort_unstable();
    used.dedup();
    let sems: Vec<String> = used.iter().map(|s| format!("s{s} = 0")).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "semaphores = {{ {} }}", sems.join(", "));
}

/// Whose address space a task has.
fn process(template: &TaskTemplate, text: &mut String) {
    match (template.process, template.thread) {
        (KERNEL_PROCESS, _) => text.push_str("process = \"kernel\"\n"),
        (1, _) => text.push_str("process = \"recorded\"\n"),
        (number, true) => drop(writeln!(text, "process = \"recorded {number}\"")),
        (_, false) => {}
    }
}

/// Each as a comment, in lines that fit a terminal.
fn comments(notes: &[String]) -> String {
    const WIDTH: usize = 98;
    let mut text = String::new();
    for note in notes {
        let mut line = String::from("#");
        for word in note.split_whitespace() {
            if line.len() + word.len() > WIDTH {
                text += &(line + "\n");
                line = "#".into();
            }
            line = line + " " + word;
        }
        text += &(line + "\n");
    }
    text
}

/// How a task is scheduled, as far as it is not the usual. A forked task would have what is not
/// said here from its creator.
fn scheduling(w: &Workload, template: &TaskTemplate, forked: bool, text: &mut String) {
    let inherits = template.inherits;
    if let Some(rt) = template.real_time {
        let policy = if rt.takes_turns { "rr" } else { "fifo" };
        let _ = writeln!(text, "policy = \"{policy}\"\npriority = {}", rt.priority);
        return places(w, template, forked, text);
    }
    if template.nice != 0 || (forked && !inherits.nice) {
        let _ = writeln!(text, "nice = {}", template.nice);
    }
    match template.policy {
        Policy::Normal if !forked || inherits.policy => {}
        Policy::Normal => *text += "policy = \"normal\"\n",
        Policy::Batch => *text += "policy = \"batch\"\n",
        Policy::Idle => *text += "policy = \"idle\"\n",
    }
    if let Some(slack) = template.timer_slack_ns {
        let _ = writeln!(text, "timer_slack = \"{slack}ns\"");
    }
    match template.slice_ns {
        Some(slice) => drop(writeln!(text, "slice = \"{slice}ns\"")),
        None if forked && !inherits.slice => *text += "slice = \"0ns\"\n",
        None => {}
    }
    places(w, template, forked, text);
}

/// Where a task may run, as far as it is not everywhere.
fn places(w: &Workload, template: &TaskTemplate, forked: bool, text: &mut String) {
    let inherits = template.inherits;
    match template.affinity {
        Some(mask) => drop(writeln!(text, "affinity = {:?}", w.masks[mask as usize])),
        None if forked && !inherits.affinity => *text += "affinity = \"all\"\n",
        None => {}
    }
}

fn groups(w: &Workload, text: &mut String) {
    for group in w.cgroups.iter().skip(1) {
        let _ = write!(text, "\n[[cgroup]]\npath = {}\n", quoted(&group.path));
        // An idle group has none: the kernel refuses it, and so does a scenario.
        if !group.idle {
            let _ = writeln!(text, "{}", weight(group.shares));
        }
        if let Some(quota) = group.quota_ns {
            let max = max(Some(quota), group.period_ns);
            let _ = writeln!(text, "\"cpu.max\" = {max}");
        }
        // Without a quota it waits for one, which an event may bring.
        if group.quota_ns.is_some() || group.burst_ns > 0 {
            let _ = writeln!(text, "\"cpu.max.burst\" = {}", group.burst_ns / 1000);
        }
        if group.idle {
            text.push_str("\"cpu.idle\" = true\n");
        }
    }
}

/// As `cpu.weight`, if one stands for just these shares.
fn weight(shares: u64) -> String {
    match Cgroup::weight_of_shares(shares) {
        Some(weight) => format!("\"cpu.weight\" = {weight}"),
        None => format!("\"cpu.shares\" = {shares}"),
    }
}

fn max(quota_ns: Option<u64>, period_ns: u64) -> String {
    let quota = quota_ns.map_or("max".to_string(), |ns| (ns / 1000).to_string());
    format!("\"{quota} {}\"", period_ns / 1000)
}

/// What is written to groups meanwhile: an event for each write, as the order counts. The run
/// begins at `first`.
fn events(w: &Workload, first: u64, text: &mut String) {
    for event in &w.events {
        let at = event.at_ns.saturating_sub(first);
        let path = quoted(&w.cgroups[event.cgroup as usize].path);
        let write = match event.write {
            CgroupWrite::Max {
                quota_ns,
                period_ns,
            } => format!("\"cpu.max\" = {}", max(quota_ns, period_ns)),
            CgroupWrite::Burst(ns) => format!("\"cpu.max.burst\" = {}", ns / 1000),
            CgroupWrite::Shares(shares) => weight(shares),
            CgroupWrite::Idle(idle) => format!("\"cpu.idle\" = {idle}"),
        };
        let _ = write!(
            text,
            "\n[[event]]\nat = \"{at}ns\"\ncgroup = {path}\n{write}\n"
        );
    }
}

/// Steps, equal turns as loops; the sleep at the end that stands for the recording's end is an
/// exit.
fn steps(ops: &[Op], w: &Workload, names: &[String], text: &mut String) {
    let words: Vec<String> = ops.iter().map_while(|op| step(*op, w, names)).collect();
    for word in &words {
        let _ = writeln!(text, "    {word},");
    }
    if words.iter().all(|word| word.starts_with('#')) {
        text.push_str("    \"exit\",\n");
    }
}

/// Whether a real-time task has nothing of it, so that a scenario refuses it there.
fn is_of_fair(op: Op) -> bool {
    matches!(op, Op::SetNice(_) | Op::SetSlice(_))
}

/// One step; `None` where the recording ends.
fn step(op: Op, w: &Workload, names: &[String]) -> Option<String> {
    const NEVER_NS: u64 = 1 << 49;
    let ns = |d: Dur| match d {
        Dur::Const(ns) => format!("\"{ns}ns\""),
        other => format!("\"{other:?}\""),
    };
    Some(match op {
        Op::Run(d) => format!("{{ run = {} }}", ns(d)),
        Op::Sleep(d) => format!("{{ sleep = {} }}", ns(d)),
        Op::SleepUntilTaskTime(at) if at >= NEVER_NS => return None,
        Op::SleepUntilTaskTime(at) | Op::StartAt(at) | Op::SleepUntilRunTime(at) => {
            format!("{{ until = \"{at}ns\" }}")
        }
        Op::SemWait(s) => format!("{{ wait = \"s{s}\" }}"),
        Op::SemPost(s) => format!("{{ post = \"s{s}\" }}"),
        Op::Yield => "\"yield\"".into(),
        Op::SetAffinity(mask) => format!("{{ affinity = {:?} }}", w.masks[mask as usize]),
        Op::SetNice(nice) => format!("{{ nice = {nice} }}"),
        Op::Fork { template } => {
            format!("{{ fork = {} }}", quoted(&names[template as usize]))
        }
        // All that was recorded is done.
        Op::Mark(_) => return None,
        Op::Hog => "\"hog\"".into(),
        // What threads say that they do with others: a caller leaves that out of the recording.
        other => format!("# {other:?}"),
    })
}

/// Names of tasks, each once: a second one of a name has its number behind it.
fn unique_names(w: &Workload) -> Vec<String> {
    let mut seen = rustc_hash::FxHashSet::default();
    let unique = |(i, t): (usize, &fairground_sim::workload::program::TaskTemplate)| {
        let clean = |c: char| if c.is_alphanumeric() { c } else { '-' };
        let name: String = t.name.chars().map(clean).collect();
        let name = name.trim_matches('-');
        let name = if name.is_empty() { "thread" } else { name };
        if seen.insert(name.to_string()) {
            return name.to_string();
        }
        let numbered = format!("{name}-n{i}");
        seen.insert(numbered.clone());
        numbered
    };
    w.templates.iter().enumerate().map(unique).collect()
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

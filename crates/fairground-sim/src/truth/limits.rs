//! Numbers of a `case.json` that are well formed and make no sense: with them a run would not end,
//! or the kernel would have refused what the case asks of it.

use serde_json::Value;

use super::case::{Case, Flag, Group, NUMBER_MAX, Step, TaskWords};
use crate::workload::validate::QUOTA_NS_MIN;

/// Refuses a number above [`NUMBER_MAX`] anywhere in a file, with its path.
pub(super) fn small_numbers(value: &Value) -> Result<(), String> {
    match too_large(value) {
        Some((path, n)) => {
            let path = path.trim_start_matches('.');
            Err(format!("{path}: {n}, expected at most {NUMBER_MAX}"))
        }
        None => Ok(()),
    }
}

/// The first such number and its path, which begins with what separates it from what is above.
fn too_large(value: &Value) -> Option<(String, String)> {
    let above = |place: String| move |(path, n): (String, String)| (place + &path, n);
    match value {
        Value::Number(n) if n.as_f64().is_none_or(|n| n.abs() > NUMBER_MAX as f64) => {
            Some((String::new(), n.to_string()))
        }
        Value::Array(values) => (values.iter().enumerate())
            .find_map(|(i, value)| too_large(value).map(above(format!("[{i}]")))),
        Value::Object(members) => {
            (members.iter()).find_map(|(key, value)| too_large(value).map(above(format!(".{key}"))))
        }
        _ => None,
    }
}

/// Refuses a case whose numbers make no sense.
///
/// # Errors
/// The path of the number, its value, what was expected.
pub(super) fn check(case: &Case) -> Result<(), String> {
    lengths(case)?;
    for (i, group) in case.cgroups.iter().enumerate() {
        group_limits(group).map_err(|e| format!("cgroups[{i}].{e}"))?;
    }
    if let Some((number, _)) = case.barriers.iter().find(|(_, parties)| **parties == 0) {
        return Err(format!("barriers.{number}: 0, expected at least 1 thread"));
    }
    let sampled = case.sampler.map(|s| s.cpu);
    cpus(sampled.as_slice(), case).map_err(|e| format!("sampler.cpu: {e}"))?;
    for (i, task) in case.tasks.iter().enumerate() {
        let of_task = |e: String| format!("tasks[{i}].{e} (task '{}')", task.name);
        check_task(task, case).map_err(of_task)?;
    }
    Ok(())
}

/// Lengths of the window and of what repeats in it.
fn lengths(case: &Case) -> Result<(), String> {
    for (key, value, least, most) in [
        ("machine.cpus", Some(u64::from(case.machine.cpus)), 1, 512),
        ("duration_us", case.duration_us, 1, 600_000_000),
        ("settle_ms", Some(case.settle_ms), 0, 60_000),
        (
            "sampler.every_us",
            case.sampler.map(|s| s.every_us),
            1,
            600_000_000,
        ),
    ] {
        let Some(value) = value else { continue };
        if value < least {
            return Err(format!("{key}: {value}, expected at least {least}"));
        }
        if value > most {
            return Err(format!("{key}: {value}, expected at most {most}"));
        }
    }
    Ok(())
}

/// A path is one of directories, a quota is -1 or what the kernel takes, and `cpu.idle` is a truth
/// value.
fn group_limits(group: &Group) -> Result<(), String> {
    let names = group.path.strip_prefix('/').unwrap_or_default();
    if names.split('/').any(|name| ["", ".", ".."].contains(&name)) {
        return Err(format!("path: '{}', expected one like /a/b", group.path));
    }
    let least_us = (QUOTA_NS_MIN / 1000) as i64;
    if let Some(us) = group.quota_us.filter(|us| *us != -1 && *us < least_us) {
        return Err(format!(
            "quota_us: {us}, expected -1 for none or at least {least_us}"
        ));
    }
    match group.idle {
        Some(Flag::Number(n)) if n > 1 => Err(format!("idle: {n}, expected 0 or 1")),
        _ => Ok(()),
    }
}

fn check_task(task: &TaskWords, case: &Case) -> Result<(), String> {
    nice(task.nice).map_err(|e| format!("nice: {e}"))?;
    group(&task.cgroup, case).map_err(|e| format!("cgroup: {e}"))?;
    if let Some(set) = &task.affinity {
        some_cpus(set, case).map_err(|e| format!("affinity: {e}"))?;
    }
    check_steps(&task.program, case).map_err(|e| format!("program{e}"))
}

/// Refuses a step, with its place in the list and in those of loops.
fn check_steps(steps: &[Step], case: &Case) -> Result<(), String> {
    for (i, step) in steps.iter().enumerate() {
        if let Step::Loop(_, body) = step {
            check_steps(body, case).map_err(|e| format!("[{i}].body{e}"))?;
        }
        check_step(step, case).map_err(|e| format!("[{i}].{e}"))?;
    }
    Ok(())
}

fn check_step(step: &Step, case: &Case) -> Result<(), String> {
    let under = |key: &'static str| move |e: String| format!("{key}: {e}");
    match step {
        Step::Run(us) => computing(*us).map_err(under("run_us")),
        Step::Spawn(spawn) => computing(spawn.run_us).map_err(under("spawn.run_us")),
        Step::Loop(turns, _) if *turns < -1 => Err(format!(
            "loop: {turns}, expected -1 for until the end, or a number of turns"
        )),
        Step::SetNice(value) => nice(*value).map_err(under("set_nice")),
        Step::SetAffinity(set) => some_cpus(set, case).map_err(under("set_affinity")),
        Step::SetCgroup(path) => group(path, case).map_err(under("set_cgroup")),
        Step::Barrier(number) if !case.barriers.contains_key(number) => Err(format!(
            "barrier: {number}, expected one of those in 'barriers'"
        )),
        _ => Ok(()),
    }
}

fn computing(us: f64) -> Result<(), String> {
    match us < 0.0 {
        true => Err(format!("{us}, expected at least 0")),
        false => Ok(()),
    }
}

fn nice(value: i8) -> Result<(), String> {
    match (-20..=19).contains(&value) {
        true => Ok(()),
        false => Err(format!("{value}, expected -20 to 19")),
    }
}

fn group(path: &str, case: &Case) -> Result<(), String> {
    match path == "/" || case.cgroups.iter().any(|g| g.path == path) {
        true => Ok(()),
        false => Err(format!("no group '{path}', expected '/' or one of cgroups")),
    }
}

/// A thread without a CPU cannot run: the kernel refuses an empty set.
fn some_cpus(set: &[u32], case: &Case) -> Result<(), String> {
    match set.is_empty() {
        true => Err("no CPU, expected at least one".into()),
        false => cpus(set, case),
    }
}

fn cpus(set: &[u32], case: &Case) -> Result<(), String> {
    let cpus = case.machine.cpus;
    match set.iter().find(|cpu| **cpu >= cpus) {
        Some(cpu) => Err(format!(
            "CPU {cpu}, expected 0 to {}, as machine.cpus is {cpus}",
            cpus - 1
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = r#"{"format":"kernel-truth/1","name":"n","kind":"k","what":"w",
"machine":{"cpus":2},"duration_us":4000,"sampler":{"cpu":0,"every_us":10,"what":"task"},
"cgroups":[{"path":"/a","quota_us":-1,"idle":1}],
"tasks":[{"name":"t","affinity":[1],"program":[{"loop":2,"body":[{"set_affinity":[1]}]}]}]}"#;

    /// What of the case is replaced by what, and the message.
    const WRONG: &[(&str, &str, &str)] = &[
        (":4000", ":0", "duration_us: 0, expected at least 1"),
        (
            ":-1",
            ":-5",
            "cgroups[0].quota_us: -5, expected -1 for none or at least 1000",
        ),
        (
            ":-1",
            ":0",
            "cgroups[0].quota_us: 0, expected -1 for none or at least 1000",
        ),
        (
            ":-1",
            ":999",
            "cgroups[0].quota_us: 999, expected -1 for none or at least 1000",
        ),
        (
            "\"idle\":1",
            "\"idle\":2",
            "cgroups[0].idle: 2, expected 0 or 1",
        ),
        (":10,", ":0,", "sampler.every_us: 0, expected at least 1"),
        (
            "\"cpus\":2",
            "\"cpus\":0",
            "machine.cpus: 0, expected at least 1",
        ),
        (
            "nity\":[1],",
            "nity\":[],",
            "tasks[0].affinity: no CPU, expected at least one (task 't')",
        ),
        (
            "nity\":[1]}",
            "nity\":[]}",
            "tasks[0].program[0].body[0].set_affinity: no CPU, expected at least one \
 (task 't')",
        ),
        (
            "nity\":[1],",
            "nity\":[0,2],",
            "tasks[0].affinity: CPU 2, expected 0 to 1, as machine.cpus is 2 (task 't')",
        ),
        (
            "nity\":[1]}",
            "nity\":[3]}",
            "tasks[0].program[0].body[0].set_affinity: CPU 3, expected 0 to 1, as machine.cpus \
                 is 2 (task 't')",
        ),
        (
            "\"cpu\":0",
            "\"cpu\":2",
            "sampler.cpu: CPU 2, expected 0 to 1, as machine.cpus is 2",
        ),
        (
            "\"loop\":2",
            "\"loop\":-2",
            "tasks[0].program[0].loop: -2, expected -1 for until the end, or a number of turns \
                 (task 't')",
        ),
        (
            "\"cgroups\"",
            "\"barriers\":{\"0\":2,\"7\":0},\"cgroups\"",
            "barriers.7: 0, expected at least 1 thread",
        ),
        (
            "\"program\"",
            "\"nice\":20,\"program\"",
            "tasks[0].nice: 20, expected -20 to 19 (task 't')",
        ),
        (
            "\"program\"",
            "\"cgroup\":\"/b\",\"program\"",
            "tasks[0].cgroup: no group '/b', expected '/' or one of cgroups (task 't')",
        ),
        (
            "\"/a\"",
            "\"//a\"",
            "cgroups[0].path: '//a', expected one like /a/b",
        ),
        (
            "\"/a\"",
            "\"/..\"",
            "cgroups[0].path: '/..', expected one like /a/b",
        ),
    ];

    /// A step in place of the innermost, and what the message says of it.
    const WRONG_STEPS: &[(&str, &str)] = &[
        ("{\"run_us\":-1}", "run_us: -1, expected at least 0"),
        ("{\"set_nice\":-21}", "set_nice: -21, expected -20 to 19"),
        (
            "{\"spawn\":{\"sleep_us\":0,\"run_us\":-0.5}}",
            "spawn.run_us: -0.5, expected at least 0",
        ),
        (
            "{\"barrier\":4}",
            "barrier: 4, expected one of those in 'barriers'",
        ),
        (
            "{\"set_cgroup\":\"/a/b\"}",
            "set_cgroup: no group '/a/b', expected '/' or one of cgroups",
        ),
    ];

    #[test]
    fn numbers_that_make_no_sense_are_refused_with_their_place() {
        assert!(Case::parse(CASE).is_ok());
        for (from, to, error) in WRONG {
            let text = CASE.replacen(from, to, 1);
            assert_ne!(text, CASE, "{to}");
            assert_eq!(Case::parse(&text).expect_err(to), *error);
        }
        for (step, error) in WRONG_STEPS {
            let found = Case::parse(&CASE.replace("{\"set_affinity\":[1]}", step));
            let error = format!("tasks[0].program[0].body[0].{error} (task 't')");
            assert_eq!(found.expect_err(step), error);
        }
        let large = CASE.replace("{\"set_affinity\":[1]}", "{\"run_us\":1e30}");
        assert_eq!(
            Case::parse(&large).expect_err("as long as no run"),
            "tasks[0].program[0].body[0].run_us: 1e+30, expected at most 1000000000000"
        );
        let none = CASE.replace("\"loop\":2", "\"loop\":0");
        assert!(Case::parse(&none).is_ok(), "no turn is a number of turns");
        assert!(Case::parse(&CASE.replace(":-1", ":1000")).is_ok());
        assert!(Case::parse(&CASE.replace(":4000", ":1")).is_ok());
    }
}

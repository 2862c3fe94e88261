//! Numbers of a `case.json` that are well formed and make no sense: with them a run would not end,
//! or the kernel would have refused what the case asks of it.

use serde_json::Value;

use super::case::{Case, Flag, Group, NUMBER_MAX, Step, each_step};
use crate::workload::validate::QUOTA_NS_MIN;

/// Refuses a number above [`NUMBER_MAX`] anywhere in a file.
pub(super) fn small_numbers(value: &Value) -> Result<(), String> {
    match value {
        Value::Number(n) if n.as_f64().is_none_or(|n| n.abs() > NUMBER_MAX as f64) => {
            Err(format!("{n}: expected at most {NUMBER_MAX}"))
        }
        Value::Array(values) => values.iter().try_for_each(small_numbers),
        Value::Object(members) => members
            .iter()
            .try_for_each(|(key, value)| small_numbers(value).map_err(|e| format!("{key}: {e}"))),
        _ => Ok(()),
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
    cpus(case)
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

/// A quota is -1 or what the kernel takes, and `cpu.idle` is a truth value.
fn group_limits(group: &Group) -> Result<(), String> {
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

/// A thread without a CPU cannot run: the kernel refuses an empty set.
fn cpus(case: &Case) -> Result<(), String> {
    let none = |what: &str| Err(format!("{what}: no CPU, expected at least one"));
    for (i, task) in case.tasks.iter().enumerate() {
        if task.affinity.as_ref().is_some_and(Vec::is_empty) {
            return none(&format!("tasks[{i}].affinity"));
        }
        let mut empty = false;
        each_step(&task.program, &mut |step| {
            empty |= matches!(step, Step::SetAffinity(cpus) if cpus.is_empty());
        });
        if empty {
            return none(&format!("tasks[{i}].program: set_affinity"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = r#"{"format":"kernel-truth/1","name":"n","kind":"k","what":"w",
"machine":{"cpus":2},"duration_us":4000,"sampler":{"cpu":0,"every_us":10,"what":"task"},
"cgroups":[{"path":"/a","quota_us":-1,"idle":1}],
"tasks":[{"name":"t","affinity":[1],"program":[{"loop":2,"body":[{"set_affinity":[1]}]}]}]}"#;

    #[test]
    fn numbers_that_make_no_sense_are_refused_with_their_place() {
        assert!(Case::parse(CASE).is_ok());
        for (from, to, error) in [
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
                "tasks[0].affinity: no CPU, expected at least one",
            ),
            (
                "nity\":[1]}",
                "nity\":[]}",
                "tasks[0].program: set_affinity: no CPU, expected at least one",
            ),
        ] {
            let text = CASE.replacen(from, to, 1);
            assert_ne!(text, CASE, "{to}");
            assert_eq!(Case::parse(&text).expect_err(to), error);
        }
        assert!(Case::parse(&CASE.replace(":-1", ":1000")).is_ok());
        assert!(Case::parse(&CASE.replace(":4000", ":1")).is_ok());
    }
}

//! What a run of a `result.json` may say of its case: no group, phase, thread or CPU that the case
//! does not have, and no time below zero. What is well formed and impossible was not measured.

use std::collections::BTreeMap;

use super::case::{Case, Step, each_step};
use super::fits::WINDOW_PART;
use super::recorded::{Dist, KIDS, Run, TaskRun};

/// The group of everything.
const ALL: &str = "(all)";

/// Refuses lower edges of histogram bins that make none.
pub(super) fn edges(edges: &[f64]) -> Result<(), String> {
    match edges.windows(2).find(|two| two[0] >= two[1]) {
        Some(two) => Err(format!(
            "hist_edges_us: {} after {}, expected rising edges",
            two[1], two[0]
        )),
        None => Ok(()),
    }
}

/// Refuses what the run of a case cannot have; `edges` are those of histograms.
///
/// # Errors
/// The path within the run, and what was expected.
pub(super) fn check(run: &Run, case: &Case, edges: &[f64]) -> Result<(), String> {
    let cpus = case.machine.cpus;
    for (name, task) in &run.tasks {
        of_task(task, cpus, edges).map_err(|e| format!("tasks.{name}.{e}"))?;
    }
    for (cpu, on) in &run.cpus {
        at_cpu(*cpu, cpus).map_err(|e| format!("cpus: {e}"))?;
        let times = [
            ("idle_us", on.idle_us),
            ("workload_us", on.workload_us),
            ("other_us", on.other_us),
        ];
        not_negative(told(times))
            .and_then(|()| within(told(times), run.window_us))
            .map_err(|e| format!("cpus.{cpu}.{e}"))?;
    }
    for (name, us) in &run.other_tasks_us {
        not_negative([(name.as_str(), *us)]).map_err(|e| format!("other_tasks_us.{e}"))?;
    }
    for (key, map) in [
        ("unseen_us", &run.unseen_us),
        ("attributed_us", &run.attributed_us),
    ] {
        for (cpu, us) in map {
            let number = cpu.parse().map_err(|_| format!("{key}: '{cpu}' is no CPU"));
            at_cpu(number?, cpus).map_err(|e| format!("{key}: {e}"))?;
            not_negative([(cpu.as_str(), *us)]).map_err(|e| format!("{key}.{e}"))?;
        }
    }
    let disturbed = run.disturbance_pct.unwrap_or(0.0);
    not_negative([("steal_us", run.steal_us), ("disturbance_pct", disturbed)])?;
    match case.is_benchmark() {
        true => Ok(()),
        false => of_case(run, case),
    }
}

/// Groups, phases and created threads are those of the case.
fn of_case(run: &Run, case: &Case) -> Result<(), String> {
    for (path, group) in &run.groups {
        if path != ALL && case.cgroups.iter().all(|g| g.path != *path) {
            return Err(format!("groups.{path}: the case has no such group"));
        }
        let times = [
            ("cpu_us", group.cpu_us),
            ("cpu_share_of_workload", group.cpu_share_of_workload),
        ];
        let stat = group.cpu_stat.iter().map(|(key, v)| (key.as_str(), *v));
        not_negative(told(times).chain(stat)).map_err(|e| format!("groups.{path}.{e}"))?;
    }
    let phases = case.phase_starts_us.len();
    for (phase, shares) in &run.phases {
        if *phase as usize >= phases {
            return Err(format!("phases.{phase}: the case has {phases}, from 0"));
        }
        if let Some(task) = shares.keys().find(|task| !run.tasks.contains_key(*task)) {
            return Err(format!("phases.{phase}.{task}: no such task"));
        }
        let shares = shares.iter().map(|(task, share)| (task.as_str(), *share));
        not_negative(shares).map_err(|e| format!("phases.{phase}.{e}"))?;
    }
    if run.tasks.contains_key(KIDS) && !creates_threads(case) {
        return Err(format!("tasks.{KIDS}: no task of the case creates threads"));
    }
    Ok(())
}

/// Whether a task of the case creates threads, or is called as they are.
fn creates_threads(case: &Case) -> bool {
    let mut found = false;
    for task in &case.tasks {
        found |= task.name == KIDS;
        each_step(&task.program, &mut |step| {
            found |= matches!(step, Step::Spawn(_));
        });
    }
    found
}

fn of_task(task: &TaskRun, cpus: u32, edges: &[f64]) -> Result<(), String> {
    let woken = [&task.wakeup_target_cpu, &task.wakeup_new_target_cpu].map(Option::as_ref);
    for (key, numbers) in [
        ("cpu_us_by_cpu", task.cpu_us_by_cpu.as_ref().map(numbers)),
        ("wakeup_target_cpu", woken[0].map(numbers)),
        ("wakeup_new_target_cpu", woken[1].map(numbers)),
    ] {
        for cpu in numbers.into_iter().flatten() {
            at_cpu(cpu, cpus).map_err(|e| format!("{key}: {e}"))?;
        }
    }
    not_negative(told([
        ("cpu_us", task.cpu_us),
        ("cpu_share_of_workload", task.cpu_share_of_workload),
    ]))?;
    for (cpu, us) in task.cpu_us_by_cpu.iter().flatten() {
        not_negative([(cpu.to_string().as_str(), *us)])
            .map_err(|e| format!("cpu_us_by_cpu.{e}"))?;
    }
    for (key, dist) in [
        ("wakeup_latency_us", &task.wakeup_latency_us),
        ("on_cpu_us", &task.on_cpu_us),
        ("preempted_wait_us", &task.preempted_wait_us),
    ] {
        let parts = dist.iter().flat_map(parts);
        not_negative(parts).map_err(|e| format!("{key}.{e}"))?;
    }
    let (bins, expected) = (task.on_cpu_hist.as_ref().map_or(0, Vec::len), edges.len());
    if bins != 0 && bins != expected {
        return Err(format!(
            "on_cpu_hist: {bins} bins, expected {expected} as hist_edges_us"
        ));
    }
    Ok(())
}

fn numbers<T>(map: &BTreeMap<u32, T>) -> Vec<u32> {
    map.keys().copied().collect()
}

fn parts(dist: &Dist) -> impl Iterator<Item = (&'static str, f64)> {
    let all = [
        ("mean", dist.mean),
        ("p50", dist.p50),
        ("p90", dist.p90),
        ("p99", dist.p99),
        ("max", dist.max),
    ];
    told(all)
}

/// Figures that were recorded.
fn told<const N: usize>(all: [(&str, Option<f64>); N]) -> impl Iterator<Item = (&str, f64)> {
    all.into_iter().filter_map(|(name, v)| Some((name, v?)))
}

fn at_cpu(cpu: u32, cpus: u32) -> Result<(), String> {
    match cpu < cpus {
        true => Ok(()),
        false => Err(format!("CPU {cpu}, the case's machine has {cpus}")),
    }
}

fn not_negative<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> Result<(), String> {
    let below = values.into_iter().find(|(_, value)| *value < 0.0);
    below.map_or(Ok(()), |(name, value)| {
        Err(format!("{name}: {value}, expected at least 0"))
    })
}

/// A CPU's time is at most the window; what a clock adds to that is left.
fn within<'a>(
    times: impl IntoIterator<Item = (&'a str, f64)>,
    window_us: f64,
) -> Result<(), String> {
    let over = |(_, us): &(&str, f64)| *us > window_us * (1.0 + WINDOW_PART);
    let over = times.into_iter().find(over);
    over.map_or(Ok(()), |(name, us)| {
        Err(format!(
            "{name}: {us}, expected at most window_us ({window_us})"
        ))
    })
}

#[cfg(test)]
mod tests {
    use crate::truth::Truth;

    const CASE: &str = r#"{"format":"kernel-truth/1","name":"n","kind":"k","what":"w",
"machine":{"cpus":2},"duration_us":4000,"cgroups":[{"path":"/g"}],"phase_starts_us":[0,2000],
"tasks":[{"name":"t","program":[{"hog":true}]}]}"#;

    const RESULT: &str = r#"{"format":"kernel-truth/1","case":"n","hist_edges_us":[0,10,20],
"runs":[{"window_us":4000,"tasks":{"t":{"cpu_us":5,"cpu_us_by_cpu":{"1":5},
"wakeup_target_cpu":{"0":1},"on_cpu_us":{"n":1,"max":7},"on_cpu_hist":[1,2,3]}},
"groups":{"/g":{"cpu_us":5,"cpu_stat":{"nr_periods":3}},"(all)":{"cpu_us":5}},
"cpus":{"0":{"idle_us":9}},"phases":{"1":{"t":0.5}},"unseen_us":{"1":3}}]}"#;

    /// What of the result is replaced by what, and what the message says.
    #[rustfmt::skip]
    const IMPOSSIBLE: &[(&str, &str, &str)] = &[
        (
            "\"/g\":",
            "\"/h\":",
            "runs[0].groups./h: the case has no such group",
        ),
        (
            "\"1\":{\"t\"",
            "\"2\":{\"t\"",
            "runs[0].phases.2: the case has 2, from 0",
        ),
        (
            "{\"t\":0.5",
            "{\"u\":0.5",
            "runs[0].phases.1.u: no such task",
        ),
        (
            "{\"t\":0.5",
            "{\"t\":-0.5",
            "runs[0].phases.1.t: -0.5, expected at least 0",
        ),
        (
            "{\"1\":5}",
            "{\"2\":5}",
            "runs[0].tasks.t.cpu_us_by_cpu: CPU 2",
        ),
        (
            "{\"1\":5}",
            "{\"1\":-5}",
            "runs[0].tasks.t.cpu_us_by_cpu.1: -5",
        ),
        (
            "{\"0\":1}",
            "{\"9\":1}",
            "runs[0].tasks.t.wakeup_target_cpu: CPU 9",
        ),
        (
            "\"max\":7",
            "\"max\":-7",
            "runs[0].tasks.t.on_cpu_us.max: -7",
        ),
        (
            "{\"cpu_us\":5,\"cpu_us",
            "{\"cpu_us\":-1,\"cpu_us",
            "tasks.t.cpu_us: -1",
        ),
        ("{\"0\":{\"idle", "{\"2\":{\"idle", "runs[0].cpus: CPU 2"),
        (
            "\"idle_us\":9",
            "\"idle_us\":-9",
            "runs[0].cpus.0.idle_us: -9",
        ),
        (
            "\"idle_us\":9",
            "\"other_us\":5000",
            "runs[0].cpus.0.other_us: 5000, expected at most window_us (4000)",
        ),
        (
            "periods\":3",
            "periods\":-3",
            "runs[0].groups./g.nr_periods: -3",
        ),
        ("{\"1\":3}", "{\"x\":3}", "runs[0].unseen_us: 'x' is no CPU"),
        ("{\"1\":3}", "{\"2\":3}", "runs[0].unseen_us: CPU 2"),
        (
            "\"tasks\":{",
            "\"tasks\":{\"kids\":{},",
            "runs[0].tasks.kids: no task",
        ),
        (
            "[1,2,3]",
            "[1,2]",
            "runs[0].tasks.t.on_cpu_hist: 2 bins, expected 3",
        ),
        (
            "[0,10,20]",
            "[]",
            "runs[0].tasks.t.on_cpu_hist: 3 bins, expected 0",
        ),
        (
            "[0,10,20]",
            "[0,20,10]",
            "hist_edges_us: 10 after 20, expected rising edges",
        ),
    ];

    #[test]
    fn what_a_case_cannot_have_is_refused_with_its_place() {
        Truth::parse(CASE, RESULT).expect("a result");
        for (from, to, says) in IMPOSSIBLE {
            let text = RESULT.replacen(from, to, 1);
            assert_ne!(text, RESULT, "{from}");
            let (of_case, error) = Truth::parse(CASE, &text).expect_err(to);
            assert!(!of_case && error.contains(says), "{to}: {error}");
        }
    }
}

//! Benchmark cases (`command`): the workload models of `fairground run` on the recorded machine.
//! What the simulated tool prints is read as the recorder reads the real tool's output.

use std::collections::BTreeMap;

use serde_json::Value;

use super::case::Case;
use super::compare::NOT_IN_MOST;
use super::recorded::Recorded;
use super::row::{Row, Sample};
use super::tolerance::{Tolerance, rule_for};
use super::traced;
use crate::machine::Setup;
use crate::machine_file::Machine;
use crate::outcome;
use crate::workload::{Env, Workload};

/// One row for each number that the tool printed in untraced runs, and those of the traced runs.
///
/// # Errors
/// A sentence that says why a run came to no end.
pub fn check(
    case: &Case,
    recorded: &Recorded,
    machine: &Machine,
    seeds: &[u64],
) -> Result<Vec<Row>, String> {
    let workload = model(case, machine);
    let runs: Result<Vec<Numbers>, &String> = match &workload {
        Ok(workload) => {
            let run = |seed: &u64| printed(workload, case, machine, *seed);
            Ok(seeds.iter().map(run).collect::<Result<_, _>>()?)
        }
        Err(why) => Err(why),
    };
    let values = untraced(&recorded.own_untraced_runs);
    let printed_by = recorded.own_untraced_runs.as_array().map_or(0, Vec::len);
    let rows = samples(&values, &recorded.own_untraced_summary);
    let rows = rows.into_iter().map(|(name, sample)| {
        let metric = format!("own.{name}");
        let simulated = match &runs {
            Ok(runs) => runs.iter().filter_map(|r| r.get(&name)).copied().collect(),
            Err(_) => Vec::new(),
        };
        let tolerance = rule_for(&metric).map_or(Tolerance::Skipped("no rule"), |r| r.two_cpus);
        let reason = match (&tolerance, &runs) {
            (Tolerance::Skipped(reason), _) => Some((*reason).to_string()),
            (_, Err(why)) => Some((*why).clone()),
            _ if values.get(&name).is_some_and(|v| 2 * v.len() < printed_by) => {
                Some(NOT_IN_MOST.to_string())
            }
            (_, Ok(_)) if sample.n == 0 => Some("the summary has no mean".to_string()),
            (_, Ok(_)) if simulated.is_empty() => Some("the model does not print it".to_string()),
            _ => None,
        };
        if let Some(reason) = reason {
            return Row::skipped(&case.name, &metric, "as printed", sample, reason);
        }
        let simulated = Sample::of(&simulated);
        let range = values.get(&name).cloned().unwrap_or_default();
        Row::judged(
            &case.name,
            &metric,
            "as printed",
            &range,
            sample,
            simulated,
            tolerance,
        )
    });
    let mut rows: Vec<Row> = rows.collect();
    let workload = workload.as_ref().map_err(String::as_str);
    rows.extend(traced::check(case, recorded, workload, machine, seeds)?);
    Ok(rows)
}

/// The model of the command, or why there is none.
fn model(case: &Case, machine: &Machine) -> Result<Workload, String> {
    let command = case.command.as_deref().unwrap_or_default();
    // No autogroups (`kernel::features` has no others): the recorded processes are in the root.
    let argv: Vec<&str> = command.split_whitespace().chain(ROOT).collect();
    let cpus = machine.topology.nr_cpus() as u32;
    let workload = Workload::from_argv(&argv, &Env { cpus });
    workload.map_err(|e| format!("no model of this command: {e}"))
}

/// Whether the kernel of the case can be simulated.
///
/// # Errors
/// What of it cannot.
pub(super) fn knows(case: &Case, machine: &Machine) -> Result<(), String> {
    super::kernel::features(&case.machine, machine).map(drop)
}

type Numbers = BTreeMap<String, f64>;

/// Mean and spread of each number: of the runs, or where there are only these, as recorded.
fn samples(runs: &BTreeMap<String, Vec<f64>>, summary: &Value) -> BTreeMap<String, Sample> {
    let mut all: BTreeMap<String, Sample> = BTreeMap::new();
    for (name, of) in summary.as_object().into_iter().flatten() {
        let field = |key: &str| of.get(key).and_then(Value::as_f64);
        let sample = field("mean").map_or(Sample::NONE, |mean| Sample {
            mean,
            sd: field("stdev").unwrap_or(0.0),
            // A mean is that of a run at least.
            n: field("n").map_or(1, |n| n as usize).max(1),
        });
        all.insert(name.clone(), sample);
    }
    for (name, values) in runs {
        all.insert(name.clone(), Sample::of(values));
    }
    all
}

/// The values of each number over the untraced runs.
pub(super) fn untraced(runs: &Value) -> BTreeMap<String, Vec<f64>> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in runs
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
    {
        for (name, value) in run {
            if let Some(value) = value.as_f64() {
                all.entry(name.clone()).or_default().push(value);
            }
        }
    }
    all
}

/// Options that put a benchmark into the root group.
const ROOT: [&str; 2] = ["--cgroup", "/"];

/// What one simulated run prints.
fn printed(
    workload: &Workload,
    case: &Case,
    machine: &Machine,
    seed: u64,
) -> Result<Numbers, String> {
    let setup = Setup {
        machine,
        features: super::kernel::features(&case.machine, machine)?,
        workload,
        seed,
        trace: false,
    };
    let out = outcome::run(&setup).map_err(|e| e.to_string())?;
    Ok(read(&out.words))
}

/// The numbers in what a tool prints, by the names of the format.
fn read(words: &str) -> Numbers {
    let mut out = Numbers::new();
    let mut section = None;
    for line in words.lines() {
        let text = line.trim();
        if let Some(name) = heading(text) {
            section = Some(name);
        }
        let number = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
            text[..end.unwrap_or(text.len())].parse::<f64>().ok()
        };
        let mut put = |name: &str, text: &str| {
            if let Some(value) = number(text.trim()) {
                out.insert(name.to_string(), value);
            }
        };
        if let Some((percentile, value)) = text.trim_start_matches("* ").split_once("th: ")
            && let Some(section) = section
        {
            put(&format!("{section}_p{percentile}"), value);
        }
        for (start, name) in LINES {
            if let Some(rest) = text.strip_prefix(start) {
                put(name, rest);
            }
        }
        if let Some(rest) = text.strip_prefix("events (avg/stddev):") {
            put("fair_events_avg", rest);
            put(
                "fair_events_stddev",
                rest.split_once('/').map_or("", |(_, s)| s),
            );
        }
        if let Some(before) = text.strip_suffix(" usecs/op") {
            put("usecs_per_op", before);
        }
        if text.starts_with("Wokeup ") && text.contains(" ms (+") {
            put(
                "avg_wake_ms",
                text.split_once(" in ").map_or("", |(_, s)| s),
            );
        }
    }
    out
}

/// Beginnings of lines, and the name of the number that follows.
const LINES: &[(&str, &str)] = &[
    ("Time:", "time_s"),
    ("Total time:", "total_s"),
    ("total number of events:", "events"),
    ("total time:", "total_time_s"),
    ("avg:", "lat_avg_ms"),
    ("95th percentile:", "lat_p95_ms"),
    ("max:", "lat_max_ms"),
    ("execution time (avg/stddev):", "fair_time_avg_s"),
    ("average rps:", "average_rps"),
];

/// The section of schbench's output that begins with a line.
fn heading(text: &str) -> Option<&'static str> {
    let sections = [
        ("Wakeup Latencies", "wakeup_us"),
        ("Request Latencies", "request_us"),
        ("RPS", "rps"),
    ];
    let found = sections
        .into_iter()
        .find(|(start, _)| text.starts_with(start));
    found.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_each_tool_are_read() {
        let words = "Time: 0.028\n     Total time: 0.014 [sec]\n\n       9.780667 usecs/op\n\
                     Wokeup 8 of 8 threads in 0.1137 ms (+-2.84%)\n    total time:      0.0076s\n\
                     Latency (ms):\n   avg:        0.07\n  events (avg/stddev):   100.0/9.03\n\
                     Wakeup Latencies percentiles (usec) runtime 2 (s) (9 total samples)\n\
                     \t* 99.0th: 13         (87 samples)\n\t  99.9th: 64         (9 samples)\n\
                     RPS percentiles (requests) runtime 2 (s) (3 total samples)\n\
                     \t* 50.0th: 1162       (2 samples)\naverage rps: 1170.5\n";
        let all = read(words);
        for (name, value) in [
            ("time_s", 0.028),
            ("total_s", 0.014),
            ("usecs_per_op", 9.780667),
            ("avg_wake_ms", 0.1137),
            ("total_time_s", 0.0076),
            ("lat_avg_ms", 0.07),
            ("fair_events_avg", 100.0),
            ("fair_events_stddev", 9.03),
            ("wakeup_us_p99.0", 13.0),
            ("wakeup_us_p99.9", 64.0),
            ("rps_p50.0", 1162.0),
            ("average_rps", 1170.5),
        ] {
            assert_eq!(all.get(name), Some(&value), "{name}");
        }
    }
}

//! `list`, `completions` and help: what they name is what the other commands take.

mod common;

use common::{SHORT, json, succeeds, words};
use serde_json::Value;

const ALL: [&str; 7] = [
    "machines",
    "workloads",
    "configs",
    "patches",
    "profiles",
    "metrics",
    "decisions",
];

#[test]
fn tables_and_json_name_the_same() {
    for what in ALL {
        let text = succeeds(["list", what]);
        let rows = json(&succeeds(["list", what, "--json"]));
        let rows = rows.as_array().expect("an array");
        assert!(rows.len() > 3, "{what}");
        for row in rows {
            let name = row["name"].as_str().expect("a name");
            let named = |line: &str| line.starts_with(&format!("{name}  "));
            assert!(text.lines().any(named), "{what}: {name}");
        }
        let wide = text.lines().filter(|l| l.chars().count() > 99).count();
        assert_eq!(wide, 0, "{what}");
    }
}

#[test]
fn all_five_changes_are_listed_with_what_they_set() {
    let rows = json(&succeeds(["list", "patches", "--json"]));
    let seeds: Vec<_> = rows
        .as_array()
        .expect("an array")
        .iter()
        .map(|r| r["seed"].as_u64())
        .collect();
    for seed in 0..5 {
        assert!(seeds.contains(&Some(seed)), "{seed}");
    }
    let text = succeeds(["list", "patches"]);
    for part in [
        "tg_load_avg_period_ns = 1000000 (base: 0)",
        "layout = reordered",
        "Linux 6.11",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn every_listed_machine_and_profile_can_be_used() {
    for row in json(&succeeds(["list", "machines", "--json"]))
        .as_array()
        .expect("an array")
    {
        let name = row["name"].as_str().expect("a name");
        succeeds(words(&[
            &["run", "--machine", name, "--seed", "1", "--quiet"],
            SHORT,
        ]));
    }
    for row in json(&succeeds(["list", "profiles", "--json"]))
        .as_array()
        .expect("an array")
    {
        let name = row["name"].as_str().expect("a name");
        let machine = [
            "run",
            "--machine",
            "xeon-8cpu-2013",
            "--seed",
            "1",
            "--quiet",
            "--profile",
        ];
        succeeds(words(&[&machine, &[name], SHORT]));
    }
}

#[test]
fn every_measured_metric_is_listed() {
    let rows = json(&succeeds(["list", "metrics", "--json"]));
    let listed: Vec<&str> = rows
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|r| r["name"].as_str())
        .collect();
    let run = [
        "run",
        "--machine",
        "xeon-8cpu-2013",
        "--seed",
        "1",
        "--json",
        "-",
    ];
    let result = json(&succeeds(words(&[&run, SHORT])));
    for name in result["variants"][0]["runs"][0]["metrics"]
        .as_object()
        .expect("metrics")
        .keys()
    {
        assert!(listed.contains(&name.as_str()), "{name}");
    }
}

/// Each workload in each form that measures something else, as short as it can be.
const MEASURED: [&str; 19] = [
    "hackbench -g 1 -f 2 -l 5",
    "perf bench sched pipe -l 10",
    "perf bench sched messaging -g 1 -l 1",
    "netperf -t UDP_RR -l 1ms",
    "netperf -t TCP_RR -l 1ms",
    "netperf -t UDP_STREAM -l 1ms",
    "netperf -t TCP_STREAM -l 1ms",
    "perf bench futex wake -t 2",
    "perf bench mem memset -s 1MB",
    "sysbench threads --threads=2 --events=2",
    "sysbench mutex --threads=2 --mutex-locks=5",
    "sysbench cpu --events=1",
    "sysbench memory --memory-total-size=1M",
    "ebizzy -t 2 -S 1ms",
    "sysbench oltp_read_only --threads=2 --time=2ms",
    "schbench -m 1 -t 1 -r 2ms",
    "cyclictest -l 2",
    "hogs --tasks 2 --duration 2ms --cpu-max 5ms/10ms",
    "sleepers --tasks 2 --duration 2ms",
];

#[test]
fn what_workloads_measure_is_listed_with_its_unit_and_direction() {
    let listed = json(&succeeds(["list", "metrics", "--json"]));
    let listed = listed.as_array().expect("an array");
    let workloads = json(&succeeds(["list", "workloads", "--json"]));
    for workload in workloads.as_array().expect("an array") {
        let name = workload["name"].as_str().expect("a name");
        assert!(MEASURED.iter().any(|line| line.starts_with(name)), "{name}");
    }
    for line in MEASURED {
        let run = ["run", "--machine", "xeon-8cpu-2013", "--seed", "1"];
        let out = ["--quiet", "--json", "-", "--"];
        let argv: Vec<&str> = line.split(' ').collect();
        let result = json(&succeeds(words(&[&run, &out, &argv])));
        let metrics = result["metric_info"].as_array();
        for metric in metrics.expect("metrics") {
            let same = |row: &&Value| {
                ["name", "unit", "better"]
                    .iter()
                    .all(|k| row[k] == metric[k])
            };
            let rows: Vec<&Value> = listed.iter().filter(same).collect();
            assert_eq!(rows.len(), 1, "{line}: {metric}");
            let Some(lines) = rows[0]["workloads"].as_array() else {
                continue;
            };
            let lines = lines.iter().filter_map(Value::as_str);
            assert!(lines.clone().any(|form| line.starts_with(form)), "{line}");
        }
    }
}

#[test]
fn a_name_with_two_directions_says_where() {
    let rows = json(&succeeds(["list", "metrics", "--json"]));
    let rows = rows.as_array().expect("an array").iter();
    let rows: Vec<&Value> = rows
        .filter(|r| r["name"] == "sysbench.total_time_s")
        .collect();
    let better: Vec<_> = rows.iter().map(|r| r["better"].as_str()).collect();
    assert_eq!(better, [None, Some("lower")]);
    let text = succeeds(["list", "metrics"]);
    let line = text.lines().find(|l| l.contains("In sysbench mutex: "));
    assert!(line.is_some_and(|l| l.contains("  lower  ")), "{text}");
}

#[test]
fn help_and_completions() {
    assert!(succeeds(["--help"]).contains("Exit codes"));
    assert!(succeeds(["compare", "--help"]).contains("--fail-on"));
    // Several machines are taken there only.
    for (command, several) in [("compare", true), ("run", false), ("sweep", false)] {
        let help = succeeds([command, "--help"]);
        assert_eq!(
            help.contains("with commas between them"),
            several,
            "{command}"
        );
    }
    assert!(succeeds(["--version"]).starts_with("fairground "));
    let help = [
        "run",
        "--machine",
        "xeon-8cpu-2013",
        "--",
        "hackbench",
        "--help",
    ];
    assert!(succeeds(help).contains("--pipe"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            succeeds(["completions", shell]).contains("fairground"),
            "{shell}"
        );
    }
}

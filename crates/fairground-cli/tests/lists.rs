//! `list`, `completions` and help: what they name is what the other commands take.

mod common;

use common::{SHORT, json, succeeds, words};

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

#[test]
fn help_and_completions() {
    assert!(succeeds(["--help"]).contains("Exit codes"));
    assert!(succeeds(["compare", "--help"]).contains("--fail-on"));
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

//! `fairground compare` in several places: a sign for each machine, the same bytes as alone.

mod common;
#[path = "../../fairground-report/tests/schema/mod.rs"]
mod schema;

use common::{SHORT, fails, fairground, file, json, place, succeeds, words};

const TWO: &[&str] = &[
    "compare",
    "--machine",
    "xeon-8cpu-2013,icx-8358-2s",
    "--cpus",
    "4,8",
    "--patch",
    "tg-load-avg-ratelimit",
    "--seeds",
    "2",
];

#[test]
fn each_place_is_what_it_would_be_alone() {
    let dir = place("signs-alone");
    let [csv, page] = ["out.csv", "out.html"].map(|n| dir.join(n).display().to_string());
    let other = ["--", "perf", "bench", "sched", "pipe", "-l", "20"];
    let line = words(&[TWO, &["--json", "-"]]);
    let text = succeeds(words(&[
        &line,
        &["--csv", &csv, "--report", &page],
        SHORT,
        &other,
    ]));
    let again = succeeds(words(&[&line, &["--jobs", "1"], SHORT, &other]));
    assert_eq!(text, again, "any number of threads");
    let result = json(&text);
    let schema = json(include_str!("../../../schemas/signs.schema.json"));
    schema::fits(&schema, &schema, &result).expect("fits the schema");
    let places = result["places"].as_array().expect("places");
    assert_eq!(places.len(), 2 * 2 * 2);
    for at in [0, 3, 6] {
        let command = places[at]["result"]["redo"]["command"].as_str();
        let command = command.expect("a command").to_string();
        let mut alone: Vec<&str> = command.split(' ').skip(1).collect();
        alone.splice(1..1, ["--json", "-"]);
        assert_eq!(json(&succeeds(alone)), places[at]["result"], "{command}");
    }
    assert_eq!(places[1]["cpus"], 8);
    assert_eq!(places[4]["workload"][0], "perf");
    let tallies = result["tallies"].as_array().expect("tallies");
    let metrics: Vec<&str> = tallies
        .iter()
        .filter_map(|t| t["metric"].as_str())
        .collect();
    assert_eq!(
        metrics,
        ["hackbench.messages_per_s", "sched-pipe.ops_per_s"]
    );
    let csv = std::fs::read_to_string(csv).expect("a file");
    assert_eq!(csv.lines().count(), 1 + 8 * 2 * 2);
    assert!(csv.starts_with("machine,cpus,workload,variant,seed,hackbench."));
    let page = std::fs::read_to_string(page).expect("a page");
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 2);
}

#[test]
fn a_machine_that_is_too_small_is_left_out_and_named() {
    let line = [
        "compare",
        "--machine",
        "xeon-8cpu-2013,spr-8480-2s",
        "--cpus",
        "16",
        "--patch",
        "quota-drift-condition",
        "--seeds",
        "2",
    ];
    let text = succeeds(words(&[&line, SHORT]));
    assert!(text.contains("not run   xeon-8cpu-2013, 16 CPUs"), "{text}");
    assert!(text.contains("same on 1 of 1: spr-8480-2s"), "{text}");
    // With --quiet there is no table below which it is named.
    let told = "note: not run: xeon-8cpu-2013, 16 CPUs, hackbench --pipe -g 1 -f 2 -l 5: \
                expected a multiple of 2, at most 8\n";
    for (more, told) in [(&["-q"][..], told), (&["--no-progress"], "")] {
        let output = fairground(words(&[&line, more, SHORT]));
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), told);
    }
    let alone = ["--machine", "xeon-8cpu-2013,xeon-8cpu-2013"];
    fails(
        words(&[&["compare"], &alone, &line[5..], SHORT]),
        &["twice"],
    );
    let none = ["compare", "--machine", "xeon-8cpu-2013", "--cpus", "16,32"];
    let line = words(&[&none, &line[5..], SHORT]);
    fails(line, &["no place can be run", "at most 8"]);
}

#[test]
fn a_scenario_runs_on_several_machines_with_the_metric_that_was_asked_for() {
    let scenario = r#"
machine = "xeon-8cpu-2013"
duration = "20ms"
[[task]]
name = "t"
count = 3
steps = [{ loop = "forever", steps = [{ run = "1ms" }, { sleep = "1ms" }] }]
"#;
    let path = file("signs-scenario", "s.toml", scenario);
    let line = [
        "compare",
        &path,
        "--machine",
        "xeon-8cpu-2013,kunpeng920-6426-2s",
        "--cpus",
        "4",
        "--set",
        "base_slice_ns=3000000",
        "--seeds",
        "2",
        "--metric",
        "wakeups",
        "--metric",
        "switches",
    ];
    let text = succeeds(line.iter().copied());
    assert!(text.contains("metric    wakeups"), "{text}");
    assert!(text.contains("metric    switches"), "{text}");
}

#[test]
fn bad_places_are_refused() {
    let line = |machine: &'static str| {
        words(&[
            &[
                "compare",
                "--machine",
                machine,
                "--patch",
                "ilb-skip-redundant",
            ],
            SHORT,
        ])
    };
    fails(line("spr-8480-2s,icx-8358"), &["icx-8358-2s"]);
    fails(line("spr-8480-2s,"), &["empty name"]);
    fails(line("spr-8480-2s,all"), &["twice"]);
    let text = include_str!("../../../machines/spr-8480-2s.toml");
    let again = file("signs-names", "again.toml", text);
    let both = format!("spr-8480-2s,{again}");
    let patch = ["--patch", "ilb-skip-redundant"];
    let named = words(&[&["compare", "--machine", &both], &patch, SHORT]);
    fails(named, &["are both called `spr-8480-2s`"]);
    let metric = ["--metric", "hackbench.times"];
    fails(words(&[TWO, &metric, SHORT]), &["hackbench.time_s"]);
    fails(words(&[TWO, SHORT, &["--"]]), &["nothing between"]);
    let fail_on = ["--fail-on", "hackbench.times:worse"];
    fails(words(&[TWO, &fail_on, SHORT]), &["hackbench.time_s"]);
    let one = [
        "compare",
        "--machine",
        "xeon-8cpu-2013",
        "--metric",
        "wakeups",
    ];
    let patch = ["--patch", "ilb-skip-redundant"];
    fails(words(&[&one, &patch, SHORT]), &["--metric"]);
    for option in ["--lines", "--functions"] {
        let told = [option, "table of one place"];
        fails(words(&[TWO, &[option, "5"], SHORT]), &told);
    }
    let run = ["run", "--machine", "xeon-8cpu-2013", "--cpus", "4,8"];
    fails(words(&[&run, SHORT]), &["--cpus", "expected one"]);
}

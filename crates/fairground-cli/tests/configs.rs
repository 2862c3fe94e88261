//! Configurations of MMTests and jobs of LKP by name: the same bytes as their workloads by hand.

mod common;

use common::{fails, json, place, succeeds, words};

const ON: &[&str] = &[
    "compare",
    "--machine",
    "xeon-8cpu-2013",
    "--patch",
    "tg-load-avg-ratelimit",
    "--seeds",
    "2",
];

#[test]
fn a_configuration_is_its_workloads_by_hand() {
    let named = [
        "--config",
        "mmtests/scheduler-perfpipe",
        "--config",
        "mmtests/config-scheduler-schbench",
        "--json",
        "-",
    ];
    let named = json(&succeeds(words(&[ON, &named])));
    let by_hand = "perf bench sched pipe -l 2000 -- schbench -r 100ms -m 1 -t 1 \
                   -- schbench -r 100ms -m 1 -t 2 -- schbench -r 100ms -m 1 -t 4 \
                   -- schbench -r 100ms -m 1 -t 7";
    let by_hand: Vec<&str> = by_hand.split_whitespace().collect();
    let by_hand = words(&[ON, &["--json", "-", "--"], &by_hand]);
    let by_hand = json(&succeeds(by_hand));
    assert_eq!(named["places"].as_array().map(Vec::len), Some(5));
    // Each with its own command to redo it.
    assert_eq!(named["places"], by_hand["places"]);
    assert_eq!(named["tallies"], by_hand["tallies"]);
    let command = named["redo"]["command"].as_str().expect("a command");
    assert!(command.contains("--config mmtests/scheduler-perfpipe"));
    let alone = named["places"][0]["result"]["redo"]["command"].as_str();
    let alone = alone.expect("a command");
    assert!(alone.ends_with("--seeds 2 -- perf bench sched pipe -l 2000"));
}

#[test]
fn text_and_page_have_a_row_for_each_workload() {
    let page = place("configs").join("out.html").display().to_string();
    let named = ["--config", "mmtests/schbench", "--whole", "--report", &page];
    let text = succeeds(words(&[ON, &named]));
    for part in [
        "config    mmtests/scheduler-schbench: one message thread a node",
        "configs/config-scheduler-schbench at 0d741df7041c",
        "machine   xeon-8cpu-2013, 8 CPUs",
        "workloads  1  schbench -r 100ms -m 1 -t 1\n",
        "\n           4  schbench -r 100ms -m 1 -t 7\n",
        "\n 4  -t 7  ",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert!(!text.contains("--whole has all"));
    let wide = text.lines().filter(|line| !line.starts_with("redo"));
    assert!(wide.clone().all(|line| line.len() < 100), "{text}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("and 1 more"));
}

#[test]
fn each_machine_has_the_workloads_of_its_size() {
    let line = "compare --machine xeon-8cpu-2013,spr-8480-2s --cpus 4,16 --seeds 2 \
                --patch tg-load-avg-ratelimit --config lkp/perf-bench-futex/wake --json -";
    let result = json(&succeeds(line.split_whitespace()));
    let places = result["places"].as_array().expect("places");
    let tasks = |i: usize| places[i]["workload"][6].as_str();
    assert_eq!(tasks(0), Some("4"));
    assert_eq!(places[1]["refused"], "expected a multiple of 2, at most 8");
    assert_eq!((tasks(2), tasks(3)), (Some("4"), Some("16")));
}

#[test]
fn bad_names_are_refused() {
    let refuse = |name: &str, parts: &[&str]| fails(words(&[ON, &["--config", name]]), parts);
    refuse(
        "mmtests/scheduler-unbond",
        &["unknown", "scheduler-unbound"],
    );
    refuse("hackbench", &["unknown configuration `hackbench`"]);
    refuse("lkp/hackbench/process-pip", &["no test", "process-pipe`"]);
    refuse("mmtests/network-tbench", &["not modelled", "tbench's mix"]);
    let both = ["--config", "lkp/hackbench", "--", "hackbench"];
    fails(words(&[ON, &both]), &["--config"]);
    let nowhere = "compare --patch tg-load-avg-ratelimit --config lkp/hackbench";
    fails(nowhere.split(' '), &["no machine"]);
    let whole = ["--whole", "--", "hackbench"];
    fails(words(&[ON, &whole]), &["--config"]);
    fails(
        ["list", "patches", "--machine", "spr-8480-2s"],
        &["configs"],
    );
}

#[test]
fn the_list_has_what_each_stands_for_on_a_machine() {
    let on = |whole: &[&str]| {
        let line: &[&str] = &[
            "list",
            "configs",
            "--machine",
            "spr-8480-2s",
            "--cpus",
            "128",
        ];
        succeeds(words(&[line, whole]))
    };
    let text = on(&[]);
    assert!(text.starts_with("on spr-8480-2s, 128 CPUs\n"));
    // Which counts these are: a test alone has more.
    let told = "one alone (SUITE/NAME/TEST) takes up to 5\n";
    assert!(text.contains(told) && !on(&["--whole"]).contains(told));
    assert!(text.contains("netperf -H 127.0.0.1 -t UDP_RR -l 5ms --pairs 32\n"));
    assert!(text.contains("2 of 3; --whole has all"));
    assert!(text.lines().all(|line| line.len() < 100));
    assert!(on(&["--whole"]).contains("-g 2048\n"));
    let rows = json(&on(&["--json"]));
    let unbound = rows.as_array().expect("rows").iter();
    let unbound = unbound.filter(|row| row["name"] == "mmtests/scheduler-unbound");
    let lines = unbound.map(|row| row["tests"][0]["workloads"][1].clone());
    let last = "perf bench sched messaging --pipe -l 5 -g 296";
    assert_eq!(lines.collect::<Vec<_>>(), [last]);
}

#[test]
fn the_page_names_them_all() {
    let page = include_str!("../../../docs/configs.md");
    let rows = json(&succeeds(["list", "configs", "--json"]));
    for row in rows.as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name");
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

//! The published schema of scenario files takes what the reader takes: an editor that checks
//! against it must not mark a file that runs.

#[path = "../../fairground-report/tests/schema/mod.rs"]
mod schema;

use std::path::Path;

use fairground_sim::spec::Scenario;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Whether the schema takes a text that the reader takes.
fn check(name: &str, text: &str) {
    Scenario::parse(name, text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
    let rules = std::fs::read_to_string(root().join("schemas/scenario.schema.json")).unwrap();
    let rules: Value = serde_json::from_str(&rules).unwrap();
    let value: Value = toml::from_str(text).unwrap();
    schema::fits(&rules, &rules, &value).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
}

#[test]
fn examples_fit_the_schema() {
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let name = path.display().to_string();
            check(&name, &std::fs::read_to_string(&path).unwrap());
            files += 1;
        }
    }
    assert!(files >= 10, "{files}");
    let page = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let block = page.split("```toml").nth(1).unwrap();
    check("docs/scenario.md", block.split("```").next().unwrap());
}

/// Each key of a group, an event or a task in each form in which it may be written.
const KEYS: &[(&str, &str)] = &[
    ("cgroup", r#""cpu.weight" = 400"#),
    ("cgroup", r#""cpu.shares" = 4096"#),
    ("cgroup", r#""cpu.max" = "20000 100000""#),
    ("cgroup", r#""cpu.max" = "20ms/100ms""#),
    ("cgroup", r#""cpu.max" = "20000""#),
    ("cgroup", r#""cpu.max.burst" = 50000"#),
    ("cgroup", r#""cpu.max.burst" = "10ms""#),
    ("cgroup", r#""cpu.idle" = 1"#),
    ("cgroup", r#""cpu.idle" = true"#),
    ("cgroup", r#""cpuset.cpus" = "0-1""#),
    ("cgroup", r#""cpuset.cpus" = 0"#),
    ("cgroup", r#""cpuset.cpus" = [0, 1]"#),
    ("cgroup", "count = 3"),
    ("event", r#""cpu.weight" = 400"#),
    ("event", r#""cpu.shares" = 4096"#),
    ("event", r#""cpu.max" = "max""#),
    ("event", r#""cpu.max.burst" = 5000"#),
    ("event", r#""cpu.max.burst" = "5ms""#),
    ("event", r#""cpu.idle" = 1"#),
    ("task", "nice = -20"),
    (
        "task",
        r#"policy = "SCHED_FIFO"
priority = 50"#,
    ),
    ("task", r#"affinity = "all""#),
    ("task", "affinity = [0, 1]"),
    ("task", r#"slice = "3ms""#),
    ("task", r#"timer_slack = "1us""#),
    ("task", r#"process = "kernel""#),
    ("task", "footprint = 64"),
    ("task", r#"working_set = "256KiB""#),
];

#[test]
fn every_form_of_a_key_fits_the_schema() {
    for (table, key) in KEYS {
        let of = |name: &str| if *table == name { *key } else { "" };
        let text = format!(
            "duration = \"1s\"\n[[cgroup]]\npath = \"/a\"\n{}\n[[task]]\nname = \"t\"\n{}\n\
             steps = [\"hog\"]\n[[event]]\nat = \"1ms\"\ncgroup = \"/a\"\n{}\n",
            of("cgroup"),
            of("task"),
            // An event writes something.
            match *table {
                "event" => key,
                _ => r#""cpu.max" = "max""#,
            },
        );
        check(key, &text);
    }
}

/// Steps of a task, all verbs in each form.
const STEPS: &str = r#""yield", { yield = true }, { yield = 1 }, { run = "exp 1ms" },
    { sleep = "1ms" }, { period = "1ms", late = "shift" }, { timer = "1ms", late = "catch-up" },
    { until = "1s" }, { loop = 2, steps = [{ run = "1us" }] },
    { write = "p", bytes = 2 }, { read = "p", bytes = 2 }, { write = "p" }, { poll = "p" },
    { post = "s" }, { wait = "s" }, { futex_wake = "f", n = 3 }, { futex_wait = "f" },
    { busy = "1ms" }, { lock = "m" }, { cond_wait = "c", mutex = "m" }, { unlock = "m" },
    { cond_signal = "c" }, { cond_broadcast = "c" },
    { barrier = "b" }, { begin = "r", from = "due" },
    { end = "r" }, { begin = "r", from = "now" }, { end = "r" }, { mark = "x" },
    { request = "w", bytes = 9 }, { fork = "k", n = 2 }, { fork = "k" }, "join", { join = 1 },
    "exec", { exec = true }, { nice = -5 }, { affinity = 0 }, { affinity = "0-1" },
    { affinity = [0, 1] }, { cgroup = "/" }, { slice = "3ms" },
    { loop = -1, steps = [{ run = "1us" }] }, { loop = "forever", steps = ["hog"] }, "exit""#;

#[test]
fn every_step_fits_the_schema() {
    let text = format!(
        r#"hz = 1000
cpu_dma_latency = 0
duration = "1s"
warmup = "1ms"
seeds = [1, 2]
pipes = ["p"]
sockets = ["q"]
mutexes = ["m"]
futexes = ["f"]
conditions = ["c"]
services = ["w"]
semaphores = {{ s = 1 }}
barriers = {{ b = 1 }}
task = [
    {{ name = "t", steps = [{STEPS}] }},
    {{ name = "server", steps = [{{ serve = "w" }}, {{ reply = "w", bytes = 3 }}, "hog"] }},
    {{ name = "k", template = 1, steps = [{{ run = "1us" }}, {{ exit = 1 }}] }},
    {{ name = "l", template = true, steps = [{{ hog = 1 }}] }},
]
"#
    );
    check("steps", &text);
}

//! Each published change can be switched on each workload.

mod common;

use common::{SMALL, json, succeeds, words};
use fairground::policy::CATALOGUE;

fn every_patch_on(workload: &[&str]) {
    for patch in CATALOGUE {
        let options = ["--patch", patch.name, "--json", "-", "--quiet", "--"];
        let result = json(&succeeds(words(&[&["compare"], SMALL, &options, workload])));
        for (variant, pairs) in [(0, patch.base), (1, patch.sets)] {
            for (name, value) in pairs {
                let found = &result["variants"][variant]["decisions"][name];
                assert_eq!(found, value, "{}: {name}", patch.name);
            }
        }
        let own = &result["comparison"][0];
        assert!(
            own["base"].is_number() && own["patch"].is_number(),
            "{}: {own}",
            patch.name
        );
        let switches = &result["variants"][1]["runs"][0]["metrics"]["switches"];
        assert!(switches.as_f64() > Some(0.0), "{}: {switches}", patch.name);
    }
}

#[test]
fn hackbench() {
    every_patch_on(&["hackbench", "-g", "1", "-f", "3", "-l", "5"]);
    every_patch_on(&[
        "hackbench",
        "--pipe",
        "--threads",
        "-g",
        "1",
        "-f",
        "3",
        "-l",
        "5",
    ]);
}

#[test]
fn perf_bench_sched_pipe() {
    every_patch_on(&[
        "perf", "bench", "sched", "pipe", "-l", "50", "--tree", "2:2",
    ]);
}

#[test]
fn perf_bench_sched_messaging() {
    every_patch_on(&["perf", "bench", "sched", "messaging", "-g", "1", "-l", "2"]);
}

#[test]
fn hogs() {
    every_patch_on(&[
        "hogs",
        "--tasks",
        "12",
        "--duration",
        "20ms",
        "--tree",
        "2:2",
    ]);
}

#[test]
fn sleepers() {
    every_patch_on(&["sleepers", "--tasks", "12", "--duration", "20ms"]);
}

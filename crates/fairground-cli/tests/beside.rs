//! Another workload beside the one that is measured, and machines whose CPUs differ, as the command
//! line has them.

mod common;

use common::{SHORT, SMALL, fails, file, json, succeeds, words};

const BESIDE: &[&str] = &["--beside", "hogs '--tasks' 2"];
const TO_STDOUT: &[&str] = &["--quiet", "--json", "-"];

#[test]
fn the_other_reports_under_its_own_name() {
    let result = json(&succeeds(words(&[
        &["run"],
        SMALL,
        BESIDE,
        TO_STDOUT,
        SHORT,
    ])));
    let argv = result["workload"].as_array().expect("words");
    assert!(argv.iter().any(|word| word == "beside"), "{argv:?}");
    let metrics = &result["variants"][0]["runs"][0]["metrics"];
    assert!(metrics["hackbench.time_s"].as_f64().is_some());
    let alone = metrics["beside.hogs.cpu_s"].as_f64().expect("CPU time");
    assert!(alone > 0.0);
    // The run was over with the first.
    let whole = metrics["sim_time_s"].as_f64().expect("a time");
    assert!(whole < 0.5 && alone <= 2.0 * whole, "{alone} {whole}");
}

#[test]
fn what_cannot_be_beside_is_refused() {
    let unknown = [
        "run",
        "--machine",
        "xeon-8cpu-2013",
        "--beside",
        "hogz -t 2",
    ];
    fails(
        words(&[&unknown, SHORT]),
        &["unknown workload 'hogz'", "'hogs'"],
    );
    let options = [
        "run",
        "--machine",
        "xeon-8cpu-2013",
        "--beside",
        "hogs --taskz 2",
    ];
    fails(words(&[&options, SHORT]), &["unknown option '--taskz'"]);
    let quote = ["run", "--machine", "xeon-8cpu-2013", "--beside", "hogs '2"];
    fails(
        words(&[&quote, SHORT]),
        &["--beside: a quote is not closed in `hogs '2`"],
    );
    fails(
        ["replay", "no.trace", "--beside", "hogs --tasks 2"],
        &["`--beside` is not for replays"],
    );
    let saved = file("beside-saved", "base.json", "{}");
    fails(
        ["compare", &saved, &saved, "--beside", "hogs --tasks 2"],
        &["--beside says what to simulate"],
    );
}

/// A CPU of a quarter of the speed takes four times as long.
#[test]
fn a_machine_file_says_how_fast_its_cpus_are() {
    let text = include_str!("../../../machines/xeon-8cpu-2013.toml");
    let list = "cpus = 8\ncpu_capacity = [1024, 256, 1024, 256, 1024, 256, 1024, 256]";
    let machine = file(
        "two-kinds",
        "two-kinds.toml",
        text.replacen("cpus = 8", list, 1),
    );
    let time = |cpu: &str| {
        let scenario = format!(
            "duration = \"exit\"\n[[task]]\nname = \"a\"\naffinity = [{cpu}]\nsteps = [{{ run = \
             \"20ms\" }}]\n"
        );
        let scenario = file(&format!("on-{cpu}"), "s.toml", scenario);
        let run = ["run", &scenario, "--machine", &machine, "--seed", "1"];
        let result = json(&succeeds(words(&[&run, TO_STDOUT])));
        let metrics = &result["variants"][0]["runs"][0]["metrics"];
        metrics["sim_time_s"].as_f64().expect("a time")
    };
    let (fast, slow) = (time("0"), time("1"));
    assert!((slow / fast - 4.0).abs() < 0.1, "{fast} {slow}");
}

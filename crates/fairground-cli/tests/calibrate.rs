//! `fairground calibrate`: a short real run writes a file that loads, and bad arguments are
//! refused.

mod common;

use common::{SHORT, fails, place, succeeds, words};

#[test]
fn a_short_run_writes_a_machine_that_runs() {
    let file = place("calibrate").join("here.toml");
    let file = file.to_str().unwrap();
    let summary = succeeds(["calibrate", "--quick", "-o", file, "--id", "here"]);
    for part in [
        "transfer.",
        "kernel_ops.syscall",
        "Not measured:",
        "needs the kernel's help; taken from",
    ] {
        // A single CPU has nobody to hand a line to.
        if part != "transfer." || std::thread::available_parallelism().unwrap().get() > 1 {
            assert!(summary.contains(part), "{part} is not in {summary}");
        }
    }
    let run = words(&[&["run", "--machine", file, "--seeds", "1"], SHORT]);
    assert!(succeeds(run).contains("machine   here"));
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("\nid = \"here\"\n") && text.contains("conf = \"measured\""));
    memory_is_memory(&text, &summary);
}

/// What counts as measured was measured over four times the last level, and is not faster than it;
/// anything else is said.
fn memory_is_memory(text: &str, summary: &str) {
    let file: toml::Table = text.parse().unwrap();
    let local = file["memory"]["local"].as_table().unwrap();
    let last = file["cache"].as_array().unwrap().last().unwrap();
    let number = |v: &toml::Value| v.as_float().or(v.as_integer().map(|i| i as f64)).unwrap();
    let (size_kib, l3) = (number(&last["size_kib"]), &last["latency"]);
    let note = local["note"].as_str().unwrap();
    let kib: f64 = note
        .split_once("over ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{note}"));
    if local["conf"].as_str() == Some("measured") {
        assert!(kib >= 4.0 * size_kib, "{note}");
        assert!(
            number(&local["v"]) >= 0.97 * number(&l3["v"]) || l3["src"].as_str() == Some("base")
        );
    } else {
        assert!(text.contains("# warning: memory.local"), "{text}");
        assert!(summary.contains("warning: memory.local"), "{summary}");
    }
}

#[test]
fn bad_arguments_are_refused_before_anything_is_measured() {
    fails(
        ["calibrate", "--base", "spr-8480"],
        &["unknown machine `spr-8480`", "did you mean `spr-8480-2s`?"],
    );
    fails(
        ["calibrate", "-o", "/nowhere/at/all.toml"],
        &["cannot write `/nowhere/at/all.toml`"],
    );
    fails(["calibrate", "--id", ""], &["--id is empty"]);
}

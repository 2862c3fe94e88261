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

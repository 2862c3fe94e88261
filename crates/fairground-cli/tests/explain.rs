//! `--explain`: why a task runs where and when it does.

mod common;

use common::{SHORT, SMALL, fails, succeeds, words};

#[test]
fn a_wake_up_is_explained() {
    let ask = ["run", "--explain", "hackbench@700us"];
    let text = succeeds(words(&[&ask, SMALL, SHORT]));
    for part in [
        "why here: ",
        "why now: ",
        "latency: ",
        "on the queue of CPU ",
        "through ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_thread_of_a_replay_is_explained() {
    let data = "../fairground-trace/tests/data/sleeper.script.txt.xz";
    let trace = format!("{}/{data}", env!("CARGO_MANIFEST_DIR"));
    let text = succeeds(["replay", &trace, "--explain", "sleeper@500ms"]);
    assert!(text.contains("\nsleeper "), "{text}");
    assert!(text.contains("latency: "), "{text}");
    // Where it is neither runnable nor running at that time, the answer says what it is about.
    for (question, said) in [
        (
            "sleeper@500ms",
            "at that time it is not runnable; this is its last turn before",
        ),
        ("sleeper@99s", "at that time the run has ended, at "),
        (
            "sleeper@0",
            "at that time it has not been runnable yet; this is how it came to",
        ),
    ] {
        let text = succeeds(["replay", &trace, "--explain", question]);
        assert!(text.starts_with(said), "{question}: {text}");
    }
    fails(
        ["replay", &trace, "--explain", "nosuch@1ms"],
        &[
            "no task `nosuch`",
            "name or thread id of the recording",
            "hog",
        ],
    );
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let ask = |question: &'static str| words(&[&["run", "--explain", question], SMALL, SHORT]);
    fails(
        ask("hackbensh@1ms"),
        &["no task `hackbensh`", "did you mean `hackbench`?"],
    );
    fails(ask("hackbench@1parsec"), &["`parsec` is no unit of time"]);
}

//! `--explain`: why a task runs where and when it does.

mod common;

use common::{SHORT, SMALL, fails, file, succeeds, words};

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

/// Of many that ran meanwhile the last line has the rest, so that the parts make the whole.
#[test]
fn the_parts_of_a_latency_add_up_as_shown() {
    let machine = ["--machine", "spr-guest-2cpu", "--seed", "1"];
    let hogs = ["--", "hogs", "-t", "24", "-d", "100ms"];
    let ask = ["run", "--explain", "1000@60ms"];
    let text = succeeds(words(&[&ask, &machine, &hogs]));
    let latency = text.split("latency: ").nth(1).unwrap();
    let part = |words: &str| -> Vec<f64> {
        let lines = latency.lines().filter(|line| line.contains(words));
        let numbers = lines.map(|line| line.split_whitespace().next().unwrap());
        numbers.map(|us| us.parse().unwrap()).collect()
    };
    assert_eq!(part("more, each for less time").len(), 1, "{text}");
    let meanwhile: f64 = part("us    ").iter().sum();
    let whole = part("on the queue, waiting for its turn")[0];
    assert!((meanwhile - whole).abs() < 0.01, "{text}");
    let ways = [part("choosing a CPU"), part("on the way to its queue")];
    assert!(ways.iter().all(|way| way.len() == 1), "{text}");
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

/// What `wakeup_latency_us` leaves out of a wake-up by a timer, and the state that it is due to.
#[test]
fn who_is_woken_by_a_timer_is_told_how_late_and_why() {
    let run = |more: &[&str]| {
        let head = [
            "run",
            "--machine",
            "icx-8358-2s",
            "--cpus",
            "4",
            "--seed",
            "1",
        ];
        let tail = "-- cyclictest --laptop --policy other -t 1 -i 2000 -D 0.02".split(' ');
        succeeds(head.iter().chain(more).copied().chain(tail))
    };
    let text = run(&["--explain", "cyclictest@10ms"]);
    for part in [
        "late: 118.",
        "50.000 us  its slack of 50.000 us, in which no other timer's interrupt came",
        "the CPU's way out of C6, and the interrupt",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = run(&[]);
    let idle = text.lines().find(|l| l.starts_with("idle in   "));
    let idle = idle.expect("a line of idle states");
    assert!(idle.contains("C6 ") && !idle.contains("POLL"), "{idle}");
}

#[test]
fn who_is_pushed_or_never_runs_is_told_so() {
    let scenario = r#"
        machine = "xeon-8cpu-2013"
        duration = "20ms"
        [[task]]
        name = "moves"
        affinity = "1"
        steps = [{ run = "1ms" }, { affinity = "3" }, "hog"]
        [[task]]
        name = "rt"
        policy = "fifo"
        priority = 10
        affinity = "2"
        steps = ["hog"]
        [[task]]
        name = "under"
        affinity = "2"
        steps = ["hog"]
    "#;
    let scenario = file("pushed", "s.toml", scenario);
    let ask = |question: &str| succeeds(["run", &scenario, "--seed", "1", "--explain", question]);
    let text = ask("moves@2ms");
    for part in [
        "ran on CPU 1 and was pushed to CPU 3 by a change of its affinity",
        "why here: it may not use CPU 1 any more; no CPU was chosen",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = ask("under@10ms");
    let end = "us and more: it has not run until the end of the run";
    assert!(text.contains(end) && !text.contains("to running"), "{text}");
}

/// Quota takes the task off, whoever runs next; the wait for it is told apart from that for a turn.
#[test]
fn who_is_out_of_quota_did_not_leave_for_the_next() {
    let scenario = r#"
        machine = "spr-guest-2cpu"
        duration = "200ms"
        [[cgroup]]
        path = "/c"
        "cpu.max" = "10ms/100ms"
        [[task]]
        name = "limited"
        cgroup = "/c"
        affinity = "0"
        steps = ["hog"]
        [[task]]
        name = "other"
        affinity = "0"
        steps = ["hog"]
    "#;
    let scenario = file("quota", "s.toml", scenario);
    for profile in ["linux-6.18", "linux-6.5"] {
        let which = ["--seed", "1", "--profile", profile];
        let ask = ["run", &scenario, "--explain", "limited@90ms"];
        let text = succeeds(words(&[&ask, &which]));
        for part in [
            "had to leave CPU 0: group /c has used its quota (next there is other 1001)",
            "waiting for quota: group /c was throttled there",
            "on the queue, waiting for its turn",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// Who goes to sleep is shown on the queue, but is none of those that are chosen from. A group that
/// has become empty before, and pays its lag, does not go to sleep again.
#[test]
fn who_goes_to_sleep_does_not_compete() {
    let scenario = r#"
        machine = "spr-guest-2cpu"
        duration = "60ms"
        [[task]]
        name = "sleeper"
        affinity = "0"
        steps = [{ loop = "forever", steps = [{ run = "300us" }, { sleep = "1ms" }] }]
        [[cgroup]]
        path = "/g"
        [[task]]
        name = "owes"
        cgroup = "/g"
        affinity = "0"
        steps = [{ loop = "forever", steps = [{ run = "1ms" }, { sleep = "3ms" }] }]
        [[task]]
        name = "hog"
        affinity = "0"
        steps = ["hog"]
    "#;
    let scenario = file("sleeps", "s.toml", scenario);
    let asked: Vec<String> = (20..40)
        .map(|ms| {
            succeeds([
                "run",
                &scenario,
                "--seed",
                "1",
                "--explain",
                &format!("hog@{ms}ms"),
            ])
        })
        .collect();
    let pays = |text: &&String| text.contains("group /g  asleep, pays its lag");
    let beside = |text: &&String| text.contains("sleeper 1000  running, goes to sleep");
    assert!(asked.iter().filter(pays).any(|text| beside(&text)));
    for text in asked.iter().filter(beside) {
        assert_eq!(text.matches("goes to sleep\n").count(), 1, "{text}");
    }
    let text = asked.iter().find(|text| text.contains("goes to sleep"));
    let text = text.expect("the hog runs after the sleeper");
    let marked = "running, goes to sleep";
    let sleeper = text.lines().find(|line| line.contains(marked)).unwrap();
    assert!(
        sleeper.contains("  -  ") && sleeper.contains("sleeper"),
        "{text}"
    );
    let rule = "who goes to sleep is not among them";
    assert!(text.contains(rule), "{text}");
    let hog = text
        .lines()
        .find(|line| line.contains("yes") && line.ends_with("<-"));
    assert!(hog.is_some(), "the only one left is eligible: {text}");
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let ask = |question: &'static str| words(&[&["run", "--explain", question], SMALL, SHORT]);
    fails(
        ask("hackbensh@1ms"),
        &["no task `hackbensh`", "did you mean `hackbench`?"],
    );
    fails(ask("hackbench@1parsec"), &["`parsec` is no unit of time"]);
    let one = ["run", "--explain", "hackbench@1ms"];
    for more in [&["--lines", "5"], &["--functions", "5"], &["--slow", "1ms"]] {
        fails(
            words(&[&one, more, SMALL, SHORT]),
            &["cannot be used with", more[0]],
        );
    }
    fails(
        words(&[&one, &["-q"], SMALL, SHORT]),
        &["cannot be used with"],
    );
}

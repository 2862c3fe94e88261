//! What a reader is told: notes of sweeps, of places and of options that change nothing; which
//! machine a head is about.

mod common;

use common::{SHORT, SMALL, fails, fairground, file, json, place, succeeds, words};

const GROUP: &str = r#"
machine = "spr-guest-2cpu"
duration = "50ms"
seeds = 2
[[cgroup]]
path = "/web"
"cpu.weight" = 300
[[cgroup]]
path = "/batch"
"cpu.idle" = true
[[task]]
name = "hog"
cgroup = "/web"
steps = ["hog"]
"#;

/// Runs it and expects success; gives standard error.
fn errors_of<'a>(line: impl IntoIterator<Item = &'a str>) -> String {
    let output = fairground(line);
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{errors}");
    errors
}

/// Whatever the picker does not use is said to have no part; it is not said to be in effect, nor is
/// the workload blamed.
#[test]
fn what_the_picker_does_not_use_is_told() {
    let cfs = ["--profile", "linux-6.5"];
    for (command, of_cfs, option, whose, vain) in [
        ("run", false, "--set sched_latency_ns=1ms", "", true),
        ("run", false, "--set base_slice_ns=1ms", "", false),
        ("run", true, "--set base_slice_ns=3ms", "", true),
        ("compare", false, "--set sched_latency_ns=1ms", "", true),
        ("compare", true, "--base delay_dequeue=keep", "", true),
        ("sweep", true, "--over run_to_parity=off,none", "", true),
        (
            "sweep",
            false,
            "--over pick=cfs,eevdf --set sched_latency_ns=1ms",
            "pick=eevdf: ",
            true,
        ),
    ] {
        let profile = if of_cfs { &cfs[..] } else { &[] };
        let option: Vec<&str> = option.split(' ').collect();
        let text = succeeds(words(&[&[command], SMALL, profile, &option, SHORT]));
        let name = option.last().and_then(|word| word.split('=').next());
        let name = name.expect("NAME=VALUE");
        let name = if command == "sweep" {
            option[1].split('=').next().unwrap()
        } else {
            name
        };
        let name = if name == "pick" {
            "sched_latency_ns"
        } else {
            name
        };
        let pick = if of_cfs { "cfs" } else { "eevdf" };
        let part = format!("note {whose}{name} has no part under pick={pick}:");
        assert_eq!(says(&text, &part), vain, "`{part}`: {text}");
        if vain && whose.is_empty() {
            assert!(!says(&text, "before scaling"), "{text}");
            assert!(!says(&text, "this workload did not reach"), "{text}");
            let alike = says(
                &text,
                "differ only in decisions that have no part in either",
            );
            assert_eq!(alike, command != "run", "{text}");
        }
    }
}

/// Whether the words are there, however lines are broken.
fn says(text: &str, part: &str) -> bool {
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").contains(part)
}

#[test]
fn a_sweep_tells_what_a_run_tells_with_the_points() {
    let over = [
        "--profile",
        "linux-6.5",
        "--over",
        "sched_latency_ns=6ms,7ms",
    ];
    let text = succeeds(words(&[&["sweep"], SMALL, &over, SHORT]));
    for part in [
        "note sched_latency_ns=6ms: sched_latency_ns is given before scaling: 6 ms is 24 ms on 8",
        "note sched_latency_ns=7ms: the same as the first point in every count of every run",
        " same ",
    ] {
        assert!(says(&text, part), "`{part}` is not in {text}");
    }
    let over = [
        "--over",
        "profile=linux-6.5,linux-6.18",
        "--over",
        "preempt=voluntary,lazy",
    ];
    let line = words(&[&["sweep"], SMALL, &over, SHORT]);
    let text = succeeds(line.clone());
    let note = "note profile=linux-6.5 preempt=lazy: preempt=lazy came with Linux 6.13, linux-6.5 \
                is run with it all the same";
    for part in [note, "profile swept", "8 CPUs, 1 socket, 1 LLC"] {
        assert!(says(&text, part), "`{part}` is not in {text}");
    }
    let result = json(&succeeds(words(&[&["sweep", "--json", "-"], &line[1..]])));
    assert_eq!(result["points"][0]["profile"], "linux-6.5");
    assert_eq!(result["points"][2]["profile"], "linux-6.18");
    assert_eq!(result["points"][2]["machine"], result["machine"]);
}

#[test]
fn numbers_of_cpus_are_told_with_their_machines() {
    let text = succeeds(words(&[&["sweep"], SMALL, &["--over", "cpus=2,4"], SHORT]));
    for part in [
        "machine swept",
        "2 CPUs, 1 socket, 1 LLC",
        "4 CPUs, 1 socket, 1 LLC",
    ] {
        assert!(says(&text, part), "`{part}` is not in {text}");
    }
    let line = [
        "run",
        "--machine",
        "spr-8480-2s",
        "--cpus",
        "128",
        "--seeds",
        "1",
    ];
    let line = words(&[&line, SHORT]);
    assert!(succeeds(line.clone()).contains("), 128 CPUs, 2 sockets, 2 LLCs, fairground"));
    let result = json(&succeeds(words(&[&["run", "--json", "-"], &line[1..]])));
    let topology = r#"{"cpus": 128, "cores": 64, "sockets": 2, "llcs": 2}"#;
    assert_eq!(result["machine"]["topology"], json(topology));
}

#[test]
fn groups_without_a_limit_have_no_quota_and_idle_ones_are_called_so() {
    let path = file("told-groups", "s.toml", GROUP);
    let text = succeeds(["run", &path, "--slow", "20ms"]);
    assert!(
        !text.contains("quota_moves") && !text.contains("slow_periods"),
        "{text}"
    );
    let idle = text.lines().find(|line| line.starts_with("/batch "));
    assert!(idle.is_some_and(|line| line.contains(" idle ")), "{text}");
    let note = "note --slow is about groups with a limit, and no group has one";
    assert!(says(&text, note), "{text}");
    let limit = ["--set", "/web/cpu.max=20ms/100ms"];
    let text = succeeds(words(&[&["run", &path, "--slow", "20ms"], &limit]));
    assert!(
        text.contains("quota_moves") && !text.contains("--slow is about"),
        "{text}"
    );
}

#[test]
fn a_machine_without_the_idle_state_is_not_run_and_conditions_say_so_once() {
    let line = [
        "compare",
        "--machine",
        "xeon-8cpu-2013,spr-8480-2s",
        "--cpus",
        "2,4",
        "--max-idle",
        "C7",
        "--set",
        "preempt=none",
        "--seeds",
        "2",
        "--fail-on",
        "hackbench.time_s>5000%",
    ];
    let both = [
        "--",
        "hackbench",
        "-g",
        "1",
        "-f",
        "2",
        "-l",
        "2",
        "--",
        "hogs",
        "-d",
        "2ms",
    ];
    let line = words(&[&line, &both]);
    let text = succeeds(line.clone());
    let lines = text.lines().filter(|line| line.starts_with("not run   "));
    assert_eq!(lines.count(), 2, "{text}");
    let errors = errors_of(line);
    let note = |cpus: u32| {
        let machine = "note: --fail-on does not know of spr-8480-2s";
        format!("{machine}, {cpus} CPUs, hackbench -g 1 -f 2 -l 2, which was not run: has no")
    };
    for cpus in [2, 4] {
        assert_eq!(errors.matches(&note(cpus)).count(), 1, "{errors}");
    }
    assert_eq!(errors.matches("does not know of").count(), 2, "{errors}");
    let lacks = "--fail-on 'hackbench.time_s>5000%' is not about workloads without this metric: \
                 hogs -d 2ms";
    assert_eq!(errors.matches(lacks).count(), 1, "{errors}");
}

#[test]
fn saved_results_take_no_option_that_says_what_to_simulate_and_name_their_seeds() {
    let dir = place("told-saved");
    let [one, two] = ["one.json", "two.json"].map(|n| dir.join(n).display().to_string());
    for (seed, path) in [("3", &one), ("5", &two)] {
        let line = [
            "run",
            "--machine",
            "xeon-8cpu-2013",
            "--seed",
            seed,
            "--json",
            path,
        ];
        succeeds(words(&[&line, SHORT]));
    }
    let message = ["--max-idle says what to simulate, but two files are saved results"];
    fails(["compare", &one, &two, "--max-idle", "C1"], &message);
    let text = succeeds(["compare", &one, &two]);
    assert!(
        text.contains("seeds     base: 3\n          patch: 5\n"),
        "{text}"
    );
    let same = succeeds(["compare", &one, &one]);
    assert!(
        same.contains("seeds     3\n") && same.contains("  same\n"),
        "{same}"
    );
}

#[test]
fn the_nearest_kernel_is_on_the_same_side_of_eevdf() {
    let line = |profile| words(&[&["run", "--profile", profile], SMALL, SHORT]);
    fails(
        line("linux-6.6"),
        &["unknown profile `linux-6.6`", "`linux-6.9`"],
    );
    fails(line("linux-5.4"), &["picks by CFS", "`linux-5.8`"]);
}

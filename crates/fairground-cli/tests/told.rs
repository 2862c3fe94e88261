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
        "base_slice_ns=700us,3ms",
    ];
    let text = succeeds(words(&[&["sweep"], SMALL, &over, SHORT]));
    for part in [
        "note base_slice_ns=700us: base_slice_ns is given before scaling: 0.7 ms is 2.8 ms on 8",
        "note base_slice_ns=3ms: the same as the first point in every count of every run",
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

//! Bad input: one message that names what is wrong and what would be right, exit code 2.

mod common;

use common::{SHORT, SMALL, fails, file, place, words};

#[test]
fn unknown_names_have_a_nearest_one() {
    let run = |more: &[&'static str]| words(&[&["run"], SMALL, more, SHORT]);
    fails(
        words(&[&["run", "--machine", "spr-8480-s2"], SHORT]),
        &[
            "unknown machine `spr-8480-s2`",
            "did you mean `spr-8480-2s`?",
        ],
    );
    fails(
        words(&[&["run"], SMALL, &["--", "hackbnech"]]),
        &["unknown workload 'hackbnech'", "did you mean 'hackbench'?"],
    );
    fails(
        run(&["--patch", "tg-load-avg-ratelimits"]),
        &["unknown patch", "did you mean `tg-load-avg-ratelimit`?"],
    );
    fails(
        run(&["--profile", "6.18"]),
        &["unknown profile `6.18`", "did you mean `linux-6.18`?"],
    );
    fails(
        run(&["--set", "ilb_kik=always"]),
        &["unknown decision `ilb_kik`", "did you mean `ilb_kick`?"],
    );
    fails(
        run(&["--set", "ilb_kick=alway"]),
        &["`ilb_kick` cannot be `alway`", "did you mean `always`?"],
    );
    fails(run(&["--set", "ilb_kick"]), &["expected DECISION=VALUE"]);
    fails(
        run(&["--set", "cpu.max=max"]),
        &["`cpu.max` is a setting of a cgroup", "docs/cpu-limits.md"],
    );
    fails(
        run(&["--patch", "zz"]),
        &["unknown patch `zz`", "known: tg-load-avg-ratelimit, "],
    );
}

#[test]
fn values_that_do_not_fit_are_told_what_does() {
    let run = |more: &[&'static str]| words(&[&["run"], SMALL, more, SHORT]);
    fails(
        run(&["--cpus", "9998"]),
        &["cannot be shrunk to 9998 CPUs", "at most 8"],
    );
    fails(
        run(&["--max-idle", "C9"]),
        &["has no idle state `C9`", "one of POLL, C1, C1E"],
    );
    fails(
        run(&["--settled", "10ms"]),
        &[
            "`hackbench` has no warm-up",
            "leave --settled out",
            "`schbench`",
        ],
    );
    fails(
        run(&["--set", "hz=0"]),
        &["`hz` cannot be `0`", "100, 250, 300, 1000"],
    );
    fails(
        run(&["--profile", "v6.12"]),
        &["unknown profile `v6.12`", "did you mean `linux-6.12-lts`?"],
    );
    fails(run(&["--slow", "20"]), &["'20' has no unit"]);
    fails(
        run(&["--set", "NO_RUN_TO_PARITY"]),
        &["that feature is run_to_parity=off here"],
    );
    fails(
        run(&["--set", "base_slice_ns=1us"]),
        &["a time with a unit (3ms)"],
    );
    fails(run(&["--machin", "x"]), &["--machin", "--machine"]);
    fails(["list", "machine"], &["machines"]);
}

#[test]
fn help_offers_what_works() {
    let run = |more: &[&'static str]| words(&[&["run"], SMALL, more, SHORT]);
    let hogs = ["--settled", "10ms", "--", "hogs"];
    fails(
        words(&[&["run"], SMALL, &hogs]),
        &["leaves no time to settle", "`-- hogs --warmup TIME ...`"],
    );
    fails(
        words(&[&["run"], SMALL, &hogs, &["--warmup", "5ms"]]),
        &["5 ms, leaves no time", "give a shorter --settled, or"],
    );
    let cpus = ["run", "--machine", "spr-8480-2s", "--cpus"];
    for wrong in ["3", "114"] {
        fails(
            words(&[&cpus, &[wrong], SHORT]),
            &["a multiple of 2, at most 112, or of 4 up to 224"],
        );
    }
    fails(
        run(&["--set", "hz=500"]),
        &["`hz` cannot be `500`", "did you mean `300`?"],
    );
}

#[test]
fn an_unknown_metric_is_refused_before_anything_runs() {
    let compare = |condition: &'static str| {
        let condition = ["--patch", "ilb-skip-redundant", "--fail-on", condition];
        // Minutes, if it ran.
        let long = ["--", "hackbench", "-g", "50", "-l", "100000"];
        words(&[&["compare"], SMALL, &condition, &long])
    };
    fails(
        compare("hackbench.time>5%"),
        &[
            "unknown metric `hackbench.time`",
            "did you mean `hackbench.time_s`?",
        ],
    );
    fails(compare("migrations=5"), &["is no condition", "METRIC>N%"]);
    fails(
        compare("migrations:worse"),
        &["neither better nor worse", "migrations>N%"],
    );
}

#[test]
fn what_is_missing_is_said() {
    fails(words(&[&["run"], SHORT]), &["no machine", "--machine"]);
    fails(
        words(&[&["run"], SMALL]),
        &["no workload", "list workloads"],
    );
    fails(
        words(&[&["compare"], SMALL, SHORT]),
        &["nothing to compare", "--patch"],
    );
    fails(
        words(&[&["run"], SMALL, &["hackbench"]]),
        &["a workload stands behind `--`"],
    );
    fails(
        words(&[&["run"], SMALL, &["hackbench", "-g", "1"]]),
        &["-g", "behind `--`"],
    );
    fails(
        words(&[&["run"], SMALL, &["--", "hackbench", "-z"]]),
        &["hackbench", "-z"],
    );
    fails(
        words(&[&["run"], SMALL, &["--cpus", "7"], SHORT]),
        &["7 CPUs"],
    );
    fails(
        words(&[&["run"], SMALL, &["--jobs", "0"], SHORT]),
        &["0", "--jobs"],
    );
    fails(words(&[&["run", "--seeds", "0"], SHORT]), &["--seeds"]);
}

#[test]
fn two_patches_of_one_decision_do_not_go_together() {
    let both = ["quota-no-expiry", "quota-drift-condition"].map(|name| ["--patch", name]);
    fails(
        words(&[&["compare"], SMALL, &both[0], &both[1], SHORT]),
        &["both set `quota_expiry`", "--set quota_expiry=VALUE"],
    );
}

/// A scenario with `extra` at the top and `task` in its task.
fn scenario(extra: &str, task: &str) -> String {
    format!("duration = \"1ms\"\n{extra}\n[[task]]\nname = \"t\"\n{task}\n")
}

#[test]
fn scenarios_are_refused_with_their_line() {
    const STEPS: &str = "steps = [{ run = \"10us\" }]";
    let group = |keys: &str| scenario(&format!("[[cgroup]]\npath = \"/a\"\n{keys}"), STEPS);
    let cycle =
        "[[cgroup]]\nname = \"a\"\nparent = \"b\"\n[[cgroup]]\nname = \"b\"\nparent = \"a\"";
    let served = "services = [\"web\"]";
    let twice = "steps = [{ begin = \"web\" }, { run = \"1us\" }, { end = \"web\" }]";
    let cases: [(&str, String, &[&str]); 13] = [
        (
            "request",
            scenario(served, twice),
            &["s.toml:", "'web' is a service"],
        ),
        (
            "key",
            scenario("durration = 1", STEPS),
            &[":2: ", "durration", "duration"],
        ),
        ("cycle", scenario(cycle, STEPS), &["cycle"]),
        ("weight0", group("\"cpu.weight\" = 0"), &[":4: ", "10000"]),
        (
            "weight10001",
            group("\"cpu.weight\" = 10001"),
            &[":4: ", "10000"],
        ),
        (
            "quota",
            group("\"cpu.max\" = \"999 100000\""),
            &[":4: ", "a quota of at least 1ms"],
        ),
        (
            "mask",
            scenario("", &format!("affinity = \"8-9\"\n{STEPS}")),
            &["no CPU", "0-7"],
        ),
        (
            "negative",
            scenario("", "steps = [{ run = \"-1us\" }]"),
            &["-1us"],
        ),
        (
            "infinite",
            scenario("", "steps = [{ run = \"inf\" }]"),
            &["inf"],
        ),
        (
            "machine",
            scenario("machine = \"xeon\"", STEPS),
            &[":2: ", "unknown machine `xeon`"],
        ),
        (
            "profile",
            scenario("profile = \"linux-7\"", STEPS),
            &[":2: ", "unknown profile"],
        ),
        ("empty", String::new(), &["empty"]),
        ("syntax", "[[task".into(), &[":1: "]),
    ];
    for (name, text, parts) in cases {
        let path = file(&format!("scenario-{name}"), "s.toml", text);
        let machine: &[&str] = if name == "machine" { &[] } else { &SMALL[..2] };
        fails(words(&[&["run", &path], machine]), parts);
    }
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    let text =
        "pipes = [\"p\"]\n[[task]]\nname = \"reader\"\nsteps = [{ read = \"p\", bytes = 1 }]\n";
    let path = file("deadlock", "s.toml", text);
    fails(
        words(&[&["run", &path], SMALL]),
        &["deadlock", "`reader`", "waits for data in channel `p`"],
    );
    // With an end by time it may be meant.
    let path = file(
        "no-deadlock",
        "s.toml",
        format!("duration = \"1ms\"\n{text}"),
    );
    let output = common::fairground(words(&[&["run", &path], SMALL]));
    assert_eq!(output.status.code(), Some(0));
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    let told = "note: at the end of seed 1 all tasks wait for each other:\n  task `reader`";
    assert!(errors.contains(told), "{errors}");
}

#[test]
fn huge_files_are_not_read_and_not_shown() {
    let path = file("huge-scenario", "s.toml", vec![b'a'; (8 << 20) + 1]);
    fails(words(&[&["run", &path], SMALL]), &["more than 8 MiB"]);
    let path = file("huge-machine", "m.toml", vec![b'a'; (1 << 20) + 1]);
    fails(
        words(&[&["run", "--machine", &path], SHORT]),
        &["more than the limit"],
    );
    // No end of it is known before it is read.
    #[cfg(unix)]
    fails(
        words(&[&["run", "--machine", "/dev/zero"], SHORT]),
        &["/dev/zero` has more than the limit of 1048576 bytes"],
    );
    // One long line is named, not printed.
    let path = file("long-line", "s.toml", vec![b'='; 100_000]);
    let output = common::fairground(words(&[&["run", &path], SMALL]));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.len() < 1000);
    let path = file("no-text", "s.toml", [0xff, 0xfe, 0]);
    fails(words(&[&["run", &path], SMALL]), &["cannot be read"]);
    fails(words(&[&["run", "no/such.toml"], SMALL]), &["no/such.toml"]);
}

#[test]
fn machine_files_are_refused_with_their_line() {
    let good = include_str!("../../../machines/spr-guest-2cpu.toml");
    let machine = |name: &str, text: String, parts: &[&str]| {
        let path = file(&format!("machine-{name}"), "m.toml", text);
        fails(words(&[&["run", "--machine", &path], SHORT]), parts);
    };
    machine("empty", String::new(), &["empty"]);
    let none = good.replace("cores_per_die = 2", "cores_per_die = 0");
    machine("no-cpus", none, &["m.toml:"]);
    let latency = good.lines().find(|l| l.starts_with("same_socket"));
    let without = good.replace(latency.expect("a transfer latency"), "");
    machine("no-latency", without, &["m.toml:", "same_socket"]);
    let unit = good.replacen("unit = \"ns\"", "unit = \"us\"", 1);
    machine("unit", unit, &["m.toml:", "is in `us`", "the unit `ns`"]);
    let typo = good.replace("\nipi_to_handler =", "\nipi_to_handlr =");
    machine(
        "typo",
        typo,
        &["m.toml:", "ipi_to_handlr", "`kernel_ops.ipi_to_handler`"],
    );
    let xml = file("xml", "m.xml", "<topology></topology>");
    fails(words(&[&["run", "--machine", &xml], SHORT]), &["m.xml"]);
    // A core whose threads are where those of other cores are.
    let lstopo = include_str!("../../fairground-sim/tests/data/lstopo-2x4x2.xml");
    let core = "<object type=\"Core\" os_index=\"5\"";
    let apart = lstopo.replacen(core, &core.replace("Core", "Unit"), 1);
    let xml = file("xml-apart", "m.xml", apart);
    let base = format!("{xml}@icx-8358-2s");
    fails(
        words(&[&["run", "--machine", &base], SHORT]),
        &["m.xml`: CPU 0 and CPU 5 are threads of one core, but on two nodes"],
    );
}

#[test]
fn saved_results_are_read_with_care() {
    let good = file("saved-good", "good.json", "{}");
    fails(
        ["compare", &good, "no-such.json"],
        &["good.json", "no result of fairground", "found none"],
    );
    let empty = file("saved-empty", "empty.json", "");
    fails(["compare", &empty, &empty], &["empty.json", "empty"]);
    let text = file("saved-text", "text.json", "hello");
    fails(["compare", &text, &text], &["not JSON"]);
    fails(
        ["compare", &text, &text, "--patch", "lazy-h-load"],
        &["--patch says what to simulate"],
    );
    fails(["compare", &text, &text, &text], &["unexpected"]);
}

#[test]
fn places_that_cannot_be_written_are_refused_first() {
    let dir = place("unwritable");
    let dir = dir.to_str().expect("UTF-8");
    // Minutes, if it ran.
    let long = ["--", "hackbench", "-g", "50", "-l", "100000"];
    let run = |json: &'static str, path: &str| {
        let words = words(&[&["run"], SMALL, &[json], &[path], &long]);
        fails(words, &["cannot write"]);
    };
    run("--json", dir);
    run("--csv", "no/such/directory/x.csv");
    fails(
        words(&[&["run"], SMALL, &["--json", "-", "--csv", "-"], &long]),
        &["standard output"],
    );
    // One file under two names, which does not exist yet.
    let named = [dir, "x.json"].join("/");
    let spelt = [dir, ".", "x.json"].join("/");
    for other in ["--csv", "--report"] {
        let both = ["--json", &named, other, &spelt];
        fails(words(&[&["run"], SMALL, &both, &long]), &["both name"]);
    }
}

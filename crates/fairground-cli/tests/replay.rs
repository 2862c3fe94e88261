//! `fairground replay` and the export of tracepoints.

mod common;
#[path = "../../fairground-report/tests/schema/mod.rs"]
mod schema;

use common::{fails, file, json, place, succeeds, words};

/// A recording of two threads on one of two CPUs, from a real kernel.
fn trace(name: &str) -> String {
    let data = "../fairground-trace/tests/data";
    format!("{}/{data}/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The verdict in the table of fidelity: what stands behind the limit and how far it is off.
fn verdict(text: &str, quantity: &str) -> String {
    let table = text
        .split("\nfidelity ")
        .nth(1)
        .expect("a table of verdicts");
    let row = table.lines().find(|line| line.starts_with(quantity));
    let row = row.unwrap_or_else(|| panic!("no {quantity}: {text}"));
    let words = ["not known", "missed", "met"].into_iter();
    let found = words.filter(|word| row.contains(&format!("  {word}")));
    found.collect::<Vec<_>>().join(" and ")
}

/// Attributes: the hog is in group `/a`.
const HOG_IN_A: &str = "[[cgroup]]\npath = \"/a\"\n[[thread]]\ncomm = \"hog\"\n\
                        cpus = [1]\ncgroup = \"/a\"\n";

#[test]
fn every_kind_of_trace_replays_and_says_how_faithful_it_is() {
    // A trace does not say that both threads were held on CPU 1.
    let held = "[[thread]]\ncomm = \"hog\"\ncpus = [1]\n\
                [[thread]]\ncomm = \"sleeper\"\ncpus = [1]\n";
    let held = file("replay_kinds", "attributes.toml", held);
    for name in [
        "sleeper.script.txt.xz",
        "sleeper.perf.data.xz",
        "sleeper.v6.dat.xz",
        "sleeper.v7-zstd.dat.xz",
    ] {
        let trace = trace(name);
        let text = succeeds(["replay", &trace, "--attributes", &held]);
        assert!(
            text.contains("replayed on spr-guest-2cpu (250 Hz)"),
            "{text}"
        );
        // Where more switches to idle are missing, nobody knows how long threads ran.
        let bounds = text.contains("CPU times are upper bounds");
        let cpu_time = if bounds { "not known" } else { "met" };
        for (quantity, wanted) in [("CPU time of each thread", cpu_time), ("switches", "met")] {
            assert_eq!(verdict(&text, quantity), wanted, "{text}");
        }
        assert!(!bounds || name != "sleeper.script.txt.xz", "{text}");
    }
}

#[test]
fn a_group_setting_changes_the_second_run_and_the_numbers_are_in_the_json() {
    let trace = trace("sleeper.script.txt.xz");
    let attributes = file("replay_group", "attributes.toml", HOG_IN_A);
    let known = ["replay", &trace, "--attributes", &attributes, "--json", "-"];
    let limit = ["--seed", "1", "--set", "/a/cpu.max=20000 100000"];
    let limited = json(&succeeds(words(&[&known, &limit])));
    let sides = &limited["what_if"]["sides"];
    let elapsed = &sides["elapsed_ms"];
    let (before, after) = (&elapsed["replayed"], &elapsed["what_if"]);
    // 1331 ms of computing at 20 % of a CPU.
    assert!(before.as_f64().unwrap() < 1700.0, "{before}");
    assert!(after.as_f64().unwrap() > 3000.0, "{after}");
    // The text says what the group's cpu.stat would.
    let text = succeeds(words(&[&known[..4], &limit]));
    let costs = limited["costs"].as_array().expect("costs");
    let side = |side: &str, seed: u64| {
        let found = costs
            .iter()
            .find(|c| c["side"] == side && c["seed"] == seed);
        found.expect("the costs of a replay")
    };
    let stat = &side("what if", 1)["groups"][0]["cpu.stat"];
    let (periods, throttled) = (&stat["nr_periods"], &stat["nr_throttled"]);
    let table = text.split("limited group").nth(1).expect("a table");
    let row = table.lines().find(|line| line.contains("20000 100000"));
    let row: Vec<&str> = row.expect("the group").split_whitespace().collect();
    let counts = [periods.to_string(), throttled.to_string()];
    assert!(counts.iter().all(|n| row.contains(&&**n)), "{row:?}");
    let wrong = ["--set", "/b/cpu.max=20000 100000"];
    fails(words(&[&known, &wrong]), &["no cgroup `/b`", "`/a`"]);
    let wrong = ["--set", "/a/cpu.max=fast"];
    fails(words(&[&known, &wrong]), &["`fast`", "QUOTA PERIOD"]);
    let wrong = ["--set", "/a/cpu.mux=1"];
    fails(
        words(&[&known, &wrong]),
        &["cpu.mux", "did you mean `cpu.max`"],
    );
}

/// With another replay and without, with values that may be absent and with those that must not.
#[test]
fn the_json_fits_its_schema() {
    let schema = json(include_str!("../../../schemas/replay.schema.json"));
    let fits = |value: &serde_json::Value| schema::fits(&schema, &schema, value);
    let trace = trace("sleeper.script.txt.xz");
    let attributes = file("replay_schema", "attributes.toml", HOG_IN_A);
    let known = ["replay", &trace, "--attributes", &attributes, "--json", "-"];
    let alone = json(&succeeds(known));
    assert!(alone["what_if"].is_null());
    fits(&alone).expect("fits the schema");
    let limit = ["--set", "/a/cpu.max=20000 100000"];
    let limited = json(&succeeds(words(&[&known, &limit])));
    fits(&limited).expect("fits the schema");
    assert_eq!(
        limited["costs"][5]["groups"].as_array().map(Vec::len),
        Some(1)
    );
    for (object, key) in [
        ("/fidelity", "faithful"),
        ("/fidelity/verdicts/0", "met"),
        ("/what_if", "comparison"),
        ("/what_if/comparison/0", "at_least"),
        ("/what_if/comparison/0", "ci95_pct"),
        ("/runs/0", "metrics"),
        ("", "what_if"),
        ("", "events"),
        ("/replay/threads/0/cpu_ms", "recorded"),
        ("/replay/threads/0", "first_half_ms"),
        ("/replay", "wakeup_latency_us"),
        ("/what_if/sides/elapsed_ms", "what_if"),
        ("/what_if/sides/wakeup_latency_us/p90", "replayed"),
        ("/costs/1", "idle_waste"),
    ] {
        let mut bad = limited.clone();
        let object = bad.pointer_mut(object).and_then(|o| o.as_object_mut());
        assert!(object.expect("an object").remove(key).is_some(), "{key}");
        assert!(fits(&bad).is_err(), "{key}");
    }
}

/// A line of `perf script`: a switch at `us` on `cpu`.
fn switch(us: u64, cpu: u32, from: (&str, u32, char), to: (&str, u32)) -> String {
    format!(
        "{} {} [{cpu:03}] 10.{us:06}: sched:sched_switch: prev_comm={} prev_pid={} prev_prio=120 \
         prev_state={} ==> next_comm={} next_pid={} next_prio=120\n",
        from.0, from.1, from.0, from.1, from.2, to.0, to.1
    )
}

#[test]
fn recordings_of_almost_nothing_are_replayed_or_refused_in_one_sentence() {
    let one = switch(1, 0, ("hog", 7, 'R'), ("other", 8));
    let one = file("replay_one", "one.txt", one);
    fails(["replay", &one], &["no thread does anything", "0 ns"]);
    let forks: String = (0..3)
        .map(|i| {
            format!(
                "bash 70 [000] 10.00000{i}: sched:sched_process_fork: comm=bash pid=70 \
                 child_comm=bash child_pid=8{i}\n"
            )
        })
        .collect();
    let forks = file("replay_forks", "forks.txt", forks);
    fails(["replay", &forks], &["no sched_switch"]);
    let far = |cpu| {
        let idle = ("swapper", 0);
        let mut text = switch(1, cpu, ("hog", 7, 'S'), idle);
        text += &format!(
            "swapper 0 [003] 10.001000: sched:sched_wakeup: comm=hog pid=7 prio=120 \
             target_cpu={cpu}\n"
        );
        text += &switch(1_005, cpu, ("swapper", 0, 'R'), ("hog", 7));
        text + &switch(3_005, cpu, ("hog", 7, 'S'), idle)
    };
    let here = file("replay_far", "far.txt", far(191));
    let text = succeeds(["replay", &here]);
    assert!(text.contains("192 CPUs"), "{text}");
    let nowhere = file("replay_too_far", "far.txt", far(511));
    fails(
        ["replay", &nowhere],
        &["far.txt: no built-in machine has CPU 511", "--recorded-on"],
    );
    fails(
        ["replay", &here, "--recorded-on", "xeon-8cpu-2013"],
        &["far.txt: the trace has events of CPU 191, xeon-8cpu-2013 has 8 CPUs"],
    );
    let two = trace("sleeper.v6.dat.xz");
    let output = common::fairground(["replay", &two, &two]);
    assert_eq!(output.status.code(), Some(2));
}

/// Three CPUs of an older kernel, in whole microseconds: text, JSON and page say it.
#[test]
fn what_is_to_be_known_of_a_trace_is_said_everywhere() {
    let mut text = String::from("# os release : 5.10.44\n# nrcpus online : 3\n");
    for turn in 0..20 {
        let (at, idle) = (10_000 * turn, ("swapper", 0));
        text += &switch(at, 0, ("hog", 7, 'S'), idle);
        text += &format!(
            "swapper 0 [000] 10.{:06}: sched:sched_wakeup: comm=hog pid=7 prio=120 \
             target_cpu=000\n",
            at + 4_000
        );
        text += &switch(at + 4_004, 0, ("swapper", 0, 'R'), ("hog", 7));
    }
    let dir = place("replay_known");
    let trace = file("replay_known", "trace.txt", text);
    let [page, saved, derived] = ["r.html", "r.json", "derived.toml"]
        .map(|name| dir.join(name).to_str().expect("UTF-8").to_string());
    let outputs = ["--report", &page, "--json", &saved, "--save", &derived];
    let text = succeeds(words(&[&["replay", &trace], &outputs]));
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    let (page, result) = (read(&page), json(&read(&saved)));
    let notes = result["notes"].as_array().expect("notes");
    for note in [
        "the trace has 3 CPUs, the replay 4",
        "recorded on 5.10.44: profile linux-5.8",
        "times are whole us: use --ns",
        "the tick does not show: 1000 Hz are assumed",
        "replayed: costs and idle times are of ",
    ] {
        let in_json = notes
            .iter()
            .any(|n| n.as_str().is_some_and(|n| n.contains(note)));
        assert!(in_json && page.contains(note), "{note}: {notes:?}");
        assert!(text.contains(note), "{note}: {text}");
    }
    assert_eq!(verdict(&text, "wake-up latency p50"), "not known", "{text}");
    assert!(text.contains("the recorded times are whole us"), "{text}");
    assert_eq!(result["profile"], "linux-5.8");
    let derived = read(&derived);
    assert!(derived.contains("profile = \"linux-5.8\""), "{derived}");
    assert!(derived.contains("warmup = \""), "{derived}");
    let given = succeeds(["replay", &trace, "--recorded-profile", "linux-6.9"]);
    assert!(given.contains("profile   linux-6.9\n") && !given.contains("recorded on 5"));
    // As the table names the thread.
    let asked = succeeds(["replay", &trace, "--explain", "hog (7)@5ms"]);
    assert!(
        asked.starts_with("hog 7\n") || asked.contains("\nhog 7\n"),
        "{asked}"
    );
    let unknown = switch(1, 0, ("hog", 7, 'S'), ("swapper", 0));
    let unknown = unknown + &switch(9_000, 0, ("swapper", 0, 'R'), ("hog", 7));
    let unknown = unknown + &switch(19_000, 0, ("hog", 7, 'S'), ("swapper", 0));
    let unknown = file("replay_known", "unknown.txt", unknown);
    let text = succeeds(["replay", &unknown]);
    assert!(
        text.contains("kernel not known, linux-6.18 assumed"),
        "{text}"
    );
}

#[test]
fn threads_that_were_bound_to_cpus_that_are_not_there_run_anywhere() {
    let trace = trace("sleeper.script.txt.xz");
    let text = succeeds(["replay", &trace, "--cpus", "1"]);
    assert!(text.contains("bound to CPUs that are not there"), "{text}");
    fails(
        ["replay", &trace, "--set", "cpu.mx=max"],
        &["file of a group", "/GROUP/cpu.max=max"],
    );
}

#[test]
fn the_derived_scenario_runs() {
    let trace = trace("sleeper.v6.dat.xz");
    let scenario = place("replay_save").join("derived.toml");
    let scenario = scenario.to_str().unwrap();
    succeeds(["replay", &trace, "--save", scenario]);
    let run = json(&succeeds(["run", scenario, "--json", "-", "--quiet"]));
    let metrics = &run["runs"][0]["metrics"];
    assert!(!run.to_string().contains("null,null"), "{metrics}");
}

#[test]
fn a_replay_says_what_it_was_and_how_to_get_it_again() {
    let trace = trace("sleeper.script.txt.xz");
    let dir = place("replay_about");
    let name = |name: &str| dir.join(name).to_str().expect("UTF-8").to_string();
    let (saved, page) = (name("r.json"), name("r.html"));
    let asked = ["replay", &trace, "--profile", "linux-6.5", "--patch"];
    let asked = words(&[
        &asked,
        &["cfs-rq-reorder", "--set", "base_slice_ns=3000000"],
    ]);
    let shown = ["--json", &saved, "--report", &page, "--threads", "1"];
    let text = succeeds(words(&[&asked, &shown]));
    for part in [
        concat!("fairground ", env!("CARGO_PKG_VERSION")),
        "machine   spr-guest-2cpu (",
        "profile   linux-6.18\n",
        "profile   linux-6.5\n",
        "patch     cfs-rq-reorder: ",
        "what if   base_slice_ns = 3000000 (replayed: 700000)",
        "seeds     1 2 3 4 5\n",
        "not modelled: frequency",
        "assumed, not measured",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let redo = format!("fairground {}", asked.join(" "));
    assert!(text.contains(&format!("redo      {redo}\n")), "{text}");
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    let result = json(&read(&saved));
    assert_eq!(result["machine"]["id"], "spr-guest-2cpu");
    let hash = result["machine"]["hash"].as_str().expect("a hash");
    assert!(text.contains(&hash[..12]), "{text}");
    assert_eq!(result["redo"]["command"], redo);
    assert_eq!(result["profile"], "linux-6.18");
    assert_eq!(
        (&result["seed"], &result["redo"]["seeds"][0]),
        (&1.into(), &1.into())
    );
    let other = &result["what_if"];
    assert_eq!(other["machine_hash"].as_str(), Some(hash));
    assert_eq!(other["profile"], "linux-6.5");
    assert_eq!(other["patches"][0], "cfs-rq-reorder");
    assert_eq!(other["decisions"]["base_slice_ns"], "3000000");
    let page = read(&page);
    assert!(page.contains(&hash[..12]) && page.contains("linux-6.5"));
}

#[test]
fn a_patch_that_the_recorded_kernel_has_is_said_to_change_nothing() {
    let trace = trace("sleeper.script.txt.xz");
    let text = succeeds(["replay", &trace, "--patch", "lazy-h-load"]);
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "linux-6.18 does what `lazy-h-load` does, so the patch changes nothing; \
                without it: --set h_load=eager";
    assert!(one_line.contains(told), "{text}");
    assert!(
        text.contains("both replays make the same decisions"),
        "{text}"
    );
    let other = succeeds(["replay", &trace, "--patch", "cfs-rq-reorder"]);
    assert!(!other.contains("changes nothing"), "{other}");
}

/// A thread that gets less CPU time has not computed more in the first half of the recording.
#[test]
fn first_halves_have_one_length() {
    let trace = trace("sleeper.script.txt.xz");
    let held = file("replay_halves", "attributes.toml", HOG_IN_A);
    let known = ["replay", &trace, "--attributes", &held, "--json", "-"];
    let limit = ["--set", "/a/cpu.max=20000 100000"];
    let result = json(&succeeds(words(&[&known, &limit])));
    let threads = result["what_if"]["sides"]["threads"].as_array();
    let mut threads = threads.expect("threads").iter();
    let hog = threads.find(|t| t["name"].as_str().is_some_and(|n| n.starts_with("hog")));
    let half = &hog.expect("the hog")["first_half_ms"];
    let (before, after) = (half["replayed"].as_f64(), half["what_if"].as_f64());
    // Half of 1603 ms, of which it had all but the sleeper's, and then a fifth.
    assert!(before.is_some_and(|ms| ms > 600.0), "{half}");
    assert!(after.is_some_and(|ms| ms < 0.25 * 802.0), "{half}");
}

#[test]
fn limits_in_attributes_are_refused_with_what_was_expected() {
    let trace = trace("sleeper.script.txt.xz");
    for (max, burst, told) in [
        (
            "5000 10",
            0,
            "cpu.max `5000 10`: expected a period from 1ms to 1s",
        ),
        (
            "5 10000",
            0,
            "cpu.max `5 10000`: expected a quota of at least 1ms",
        ),
        (
            "5000 10000",
            9000,
            "the kernel refuses a burst of 9000 us above the quota of 5000 us",
        ),
    ] {
        let text = format!(
            "[[cgroup]]\npath = \"/A\"\n\"cpu.max\" = \"{max}\"\n\"cpu.max.burst\" = {burst}\n"
        );
        let file = file("replay_limits", "attributes.toml", text);
        fails(
            ["replay", &trace, "--attributes", &file],
            &["cgroup `/A`", told],
        );
    }
}

#[test]
fn exported_text_replays() {
    let out = place("replay_export").join("run.txt");
    let out = out.to_str().unwrap();
    let machine = ["run", "--machine", "xeon-8cpu-2013", "--seed", "1"];
    let workload = [
        "--trace", out, "--", "sleepers", "--tasks", "4", "-d", "100ms",
    ];
    succeeds(words(&[&machine, &workload]));
    let again = [
        "replay",
        out,
        "--recorded-on",
        "xeon-8cpu-2013",
        "--tracer-ns",
        "0",
    ];
    let text = succeeds(again);
    assert_eq!(verdict(&text, "CPU time of each thread"), "met", "{text}");
    fails(
        words(&[&machine, &["--trace", "x.perf", "--", "hogs"]]),
        &["x.perf", ".pftrace"],
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    let empty = file("replay_empty", "empty", "");
    fails(["replay", &empty], &["it is empty", "perf.data"]);
    fails(["replay", "no-such-file"], &["no-such-file"]);
    let trace = trace("sleeper.v6.dat.xz");
    let wrong = file("replay_attributes", "a.toml", "[[thread]]\ncommm = \"x\"\n");
    fails(
        ["replay", &trace, "--attributes", &wrong],
        &["a.toml:2:", "comm"],
    );
    fails(
        ["replay", &trace, "--table", "x.md"],
        &["goes with --cases"],
    );
    fails(
        ["replay", "--cases", "x", "--cpus", "4"],
        &["goes with a TRACE"],
    );
    fails(["replay", &trace, "--settled", "1s"], &["not for replays"]);
    let one = ["--json", "x.json", "--report", "./x.json"];
    fails(words(&[&["replay", &trace], &one]), &["both name"]);
    let heavy = "[[cgroup]]\npath = \"/a\"\n\"cpu.weight\" = 0\n";
    let heavy = file("replay_weight", "a.toml", heavy);
    fails(
        ["replay", &trace, "--attributes", &heavy],
        &["a.toml", "cpu.weight 0"],
    );
    let beyond = file("replay_cpus", "a.toml", "[[thread]]\ncpus = [500]\n");
    fails(
        ["replay", &trace, "--attributes", &beyond],
        &["a.toml", "thread `*`: CPU 500, but the machine has"],
    );
    fails(
        ["replay", &trace, "--recorded-profile", "linux-9"],
        &["unknown profile `linux-9`"],
    );
}

#[test]
fn no_output_replaces_what_is_read() {
    let dir = place("replay_leaves");
    let copy = dir.join("in.txt");
    let one = switch(1, 0, ("hog", 7, 'R'), ("other", 8));
    std::fs::write(&copy, one).unwrap();
    let known = file("replay_leaves_known", "a.toml", "hz = 250\n");
    let copy = copy.to_str().unwrap();
    for (option, output) in [
        ("--export", copy),
        ("--export-recording", copy),
        ("--json", copy),
        ("--save", &known),
        ("--report", &known),
    ] {
        let all = ["replay", copy, "--attributes", &known, option, output];
        fails(all, &[option, "would replace", "which is read"]);
    }
}

#[test]
fn moments_after_the_replay_are_refused() {
    let out = place("replay_at").join("x.schedstat");
    let out = out.to_str().unwrap();
    let trace = trace("sleeper.v6.dat.xz");
    fails(
        ["replay", &trace, "--export", out, "--at", "100s"],
        &["--at 100000.000 ms", "the replay ends after"],
    );
}

#[test]
fn what_is_not_read_is_named() {
    let line = switch(1, 0, ("hog", 7, 'R'), ("other", 8));
    for (from, to, words) in [
        ("[000] ", "", &["without the CPU", "perf script -F"][..]),
        ("hog 7 [", "hog [", &["without the id of the thread"][..]),
        ("hog 7 [", "7 [", &["without the name of the thread"][..]),
        ("10.000001:", "10000001:", &["trace_clock"][..]),
    ] {
        let text = file("replay_columns", "x.txt", line.replacen(from, to, 1));
        fails(["replay", &text], words);
    }
    let dir = place("replay_directory");
    std::fs::write(dir.join("data.0"), "").expect("a file of a thread of perf");
    let dir = dir.to_str().unwrap();
    fails(
        ["replay", dir],
        &["a directory", "perf record --threads", "not supported"],
    );
}

#[test]
fn a_what_if_that_is_stopped_says_that_its_values_are_lower_bounds() {
    let trace = trace("sleeper.script.txt.xz");
    let attributes = file("replay_stopped", "attributes.toml", HOG_IN_A);
    let limit = "/a/cpu.max=5000 100000";
    let all = [
        "replay",
        &trace,
        "--attributes",
        &attributes,
        "--set",
        limit,
    ];
    let text = succeeds(all);
    let elapsed = text.lines().filter(|l| l.starts_with("elapsed, ms"));
    let bound: Vec<bool> = elapsed.map(|l| l.contains("> ")).collect();
    // The recording beside the replay, and that beside the what-if.
    assert_eq!(bound, [false, true], "{text}");
    assert!(
        text.contains("three times the recording") && text.contains("was recorded: hog ("),
        "{text}"
    );
    let stopped = json(&succeeds(words(&[&all, &["--json", "-"]])));
    assert!(stopped["stopped"].is_null());
    let stopped = &stopped["what_if"]["stopped"];
    assert!(stopped["at_ms"].as_f64().unwrap() > 3000.0, "{stopped}");
    let undone = stopped["threads"].as_array().unwrap().iter();
    let mut undone = undone.filter_map(|t| t.as_str());
    assert!(undone.any(|t| t.starts_with("hog (")), "{stopped}");
    // A CPU that the replay does not have is not idle there.
    let more = ["replay", &trace, "--machine", "spr-8480-2s", "--cpus", "4"];
    let text = succeeds(more);
    let row = text.lines().rfind(|l| l.starts_with("CPU 2 busy, %"));
    let row: Vec<&str> = row.expect("a row").split_whitespace().collect();
    assert_eq!((row[4], row[6]), ("-", "-"), "{row:?}");
}

/// Means, interval and verdict come from the seeds that the JSON lists, by the statistics of
/// `compare`, and are the same bytes for any number of threads.
#[test]
fn a_what_if_has_intervals_over_seeds() {
    let trace = trace("sleeper.script.txt.xz");
    let attributes = file("replay_seeds", "attributes.toml", HOG_IN_A);
    let asked = [
        "replay",
        &trace,
        "--attributes",
        &attributes,
        "--seeds",
        "3",
    ];
    let asked = words(&[&asked, &["--set", "/a/cpu.max=50000 100000"]]);
    let both = ["1", "2"].map(|jobs| {
        let shown = ["--jobs", jobs, "--json", "-"];
        succeeds(words(&[&asked, &shown]))
    });
    assert_eq!(both[0], both[1]);
    let result = json(&both[0]);
    assert_eq!(result["redo"]["seeds"], serde_json::json!([1, 2, 3]));
    let runs = |of: &serde_json::Value| -> Vec<f64> {
        let runs = of["runs"].as_array().expect("runs").iter();
        runs.map(|r| r["metrics"]["elapsed_ms"].as_f64().expect("a length"))
            .collect()
    };
    let (before, after) = (runs(&result), runs(&result["what_if"]));
    assert_eq!((before.len(), after.len()), (3, 3));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let rows = result["what_if"]["comparison"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["metric"] == "elapsed_ms");
    let row = row.expect("a row");
    let near = |value: &serde_json::Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!(
            (value - expected).abs() < 1e-9 * expected.abs(),
            "{value} {expected}"
        );
    };
    near(&row["base"], mean(&before));
    near(&row["patch"], mean(&after));
    near(&result["replay"]["elapsed_ms"]["replayed"], mean(&before));
    near(
        &result["what_if"]["sides"]["elapsed_ms"]["what_if"],
        mean(&after),
    );
    assert_eq!(row["verdict"], "worse");
    assert_eq!(row["method"], "paired-t");
    let text = succeeds(asked.clone());
    let what_if = text.split("what if, on ").nth(1).expect("a what-if");
    let line = what_if.lines().find(|line| line.starts_with("elapsed, ms"));
    let line = line.expect("a row");
    assert!(line.contains('[') && line.contains("worse"), "{line}");
    assert!(text.contains("with 3 seeds"), "{text}");
    // One seed has no interval, and it is said.
    let one = ["replay", &trace, "--seed", "1", "--patch", "cfs-rq-reorder"];
    let one = succeeds(one);
    assert!(one.contains("one run per variant has no spread"), "{one}");
}

/// The line stands before each what-if, and its words are those of the table.
#[test]
fn a_what_if_says_first_whether_the_replay_is_faithful() {
    let trace = trace("sleeper.script.txt.xz");
    // They were both on CPU 1; with a CPU each the hog is not switched.
    let on = |hog: u32| {
        let text = format!(
            "[[thread]]\ncomm = \"hog\"\ncpus = [{hog}]\n\
             [[thread]]\ncomm = \"sleeper\"\ncpus = [1]\n"
        );
        file(&format!("replay_faithful_{hog}"), "attributes.toml", text)
    };
    let other = ["--patch", "cfs-rq-reorder"];
    for (hog, is_faithful) in [(1, true), (0, false)] {
        let attributes = on(hog);
        let asked = &["replay", &trace, "--attributes", &attributes][..];
        let text = succeeds(words(&[asked, &other]));
        let (before, _) = text.split_once("\nwhat if, on ").expect("a what-if");
        let warned = before.contains("\nwarning   at home the replay misses ");
        let praised = before.contains("\nfaithful  at home the replay meets all ");
        assert_eq!((praised, warned), (is_faithful, !is_faithful), "{text}");
        let missed = verdict(before, "switches") == "missed";
        assert_eq!(missed, !is_faithful, "{text}");
        let result = json(&succeeds(words(&[asked, &other, &["--json", "-"]])));
        assert_eq!(result["fidelity"]["faithful"], praised);
        let verdicts = result["fidelity"]["verdicts"].as_array().expect("verdicts");
        assert_eq!(verdicts.len(), 7);
    }
}

/// `perf record -C 0,2` of four CPUs, whose header says so.
#[test]
fn cpus_without_events_are_named_and_can_be_left_out() {
    let mut text = String::from("# nrcpus online : 4\n");
    for turn in 0..20 {
        for cpu in [0, 2] {
            let (at, who) = (10_000 * turn + u64::from(cpu), 7 + cpu);
            text += &switch(at, cpu, ("hog", who, 'S'), ("swapper", 0));
            text += &format!(
                "swapper 0 [{cpu:03}] 10.{:06}: sched:sched_wakeup: comm=hog pid={who} prio=120 \
                 target_cpu={cpu:03}\n",
                at + 4_000
            );
            text += &switch(at + 4_004, cpu, ("swapper", 0, 'R'), ("hog", who));
        }
    }
    let trace = file("replay_silent", "trace.txt", text);
    let text = succeeds(["replay", &trace, "--seed", "1"]);
    let note = "CPUs 1,3 of 4 have no event, being idle throughout or not recorded";
    assert_eq!(text.matches(note).count(), 1, "{text}");
    assert!(text.contains(", 4 CPUs, "), "{text}");
    let result = succeeds(["replay", &trace, "--seed", "1", "--json", "-"]);
    assert!(result.contains(note), "{result}");
    // Three are enough for the events, two are not.
    fails(
        ["replay", &trace, "--recorded-on", "spr-guest-2cpu"],
        &["events of CPU 2", "has 2 CPUs", "--recorded-on"],
    );
}

/// Each kind of file that is no trace, or not whole, has one message that says what it is.
#[test]
fn files_that_are_no_trace_are_refused_by_what_they_are() {
    let counters = "version 17\ntimestamp 4295\ncpu0 0 0 0 0 0 0 12 34 5\n";
    let counters = file("replay_schedstat", "schedstat", counters);
    fails(
        ["replay", &counters],
        &["/proc/schedstat", "counters, no events", "perf record -a"],
    );
    let directory = place("replay_directory_of_others");
    let directory = directory.to_str().expect("UTF-8");
    fails(
        ["replay", directory],
        &["a directory is not supported", "expected a file"],
    );
    let whole = std::fs::read(trace("sleeper.perf.data.xz")).expect("a perf.data");
    let half = file(
        "replay_half",
        "half.perf.data.xz",
        &whole[..whole.len() / 2],
    );
    fails(
        ["replay", &half],
        &["damaged compressed file: what xz has packed ends early"],
    );
    fails(
        ["replay", &trace("refused/clock.perf.data.xz")],
        &[
            "a perf.data without formats of tracepoints",
            "perf sched record",
        ],
    );
    fails(
        ["replay", &trace("refused/syscalls.perf.data.xz")],
        &["no sched_switch in this perf.data", "sys_enter"],
    );
}

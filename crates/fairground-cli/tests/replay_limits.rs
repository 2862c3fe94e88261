//! `fairground replay` with limits: what is not judged, what is noted, and what is refused.

mod common;

use common::{fails, file, json, succeeds, words};

/// A recording of two threads on one of two CPUs, from a real kernel.
fn trace(name: &str) -> String {
    let data = "../fairground-trace/tests/data";
    format!("{}/{data}/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A recording of a thread that has half of a CPU by its limit, and of one that has the rest: both
/// compute when it ends.
fn halved(test: &str) -> String {
    let mut text = String::new();
    let mut switch = |ms: u64, (prev, pid): (&str, u32), (next, other): (&str, u32)| {
        text += &format!(
            "{prev} {pid} [000] 10.{ms:03}000000: sched:sched_switch: prev_comm={prev} \
             prev_pid={pid} prev_prio=120 prev_state=R ==> next_comm={next} next_pid={other} \
             next_prio=120\n"
        );
    };
    let (app, filler) = (("app", 7), ("filler", 8));
    for period in 0..4 {
        switch(100 * period, filler, app);
        switch(100 * period + 50, app, filler);
    }
    switch(400, filler, app);
    switch(450, app, filler);
    file(&format!("{test}_trace"), "halved.txt", text)
}

/// What is known of it.
fn halved_attributes(test: &str) -> String {
    let text = "hz = 250\n[[cgroup]]\npath = \"/a\"\n\"cpu.max\" = \"50000 100000\"\n\
                [[thread]]\ncomm = \"app\"\ncgroup = \"/a\"\ncpus = [0]\n\
                [[thread]]\ncomm = \"filler\"\npolicy = \"idle\"\ncpus = [0]\n";
    file(test, "attributes.toml", text)
}

/// Rows of the what-if in the JSON by their names.
fn row<'a>(result: &'a serde_json::Value, metric: &str) -> &'a serde_json::Value {
    let rows = result["what_if"]["comparison"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["metric"] == metric);
    row.unwrap_or_else(|| panic!("no {metric}"))
}

/// The line of a quantity in the what-if's table.
fn line<'a>(text: &'a str, label: &str) -> &'a str {
    let line = text.lines().rfind(|line| line.starts_with(label));
    line.unwrap_or_else(|| panic!("no {label}: {text}"))
}

#[test]
fn what_is_computed_beyond_the_recording_makes_no_verdict() {
    let (trace, attributes) = (halved("replay_beyond"), halved_attributes("replay_beyond"));
    let known = ["replay", &trace, "--attributes", &attributes];
    let raised = words(&[&known, &["--set", "/a/cpu.max=max"]]);
    let text = succeeds(raised.clone());
    let elapsed = line(&text, "elapsed, ms");
    assert!(elapsed.contains(" -  -"), "{elapsed}");
    assert!(
        text.contains("note      no verdict on elapsed, switches"),
        "{text}"
    );
    let result = json(&succeeds(words(&[&raised, &["--json", "-"]])));
    for metric in ["elapsed_ms", "busy_pct.cpu0", "involuntary_switches"] {
        let row = row(&result, metric);
        assert!(row["why_not"].as_str().unwrap().contains("beyond"), "{row}");
        assert_eq!(
            (&row["verdict"], &row["method"]),
            (&"noise".into(), &"none".into())
        );
    }
    assert!(row(&result, "cpu_ms")["why_not"].is_null());
    // Who has no quota left does not wait for that.
    let lowered = words(&[&known, &["--set", "/a/cpu.max=25ms/100ms", "--json", "-"]]);
    let result = json(&succeeds(lowered));
    let elapsed = row(&result, "elapsed_ms");
    assert!(elapsed["why_not"].is_null(), "{elapsed}");
}

#[test]
fn both_sides_tell_of_a_group_that_one_of_them_limits() {
    let (trace, attributes) = (halved("replay_sides"), halved_attributes("replay_sides"));
    let known = ["replay", &trace, "--attributes", &attributes];
    let text = succeeds(words(&[&known, &["--set", "/a/cpu.max=max"]]));
    let table = text.split("\nlimited group").nth(1).expect("a table");
    let side = table.lines().nth(2).expect("the what-if");
    let cells: Vec<&str> = side.split_whitespace().filter(|c| *c != "<").collect();
    assert_eq!(cells[..4], ["what", "if", "max", "100000"], "{side}");
    let waits = text.split("\nwaiting for quota").nth(1).expect("a table");
    let side: Vec<&str> = waits
        .lines()
        .nth(2)
        .expect("a side")
        .split_whitespace()
        .filter(|cell| *cell != "<")
        .collect();
    assert_eq!(side[..2], ["what", "if"]);
    assert_ne!(side[2], "-", "stretches: {side:?}");
    // The same from no limit to one.
    let free = file(
        "replay_free",
        "attributes.toml",
        "hz = 250\n[[cgroup]]\npath = \"/a\"\n\
        [[thread]]\ncomm = \"app\"\ncgroup = \"/a\"\ncpus = [0]\n",
    );
    let limited = [
        "replay",
        &trace,
        "--attributes",
        &free,
        "--set",
        "/a/cpu.max=50ms/100ms",
    ];
    let text = succeeds(limited);
    let table = text.split("\nlimited group").nth(1).expect("a table");
    let side = table.lines().nth(1).expect("the replay");
    assert!(side.contains("replayed    max 100000"), "{side}");
}

#[test]
fn work_that_a_higher_limit_pulls_ahead_of_the_recording_is_no_finding() {
    let attributes = halved_attributes("replay_early");
    // It sleeps in the end: it had as much to do as it did.
    let text = std::fs::read_to_string(halved("replay_early_whole")).expect("a recording");
    let (before, last) = text.trim_end().rsplit_once('\n').expect("lines");
    let last = last.replace("prev_state=R", "prev_state=S");
    let whole = format!("{before}\n{last}\n");
    let trace = file("replay_early_trace", "whole.txt", whole);
    let known = ["replay", &trace, "--attributes", &attributes];
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let raised = words(&[&known, &["--set", "/a/cpu.max=80ms/100ms"]]);
    let text = succeeds(raised.clone());
    assert!(!text.contains("may be believed"), "{text}");
    assert!(text.contains("\nwarning   at home"), "{text}");
    let note = "that /a computes are done earlier than in the recording, by up to";
    assert!(one_line(&text).contains(note), "{text}");
    let result = json(&succeeds(words(&[&raised, &["--json", "-"]])));
    let early = &result["what_if"]["early"][0];
    assert_eq!(early["group"], "/a");
    let (early_ms, computed_ms) = (early["early_ms"].as_f64(), early["computed_ms"].as_f64());
    assert!(early_ms > Some(50.0) && early_ms < computed_ms, "{early}");
    assert!(early["most_ms"].as_f64() >= Some(30.0), "{early}");
    assert!(result["notes"].to_string().contains(note), "{result}");
    for metric in ["elapsed_ms", "thread.app (7).first_half_ms"] {
        assert!(!row(&result, metric)["why_not"].is_null(), "{metric}");
    }
    // With less it is late, which is what a limit does.
    let lowered = words(&[&known, &["--set", "/a/cpu.max=40ms/100ms"]]);
    let text = succeeds(lowered.clone());
    assert!(
        !text.contains("what if <") && !text.contains(note),
        "{text}"
    );
    let result = json(&succeeds(words(&[&lowered, &["--json", "-"]])));
    assert_eq!(result["what_if"]["early"], serde_json::json!([]));
    // A scenario that is made of it would do the same.
    let saved = common::place("replay_early_saved").join("saved.toml");
    let saved = saved.to_str().expect("a path");
    succeeds(words(&[&known, &["--save", saved]]));
    let head = std::fs::read_to_string(saved).expect("a scenario");
    let head: String = head
        .lines()
        .take_while(|line| line.starts_with('#'))
        .collect();
    assert!(
        head.contains("that /a computes were done after waits"),
        "{head}"
    );
}

#[test]
fn what_a_stopped_replay_has_done_by_then_is_not_judged() {
    let trace = trace("sleeper.perf.data.xz");
    let known = "[[cgroup]]\npath = \"/a\"\n\"cpu.max\" = \"100000 100000\"\n\
                 [[thread]]\ncomm = \"sleeper\"\ncgroup = \"/a\"\n";
    let attributes = file("replay_cut_off", "attributes.toml", known);
    let limit = "/a/cpu.max=10ms/100ms";
    let page = common::place("replay_cut_off_page").join("page.html");
    let page = page.to_str().expect("a path");
    let all = [
        "replay",
        &trace,
        "--attributes",
        &attributes,
        "--set",
        limit,
    ];
    let text = succeeds(words(&[&all, &["--report", page]]));
    for label in ["wake-up latency p99, us", "switches from sleepers"] {
        let line = line(&text, label);
        assert!(line.trim_end().ends_with("-  -"), "{line}");
    }
    assert!(
        line(&text, "switches from sleepers").contains("> "),
        "{text}"
    );
    let result = json(&succeeds(words(&[&all, &["--json", "-"]])));
    let latency = row(&result, "wakeup_latency_us.p99");
    assert_eq!(latency["why_not"], "a replay was stopped");
    assert!(latency["change_pct"].is_null() && latency["ci95_pct"][0].is_null());
    assert_eq!(latency["verdict"], "noise");
    let switches = row(&result, "voluntary_switches");
    assert_eq!(switches["at_least"], serde_json::json!([false, true]));
    // Who was done by then is.
    let done = row(&result, "thread.ktmain.cpu_ms");
    assert!(
        done["why_not"].is_null() && !done["ci95_pct"][0].is_null(),
        "{done}"
    );
    let page = std::fs::read_to_string(page).expect("a page");
    let row = page.split("id=\"what-if-table\"").nth(1).expect("a table");
    let row = row.split("wake-up latency p99").nth(1).expect("a row");
    let row = row.split("</tr>").next().expect("its end");
    assert!(!row.contains("better") && !row.contains('%'), "{row}");
}

#[test]
fn replays_have_the_notes_of_runs_on_throttling_and_few_wake_ups() {
    let trace = trace("sleeper.perf.data.xz");
    let known = "[[cgroup]]\npath = \"/a\"\n\"cpu.max\" = \"100000 100000\"\n\
                 [[thread]]\ncomm = \"sleeper\"\ncgroup = \"/a\"\n";
    let attributes = file("replay_notes", "attributes.toml", known);
    let known = ["replay", &trace, "--attributes", &attributes];
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = one_line(succeeds(known));
    for told in [
        "note runs have as few as 5 periods of /a: what is said of throttling is chance below 20",
        "`wakeup_latency_us.p99` is the largest value of a run, not a percentile",
        "note wake-up latency does not contain waiting for quota, for a woken thread gets",
        "longest ",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert_eq!(
        text.matches("contain waiting for quota").count(),
        1,
        "{text}"
    );
    let other = [
        "--set",
        "/a/cpu.max=50ms/100ms",
        "--set",
        "throttle=whole-queue",
    ];
    let text = one_line(succeeds(words(&[&known, &other])));
    assert!(text.contains("periods of /a"), "{text}");
    assert!(
        text.contains("of the replay and the what-if is the largest"),
        "{text}"
    );
    assert!(
        text.contains("the sides cannot be compared in it"),
        "{text}"
    );
    let result = json(&succeeds(words(&[&known, &["--json", "-"]])));
    let notes = result["notes"].as_array().expect("notes");
    let has = |told: &str| {
        notes
            .iter()
            .any(|n| n.as_str().is_some_and(|n| n.contains(told)))
    };
    assert!(
        has("periods of /a") && has("is the largest value"),
        "{notes:?}"
    );
}

#[test]
fn the_longest_wait_for_quota_can_be_explained() {
    let (trace, attributes) = (
        halved("replay_longest"),
        halved_attributes("replay_longest"),
    );
    let known = ["replay", &trace, "--attributes", &attributes];
    let text = succeeds(known);
    let table = text.split("\nwaiting for quota").nth(1).expect("a table");
    let longest = table.lines().find(|line| line.starts_with("longest"));
    assert!(
        longest.is_some_and(|l| l.ends_with(" ms for quota, app-7 of /a")),
        "{text}"
    );
    let why = table
        .split("why: ")
        .nth(1)
        .and_then(|why| why.lines().next());
    let why: Vec<&str> = why.expect("a way to look at it").split(' ').collect();
    let told = succeeds(words(&[&known, &why]));
    assert!(told.contains("quota"), "{told}");
}

#[test]
fn attributes_without_effect_are_named() {
    let trace = trace("sleeper.script.txt.xz");
    let known = "[[thread]]\ncomm = \"web[0-9]\"\n[[thread]]\ncomm = \"slee*\"\npolicy = \"fifo\"\n\
                 [[thread]]\ntids = [1]\n[[thread]]\ncomm = \"db\"\n";
    let attributes = file("replay_nobody", "attributes.toml", known);
    let text = succeeds(["replay", &trace, "--attributes", &attributes]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let nobody = "note no thread of the recording fits thread `web[0-9]`, thread `db` of the \
                  attributes, which says nothing then: only `*` (any text) and `?`";
    assert!(text.contains(nobody), "{text}");
    let fair = "note `policy` of thread `slee*` has no effect on a thread that was recorded with";
    assert!(text.contains(fair), "{text}");
}

#[test]
fn mistakes_in_attributes_have_file_line_and_excerpt() {
    let trace = trace("sleeper.script.txt.xz");
    for (words, told) in [
        ("\"cpu.max\" = \"20 ms\"", "cpu.max `20 ms`: expected"),
        ("\"cpu.weight\" = 0", "cpu.weight 0: expected 1 to 10000"),
        (
            "\n[[cgroup]]\npath = \"/b/c\"",
            "no cgroup `/b`; there are /, /a",
        ),
        (
            "[[thread]]\ncgroup = \"/b\"",
            "no cgroup `/b`; there are /, /a",
        ),
    ] {
        let text = format!("[[cgroup]]\npath = \"/a\"\n{words}\n");
        let attributes = file("replay_mistakes", "attributes.toml", &text);
        let last = words.lines().last().expect("a line");
        let place = format!("attributes.toml:{}:", text.lines().count());
        let all = ["replay", &trace, "--attributes", &attributes];
        fails(all, &[told, &place, last]);
    }
}

/// Two shares are less than the least `cpu.weight`.
#[test]
fn weights_that_no_cpu_weight_stands_for_are_shown_as_shares() {
    let trace = halved("replay_shares");
    let with = |weight: &str| {
        let text = format!(
            "hz = 250\n[[cgroup]]\npath = \"/a\"\n{weight}\n\
             [[thread]]\ncomm = \"app\"\ncgroup = \"/a\"\ncpus = [0]\n"
        );
        file("replay_shares", "attributes.toml", text)
    };
    let shares = with("\"cpu.shares\" = 2");
    let known = ["replay", &trace, "--attributes", &shares, "--seed", "1"];
    let text = succeeds(known);
    assert!(text.contains("2 shares"), "{text}");
    let result = json(&succeeds(words(&[&known, &["--json", "-"]])));
    let group = &result["costs"][0]["groups"][0];
    assert_eq!(
        (&group["cpu.weight"], &group["cpu.shares"]),
        (&1.into(), &2.into())
    );
    // What is written is not that of the nice value of an autogroup any more.
    let nice = with("nice = 19");
    let set = ["--set", "/a/cpu.weight=400", "--seed", "1"];
    let text = succeeds(words(&[&["replay", &trace, "--attributes", &nice], &set]));
    assert!(
        text.contains("15 shares") && text.contains(" 400 "),
        "{text}"
    );
    assert!(text.contains("that of nice 19"), "{text}");
}

//! `fairground sweep`: the product of settings, held against the first point; which meets a target.

mod common;
#[path = "../../fairground-report/tests/schema/mod.rs"]
mod schema;

use common::{SMALL, fails, fairground, file, json, place, succeeds, words};
use serde_json::Value;

/// One task that computes 30 ms of every 100 ms, late if its group has less.
const SCENARIO: &str = r#"
machine = "spr-guest-2cpu"
duration = "1s"
warmup = "200ms"
seeds = 2
[[cgroup]]
path = "/web"
"cpu.max" = "100000 100000"
[[cgroup]]
path = "/other"
[[task]]
name = "server"
cgroup = "/web"
steps = [{ loop = "forever", steps = [
    { begin = "turn", from = "due" }, { run = "30ms" }, { end = "turn" }, { period = "100ms" },
] }]
"#;

const LIMITS: &[&str] = &["--over", "cpu.max=10ms/100ms,20ms/100ms,40ms/100ms"];

fn metric<'a>(point: &'a Value, name: &str) -> &'a Value {
    &point["summary"][name]["mean"]
}

/// Of how many points and metrics together something is known.
fn dots(points: &[Value], metrics: &[Value]) -> usize {
    let known = |point: &Value, metric: &Value| {
        let name = metric.as_str().expect("a name");
        let mut runs = point["variant"]["runs"].as_array().expect("runs").iter();
        runs.any(|run| run["metrics"][name].is_number())
    };
    let of = |metric: &Value| points.iter().filter(|p| known(p, metric)).count();
    metrics.iter().map(of).sum()
}

/// The metrics of each run, but for what is slow: in a sweep that is told by what is usual at the
/// point that waited least.
fn runs_of(variant: &Value) -> Vec<Value> {
    let runs = variant["runs"].as_array().expect("runs").iter();
    let metrics = runs.map(|run| {
        let mut metrics = run["metrics"].clone();
        let all = metrics.as_object_mut().expect("metrics");
        all.retain(|name, _| !name.contains("slow_periods_pct"));
        metrics
    });
    metrics.collect()
}

#[test]
fn a_sweep_is_the_same_as_its_points_and_has_all_forms() {
    let path = file("sweep-forms", "s.toml", SCENARIO);
    let dir = place("sweep-out");
    let [csv, page] = ["out.csv", "out.html"].map(|n| dir.join(n).display().to_string());
    let outputs = ["--json", "-", "--csv", &csv, "--report", &page];
    let burst = [
        "--over",
        "cpu.max.burst=0,5ms",
        "--target",
        "turn.latency_us.p99<60ms",
    ];
    let line = words(&[&["sweep", &path], LIMITS, &burst]);
    let text = succeeds(words(&[&line, &outputs]));
    assert_eq!(
        text,
        succeeds(words(&[&line, &["--json", "-", "--jobs", "1"]])),
        "any threads"
    );
    let result = json(&text);
    let schema = json(include_str!("../../../schemas/sweep.schema.json"));
    schema::fits(&schema, &schema, &result).expect("fits the schema");
    assert_eq!(result["over"][0]["name"], "/web/cpu.max");
    assert_eq!(result["over"][0]["sizes"], json("[0.1, 0.2, 0.4]"));
    let points = result["points"].as_array().expect("points");
    assert_eq!(points.len(), 6);
    assert_eq!(points[3]["values"], json(r#"["20ms/100ms", "5ms"]"#));
    assert_eq!(
        points[3]["variant"]["settings"]["/web/cpu.max.burst"],
        "5000"
    );
    // A third of what is needed is throttled in each period, more than that in none.
    assert_eq!(metric(&points[0], "throttled_pct"), 100.0);
    assert_eq!(metric(&points[4], "throttled_pct"), 0.0);
    assert_eq!(points[0]["comparison"][0]["verdict"], "noise");
    let row = points[4]["comparison"].as_array().expect("rows").iter();
    let row = row.into_iter().find(|row| row["metric"] == "throttled_pct");
    assert_eq!(row.expect("a row")["verdict"], "better");
    assert_eq!(
        result["answer"]["by_interval"]["values"],
        json(r#"["40ms/100ms", "0"]"#)
    );
    // The same runs one by one.
    let set = [
        "--set",
        "/web/cpu.max=20ms/100ms",
        "--set",
        "/web/cpu.max.burst=5ms",
    ];
    let alone = json(&succeeds(words(&[&["run", &path, "--json", "-"], &set])));
    assert_eq!(
        runs_of(&points[3]["variant"]),
        runs_of(&alone["variants"][0])
    );
    let csv = std::fs::read_to_string(csv).expect("CSV");
    assert_eq!(csv.lines().count(), 1 + 6 * 2);
    assert!(
        csv.starts_with("/web/cpu.max,/web/cpu.max.burst,seed,"),
        "{csv}"
    );
    let page = std::fs::read_to_string(page).expect("a page");
    let plots = page.matches("<svg class=\"chart\"").count();
    let metrics = result["metrics"].as_array().expect("metrics");
    assert_eq!(plots, metrics.len());
    // Two lines of three points in each, without those of which nothing is known.
    assert_eq!(page.matches("<circle").count(), dots(points, metrics));
}

#[test]
fn without_a_table_standard_error_says_what_the_kernel_refuses() {
    let path = file("sweep-quiet", "s.toml", SCENARIO);
    let burst = ["--over", "cpu.max.burst=0,20ms", "--csv", "-", "--quiet"];
    let output = fairground(words(&[&["sweep", &path], LIMITS, &burst]));
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    let note = "note: not run: /web/cpu.max=10ms/100ms /web/cpu.max.burst=20ms: the kernel refuses";
    assert!(told.starts_with(note), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn the_text_has_a_row_for_each_point_and_says_what_the_kernel_refuses() {
    let path = file("sweep-text", "s.toml", SCENARIO);
    let burst = [
        "--over",
        "cpu.max.burst=0,20ms",
        "--target",
        "turn.latency_us.p99<60ms",
    ];
    let text = succeeds(words(&[&["sweep", &path], LIMITS, &burst]));
    assert!(
        text.contains("over      /web/cpu.max = 10ms/100ms, 20ms/100ms, 40ms/100ms"),
        "{text}"
    );
    assert!(
        text.contains("refused   the kernel refuses a burst of 20000 us"),
        "{text}"
    );
    let row = |start: &str| {
        text.lines()
            .find(|line| line.starts_with(start))
            .expect("a row")
    };
    assert!(row("10ms/100ms  0").contains(" base") && row("10ms/100ms  0").ends_with(" no"));
    assert!(row("10ms/100ms  20ms").contains("refused"));
    assert!(row("40ms/100ms  0").contains(" better") && row("40ms/100ms  0").ends_with(" met"));
    assert!(
        text.contains("the smallest that meets it: /web/cpu.max=40ms/100ms"),
        "{text}"
    );
    let nowhere = [
        "--target",
        "turn.latency_us.p99<1ms",
        "--metric",
        "turn.latency_us.p99",
    ];
    let text = succeeds(words(&[&["sweep", &path], LIMITS, &nowhere]));
    assert!(
        text.contains("no point meets it; the nearest: /web/cpu.max=40ms/100ms"),
        "{text}"
    );
    // More runs of ten requests each have no 99th percentile either.
    let few = ["--target", "turn.latency_us.p99<60ms"];
    let text = succeeds(words(&[&["sweep", &path], LIMITS, &few]));
    assert!(
        text.contains("each run has too few requests for that percentile"),
        "{text}"
    );
    // One seed has no interval.
    let one = ["--target", "turn.latency_us.p50<60ms", "--seed", "1"];
    let text = succeeds(words(&[&["sweep", &path], LIMITS, &one]));
    let one = "met by the mean only, for one run has no interval";
    assert!(text.contains(one), "{text}");
    assert!(
        text.contains("1 run shows few of the rare events"),
        "{text}"
    );
}

#[test]
fn decisions_machines_and_workloads_are_swept_too() {
    let hackbench = ["--", "hackbench", "-g", "1", "-f", "2", "-l", "5"];
    let over = [
        "--over",
        "base_slice_ns=1000000,3000000",
        "--over",
        "cpus=4,8",
    ];
    let line = words(&[&["sweep", "--json", "-"], SMALL, &over, &hackbench]);
    let result = json(&succeeds(line));
    let points = result["points"].as_array().expect("points");
    let decision = |i: usize| points[i]["variant"]["decisions"]["base_slice_ns"].clone();
    assert_eq!(
        (decision(0), decision(3)),
        ("1000000".into(), "3000000".into())
    );
    assert_eq!(result["over"][1]["sizes"], json("[4.0, 8.0]"));
    assert_eq!(result["metrics"][0], "hackbench.messages_per_s");
    let profiles = ["--over", "profile=linux-6.18,linux-6.12-lts"];
    let line = words(&[&["sweep", "--json", "-"], SMALL, &profiles, &hackbench]);
    let result = json(&succeeds(line));
    let throttle = |i: usize| result["points"][i]["variant"]["decisions"]["throttle"].clone();
    assert_ne!(throttle(0), throttle(1));
    // The only group there is; and sets of CPUs, which have commas.
    let limits = [
        "--over",
        "cpu.max=10ms/100ms,max",
        "--over",
        "cpuset.cpus=0,2;0-3",
    ];
    let hogs = ["--", "hogs", "--tasks", "2", "--duration", "200ms"];
    let result = json(&succeeds(words(&[
        &["sweep", "--json", "-"],
        SMALL,
        &limits,
        &hogs,
    ])));
    assert_eq!(result["over"][0]["name"], "/autogroup-1/cpu.max");
    assert_eq!(result["over"][0]["sizes"], json("[0.1, null]"));
    assert_eq!(result["over"][1]["values"], json(r#"["0,2", "0-3"]"#));
}

#[test]
fn every_machine_has_its_hash_and_the_head_that_of_the_file() {
    let hackbench = ["--", "hackbench", "-g", "1", "-f", "2", "-l", "5"];
    let small = "xeon-8cpu-2013";
    let hash_of = |machine: &str, more: &[&str]| {
        let run = ["run", "--json", "-", "--seed", "1", "--machine", machine];
        json(&succeeds(words(&[&run, more, &hackbench])))["machine"]["hash"].clone()
    };
    let whole = hash_of(small, &[]);
    let sweep = ["sweep", "--seed", "1", "--json", "-"];
    let cpus = ["--machine", small, "--over", "cpus=2,8"];
    let result = json(&succeeds(words(&[&sweep, &cpus, &hackbench])));
    assert_eq!(
        (&result["machine"]["hash"], &result["machines"]),
        (&whole, &Value::Null)
    );
    let of_point = |result: &Value, i: usize| result["points"][i]["machine"]["hash"].clone();
    assert_eq!(of_point(&result, 0), hash_of(small, &["--cpus", "2"]));
    assert_eq!(of_point(&result, 1), whole);
    let other = hash_of("spr-guest-2cpu", &[]);
    let machines = ["--over", "machine=xeon-8cpu-2013,spr-guest-2cpu"];
    let result = json(&succeeds(words(&[&sweep, &machines, &hackbench])));
    let schema = json(include_str!("../../../schemas/sweep.schema.json"));
    schema::fits(&schema, &schema, &result).expect("fits the schema");
    assert_eq!(result["machines"][0]["hash"], whole);
    assert_eq!(
        (&result["machines"][1]["hash"], of_point(&result, 1)),
        (&other, other.clone())
    );
    let text = succeeds(words(&[&sweep[..3], &machines, &hackbench]));
    for hash in [whole, other] {
        let short = &hash.as_str().expect("a hash")[..12];
        assert!(text.contains(&format!("({short})")), "{text}");
    }
}

/// A task that sleeps for milliseconds is woken later the deeper its CPU may sleep.
#[test]
fn idle_states_are_swept() {
    let sleepers = ["--", "sleepers", "--tasks", "2", "--period", "5ms"];
    let metric = "sleepers.turn_us.p50";
    let sweep = ["sweep", "--machine", "xeon-8cpu-2013", "--seed", "1"];
    let asked = ["--over", "max-idle=POLL,C1,C7", "--metric", metric];
    let result = json(&succeeds(words(&[
        &sweep,
        &asked,
        &["--json", "-"],
        &sleepers,
    ])));
    let mut before = None;
    for (i, state) in ["POLL", "C1", "C7"].into_iter().enumerate() {
        let point = &result["points"][i];
        let run = ["run", "--json", "-", "--seed", "1", "--machine"];
        let more = ["xeon-8cpu-2013", "--max-idle", state];
        let alone = json(&succeeds(words(&[&run, &more, &sleepers])));
        assert_eq!(point["machine"]["hash"], alone["machine"]["hash"]);
        assert_eq!(alone["redo"]["conditions"]["max_idle"], state);
        let latency = alone["variants"][0]["runs"][0]["metrics"][metric].as_f64();
        assert!(latency > before, "{state}: {latency:?} after {before:?}");
        before = latency;
    }
}

#[test]
fn the_knee_of_a_latency_is_marked_in_all_forms() {
    let path = file("sweep-knee", "s.toml", SCENARIO);
    let dir = place("sweep-knee-out");
    let [csv, page, saved] =
        ["o.csv", "o.html", "o.json"].map(|n| dir.join(n).display().to_string());
    let outputs = ["--json", &saved, "--csv", &csv, "--report", &page];
    // It needs 30 ms: the last three limits are as good as none.
    let limits = "cpu.max=10ms/100ms,35ms/100ms,50ms/100ms,70ms/100ms,90ms/100ms";
    let line = [
        "sweep",
        &path,
        "--over",
        limits,
        "--metric",
        "throttled_pct",
    ];
    let text = succeeds(words(&[&line, &outputs]));
    let knee = "knee      throttled_pct at /web/cpu.max=35ms/100ms, 0.69 below the straight line";
    assert!(text.contains(knee), "{text}");
    assert!(text.contains(", knee\n"), "{text}");
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    let knees = &json(&read(&saved))["knees"];
    assert_eq!(
        (&knees[0]["metric"], &knees[0]["point"]),
        (&"throttled_pct".into(), &1.into())
    );
    let csv = read(&csv);
    let marked = csv.lines().filter(|line| line.ends_with(",throttled_pct"));
    assert!(
        marked.count() > 0 && csv.lines().next().is_some_and(|l| l.ends_with(",knee")),
        "{csv}"
    );
    assert!(read(&page).contains(">knee</text>"));
}

#[test]
fn wrong_sweeps_are_refused_before_anything_runs() {
    let path = file("sweep-wrong", "s.toml", SCENARIO);
    let sweep = |words: &[&str], parts: &[&str]| fails([&["sweep", &path], words].concat(), parts);
    sweep(&[], &["--over"]);
    sweep(&["--over", "cpu.max"], &["NAME=V1,V2"]);
    sweep(&["--over", "cpu.max=10ms/100ms,"], &["NAME=V1,V2"]);
    sweep(
        &["--over", "cpu.max=10ms/100ms,10ms/100ms"],
        &["is there twice"],
    );
    sweep(
        &["--over", "cpu.mx=max"],
        &["`cpu.mx`", "did you mean `cpu.max`?"],
    );
    sweep(&["--over", "cpu.max=fast"], &["`fast`", "QUOTA PERIOD"]);
    sweep(
        &["--over", "/wbe/cpu.max=max"],
        &["no cgroup `/wbe`", "did you mean `/web`?"],
    );
    sweep(
        &["--over", "base_slice=1"],
        &["unknown decision", "`base_slice_ns`"],
    );
    sweep(&["--over", "hz=250,0"], &["`hz` cannot be `0`"]);
    sweep(&["--over", "cpus=0"], &["`cpus` cannot be `0`"]);
    sweep(&["--over", "cpus=999"], &["999 CPUs"]);
    sweep(
        &["--over", "machine=spr-8480-s2"],
        &["did you mean `spr-8480-2s`?"],
    );
    sweep(
        &["--over", "cpu.max=max", "--over", "/web/cpu.max=max"],
        &["is there twice"],
    );
    sweep(
        &[LIMITS, &["--metric", "turn.latency_us.p98"]].concat(),
        &["unknown metric", "did you mean `turn.latency_us.p9"],
    );
    sweep(
        &[LIMITS, &["--target", "turn.latency_us.p99"]].concat(),
        &["is no target"],
    );
    sweep(
        &[LIMITS, &["--target", "turn.p99<3"]].concat(),
        &["unknown metric `turn.p99`"],
    );
    sweep(
        &[LIMITS, &["--target", "turn.latency_us.p99<-1ms"]].concat(),
        &["can never be so", "at least 0"],
    );
    sweep(
        &["--over", "cpu.max=50ms,50ms/100ms,50000"],
        &["`50ms` and `50ms/100ms`", "are the same"],
    );
    sweep(
        &[LIMITS, &["--target", "nr_throttled<3ms"]].concat(),
        &["is no time"],
    );
    sweep(
        &["--over", "cpu.max.burst=200ms,300ms"],
        &["no point can be run", "refuses a burst"],
    );
    let hundred: Vec<String> = (1..=101).map(|i| i.to_string()).collect();
    let weights = format!("cpu.weight={}", hundred.join(","));
    let bursts = format!("cpu.max.burst={}", hundred.join(","));
    sweep(
        &["--over", &weights, "--over", &bursts],
        &["10201 points", "at most 1000"],
    );
}

/// Two options that set the same thing would leave one of them without effect.
#[test]
fn what_is_swept_is_said_once() {
    let path = file("sweep-once", "s.toml", SCENARIO);
    let sweep = |words: &[&str], parts: &[&str]| fails([&["sweep", &path], words].concat(), parts);
    sweep(
        &[LIMITS, &["--over", "/*/cpu.max=max"]].concat(),
        &["write the same file"],
    );
    sweep(
        &[LIMITS, &["--set", "/web/cpu.max=max"]].concat(),
        &["say different things", "--set /web/cpu.max=max"],
    );
    sweep(
        &["--over", "cpus=1,2", "--cpus", "2"],
        &["say different things", "--cpus 2"],
    );
    sweep(
        &[LIMITS, &["--json", &path]].concat(),
        &["would replace", "which is read"],
    );
}

#[test]
fn a_file_without_a_group_is_that_of_the_one_limited_group_or_none() {
    let two = SCENARIO.replace(
        "path = \"/other\"",
        "path = \"/other\"\n\"cpu.max\" = \"max\"",
    );
    let none = two.replace("\"100000 100000\"", "\"max\"");
    let none = file("sweep-none", "s.toml", none);
    let parts = ["of which group? None has a limit", "`/web`", "`/other`"];
    fails(["sweep", &none, "--over", "cpu.max=max"], &parts);
    let both = two.replace("\"max\"", "\"50000\"");
    let both = file("sweep-both", "s.toml", both);
    let parts = ["2 have a limit", "/GROUP/cpu.max=max"];
    fails(["sweep", &both, "--over", "cpu.max=max"], &parts);
    let counted = "path = \"/other\"\ncount = 3\n\"cpu.max\" = \"50000\"";
    let counted = SCENARIO.replace("path = \"/other\"", counted);
    let counted = file("sweep-counted", "s.toml", counted);
    let parts = ["4 have a limit", "`/other`, `/other.0`"];
    fails(["sweep", &counted, "--over", "cpu.max=max"], &parts);
}

/// Requests of 2 ms on average come every 3.8 ms, whether they are answered or not: they need 0.53
/// CPUs.
const OPEN_ARRIVALS: &str = r#"
machine = "spr-guest-2cpu"
duration = "3s"
warmup = "200ms"
seeds = 5
services = ["web"]
[[cgroup]]
path = "/web"
"cpu.max" = "50000 100000"
[[task]]
name = "worker"
count = 4
cgroup = "/web"
steps = [{ loop = "forever", steps = [
    { serve = "web" }, { run = "exp 2ms" }, { reply = "web", bytes = 100 },
] }]
[[task]]
name = "arrivals"
timer_slack = "1ns"
steps = [{ loop = "forever", steps = [{ sleep = "exp 3800us" }, { fork = "request" }] }]
[[task]]
name = "request"
template = true
steps = [{ request = "web", bytes = 200 }]
"#;

/// Two thirds of what is needed would meet the target, and miss it in a longer run.
#[test]
fn a_limit_below_the_load_is_never_the_answer() {
    let path = file("sweep-open", "s.toml", OPEN_ARRIVALS);
    let limits = ["--over", "cpu.max=35ms/100ms,65ms/100ms,100ms/100ms"];
    let page = place("sweep-open-out")
        .join("out.html")
        .display()
        .to_string();
    let line = words(&[
        &["sweep", &path],
        &limits,
        &["--target", "web.latency_us.p99<5s", "--report", &page],
    ]);
    let result = json(&succeeds(words(&[&line, &["--json", "-"]])));
    let points = result["points"].as_array().expect("points");
    assert_eq!(points[0]["meets"], "not-sustained");
    assert_eq!(points[0]["not_sustained"], json(r#"["web"]"#));
    for point in &points[1..] {
        assert_eq!(point["meets"], "interval");
        assert!(point.get("not_sustained").is_none(), "{point}");
    }
    assert_eq!(result["answer"]["by_interval"]["point"], 1);
    let notes = result["notes"].as_array().expect("notes").iter();
    let said = notes.filter(|note| note.as_str().expect("text").starts_with("not sustained"));
    assert_eq!(said.count(), 1);
    let run = &points[1]["variant"]["runs"][0];
    let answered = run["metrics"]["web.per_s"].as_f64().expect("a rate") * 3.0;
    let samples = run["samples"]["web.latency_us.p99"]
        .as_f64()
        .expect("a count");
    assert!(
        (answered - 0.5..answered + 30.0).contains(&samples),
        "{answered} {samples}"
    );
    let shown = std::fs::read_to_string(&page).expect("a page");
    assert!(shown.contains(">not sustained<"), "in its table");
    assert!(succeeds(line).contains("  not sustained"), "in the text");
}

/// After a warm-up the halves of a run are nearly alike, and one seed has no interval.
#[test]
fn a_backlog_is_seen_with_one_seed_after_a_warm_up() {
    let path = file("sweep-backlog", "s.toml", OPEN_ARRIVALS);
    let points = |over: &str| {
        let line = [
            "sweep", &path, "--seed", "1", "--warmup", "2s", "--over", over,
        ];
        let target = ["--target", "web.per_s>1", "--json", "-"];
        json(&succeeds(words(&[&line, &target])))["points"].clone()
    };
    // 0.53 CPUs are needed.
    let points = points("cpu.max=3ms/100ms,20ms/100ms,40ms/100ms,80ms/100ms");
    let meets: Vec<&Value> = points
        .as_array()
        .expect("points")
        .iter()
        .map(|p| &p["meets"])
        .collect();
    assert_eq!(meets[..3], ["not-sustained"; 3]);
    assert_eq!(meets[3], "mean");
}

/// A front end that asks a back end, which is listed before it, and clients.
const TWO_SERVICES: &str = r#"
machine = "spr-guest-2cpu"
duration = "300ms"
warmup = "50ms"
seeds = 2
services = ["back", "front"]
[[cgroup]]
path = "/web"
"cpu.max" = "50000 100000"
[[task]]
name = "front"
count = 2
cgroup = "/web"
steps = [{ loop = "forever", steps = [
    { serve = "front" }, { request = "back", bytes = 10 }, { reply = "front", bytes = 10 },
] }]
[[task]]
name = "back"
cgroup = "/web"
steps = [{ loop = "forever", steps = [
    { serve = "back" }, { run = "1ms" }, { reply = "back", bytes = 10 },
] }]
[[task]]
name = "client"
count = 2
steps = [{ loop = "forever", steps = [
    { sleep = "exp 10ms" }, { request = "front", bytes = 10 },
] }]
"#;

#[test]
fn the_service_that_clients_ask_comes_first() {
    let path = file("sweep-two", "s.toml", TWO_SERVICES);
    let line = [
        "sweep",
        &path,
        "--over",
        "cpu.max=40ms/100ms,50ms/100ms",
        "--json",
        "-",
    ];
    let result = json(&succeeds(line));
    let shown = result["metrics"].as_array().expect("metrics");
    let want = [
        "front.latency_us.p50",
        "front.latency_us.p99",
        "front.per_s",
    ];
    assert_eq!(shown[..3], want);
    assert_eq!(shown[3], "back.latency_us.p99");
}

/// A reserve that is full at the start says little of one that is used.
#[test]
fn bursts_without_a_warm_up_are_told() {
    let cold = SCENARIO.replace("warmup = \"200ms\"", "");
    let path = file("sweep-cold", "cold.toml", &cold);
    let burst = [
        "--over",
        "cpu.max.burst=0,5ms",
        "--set",
        "/web/cpu.max=40ms/100ms",
    ];
    let text = succeeds(words(&[&["sweep", &path], &burst]));
    assert!(text.contains("is swept without a warm-up"), "{text}");
    let path = file("sweep-cold", "warm.toml", SCENARIO);
    let text = succeeds(words(&[&["sweep", &path], &burst]));
    assert!(!text.contains("is swept without a warm-up"), "{text}");
}

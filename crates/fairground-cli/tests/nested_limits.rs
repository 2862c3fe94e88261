//! Limits below limits, percentiles, and how long a scenario runs, as results tell them.

mod common;
#[path = "../../fairground-report/tests/schema/mod.rs"]
mod schema;

use common::{fails, file, json, place, succeeds, words};
use serde_json::Value;

/// A pod of 0.4 CPUs with a container that may use one, and a neighbour without a limit.
const POD: &str = r#"
name = "pod"
machine = "spr-guest-2cpu"
duration = "1s"
warmup = "250ms"
seeds = 2
[[cgroup]]
path = "/pod"
"cpu.max" = "40ms/100ms"
[[cgroup]]
path = "/pod/app"
"cpu.max" = "100ms/100ms"
"cpu.max.burst" = 20000
[[cgroup]]
path = "/pod/log"
[[task]]
name = "app"
cgroup = "/pod/app"
steps = ["hog"]
[[task]]
name = "log"
cgroup = "/pod/log"
steps = ["hog"]
"#;

/// A task that works 1 ms of each 5 ms, on two CPUs.
const TURNS: &str = r#"
name = "turns"
machine = "spr-guest-2cpu"
seeds = 1
[[task]]
name = "worker"
steps = [{ loop = "forever", steps = [
    { begin = "turn" }, { run = "uniform 500us 1500us" }, { end = "turn" }, { period = "5ms" } ] }]
"#;

fn runs(result: &Value, variant: usize) -> &Vec<Value> {
    result["variants"][variant]["runs"]
        .as_array()
        .expect("runs")
}

fn fits(kind: &str, result: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/");
    let text = std::fs::read_to_string(format!("{path}{kind}.schema.json")).expect("a schema");
    let schema = json(&text);
    schema::fits(&schema, &schema, result).expect("fits the schema");
}

/// Milliseconds by group and the one at fault.
fn kept_off(run: &Value) -> Vec<(String, String, f64)> {
    let rows = run["throttled_by"].as_array().expect("rows").iter();
    let text = |value: &Value| value.as_str().expect("a path").to_string();
    rows.map(|row| {
        let ns = row["ns"].as_f64().expect("ns");
        (text(&row["group"]), text(&row["by"]), ns / 1e6)
    })
    .collect()
}

/// `nr_throttled` of the container says that nothing is wrong; the rows say who is to blame. In
/// each period of 100 ms both tasks run for 20 ms and wait for 80.
#[test]
fn a_container_is_throttled_by_its_pod() {
    let scenario = file("a_container_is_throttled_by_its_pod", "pod.toml", POD);
    let page = place("a_container_is_throttled_by_its_pod_page").join("page.html");
    let page = page.to_str().expect("text");
    let result = json(&succeeds([
        "run", &scenario, "--json", "-", "--report", page,
    ]));
    fits("run", &result);
    for run in runs(&result, 0) {
        let app = run["groups"].as_array().expect("groups").iter();
        let mut app = app.filter(|group| group["path"] == "/pod/app");
        assert_eq!(app.next().expect("app")["cpu.stat"]["nr_throttled"], 0);
        let wanted = [
            ("/pod", "/pod", 1600.0),
            ("/pod/app", "/pod/app", 0.0),
            ("/pod/app", "/pod", 800.0),
            ("/pod/log", "/pod", 800.0),
        ];
        let found = kept_off(run);
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for ((group, by, ms), (of, whose, about)) in found.iter().zip(wanted) {
            assert_eq!((&**group, &**by), (of, whose));
            assert!((ms - about).abs() <= 16.0, "{group} by {by}: {ms} ms");
        }
    }
    let text = succeeds(["run", &scenario, "--no-progress"]);
    assert!(text.contains("kept off the CPU  by quota of"), "{text}");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    let at = rows
        .iter()
        .position(|row| row.starts_with(&["/pod/app", "its"]));
    let rows = &rows[at.expect("its row")..];
    assert_eq!(rows[0][..3], ["/pod/app", "its", "own"]);
    assert_eq!(
        (rows[0][4], rows[1][0], rows[1][2]),
        ("0.0%", "/pod", "100.0%")
    );
    let note = "tasks waited mostly for a quota above their group's own: /pod/app for that of /pod";
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(note), "{text}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("throttled-by-table"));
}

#[test]
fn both_sides_say_whose_quota_it_was() {
    let scenario = file("both_sides_say_whose_quota_it_was", "pod.toml", POD);
    let set = [
        "--set",
        "/pod/cpu.max=max",
        "--set",
        "/pod/app/cpu.max=20ms/100ms",
    ];
    let line = words(&[&["compare", &scenario, "--json", "-"], &set]);
    let result = json(&succeeds(line));
    fits("compare", &result);
    let of_app = |variant: usize, by: &str| {
        let rows = kept_off(&runs(&result, variant)[0]);
        let found = rows.iter().find(|row| row.0 == "/pod/app" && row.1 == by);
        found.map(|row| row.2)
    };
    assert_eq!(of_app(0, "/pod/app"), Some(0.0));
    assert!(of_app(0, "/pod") > Some(700.0));
    // It begins with its burst; the pod, which has a limit on the other side, holds nobody.
    let own = of_app(1, "/pod/app").expect("a row");
    assert!((own - 800.0).abs() < 30.0, "{own}");
    assert_eq!(of_app(1, "/pod"), Some(0.0));
}

#[test]
fn a_sweep_of_the_wrong_limit_says_so() {
    let scenario = file("a_sweep_of_the_wrong_limit", "pod.toml", POD);
    let over = [
        "--over",
        "/pod/app/cpu.max=10ms/100ms,100ms/100ms,200ms/100ms",
    ];
    let text = succeeds(words(&[&["sweep", &scenario, "--seed", "1"], &over]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "note with all points, tasks waited mostly for a quota above their group's own: \
                /pod/app for that of /pod";
    assert!(text.contains(note), "{text}");
}

#[test]
fn one_level_of_limits_has_no_table() {
    let one = POD.replace(
        "\"cpu.max\" = \"100ms/100ms\"\n\"cpu.max.burst\" = 20000\n",
        "",
    );
    let one = one.replace("cgroup = \"/pod/app\"", "cgroup = \"/pod\"");
    let one = one.replace("cgroup = \"/pod/log\"", "cgroup = \"/pod\"");
    let scenario = file("one_level_of_limits_has_no_table", "pod.toml", one);
    let text = succeeds(["run", &scenario, "--no-progress"]);
    assert!(text.contains("waiting for quota"), "{text}");
    assert!(!text.contains("kept off the CPU"), "{text}");
}

#[test]
fn bursts_are_in_the_json_as_they_are_set_and_change() {
    let event = "[[event]]\nat = \"500ms\"\ncgroup = \"/pod/app\"\n\"cpu.max.burst\" = 0\n";
    let text = format!("{POD}{event}");
    let scenario = file("bursts_are_in_the_json", "pod.toml", text);
    let result = json(&succeeds(["run", &scenario, "--json", "-"]));
    fits("run", &result);
    let groups = runs(&result, 0)[0]["groups"].as_array().expect("groups");
    let group = |path: &str| groups.iter().find(|g| g["path"] == path).expect("a group");
    let (pod, app) = (group("/pod"), group("/pod/app"));
    assert_eq!(pod["cpu.max.burst"], 0);
    assert!(pod.get("bursts").is_none());
    for counter in ["nr_bursts", "burst_usec"] {
        assert!(pod["cpu.stat"][counter].is_u64(), "{counter}");
    }
    assert_eq!(app["cpu.max.burst"], 0, "as written last");
    let told = serde_json::json!([
        { "from_ns": 0, "cpu.max.burst": 20000 },
        { "from_ns": 500_000_000, "cpu.max.burst": 0 },
    ]);
    assert_eq!(app["bursts"], told);
}

#[test]
fn percentiles_are_in_order_and_those_of_few_are_left_out_of_tables() {
    let scenario = file("percentiles_are_in_order", "turns.toml", TURNS);
    let line = ["run", &scenario, "--duration", "2s"];
    let result = json(&succeeds(words(&[&line, &["--json", "-"]])));
    let run = &runs(&result, 0)[0];
    let value = |name: &str| run["metrics"][format!("turn.latency_us.{name}")].as_f64();
    let all = ["p50", "p90", "p95", "p99", "p99_9", "max"].map(value);
    assert!(all.iter().all(Option::is_some), "{all:?}");
    assert!(all.is_sorted(), "{all:?}");
    // About 400 turns: 20 are beyond p95, 4 beyond p99, none beyond p99.9.
    let samples = run["samples"]["turn.latency_us.p99_9"].as_u64();
    assert!(
        samples.is_some_and(|n| (390..=400).contains(&n)),
        "{samples:?}"
    );
    let text = succeeds(line);
    let has = |name: &str| {
        text.lines()
            .any(|l| l.starts_with(&format!("turn.latency_us.{name} ")))
    };
    let shown = ["p50", "p90", "p95", "p99", "p99_9", "max"].map(has);
    assert_eq!(shown, [true, true, true, true, false, true], "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("note `turn.latency_us.p99` stands on few:"),
        "{text}"
    );
    assert!(
        text.contains("note not shown: `turn.latency_us.p99_9`."),
        "{text}"
    );
}

/// The same as if the file said it, to the last count.
#[test]
fn a_length_on_the_command_line_replaces_that_of_the_file() {
    const TEST: &str = "a_length_on_the_command_line";
    let with =
        |name: &str, top: &str| file(&format!("{TEST}_{name}"), name, format!("{top}{TURNS}"));
    let said = with("said.toml", "duration = \"300ms\"\nwarmup = \"40ms\"\n");
    let other = with("other.toml", "duration = \"9s\"\nwarmup = \"1s\"\n");
    let none = with("none.toml", "");
    let given = ["--duration", "300ms", "--warmup", "40ms"];
    let metrics = |path: &str, more: &[&'static str]| {
        let result = json(&succeeds(words(&[&["run", path, "--json", "-"], more])));
        runs(&result, 0)[0]["metrics"].clone()
    };
    let wanted = metrics(&said, &[]);
    assert_eq!(wanted["sim_time_s"], 0.3);
    assert_eq!(metrics(&other, &given), wanted);
    assert_eq!(
        metrics(&none, &given),
        wanted,
        "a hog needs a duration, and has one"
    );
    fails(["run", &none], &["so the scenario needs a 'duration'"]);
    let rt_app = r#"{"tasks": {"hog": {"run": 1000, "loop": -1}}, "global": {"duration": 20}}"#;
    let rt_app = file(&format!("{TEST}_rt_app"), "hog.json", rt_app);
    let line = [
        "run",
        &rt_app,
        "--machine",
        "spr-guest-2cpu",
        "--seed",
        "1",
        "--json",
        "-",
    ];
    let result = json(&succeeds(words(&[&line, &["--duration", "50ms"]])));
    assert_eq!(runs(&result, 0)[0]["metrics"]["sim_time_s"], 0.05);
    // The sweep and both sides of a comparison, too.
    let line = [
        "compare",
        &other,
        "--set",
        "base_slice_ns=1000000",
        "--json",
        "-",
    ];
    let result = json(&succeeds(words(&[&line, &given])));
    assert_eq!(runs(&result, 1)[0]["metrics"]["sim_time_s"], 0.3);
    let line = ["sweep", &other, "--over", "cpus=1,2", "--json", "-"];
    let result = json(&succeeds(words(&[&line, &given])));
    assert_eq!(
        result["points"][0]["variant"]["runs"][0]["metrics"]["sim_time_s"],
        0.3
    );
}

#[test]
fn a_length_is_refused_where_it_says_nothing() {
    const TEST: &str = "a_length_is_refused";
    let scenario = file(TEST, "turns.toml", format!("duration = \"1s\"\n{TURNS}"));
    let guest = ["run", "--machine", "spr-guest-2cpu"];
    let of = |more: &[&'static str]| words(&[&guest, more]);
    fails(
        of(&["--duration", "1s", "--", "hackbench", "-g", "1"]),
        &[
            "--duration is for scenario files; `hackbench` has -l LOOPS",
            "behind `--`",
        ],
    );
    fails(
        of(&["--warmup", "1s", "--", "schbench"]),
        &["`schbench` has -w SECONDS for that"],
    );
    fails(
        of(&["--warmup", "1s", "--", "perf", "bench", "sched", "pipe"]),
        &["`perf bench sched pipe` has no warm-up"],
    );
    fails(
        ["run", &scenario, "--duration", "0"],
        &["expected a time above 0"],
    );
    fails(["run", &scenario, "--duration", "5"], &["has no unit"]);
    let late = format!(
        "duration = \"1s\"\n{TURNS}[[cgroup]]\npath = \"/a\"\n[[event]]\nat = \"700ms\"\n\
         cgroup = \"/a\"\n\"cpu.weight\" = 50\n"
    );
    let late = file("a_length_is_refused_late", "late.toml", late);
    fails(
        ["run", &late, "--duration", "500ms"],
        &[
            "late.toml:13: the run ends before that, after 500 ms",
            "`--duration` and `--warmup`",
        ],
    );
    fails(
        ["replay", &scenario, "--duration", "500ms"],
        &["--duration is not for replays"],
    );
}

/// Every option that a message names is one that the benchmark takes.
#[test]
fn the_options_that_are_named_instead_exist() {
    for known in fairground_sim::workload::Workload::known() {
        for option in [Some(known.length), known.warmup].into_iter().flatten() {
            let [name, value] = option.split([' ', '=']).collect::<Vec<_>>()[..] else {
                panic!("an option and a value: {option}");
            };
            let value = match value {
                "LOOPS" | "REPEATS" | "SECONDS" => "1",
                _ => "1ms",
            };
            let mut argv: Vec<&str> = known.name.split(' ').collect();
            let words = format!("{name}={value}");
            match option.contains('=') {
                true => argv.push(&words),
                false => argv.extend([name, value]),
            }
            let env = fairground_sim::workload::Env { cpus: 2 };
            let read = fairground_sim::workload::Workload::from_argv(&argv, &env);
            assert!(read.is_ok(), "{argv:?}: {read:?}");
        }
    }
}

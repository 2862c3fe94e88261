//! Results: the same bytes for the same input, the shape of the schemas, exit codes.

mod common;
#[path = "../../fairground-report/tests/schema/mod.rs"]
mod schema;

use std::path::Path;

use common::{SHORT, SMALL, fails, fairground, file, json, place, succeeds, words};
use serde_json::Value;

const PATCH: &[&str] = &["--patch", "tg-load-avg-ratelimit"];
/// Groups, so that the patch has something to do.
const GROUPED: &[&str] = &[
    "--",
    "hackbench",
    "--pipe",
    "-g",
    "2",
    "-f",
    "3",
    "-l",
    "10",
    "--tree",
    "1:2",
];

fn compare(more: &[&'static str]) -> Vec<&'static str> {
    words(&[&["compare"], SMALL, PATCH, more, GROUPED])
}

#[test]
fn the_same_bytes_twice_and_for_any_number_of_threads() {
    let of = |more: &[&'static str]| succeeds(compare(&words(&[&["--json", "-"], more])));
    let first = of(&["--jobs", "1"]);
    assert!(first.len() > 1000);
    assert!(first == of(&["--jobs", "1"]), "twice");
    assert!(first == of(&["--jobs", "2"]), "two threads");
    assert!(
        first == of(&["--lines", "1", "--quiet", "--color", "always"]),
        "another view"
    );
    assert!(first != of(&["--set", "hz=250"]), "other decisions");
}

#[test]
fn a_comparison_has_the_promised_shape() {
    let result = json(&succeeds(compare(&["--json", "-"])));
    let schema = json(include_str!("../../../schemas/compare.schema.json"));
    schema::fits(&schema, &schema, &result).expect("fits the schema");
    let path = |pointer: &str| result.pointer(pointer).unwrap_or(&Value::Null).clone();
    assert_eq!(path("/machine/id"), "xeon-8cpu-2013");
    assert_eq!(path("/profile"), "linux-6.18");
    assert_eq!(path("/workload/0"), "hackbench");
    assert_eq!(path("/variants/0/name"), "base");
    assert_eq!(path("/variants/0/decisions/tg_load_avg_period_ns"), "0");
    assert_eq!(
        path("/variants/1/decisions/tg_load_avg_period_ns"),
        "1000000"
    );
    assert_eq!(path("/variants/1/decisions/pick"), "eevdf");
    assert_eq!(path("/variants/0/runs/1/seed"), 2);
    for metric in [
        "hackbench.time_s",
        "wakeups",
        "migrations",
        "switches",
        "line_transfers",
        "lock_wait_ns",
        "busy_pct",
        "sched_pct",
        "wakeup_latency_us.p50",
        "wakeup_latency_us.p99",
    ] {
        let value = path(&format!("/variants/0/runs/0/metrics/{metric}"));
        assert!(value.is_number(), "{metric} is {value}");
    }
    assert!(path("/variants/0/runs/0/functions/__schedule/calls").as_u64() > Some(0));
    let lines = path("/variants/0/runs/0/lines");
    let lines = lines.as_array().expect("lines");
    assert!(!lines.is_empty() && lines.len() <= 200);
    let waits: Vec<_> = lines.iter().map(|l| l["wait_ns"].as_u64()).collect();
    assert!(waits.is_sorted_by(|a, b| a >= b), "most waiting first");
    assert_eq!(path("/comparison/0/metric"), "hackbench.time_s");
    assert_eq!(path("/comparison/0/better"), "lower");
}

#[test]
fn a_run_has_the_promised_shape() {
    let result = json(&succeeds(words(&[&["run", "--json", "-"], SMALL, SHORT])));
    let schema = json(include_str!("../../../schemas/run.schema.json"));
    schema::fits(&schema, &schema, &result).expect("fits the schema");
    assert_eq!(result["variants"].as_array().map(Vec::len), Some(1));
    let seeds = [1, 2].map(Value::from).to_vec();
    assert_eq!(result["redo"]["seeds"], Value::Array(seeds));
}

#[test]
fn shares_of_the_profile_add_up() {
    let result = json(&succeeds(words(&[&["run", "--json", "-"], SMALL, GROUPED])));
    let functions = result["variants"][0]["runs"][0]["functions"].as_object();
    let shares = functions
        .expect("functions")
        .values()
        .map(|f| f["share"].as_f64());
    let sum: f64 = shares.map(|s| s.expect("a share")).sum();
    assert!((sum - 1.0).abs() < 1e-3, "{sum}");
}

#[test]
fn the_text_tells_what_was_done() {
    let text = succeeds(compare(&["--lines", "3", "--functions", "4"]));
    for part in [
        "tg-load-avg-ratelimit: ",
        "machine   xeon-8cpu-2013",
        "workload  hackbench --pipe",
        "runs      2",
        "patch     tg_load_avg_period_ns = 1000000 (base: 0)",
        "hackbench.time_s",
        "cache line of",
        "base, seed 1:",
        "  Time: ",
        "redo      fairground compare --machine xeon-8cpu-2013",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    // All but the command to paste; a comparison of two seeds has intervals of any length.
    let width = |line: &str| line.chars().count();
    let wide = text
        .lines()
        .filter(|l| width(l) > 104 && !l.starts_with("redo"));
    assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(!text.contains('\x1b'), "no colour into a pipe");
    assert!(succeeds(compare(&["--color", "always"])).contains('\x1b'));
}

#[test]
fn a_comparison_can_be_redone_by_its_own_command() {
    let result = json(&succeeds(compare(&["--json", "-", "--jobs", "1"])));
    let command = result["redo"]["command"].as_str().expect("a command");
    let again = command.split(' ').skip(1).collect::<Vec<_>>();
    let again = words(&[&again[..1], &["--json", "-"], &again[1..]]);
    assert_eq!(json(&succeeds(again)), result);
}

#[test]
fn saved_results_compare_as_simulated_ones_do() {
    let dir = place("saved");
    let at = |name: &str| dir.join(name).to_str().expect("UTF-8").to_string();
    let (base, patch) = (at("base.json"), at("patch.json"));
    let run = |value: &str, path: &str| {
        let words = words(&[
            &["run"],
            SMALL,
            &["--quiet", "--set", value, "--json", path],
            GROUPED,
        ]);
        assert_eq!(succeeds(words), "");
    };
    run("tg_load_avg_period_ns=0", &base);
    run("tg_load_avg_period_ns=1000000", &patch);
    let files = std::fs::read_dir(&dir).expect("the directory").count();
    assert_eq!(files, 2, "no temporary file stays");
    let saved = json(&succeeds(["compare", &base, &patch, "--json", "-"]));
    let simulated = json(&succeeds(compare(&["--json", "-"])));
    for part in ["comparison", "variants", "notes"] {
        assert_eq!(saved[part], simulated[part], "{part}");
    }
    let taken = json(&succeeds(["compare", &base, &patch, "--json", "-"]));
    let again = at("both.json");
    std::fs::write(&again, taken.to_string()).expect("the comparison");
    let itself = json(&succeeds(["compare", &again, &again, "--json", "-"]));
    assert_eq!(itself["comparison"], taken["comparison"]);
    assert_eq!(itself["notes"], taken["notes"]);
    // What no result can decide is said before anything is written.
    let (out, csv) = (at("out.json"), at("out.csv"));
    for (condition, told) in [
        ("foo>1", "unknown metric `foo`"),
        ("wakeups:worse", "neither better nor worse"),
    ] {
        let outputs = ["--fail-on", condition, "--json", &out, "--csv", &csv];
        fails(words(&[&["compare", &base, &patch], &outputs]), &[told]);
    }
    let files = std::fs::read_dir(&dir).expect("the directory").count();
    assert_eq!(files, 3);
}

/// More transactions in the same time: totals are judged per transaction, in one command as of two
/// saved results, and what is printed is the same but for where it came from.
#[test]
fn runs_of_a_given_time_print_the_same_saved_or_not() {
    const TIMED: &[&str] = &[
        "--", "netperf", "-t", "UDP_RR", "--pairs", "4", "-l", "300us",
    ];
    let dir = place("timed");
    let at = |name: &str| dir.join(name).to_str().expect("UTF-8").to_string();
    let (base, patch) = (at("base.json"), at("patch.json"));
    // A note of each side: the tunable is given before it is scaled.
    let set = "base_slice_ns=400us";
    let more = |more: &[&'static str]| words(&[SMALL, more, TIMED]);
    let run = |words: Vec<&'static str>, path: &str| {
        let line = [&["run", "-q", "--json", path][..], &words].concat();
        assert_eq!(succeeds(line), "");
    };
    run(more(&["--set", "hz=250"]), &base);
    run(more(&["--set", set]), &patch);
    let at_once = [&["compare"][..], &more(&["--base", "hz=250", "--set", set])].concat();
    let simulated = succeeds(at_once.clone());
    let later = succeeds(["compare", &base, &patch]);
    let tables = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("redo "));
        lines.map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(tables(&later), tables(&simulated));
    assert!(
        later.contains("note      base_slice_ns is given before scaling"),
        "{later}"
    );
    assert!(later.contains("\n  per transaction "), "{later}");

    let result = json(&succeeds(["compare", &base, &patch, "--json", "-"]));
    let schema = json(include_str!("../../../schemas/compare.schema.json"));
    schema::fits(&schema, &schema, &result).expect("fits the schema");
    let run = &result["variants"][0]["runs"][0];
    assert_eq!(run["work"]["unit"], "transaction");
    let done = run["work"]["done"].as_f64().expect("a count");
    // What the tool prints is of one of the four pairs.
    let rate = run["metrics"]["netperf.trans_per_s"]
        .as_f64()
        .expect("a rate");
    assert!(
        (done / 4.0 / 300e-6 / rate - 1.0).abs() < 1e-6,
        "{done} of {rate}"
    );
    let rows = result["comparison"].as_array().expect("rows");
    for (metric, is_total) in [
        ("wakeups", true),
        ("line_transfers", true),
        ("busy_pct", false),
    ] {
        let row = rows.iter().find(|row| row["metric"] == metric);
        let unit = row.expect("its row").pointer("/per/unit");
        assert_eq!(unit.is_some(), is_total, "{metric}");
    }
}

#[test]
fn files_that_are_no_two_results_are_refused_in_one_line() {
    let run = succeeds(words(&[&["run", "--json", "-"], SMALL, SHORT]));
    let sweep = words(&[
        &["sweep", "--over", "hz=100,250", "--json", "-"],
        SMALL,
        SHORT,
    ]);
    let sweep = succeeds(sweep);
    let signs = [
        "compare",
        "--machine",
        "spr-guest-2cpu,xeon-8cpu-2013",
        "--seeds",
        "2",
        "--json",
        "-",
        "--set",
        "hz=250",
    ];
    let signs = succeeds(words(&[&signs, SHORT]));
    let dir = place("refused");
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a file for the test");
        path.to_str().expect("UTF-8").to_string()
    };
    let good = file("run.json", &run);
    for (name, text, said) in [
        ("sweep.json", sweep, "this is one of `sweep`"),
        (
            "signs.json",
            signs,
            "this is one of `compare` on several machines or workloads",
        ),
        (
            "cut.json",
            run[..run.len() / 3].into(),
            "cut off: the JSON ends at line ",
        ),
        (
            "tool.json",
            "{\"jobs\": [], \"fio version\": 3}".into(),
            "JSON, but no result of fairground",
        ),
    ] {
        let bad = file(name, &text);
        for files in [[&bad, &good], [&good, &bad]] {
            let output = fairground(["compare", files[0], files[1], "--json", "-"]);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{errors}");
            assert!(output.stdout.is_empty(), "{name}");
            assert!(
                errors.contains(&format!("{name}: ")) && errors.contains(said),
                "{errors}"
            );
        }
    }
}

/// A scenario that was edited in between, and what is not measured alike.
#[test]
fn saved_results_say_where_their_conditions_differ() {
    let dir = place("conditions");
    let at = |name: &str| dir.join(name).to_str().expect("UTF-8").to_string();
    let text = |ms: u32| {
        format!(
            "machine = \"spr-guest-2cpu\"\nduration = \"{ms}ms\"\n\
             [[task]]\nname = \"a\"\nsteps = [\"hog\"]\n"
        )
    };
    let run = |ms: u32, more: &[&str]| {
        let path = file("edited", "s.toml", text(ms));
        let json = at(&format!("{ms}.{}.json", more.len()));
        let line = words(&[&["run", &path, "--seeds", "2", "-q", "--json", &json], more]);
        succeeds(line);
        json
    };
    let (before, after) = (run(10, &[]), run(20, &[]));
    let slow = run(10, &["--slow", "1ms"]);
    let said = succeeds(["compare", &before, &after]);
    assert!(said.contains("differ in scenario:"), "{said}");
    let quiet = fairground(["compare", &before, &slow, "-q"]);
    let quiet = String::from_utf8_lossy(&quiet.stderr).into_owned();
    assert!(
        quiet.contains("differ in slow: base none, patch 1000000 ns"),
        "{quiet}"
    );
    assert!(!quiet.contains("in scenario"), "{quiet}");
}

#[test]
fn fail_on_decides_the_exit_code() {
    let code = |condition: &'static str| {
        let output = fairground(compare(&["--quiet", "--fail-on", condition]));
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (met, reason) = code("migrations>-1000%");
    assert_eq!(met, Some(1));
    assert!(
        reason.contains("fail-on: migrations changed by"),
        "{reason}"
    );
    assert_eq!(code("migrations<-1000%").0, Some(0));
    let (met, reason) = code("wakeups>0");
    assert_eq!(met, Some(1));
    assert!(reason.contains("fail-on: wakeups of patch is"), "{reason}");
    assert_eq!(code("wakeup_latency_us.p50>10s").0, Some(0));
    let (no_time, reason) = code("wakeups>1ms");
    assert_eq!(no_time, Some(2));
    assert!(reason.contains("`wakeups` is no time"), "{reason}");
    let (none, reason) = code("wakeups:worse");
    assert_eq!(none, Some(2), "no direction, never worse");
    assert!(reason.contains("neither better nor worse"), "{reason}");
}

#[test]
fn base_and_patch_can_be_set_apart() {
    let decisions = |more: &[&'static str], name: &str| {
        let words = words(&[&["compare"], SMALL, more, &["--json", "-"], SHORT]);
        let result = json(&succeeds(words));
        let value = |v: usize| result["variants"][v]["decisions"][name].clone();
        (value(0), value(1))
    };
    let both = |a: &str, b: &str| (Value::from(a), Value::from(b));
    assert_eq!(decisions(&["--set", "hz=250"], "hz"), both("1000", "250"));
    assert_eq!(decisions(&["--base", "hz=250"], "hz"), both("250", "1000"));
    assert_eq!(
        decisions(&["--base-profile", "linux-6.5"], "pick"),
        both("cfs", "eevdf")
    );
    assert_eq!(
        decisions(
            &["--profile", "linux-6.9", "--patch", "ilb-skip-redundant"],
            "ilb_kick"
        ),
        both("always", "skip-redundant")
    );
}

#[test]
fn tables_make_way_for_json_on_standard_output() {
    let output = fairground(words(&[&["run", "--json", "-"], SMALL, SHORT]));
    json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("machine   xeon-8cpu-2013"));
    let csv = succeeds(words(&[&["run", "--csv", "-"], SMALL, SHORT]));
    assert!(csv.starts_with("variant,seed,hackbench.time_s,"));
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn an_old_result_stays_whole_and_a_device_stays_a_device() {
    let dir = place("whole");
    let path = dir.join("r.json");
    std::fs::write(&path, "old").expect("a file");
    let name = path.to_str().expect("UTF-8");
    let bad = words(&[&["run"], SMALL, &["--json", name, "--", "nothing"]]);
    assert_eq!(fairground(bad).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "old");
    succeeds(words(&[&["run"], SMALL, &["--json", name], SHORT]));
    json(&std::fs::read_to_string(&path).expect("there"));
    if Path::new("/dev/null").exists() {
        succeeds(words(&[&["run"], SMALL, &["--json", "/dev/null"], SHORT]));
        assert!(!Path::new("/dev/null").is_file());
    }
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("fairground"))
        .args(words(&[&["run", "--json", "-"], SMALL, SHORT]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let mut errors = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut errors)
        .expect("UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(!errors.contains("panic"), "{errors}");
}

/// Nobody reads the note about tasks that wait for each other.
#[test]
fn standard_error_that_is_closed_is_no_error() {
    use std::process::{Command, Stdio};
    let text = "duration = \"1ms\"\npipes = [\"p\"]\n[[task]]\nname = \"reader\"\n\
                steps = [{ read = \"p\", bytes = 1 }]\n";
    let path = place("closed-stderr").join("s.toml");
    std::fs::write(&path, text).expect("a file");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("fairground"))
        .args(words(&[&["run", path.to_str().expect("UTF-8")], SMALL]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn scenarios_run_and_compare() {
    let dir = place("scenario-runs");
    let path = dir.join("s.toml");
    let text = "machine = \"xeon-8cpu-2013\"\nprofile = \"linux-6.9\"\nhz = 250\nseeds = [7, 9]\n\
                duration = \"2ms\"\n[[task]]\nname = \"t\"\ncount = 3\nsteps = [{ loop = \
                \"forever\", steps = [{ run = \"20us\" }, { sleep = \"30us\" }] }]\n";
    std::fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("UTF-8");
    let result = json(&succeeds(["run", path, "--json", "-"]));
    assert_eq!(result["profile"], "linux-6.9");
    assert_eq!(result["variants"][0]["decisions"]["hz"], "250");
    assert_eq!(
        result["redo"]["seeds"],
        Value::Array([7, 9].map(Value::from).to_vec())
    );
    let over = [
        "run",
        path,
        "--profile",
        "linux-6.5",
        "--seed",
        "3",
        "--json",
        "-",
    ];
    let over = json(&succeeds(over));
    assert_eq!(over["profile"], "linux-6.5");
    assert_eq!(over["variants"][0]["runs"][0]["seed"], 3);
    succeeds(["compare", path, "--patch", "ilb-skip-redundant"]);
}

/// Of twelve hogs on two CPUs ten have not run after 1 ms; then no percentile has them.
#[test]
fn wake_ups_that_have_not_run_are_told() {
    let run = ["run", "--machine", "spr-guest-2cpu", "--seed", "1"];
    let told = |duration: &str| {
        let hogs = ["--", "hogs", "-t", "12", "-d", duration];
        let text = succeeds(words(&[&run, &hogs]));
        let all = json(&succeeds(words(&[&run, &["-q", "--json", "-"], &hogs])));
        let waiting = all["variants"][0]["runs"][0]["still_waiting"]["waiting"].as_u64();
        (text.contains("lacks 10 of 12 wake-ups"), waiting)
    };
    assert_eq!(told("1ms"), (true, Some(10)));
    assert_eq!(told("200ms"), (false, None));
}

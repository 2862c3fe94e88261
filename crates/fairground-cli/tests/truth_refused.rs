//! `fairground truth` where a part of a recording is refused: what is wrong is told first, and the
//! rows of all else are printed and written.

mod common;

use std::path::{Path, PathBuf};

use common::{fails, fairground, json, place, succeeds};
use serde_json::Value;

const OWN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/recorded/cases/own-mix"
);

/// Puts the recorded case at `dir/cases/NAME`, with its case changed.
fn case(dir: &Path, name: &str, change: impl Fn(String) -> String) {
    let to = dir.join("cases").join(name);
    std::fs::create_dir_all(&to).expect("a directory");
    for file in ["case.json", "result.json"] {
        let text = std::fs::read_to_string(Path::new(OWN).join(file)).expect("a file");
        let text = text.replace("own-mix", name);
        let text = if file == "case.json" {
            change(text)
        } else {
            text
        };
        std::fs::write(to.join(file), text).expect("a file");
    }
}

/// A recording of a good case, one with an unknown key and one whose trouble shows when the machine
/// is made ready, with other files beside them.
fn recording(test: &str) -> PathBuf {
    let dir = place(test);
    case(&dir, "good", |text| text);
    case(&dir, "key", |text| text.replace("settle_ms", "settle_us"));
    case(&dir, "mode", |text| {
        text.replace(r#""hz": 250"#, r#""hz": 7"#)
    });
    std::fs::write(dir.join("cases/index.json"), "[]").expect("a file");
    std::fs::create_dir(dir.join("cases/empty")).expect("a directory");
    dir
}

fn path(dir: &Path) -> &str {
    dir.to_str().expect("UTF-8")
}

/// Exit code, standard output, standard error.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let output = fairground(words.iter().copied());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn a_refused_case_stops_no_other() {
    let dir = recording("truth-refused");
    let written = dir.join("rows.json");
    let words = ["truth", path(&dir), "--seeds", "1", "--json"];
    let (code, table, errors) = run(&[&words[..], &[path(&written)]].concat());
    assert_eq!(code, Some(2), "{errors}");
    for says in ["key/case.json: ", "settle_us", "line "] {
        assert!(errors.contains(says), "{errors}");
    }
    assert!(errors.contains("mode/case.json: machine.hz: 7"), "{errors}");
    let missing = "empty/case.json: No such file";
    assert!(errors.contains(missing), "{errors}");
    assert_eq!(errors.matches("error:").count(), 3, "{errors}");
    assert!(!errors.contains("index.json"), "{errors}");
    assert!(table.contains("\nrefused: 3 files"), "{table}");
    let rows = json(&std::fs::read_to_string(&written).expect("the rows"));
    let rows = rows.as_array().expect("rows");
    assert!(rows.len() > 60 && rows.iter().all(|row| row["case"] == "good"));
    let (code, text, _) = run(&[&words[..], &["-"]].concat());
    assert_eq!((code, json(&text).as_array()), (Some(2), Some(rows)));
    let only_bad = ["truth", path(&dir), "--case", "key"];
    fails(only_bad, &["key/case.json: ", "settle_us"]);
    succeeds(["truth", path(&dir), "--case", "good", "--seeds", "1"]);
}

#[test]
fn a_write_that_the_kernel_refuses_is_noted() {
    let dir = place("truth-refused-write");
    case(&dir, "good", |text| {
        let write = r#"{"at_us": 9, "cgroup": "/kt", "file": "cpu.weight", "value": 0}"#;
        let mut case: Value = serde_json::from_str(&text).expect("JSON");
        let events = case["events"].take();
        let mut events = events.as_array().cloned().unwrap_or_default();
        events.push(serde_json::from_str(write).expect("JSON"));
        case["events"] = events.into();
        case.to_string()
    });
    let (code, rows, notes) = run(&["truth", path(&dir), "--seeds", "1", "--json", "-"]);
    assert_eq!(code, Some(0), "{notes}");
    assert!(notes.starts_with("note: good, events["), "{notes}");
    assert!(notes.contains("/kt/cpu.weight: 0, expected 1"), "{notes}");
    let rows = json(&rows);
    let row = rows.as_array().expect("rows").iter();
    let row = row.filter(|row| row["unit"] == "write").collect::<Vec<_>>();
    assert_eq!((row.len(), &row[0]["verdict"]), (1, &"skipped".into()));
}

#[test]
fn cases_of_one_name_are_told_apart_by_their_directories() {
    let dir = place("truth-same-name");
    for name in ["one", "two"] {
        let to = dir.join("cases").join(name);
        std::fs::create_dir_all(&to).expect("a directory");
        for file in ["case.json", "result.json"] {
            std::fs::copy(Path::new(OWN).join(file), to.join(file)).expect("a copy");
        }
    }
    let rows = json(&succeeds([
        "truth",
        path(&dir),
        "--seeds",
        "1",
        "--json",
        "-",
    ]));
    let rows = rows.as_array().expect("rows");
    for name in ["one", "two"] {
        let of_case = rows.iter().filter(|row| row["case"] == name);
        assert_eq!(of_case.count() * 2, rows.len());
    }
}

#[test]
fn a_write_after_the_end_is_noted() {
    let dir = place("truth-late-write");
    case(&dir, "good", |text| {
        let mut case: Value = serde_json::from_str(&text).expect("JSON");
        let late = case["duration_us"].as_u64().expect("a length") + 1;
        case["events"][0]["at_us"] = late.into();
        case.to_string()
    });
    let (code, rows, notes) = run(&["truth", path(&dir), "--seeds", "1", "--json", "-"]);
    assert_eq!(code, Some(0), "{notes}");
    assert!(notes.starts_with("note: good, events[0]: "), "{notes}");
    assert!(notes.contains("after the end of the window"), "{notes}");
    let rows = json(&rows);
    let mut rows = rows.as_array().expect("rows").iter();
    let row = rows.find(|row| row["metric"] == "events[0]");
    assert_eq!(row.expect("a row")["verdict"], "skipped");
}

#[test]
fn unit_costs_alone_are_a_recording() {
    let dir = place("truth-costs-alone");
    let costs = |key: &str| {
        format!(
            r#"{{"format": "kernel-truth/1", "summary": {{"{key}": {{"mean": 100.0,
            "stdev": 1.0, "min": 99.0, "max": 101.0, "n": 3}}}}}}"#
        )
    };
    let file = dir.join("costs.json");
    std::fs::write(&file, costs("sched_yield_alone_ns")).expect("a file");
    let words = ["truth", path(&dir), "--seeds", "1", "--json", "-"];
    let rows = json(&succeeds(words));
    assert_eq!(rows[0]["case"], "costs");
    assert_eq!(rows[0]["metric"], "sched_yield_alone_ns");
    std::fs::write(&file, costs("x") + "?").expect("a file");
    fails(words, &["costs.json: ", "trailing"]);
}

#[test]
fn a_directory_that_is_not_there_is_named_as_it_was_given() {
    let missing = place("truth-missing").join("none");
    let message = format!("error: {}: No such file", path(&missing));
    fails(["truth", path(&missing)], &[&message]);
}

#[test]
fn a_refused_file_of_decisions_stops_no_other() {
    let dir = place("truth-refused-smp");
    let head = "case,t,cpu,executed_by,domain,idle,busy,balance_interval_ms,\
                interval_used_jiffies,jiffies_since_last\n";
    std::fs::create_dir(dir.join("balance")).expect("a directory");
    for (name, row) in [
        ("balance/intervals_a_2x8.csv", "a,1.0,0,0,MC,1,0,8,2,2\n"),
        ("balance/intervals_b_2x8.csv", "a,1.0,99,0,MC,1,0,8,2,2\n"),
        ("balance/interval_c_2x8.csv", ""),
        ("balance/intervals_d_2x8.csv", ""),
    ] {
        std::fs::write(dir.join(name), format!("{head}{row}")).expect("a file");
    }
    std::fs::write(dir.join("balance/intervals_e_2x8.csv"), "case,b\n").expect("a file");
    let (code, rows, errors) = run(&["truth", path(&dir), "--json", "-"]);
    assert_eq!(code, Some(2), "{errors}");
    assert_eq!(errors.matches("error:").count(), 3, "{errors}");
    assert!(errors.contains("intervals_e_2x8.csv:1: unknown column 'b'"));
    assert!(errors.contains("interval_c_2x8.csv: not a file of the format"));
    assert!(errors.contains("intervals_b_2x8.csv:2: cpu: no CPU 99"));
    let rows = json(&rows);
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["case"], "balance/intervals_d_2x8.csv");
    assert_eq!(rows[1]["verdict"], "skipped", "a head alone");
    assert_eq!(rows[0]["case"], "balance/intervals_a_2x8.csv");
    assert_eq!(rows[0]["verdict"], "equal");
}

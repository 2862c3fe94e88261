//! A case that was written by hand and recorded with tools/record runs as those of the repository
//! do.

mod common;

use std::path::Path;

use common::{json, place, succeeds};
use serde_json::Value;

#[test]
fn the_table_says_what_was_simulated_and_how_to_get_it_again() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recorded");
    let text = succeeds(["truth", dir, "--seeds", "2", "--no-progress"]);
    for part in [
        "machine   spr-guest-2cpu (",
        concat!(
            "), 2 CPUs, 1 socket, 1 LLC, fairground ",
            env!("CARGO_PKG_VERSION"),
            "\n"
        ),
        "profile   linux-6.18\n",
        &format!("redo      fairground truth {dir} --seeds 2\n"),
        "seeds     1 2\n",
        "application lock semantics",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_case_from_the_recorder_runs() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recorded");
    let rows = json(&succeeds(["truth", dir, "--seeds", "2", "--json", "-"]));
    let rows = rows.as_array().expect("rows");
    assert!(rows.len() > 60, "{}", rows.len());
    let mean = |metric: &str| {
        let row = rows.iter().find(|r| r["metric"] == metric);
        let row = row.unwrap_or_else(|| panic!("no {metric}"));
        assert_eq!(row["case"], "own-mix");
        row["simulated"]["mean"].as_f64().expect("a number")
    };
    // The machine was busy when it was recorded, so numbers are not held against it: shares of a
    // group of weight 512, then 2048, beside two tasks, one of which sleeps.
    let share = |task: &str| mean(&format!("tasks.{task}.cpu_share_of_workload"));
    let sum: f64 = ["hog", "sleeper", "batch"].map(share).iter().sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    assert!(mean("phases.1.hog") > mean("phases.0.hog"));
    let verdicts = ["spread", "tolerance", "miss", "skipped"];
    for row in rows {
        assert!(verdicts.contains(&row["verdict"].as_str().expect("a verdict")));
        let reason = row["reason"].as_str();
        match row["verdict"].as_str() {
            Some("skipped") => assert!(reason.is_some()),
            // Nobody has looked at this recording, and a table of reasons must not say so.
            Some("miss") => assert_eq!(reason, Some("NOT EXPLAINED")),
            _ => assert_eq!(reason, None),
        }
    }
}

#[test]
fn a_number_that_no_run_has_is_not_zero() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded/cases/own-mix");
    let dir = place("truth-unrecorded");
    let to = dir.join("cases/own-mix");
    std::fs::create_dir_all(&to).expect("a directory");
    std::fs::copy(own.join("case.json"), to.join("case.json")).expect("a copy");
    let text = std::fs::read_to_string(own.join("result.json")).expect("a result");
    let mut result: Value = serde_json::from_str(&text).expect("JSON");
    for run in result["runs"].as_array_mut().expect("runs") {
        let hog = run["tasks"]["hog"].as_object_mut().expect("a task");
        hog.remove("migrations").expect("a number");
    }
    std::fs::write(to.join("result.json"), result.to_string()).expect("a file");
    let words = ["truth", dir.to_str().expect("UTF-8"), "--seeds", "1"];
    let rows = json(&succeeds(words.into_iter().chain(["--json", "-"])));
    let rows = rows.as_array().expect("rows");
    let row = rows.iter().find(|r| r["metric"] == "tasks.hog.migrations");
    let row = row.expect("a row");
    let none = json(r#"{"mean": null, "sd": null, "n": 0}"#);
    assert_eq!(
        (&row["recorded"], &row["verdict"]),
        (&none, &"skipped".into())
    );
    assert_eq!(row["reason"], "no recorded run has it");
    let table = succeeds(words);
    let line = table.lines().find(|l| l.contains(" tasks.hog.migrations "));
    let words: Vec<&str> = line.expect("a line").split_whitespace().collect();
    assert_eq!((words[0], words[3]), ("skipped", "-"));
    assert!(!table.contains("-0 ±") && !table.contains("NaN"), "{table}");
}

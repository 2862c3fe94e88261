//! `fairground truth` on recorded decisions: recognised by its files, told as a table and as JSON.

mod common;

use common::{fails, json, place, succeeds};

const HEAD: &str = "case,t,cpu,executed_by,domain,idle,busy,balance_interval_ms,\
interval_used_jiffies,jiffies_since_last\n";

/// A recording with one file; gives the path of the directory.
fn recording(test: &str, name: &str, text: impl AsRef<[u8]>) -> String {
    let dir = place(test);
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    std::fs::write(path, text).expect("a file");
    dir.to_str().expect("UTF-8").into()
}

fn intervals(test: &str, rows: &str) -> String {
    recording(test, "balance/intervals_x_2x8.csv", format!("{HEAD}{rows}"))
}

#[test]
fn decisions_are_counted() {
    let rows = "a,1.0,0,0,MC,1,0,8,2,2\na,1.1,0,0,MC,1,0,8,3,2\n";
    let dir = intervals("smp-count", rows);
    let table = succeeds(["truth", &dir]);
    assert!(table.contains("line 3: 2 instead of 3"), "{table}");
    assert!(table.contains("1 equal, 1 different, 0 skipped"), "{table}");
    let rows = json(&succeeds(["truth", &dir, "--json", "-"]));
    let row = &rows[0];
    assert_eq!(row["case"], "balance/intervals_x_2x8.csv");
    assert_eq!(row["metric"], "interval");
    assert_eq!(row["verdict"], "miss");
    assert_eq!((&row["records"], &row["equal"]), (&2.into(), &1.into()));
    assert_eq!((&row["different"], &row["skipped"]), (&1.into(), &0.into()));
    let fits = succeeds(["truth", &dir, "--case", "intervals_*", "--json", "-"]);
    assert_eq!(json(&fits), rows);
}

#[test]
fn bad_files_are_refused_with_their_place() {
    let dir = intervals(
        "smp-bad-row",
        "a,1.0,0,0,MC,1,0,8,2,2\na,1.1,16,0,MC,1,0,8,3,2\n",
    );
    fails(["truth", &dir], &["intervals_x_2x8.csv:3: cpu: no CPU 16"]);
    fails(["truth", &dir, "--case", "wake*"], &["no case", "wake*"]);
    let dir = intervals("smp-bad-number", "a,1.0,0,0,MC,1,0,eight,2,2\n");
    fails(
        ["truth", &dir],
        &["intervals_x_2x8.csv:2: ", "invalid digit"],
    );
    let dir = recording("smp-empty", "balance/intervals_x_2x8.csv", "");
    fails(["truth", &dir], &["intervals_x_2x8.csv:1: ", "columns"]);
    let dir = recording("smp-binary", "wake/decisions_2x8.jsonl", [0xff, 0xfe, 0]);
    fails(["truth", &dir], &["decisions_2x8.jsonl", "UTF-8"]);
    let dir = recording("smp-kind", "wake/decision_2x8.jsonl", "");
    fails(
        ["truth", &dir],
        &["decision_2x8.jsonl", "wake/decisions_*.jsonl"],
    );
    let dir = recording(
        "smp-machine",
        "balance/intervals_x.csv",
        format!("{HEAD}a,1,0,0,MC,1,0,8,2,2\n"),
    );
    fails(
        ["truth", &dir],
        &["no part of the file's name is a machine"],
    );
    let dir = recording("smp-no-format", "other/file", "");
    fails(["truth", &dir], &["kernel-truth", "cases", "topology"]);
}

//! `fairground reproduce`: names, rows, and the golden table of its cheapest runs.
//!
//! The whole of `--quick` takes a minute or more; the runs here are those of it that take seconds,
//! of each change at least one. `UPDATE_REPRODUCE=1` writes their table anew; look at what changed.

mod common;

use common::{fails, json, succeeds};

/// The runs of `--quick` that a test can wait for.
const CHEAP: &[&str] = &["reproduce", "idlest-util-tiebreak", "--only", "placement*"];

#[test]
fn an_unknown_change_names_its_neighbour() {
    fails(
        ["reproduce", "tg-load-avg-ratelimt"],
        &[
            "unknown change `tg-load-avg-ratelimt`",
            "did you mean `tg-load-avg-ratelimit`?",
        ],
    );
    fails(["reproduce"], &["required", "NAME"]);
    fails(
        ["reproduce", "--all", "lazy-h-load"],
        &["cannot be used with"],
    );
}

#[test]
fn an_unknown_run_is_refused() {
    fails(
        ["reproduce", "--all", "--only", "nothing*"],
        &["no run is called `nothing*`"],
    );
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_runs() {
    fails(
        ["reproduce", "--all", "--json", "no/such/dir/rows.json"],
        &["cannot write"],
    );
}

#[test]
fn the_placement_trace_is_exact() {
    let text = succeeds(CHEAP.iter().copied());
    let base = text.split("placement, base:").nth(1).expect("a trace");
    let (base, patch) = base.split_once("placement, patch:").expect("two traces");
    let cpus = |lines: &str| -> Vec<String> {
        let cpu = |line: &str| line.rsplit_once("CPU:").map(|(_, cpu)| cpu.to_string());
        lines.lines().filter_map(cpu).take(4).collect()
    };
    assert_eq!(cpus(base), ["007", "007", "007", "007"]);
    assert_eq!(cpus(patch), ["008", "009", "010", "011"]);
    assert!(base.contains("[006]"), "{base}");
    assert!(
        text.contains("in band  the placement trace exact"),
        "{text}"
    );
}

#[test]
fn rows_are_the_same_for_any_number_of_threads_and_have_all_keys() {
    let with = |jobs: &'static str| {
        let words = CHEAP.iter().copied().chain(["--jobs", jobs, "--json", "-"]);
        succeeds(words)
    };
    let one = with("1");
    assert_eq!(one, with("3"));
    let rows = json(&one);
    let row = &rows.as_array().expect("an array")[0];
    let keys: Vec<&String> = row.as_object().expect("an object").keys().collect();
    let wanted = [
        "change",
        "class",
        "load",
        "machine",
        "metric",
        "published",
        "simulated",
        "workload",
    ];
    assert_eq!(keys, wanted);
    assert_eq!(row["published"]["base"], 4.0);
    assert_eq!(row["simulated"]["patch"], 4.0);
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
    assert!(row["simulated"]["ci95_pct"].is_array());
    assert_eq!(row["class"], "factor2");
}

/// Change and runs of `--quick` that the golden table has.
const GOLDEN: [(&str, &str); 6] = [
    ("tg-load-avg-ratelimit", "tcp_stream-spr-25"),
    ("ilb-skip-redundant", "ilb-8"),
    ("idlest-util-tiebreak", "placement*"),
    ("idlest-util-tiebreak", "cpu-8"),
    ("lazy-h-load", "*"),
    ("cfs-rq-reorder", "hackbench-spr"),
];

#[test]
fn the_quick_table_is_golden() {
    let mut table = String::new();
    for (change, only) in GOLDEN {
        let words = ["reproduce", change, "--quick", "--only", only];
        table += &succeeds(words.into_iter().chain(["--no-progress"]));
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/reproduce-quick.txt"
    );
    if std::env::var_os("UPDATE_REPRODUCE").is_some() {
        std::fs::write(path, &table).expect("the golden table can be written");
    }
    let golden = std::fs::read_to_string(path).expect("tests/data/reproduce-quick.txt");
    for (new, old) in table.lines().zip(golden.lines()) {
        assert_eq!(new, old, "UPDATE_REPRODUCE=1 writes the table anew");
    }
    assert_eq!(table.len(), golden.len());
}

#[test]
fn saved_rows_are_shown_again_without_simulating() {
    let place = common::place("reproduce-saved");
    let path = place.join("rows.json");
    let path = path.to_str().expect("UTF-8");
    let made = succeeds(CHEAP.iter().copied().chain(["--json", path]));
    let shown = succeeds(["reproduce", "idlest-util-tiebreak", "--saved", path]);
    let rows = |text: &str| -> Vec<String> {
        let row = |l: &&str| l.starts_with("factor2");
        text.lines().filter(row).map(String::from).collect()
    };
    assert_eq!(rows(&made).len(), 2);
    assert_eq!(rows(&made), rows(&shown));
}

#[test]
fn the_report_is_one_page_with_both_tables() {
    let place = common::place("reproduce-report");
    let path = place.join("page.html");
    let words = ["--report", path.to_str().expect("UTF-8")];
    let table = succeeds(CHEAP.iter().copied().chain(words));
    assert!(table.contains("2 of 2 rows can tell"), "{table}");
    let page = std::fs::read_to_string(&path).expect("the page");
    for words in [
        "id=\"idlest-util-tiebreak\"",
        "new threads on the CPU of the published trace, of 4",
        "placement-nr-running",
        "in band",
        "fairground reproduce idlest-util-tiebreak",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));
    fails(
        ["reproduce", "--all", "--report", "no/such/dir/page.html"],
        &["cannot write"],
    );
}

#[test]
fn sensitivity_needs_a_place_for_its_table() {
    let place = common::place("reproduce-sensitivity");
    std::fs::write(place.join("calibration.md"), "# A page\n").expect("a page");
    let dir = place.to_str().expect("UTF-8");
    let words = ["--sensitivity", "--markdown", dir];
    fails(
        CHEAP.iter().copied().chain(words),
        &["calibration.md", "expected the lines"],
    );
}

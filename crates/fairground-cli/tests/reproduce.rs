//! `fairground reproduce`: names, rows, and the golden table of `--quick`.
//!
//! The golden table has all rows of `--quick`. That takes minutes of a release build, so the test
//! of the whole is ignored and .ci/run calls it by itself; rows that take seconds are always
//! looked at.

mod common;

use common::{fails, json, succeeds};
use fairground_report::reproduce::{Row, number};

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
        text.contains("8 9 10 11 with the change: 4 of 4, 4 of 4\n"),
        "{text}"
    );
    let version = concat!(
        "made by   fairground ",
        env!("CARGO_PKG_VERSION"),
        ", model `"
    );
    assert!(text.contains(version), "{text}");
    assert!(
        text.contains("redo      fairground reproduce idlest-util-tiebreak"),
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
        "level",
        "load",
        "machine",
        "made",
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
    assert_eq!(row["made"]["seeds"], serde_json::json!([1]));
    assert_eq!(row["made"]["profile"], "linux-5.8");
    assert_eq!(rows[1]["evidence"], "repeated");
}

/// Changes and runs of `--quick` that take seconds also when they are not optimised.
const CHEAP_ROWS: [(&str, &str); 4] = [
    ("ilb-skip-redundant", "ilb-8"),
    ("idlest-util-tiebreak", "placement*"),
    ("idlest-util-tiebreak", "cpu-8"),
    ("cfs-rq-reorder", "hackbench-spr"),
];

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/reproduce-quick.txt"
);

/// The rows of `--quick` of a change, or of all: one line each, and below it what it says.
fn quick_rows(change: &str, only: &str) -> Vec<String> {
    let words = ["reproduce", change, "--quick", "--only", only];
    let text = succeeds(words.into_iter().chain(["--no-progress", "--json", "-"]));
    let rows: Vec<Row> = serde_json::from_str(&text).expect("rows");
    let line = |row: &Row| {
        let percent = |n: Option<f64>| n.map_or("-".into(), |n| format!("{n:+.1} %"));
        let s = &row.simulated;
        format!(
            "{}; {}; {}; {}; {}\n  {}{}: {} -> {}, {}, {} .. {}",
            row.change,
            row.machine,
            row.workload,
            row.load,
            row.metric,
            row.class.name(),
            row.evidence
                .map_or(String::new(), |e| format!(" ({})", e.name())),
            number(s.base),
            number(s.patch),
            percent(s.change_pct),
            percent(s.ci95_pct[0]),
            percent(s.ci95_pct[1]),
        )
    };
    rows.iter().map(line).collect()
}

#[test]
fn cheap_rows_of_quick_are_those_of_the_golden_table() {
    let golden = std::fs::read_to_string(GOLDEN).expect("tests/data/reproduce-quick.txt");
    for (change, only) in CHEAP_ROWS {
        let rows = quick_rows(change, only);
        assert!(!rows.is_empty(), "{change} {only}");
        for row in rows {
            let known = golden.contains(&format!("{row}\n"));
            assert!(known, "not in the golden table ({HOW}):\n{row}");
        }
    }
}

/// The command that writes the golden table anew.
const HOW: &str = "UPDATE_REPRODUCE=1 cargo test --release -p fairground-cli --test reproduce -- \
                   --ignored";

#[test]
#[ignore = "minutes: cargo test --release -p fairground-cli --test reproduce -- --ignored"]
fn the_quick_table_is_golden() {
    let table = quick_rows("--all", "*").join("\n") + "\n";
    if std::env::var_os("UPDATE_REPRODUCE").is_some() {
        std::fs::write(GOLDEN, &table).expect("the golden table can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("tests/data/reproduce-quick.txt");
    for (new, old) in table.lines().zip(golden.lines()) {
        assert_eq!(new, old, "{HOW}");
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
    let unnamed = succeeds(["reproduce", "--saved", path]);
    let tables = |text: &str| text.split("\nmade by").next().map(String::from);
    assert_eq!(tables(&shown), tables(&unnamed));
    let rows = |text: &str| -> Vec<String> {
        let row = |l: &&str| l.starts_with("factor2");
        text.lines().filter(row).map(String::from).collect()
    };
    assert_eq!(rows(&made).len(), 2);
    assert_eq!(rows(&made), rows(&shown));
}

#[test]
fn a_file_of_quick_is_shown_whole() {
    let place = common::place("reproduce-saved-quick");
    let path = place.join("rows.json");
    let path = path.to_str().expect("UTF-8");
    // Its window is shorter than that of the whole run.
    let run = ["reproduce", "lazy-h-load", "--quick"];
    let made = succeeds(run.into_iter().chain(["--no-progress", "--json", path]));
    let shown = succeeds(["reproduce", "lazy-h-load", "--saved", path]);
    let rows = |text: &str| text.split("\nredo ").next().map(String::from);
    assert_eq!(rows(&made), rows(&shown));
    assert!(!shown.contains("not run"), "{shown}");
    // Rows that nobody asked for are named.
    let both = ["reproduce", "idlest-util-tiebreak", "--only", "cpu-8"];
    let other = place.join("other.json");
    let other = other.to_str().expect("UTF-8");
    succeeds(both.into_iter().chain(["--quick", "--json", other]));
    let words = ["--saved", path, "--saved", other];
    let output = common::fairground(both.into_iter().chain(words));
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let rows = json(&std::fs::read_to_string(path).expect("the rows"));
    let rows = rows.as_array().expect("an array").len();
    let note = format!("note: not shown: {rows} rows of lazy-h-load: not asked for\n");
    assert_eq!(errors, note);
}

#[test]
fn a_file_without_what_was_asked_for_is_refused() {
    let place = common::place("reproduce-saved-other");
    let path = place.join("rows.json");
    let path = path.to_str().expect("UTF-8");
    succeeds(CHEAP.iter().copied().chain(["--json", path]));
    let has = "there are rows of idlest-util-tiebreak (2 rows)";
    fails(
        ["reproduce", "lazy-h-load", "--saved", path],
        &["rows.json: no row is of", "(lazy-h-load)", has],
    );
    fails(
        ["reproduce", "--all", "--only", "cpu-8", "--saved", path],
        &[has, "--only"],
    );
    let compared = [
        "compare",
        "--patch",
        "ilb-skip-redundant",
        "--quiet",
        "--json",
        path,
    ];
    succeeds(common::words(&[&compared, common::SMALL, common::SHORT]));
    fails(
        ["reproduce", "--all", "--saved", path],
        &[
            "rows.json: this is a result of `compare`",
            "`fairground reproduce --json`",
        ],
    );
    std::fs::write(path, "{}").expect("a file");
    fails(
        ["reproduce", "--all", "--saved", path],
        &["rows.json: not what `fairground reproduce --json` writes"],
    );
    std::fs::write(path, "[]").expect("a file");
    fails(
        ["reproduce", "--all", "--saved", path],
        &["rows.json: there are no rows"],
    );
}

#[test]
fn rows_without_a_run_are_named() {
    let place = common::place("reproduce-saved-unknown");
    let path = place.join("rows.json");
    let path = path.to_str().expect("UTF-8");
    succeeds(CHEAP.iter().copied().chain(["--json", path]));
    let mut rows = json(&std::fs::read_to_string(path).expect("the rows"));
    rows[1]["load"] = "5 threads".into();
    std::fs::write(path, rows.to_string()).expect("a file");
    let output = common::fairground(["reproduce", "--all", "--saved", path]);
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let parts = ["note: not shown: 1 row of", "5 threads", "no run of this"];
    assert!(parts.iter().all(|part| errors.contains(part)), "{errors}");
}

#[test]
fn two_outputs_do_not_go_to_one_place() {
    let place = common::place("reproduce-one-place");
    let path = |name: &str| place.join(name).to_str().expect("UTF-8").to_string();
    let (dir, same, page) = (path("."), path("zz"), path("reproduction.md"));
    let refused = |more: &[&str], parts: &[&str]| {
        fails(CHEAP.iter().copied().chain(more.iter().copied()), parts);
    };
    refused(
        &["--json", &same, "--report", &same],
        &["--json and --report both name", "zz"],
    );
    refused(
        &["--json", "-", "--report", "-"],
        &["--json and --report cannot both go to standard output"],
    );
    refused(
        &["--json", &page, "--markdown", &dir],
        &["--json and --markdown both name", "reproduction.md"],
    );
    assert_eq!(std::fs::read_dir(&place).expect("the directory").count(), 0);
}

#[test]
fn the_page_says_which_command_made_it() {
    let place = common::place("reproduce-page-command");
    let dir = place.to_str().expect("UTF-8");
    let words = ["--no-progress", "--jobs", "1", "--markdown", dir];
    succeeds(CHEAP.iter().copied().chain(words));
    let page = std::fs::read_to_string(place.join("reproduction.md")).expect("the page");
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let made = "fairground reproduce idlest-util-tiebreak --only 'placement*' --markdown";
    assert!(
        flat.contains(&format!("Made by `{made} {dir}`; do not edit.")),
        "{page}"
    );
    assert!(
        page.starts_with("# A published change, reproduced\n"),
        "{page}"
    );
    assert!(
        !page.contains("--all") && !page.contains("after 25 minutes"),
        "{page}"
    );
}

#[test]
fn rows_of_another_model_are_refused() {
    let place = common::place("reproduce-other-model");
    let path = place.join("rows.json");
    let path = path.to_str().expect("UTF-8");
    succeeds(CHEAP.iter().copied().chain(["--json", path]));
    let rows = std::fs::read_to_string(path).expect("the rows");
    let model = json(&rows)[1]["made"]["model"].clone();
    let model = model.as_str().expect("a hash");
    let (head, tail) = rows.rsplit_once(model).expect("the hash of the second row");
    std::fs::write(path, format!("{head}0123456789abcdef{tail}")).expect("a file");
    let other = format!("model 0123456789abcdef, this program has {model}");
    let words = ["reproduce", "idlest-util-tiebreak", "--saved", path];
    fails(words, &["rows.json: row 2:", &other, "simulate it again"]);
    let mut without = json(&rows);
    without[0].as_object_mut().expect("a row").remove("made");
    std::fs::write(path, without.to_string()).expect("a file");
    fails(words, &["rows.json: row 1:", "does not say which model"]);
}

#[test]
fn a_run_that_was_stopped_goes_on() {
    let place = common::place("reproduce-keep");
    let dir = place.to_str().expect("UTF-8");
    let words = |more: [&'static str; 2]| {
        let run = [
            "reproduce",
            "idlest-util-tiebreak",
            "--quick",
            "--only",
            "cpu-8",
        ];
        let keep = ["--no-progress", "--keep", dir];
        succeeds(
            run.into_iter()
                .chain(keep)
                .chain(more)
                .filter(|w| !w.is_empty()),
        )
    };
    let nothing = words(["--within", "0s"]);
    assert!(nothing.contains("not run  cpu-8 (1 rows)"), "{nothing}");
    let files = || -> Vec<_> {
        let entries = std::fs::read_dir(&place).expect("the directory");
        entries.map(|e| e.expect("an entry").path()).collect()
    };
    assert!(files().is_empty());
    let made = words(["", ""]);
    assert_eq!(files().len(), 2, "base and patch");
    // Nothing is simulated any more, so no time is enough.
    assert_eq!(words(["--within", "0s"]), made);
    std::fs::write(&files()[0], "{").expect("a broken file");
    let broken = files()[0]
        .file_name()
        .map(|n| n.to_string_lossy().into_owned());
    let run = [
        "reproduce",
        "idlest-util-tiebreak",
        "--quick",
        "--only",
        "cpu-8",
    ];
    fails(
        run.into_iter().chain(["--keep", dir]),
        &[&broken.expect("a name"), "EOF"],
    );
}

#[test]
fn the_report_is_one_page_with_both_tables() {
    let place = common::place("reproduce-report");
    let path = place.join("page.html");
    let words = ["--report", path.to_str().expect("UTF-8")];
    let table = succeeds(CHEAP.iter().copied().chain(words));
    assert!(table.contains("1 of 1 rows can tell"), "{table}");
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

#[test]
fn sensitivity_says_which_verdicts_stay() {
    let place = common::place("reproduce-sensitivity-table");
    let page = place.join("calibration.md");
    let (begin, end) = (
        "<!-- made by `fairground reproduce --sensitivity --markdown docs` -->\n",
        "<!-- end -->\n",
    );
    std::fs::write(&page, format!("above\n{begin}old\n{end}below\n")).expect("a page");
    let words = [
        "reproduce",
        "idlest-util-tiebreak",
        "--sensitivity",
        "--no-progress",
    ];
    let markdown = ["--markdown", place.to_str().expect("UTF-8")];
    let table = succeeds(words.into_iter().chain(markdown));
    let row = table
        .lines()
        .find(|l| l.contains("headline: the placement trace exact"));
    let row = row.expect("the headline");
    assert!(row.contains("| in band |"), "{row}");
    assert!(!row.contains("not run"), "{row}");
    let page = std::fs::read_to_string(&page).expect("the page");
    assert_eq!(page, format!("above\n{begin}{table}{end}below\n"));
}

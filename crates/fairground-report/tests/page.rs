//! The report page without a browser: its tables and what is embedded have the numbers of the
//! result.

mod samples;

use std::collections::BTreeMap;

use fairground_report::html::{Samples, compare_page, run_page};
use fairground_report::{Compare, LineTraffic, Run, RunResult, Setup, Style, Variant, Work};

const HOSTILE: &str = "x --name '</script><script>alert(1)</script>' & \"<b>\"";

fn setup() -> Setup {
    let mut setup = samples::setup();
    setup.workload[1] = HOSTILE.into();
    setup.redo.command = format!("fairground compare -- hackbench {HOSTILE}");
    setup.redo.not_modelled = vec!["power".into()];
    setup
}

fn variant(decision: &str, scale: f64) -> Variant {
    let run = |seed: u64| {
        let mut run = Run::new(seed);
        let noise = 1.0 + 0.013 * (seed * seed % 7) as f64;
        run.set_metric("hackbench.time_s", 1.234_567 * scale * noise);
        run.set_metric("wakeups", 123_456.7 * scale);
        run.set_metric("migrations", f64::NAN);
        run.add_function("update_tg_load_avg", (3e5 * scale) as u64, 500, 1_000_000);
        run.lines = vec![LineTraffic {
            object: "task_group".into(),
            field: "load_avg".into(),
            reads: 10,
            transfers: (100.0 * scale) as u64,
            wait_ns: 77,
            ..LineTraffic::default()
        }];
        run
    };
    Variant {
        decisions: BTreeMap::from([("tg_load_avg".to_string(), decision.to_string())]),
        runs: (1..=3).map(run).collect(),
        ..Variant::default()
    }
}

fn compared() -> Compare {
    Compare::new(setup(), variant("on-change", 2.0), variant("limited", 1.0))
}

/// Text between two marks, the first time.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("no {from}")) + from.len();
    let end = text[start..].find(to).unwrap_or_else(|| panic!("no {to}"));
    &text[start..start + end]
}

fn embedded(page: &str, id: &str) -> serde_json::Value {
    let mark = format!("<script type=\"application/json\" id=\"{id}\">");
    serde_json::from_str(between(page, &mark, "</script>")).unwrap()
}

/// Cells of a table: the value and what is shown.
fn cells(page: &str, table: &str) -> Vec<Vec<(Option<f64>, String)>> {
    let body = between(page, &format!("<table id=\"{table}\">"), "</table>");
    let rows = between(body, "<tbody>", "</tbody>").split("<tr").skip(1);
    let cell = |cell: &str| {
        let (head, rest) = cell.split_once('>').unwrap();
        let value = head.contains("data-value");
        let value = value.then(|| between(head, "data-value=\"", "\"").parse().unwrap());
        (value, rest.split("</td>").next().unwrap().to_string())
    };
    rows.map(|row| row.split("<td").skip(1).map(cell).collect())
        .collect()
}

#[test]
fn the_tables_have_the_numbers_of_the_result() {
    let result = compared();
    let page = compare_page(&result, &[], Style::default()).unwrap();
    let rows = cells(&page, "metrics-table");
    assert_eq!(rows.len(), result.comparison.len());
    for (row, c) in rows.iter().zip(&result.comparison) {
        assert_eq!(row[0].1, c.metric);
        let numbers = [c.base, c.base_sd, c.patch, c.patch_sd];
        for (cell, number) in row[1..5].iter().zip(numbers) {
            assert_eq!(cell.0, number, "{}", c.metric);
        }
        assert_eq!(row[6].0, c.change_pct);
        assert_eq!(row[8].1, c.word());
    }
    let time = &rows[0];
    assert_eq!(
        (time[1].1.as_str(), time[6].1.as_str()),
        ("2.544", "-50.00%")
    );
}

/// The verdict on a total stands in the row of what it is on.
#[test]
fn totals_of_a_given_time_have_a_row_per_unit_of_work() {
    let side = |name: &str, done: f64| {
        let mut side = variant(name, 1.0);
        for run in &mut side.runs {
            run.set_metric("switches", 10.0 * done + run.seed as f64);
            run.work = Some(Work {
                unit: Some("turn".into()),
                done: Some(done),
            });
        }
        side
    };
    let result = Compare::new(setup(), side("on-change", 100.0), side("limited", 200.0));
    let page = compare_page(&result, &[], Style::default()).unwrap();
    let rows = cells(&page, "metrics-table");
    let at = rows.iter().position(|row| row[0].1 == "switches").unwrap();
    let found = result.comparison.iter().find(|c| c.metric == "switches");
    let per = found.unwrap().per.as_ref().unwrap();
    assert_eq!(rows[at][6].0, found.unwrap().change_pct);
    assert_eq!(rows[at][8].1, "");
    let below = &rows[at + 1];
    assert_eq!(
        (below[0].1.as_str(), below[6].0),
        ("per turn", per.change_pct)
    );
    assert_eq!(
        (below[1].0, below[8].1.as_str()),
        (per.base, found.unwrap().word())
    );
}

#[test]
fn what_is_shown_is_the_value_rounded() {
    let result = RunResult::new(setup(), variant("on-change", 2.0));
    let page = run_page(&result, &[], Style::default()).unwrap();
    let mut shown = 0;
    for table in ["metrics-table", "lines-table", "functions-table"] {
        for (value, text) in cells(&page, table).into_iter().flatten() {
            let Some(value) = value else { continue };
            let factor = match text.trim_end_matches(" %").chars().last() {
                Some('k') => 1e3,
                Some('M') => 1e6,
                _ => 1.0,
            };
            let bare = text.trim_end_matches(" %").trim_end_matches(['k', 'M']);
            let Ok(number) = bare.parse::<f64>() else {
                panic!("{table}: {text} is no number");
            };
            // The deviation is shown in percent of the mean.
            if table != "metrics-table" || !text.ends_with('%') {
                let off = (number * factor - value).abs();
                assert!(off <= 1e-3 * value.abs() + 0.051, "{text} for {value}");
                shown += 1;
            }
        }
    }
    assert!(shown >= 10, "{shown}");
}

#[test]
fn the_result_is_embedded_as_it_is_written() {
    let result = compared();
    let page = compare_page(&result, &[], Style::default()).unwrap();
    assert_eq!(
        embedded(&page, "result"),
        serde_json::to_value(&result).unwrap()
    );
    assert_eq!(embedded(&page, "samples"), serde_json::json!([]));
}

#[test]
fn words_of_the_user_are_words() {
    let page = compare_page(&compared(), &[], Style::default()).unwrap();
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("\"<b>\""));
    assert_eq!(page.matches("<script").count(), 3);
    assert!(page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn nothing_is_fetched() {
    let page = compare_page(&compared(), &[], Style::default()).unwrap();
    for word in [
        "src=",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "//cdn",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    let addresses = page.matches("http://").count() + page.matches("https://").count();
    let names = page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(addresses, names, "an address that is no name of a format");
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn sections_without_data_are_left_out() {
    let page = compare_page(&compared(), &[], Style::default()).unwrap();
    for id in ["timeline", "heat", "latency"] {
        assert!(!page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    let side = Samples {
        variant: "base".into(),
        cpus: 1,
        latency: vec![(100, 3)],
        ..Samples::default()
    };
    let page = compare_page(&compared(), &[side], Style::default()).unwrap();
    for id in ["timeline", "heat", "latency", "lines", "functions", "redo"] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
    }
}

#[test]
fn the_same_result_is_the_same_page() {
    let page = || compare_page(&compared(), &[], Style::default()).unwrap();
    assert_eq!(page(), page());
}

//! Results as users meet them: JSON, schema, text, CSV, saved files, `--fail-on`.

mod samples;
mod schema;

use std::collections::BTreeMap;

use fairground_report::*;
use samples::*;
use schema::fits;
use serde_json::Value;

/// What survives a cut stands first, in whatever order the lines came.
#[test]
fn lines_are_sorted_by_waiting_then_traffic_then_name() {
    let line = |field: &str, wait_ns, transfers| LineTraffic {
        field: field.into(),
        transfers,
        wait_ns,
        ..LineTraffic::default()
    };
    let mut variant = variant("on-change", 1, 1.0);
    variant.runs[0].lines = vec![
        line("d", 5, 1),
        line("c", 5, 1),
        line("b", 5, 9),
        line("a", 7, 0),
    ];
    let result = RunResult::new(setup(), variant);
    let lines = &result.variants[0].runs[0].lines;
    let fields: Vec<&str> = lines.iter().map(|l| l.field.as_str()).collect();
    assert_eq!(fields, ["a", "b", "c", "d"]);
}

#[test]
fn verdicts_follow_interval_and_direction() {
    let compare = sample(5);
    let time = row(&compare, "hackbench.time_s");
    assert_eq!(
        (time.verdict, time.method),
        (Verdict::Better, Method::PairedT)
    );
    assert!((time.change_pct.unwrap() + 50.0).abs() < 1e-9);
    let migrations = row(&compare, "migrations");
    assert_eq!(
        (migrations.verdict, migrations.differs),
        (Verdict::Noise, true)
    );
    let wakeups = row(&compare, "wakeups");
    assert_eq!((wakeups.verdict, wakeups.differs), (Verdict::Noise, false));
    assert_eq!(
        (wakeups.change_pct, wakeups.ci95_pct),
        (Some(0.0), [Some(0.0), Some(0.0)])
    );
    assert_eq!(compare.comparison[0].metric, "hackbench.time_s");
    assert!(compare.notes.is_empty(), "{:?}", compare.notes);
}

#[test]
fn one_seed_has_no_verdict_and_says_so() {
    let compare = sample(1);
    let time = row(&compare, "hackbench.time_s");
    assert_eq!(
        (time.verdict, time.ci95_pct),
        (Verdict::Noise, [None, None])
    );
    assert!(
        said(&compare.notes)[0].contains("no interval"),
        "{:?}",
        compare.notes
    );
}

/// The interval of `noise` contains 0; where there is none, nothing was compared.
#[test]
fn without_an_interval_there_is_no_word_of_noise() {
    let words = |base: &Variant, patch: &Variant, metric: &str| {
        let compare = Compare::new(setup(), base.clone(), patch.clone());
        let row = row(&compare, metric);
        assert_eq!(row.verdict, Verdict::Noise, "the JSON knows three verdicts");
        let text = compare_text(&compare, Style::default());
        let line = text.lines().find(|line| line.starts_with(metric));
        let coloured = compare_text(
            &compare,
            Style {
                colour: true,
                ..Style::default()
            },
        );
        let end = format!("\x1b[2m{}\x1b[0m", row.word());
        assert!(coloured.contains(&end), "{coloured}");
        assert!(
            line.is_some_and(|line| line.ends_with(row.word())),
            "{text}"
        );
        row.word()
    };
    let (base, patch) = (variant("a", 3, 2.0), variant("b", 3, 1.0));
    assert_eq!(words(&base, &patch, "wakeups"), "noise");
    let without = |variant: &Variant, from: usize| {
        let mut variant = variant.clone();
        for run in &mut variant.runs[from..] {
            run.metrics.insert("hackbench.time_s".into(), None);
        }
        variant
    };
    let time = "hackbench.time_s";
    for (base, patch, word) in [
        (variant("a", 1, 2.0), variant("b", 1, 1.0), "-"),
        // Too few pairs, and runs that are left out for a reason.
        (base.clone(), without(&patch, 2), "-"),
        (base.clone(), without(&patch, 0), "no value"),
        (without(&base, 0), patch.clone(), "no value"),
        (without(&base, 0), without(&patch, 0), "no value"),
    ] {
        assert_eq!(words(&base, &patch, time), word);
    }
}

#[test]
fn different_seeds_are_independent_samples() {
    let mut patch = variant("rate-limited", 5, 1.0);
    patch.runs.iter_mut().for_each(|run| run.seed += 100);
    let compare = Compare::new(setup(), variant("on-change", 5, 2.0), patch);
    assert_eq!(row(&compare, "hackbench.time_s").method, Method::WelchT);
    assert_eq!(row(&compare, "hackbench.time_s").verdict, Verdict::Better);
    assert!(
        said(&compare.notes)[0].contains("Welch"),
        "{:?}",
        compare.notes
    );
}

#[test]
fn a_seed_counts_once() {
    let mut base = variant("on-change", 2, 2.0);
    base.runs.extend([run(1, 2.0), run(2, 2.0)]);
    let twice = Compare::new(setup(), base, variant("rate-limited", 2, 1.0));
    assert_eq!(twice.comparison, sample(2).comparison);
    let once = said(&twice.notes);
    let once = once.iter().filter(|note| note.contains("it counts once"));
    let once = once.count();
    assert_eq!(once, 2, "{:?}", twice.notes);
}

#[test]
fn a_number_that_is_not_finite_is_null_and_noted() {
    let mut patch = variant("rate-limited", 3, 1.0);
    patch.runs[1].set_metric("hackbench.time_s", f64::NAN);
    patch.runs[2]
        .metrics
        .insert("wakeups".into(), Some(f64::INFINITY));
    patch.runs[0].add_function("division_by_zero", 0, 0, 0);
    let compare = Compare::new(setup(), variant("on-change", 3, 2.0), patch);
    assert_eq!(
        compare.variants[1].runs[1].metrics["hackbench.time_s"],
        None
    );
    assert_eq!(compare.notes.len(), 4, "{:?}", compare.notes);
    assert!(said(&compare.notes)[0].contains("in 1 of 3 runs"));
    let text =
        json(&compare) + &compare_text(&compare, Style::default()) + &csv_of_compare(&compare);
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    assert!(
        words.into_iter().all(|word| word != "nan" && word != "inf"),
        "{text}"
    );
    assert_eq!(
        Saved::parse(&json(&compare)).unwrap(),
        Saved::Compare(compare)
    );
}

#[test]
fn wake_ups_that_no_percentile_has_are_noted_where_they_could_matter() {
    let notes = |waiting: u64, longest_ns: u64| {
        let mut base = variant("on-change", 2, 1.0);
        for run in &mut base.runs {
            run.set_metric("wakeup_latency_us.p99", 50.0);
        }
        base.runs[1].still_waiting = Some(StillWaiting {
            waiting,
            wakeups: 3000,
            longest_ns,
        });
        let result = RunResult::new(setup(), base);
        let schema: Value = serde_json::from_str(&run_schema()).unwrap();
        let value = serde_json::to_value(&result).unwrap();
        fits(&schema, &schema, &value).unwrap();
        assert!(
            value["variants"][0]["runs"][0]
                .get("still_waiting")
                .is_none()
        );
        assert!(
            value["variants"][0]["runs"][1]
                .get("still_waiting")
                .is_some()
        );
        let told = run_text(&result, Style::default()).contains("lacks");
        assert_eq!(told, !result.notes.is_empty());
        said(&result.notes).concat()
    };
    assert_eq!(notes(300, 50_000), "", "no longer than the 99th percentile");
    assert!(notes(3, 50_001).contains("lacks 3 of 3000 wake-ups in 1 of 2 runs"));
    assert!(notes(1, 12_345_678).contains("the longest for 12.346 ms"));
}

#[test]
fn json_has_the_promised_keys_in_their_order() {
    let text = json(&sample(2));
    let mut at = 0;
    for key in [
        "fairground",
        "machine",
        "id",
        "hash",
        "profile",
        "workload",
        "variants",
        "name",
        "decisions",
        "runs",
        "seed",
        "metrics",
        "functions",
        "self_ns",
        "share",
        "calls",
        "lines",
        "object",
        "field",
        "reads",
        "writes",
        "rmws",
        "transfers",
        "wait_ns",
        "comparison",
        "metric",
        "unit",
        "base",
        "patch",
        "change_pct",
        "ci95_pct",
        "better",
        "verdict",
    ] {
        let found = text[at..].find(&format!("\"{key}\":"));
        at += found.unwrap_or_else(|| panic!("`{key}` is missing or out of order"));
    }
    assert_eq!(text, json(&sample(2)), "same input, same bytes");
}

#[test]
fn csv_has_a_line_per_run_and_a_column_per_metric() {
    let text = csv_of_compare(&sample(2));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0].starts_with("variant,seed,hackbench.time_s,wakeup_latency_us.p50,"));
    assert!(lines[1].starts_with("base,1,2.02,0,"));
    assert!(lines[4].starts_with("patch,2,1.02,0,"));
    let columns = lines.iter().map(|line| line.split(',').count());
    assert!(columns.into_iter().all(|n| n == ALWAYS.len() + 3));
}

/// `FAIRGROUND_BLESS=1` rewrites the committed file.
fn golden(path: &str, text: &str) {
    let file = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("FAIRGROUND_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        committed, text,
        "{path} is stale; FAIRGROUND_BLESS=1 rewrites it"
    );
}

#[test]
fn text_is_plain_ascii_under_100_columns() {
    let compare = compare_text(&sample(5), Style::default());
    let run = RunResult::new(setup(), variant("on-change", 5, 2.0));
    let run = run_text(&run, Style::default());
    for line in compare.lines().chain(run.lines()) {
        assert!(line.is_ascii() && line.len() < 100, "{line}");
        assert_eq!(line, line.trim_end());
    }
    golden("tests/golden/compare.txt", &compare);
    golden("tests/golden/run.txt", &run);
}

/// Long names, large numbers, wide intervals, one seed.
#[test]
fn text_stays_narrow_and_total() {
    let long = "perf_bench_pipe.usecs_per_op";
    let wide = |scale: f64| {
        let mut variant = variant("on-change", 4, 1.0);
        for run in &mut variant.runs {
            run.set_metric(long, scale * 12_345.6 * run.seed as f64);
            run.set_metric("line_transfers", scale * 9.87e9 * (run.seed % 3) as f64);
        }
        variant
    };
    let text = compare_text(
        &Compare::new(setup(), wide(1.0), wide(97.5)),
        Style::default(),
    );
    assert!(text.lines().all(|line| line.len() < 100), "{text}");
    let text = compare_text(&sample(1), Style::default());
    let time = text
        .lines()
        .find(|line| line.starts_with("hackbench.time_s"))
        .unwrap();
    let words: Vec<&str> = time.split_whitespace().collect();
    assert_eq!(
        words,
        ["hackbench.time_s", "2.020", "1.010", "-50.00%", "-", "-"]
    );
    let none = Variant {
        runs: Vec::new(),
        ..variant("on-change", 0, 1.0)
    };
    let empty = Compare::new(setup(), none.clone(), none);
    assert!(empty.comparison.is_empty());
    assert!(compare_text(&empty, Style::default()).contains("redo"));
}

#[test]
fn colour_only_adds_colour() {
    let plain = compare_text(&sample(5), Style::default());
    let colour = compare_text(
        &sample(5),
        Style {
            colour: true,
            ..Style::default()
        },
    );
    assert!(colour.contains("\x1b[32mbetter\x1b[0m"));
    let mut stripped = colour;
    for code in ["\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    golden("../../schemas/run.schema.json", &run_schema());
    golden("../../schemas/compare.schema.json", &compare_schema());
    golden("../../schemas/sweep.schema.json", &sweep_schema());
    golden("../../schemas/signs.schema.json", &signs_schema());
    golden("../../schemas/replay.schema.json", &replay_schema());
    golden(
        "../../schemas/reproduce.schema.json",
        &fairground_report::reproduce::reproduce_schema(),
    );
}

#[test]
fn results_fit_their_schema_and_broken_ones_do_not() {
    let schema: Value = serde_json::from_str(&compare_schema()).unwrap();
    let good: Value = serde_json::from_str(&json(&sample(1))).unwrap();
    fits(&schema, &schema, &good).unwrap();
    let run = RunResult::new(setup(), variant("on-change", 2, 2.0));
    let run_schema: Value = serde_json::from_str(&run_schema()).unwrap();
    fits(
        &run_schema,
        &run_schema,
        &serde_json::to_value(run).unwrap(),
    )
    .unwrap();

    let broken = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert!(fits(&schema, &schema, &bad).is_err(), "{pointer}");
    };
    broken("/comparison/0/verdict", "maybe".into());
    broken("/comparison/0/base", "2.0".into());
    broken("/comparison/0/ci95_pct", Value::Array(vec![1.into()]));
    broken("/variants/0/runs/0/seed", (-1).into());
    broken("/variants/0/runs/0/metrics", Value::Array(Vec::new()));
    broken(
        "/machine",
        Value::Object(BTreeMap::<String, Value>::new().into_iter().collect()),
    );
}

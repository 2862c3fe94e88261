//! Results as users meet them: JSON, schema, text, CSV, saved files, `--fail-on`.

mod schema;

use std::collections::BTreeMap;

use fairground_report::*;
use schema::fits;
use serde_json::Value;

/// A patch that halves the time, moves `migrations` (no direction) and leaves `wakeups` alone.
fn sample(seeds: u64) -> Compare {
    Compare::new(
        setup(),
        variant("on-change", seeds, 2.0),
        variant("rate-limited", seeds, 1.0),
    )
}

fn setup() -> Setup {
    let argv = [
        "fg",
        "compare",
        "--jobs",
        "2",
        "--seeds",
        "5",
        "--",
        "hackbench",
        "-g",
        "16",
    ];
    let assumed = AssumedFigure {
        key: "cache[2].latency".into(),
        value: "3.5 ns".into(),
    };
    Setup {
        fairground: "0.1.0".into(),
        machine: MachineId {
            id: "spr-8480-2s".into(),
            hash: "0123456789abcdef".into(),
            ..MachineId::default()
        },
        profile: "linux-6.18".into(),
        workload: ["hackbench", "-g", "16"].map(String::from).to_vec(),
        workload_metrics: vec![MetricInfo {
            name: "hackbench.time_s".into(),
            unit: "s".into(),
            better: Some(Better::Lower),
            description: "What hackbench prints as Time.".into(),
        }],
        redo: Redo::new(&argv.map(String::from), vec![1, 2, 3], vec![assumed]),
    }
}

fn variant(tg_load_avg: &str, seeds: u64, scale: f64) -> Variant {
    let decisions = [("hz", "1000"), ("tg_load_avg", tg_load_avg)];
    Variant {
        decisions: decisions
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into(),
        runs: (1..=seeds).map(|seed| run(seed, scale)).collect(),
        ..Variant::default()
    }
}

fn run(seed: u64, scale: f64) -> Run {
    let mut run = Run::new(seed);
    for metric in ALWAYS {
        run.set_metric(metric.name, 0.0);
    }
    run.set_metric("hackbench.time_s", scale * (1.0 + 0.01 * seed as f64));
    run.set_metric("migrations", 1000.0 * scale + seed as f64);
    run.set_metric("wakeups", 123_456.0);
    let update_ns = (300_000.0 * scale) as u64;
    run.add_function("update_tg_load_avg", update_ns, 50_000, 1_000_000);
    run.add_function("pick_next_task", 40_000, 90_000, 1_000_000);
    run.add_llc_misses("pick_next_task", 1200 + seed);
    let line = |object: &str, field: &str, wait_ns| LineTraffic {
        object: object.into(),
        field: field.into(),
        reads: 10_000,
        writes: 20,
        rmws: 30_000,
        transfers: 25_000,
        wait_ns,
        ..LineTraffic::default()
    };
    run.lines = vec![
        line("rq", "lock", 1_000),
        line("task_group", "load_avg", update_ns),
    ];
    run
}

fn row<'a>(compare: &'a Compare, metric: &str) -> &'a Comparison {
    compare
        .comparison
        .iter()
        .find(|row| row.metric == metric)
        .unwrap()
}

fn json(compare: &Compare) -> String {
    serde_json::to_string_pretty(compare).unwrap()
}

/// The sentences of notes.
fn said(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}

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
fn saved_results_come_back_as_they_were() {
    let compare = sample(3);
    assert_eq!(
        Saved::parse(&json(&compare)).unwrap(),
        Saved::Compare(compare)
    );
    let run = RunResult::new(setup(), variant("on-change", 3, 2.0));
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(Saved::parse(&text).unwrap(), Saved::Run(run));
}

#[test]
fn two_saved_results_compare_like_two_variants() {
    let compare = sample(4);
    let saved = || Saved::parse(&json(&compare)).unwrap();
    assert_eq!(
        compare_saved(saved(), saved()).comparison,
        compare.comparison
    );

    let base = RunResult::new(setup(), variant("on-change", 4, 2.0));
    let other = Setup {
        profile: "linux-6.5".into(),
        ..setup()
    };
    let patch = RunResult::new(other, variant("rate-limited", 4, 1.0));
    let both = compare_saved(Saved::Run(base), Saved::Run(patch));
    assert_eq!(both.comparison, compare.comparison);
    assert_eq!(
        said(&both.notes),
        ["the results differ in profile: base linux-6.18, patch linux-6.5"]
    );
    assert_eq!(both.profile, "linux-6.5 (base: linux-6.18)");
}

#[test]
fn two_saved_comparisons_say_what_of_them_is_left_out() {
    let (one, two) = (sample(3), sample(4));
    let saved = |c: &Compare| Saved::parse(&json(c)).unwrap();
    let mixed = compare_saved(saved(&one), saved(&two));
    let says = |c: &Compare, words: &str| said(&c.notes).iter().any(|note| note.contains(words));
    assert!(says(
        &mixed,
        "the first result is a comparison: its base is taken"
    ));
    assert!(says(
        &mixed,
        "the second result is a comparison: its patch is taken"
    ));
    let same = compare_saved(saved(&one), saved(&one));
    assert!(!says(&same, "is a comparison"), "{:?}", same.notes);
}

#[test]
fn results_of_two_machines_name_both() {
    let other = Setup {
        machine: MachineId {
            id: "another".into(),
            hash: "0123456789abcdef".into(),
            ..MachineId::default()
        },
        ..setup()
    };
    let base = RunResult::new(setup(), variant("on-change", 2, 2.0));
    let patch = RunResult::new(other, variant("rate-limited", 2, 1.0));
    let own = base.machine.id.clone();
    let both = compare_saved(Saved::Run(base), Saved::Run(patch));
    let text = compare_text(&both, Style::default());
    let named = format!("machine   another (0123456789ab) (base: {own} (");
    assert!(text.starts_with(&named), "{text}");
    // Saved and held against itself, each side is of its own machine.
    let saved = || Saved::parse(&json(&both)).unwrap();
    assert_eq!(
        compare_saved(saved(), saved()).patch_machine,
        both.patch_machine
    );
}

#[test]
fn results_of_other_commands_are_named() {
    for (text, command) in [
        ("{\"places\": []}", "`compare` on several"),
        ("{\"points\": []}", "`sweep`"),
        ("[{\"published\": {}}]", "`reproduce`"),
        ("[{\"tolerance\": 1}]", "`truth`"),
    ] {
        let refused = Saved::parse(text).unwrap_err().to_string();
        assert!(refused.contains(command), "{refused}");
    }
}

#[test]
fn a_file_that_is_no_result_is_refused_with_the_place() {
    let error = |text: &str| Saved::parse(text).unwrap_err().to_string();
    assert!(error("").starts_with("not JSON: "));
    let whole = json(&sample(2));
    let cut = error(&whole[..whole.len() / 2]);
    assert!(cut.starts_with("cut off: the JSON ends at line "), "{cut}");
    let keys = "`fairground`, `machine`, `profile`, `workload`, `variants`";
    let other =
        |found: &str| format!("JSON, but no result of fairground: expected {keys}; found {found}");
    assert_eq!(error("[1]"), other("a list of 1"));
    assert_eq!(error("{}"), other("none"));
    assert_eq!(error("7"), other("`7`"));
    assert_eq!(
        error(r#"{"command": "hyperfine", "profile": "x", "variant": []}"#),
        other("`command`, `profile`, `variant` (is `variant` meant to be `variants`?)")
    );

    let without = |pointer: &str, key: &str| {
        let mut value: Value = serde_json::from_str(&json(&sample(2))).unwrap();
        value
            .pointer_mut(pointer)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key)
            .unwrap();
        error(&value.to_string())
    };
    assert_eq!(
        without("/variants/1/runs/0", "seed"),
        "not a fairground result: missing field `seed` at `variants[1].runs[0]`"
    );
    assert_eq!(
        without("/comparison/2", "better"),
        "not a fairground result: missing field `better` at `comparison[2]`"
    );
    let mut value: Value = serde_json::from_str(&json(&sample(2))).unwrap();
    value["variants"][0]["runs"] = Value::Array(Vec::new());
    assert!(error(&value.to_string()).ends_with("at least one run at `variants[0].runs`"));
}

#[test]
fn fail_on_is_parsed_and_decided() {
    let compare = sample(5);
    let met = |text: &str| {
        FailOn::parse(text)
            .unwrap()
            .evaluate(&compare)
            .map(|m| m.is_some())
    };
    assert_eq!(met("hackbench.time_s<-49%"), Ok(true));
    assert_eq!(met("hackbench.time_s < -51 %"), Ok(false));
    assert_eq!(met("hackbench.time_s>5%"), Ok(false));
    assert_eq!(met("hackbench.time_s:better"), Ok(true));
    assert_eq!(met("hackbench.time_s:worse"), Ok(false));
    let error = met("migrations:worse").unwrap_err();
    assert!(matches!(error, FailOnError::NoDirection(_)), "{error}");
    let one = FailOn::parse("hackbench.time_s:worse").unwrap();
    let error = one.evaluate(&sample(1)).unwrap_err();
    assert!(matches!(error, FailOnError::OneSeed(_)), "{error}");
    let error = met("hackbench.time>5%").unwrap_err().to_string();
    assert!(
        error.ends_with("did you mean `hackbench.time_s`?"),
        "{error}"
    );
    for text in [
        "",
        ">5%",
        "a>b",
        "a>5parsec",
        "a>%",
        "a>nan%",
        "a>inf%",
        "a:bad",
        "a=5%",
        "worse",
    ] {
        assert!(
            matches!(FailOn::parse(text), Err(FailOnError::Syntax(_))),
            "{text}"
        );
    }
}

#[test]
fn fail_on_sees_a_change_from_zero() {
    let mut patch = variant("rate-limited", 3, 1.0);
    patch
        .runs
        .iter_mut()
        .for_each(|run| run.set_metric("ipis", 7.0));
    let compare = Compare::new(setup(), variant("on-change", 3, 2.0), patch);
    assert_eq!(row(&compare, "ipis").change_pct, None);
    assert!(
        said(&compare.notes)[0].contains("`ipis` is 0 in base"),
        "{:?}",
        compare.notes
    );
    assert!(
        FailOn::parse("ipis>5%")
            .unwrap()
            .evaluate(&compare)
            .unwrap()
            .is_some_and(|met| met.reason == "ipis changed from 0 to 7.000: above 5%")
    );
    assert!(
        FailOn::parse("ipis<5%")
            .unwrap()
            .evaluate(&compare)
            .unwrap()
            .is_none()
    );
}

/// What stands in one table: runs of a given time, twice the work in patch at a fifth less each.
fn timed() -> Compare {
    let side = |name: &str, factor: f64, each: f64| {
        let mut side = variant(name, 4, 1.0);
        for run in &mut side.runs {
            let done = factor * (1000.0 + run.seed as f64);
            run.work = Some(Work {
                unit: Some("transaction".into()),
                done: Some(done),
            });
            let each = each * (1.0 + 0.001 * run.seed as f64);
            run.set_metric("line_transfers", each * done);
            run.set_metric("lock_wait_ns", done * done);
        }
        side
    };
    Compare::new(
        setup(),
        side("on-change", 1.0, 5.0),
        side("rate-limited", 2.0, 4.0),
    )
}

#[test]
fn a_total_of_a_given_time_is_judged_per_unit_of_work_and_says_so() {
    let compare = timed();
    let transfers = row(&compare, "line_transfers");
    assert_eq!(transfers.verdict, Verdict::Better);
    assert!(
        transfers.change_pct.is_some_and(|pct| pct > 59.0),
        "the total"
    );
    assert_eq!(row(&compare, "lock_wait_ns").verdict, Verdict::Worse);
    let text = compare_text(&compare, Style::default());
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("line_transfers"));
    let (total, quotient) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(total.contains("+60.00%") && total.ends_with(']'), "{total}");
    assert!(quotient.starts_with("  per transaction "), "{quotient}");
    assert!(
        quotient.contains("-20.00%") && quotient.ends_with("better"),
        "{quotient}"
    );
    assert!(
        text.contains("are judged per unit of work, seed by seed"),
        "{text}"
    );
    let none = text.lines().find(|line| line.starts_with("llc_misses "));
    assert!(none.is_some_and(|line| line.ends_with("noise")), "{text}");
    let coloured = Style {
        colour: true,
        ..Style::default()
    };
    assert!(compare_text(&compare, coloured).contains("\x1b[32mbetter\x1b[0m\nllc_misses "));

    let value: Value = serde_json::from_str(&json(&compare)).unwrap();
    let per = |metric: &str| {
        let rows = value["comparison"].as_array().unwrap();
        let row = rows.iter().find(|row| row["metric"] == metric);
        row.unwrap().get("per").cloned()
    };
    let transfers = per("line_transfers").unwrap();
    assert_eq!(transfers["unit"], "transaction");
    assert!((transfers["change_pct"].as_f64().unwrap() + 20.0).abs() < 1e-9);
    assert_eq!(per("hackbench.time_s"), None);
    let schema: Value = serde_json::from_str(&compare_schema()).unwrap();
    fits(&schema, &schema, &value).unwrap();
    assert_eq!(
        Saved::parse(&json(&compare)).unwrap(),
        Saved::Compare(compare)
    );
}

#[test]
fn fail_on_decides_by_what_the_verdict_is_on() {
    let compare = timed();
    let met = |text: &str| FailOn::parse(text).unwrap().evaluate(&compare).unwrap();
    assert_eq!(met("line_transfers>5%"), None);
    assert_eq!(met("line_transfers:worse"), None);
    assert!(met("line_transfers>1000").is_some(), "the mean of patch");
    let reason = met("line_transfers<-5%").unwrap().reason;
    assert_eq!(
        reason,
        "line_transfers changed by -20.00% per transaction: below -5%"
    );
    let mut idle = timed();
    for side in &mut idle.variants {
        side.runs[1].work = Some(Work {
            unit: Some("transaction".into()),
            done: Some(0.0),
        });
    }
    let [base, patch] = <[Variant; 2]>::try_from(idle.variants).unwrap();
    let idle = Compare::new(setup(), base, patch);
    let undecided = FailOn::parse("line_transfers>5%").unwrap().evaluate(&idle);
    assert!(
        undecided
            .unwrap_err()
            .to_string()
            .contains("no verdict on it")
    );
}

#[test]
fn what_was_told_of_the_sides_is_told_of_both_once_also_when_they_were_saved() {
    let side = |name: &str, scale: f64, told: &[&str]| Variant {
        told: told.iter().map(|said| (*said).into()).collect(),
        ..variant(name, 3, scale)
    };
    let base = || side("on-change", 2.0, &["both", "base alone"]);
    let patch = || side("rate-limited", 1.0, &["patch alone", "both"]);
    let at_once = Compare::new(setup(), base(), patch());
    assert_eq!(said(&at_once.notes), ["patch alone", "both", "base alone"]);
    let saved = |side: Variant| {
        let run = RunResult::new(setup(), side);
        Saved::parse(&serde_json::to_string(&run).unwrap()).unwrap()
    };
    let later = compare_saved(saved(base()), saved(patch()));
    assert_eq!(later.notes, at_once.notes);
    let same = compare_saved(saved(base()), saved(base()));
    let alike = "base and patch make the same decisions, so all differences are 0";
    assert_eq!(said(&same.notes).last().map(String::as_str), Some(alike));
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

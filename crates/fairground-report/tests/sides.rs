//! Saved results held against each other, and what verdicts and `--fail-on` go by.

mod samples;
mod schema;

use fairground_report::*;
use samples::*;
use schema::fits;
use serde_json::Value;

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

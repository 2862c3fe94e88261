//! Whole runs of kernel-truth-smp against the simulator: misses may only fall, and each has its
//! reason.
//!
//! `tests/data/truth-smp-misses.txt` is the ratchet: file, misses and numbers
//! compared. After an improvement:
//! `UPDATE_TRUTH=1 cargo test -p fairground-sim --test smp_runs`.

use std::collections::BTreeMap;
use std::io::Read;

use fairground_sim::truth::smp::{Recording, SmpRow, check, table};
use fairground_sim::truth::{Verdict, reasons};

/// The runs, and the attempts to balance that are recorded beside them.
const FILES: [&[u8]; 2] = [
    include_bytes!("data/kernel-truth-smp/runs.jsonl.gz"),
    include_bytes!("data/kernel-truth-smp/balance.jsonl.gz"),
];
const RATCHET: &str = "tests/data/truth-smp-misses.txt";

fn texts() -> BTreeMap<String, String> {
    let mut lines = String::new();
    for file in FILES {
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut lines)
            .expect("the recording");
    }
    let file = |line: &str| {
        let both: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let text = |key: &str| both[key].as_str().expect("a text").to_string();
        (text("file"), text("text"))
    };
    lines.lines().map(file).collect()
}

/// Misses of a file, and how many numbers were compared; its rows go to `all`.
fn misses(recording: &Recording, name: &str, all: &mut Vec<SmpRow>) -> (usize, usize) {
    all.extend(check(recording, name).unwrap_or_else(|e| panic!("{e}")));
    let mut of = [0, 0];
    for row in all.iter() {
        let SmpRow::Number(row) = row else { continue };
        if row.case.split('#').next() != Some(name) {
            continue;
        }
        of[0] += usize::from(row.verdict == Verdict::Miss);
        of[1] += usize::from(row.verdict != Verdict::Skipped);
        if row.verdict == Verdict::Miss {
            println!(
                "{} {}: {:?} for {:?}",
                row.case, row.metric, row.simulated, row.recorded
            );
        }
    }
    (of[0], of[1])
}

#[test]
fn misses_only_fall() {
    let recording = Recording::new(texts());
    let mut names = recording.names("run_bal*").expect("runs");
    names.extend(recording.names("pelt/run_*").expect("runs"));
    names.extend([
        "fork/storm.csv",
        "nohz_kick.csv",
        "tg_load_avg.csv",
        "h_load.csv",
    ]);
    let mut rows = Vec::new();
    let now: BTreeMap<&str, (usize, usize)> = names
        .iter()
        .map(|name| (*name, misses(&recording, name, &mut rows)))
        .collect();
    if std::env::var_os("UPDATE_TRUTH").is_some() {
        let lines = now
            .iter()
            .map(|(name, (n, of))| format!("{name} {n} of {of}\n"));
        std::fs::write(RATCHET, lines.collect::<String>()).expect("the ratchet can be written");
        println!("{}", table::markdown(&rows));
        return;
    }
    hold(&now);
    let numbers = rows.iter().filter_map(|row| match row {
        SmpRow::Number(row) => Some(row),
        SmpRow::Decisions(_) => None,
    });
    let missed = numbers.filter(|row| row.verdict == Verdict::Miss);
    let wrong = reasons::wrong(reasons::Recording::ManyCpus, missed);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Compares with the ratchet.
fn hold(now: &BTreeMap<&str, (usize, usize)>) {
    let golden = std::fs::read_to_string(RATCHET).expect("the ratchet");
    let number = |text: &str| -> usize { text.parse().expect("a number") };
    let golden: BTreeMap<&str, (usize, usize)> = golden
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, counts)| Some((name, counts.split_once(" of ")?)))
        .map(|(name, (missed, of))| (name, (number(missed), number(of))))
        .collect();
    assert!(golden.keys().eq(now.keys()), "a file came or went");
    for (name, (missed, of)) in now {
        let (before, compared) = golden[name];
        assert!(*missed <= before, "{name}: {missed} misses, were {before}");
        // What is skipped is no miss, so it must not be a way to have fewer.
        assert!(*of >= compared, "{name}: {of} compared, were {compared}");
    }
}

/// With `from` replaced by `to`, the file is refused with a message that has `says`.
fn refused(name: &str, from: &str, to: &str, says: &str) {
    let mut texts = texts();
    let text = texts[name].replacen(from, to, 1);
    assert_ne!(text, texts[name], "{from} is not there");
    texts.insert(name.to_string(), text);
    let error = check(&Recording::new(texts), name)
        .expect_err(to)
        .to_string();
    assert!(
        error.starts_with(name) && error.contains(says),
        "{to}: {error}"
    );
}

#[test]
fn a_run_that_makes_no_sense_is_refused() {
    let name = "balance/run_bal_few_2x8.json";
    for (from, to, says) in [
        ("\"kind\":\"hog\"", "\"kind\":\"hug\"", "kind: 'hug'"),
        ("\"kind\":\"hog\"", "\"kind\":\"d5\"", "kind: 'd5'"),
        ("\"kind\":\"hog\"", "\"kind\":\"d0.5\"", "kind: 'd0.5'"),
        ("\"allowed\":\"all\"", "\"allowed\":\"0-99\"", "allowed"),
        (
            "\"topology\":\"2x8\"",
            "\"topology\":\"big\"",
            "no machine 'big'",
        ),
        (
            "\"forked_from_cpu\":0",
            "\"forked_from_cpu\":99",
            "no CPU 99",
        ),
        (
            "\"forked_from_cpu\":0",
            "\"forked_from_cpu\":\"fee\"",
            "'fee'",
        ),
        ("\"count\":2", "\"count\":200000", "sets"),
        ("\"start_cpu\":null", "\"start_cpu\":3", "release_t"),
        ("\"nice\":0", "\"nice\":700", "nice"),
        ("\"index\":0", "\"indices\":0", "indices"),
        ("\"t1_ns\":", "\"t1_ns\":9", "windows"),
        (
            "\"trace_covers_ms_of_window\":",
            "\"trace_covers_ms_of_window\":-",
            "trace_covers_ms_of_window",
        ),
    ] {
        refused(name, from, to, says);
    }
    for (name, from, to, says) in [
        ("fork/storm.csv", "light", "dark", "dark"),
        (
            "fork/storm.csv",
            "lowest_util",
            "tallest_util",
            "tallest_util",
        ),
        ("fork/storm.csv", ",2 3 4 5", ",2 3 4 4", "distinct_cpus"),
        ("nohz_kick.csv", "busy=1", "bossy=1", "bossy"),
        ("nohz_kick.csv", "busy=1,per=2", "busy=17,per=2", "busy=17"),
        ("nohz_kick.csv", "early_check", "late_check", "late_check"),
        ("tg_load_avg.csv", "mode=mig", "mode=mag", "mag"),
        ("tg_load_avg.csv", "zmin=1000", "zmin=9000", "zmin=9000"),
        ("h_load.csv", "groups=4000", "groups=40000000", "groups"),
    ] {
        refused(name, from, to, says);
    }
}

//! Recorded load tracking of a real kernel through the engine's own functions: every update of a
//! task, of a group's entity and of a group's queue, the weights and the utilisation estimates.
//!
//! `tests/data/kernel-truth-pelt.jsonl.gz` has `case.json` and the three `run-pelt` files of each
//! case that was recorded so, one case a line. What differs is listed here, line by line.

use std::io::Read;

use fairground_sim::truth::reasons::{self, Recording};
use fairground_sim::truth::replay::{Count, Files, Report, replay, rows};
use fairground_sim::truth::{Case, Verdict};

const CASES: &[u8] = include_bytes!("data/kernel-truth-pelt.jsonl.gz");

/// What is replayed, updates that are equal to the last bit at least, that differ at most. More may
/// only become equal: `docs/fidelity.md` says what is known of the others.
const LEAST: [(&str, usize, usize); 5] = [
    ("task_se", 4479, 15),
    ("group_se", 4231, 96),
    ("cfs_rq", 4291, 122),
    ("util_est", 4526, 3),
    ("weight", 622, 6),
];

fn cases() -> Vec<(Case, Files)> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(CASES)
        .read_to_string(&mut text)
        .expect("the recorded cases");
    let read = |line: &str| {
        let all: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let file = |name: &str| all[name].as_str().expect("a text").to_string();
        let files = Files {
            records: file("records"),
            script: file("script"),
            window: file("window"),
        };
        (
            Case::parse(&all["case"].to_string()).expect("a case"),
            files,
        )
    };
    text.lines().map(read).collect()
}

#[test]
fn every_recorded_update() {
    let mut sum = Report::new();
    let mut missed = Vec::new();
    for (case, files) in cases() {
        let report = replay(&case, &files).expect("a recording");
        let rows = rows(&case.name, &report).into_iter();
        missed.extend(rows.filter(|row| row.verdict == Verdict::Miss));
        for (what, count) in report {
            println!(
                "{:<26} {what:<8} {:>4} equal, {} rounded, different {:?}, undetermined {:?}",
                case.name,
                count.equal,
                count.rounded.len(),
                count.different,
                count.undetermined
            );
            let all: &mut Count = sum.entry(what).or_default();
            all.equal += count.equal;
            all.rounded.extend(count.rounded);
            all.different.extend(count.different);
            for (why, lines) in count.undetermined {
                all.undetermined.entry(why).or_default().extend(lines);
            }
        }
    }
    for (what, equal, different) in LEAST {
        let count = &sum[what];
        let undetermined: usize = count.undetermined.values().map(Vec::len).sum();
        let (now, differ) = (count.equal, count.different.len());
        let rounded = count.rounded.len();
        println!(
            "{what}: {now} equal, {rounded} rounded, {differ} different, {undetermined} \
             undetermined"
        );
        assert!(
            now >= equal && differ <= different,
            "{what}: {now}, {differ}"
        );
    }
    let missed = missed.iter().map(|r| (r.case.as_str(), r.metric.as_str()));
    let wrong = reasons::wrong(Recording::LoadTracking, missed);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_wrong_sum_is_different() {
    let (case, files) = cases().remove(0);
    let before = replay(&case, &files).expect("a recording");
    let lines: Vec<&str> = files.records.lines().collect();
    let is_task = |n: &usize| lines[*n].contains(",task_se,");
    let at = (100..lines.len()).find(is_task).expect("a task");
    let mut columns: Vec<String> = lines[at].split(',').map(str::to_string).collect();
    let sum: u64 = columns[8].parse().expect("a sum");
    columns[8] = (sum + 3).to_string();
    let records = files.records.replace(lines[at], &columns.join(","));
    let after = replay(&case, &Files { records, ..files }).expect("a recording");
    let (before, after) = (&before["task_se"], &after["task_se"]);
    assert!(!before.different.contains(&(at + 1)));
    assert!(after.different.contains(&(at + 1)), "{:?}", after.different);
}

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
    ("task_se", 4515, 0),
    ("group_se", 4388, 0),
    ("cfs_rq", 4446, 3),
    ("util_est", 4529, 0),
    ("weight", 627, 0),
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
    let wrong = reasons::wrong(Recording::LoadTracking, &missed);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The instants of changes are looked for, so a replay could come out by chance. One in
/// `SPOILT` lines is changed a little, its load or its utilisation: of the updates to them at most
/// one in a hundred may be equal.
#[test]
fn wrong_sums_are_different() {
    const SPOILT: usize = 29;
    let (mut spoilt, mut equal) = (0, 0);
    let some = ["d2-", "e3-", "h4-"];
    let some = |case: &Case| some.iter().any(|name| case.name.starts_with(name));
    for (case, files) in cases().into_iter().filter(|(case, _)| some(case)) {
        let before = replay(&case, &files).expect("a recording");
        let mut wrong = Vec::new();
        let spoil = |(i, line): (usize, &str)| {
            let mut columns: Vec<String> = line.split(',').map(str::to_string).collect();
            let since_t0: i64 = columns[0].parse().unwrap_or(-1);
            if i % SPOILT == 0 && since_t0 > 30_000_000 && columns[3] != "/" {
                let column = if i % (2 * SPOILT) == 0 { 8 } else { 9 };
                let sum: u64 = columns[column].parse().expect("a sum");
                columns[column] = (sum + 3 + (i % 400) as u64).to_string();
                wrong.push(i + 1);
            }
            columns.join(",") + "\n"
        };
        let records: String = files.records.lines().enumerate().map(spoil).collect();
        let after = replay(&case, &Files { records, ..files }).expect("a recording");
        let told = |report: &Report, line: &usize| {
            let averages = ["task_se", "group_se", "cfs_rq"];
            let untold = averages
                .iter()
                .filter_map(|what| report.get(what))
                .any(|count| {
                    let cannot = count.undetermined.values().flatten();
                    cannot
                        .chain(&count.different)
                        .chain(&count.rounded)
                        .any(|l| l == line)
                });
            !untold
        };
        for line in wrong.iter().filter(|line| told(&before, line)) {
            spoilt += 1;
            if told(&after, line) {
                equal += 1;
                println!("{} line {line} is equal though spoilt", case.name);
            }
        }
    }
    println!("{equal} of {spoilt} spoilt updates are equal");
    assert!(spoilt > 200 && equal * 100 <= spoilt, "{equal} of {spoilt}");
}

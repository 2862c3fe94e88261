//! The recorded cases against the simulator: misses may only fall, and each has its reason.
//!
//! `tests/data/kernel-truth.jsonl.gz` has `case.json` and `result.json` of each case, one case a
//! line, `tests/data/kernel-truth-costs.json.gz` the unit costs without the single runs.
//! `tests/data/truth-misses.txt` is the ratchet: name and misses of each case. After an
//! improvement: `UPDATE_TRUTH=1 cargo test -p fairground-sim --test truth`.

use std::collections::BTreeMap;
use std::io::Read;

use fairground_sim::machine_file::Machine;
use fairground_sim::truth::reasons::{self, Recording};
use fairground_sim::truth::{
    Tally, Truth, Verdict, check, costs, inputs, simulate::MACHINE, table,
};

const CASES: &[u8] = include_bytes!("data/kernel-truth.jsonl.gz");
const COSTS: &[u8] = include_bytes!("data/kernel-truth-costs.json.gz");
const RATCHET: &str = "tests/data/truth-misses.txt";

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_string(&mut text)
        .expect("a recording");
    text
}

fn cases() -> Vec<Truth> {
    let text = unpacked(CASES);
    let truth = |line: &str| {
        let both: serde_json::Value = serde_json::from_str(line).expect("JSON");
        Truth::parse(&both["case"].to_string(), &both["result"].to_string())
            .unwrap_or_else(|(_, e)| panic!("{}: {e}", both["case"]["name"]))
    };
    text.lines().map(truth).collect()
}

#[test]
fn inputs_are_recorded_cases() {
    let cases = cases();
    for (input, figures) in inputs::INPUTS {
        assert!(cases.iter().any(|c| c.case.name == *input), "{input}");
        assert_eq!(inputs::has_set(input), Some(*figures));
    }
    assert_eq!(inputs::has_set("a1"), None);
}

#[test]
fn misses_only_fall() {
    let machine = Machine::from_path_or_id(MACHINE).expect("the recorded machine");
    let mut misses = BTreeMap::new();
    let mut sums = [Tally::default(); 3];
    let mut kinds = Vec::new();
    for truth in cases() {
        let rows = check(&truth, &machine, &[1, 2, 3, 4, 5])
            .unwrap_or_else(|e| panic!("{}: {e}", truth.case.name));
        let tally = Tally::of(rows.iter());
        misses.insert(truth.case.name.clone(), missed_of(&tally));
        let group = match truth.case.is_benchmark() {
            true => 2,
            false => usize::from(truth.case.cpus_used().len() != 1),
        };
        let sum = &mut sums[group];
        sum.spread += tally.spread;
        sum.tolerance += tally.tolerance;
        sum.miss += tally.miss;
        sum.skipped += tally.skipped;
        kinds.push((truth.case.kind, rows));
    }
    println!(
        "one CPU: {}\ntwo CPUs: {}\nbenchmarks: {}",
        sums[0], sums[1], sums[2]
    );
    let measured = costs::Costs::parse(&unpacked(COSTS)).expect("unit costs");
    let rows = costs::check(&measured, &machine, &[1]).expect("unit costs");
    let tally = Tally::of(rows.iter());
    println!("unit costs: {tally}");
    misses.insert(costs::CASE.to_string(), missed_of(&tally));
    kinds.push((costs::CASE.to_string(), rows));
    if std::env::var_os("UPDATE_TRUTH").is_some() {
        let lines: Vec<_> = misses
            .iter()
            .map(|(case, (missed, of))| format!("{case} {missed} of {of}\n"))
            .collect();
        std::fs::write(RATCHET, lines.concat()).expect("the ratchet can be written");
        let all = kinds
            .iter()
            .map(|(kind, rows)| (kind.as_str(), rows.as_slice()));
        println!("{}", table::markdown(all));
        for row in kinds.iter().flat_map(|k| &k.1) {
            let simulated = row.simulated.map_or(f64::NAN, |s| s.mean);
            if row.verdict == Verdict::Miss || row.metric.starts_with("own.") {
                let verdict = row.verdict.name();
                let (case, metric) = (&row.case, &row.metric);
                println!(
                    "{verdict} {case} {metric} {} {simulated}",
                    row.recorded.mean
                );
            }
        }
        return;
    }
    hold(&misses);
    let rows = kinds.iter().flat_map(|k| &k.1);
    let missed = rows.filter(|row| row.verdict == Verdict::Miss);
    let wrong = reasons::wrong(Recording::Workloads, missed);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Compares with the ratchet.
fn hold(misses: &BTreeMap<String, (usize, usize)>) {
    let golden = std::fs::read_to_string(RATCHET).expect("the ratchet");
    let golden: BTreeMap<&str, (usize, usize)> = golden
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(case, counts)| Some((case, counts.split_once(" of ")?)))
        .map(|(case, (missed, of))| (case, (number(missed), number(of))))
        .collect();
    assert!(
        golden.keys().copied().eq(misses.keys().map(String::as_str)),
        "a case came or went"
    );
    for (case, (now, of)) in misses {
        let (before, compared) = golden[case.as_str()];
        assert!(*now <= before, "{case}: {now} misses, were {before}");
        // What is skipped is no miss, so it must not be a way to have fewer.
        assert!(*of >= compared, "{case}: {of} compared, were {compared}");
    }
}

fn missed_of(tally: &Tally) -> (usize, usize) {
    let compared = tally.spread + tally.tolerance + tally.miss;
    (tally.miss, compared)
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

//! Cases that were recorded to try the model, with parameters unlike those of the others: nothing
//! of the machine or the engine was set by them.
//!
//! Each line of a file has `case.json` and `result.json` of a case.
//!
//! - `tests/data/kernel-truth-unseen.jsonl.gz`: eleven, three to five runs, recorded by
//!   `tools/record` beside other work on the host: latencies of single wake-ups are 3 to 6 us
//!   there, for 2 us in the recordings of a quiet one.
//! - `tests/data/kernel-truth-unseen-epyc.jsonl.gz`: 62, four runs, on a guest of another processor
//!   (AMD EPYC), whose costs are not those of the machine file: a wake-up by a timer takes 6 us.
//!   `s5-m10-sleeper` and `s7-5-sleepers` have led to changes of the engine since
//!   (docs/fidelity.md).
//! - `tests/data/kernel-truth-random-epyc.jsonl.gz`: 24 on one CPU, three runs, on such a guest;
//!   their tasks, groups and steps were drawn at random.

use std::io::Read;

use fairground_sim::machine_file::Machine;
use fairground_sim::truth::{Row, Tally, Truth, Verdict, check, simulate::MACHINE};

const CASES: &[u8] = include_bytes!("data/kernel-truth-unseen.jsonl.gz");
const EPYC: &[u8] = include_bytes!("data/kernel-truth-unseen-epyc.jsonl.gz");
const RANDOM: &[u8] = include_bytes!("data/kernel-truth-random-epyc.jsonl.gz");

/// Of the numbers compared, so many in a thousand are not missed at least: just below what there is
/// (967).
const NOT_MISSED: usize = 962;

/// The same of the cases on another processor that use one CPU, and of those that use two: just
/// below what there is (958 and 942), so that it is seen if it falls. The aim of 950 is not met on
/// two; it was 948 before the lines of one structure were on their way at once.
const NOT_MISSED_EPYC: [usize; 2] = [953, 940];

/// The same of those drawn at random: just below what there is (923).
const NOT_MISSED_RANDOM: usize = 918;

fn cases(packed: &[u8]) -> Vec<Truth> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("a recording");
    let truth = |line: &str| {
        let both: serde_json::Value = serde_json::from_str(line).expect("JSON");
        Truth::parse(&both["case"].to_string(), &both["result"].to_string())
            .unwrap_or_else(|(_, e)| panic!("{}: {e}", both["case"]["name"]))
    };
    text.lines().map(truth).collect()
}

/// Runs them with twenty seeds: with five, which order of events a case falls into is chance, and
/// decides about several numbers of it.
fn rows(cases: &[Truth]) -> Vec<Row> {
    let machine = Machine::from_path_or_id(MACHINE).expect("the recorded machine");
    let seeds: Vec<u64> = (1..=20).collect();
    let mut rows = Vec::new();
    for truth in cases {
        let of_case =
            check(truth, &machine, &seeds).unwrap_or_else(|e| panic!("{}: {e}", truth.case.name));
        assert!(of_case.len() > 30, "{}", truth.case.name);
        rows.extend(of_case);
    }
    rows
}

/// Of the numbers compared, those not missed, in a thousand; at least `least` are compared.
fn held(rows: &[Row], least: usize) -> usize {
    let tally = Tally::of(rows.iter());
    println!("{tally}");
    for row in rows.iter().filter(|row| row.verdict == Verdict::Miss) {
        let simulated = row.simulated.map_or(f64::NAN, |s| s.mean);
        let recorded = row.recorded.mean;
        println!("{} {} {recorded} {simulated}", row.case, row.metric);
    }
    let compared = tally.spread + tally.tolerance + tally.miss;
    assert!(compared > least, "{tally}");
    (tally.spread + tally.tolerance) * 1000 / compared
}

#[test]
fn cases_that_set_nothing_agree_as_well() {
    let held = held(&rows(&cases(CASES)), 900);
    assert!(held >= NOT_MISSED, "{held}");
}

#[test]
fn cases_of_another_processor_agree_but_for_its_costs() {
    let (one, two): (Vec<Truth>, Vec<Truth>) = cases(EPYC)
        .into_iter()
        .partition(|truth| truth.case.cpus_used().len() == 1);
    assert_eq!((one.len(), two.len()), (40, 22));
    for (cases, least) in [(one, NOT_MISSED_EPYC[0]), (two, NOT_MISSED_EPYC[1])] {
        let held = held(&rows(&cases), 2000);
        assert!(held >= least, "{held}");
    }
}

#[test]
fn cases_drawn_at_random_agree_but_for_the_costs_of_their_machine() {
    let cases = cases(RANDOM);
    assert_eq!(cases.len(), 24);
    let held = held(&rows(&cases), 2000);
    assert!(held >= NOT_MISSED_RANDOM, "{held}");
}

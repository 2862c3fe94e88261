//! Cases that were recorded to try the model, with parameters unlike those of the others: nothing
//! of the machine or the engine was set by them.
//!
//! `tests/data/kernel-truth-unseen.jsonl.gz` has `case.json` and `result.json` of each, one case a
//! line, three to five runs, recorded by `tools/record` beside other work on the host: latencies of
//! single wake-ups are 3 to 6 us there, for 2 us in the recordings of a quiet one.

use std::io::Read;

use fairground_sim::machine_file::Machine;
use fairground_sim::truth::{Tally, Truth, Verdict, check, simulate::MACHINE};

const CASES: &[u8] = include_bytes!("data/kernel-truth-unseen.jsonl.gz");

/// Of the numbers compared, so many in a thousand are not missed at least.
const NOT_MISSED: usize = 960;

fn cases() -> Vec<Truth> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(CASES)
        .read_to_string(&mut text)
        .expect("a recording");
    let truth = |line: &str| {
        let both: serde_json::Value = serde_json::from_str(line).expect("JSON");
        Truth::parse(&both["case"].to_string(), &both["result"].to_string())
            .unwrap_or_else(|(_, e)| panic!("{}: {e}", both["case"]["name"]))
    };
    text.lines().map(truth).collect()
}

#[test]
fn cases_that_set_nothing_agree_as_well() {
    let machine = Machine::from_path_or_id(MACHINE).expect("the recorded machine");
    let seeds = [1, 2, 3, 4, 5];
    let mut rows = Vec::new();
    for truth in cases() {
        let of_case =
            check(&truth, &machine, &seeds).unwrap_or_else(|e| panic!("{}: {e}", truth.case.name));
        assert!(of_case.len() > 40, "{}", truth.case.name);
        rows.extend(of_case);
    }
    let tally = Tally::of(rows.iter());
    println!("{tally}");
    for row in rows.iter().filter(|row| row.verdict == Verdict::Miss) {
        let simulated = row.simulated.map_or(f64::NAN, |s| s.mean);
        let recorded = row.recorded.mean;
        println!("{} {} {recorded} {simulated}", row.case, row.metric);
    }
    let compared = tally.spread + tally.tolerance + tally.miss;
    assert!(compared > 900, "{tally}");
    let held = (tally.spread + tally.tolerance) * 1000 / compared;
    assert!(held >= NOT_MISSED, "{tally}");
}

//! `fairground truth DIR --machine MACHINE`: a recording of another machine than the default one.

mod common;

use common::{fails, file, json, succeeds, words};
use serde_json::Value;

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recorded");
const GUEST: &str = include_str!("../../../machines/spr-guest-2cpu.toml");

/// All rows of the recorded case.
fn rows(more: &[&str]) -> Value {
    let truth = ["truth", DIR, "--seeds", "2", "--json", "-"];
    json(&succeeds(words(&[&truth, more])))
}

/// What is recorded in them: no matter of the machine.
fn recorded(rows: &Value) -> Vec<&Value> {
    let rows = rows.as_array().expect("rows");
    rows.iter().map(|row| &row["recorded"]).collect()
}

#[test]
fn a_machine_file_says_what_operations_cost() {
    let known = rows(&[]);
    assert_eq!(rows(&["--machine", "spr-guest-2cpu"]), known);
    let as_it_is = "timer_program = { v = 1300";
    assert!(GUEST.contains(as_it_is));
    let slow = GUEST.replace(as_it_is, "timer_program = { v = 5300");
    let slow = rows(&["--machine", &file("truth-machine", "slow.toml", slow)]);
    assert_eq!(recorded(&slow), recorded(&known));
    assert_ne!(slow, known);
}

#[test]
fn a_recorded_machine_has_two_cpus() {
    fails(
        ["truth", DIR, "--machine", "xeon-8cpu-2013"],
        &["xeon-8cpu-2013", "8 CPUs", "has 2", "fairground calibrate"],
    );
    fails(
        ["truth", DIR, "--machine", "spr-guest-2cpus"],
        &["unknown machine", "did you mean `spr-guest-2cpu`?"],
    );
}

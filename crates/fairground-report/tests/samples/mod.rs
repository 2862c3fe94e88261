//! Results made by hand.
#![allow(dead_code, reason = "not every test file needs all of them")]

use fairground_report::*;

/// A patch that halves the time, moves `migrations` (no direction) and leaves `wakeups` alone.
pub fn sample(seeds: u64) -> Compare {
    Compare::new(
        setup(),
        variant("on-change", seeds, 2.0),
        variant("rate-limited", seeds, 1.0),
    )
}

pub fn setup() -> Setup {
    let argv = [
        "fg",
        "compare",
        "--jobs",
        "2",
        "--seeds",
        "5",
        "--",
        "hackbench",
        "-g",
        "16",
    ];
    let assumed = AssumedFigure {
        key: "cache[2].latency".into(),
        value: "3.5 ns".into(),
    };
    Setup {
        fairground: "0.1.0".into(),
        machine: MachineId {
            id: "spr-8480-2s".into(),
            hash: "0123456789abcdef".into(),
            ..MachineId::default()
        },
        profile: "linux-6.18".into(),
        workload: ["hackbench", "-g", "16"].map(String::from).to_vec(),
        workload_metrics: vec![MetricInfo {
            name: "hackbench.time_s".into(),
            unit: "s".into(),
            better: Some(Better::Lower),
            description: "What hackbench prints as Time.".into(),
        }],
        redo: Redo::new(&argv.map(String::from), vec![1, 2, 3], vec![assumed]),
    }
}

pub fn variant(tg_load_avg: &str, seeds: u64, scale: f64) -> Variant {
    let decisions = [("hz", "1000"), ("tg_load_avg", tg_load_avg)];
    Variant {
        decisions: decisions
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into(),
        runs: (1..=seeds).map(|seed| run(seed, scale)).collect(),
        ..Variant::default()
    }
}

pub fn run(seed: u64, scale: f64) -> Run {
    let mut run = Run::new(seed);
    for metric in ALWAYS {
        run.set_metric(metric.name, 0.0);
    }
    run.set_metric("hackbench.time_s", scale * (1.0 + 0.01 * seed as f64));
    run.set_metric("migrations", 1000.0 * scale + seed as f64);
    run.set_metric("wakeups", 123_456.0);
    let update_ns = (300_000.0 * scale) as u64;
    run.add_function("update_tg_load_avg", update_ns, 50_000, 1_000_000);
    run.add_function("pick_next_task", 40_000, 90_000, 1_000_000);
    run.add_llc_misses("pick_next_task", 1200 + seed);
    let line = |object: &str, field: &str, wait_ns| LineTraffic {
        object: object.into(),
        field: field.into(),
        reads: 10_000,
        writes: 20,
        rmws: 30_000,
        transfers: 25_000,
        wait_ns,
        ..LineTraffic::default()
    };
    run.lines = vec![
        line("rq", "lock", 1_000),
        line("task_group", "load_avg", update_ns),
    ];
    run
}

pub fn row<'a>(compare: &'a Compare, metric: &str) -> &'a Comparison {
    compare
        .comparison
        .iter()
        .find(|row| row.metric == metric)
        .unwrap()
}

pub fn json(compare: &Compare) -> String {
    serde_json::to_string_pretty(compare).unwrap()
}

/// The sentences of notes.
pub fn said(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}

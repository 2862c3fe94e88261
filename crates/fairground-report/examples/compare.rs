//! The shortest way from numbers to a verdict: `--json` prints the result as JSON.

use fairground_report::{
    Better, Compare, MachineId, MetricInfo, Redo, Run, Setup, Style, Variant, compare_text,
};

fn main() -> Result<(), serde_json::Error> {
    let setup = Setup {
        fairground: env!("CARGO_PKG_VERSION").into(),
        machine: MachineId {
            id: "none".into(),
            hash: "none".into(),
            ..MachineId::default()
        },
        profile: "linux-6.18".into(),
        workload: vec!["example".into()],
        workload_metrics: vec![MetricInfo {
            name: "example.time_s".into(),
            unit: "s".into(),
            better: Some(Better::Lower),
            description: "Made up, to show the shape.".into(),
        }],
        redo: Redo::new(&["fairground".into()], vec![1, 2, 3], Vec::new()),
    };
    let base = variant(&[10.1, 11.3, 9.7]);
    let patch = variant(&[9.2, 10.8, 9.1]);
    let compare = Compare::new(setup, base, patch);
    if std::env::args().any(|word| word == "--json") {
        println!("{}", serde_json::to_string_pretty(&compare)?);
    } else {
        print!("{}", compare_text(&compare, Style::default()));
    }
    Ok(())
}

fn variant(times_s: &[f64]) -> Variant {
    let run = |(seed, &time_s): (u64, &f64)| {
        let mut run = Run::new(seed);
        run.set_metric("example.time_s", time_s);
        run.set_metric("wakeups", f64::NAN);
        run.add_function("pick_next_task", 40_000, 90_000, 1_000_000);
        run
    };
    Variant {
        runs: (1..).zip(times_s).map(run).collect(),
        ..Variant::default()
    }
}

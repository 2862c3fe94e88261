//! Recorded cases beside simulated ones: `truth DIR [GLOB] [-v] [-t]`; with `-v` every row, else
//! misses; with `-t` the tracepoints of the first seed; with `-s=N` seed N alone,
//! with `-m=MACHINE` on that machine.
use std::path::Path;

use fairground_sim::machine_file::Machine;
use fairground_sim::truth::{self, Row, Sample, Verdict};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = Path::new(&args[0]);
    let glob = args.get(1).map_or("*", String::as_str);
    let all = args.iter().any(|a| a == "-v");
    let seed = args.iter().find_map(|a| a.strip_prefix("-s="));
    let seed: Option<u64> = seed.map(|n| n.parse().expect("-s=N: N a number"));
    let seeds = seed.map_or_else(|| vec![1, 2, 3, 4, 5], |seed| vec![seed]);
    let machine = args.iter().find_map(|a| a.strip_prefix("-m="));
    let machine = machine.unwrap_or(truth::simulate::MACHINE);
    let machine = Machine::from_path_or_id(machine).expect("a machine");
    let mut table = Vec::new();
    for name in truth::names(dir, glob).unwrap_or_else(|e| panic!("{e}")) {
        let truth = truth::load(dir, &name).unwrap_or_else(|e| panic!("{e}"));
        if args.iter().any(|a| a == "-t") {
            trace(&truth, &machine, seeds[0]);
            continue;
        }
        let rows = truth::check(&truth, &machine, &seeds);
        let rows = rows.unwrap_or_else(|e| panic!("{name}: {e}"));
        for row in &rows {
            if all || row.verdict == Verdict::Miss {
                print(row);
            }
        }
        let count = |v: Verdict| rows.iter().filter(|r| r.verdict == v).count();
        table.push((
            name,
            [
                Verdict::Spread,
                Verdict::Tolerance,
                Verdict::Miss,
                Verdict::Skipped,
            ]
            .map(count),
        ));
    }
    for (name, [spread, tolerance, miss, skipped]) in table {
        println!("{name:<28} {spread:>4} {tolerance:>4} {miss:>4} {skipped:>4}");
    }
}

fn trace(truth: &truth::Truth, machine: &Machine, seed: u64) {
    let edges = &truth.recorded.hist_edges_us;
    let bench = truth::Bench::new(
        &truth.case,
        &truth::Others::of(&truth.case, &truth.recorded),
        machine.clone(),
        edges,
    );
    let bench = bench.unwrap_or_else(|e| panic!("{e}"));
    let lines = bench.trace(seed).unwrap_or_else(|e| panic!("{e}"));
    for (us, cpu, what) in lines {
        println!("{us:>14.3} [{cpu}] {what}");
    }
}

fn print(row: &Row) {
    let show = |s: Sample| format!("{:>14.3} +-{:<11.3}", s.mean, s.sd);
    println!(
        "{:<9} {:<14} {:<52} {} {} tol {:.3}",
        format!("{:?}", row.verdict),
        row.case.chars().take(14).collect::<String>(),
        row.metric,
        show(row.recorded),
        row.simulated.map_or("-".to_string(), show),
        row.tolerance.unwrap_or(0.0),
    );
}

//! Simulated context switches per second on one core of the host, everything on.
//!
//! `cargo bench -p fairground-sim --bench switches [-- NAME]`, with a part of a name only those
//! lines. Each is one run, warm-up and placement of the tasks included, repeated a few times; the
//! quickest repetition counts, as whatever else the host does can only slow it down. The rate is
//! per second of CPU time of this process, so that a busy host is charged for less; the wall time
//! of the same repetition stands beside it. See `docs/performance.md`.

use std::time::Instant;

use fairground::policy::Features;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::workload::{Env, Workload};

struct Case {
    name: &'static str,
    machine: &'static str,
    /// 0 = all CPUs of the machine.
    cpus: usize,
    workload: &'static str,
    /// Switches per second, millions.
    floor: f64,
}

const CASES: [Case; 4] = [
    Case {
        name: "hogs, 4 CPUs, 16 tasks",
        machine: "xeon-8cpu-2013",
        cpus: 4,
        workload: "hogs -t 16 -d 60s --tree 2:2",
        floor: 2.0,
    },
    Case {
        name: "hogs, 224 CPUs, 448 tasks",
        machine: "spr-8480-2s",
        cpus: 0,
        workload: "hogs -t 448 -d 4s --tree 2:2",
        floor: 0.4,
    },
    Case {
        name: "hogs, 224 CPUs, 1792 tasks",
        machine: "spr-8480-2s",
        cpus: 0,
        workload: "hogs -t 1792 -d 4s --tree 2:2",
        floor: 0.4,
    },
    Case {
        name: "hackbench, 224 CPUs, 640 threads",
        machine: "spr-8480-2s",
        cpus: 0,
        workload: "hackbench --pipe --threads -g 16 -f 20 -l 100",
        floor: 0.75,
    },
];

const REPEATS: usize = 3;

/// CPU time of this process, s; `None` where `/proc` does not say.
fn cpu_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// Result, CPU time and wall time of one run.
fn run(setup: &Setup<'_>) -> (Outcome, f64, f64) {
    let (wall, cpu) = (Instant::now(), cpu_s());
    let out = outcome::run(setup).expect("the workload ends");
    let wall_s = wall.elapsed().as_secs_f64();
    let used_s = cpu.zip(cpu_s()).map_or(wall_s, |(from, to)| to - from);
    (out, used_s, wall_s)
}

fn measure(case: &Case) {
    let mut machine = Machine::builtin(case.machine).expect("built in");
    if case.cpus > 0 {
        machine = machine.shrunk(case.cpus).expect("divides evenly");
    }
    let env = Env {
        cpus: machine.topology.nr_cpus() as u32,
    };
    let argv: Vec<String> = case.workload.split(' ').map(String::from).collect();
    let workload = Workload::from_argv(&argv, &env).expect("well formed");
    let setup = Setup {
        machine: &machine,
        features: Features::default(),
        workload: &workload,
        seed: 1,
        trace: false,
    };
    let runs = (0..REPEATS).map(|_| run(&setup));
    let (out, cpu, wall) = runs
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("at least one");
    let rate = out.switches as f64 / cpu / 1e6;
    println!(
        "{:<34} {:>9} {:>9} {:>7.2} {:>7.2} {:>8.2} {:>9.3} {:>6.2}  {}",
        case.name,
        out.switches,
        out.events,
        cpu,
        wall,
        out.events as f64 / cpu / 1e6,
        rate,
        case.floor,
        if rate >= case.floor { "met" } else { "MISSED" },
    );
}

fn main() {
    println!(
        "{:<34} {:>9} {:>9} {:>7} {:>7} {:>8} {:>9} {:>6}",
        "", "switches", "events", "CPU s", "wall s", "M ev/s", "M sw/s", "floor"
    );
    let part = std::env::args()
        .skip(1)
        .find(|arg| !arg.starts_with('-'))
        .unwrap_or_default();
    CASES
        .iter()
        .filter(|case| case.name.contains(&part))
        .for_each(measure);
}

//! Peak memory of 10 000 groups on 224 CPUs, each group used.
//!
//! `cargo bench -p fairground-sim --bench memory`. A group's state on a CPU is made when it first
//! has a task there, so groups without tasks would measure nothing: here every group has tasks
//! that sleep and wake, and wake where the scheduler puts them. In the first case a CPU is mostly
//! free, and a sleeper stays where it was; in the second the machine is busier, and tasks move
//! now and then. The number of queues that came to be is printed, so that it can be seen how much
//! was used: a group on many CPUs is not measured yet. Each case runs in a process of its own, as
//! the highest memory of a process never falls.

use fairground::policy::Features;
use fairground_sim::machine::{Setup, Sim};
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::{Env, Workload};

const GROUPS: usize = 10_000;
const FLOOR_MIB: f64 = 1024.0;

struct Case {
    name: &'static str,
    /// Tasks of a group.
    tasks: usize,
    /// Of `sleepers`.
    options: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        name: "one sleeper a group",
        tasks: 1,
        options: "--period 5ms --run 20us --duration 200ms",
    },
    Case {
        name: "two busier tasks a group",
        tasks: 2,
        options: "--period 5ms --run 50us --duration 200ms",
    },
];

/// Peak resident memory of this process, MiB (Linux only).
fn peak_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

fn measure(case: &Case) {
    let machine = Machine::builtin("spr-8480-2s").expect("built in");
    let env = Env {
        cpus: machine.topology.nr_cpus() as u32,
    };
    let tasks = GROUPS * case.tasks;
    let text = format!(
        "sleepers --tasks {tasks} {} --tree 1:{GROUPS}",
        case.options
    );
    let argv: Vec<String> = text.split(' ').map(String::from).collect();
    let workload = Workload::from_argv(&argv, &env).expect("well formed");
    let setup = Setup {
        machine: &machine,
        features: Features::default(),
        workload: &workload,
        seed: 1,
        trace: false,
    };
    let before = peak_mib();
    let mut sim = Sim::new(&setup).expect("fits the machine");
    sim.run().expect("the workload ends");
    let queues = sim.nr_group_queues();
    println!(
        "{}: {GROUPS} groups, {tasks} tasks, {} CPUs: {queues} queues ({:.1} CPUs a group)",
        case.name,
        env.cpus,
        queues as f64 / GROUPS as f64,
    );
    match (peak_mib(), before) {
        (Some(peak), Some(before)) => println!(
            "  peak {peak:.0} MiB ({before:.0} MiB before), floor {FLOOR_MIB:.0} MiB: {}",
            if peak <= FLOOR_MIB { "met" } else { "MISSED" }
        ),
        _ => println!("  this system does not tell its peak memory"),
    }
}

/// Runs all cases, or the one whose number is in the environment.
fn main() {
    const CASE: &str = "FAIRGROUND_MEMORY_CASE";
    if let Ok(number) = std::env::var(CASE) {
        let number: usize = number.parse().expect("a number");
        return measure(&CASES[number]);
    }
    let exe = std::env::current_exe().expect("this program");
    for number in 0..CASES.len() {
        let mut child = std::process::Command::new(&exe);
        let ended = child.env(CASE, number.to_string()).status();
        assert!(ended.expect("it starts").success());
    }
}

//! Peak memory of 10 000 groups on 224 CPUs, each group used.
//!
//! `cargo bench -p fairground-sim --bench memory`. A group's state on a CPU is made when it first
//! has a task there, so groups without tasks would measure nothing: here every group has a task
//! that sleeps and wakes, and wakes where the scheduler puts it. The number of queues that came
//! to be is printed, so that it can be seen how much was used.

use fairground::policy::Features;
use fairground_sim::machine::{Setup, Sim};
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::{Env, Workload};

const GROUPS: usize = 10_000;
const FLOOR_MIB: f64 = 1024.0;

/// Peak resident memory of this process, MiB (Linux only).
fn peak_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

fn main() {
    let machine = Machine::builtin("spr-8480-2s").expect("built in");
    let env = Env {
        cpus: machine.topology.nr_cpus() as u32,
    };
    let tasks = GROUPS;
    let text = format!(
        "sleepers --tasks {tasks} --period 5ms --run 20us --duration 200ms --tree 1:{GROUPS}"
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
        "{GROUPS} groups, {tasks} tasks, {} CPUs: {queues} queues of groups ({:.1} CPUs a group)",
        env.cpus,
        queues as f64 / GROUPS as f64,
    );
    match (peak_mib(), before) {
        (Some(peak), Some(before)) => println!(
            "peak {peak:.0} MiB ({before:.0} MiB before), floor {FLOOR_MIB:.0} MiB: {}",
            if peak <= FLOOR_MIB { "met" } else { "MISSED" }
        ),
        _ => println!("this system does not tell its peak memory"),
    }
}

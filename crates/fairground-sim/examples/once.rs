//! The shortest program: one workload on one machine, once. `once MACHINE PATCH|!PATCH|- WORKLOAD`;
//! from the environment `PROFILE`, `CPUS` of the machine, and whether to print `ALL` lines.
use fairground::policy::{Features, find_patch, find_profile};
use fairground_sim::{
    machine::Setup,
    machine_file::Machine,
    outcome::{self, Outcome},
    workload::{Env, Workload},
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut machine = Machine::from_path_or_id(&args[0]).expect("a machine");
    if let Ok(cpus) = std::env::var("CPUS") {
        let cpus = cpus.parse().expect("a number of CPUs");
        machine = machine.shrunk(cpus).expect("divides evenly");
    }
    let env = Env {
        cpus: machine.topology.nr_cpus() as u32,
    };
    let workload = Workload::from_argv(&args[2..], &env).expect("a workload");
    let mut features = Features::default();
    if let Ok(p) = std::env::var("PROFILE") {
        features = Features::of_profile(find_profile(&p).expect("a profile"));
    }
    if args[1] != "-" {
        let (name, base) = match args[1].strip_prefix('!') {
            Some(n) => (n, true),
            None => (args[1].as_str(), false),
        };
        let p = find_patch(name).expect("a patch");
        match base {
            true => p.undo(&mut features),
            false => p.apply(&mut features),
        }
    }
    let setup = Setup {
        machine: &machine,
        features,
        workload: &workload,
        seed: 1,
        trace: false,
    };
    let t = std::time::Instant::now();
    let out = outcome::run(&setup).unwrap_or_else(|e| panic!("{e}"));
    let wall = t.elapsed().as_secs_f64();
    show(&out);
    println!("{}", out.words);
    println!(
        "wall {wall:.3} s, {} events {:.2} M/s, {} switches {:.3} M/s",
        out.events,
        out.events as f64 / wall / 1e6,
        out.switches,
        out.switches as f64 / wall / 1e6
    );
}

/// Metrics, functions and lines.
fn show(out: &Outcome) {
    for (name, value) in &out.metrics {
        println!("{name} = {value:?}");
    }
    let mut f = out.functions.clone();
    f.sort_by_key(|r| std::cmp::Reverse(r.1));
    let all = std::env::var_os("ALL").is_some();
    for (name, ns, calls) in f.iter().take(if all { f.len() } else { 30 }) {
        println!(
            "{:6.2} % {:>10} calls {:>7.0} ns/call {name}",
            100.0 * *ns as f64 / out.busy_ns as f64,
            calls,
            *ns as f64 / (*calls).max(1) as f64
        );
    }
    if all {
        return println!("{:#?}", out.lines);
    }
    for l in out.lines.iter().take(12) {
        println!(
            "{:>9} tr {:>9} rd {:>9} wr {:>9} rmw {:>9} us wait {} [{}]",
            l.transfers,
            l.reads,
            l.writes,
            l.rmws,
            l.wait_ns / 1000,
            l.object,
            l.field
        );
    }
}

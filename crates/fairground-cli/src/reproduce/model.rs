//! Which model a row was made with: a hash that changes when the model does.
//!
//! It is taken over the tables of base costs and the counters of short reference runs, one for each
//! kind of workload. So it stays the same when code is rewritten without changing a result.

use std::fmt::Write as _;
use std::sync::LazyLock;

use fairground::place::Func;
use fairground::policy::{Features, find_profile};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::{Env, Workload};
use fairground_sim::{cache, costs, outcome};

use super::hash::Hash;
use super::measure;

/// Machine, number of its CPUs, profile, workload, end of the run in us, how much of it settles.
type Reference = (&'static str, usize, &'static str, &'static str, u64, u64);

const REFERENCE: [Reference; 18] = [
    (
        "spr-8480-2s",
        16,
        "linux-6.5",
        "netperf -t UDP_RR --pairs 12 -l 1ms",
        2000,
        0,
    ),
    (
        "spr-8480-2s",
        8,
        "linux-6.5",
        "netperf -t TCP_STREAM --pairs 4 -l 1ms",
        2000,
        0,
    ),
    (
        "icx-8358-2s",
        16,
        "linux-6.5",
        "hackbench -g 1 -f 4 --threads --pipe -l 1000",
        2000,
        0,
    ),
    (
        "genoa-9654-2s",
        32,
        "linux-6.9",
        "sysbench oltp_read_only --threads=16 --time=3ms",
        4000,
        0,
    ),
    (
        "kunpeng920-6426-2s",
        16,
        "linux-5.8",
        "sysbench threads --threads=8 --time=9ms",
        3000,
        0,
    ),
    (
        "kunpeng920-6426-2s",
        8,
        "linux-5.8",
        "sysbench mutex --mutex-num=1 --threads=8 --mutex-locks=5000",
        2000,
        0,
    ),
    (
        "kunpeng920-6426-2s",
        16,
        "linux-5.8",
        "perf bench futex wake -s -t 16 -w 1",
        3000,
        0,
    ),
    (
        "kunpeng920-6426-2s",
        16,
        "linux-5.8",
        "perf bench sched messaging -g 1 -l 100",
        4000,
        0,
    ),
    (
        "xeon-8cpu-2013",
        8,
        "linux-3.10",
        "hackbench -g 1 -f 4 -l 100",
        4000,
        0,
    ),
    (
        "spr-8480-2s",
        16,
        "linux-6.12-lts",
        "schbench -m 1 -t 2 -r 20ms --tree 2:2 --cpu-max 4ms/10ms",
        12000,
        0,
    ),
    (
        "genoa-9654-2s",
        16,
        "linux-6.18",
        "ebizzy -S 2ms -t 16",
        2000,
        0,
    ),
    (
        "spr-8480-2s",
        16,
        "linux-6.5",
        "netperf -t UDP_RR --pairs 16 -l 1ms",
        8000,
        4000,
    ),
    (
        "spr-8480-2s",
        4,
        "linux-6.5",
        "hackbench -g 2 -f 5 --threads --pipe -l 2000",
        8000,
        0,
    ),
    (
        "genoa-9654-2s",
        32,
        "linux-6.15",
        "schbench -m 1 -t 2 -r 20ms --tree 3:3 --cpu-max 4ms/10ms",
        12000,
        0,
    ),
    (
        "kunpeng920-6426-2s",
        8,
        "linux-5.8",
        "perf bench sched pipe -l 200",
        3000,
        0,
    ),
    (
        "kunpeng920-6426-2s",
        8,
        "linux-5.8",
        "sysbench cpu --threads=8 --cpu-max-prime=10000 --time=4ms",
        3000,
        0,
    ),
    (
        "kunpeng920-6426-2s",
        8,
        "linux-5.8",
        "sysbench memory --memory-access-mode=rnd --threads=8 --time=4ms",
        3000,
        0,
    ),
    // Balancing moves who runs, too.
    (
        "spr-8480-2s",
        16,
        "linux-6.5",
        "sleepers --tasks 20 --period 1ms --run 300us -d 20ms",
        30_000,
        20_000,
    ),
];

static HASH: LazyLock<String> = LazyLock::new(|| hash_of(&REFERENCE, &run));

/// The hash of this program's model.
pub fn hash() -> &'static str {
    &HASH
}

/// The hash of the tables, the references, and what `run` counts in each.
fn hash_of(references: &[Reference], run: &dyn Fn(Reference) -> Result<String, String>) -> String {
    let mut hash = Hash::default();
    // Writing to a hash cannot fail.
    let _ = tables(&mut hash);
    for &reference in references {
        let counters = run(reference);
        let _ = write!(hash, "{reference:?} {counters:?}");
    }
    hash.hex()
}

fn tables(hash: &mut Hash) -> std::fmt::Result {
    let functions = Func::ALL.map(|f| (f.name(), costs::func_cycles(f), costs::func_divisions(f)));
    write!(hash, "{:?} {functions:?}", costs::KERNEL_OPS)?;
    let scans = (costs::SCAN_CYCLES, cache::LINES_IN_FLIGHT);
    let cache = (cache::Options::default(), cache::STORE_BUFFER);
    write!(hash, "{scans:?} {cache:?}")
}

/// Counters of a reference run, not the metrics that are made of them, of which there may be more
/// one day; a text if it fails, which is another model too.
fn run((machine, cpus, profile, words, end_us, settle_us): Reference) -> Result<String, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let machine = Machine::builtin(machine).map_err(|e| text(&e))?;
    let all = machine.topology.nr_cpus();
    let machine = match cpus < all {
        true => machine.shrunk(cpus).map_err(|e| text(&e))?,
        false => machine,
    };
    let argv: Vec<String> = words.split_whitespace().map(String::from).collect();
    let env = Env { cpus: cpus as u32 };
    let mut workload = Workload::from_argv(&argv, &env).map_err(|e| text(&e))?;
    measure::window(&mut workload, settle_us * 1000, (end_us - settle_us) * 1000);
    workload.settle_ns = settle_us * 1000;
    let features = Features::of_profile(find_profile(profile).ok_or(profile)?);
    let o = outcome::run(&Setup {
        machine: &machine,
        features,
        workload: &workload,
        seed: 1,
        trace: false,
    })
    .map_err(|e| text(&e))?;
    Ok(format!(
        "{} {:?} {:?} {:?}",
        machine.hash(),
        o.events,
        o.functions,
        o.load_misses
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_run_does_something() {
        for reference in REFERENCE {
            let counters = run(reference).unwrap_or_else(|e| panic!("{reference:?}: {e}"));
            let events: u64 = counters.split(' ').nth(1).unwrap().parse().unwrap();
            assert!(events > 100, "{reference:?}: {events} events");
        }
    }

    #[test]
    fn the_hash_is_of_the_references_and_of_what_they_count() {
        let first = hash_of(&REFERENCE[..1], &run);
        assert_eq!(first, hash_of(&REFERENCE[..1], &run));
        let counted = |counters: &str| hash_of(&REFERENCE[..1], &|_| Ok(counters.into()));
        let same = run(REFERENCE[0]).expect("it runs");
        assert_eq!(first, counted(&same));
        assert_ne!(first, counted(&(same.clone() + "0")));
        let [one, other] = [0, 1].map(|n| hash_of(&REFERENCE[n..=n], &|_| Ok(same.clone())));
        assert_ne!(one, other);
    }
}

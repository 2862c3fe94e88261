//! Models of benchmarks, run on the simulated machine: what they must do whatever the costs are.

use fairground::policy::{Features, find_profile};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::workload::{Env, Workload};

fn run_on(machine: &str, profile: &str, line: &str) -> Outcome {
    let machine = Machine::from_path_or_id(machine).unwrap();
    let cpus = machine.topology.nr_cpus() as u32;
    let argv: Vec<&str> = line.split(' ').collect();
    let workload = Workload::from_argv(&argv, &Env { cpus });
    let workload = workload.unwrap_or_else(|e| panic!("{line}: {e}"));
    let features = Features::of_profile(find_profile(profile).unwrap());
    let setup = Setup {
        machine: &machine,
        features,
        workload: &workload,
        seed: 1,
        trace: false,
    };
    outcome::run_within(&setup, 20_000_000).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn run(line: &str) -> Outcome {
    run_on("spr-guest-2cpu", "linux-6.18", line)
}

fn metric(out: &Outcome, name: &str) -> f64 {
    let found = out.metrics.iter().find(|(n, _)| n == name);
    found
        .and_then(|m| m.1)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn calls(out: &Outcome, function: &str) -> u64 {
    let row = out.functions.iter().find(|(name, ..)| *name == function);
    row.map_or(0, |(_, _, calls)| *calls)
}

#[test]
fn threads_do_the_events_that_were_asked_for_and_each_yields_as_often() {
    let out = run("sysbench threads --threads=4 --thread-locks=2 --thread-yields=20 --events=40");
    assert_eq!(metric(&out, "sysbench.events"), 40.0);
    assert_eq!(calls(&out, "sys_sched_yield"), 40 * 20);
    assert!(
        out.words
            .contains("total number of events:              40\n")
    );
    // Somebody who finds the mutex taken sleeps, and the woken task has to try again.
    assert!(calls(&out, "futex_wait") > 0 && calls(&out, "futex_wake") > 0);
}

#[test]
fn a_time_limit_ends_the_test() {
    let out = run("sysbench threads --threads=2 --thread-yields=5 --time=3ms");
    let total = metric(&out, "sysbench.total_time_s");
    assert!((0.003..0.004).contains(&total), "{total}");
    let out = run("sysbench cpu --threads=2 --time=20ms --cpu-max-prime=1000");
    let total = metric(&out, "sysbench.total_time_s");
    assert!((0.020..0.021).contains(&total), "{total}");
    // Two threads on two CPUs compute all the time: 5287 divisions of 14 cycles at 3 GHz.
    let events = metric(&out, "sysbench.events");
    let most = 2.0 * total / (5287.0 * 14.0 / 3.0e9);
    assert!(events < most && events > 0.85 * most, "{events} of {most}");
}

#[test]
fn a_mutex_without_contention_needs_no_system_call() {
    let alone =
        run("sysbench mutex --threads=1 --mutex-num=1 --mutex-locks=1000 --mutex-loops=100");
    // Two: the barrier of the start, and the join.
    assert!(calls(&alone, "futex_wait") <= 2, "{:?}", alone.functions);
    assert_eq!(metric(&alone, "sysbench.events"), 1.0);
    // Two that do nothing else go in step until something puts one out of it.
    let contended =
        run("sysbench mutex --threads=2 --mutex-num=1 --mutex-locks=20000 --mutex-loops=0");
    assert!(calls(&contended, "futex_wait") > 10);
}

#[test]
fn short_critical_sections_call_the_kernel_more_often_than_they_sleep() {
    // The word changes between the compare-and-swap and the kernel's look at it (`EAGAIN`).
    let out = run("sysbench mutex --threads=2 --mutex-num=1 --mutex-locks=2000 --mutex-loops=100");
    let (waits, switches) = (calls(&out, "futex_wait"), metric(&out, "switches"));
    assert!(waits as f64 > 2.0 * switches, "{waits} {switches}");
}

#[test]
fn memory_ends_when_all_is_transferred() {
    let line = "sysbench memory --threads=2 --memory-total-size=1M --memory-scope=local";
    let out = run(line);
    assert_eq!(metric(&out, "sysbench.events"), 1024.0);
    assert!(
        out.words.contains("1.00 MiB transferred ("),
        "{}",
        out.words
    );
    // A block that both write goes to and fro; the store buffers hide most of it.
    let shared = run(&line.replace("=local", "=global"));
    let (own, common) = (
        metric(&out, "sysbench.total_time_s"),
        metric(&shared, "sysbench.total_time_s"),
    );
    assert!(common > 1.05 * own, "{common} {own}");
}

#[test]
fn futex_wake_wakes_all_threads_in_each_repeat() {
    for profile in ["linux-6.18", "linux-5.8"] {
        let out = run_on(
            "spr-guest-2cpu",
            profile,
            "perf bench -r 3 futex wake -t 6 -w 1",
        );
        assert!(out.words.contains("[Run 3]: Wokeup 6 of 6 threads in"));
        assert_eq!(calls(&out, "do_exit(thread)"), 18);
        assert!(metric(&out, "sim_time_s") > 0.3);
        assert!(metric(&out, "futex-wake.run_us.avg") > 1.0);
    }
}

#[test]
fn user_space_benchmarks_run() {
    let out = run("perf bench mem memset -s 1MB -l 10");
    assert!(out.words.contains("# Copying 1MB bytes"), "{}", out.words);
    let large = run("perf bench mem memset -s 64MB -l 1");
    let speed = |out: &Outcome| metric(out, "mem-memset.mib_per_s");
    assert!(speed(&out) > 3.0 * speed(&large));
    let out = run("ebizzy -t 4 -S 20ms");
    assert!(out.words.contains(" records/s"), "{}", out.words);
    let time = metric(&out, "ebizzy.cpu_s");
    assert!((0.035..0.05).contains(&time), "{time}");
}

#[test]
fn each_leaf_of_a_tree_has_an_instance() {
    for (line, name) in [
        (
            "sysbench threads --threads=2 --thread-yields=2 --events=10",
            "sysbench.events",
        ),
        (
            "sysbench mutex --threads=2 --mutex-num=2 --mutex-locks=9",
            "sysbench.events",
        ),
        (
            "sysbench memory --threads=1 --memory-total-size=10K",
            "sysbench.events",
        ),
    ] {
        let one = metric(&run(line), name);
        let four = metric(&run(&format!("{line} --tree 2:2")), name);
        assert_eq!(four, 4.0 * one, "{line}");
    }
    let out = run("perf bench futex wake -t 2 -r 1 --tree 1:3");
    assert_eq!(calls(&out, "do_exit(thread)"), 6);
    let out = run("ebizzy -t 1 -S 5ms --tree 1:2");
    assert!(metric(&out, "ebizzy.records_per_s") > 0.0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let line = "sysbench mutex --threads=3 --mutex-num=2 --mutex-locks=200 --mutex-loops=50";
    let (a, b) = (run(line), run(line));
    assert_eq!(
        (a.elapsed_ns, a.events, a.words),
        (b.elapsed_ns, b.events, b.words)
    );
}

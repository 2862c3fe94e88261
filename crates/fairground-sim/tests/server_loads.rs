//! What the models of servers do on the machine: wake-ups for each request, spinning, quotas.

use fairground::policy::{Features, find_profile};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::workload::program::Program;
use fairground_sim::workload::{
    Better, CpuTime, Dur, Env, From, MetricDef, Op, TaskTemplate, Workload,
};

fn guest() -> Machine {
    Machine::builtin("spr-guest-2cpu").unwrap()
}

fn run(machine: &Machine, workload: &Workload) -> Outcome {
    let features = Features::of_profile(find_profile("linux-6.18").unwrap());
    let setup = Setup {
        machine,
        features,
        workload,
        seed: 1,
        trace: false,
    };
    outcome::run_within(&setup, 20_000_000).unwrap_or_else(|e| panic!("{e}"))
}

fn tool(line: &str) -> Outcome {
    let argv: Vec<&str> = line.split(' ').collect();
    run(
        &guest(),
        &Workload::from_argv(&argv, &Env { cpus: 2 }).unwrap(),
    )
}

fn metric(out: &Outcome, name: &str) -> f64 {
    let found = out.metrics.iter().find(|(n, _)| n == name);
    found
        .and_then(|m| m.1)
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_transaction_is_a_round_trip_for_each_statement() {
    let out = tool("sysbench oltp_read_only --time=100ms");
    let transactions = metric(&out, "oltp.tps") * 0.1;
    let each = metric(&out, "wakeups") / transactions;
    // 16 statements wake a backend and a client; three answers come in two pieces.
    assert!((31.5..=36.0).contains(&each), "{each}");
    assert_eq!(
        metric(&out, "oltp.queries_per_s") * 0.1,
        transactions * 16.0
    );
}

#[test]
fn a_request_of_schbench_is_three_wake_ups() {
    let out = tool("schbench -m 1 -t 1 -n 1 -r 100ms");
    let requests = metric(&out, "schbench.rps") * 0.1;
    let each = metric(&out, "wakeups") / requests;
    // The message thread, the worker, and the worker's timer.
    assert!((2.9..=3.1).contains(&each), "{each}");
    // 100 us of sleep, 50 us of timer slack, and a product of 614 us.
    let us = metric(&out, "schbench.request_us.p50");
    assert!((764.0..790.0).contains(&us), "{us}");
}

#[test]
fn a_quota_holds_schbench_back() {
    let line = "schbench -m 1 -t 2 -n 1 -r 200ms -L --cpu-max";
    let half = metric(&tool(&format!("{line} 10ms/10ms")), "busy_pct");
    let tenth = metric(&tool(&format!("{line} 2ms/10ms")), "busy_pct");
    assert!((48.0..54.0).contains(&half), "{half}");
    assert!((9.0..13.0).contains(&tenth), "{tenth}");
}

/// Writing the limits of many groups goes through all queues and takes tens of milliseconds, none
/// of them of the run: the locks that it takes are free when the first process starts.
#[test]
fn limits_written_before_the_run_hold_nobody_up() {
    let line = "schbench -m 1 -t 2 -n 1 -r 5ms -w 1ms --tree 2:14 --cpu-max 5ms/10ms";
    let argv: Vec<&str> = line.split(' ').collect();
    let machine = Machine::builtin("spr-8480-2s").unwrap();
    let workload = Workload::from_argv(&argv, &Env { cpus: 224 }).unwrap();
    let requests = metric(&run(&machine, &workload), "schbench.rps") * 0.005;
    assert!(requests >= 5.0, "{requests}");
}

/// Two tasks of one CPU take its lock three times each and keep it while they sleep.
#[test]
fn whoever_finds_the_lock_of_its_cpu_taken_burns_the_cpu() {
    let mut w = Workload::new("spin", Vec::new());
    w.n_cpu_locks = 1;
    w.marks = vec!["start".into(), "end".into()];
    w.masks = vec![vec![1]];
    let ops = vec![
        Op::Mark(0),
        Op::LoopStart { count: 3 },
        Op::LockCpu(0),
        Op::Sleep(Dur::Const(1_000_000)),
        Op::UnlockCpu(0),
        Op::LoopEnd { start: 1 },
        Op::Mark(1),
    ];
    let name = "spinner".to_owned();
    w.programs.push(Program { name, ops });
    let mut task = TaskTemplate::new("spinner", 0, 0);
    task.affinity = Some(0);
    w.templates = vec![task.clone(), task];
    w.initial = vec![0, 1];
    let (start, end) = (0, 1);
    let span = From::SpanS { start, end };
    w.metrics = vec![
        MetricDef::new("span", "s", Better::Lower, span),
        MetricDef::new("user", "%", Better::Lower, From::CpuTime(CpuTime::User)),
    ];
    let out = run(&guest(), &w);
    // Six sleeps one after the other, though the two could sleep at the same time: who wakes with
    // the lock takes it again before the other can run, so one has its three turns first.
    let ms = metric(&out, "span") * 1e3;
    assert!((6.0..6.6).contains(&ms), "{ms}");
    // Meanwhile the other spins: half of the time, on one of two CPUs.
    let user = metric(&out, "user");
    assert!((22.0..26.0).contains(&user), "{user}");
}

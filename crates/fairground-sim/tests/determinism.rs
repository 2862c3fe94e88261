//! One seed, one result; random programs neither panic, nor break a law, nor hang; and what cannot
//! go on says who waits for what.

use fairground::policy::{Features, PROFILES};
use fairground_sim::check::CheckedError;
use fairground_sim::machine::{Setup, Sim};
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome, RunError};
use fairground_sim::spec::Scenario;
use fairground_sim::workload::Env;
use fairground_sim::workload::program::{Cgroup, Chan, ChanKind, Dur, Op, Policy, Program, Until};
use fairground_sim::workload::program::{TaskTemplate, Workload};
use proptest::prelude::*;

fn machine(cpus: usize) -> Machine {
    Machine::builtin("spr-8480-2s")
        .unwrap()
        .shrunk(cpus)
        .unwrap()
}

fn outcome_of(argv: &str, seed: u64) -> Outcome {
    let machine = machine(8);
    let argv: Vec<&str> = argv.split(' ').collect();
    let workload = Workload::from_argv(&argv, &Env { cpus: 8 }).unwrap();
    let setup = Setup {
        machine: &machine,
        features: Features::default(),
        workload: &workload,
        seed,
        trace: true,
    };
    outcome::run(&setup).unwrap()
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    let bits = |o: &Outcome| -> Vec<(String, Option<u64>)> {
        let bits = |(n, v): &(String, Option<f64>)| (n.clone(), v.map(f64::to_bits));
        o.metrics.iter().map(bits).collect()
    };
    bits(a) == bits(b)
        && a.functions == b.functions
        && a.lines == b.lines
        && a.words == b.words
        && (a.elapsed_ns, a.events, a.switches) == (b.elapsed_ns, b.events, b.switches)
        && a.trace == b.trace
}

#[test]
fn a_seed_has_one_result_and_seeds_differ() {
    for argv in [
        "hackbench --pipe --threads -g 2 -f 4 -l 10 --tree 2:2",
        "hackbench -g 1 -f 4 -l 10",
        "perf bench sched pipe -l 200",
        "sleepers --tasks 12 --duration 20ms",
        "hogs --tasks 11 --duration 50ms --nice 0,5",
    ] {
        let (a, b, c) = (
            outcome_of(argv, 7),
            outcome_of(argv, 7),
            outcome_of(argv, 8),
        );
        assert!(!a.trace.is_empty() && same(&a, &b), "{argv}");
        assert!(!same(&a, &c), "{argv}: the seed changes nothing");
    }
}

fn scenario(text: &str) -> Result<Outcome, RunError> {
    let workload = Scenario::parse("s", text)
        .unwrap()
        .workload(&Env { cpus: 2 });
    let (machine, workload) = (machine(2), workload.unwrap());
    let setup = Setup {
        machine: &machine,
        features: Features::default(),
        workload: &workload,
        seed: 1,
        trace: false,
    };
    outcome::run_within(&setup, 200_000)
}

#[test]
fn a_standstill_says_who_waits_for_what() {
    let error = scenario(
        r#"
name = "s"
duration = "exit"
pipes = ["p"]
mutexes = ["a", "b"]
barriers = { both = 2 }
[[task]]
name = "reader"
count = 2
steps = [{ read = "p", bytes = 1 }]
[[task]]
name = "left"
steps = [{ lock = "a" }, { run = "1ms" }, { lock = "b" }, { unlock = "b" }, { unlock = "a" }]
[[task]]
name = "right"
steps = [{ lock = "b" }, { run = "1ms" }, { lock = "a" }, { unlock = "a" }, { unlock = "b" }]
[[task]]
name = "lonely"
steps = [{ barrier = "both" }]
"#,
    );
    let Err(RunError::Stuck(stuck)) = error else {
        panic!("{error:?}");
    };
    let text = stuck.to_string();
    for part in [
        "deadlock: after",
        "2 tasks `reader` at step 1",
        "wait for data in channel `p`",
        "task `left` at step 3",
        "task `right` at step 3",
        "mutex `a`, whose holder does not unlock it",
        "mutex `b`, whose holder does not unlock it",
        "task `lonely` at step 1",
        "barrier `both`, which 2 tasks have to reach",
    ] {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
    assert!(!text.contains("defect"), "{text}");
}

/// Time beyond what the machine can count is no time.
#[test]
fn a_run_of_years_is_ended_and_told() {
    let sleeps = "steps = [{ loop = 1000000, steps = [{ sleep = \"1000000s\" }] }]\n";
    let text = format!("duration = \"exit\"\n[[task]]\nname = \"a\"\n{sleeps}");
    let error = scenario(&text).expect_err("too long");
    let told = error.to_string();
    assert!(
        told.starts_with("the run was not at its end after "),
        "{told}"
    );
    assert!(
        told.contains(" s of simulated time, the most on "),
        "{told}"
    );
    // As long as a scenario may say.
    let text = text.replace("exit", "1000000s");
    scenario(&text).expect("an end");
}

#[test]
fn a_run_that_is_too_long_says_how_far_it_came() {
    let text = r#"
name = "s"
duration = "1000s"
[[task]]
name = "for-ever"
steps = [{ loop = "forever", steps = [{ run = "10us" }, "yield"] }]
"#;
    let error = scenario(text).unwrap_err();
    assert!(
        matches!(
            error,
            RunError::Budget {
                events: 200_000,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("not at its end after 200000 events")
    );
}

const GROUPS: u32 = 5;

fn dur() -> impl Strategy<Value = Dur> {
    prop_oneof![
        (1..2_000_000u64).prop_map(Dur::Const),
        (1..300_000u64).prop_map(|mean| Dur::Exp { mean }),
        (0..1000u64, 1000..400_000u64).prop_map(|(lo, hi)| Dur::Uniform { lo, hi }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => dur().prop_map(Op::Run),
        3 => dur().prop_map(Op::Sleep),
        1 => (1..3_000_000u64).prop_map(|ns| Op::Period(Dur::Const(ns))),
        3 => (0..3u32, 1..9000u32).prop_map(|(chan, bytes)| Op::Write { chan, bytes }),
        3 => (0..3u32, 1..9000u32).prop_map(|(chan, bytes)| Op::Read { chan, bytes }),
        1 => (0..3u32).prop_map(|chan| Op::Poll { chan }),
        1 => (0..2u32).prop_map(Op::SemWait),
        2 => (0..2u32).prop_map(Op::SemPost),
        1 => Just(Op::FutexWait(0)),
        2 => (1..4u32).prop_map(|n| Op::FutexWake { futex: 0, n }),
        2 => (0..2u32).prop_map(Op::Lock),
        3 => (0..2u32).prop_map(Op::Unlock),
        2 => (0..2u32).prop_map(|mutex| Op::CondWait { cond: 0, mutex }),
        2 => any::<bool>().prop_map(|all| Op::CondSignal { cond: 0, all }),
        1 => (1..2_000_000u64).prop_map(Op::Busy),
        1 => (0..20_000_000u64).prop_map(Op::SleepUntilRunTime),
        1 => (0..2u32, any::<bool>(), any::<bool>(), 1..3_000_000u64).prop_map(
            |(timer, shared, stays, every)| Op::Timer { timer, shared, every, stays }),
        1 => Just(Op::Barrier(0)),
        1 => (1..500u32).prop_map(|bytes| Op::Call { service: 0, bytes }),
        1 => Just(Op::Accept(0)),
        1 => (1..500u32).prop_map(|bytes| Op::Reply { service: 0, bytes }),
        2 => Just(Op::Yield),
        2 => Just(Op::Fork { template: 0 }),
        1 => Just(Op::Join),
        1 => (-20..=19i8).prop_map(Op::SetNice),
        1 => (0..3u32).prop_map(Op::SetAffinity),
        2 => (0..GROUPS).prop_map(Op::SetCgroup),
        1 => (0..5_000_000u64).prop_map(Op::SetSlice),
    ]
}

/// A program with one loop around a part of it. The child's (`leaf`) does not fork.
fn program(leaf: bool) -> impl Strategy<Value = Program> {
    let ops = prop::collection::vec(op(), 1..10);
    (ops, 1..6u64).prop_map(move |(mut ops, count)| {
        if leaf {
            ops.retain(|o| !matches!(o, Op::Fork { .. }));
        }
        ops.insert(0, Op::LoopStart { count });
        ops.push(Op::Run(Dur::Const(500)));
        ops.push(Op::LoopEnd { start: 0 });
        let name = "p".into();
        Program { name, ops }
    })
}

fn group() -> impl Strategy<Value = (u64, bool, Option<u64>, u64)> {
    let quota = prop::option::weighted(0.4, 1_000_000..20_000_000u64);
    (
        2..10_000u64,
        prop::bool::weighted(0.2),
        quota,
        0..1_000_000u64,
    )
}

fn template() -> impl Strategy<Value = (Program, u32, i8, Policy, Option<u32>)> {
    let policy = prop_oneof![
        Just(Policy::Normal),
        Just(Policy::Batch),
        Just(Policy::Idle)
    ];
    (
        program(false),
        0..GROUPS,
        -20..=19i8,
        policy,
        prop::option::of(0..3u32),
    )
}

prop_compose! {
    fn workload()(
        leaf in program(true),
        tasks in prop::collection::vec(template(), 1..8),
        groups in prop::collection::vec(group(), 4),
        timed in any::<bool>(),
    ) -> Workload {
        let mut w = Workload::new("random", Vec::new());
        for (i, (shares, idle, quota, burst)) in groups.into_iter().enumerate() {
            let parent = [0, 1, 0, 3][i];
            let mut group = Cgroup::new(format!("/g{i}"), parent);
            (group.shares, group.idle, group.quota_ns) = (shares, idle, quota);
            group.period_ns = 10_000_000;
            group.burst_ns = quota.map_or(0, |q| burst.min(q));
            w.cgroups.push(group);
        }
        w.chans = vec![
            Chan { kind: ChanKind::Pipe { slots: 4, page_bytes: 4096 } },
            Chan { kind: ChanKind::Pipe { slots: 1, page_bytes: 512 } },
            Chan { kind: ChanKind::Socket { sndbuf: 16_384 } },
        ];
        w.sems = vec![0, 2];
        (w.n_futexes, w.n_timers, w.n_mutexes, w.barriers) = (1, 2, 2, vec![2]);
        w.services = vec!["s".into()];
        w.masks = vec![vec![0], vec![0, 1], vec![1, 2, 3]];
        let mut child = TaskTemplate::new("child", 0, 1);
        child.thread = true;
        w.programs.push(leaf);
        w.templates.push(child);
        for (program, cgroup, nice, policy, affinity) in tasks {
            let n = w.programs.len() as u32;
            w.programs.push(program);
            let mut task = TaskTemplate::new("task", n, n + 2);
            (task.nice, task.policy, task.affinity) = (nice, policy, affinity);
            task.cgroup = Some(cgroup);
            w.templates.push(task);
            w.initial.push(n);
        }
        if timed {
            w.duration = Until::Time(30_000_000);
        }
        w
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000,
        failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_keep_the_laws(
        workload in workload(),
        profile in 0..PROFILES.len(),
        seed in any::<u64>(),
    ) {
        let machine = machine(4);
        prop_assert_eq!(workload.validate(), Ok(()));
        let features = Features::of_profile(&PROFILES[profile]);
        let setup = Setup { machine: &machine, features, workload: &workload, seed, trace: true };
        let mut sim = Sim::new(&setup).unwrap();
        match sim.run_checked(1, 2_000_000) {
            Ok(_) => {}
            Err(CheckedError::Stuck(stuck)) => {
                let text = stuck.to_string();
                let may = workload.duration == Until::AllExit;
                prop_assert!(may && !text.contains("defect"), "{}", text);
            }
            Err(other) => prop_assert!(false, "{}: {other}", PROFILES[profile].name),
        }
    }
}

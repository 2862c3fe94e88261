//! Files of rt-app: what is an error, what its front end `workgen` lets pass, and what the events
//! mean on the simulated machine.

use fairground::policy::Features;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::spec::Scenario;
use fairground_sim::workload::program::RealTime;
use fairground_sim::workload::{Dur, Env, Op, Workload};

const ENV: Env = Env { cpus: 64 };

fn read(text: &str) -> Result<Workload, String> {
    let parsed = Scenario::parse("s.json", text).and_then(|s| s.workload(&ENV));
    parsed.map_err(|e| e.to_string())
}

/// A file with one task.
fn task(events: &str) -> String {
    tasks(&format!("\"a\": {{{events}}}"))
}

fn tasks(tasks: &str) -> String {
    format!("{{\"global\": {{\"duration\": 1}},\n\"tasks\": {{{tasks}}}}}")
}

fn workload(text: &str) -> Workload {
    read(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The operations of the only task, without its outer loop.
fn ops(events: &str) -> Vec<Op> {
    let w = workload(&task(events));
    let ops = &w.programs[0].ops;
    ops[1..ops.len() - 1].to_vec()
}

fn run_op(us: u64) -> Op {
    Op::Run(Dur::Const(us * 1000))
}

/// Events of a task, and what is told of them.
const MISTAKES: &[(&str, &str)] = &[
    (
        "\"run\": 10, \"slep\": 5",
        "s.json:2: unknown key 'slep' in a phase",
    ),
    ("\"run\": 10, \"slep\": 5", "did you mean 'sleep'?"),
    ("\"runtimes\": 10", "did you mean 'runtime'?"),
    ("\"run\": -1", "-1 is out of range"),
    ("\"run\": 1.5", "no integer"),
    ("\"run\"", "found nothing"),
    ("\"run\": 0", "take no time"),
    ("\"loop\": 5", "no events"),
    ("\"phases\": {}", "no phases"),
    (
        "\"run\": 1, \"loop\": 1, \"loop\": 2",
        "'loop' is here twice",
    ),
    (
        "\"timer\": {\"period\": 1, \"period\": 2}",
        "'period' is here twice",
    ),
    (
        "\"run\": 1, \"policy\": \"SCHED_FIFO\", \"priority\": -5",
        "-5 is out of range; expected an integer from 1 to 99",
    ),
    (
        "\"run\": 1, \"lock\": \"\"",
        "expected the name of a mutex, found an empty one",
    ),
    (
        "\"run\": 1, \"policy\": \"SCHED_DEADLINE\"",
        "'SCHED_DEADLINE' is not modelled",
    ),
    ("\"run\": 1, \"cpus\": [64]", "no CPU of the machine"),
    ("\"run\": 1, \"unlock\": \"m\"", "unlock of 'm'"),
    (
        "\"run\": 1, \"lock\": \"m\"",
        "a turn of the loop ends with other mutexes",
    ),
    (
        "\"wait\": {\"ref\": \"c\", \"mutex\": \"m\"}",
        "a wait with 'm', which this task does not hold",
    ),
    ("\"wait\": {\"ref\": \"c\"}", "a wait needs 'mutex'"),
    (
        "\"lock\": \"q\", \"resume\": \"q\", \"unlock\": \"q\"",
        "resume takes the mutex 'q', which this task holds",
    ),
    ("\"resume\"", "found nothing"),
    ("\"fork\": \"b\"", "unknown task 'b'"),
    ("\"iorun\": 100", "'iorun' writes to a device"),
    ("\"run\": 1, \"taskgroup\": \"tg\"", "'tg' is no path"),
    ("\"run\": 1, \"taskgroup\": \"/a//b\"", "is no path"),
    (
        "\"phases\": {\"p\": {\"run\": 1}}, \"run\": 1",
        "unknown key 'run' in a task with phases",
    ),
    (
        "\"phases\": {\"p\": {\"run\": 1, \"policy\": \"SCHED_RR\"}}",
        "a change to a real-time policy",
    ),
    (
        "\"policy\": \"SCHED_RR\", \"phases\": {\"p\": {\"run\": 1, \"priority\": 3}}",
        "a real-time task keeps its policy",
    ),
    (
        "\"timer\": {\"ref\": \"t\", \"period\": 5, \"mode\": \"absolut\"}",
        "relative",
    ),
    ("\"run\": /* 1", "s.json:2: a comment without an end"),
    (
        "\"loop\": 1, \"barrier\": \"b\", \"fork\": \"a\"",
        "fork of 'a', which meets others at a barrier",
    ),
];

#[test]
fn a_mistake_is_told_with_its_line() {
    for (events, expected) in MISTAKES {
        assert_error(&task(events), expected);
    }
    read(&task("\"run\": 1, \"policy\": \"SCHED_FIFO\"")).unwrap();
    for (text, expected) in [
        (
            task("\"run\": 1").replace("\"a\"", "\" \""),
            "s.json:2: the name of a task is empty",
        ),
        (
            task("\"run\": 1").replace("\"a\"", "\"a\\u001b[2J\""),
            "expected the name of a task, without control characters",
        ),
        (
            tasks("\"a\": {\"run\": 1}, \"a\": {\"run\": 1}"),
            "the key 'a' is here twice",
        ),
        (
            tasks("\"a\": {\"run\": 1, \"instance\": 0}"),
            "there is no task to start",
        ),
        (task("\"run\": 1") + " /* x", "a comment without an end"),
        (
            "{\"tasks\":{\"a\":{\"run\":1}}}".into(),
            "the task 'a' never ends",
        ),
        ("{\"tasks\":{}}".into(), "there is no task"),
        ("{\"tasks\":{},,}".into(), "a key in quotes"),
        ("{\"tasks".into(), "a text without an end"),
        (
            format!("{{\"tasks\":{}", "[".repeat(100_000)),
            "levels of nesting",
        ),
        (
            task("\"run\": 1").replace("\"duration\": 1", "\"pi_enabled\": true"),
            "priority inheritance",
        ),
    ] {
        assert_error(&text, expected);
    }
}

fn assert_error(text: &str, expected: &str) {
    let Err(message) = read(text) else {
        panic!("no error in\n{text}");
    };
    let wanted = format!("{message}\nbut expected: {expected}");
    assert!(message.contains(expected), "{wanted}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

/// As some editors write it, and as workgen takes it.
#[test]
fn what_workgen_lets_pass_is_read() {
    workload(&format!("\u{feff}{}", task("\"run\": 1")));
    let twice = ops("\"run\": 1, \"sleep\": 2, \"run\": 3, \"run_b\": 4, \"run2\": 5,");
    let sleep = Op::Sleep(Dur::Const(2000));
    assert_eq!(twice, [run_op(1), sleep, run_op(3), run_op(4), run_op(5)]);
    let own = ops("\"suspend\", \"run\": 1");
    assert_eq!(own, ops("\"suspend\": \"a\", \"run\": 1"));
    assert_eq!(own, ops("\"suspend\": \"\", \"run\": 1"));
    assert_eq!(ops("\"run\": 1, \"yield\"")[1], Op::Yield);
    let phases = "\"phases\": {\"p\": {\"run\": 1,}, \"p\": {\"run\": 2},}";
    let loops = |op: &Op| !matches!(op, Op::LoopStart { .. } | Op::LoopEnd { .. });
    let runs: Vec<Op> = ops(phases).into_iter().filter(loops).collect();
    assert_eq!(runs, [run_op(1), run_op(2)]);
}

#[test]
fn events_become_operations() {
    let w = workload(&task(
        "\"loop\": 1, \"run\": 10, \"barrier\": \"b\", \"instance\": 3",
    ));
    assert_eq!((w.barriers, w.initial.len()), (vec![3], 3));
    let (lock, unlock) = (Op::Lock(0), Op::Unlock(0));
    let (cond, mutex) = (0, 0);
    let wait = Op::CondWait { cond, mutex };
    let signal = |all| Op::CondSignal { cond, all };
    assert_eq!(ops("\"suspend\": \"x\""), [lock, wait, unlock]);
    assert_eq!(ops("\"resume\": \"x\""), [lock, signal(true), unlock]);
    assert_eq!(
        ops("\"signal\": \"x\", \"broad\": \"x\""),
        [signal(false), signal(true)]
    );
    // As the tutorial says, and as its examples write it.
    let sync = "\"sync\": {\"ref\": \"x\", \"mutex\": \"m\"}";
    let whole = [lock, signal(false), wait, unlock];
    assert_eq!(ops(sync), whole);
    let held = format!("\"lock\": \"m\", {sync}, \"unlock\": \"m\"");
    assert_eq!(ops(&held), whole);
    assert_eq!(ops("\"runtime\": 7"), [Op::Busy(7000)]);
}

/// What rt-app says of a barrier: a condition variable with a mutex of its own.
#[test]
fn each_barrier_has_a_mutex_beside_those_of_the_file() {
    let task = "{\"lock\": \"m\", \"unlock\": \"m\", \"barrier\": \"b\", \"barrier1\": \"c\"}";
    let w = workload(&tasks(&format!("\"x\": {task}, \"y\": {task}")));
    let of_barriers = w.programs[0].ops.iter().filter_map(|op| match op {
        Op::CondBarrier { barrier, mutex } => Some((*barrier, *mutex)),
        _ => None,
    });
    assert_eq!(of_barriers.collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    assert_eq!((w.n_mutexes, w.barriers), (3, vec![2, 2]));
}

#[test]
fn a_timer_shifts_or_stays_as_its_mode_says_and_is_shared_by_its_name() {
    let waits = |timers: &str| {
        let all = ops(&format!("\"run\": 1, {timers}"));
        let waits = |op: &Op| matches!(op, Op::Period(_) | Op::Pace(_) | Op::Timer { .. });
        all.into_iter().filter(waits).collect::<Vec<_>>()
    };
    let timer = |name: &str, mode: &str| {
        format!("\"timer\": {{\"ref\": \"{name}\", \"period\": 20{mode}}}")
    };
    let (every, ns) = (Dur::Const(20_000), 20_000);
    let absolute = ", \"mode\": \"absolute\"";
    assert_eq!(waits(&timer("unique", "")), [Op::Period(every)]);
    let relative = timer("unique1", ", \"mode\": \"relative\"");
    assert_eq!(waits(&relative), [Op::Period(every)]);
    assert_eq!(waits(&timer("unique", absolute)), [Op::Pace(every)]);
    let other = |timer, shared, stays| Op::Timer {
        timer,
        shared,
        every: ns,
        stays,
    };
    assert_eq!(waits(&timer("t", "")), [other(0, true, false)]);
    // The second of a thread has a series of its own.
    let two = format!("{}, {}", timer("uniqueA", ""), timer("uniqueB", absolute));
    assert_eq!(waits(&two), [Op::Period(every), other(1, false, true)]);
}

#[test]
fn properties_of_a_task_and_its_phases() {
    let w = workload(&task("\"run\": 1, \"policy\": \"SCHED_RR\""));
    let turns = RealTime {
        priority: 10,
        takes_turns: true,
    };
    assert_eq!(w.templates[0].real_time, Some(turns));
    // A slice is set by the same call as a deadline task's budget.
    let w = workload(&task("\"run\": 1, \"priority\": -19, \"dl-runtime\": 3000"));
    let t = &w.templates[0];
    assert_eq!((t.nice, t.slice_ns), (-19, Some(3_000_000)));
    let w = workload(&task(
        "\"taskgroup\": \"/a/b\", \"phases\": {\
         \"p\": {\"run\": 1, \"priority\": 5},\
         \"q\": {\"run\": 1, \"taskgroup\": \"/\", \"cpus\": [1]},\
         \"r\": {\"run\": 1, \"taskgroup\": \"\", \"policy\": \"SCHED_IDLE\"}}",
    ));
    let paths: Vec<&str> = w.cgroups.iter().map(|g| g.path.as_str()).collect();
    assert_eq!(paths, ["/", "/a", "/a/b"]);
    assert_eq!(w.cgroups[2].parent, 1);
    assert_eq!(w.templates[0].cgroup, Some(2));
    let sets = |op: &&Op| {
        matches!(
            op,
            Op::SetNice(_) | Op::SetPolicy { .. } | Op::SetCgroup(_) | Op::SetAffinity(_)
        )
    };
    let sets: Vec<Op> = w.programs[0].ops.iter().filter(sets).copied().collect();
    let policy = fairground_sim::workload::program::Policy::Idle;
    let expected = [
        Op::SetNice(5),
        Op::SetAffinity(0),
        Op::SetCgroup(0),
        Op::SetAffinity(1),
        Op::SetPolicy { policy, nice: 0 },
    ];
    assert_eq!(sets, expected);
    assert_eq!((w.masks[0].len(), w.masks[1].len()), (1, 64));
    let w = workload(&task("\"run\": 1, \"util_min\": 100, \"util_max\": 200"));
    assert!(
        w.notes
            .iter()
            .any(|note| note.ends_with("util_max, util_min"))
    );
}

#[test]
fn events_run_in_the_order_of_the_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/rt-app.json");
    let w = workload(&std::fs::read_to_string(file).unwrap());
    let at = |us| w.programs[1].ops.iter().position(|op| *op == run_op(us));
    assert!(at(200) < at(5000) && at(5000) < at(3000));
    assert!(at(200).is_some() && at(3000).is_some());
}

/// On as many CPUs, on which threads that share a core take nothing from each other.
fn simulate(cpus: usize, text: &str) -> Outcome {
    let machine = Machine::builtin("spr-8480-2s").unwrap();
    let machine = machine.shrunk(cpus).unwrap();
    let machine = machine.with_figure("alu.smt_throughput", 2.0).unwrap();
    let parsed = Scenario::parse("s.json", text);
    let env = Env { cpus: cpus as u32 };
    let workload = parsed.and_then(|s| s.workload(&env));
    let workload = workload.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let setup = Setup {
        machine: &machine,
        features: Features::default(),
        workload: &workload,
        seed: 1,
        trace: false,
    };
    outcome::run_within(&setup, 20_000_000).unwrap_or_else(|e| panic!("{e}"))
}

fn metric(out: &Outcome, name: &str) -> f64 {
    let found = out.metrics.iter().find(|(n, _)| n == name);
    let names: Vec<_> = out.metrics.iter().map(|m| &m.0).collect();
    found
        .and_then(|m| m.1)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

fn close(what: &str, is: f64, want: f64, tolerance: f64) {
    let off = (is - want).abs();
    assert!(off <= tolerance, "{what}: {is}, not {want} +- {tolerance}");
}

/// Two threads of one CPU compute 10 ms of progress each in 20 ms; both are through with 10 ms of
/// the clock in 10 ms.
#[test]
fn a_runtime_is_of_the_clock_and_a_run_of_progress() {
    let elapsed = |event: &str| {
        let task = format!("\"loop\": 1, \"cpus\": [0], \"instance\": 2, \"{event}\": 10000");
        let out = simulate(2, &format!("{{\"tasks\": {{\"a\": {{{task}}}}}}}"));
        metric(&out, "elapsed_s") * 1e3
    };
    close("run, ms", elapsed("run"), 20.0, 0.4);
    // The one that waits finds its time over when it runs again, and looks after its 32 us.
    let busy = elapsed("runtime");
    assert!((10.0..15.0).contains(&busy), "{busy}");
}

/// Whoever is resumed runs once for each resume, all threads that sleep at once; a resume before
/// the suspend is lost.
#[test]
fn a_resume_wakes_all_that_are_suspended() {
    let waker = "\"a\": {\"resume\": \"b\", \"timer\": {\"ref\": \"unique\", \"period\": 10000}}";
    let out = simulate(
        8,
        &tasks(&format!(
            "{waker}, \"b\": {{\"instance\": 3, \"suspend\": \"b\", \"run\": 1000}}"
        )),
    );
    close("b.cpus", metric(&out, "b.cpus"), 0.3, 0.01);
    // It is not there for every second one.
    let out = simulate(
        8,
        &tasks(&format!(
            "{waker}, \"b\": {{\"suspend\": \"b\", \"run\": 1000, \"sleep\": 12000}}"
        )),
    );
    close("b.cpus", metric(&out, "b.cpus"), 0.05, 0.003);
}

/// A decoder and the thread that it calls, each waiting for the other's signal.
#[test]
fn a_signal_wakes_one_and_the_mutex_comes_back() {
    let out = simulate(
        4,
        &tasks(
            "\"tick\": {\"resume\": \"dec\", \"timer\": {\"ref\": \"unique\", \"period\": 5000}},\
             \"dec\": {\"suspend\", \"run\": 100, \"lock\": \"m\", \"signal\": \"q\",\
              \"wait\": {\"ref\": \"q\", \"mutex\": \"m\"}, \"unlock\": \"m\", \"run\": 200},\
             \"omx\": {\"lock\": \"m\", \"wait\": {\"ref\": \"q\", \"mutex\": \"m\"},\
              \"unlock\": \"m\", \"run\": 300, \"lock\": \"m\", \"signal\": \"q\",\
              \"unlock\": \"m\"}",
        ),
    );
    close("dec.cpus", metric(&out, "dec.cpus"), 0.06, 0.003);
    close("omx.cpus", metric(&out, "omx.cpus"), 0.06, 0.003);
}

/// 10 ms of work each 20 ms: it comes to wait 10 ms after each point, and is woken in time.
#[test]
fn response_and_wake_up_of_a_timer_are_measured() {
    let out = simulate(
        2,
        &task("\"run\": 10000, \"timer\": {\"ref\": \"unique\", \"period\": 20000}"),
    );
    let response = metric(&out, "a.response.latency_us.p50");
    close("response, us", response, 10_000.0, 200.0);
    let late = metric(&out, "a.wakeup.latency_us.p50");
    assert!((0.5..200.0).contains(&late), "{late}");
}

/// Two threads that share a timer move it in turns, each by a period.
#[test]
fn a_shared_timer_serves_its_threads_in_turn() {
    let cpus = |name: &str| {
        let timer = format!("{{\"ref\": \"{name}\", \"period\": 10000}}");
        let task = format!("\"instance\": 2, \"run\": 1000, \"timer\": {timer}");
        metric(
            &simulate(4, &tasks(&format!("\"a\": {{{task}}}"))),
            "a.cpus",
        )
    };
    close("of its own", cpus("unique"), 0.2, 0.005);
    close("shared", cpus("tick"), 0.1, 0.005);
}

#[test]
fn a_fork_starts_a_task_that_has_no_thread_at_first() {
    let out = simulate(
        4,
        &tasks(
            "\"p\": {\"loop\": 3, \"run\": 1000, \"fork\": \"c\", \"sleep\": 1000},\
             \"c\": {\"instance\": 0, \"loop\": 1, \"run\": 20000}",
        ),
    );
    close("c.cpus", metric(&out, "c.cpus"), 0.06, 0.003);
    close("p.cpus", metric(&out, "p.cpus"), 0.003, 0.0005);
}

/// A phase without CPUs of its own has the task's again.
#[test]
fn phases_move_between_sets_of_cpus() {
    let out = simulate(
        2,
        &tasks(
            "\"hog\": {\"cpus\": [1], \"run\": 1000000},\
             \"a\": {\"cpus\": [0], \"phases\": {\
              \"on1\": {\"loop\": 50, \"cpus\": [1], \"run\": 1000},\
              \"on0\": {\"loop\": 100, \"run\": 1000}}}",
        ),
    );
    // 50 ms of work beside the hog take 100 ms, and then 100 ms of work are alone.
    close("a.cpus", metric(&out, "a.cpus"), 0.75, 0.03);
    close("hog.cpus", metric(&out, "hog.cpus"), 0.75, 0.03);
}

/// 1 MB of each 10 ms in a buffer that fits into no private cache, and in one that does.
#[test]
fn writing_memory_takes_as_long_as_the_buffer_is_large() {
    let cpus = |bytes: u64| {
        let global = format!("\"duration\": 1, \"mem_buffer_size\": {bytes}");
        let text = task("\"mem\": 1000000, \"timer\": {\"ref\": \"unique\", \"period\": 10000}");
        metric(
            &simulate(2, &text.replace("\"duration\": 1", &global)),
            "a.cpus",
        )
    };
    let (small, large) = (cpus(16_384), cpus(1 << 30));
    assert!(small > 0.0001 && large > 3.0 * small, "{small} {large}");
}

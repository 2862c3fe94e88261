//! A simulated run, exported, read again and replayed.

mod common;

use common::{machine, simulated, traced_on};
use fairground::policy::Features;
use fairground_sim::exact::Exact;
use fairground_sim::machine_file::Machine;
use fairground_trace::derive::Attributes;
use fairground_trace::export::{self, Format};
use fairground_trace::fidelity::Fidelity;
use fairground_trace::replay::{Place, Replay};
use fairground_trace::{Event, Kind, Recording, open};

fn exported(recording: &Recording, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    export::write(recording, format, &mut bytes).unwrap();
    bytes
}

#[test]
fn text_that_was_exported_reads_the_same() {
    let recording = simulated("hackbench --pipe -g 1 -f 3 -l 20");
    let text = exported(&recording, Format::Text);
    let again = open::read(&text[..], &mut |_| {}).unwrap();
    assert_eq!(again.left_out.text(), "");
    assert_eq!(again.events, recording.events);
    assert_eq!(again.names.all(), recording.names.all());
}

/// Exported, read and replayed: the fidelity, what was read, and the replay's events.
fn there_and_back(machine: Machine, words: &str) -> (Fidelity, Recording, Recording) {
    let told = Exact {
        thread_events: true,
        ..Exact::default()
    };
    let (recording, ..) = traced_on(&machine, words, &told);
    let text = exported(&recording, Format::Text);
    let again = open::read(&text[..], &mut |_| {}).unwrap();
    assert!(again.events == recording.events, "{words}");
    let mut attributes = Attributes::parse(&again.said).unwrap();
    attributes.take_processes(&again.names);
    let home = Place {
        machine,
        features: Features::default(),
        tracer_ns: 0,
    };
    let replay = Replay::new(&again, &attributes, &home).unwrap();
    let run = replay.run(&home, replay.seed()).unwrap();
    assert_eq!(run.unfinished, 0, "{words}");
    let f = Fidelity::new(&replay.recorded, &run, &again.names);
    (f, again, run.events)
}

/// The scheduler's events: not what threads say of themselves.
fn scheduler(recording: &Recording) -> impl Iterator<Item = &Event> {
    let events = recording.events.iter();
    events.filter(|e| !matches!(e.kind, Kind::Told(_)))
}

/// Every event of the run is in the replay, of the same threads on the same CPU in the same order
/// at the same nanosecond.
fn is_the_same_schedule(machine: Machine, words: &str) {
    let (f, recorded, replayed) = there_and_back(machine, words);
    let met = f.met().map(|met| met != Some(false));
    assert_eq!(met, [true; 4], "{words}: {f:?}");
    let what = |e: &Event| (e.at_ns, e.cpu, e.tid, e.kind);
    let mut replayed = scheduler(&replayed);
    for (i, a) in scheduler(&recorded).enumerate() {
        let b = replayed.next().expect("as many events");
        assert_eq!(what(a), what(b), "{words}, event {i}");
    }
    assert_eq!(replayed.next(), None, "{words}");
}

#[test]
fn hogs_and_sleepers_come_back_to_the_nanosecond() {
    for words in [
        "hogs -t 12 -d 400ms",
        "hogs -t 24 -d 400ms",
        "hogs -t 12 -d 300ms --nice 0,5,-3",
        "hogs -t 12 -d 200ms --tree 1:2 --cpu-max 4ms/20ms",
        "sleepers --tasks 6 -d 400ms",
        "sleepers --tasks 40 -d 200ms -p 5ms -r exp_1ms",
        // It keeps idle CPUs out of all states but the first.
        "cyclictest -D 20ms -t4",
        "cyclictest -D 20ms -t2 -p 80 --laptop",
    ] {
        is_the_same_schedule(machine(), words);
    }
}

#[test]
fn pipes_sockets_and_locks_come_back_to_the_nanosecond() {
    for words in [
        "hackbench --pipe -g 1 -f 4 -l 100",
        "hackbench --threads -g 1 -f 4 -l 40",
        "perf bench sched pipe -l 500",
        "perf bench futex wake -t 16",
        "sysbench mutex --threads=16 --mutex-num=4 --mutex-locks=500 --mutex-loops=1000 run",
        "sysbench threads --threads=8 --thread-locks=2 --events=20 run",
        "schbench -m 1 -t 4 -r 1",
        "schbench -m 1 -t 6 -r 1",
        "schbench -m 1 -t 8 -r 1",
        "schbench -m 2 -t 3 -r 1",
        // With threads that spin for the lock of a CPU, and some that the stopper moves.
        "schbench -m 3 -t 3 -r 1",
    ] {
        is_the_same_schedule(machine(), words);
    }
}

/// Of the scheduler's tracepoints alone: what two threads that wait for each other do before and
/// after they wake the other is what it was, so that both are done when they were.
#[test]
fn who_waits_for_each_other_is_done_in_time_by_the_tracepoints_alone() {
    let recording = simulated("perf bench sched pipe -l 500");
    let attributes = Attributes::default();
    let home = Place {
        machine: machine(),
        features: Features::default(),
        tracer_ns: 0,
    };
    let replay = Replay::new(&recording, &attributes, &home).unwrap();
    let run = replay.run(&home, 1).unwrap();
    let (first, last) = recording.span();
    let off = run.elapsed_ns as f64 / (last - first) as f64 - 1.0;
    assert!(off.abs() < 0.02, "{off}");
}

/// Sleepers with other periods beside threads that compute throughout, pairs with a pipe, and a
/// request over the loopback interface, on two CPUs of a guest whose hypervisor takes time away.
#[test]
fn a_scenario_comes_back_to_the_nanosecond() {
    let guest = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
    let scenario = r#"
        name = "both"
        duration = "400ms"
        pipes = ["there", "back"]
        [[task]]
        name = "hog"
        count = 3
        steps = [{ loop = "forever", steps = [{ run = "10ms" }] }]
        [[task]]
        name = "sleeper"
        steps = [{ loop = "forever", steps = [{ sleep = "3ms" }, { run = "700us" }] }]
        [[task]]
        name = "other"
        count = 2
        steps = [{ loop = "forever", steps = [{ sleep = "exp 5ms" }, { run = "exp 400us" }] }]
        [[task]]
        name = "asks"
        start = "5ms"
        steps = [{ loop = "forever", steps = [
            { period = "2ms" }, { write = "there", bytes = 300 }, { read = "back" }] }]
        [[task]]
        name = "answers"
        steps = [{ loop = "forever", steps = [
            { read = "there", bytes = 300 }, { run = "exp 50us" }, { write = "back" }] }]
    "#;
    is_the_same_schedule(guest, scenario);
}

/// Making a hundred tasks takes longer than the first ones need to run: those that run before their
/// time has begun sleep until then, and those with a start until that.
#[test]
fn tasks_that_wait_for_their_beginning_come_back_to_the_nanosecond() {
    let servers = Machine::from_path_or_id("icx-8358-2s").unwrap();
    let scenario = r#"
        name = "begin"
        duration = "20ms"
        [[task]]
        name = "sleeper"
        count = 60
        steps = [{ sleep = "1ms" }, { run = "1ms" }, { period = "3ms" }, { run = "100us" }]
        [[task]]
        name = "late"
        count = 20
        start = "4321us"
        steps = [{ run = "100us" }, { until = "2ms" }, { run = "1ms" }, { period = "7ms" },
                 { run = "1ms" }]
    "#;
    is_the_same_schedule(servers, scenario);
}

/// Condition variables, timers that threads share and two of one thread, and time that passes in a
/// loop, in a file of rt-app.
#[test]
fn what_rt_app_does_comes_back_to_the_nanosecond() {
    let file = r#"{ "global": { "duration": 1 }, "tasks": {
        "a": { "runtime": 3000, "resume": "b", "timer": { "ref": "t", "period": 5000 } },
        "a2": { "delay": 1234, "runtime": 1000, "timer": { "ref": "t", "period": 5000 },
            "run": 100, "timer": { "ref": "uniqueA", "period": 3000 },
            "timer": { "ref": "uniqueB", "period": 7000, "mode": "absolute" } },
        "b": { "instance": 2, "suspend", "run": 700, "sync": { "ref": "q", "mutex": "m" } },
        "c": { "lock": "m", "wait": { "ref": "q", "mutex": "m" }, "unlock": "m", "run": 200,
            "lock": "m", "signal": "q", "unlock": "m", "sleep": 100 },
        "h": { "taskgroup": "/g/x", "run": 100000, "cpus": [0, 1], "instance": 3 } } }"#;
    is_the_same_schedule(machine(), file);
}

/// Real-time tasks of both kinds, whose priorities are recorded and whose policies are attributes.
#[test]
fn real_time_tasks_come_back_to_the_nanosecond() {
    let machine = Machine::from_path_or_id("xeon-8cpu-2013").unwrap();
    let scenario = r#"
        name = "real-time"
        duration = "700ms"
        semaphores = { s = 0 }
        [[task]]
        name = "ticks"
        count = 2
        policy = "fifo"
        priority = 50
        steps = [{ loop = "forever", steps = [
            { period = "2ms" }, { run = "exp 300us" }, { post = "s" }] }]
        [[task]]
        name = "turns"
        count = 3
        policy = "rr"
        priority = 10
        affinity = [0, 1]
        steps = ["hog"]
        [[task]]
        name = "waits"
        steps = [{ loop = "forever", steps = [{ wait = "s" }, { run = "100us" }] }]
        [[task]]
        name = "hog"
        count = 9
        steps = ["hog"]
    "#;
    is_the_same_schedule(machine, scenario);
}

/// Stretches of computing that follow each other stay apart: threads of a core slow each other
/// down, and where one ends its thread looks whether it should go on.
#[test]
fn one_stretch_after_another_comes_back_to_the_nanosecond() {
    let machine = Machine::from_path_or_id("spr-8480-2s").unwrap();
    let scenario = r#"
        name = "stretches"
        duration = "20ms"
        semaphores = { s = 0 }
        [[task]]
        name = "a"
        count = 3
        policy = "rr"
        priority = 1
        steps = [{ loop = "forever", steps = [
            { run = "20us" }, { run = "exp 40us" }, { sleep = "50us" }, { run = "30us" }] }]
        [[task]]
        name = "b"
        count = 3
        steps = [{ loop = "forever", steps = [
            { run = "20us" }, "yield", { run = "5us" }, { run = "5us" }, { post = "s" }] }]
        [[task]]
        name = "c"
        steps = [{ loop = "forever", steps = [{ wait = "s" }, { run = "3us" }] }]
    "#;
    is_the_same_schedule(machine.shrunk(4).unwrap(), scenario);
}

/// A thread that lets itself go to other CPUs is bound to these, not free.
#[test]
fn who_sets_its_own_cpus_stays_on_them() {
    let scenario = r#"
        name = "moves"
        duration = "60ms"
        [[task]]
        name = "hog"
        count = 2
        affinity = "0-1"
        steps = ["hog"]
        [[task]]
        name = "mover"
        affinity = "7"
        steps = [{ run = "1ms" }, { affinity = "0-1" },
                 { loop = "forever", steps = [{ run = "3ms" }, { sleep = "1ms" }] }]
    "#;
    let machine = Machine::from_path_or_id("xeon-8cpu-2013").unwrap();
    is_the_same_schedule(machine, scenario);
}

/// Threads of one process are each in their own group, also in the root.
#[test]
fn threads_of_a_process_stay_in_their_groups() {
    let scenario = r#"
        name = "parted"
        duration = "60ms"
        [[cgroup]]
        path = "/inner"
        [[task]]
        name = "inside"
        cgroup = "/inner"
        process = "both"
        affinity = "0"
        steps = ["hog"]
        [[task]]
        name = "outside"
        process = "both"
        affinity = "0"
        steps = ["hog"]
    "#;
    let machine = Machine::from_path_or_id("xeon-8cpu-2013").unwrap();
    is_the_same_schedule(machine, scenario);
}

/// Who a thread of a group with a cpuset makes, and who has CPUs of its own besides, stays in it.
#[test]
fn the_cpus_of_groups_come_back() {
    let cpuset = "[[cgroup]]\npath = \"/a\"\n\"cpuset.cpus\" = \"0\"\n";
    let forks = r#"
        name = "forks"
        duration = "50ms"
        [[task]]
        name = "f"
        cgroup = "/a"
        steps = [{ run = "1ms" }, { fork = "kid", n = 2 }, "hog"]
        [[task]]
        name = "kid"
        template = true
        steps = ["hog"]
    "#;
    let beyond = r#"
        name = "beyond"
        duration = "50ms"
        [[task]]
        name = "h"
        cgroup = "/a"
        affinity = "1"
        steps = ["hog"]
        [[task]]
        name = "k"
        cgroup = "/a"
        steps = ["hog"]
        [[task]]
        name = "z"
        affinity = "1"
        steps = ["hog"]
    "#;
    for scenario in [forks, beyond] {
        let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
        is_the_same_schedule(machine, &format!("{scenario}{cpuset}"));
    }
}

/// What a forked thread has of its creator, which had changed itself, comes back.
#[test]
fn what_is_inherited_comes_back() {
    let scenario = r#"
        name = "heirs"
        duration = "80ms"
        [[task]]
        name = "f"
        policy = "batch"
        steps = [{ nice = 5 }, { affinity = "1" }, { slice = "700us" }, { run = "1ms" },
                 { fork = "kid", n = 2 }, { fork = "own" }, "hog"]
        [[task]]
        name = "kid"
        template = true
        steps = [{ loop = "forever", steps = [{ run = "1ms" }, { sleep = "1ms" }] }]
        [[task]]
        name = "own"
        template = true
        nice = 0
        policy = "normal"
        slice = "0s"
        affinity = "all"
        steps = ["hog"]
    "#;
    let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
    is_the_same_schedule(machine, scenario);
}

/// What threads change about themselves, and what is written to their groups meanwhile, comes back.
#[test]
fn changes_during_a_run_come_back() {
    let scenario = r#"
        name = "changes"
        duration = "80ms"
        [[cgroup]]
        path = "/a"
        "cpu.weight" = 500
        [[cgroup]]
        path = "/a/b"
        [[event]]
        at = "30ms"
        cgroup = "/a"
        "cpu.max" = "4000 10000"
        "cpu.max.burst" = 1000
        [[event]]
        at = "41ms"
        cgroup = "/a/b"
        "cpu.weight" = 20
        [[event]]
        at = "53ms"
        cgroup = "/a"
        "cpu.max" = "max"
        [[task]]
        name = "f"
        steps = [{ run = "3ms" }, { slice = "1100us" }, { cgroup = "/a/b" }, { fork = "kid" },
                 "exec", { loop = "forever", steps = [{ run = "5ms" }, { sleep = "1ms" }] }]
        [[task]]
        name = "kid"
        template = true
        steps = [{ run = "10ms" }, { cgroup = "/a" }, "hog"]
        [[task]]
        name = "g"
        count = 2
        steps = ["hog"]
    "#;
    let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
    is_the_same_schedule(machine, scenario);
}

/// A thread that yields as its quota runs out, and does not come back, has yielded.
#[test]
fn a_yield_at_the_end_of_quota_is_kept() {
    let scenario = r#"
        name = "yields"
        duration = "32ms"
        [[cgroup]]
        path = "/a"
        "cpu.max" = "2000 10000"
        [[task]]
        name = "y"
        cgroup = "/a"
        steps = [{ loop = "forever", steps = [{ run = "100us" }, "yield"] }]
    "#;
    let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
    is_the_same_schedule(machine, scenario);
}

/// Fewer CPUs are seen in the trace than the machine has, and than the tasks may use.
#[test]
fn cpus_on_which_nobody_ran_stay_in_affinities() {
    let hog = r#"
        duration = "20ms"
        [[task]]
        name = "a"
        affinity = "0-7"
        steps = ["hog"]
    "#;
    is_the_same_schedule(machine(), hog);
    let pool = r#"
        duration = "50ms"
        [[cgroup]]
        path = "/a"
        "cpuset.cpus" = "4-7"
        [[task]]
        name = "w"
        count = 2
        affinity = "4-7"
        cgroup = "/a"
        steps = [{ loop = "forever", steps = [{ run = "900us" }, { sleep = "2800us" }] }]
    "#;
    let (recording, ..) = traced_on(&machine(), pool, &Exact::default());
    let text = exported(&recording, Format::Text);
    let again = open::read(&text[..], &mut |_| {}).unwrap();
    assert!(again.cpus_needed() < 8, "CPU 7 has no event");
    assert_eq!(again.cpus, 8, "the text says how many there are");
    let attributes = Attributes::parse(&again.said).unwrap();
    let home = Place {
        machine: machine(),
        features: Features::default(),
        tracer_ns: 0,
    };
    let replay = Replay::new(&again, &attributes, &home).unwrap();
    let prepared = replay.prepared(&home, &attributes).unwrap();
    assert_eq!(prepared.derived.workload.masks, [[4, 5, 6, 7]]);
}

/// A thread of the kernel keeps the page tables of whom it follows, whatever it is called; one that
/// is only called like one has its own.
#[test]
fn who_has_no_page_tables_of_its_own_is_told() {
    let scenario = r#"
        duration = "20ms"
        [[task]]
        name = "kworker/0:1"
        affinity = "0"
        steps = [{ loop = "forever", steps = [{ run = "20us" }, "yield"] }]
        [[task]]
        name = "k"
        affinity = "0"
        process = "kernel"
        steps = [{ loop = "forever", steps = [{ run = "20us" }, "yield"] }]
    "#;
    is_the_same_schedule(machine(), scenario);
}

#[test]
fn tables_have_a_line_for_each_event() {
    let recording = simulated("hackbench --pipe -g 1 -f 2 -l 5");
    let lines = |format| {
        let bytes = exported(&recording, format);
        String::from_utf8(bytes).unwrap().lines().count()
    };
    assert_eq!(lines(Format::Csv), recording.events.len() + 1);
    assert_eq!(lines(Format::JsonLines), recording.events.len());
    assert!(exported(&recording, Format::Perfetto).len() > recording.events.len() * 20);
}

//! Threads that have an id of the kernel one after the other are replayed as the threads that they
//! are.

use std::fmt::Write as _;

use fairground::policy::Features;
use fairground_sim::machine_file::Machine;
use fairground_trace::derive::Attributes;
use fairground_trace::fidelity::Fidelity;
use fairground_trace::replay::{Place, Replay};
use fairground_trace::{Recording, open};

/// A line of `perf script` on CPU 0.
fn line(text: &mut String, us: u64, who: (&str, u32), what: &str) {
    let (comm, tid) = who;
    let (s, us) = (us / 1_000_000, us % 1_000_000);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{comm} {tid} [000] {s}.{us:06}: sched:{what}");
}

fn switch(text: &mut String, us: u64, prev: (&str, u32), state: char, next: (&str, u32)) {
    let what = format!(
        "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} \
         next_pid={} next_prio=120",
        prev.0, prev.1, next.0, next.1
    );
    line(text, us, prev, &what);
}

/// `turns` times: `who` wakes, computes for 4 ms and sleeps for 6.
fn turns(text: &mut String, from: u64, who: (&str, u32), turns: u64, last: char) {
    let idle = ("swapper/0", 0);
    for turn in 0..turns {
        let at = from + turn * 10_000;
        let about = format!("comm={} pid={} prio=120 target_cpu=000", who.0, who.1);
        line(text, at, idle, &format!("sched_waking: {about}"));
        line(text, at + 1, idle, &format!("sched_wakeup: {about}"));
        switch(text, at + 4, idle, 'R', who);
        let state = if turn + 1 == turns { last } else { 'S' };
        switch(text, at + 4_004, who, state, idle);
    }
}

/// A thread computes for 200 ms and dies; another one, with this id, computes for 120 ms.
fn recording(second: u32) -> Recording {
    let mut text = String::new();
    turns(&mut text, 1_000_000, ("first", 500), 50, 'X');
    turns(&mut text, 1_500_000, ("parent", 400), 1, 'S');
    let forked =
        format!("sched_process_fork: comm=parent pid=400 child_comm=second child_pid={second}");
    line(&mut text, 1_503_000, ("parent", 400), &forked);
    // The lines are put in order as they are read.
    let new = format!("sched_wakeup_new: comm=second pid={second} prio=120 target_cpu=000");
    line(&mut text, 1_503_010, ("parent", 400), &new);
    switch(
        &mut text,
        1_504_010,
        ("swapper/0", 0),
        'R',
        ("second", second),
    );
    switch(
        &mut text,
        1_504_100,
        ("second", second),
        'S',
        ("swapper/0", 0),
    );
    turns(&mut text, 1_510_000, ("second", second), 30, 'X');
    open::read(text.as_bytes(), &mut |_| {}).unwrap()
}

fn cpu_ms(recording: &Recording) -> Vec<(String, f64, f64)> {
    let home = Place {
        machine: Machine::from_path_or_id("spr-guest-2cpu").unwrap(),
        features: Features::default(),
        tracer_ns: 0,
    };
    let attributes = Attributes::default();
    let replay = Replay::new(recording, &attributes, &home).unwrap();
    let run = replay.run(&home, 1).unwrap();
    assert_eq!((run.unfinished, run.stopped_ns), (0, None));
    let sides = Fidelity::new(&replay.recorded, &run, &recording.names);
    let row = |t: &fairground_trace::fidelity::ThreadRow| {
        (t.name.clone(), t.cpu_ms.recorded, t.cpu_ms.replayed)
    };
    sides.threads.iter().map(row).collect()
}

#[test]
fn a_thread_keeps_its_cpu_time_when_its_id_is_used_again() {
    let (reused, control) = (cpu_ms(&recording(500)), cpu_ms(&recording(501)));
    let names: Vec<&str> = reused.iter().map(|t| t.0.as_str()).collect();
    assert_eq!(names, ["first (500)", "second (500 #2)", "parent (400)"]);
    for (reused, control) in reused.iter().zip(&control) {
        let (_, recorded, replayed) = reused;
        assert!((replayed / recorded - 1.0).abs() < 0.01, "{reused:?}");
        assert_eq!((recorded, replayed), (&control.1, &control.2));
    }
}

//! What becomes of a recording's threads: programs, affinity, trimmed times.

mod common;

use std::fmt::Write as _;

use fairground::policy::Features;
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::program::{Dur, Op};
use fairground_trace::derive::{Attributes, Derived};
use fairground_trace::export::{self, Format};
use fairground_trace::fidelity::Fidelity;
use fairground_trace::replay::{Place, Replay};
use fairground_trace::{Recording, open};

const TICK_US: u64 = 4_000;

/// Two hogs take turns on CPU 1 at each tick, from the `first`; a thread of the kernel is woken by
/// every eighth or twelfth, another one by chance, and a third one goes to CPU 0.
fn text() -> String {
    let mut text = String::new();
    let time = |ns: u64| format!("{}.{:09}", 100 + ns / 1_000_000_000, ns % 1_000_000_000);
    let mut line = |comm: &str, tid: u32, ns: u64, event: &str| {
        let _ = writeln!(text, "{comm} {tid} [001] {}: sched:{event}", time(ns));
    };
    let wakes = |comm: &str, tid: u32, cpu: u32| {
        format!("sched_waking: comm={comm} pid={tid} prio=120 target_cpu=00{cpu}")
    };
    let mut woken = 0;
    for tick in 1..101 {
        let at = tick * TICK_US * 1000;
        let (out, new) = (201 + tick % 2, 202 - tick % 2);
        let (prev, next) = (format!("hog{out}"), format!("hog{new}"));
        let switch = |prev: &str, out: u64, state: &str, next: &str, new: u64| {
            format!(
                "sched_switch: prev_comm={prev} prev_pid={out} prev_prio=120 prev_state={state} \
                 ==> next_comm={next} next_pid={new} next_prio=120"
            )
        };
        line(&prev, out as u32, at, &switch(&prev, out, "R", &next, new));
        let by = new as u32;
        if tick == 5 {
            line(&next, by, at + 700_000, &wakes("kworker/u8:1", 30, 0));
        }
        if tick >= 20 && (tick % 8 == 0 || tick % 12 == 0) {
            woken += 1;
            let (comm, at) = ("kworker/1:2", at + 3_000);
            if woken > 1 {
                line(&next, by, at, &wakes(comm, 40, 1));
                line(
                    &next,
                    by,
                    at + 1_000,
                    &wakes(comm, 40, 1).replace("waking", "wakeup"),
                );
            }
            line(&next, by, at + 2_000, &switch(&next, new, "R", comm, 40));
            line(comm, 40, at + 9_000, &switch(comm, 40, "I", &next, new));
        }
    }
    text
}

fn derived(recording: &Recording) -> Derived {
    derived_with(recording, "").unwrap()
}

fn derived_with(recording: &Recording, attributes: &str) -> Result<Derived, String> {
    let features = Features {
        hz: 250,
        ..Features::default()
    };
    let home = Place {
        machine: Machine::from_path_or_id("spr-guest-2cpu").unwrap(),
        features,
        tracer_ns: 130,
    };
    let attributes = Attributes::parse(attributes)?;
    let replay = Replay::new(recording, &attributes, &home)?;
    replay.derived(&attributes)
}

/// Operations of a thread's program.
fn ops<'a>(derived: &'a Derived, name: &str) -> &'a [Op] {
    let programs = &derived.workload.programs;
    &programs.iter().find(|p| p.name == name).unwrap().ops
}

/// Those up to where all that was recorded is done.
fn recorded(ops: &[Op]) -> &[Op] {
    let end = ops.iter().position(|op| matches!(op, Op::Mark(_)));
    &ops[..end.unwrap()]
}

/// Lengths of computing.
fn runs(ops: &[Op]) -> Vec<u64> {
    let runs = ops.iter().filter_map(|op| match op {
        Op::Run(Dur::Const(ns)) => Some(*ns),
        _ => None,
    });
    runs.collect()
}

/// Both hogs are cut off by the recording's end; the threads that were woken once are not.
#[test]
fn who_computes_at_the_end_goes_on() {
    let recording = open::read(text().as_bytes(), &mut |_| {}).unwrap();
    let derived = derived(&recording);
    for name in ["hog201", "hog202"] {
        let ops = ops(&derived, name);
        let before = recorded(ops);
        let after = runs(&ops[before.len()..]);
        let before: u64 = runs(before).iter().sum();
        assert!(after.len() == 1 && after[0] >= before, "{after:?} {before}");
        assert!(after[0] < before + before / 20, "{after:?} {before}");
    }
    let kernel = ops(&derived, "kworker/u8:1");
    assert!(runs(&kernel[recorded(kernel).len()..]).is_empty());
}

#[test]
fn what_a_tick_wakes_is_woken_at_that_time_again() {
    let recording = open::read(text().as_bytes(), &mut |_| {}).unwrap();
    let derived = derived(&recording);
    let ops = ops(&derived, "kworker/1:2");
    let at_time = ops
        .iter()
        .filter(|op| matches!(op, Op::SleepUntilTaskTime(_)));
    let after = ops.iter().filter(|op| matches!(op, Op::Sleep(_)));
    // The first wake-up is not in the recording: it was not waiting since the start.
    assert!(at_time.count() > 10, "{ops:?}");
    assert_eq!(after.count(), 0, "{ops:?}");
}

#[test]
fn a_cpu_that_was_not_recorded_is_left_alone() {
    let recording = open::read(text().as_bytes(), &mut |_| {}).unwrap();
    let derived = derived(&recording);
    let of = |name: &str| derived.workload.templates.iter().find(|t| t.name == name);
    let mask = of("hog201").unwrap().affinity.unwrap();
    assert_eq!(derived.workload.masks[mask as usize], [1]);
    let said = derived
        .notes
        .iter()
        .any(|n| n.contains("only CPU 1 was recorded"));
    assert!(said, "{:?}", derived.notes);
}

/// Ticks take time in proportion to computing: a short stretch before a wake-up keeps its length.
#[test]
fn what_ticks_take_is_taken_off_long_stretches() {
    let recording = open::read(text().as_bytes(), &mut |_| {}).unwrap();
    let derived = derived(&recording);
    for name in ["hog201", "hog202"] {
        let runs = runs(recorded(ops(&derived, name)));
        let all: u64 = runs.iter().sum();
        // Of 50 ticks each; two microseconds or so of each are the simulated tick's.
        assert!(
            (190_000_000..200_000_000).contains(&all),
            "{name}: {runs:?}"
        );
        assert!(runs.iter().all(|ns| *ns > 100_000), "{name}: {runs:?}");
    }
}

#[test]
fn an_autogroup_has_the_weight_of_its_nice_value() {
    let recording = open::read(text().as_bytes(), &mut |_| {}).unwrap();
    let group = |nice: i8| format!("[[cgroup]]\npath = \"/autogroup-7\"\nnice = {nice}\n");
    let derived = derived_with(&recording, &group(-5)).unwrap();
    assert_eq!(derived.workload.cgroups[1].shares, 3121);
    let error = derived_with(&recording, &group(20)).unwrap_err();
    assert!(error.contains("expected -20 to 19"), "{error}");
}

/// Of a recording without wake-ups: a thread that gets a CPU which was idle before was not waiting
/// for it since the start.
#[test]
fn who_comes_to_a_cpu_that_was_idle_was_asleep() {
    let mut text = String::new();
    let mut switch = |us: u64, (prev, out): (&str, u32), state: &str, (next, new): (&str, u32)| {
        let _ = writeln!(
            text,
            "{prev} {out} [000] 10.{us:06}: sched:sched_switch: prev_comm={prev} prev_pid={out} \
             prev_prio=120 prev_state={state} ==> next_comm={next} next_pid={new} next_prio=120"
        );
    };
    let idle = ("swapper", 0);
    switch(0, ("first", 99), "S", idle);
    for n in 0..20 {
        let (name, at) = (format!("cc{n}"), 1000 + 4000 * u64::from(n));
        switch(at, idle, "R", (&name, 100 + n));
        switch(at + 1000, (&name, 100 + n), "X", idle);
    }
    let recording = open::read(text.as_bytes(), &mut |_| {}).unwrap();
    let derived = derived(&recording);
    for name in ["cc0", "cc1", "cc19"] {
        let first = ops(&derived, name)[0];
        assert!(
            matches!(first, Op::SleepUntilTaskTime(_)),
            "{name}: {first:?}"
        );
    }
}

/// A hundred busy threads have less than 1 % of all CPU time each: they are fitted all the same.
/// Siblings of a core slow each other down, so computing has to be taken off.
#[test]
fn the_cpu_time_of_many_threads_is_fitted() {
    let mut scenario = String::from("duration = \"exit\"\n");
    for n in 0..104 {
        let _ = writeln!(
            scenario,
            "[[task]]\nname = \"t{n}\"\nsteps = [{{ run = \"3ms\" }}, {{ sleep = \"1ms\" }}, \
             {{ run = \"3ms\" }}]"
        );
    }
    let recording = Recording {
        said: String::new(),
        ..common::simulated(&scenario)
    };
    let home = Place {
        machine: common::machine(),
        features: Features::default(),
        tracer_ns: 0,
    };
    let known = Attributes::default();
    let replay = Replay::new(&recording, &known, &home).unwrap();
    let run = replay.run(&home, 1).unwrap();
    let fidelity = Fidelity::new(&replay.recorded, &run, &recording.names);
    assert!(fidelity.worst().is_none(), "none has a share that counts");
    assert!(fidelity.cpu_ms.within(1.0), "{:?}", fidelity.cpu_ms);
    assert_eq!(fidelity.met()[0], Some(true));
}

/// The words that are wrong are named, not the first thread that they are about.
#[test]
fn a_group_that_is_not_there_is_told_with_the_words_that_name_it() {
    let recording = open::read(text().as_bytes(), &mut |_| {}).unwrap();
    let attributes =
        "[[cgroup]]\npath = \"/web\"\n[[thread]]\ncomm = \"hog*\"\ncgroup = \"/wbe\"\n";
    let error = derived_with(&recording, attributes).unwrap_err();
    assert!(
        error.starts_with("thread `hog*`: no cgroup `/wbe`"),
        "{error}"
    );
}

/// Thread 7 is on CPU 0 and makes 8, which stays there, 9, which is on CPU 1 from the start, and
/// 10, which is on CPU 0 and then on 1. Each of them runs, twice.
fn creations() -> String {
    let mut text = String::new();
    let mut line = |us: u32, cpu: u32, (comm, tid): (&str, u32), event: &str| {
        let _ = writeln!(text, "{comm} {tid} [00{cpu}] 1.{us:06}500: sched:{event}");
    };
    let switch = |(comm, tid): (&str, u32), state: char, (next, id): (&str, u32)| {
        format!(
            "sched_switch: prev_comm={comm} prev_pid={tid} prev_prio=120 prev_state={state} ==> \
             next_comm={next} next_pid={id} next_prio=120"
        )
    };
    let (idle, kid) = (("swapper", 0), |tid| ("kid", tid));
    line(0, 0, idle, &switch(idle, 'R', ("parent", 7)));
    for tid in [8, 9, 10] {
        let fork =
            format!("sched_process_fork: comm=parent pid=7 child_comm=parent child_pid={tid}");
        line(tid, 0, ("parent", 7), &fork);
    }
    line(20, 0, ("parent", 7), &switch(("parent", 7), 'S', idle));
    for (us, tid, cpus) in [(100, 8, [0, 0]), (200, 9, [1, 1]), (300, 10, [0, 1])] {
        for (n, cpu) in (0..).zip(cpus) {
            line(us + 40 * n, cpu, idle, &switch(idle, 'R', kid(tid)));
            line(
                us + 40 * n + 20,
                cpu,
                kid(tid),
                &switch(kid(tid), 'S', idle),
            );
        }
    }
    text
}

const BOUND: &str = "[[thread]]\ntids = [7]\npolicy = \"batch\"\nslice_us = 9000\ncpus = [0]\n";

#[test]
fn who_is_created_has_the_policy_slice_and_cpus_of_its_creator() {
    let recording = open::read(creations().as_bytes(), &mut |_| {}).unwrap();
    let derived = derived_with(&recording, BOUND).unwrap();
    let of = |index: usize| {
        let t = &derived.workload.templates[index];
        let mask = t
            .affinity
            .map(|m| derived.workload.masks[m as usize].clone());
        (format!("{:?}", t.policy), t.slice_ns, mask)
    };
    let all: Vec<_> = (0..4).map(of).collect();
    let bound = ("Batch".to_string(), Some(9_000_000), Some(vec![0]));
    // Who was given other CPUs before it ran has these.
    let elsewhere = ("Batch".to_string(), Some(9_000_000), None);
    assert_eq!(all, [bound.clone(), bound.clone(), elsewhere, bound]);
    let let_go = |index: usize| {
        let ops = &derived.workload.programs[index].ops;
        ops.iter().any(|op| matches!(op, Op::SetAffinity(_)))
    };
    assert_eq!([1, 3].map(let_go), [false, true]);
    // An entry of its own counts, whatever its creator has.
    let own = format!("{BOUND}[[thread]]\ntids = [8]\n");
    let derived = derived_with(&recording, &own).unwrap();
    let t = &derived.workload.templates[1];
    assert_eq!((t.affinity, t.slice_ns), (None, None));
}

#[test]
fn attributes_count_for_who_is_created_and_cpus_that_do_not_hold_are_told() {
    let recording = open::read(creations().as_bytes(), &mut |_| {}).unwrap();
    let notes = |text: &str| {
        let attributes = Attributes::parse(text).unwrap();
        let home = Place {
            machine: Machine::from_path_or_id("spr-guest-2cpu").unwrap(),
            features: Features::default(),
            tracer_ns: 130,
        };
        let replay = Replay::new(&recording, &attributes, &home).unwrap();
        replay.named().join("\n")
    };
    let told = notes(BOUND);
    assert!(!told.contains("the attributes are about"), "{told}");
    let words = "`cpus` of thread with tids 7, or of whom it creates, does not hold for a thread \
                 that was recorded on another CPU later";
    assert!(told.contains(words), "{told}");
    let told = notes("[[thread]]\ntids = [9]\ncpus = [0]\n");
    assert!(
        told.contains("the attributes are about 1 of 4 threads"),
        "{told}"
    );
    assert!(
        told.contains("is not where 1 thread was recorded"),
        "{told}"
    );
}

#[test]
fn an_exported_replay_names_a_thread_as_it_was_called_then() {
    let recording = open::read(creations().as_bytes(), &mut |_| {}).unwrap();
    let attributes = Attributes::default();
    let home = Place {
        machine: Machine::from_path_or_id("spr-guest-2cpu").unwrap(),
        features: Features::default(),
        tracer_ns: 130,
    };
    let replay = Replay::new(&recording, &attributes, &home).unwrap();
    let (replayed, _) = replay
        .exported(&home, &attributes, 1, Format::Text)
        .unwrap();
    let mut text = Vec::new();
    export::write(&replayed, Format::Text, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("child_comm=parent child_pid=8"), "{text}");
    let later = text.contains("prev_comm=kid prev_pid=8");
    assert!(later && !text.contains("child_comm=kid"), "{text}");
}

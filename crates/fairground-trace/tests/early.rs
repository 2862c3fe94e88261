//! What a replay with a higher limit does before it was recorded.

use std::fmt::Write as _;

use fairground::policy::Features;
use fairground_sim::machine_file::Machine;
use fairground_trace::derive::Attributes;
use fairground_trace::open;
use fairground_trace::replay::{Early, Place, Replay};

const KNOWN: &str = "hz = 250\n[[cgroup]]\npath = \"/a\"\n\"cpu.max\" = \"50000 100000\"\n\
                     [[thread]]\ncomm = \"app\"\ncgroup = \"/a\"\ncpus = [0]\n\
                     [[thread]]\ncomm = \"filler\"\npolicy = \"idle\"\ncpus = [0]\n";

/// A thread that has half of a CPU by its limit, and one that has the rest.
fn text() -> String {
    let mut text = String::new();
    for turn in 0..10 {
        let (ms, [a, b]) = (50 * turn, [("filler", 8), ("app", 7)]);
        let [(prev, pid), (next, other)] = if turn % 2 == 0 { [a, b] } else { [b, a] };
        let state = if turn == 9 { 'S' } else { 'R' };
        let _ = writeln!(
            text,
            "{prev} {pid} [000] 10.{ms:03}000000: sched:sched_switch: prev_comm={prev} \
             prev_pid={pid} prev_prio=120 prev_state={state} ==> next_comm={next} next_pid={other} \
             next_prio=120"
        );
    }
    text
}

#[test]
fn a_higher_limit_pulls_work_ahead_of_the_recording() {
    let recording = open::read(text().as_bytes(), &mut |_| {}).unwrap();
    let known = Attributes::parse(KNOWN).unwrap();
    let machine = Machine::builtin("spr-guest-2cpu").unwrap();
    let home = Place {
        machine,
        features: Features::default(),
        tracer_ns: 0,
    };
    let replay = Replay::new(&recording, &known, &home).unwrap();
    let early = |max: &str| -> Early {
        let mut with = known.clone();
        with.cgroups[0].max = Some(max.into());
        let run = replay.run_with(&home, &with, 1).unwrap();
        assert_eq!(run.waited[0].early_ns / 1_000_000, 200, "{:?}", run.waited);
        run.early[0].clone()
    };
    let (same, raised) = (early("50000 100000"), early("80000 100000"));
    assert_eq!((&*raised.path, raised.computed_ns), ("/a", 250_000_000));
    assert!(
        raised.early_ns > same.early_ns + 50_000_000,
        "{same:?} {raised:?}"
    );
    assert!(same.early_ns < 50_000_000, "{same:?}");
    assert!(raised.most_ns > 30_000_000, "{raised:?}");
    let lowered = early("40000 100000");
    assert!(lowered.early_ns <= same.early_ns, "{same:?} {lowered:?}");
}

//! A simulated run, exported, read again and replayed.

mod common;

use common::{machine_of_own_cores, simulated, traced_on};
use fairground::policy::Features;
use fairground_sim::exact::Exact;
use fairground_trace::derive::Attributes;
use fairground_trace::export::{self, Format};
use fairground_trace::fidelity::Fidelity;
use fairground_trace::replay::{Place, Replay};
use fairground_trace::{Event, Kind, Recording, State, open};

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
fn there_and_back(words: &str) -> (Fidelity, Recording, Recording) {
    let machine = machine_of_own_cores();
    let (recording, ..) = traced_on(&machine, words, &Exact::default());
    let text = exported(&recording, Format::Text);
    let again = open::read(&text[..], &mut |_| {}).unwrap();
    let attributes = Attributes::parse(&again.said).unwrap();
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

#[test]
fn a_replay_of_exported_text_gives_the_same_schedule() {
    for words in [
        "hogs -t 12 -d 400ms",
        "hogs -t 16 -d 400ms",
        "hogs -t 24 -d 400ms",
        "hogs -t 12 -d 300ms --nice 0,5,-3",
        "hogs -t 12 -d 200ms --tree 1:2 --cpu-max 4ms/20ms",
        "sleepers --tasks 6 -d 400ms",
    ] {
        let (f, ..) = there_and_back(words);
        let met = f.met().map(|met| met == Some(true));
        assert_eq!(met[..3], [true; 3], "{words}: {f:?}");
    }
}

/// Until the first thread has done what it did in the recording; those that were awake at its end
/// sleep then, and the others have its CPU.
#[test]
fn hogs_get_the_same_cpus_at_the_same_times() {
    /// Threads are created at whole nanoseconds.
    const ROUNDED_NS: u64 = 2;
    for tasks in [12, 16, 24] {
        let (_, recorded, replayed) = there_and_back(&format!("hogs -t {tasks} -d 400ms"));
        let done = |e: &Event| {
            let state = State::Blocked(b'S');
            matches!(e.kind, Kind::Switch { state: s, .. } if s == state)
        };
        let end = replayed.events.iter().position(done).unwrap();
        let share = replayed.events[end].at_ns as f64 / recorded.span().1 as f64;
        assert!(share > 0.95, "{tasks}: {share}");
        for (a, b) in recorded.events.iter().zip(&replayed.events[..end]) {
            let at = |e: &Event| (e.cpu, e.tid, e.kind);
            assert_eq!(at(a), at(b), "{tasks}: {a:?} {b:?}");
            assert!(a.at_ns.abs_diff(b.at_ns) <= ROUNDED_NS, "{a:?} {b:?}");
        }
    }
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

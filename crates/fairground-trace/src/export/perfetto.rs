//! Perfetto: ftrace events of each CPU, names, and a counter track of the load of each CPU.

use std::collections::BTreeMap;
use std::io::{self, Write};

use prost::Message;

use super::extras::Extras;
use super::load;
use super::proto::{
    Bundle, Counter, Exit, Fork, FtraceEvent, Migrate, Packet, Process, ProcessTree, Switch,
    Thread, TrackDescriptor, TrackEvent, Wake,
};
use crate::event::{Event, Kind, Names, State};
use crate::recording::Recording;

/// Events of one CPU in a packet.
const BUNDLE: usize = 512;
/// All packets are of one writer.
const SEQUENCE: u32 = 1;
/// Field `packet` of the file's message, as its key on the wire.
const PACKET_KEY: u8 = 1 << 3 | 2;
/// `TrackEvent.TYPE_COUNTER`.
const COUNTER: i32 = 4;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing before this packet is needed.
const CLEARED: u32 = 1;
/// `TrackEvent.TYPE_SLICE_BEGIN` and `_END`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
/// Tracks have numbers from here on: loads of CPUs, groups, their counters, waits.
const TRACKS: u64 = 1 << 32;
const PARENTS: u64 = 2 << 32;
const COUNTERS: u64 = 3 << 32;
const SLICES: u64 = 4 << 32;

pub fn write(recording: &Recording, extras: &Extras, out: &mut impl Write) -> io::Result<()> {
    let mut packets = Packets {
        out,
        buffer: Vec::new(),
    };
    packets.put(Packet {
        process_tree: Some(tree(recording)),
        sequence_flags: Some(CLEARED),
        ..Packet::default()
    })?;
    let mut waiting: Vec<Vec<FtraceEvent>> = vec![Vec::new(); recording.cpus as usize];
    for event in &recording.events {
        let cpu = event.cpu as usize;
        waiting[cpu].push(one(event, &recording.names));
        if waiting[cpu].len() >= BUNDLE {
            packets.bundle(event.cpu, std::mem::take(&mut waiting[cpu]))?;
        }
    }
    for (cpu, events) in (0..).zip(waiting) {
        if !events.is_empty() {
            packets.bundle(cpu, events)?;
        }
    }
    for cpu in 0..recording.cpus {
        let track = TrackDescriptor {
            uuid: Some(TRACKS + u64::from(cpu)),
            name: Some(format!("CPU {cpu} running and runnable")),
            counter: Some(Counter::default()),
            ..TrackDescriptor::default()
        };
        packets.put(Packet {
            track_descriptor: Some(track),
            ..Packet::default()
        })?;
    }
    for (at, cpu, count) in load::changes(recording) {
        let value = TrackEvent {
            r#type: Some(COUNTER),
            track_uuid: Some(TRACKS + u64::from(cpu)),
            counter_value: Some(count.into()),
            ..TrackEvent::default()
        };
        packets.put(Packet {
            timestamp: Some(at),
            track_event: Some(value),
            ..Packet::default()
        })?;
    }
    packets.extras(extras)
}

struct Packets<'a, W> {
    out: &'a mut W,
    buffer: Vec<u8>,
}

impl<W: Write> Packets<'_, W> {
    fn extras(&mut self, extras: &Extras) -> io::Result<()> {
        let used = |parent: usize| extras.counters.iter().any(|c| c.parent == parent);
        for (number, name) in (0..).zip(&extras.parents) {
            if used(number as usize) {
                self.track(PARENTS + number, name, None, None)?;
            }
        }
        for (number, track) in (0..).zip(&extras.counters) {
            let (uuid, parent) = (COUNTERS + number, PARENTS + track.parent as u64);
            let counter = Counter {
                unit_name: Some(track.unit.into()),
            };
            self.track(uuid, track.name, Some(parent), Some(counter))?;
            for (at, value) in &track.points {
                let value = TrackEvent {
                    r#type: Some(COUNTER),
                    track_uuid: Some(uuid),
                    counter_value: Some(*value),
                    ..TrackEvent::default()
                };
                self.event(*at, value)?;
            }
        }
        for (number, track) in (0..).zip(&extras.slices) {
            let uuid = SLICES + number;
            self.track(uuid, &track.name, None, None)?;
            for (from, to, name) in &track.slices {
                let edge = |kind: i32, name: Option<String>| TrackEvent {
                    r#type: Some(kind),
                    track_uuid: Some(uuid),
                    name,
                    ..TrackEvent::default()
                };
                self.event(*from, edge(SLICE_BEGIN, Some(name.clone())))?;
                self.event(*to, edge(SLICE_END, None))?;
            }
        }
        Ok(())
    }

    fn track(
        &mut self,
        uuid: u64,
        name: &str,
        parent_uuid: Option<u64>,
        counter: Option<Counter>,
    ) -> io::Result<()> {
        let track = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.into()),
            parent_uuid,
            counter,
        };
        self.put(Packet {
            track_descriptor: Some(track),
            ..Packet::default()
        })
    }

    fn event(&mut self, at: u64, event: TrackEvent) -> io::Result<()> {
        self.put(Packet {
            timestamp: Some(at),
            track_event: Some(event),
            ..Packet::default()
        })
    }

    fn put(&mut self, mut packet: Packet) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer)?;
        self.out.write_all(&self.buffer)
    }

    fn bundle(&mut self, cpu: u32, event: Vec<FtraceEvent>) -> io::Result<()> {
        let bundle = Bundle {
            cpu: Some(cpu),
            event,
        };
        self.put(Packet {
            ftrace_events: Some(bundle),
            ..Packet::default()
        })
    }
}

/// Threads and their processes; where these are not recorded, one for all threads of a name.
fn tree(recording: &Recording) -> ProcessTree {
    let names = &recording.names;
    let mut first_of: BTreeMap<String, u32> = BTreeMap::new();
    let mut processes: BTreeMap<u32, String> = BTreeMap::new();
    let mut tree = ProcessTree::default();
    for (tid, name) in names.all() {
        let known = names.process(tid);
        let process = known.unwrap_or_else(|| *first_of.entry(name.clone()).or_insert(tid));
        processes.entry(process).or_insert_with(|| match known {
            Some(process) => names.get(process),
            None => name.clone(),
        });
        tree.threads.push(Thread {
            tid: Some(tid as i32),
            name: Some(name),
            tgid: Some(process as i32),
        });
    }
    let process = |(pid, name): (u32, String)| Process {
        pid: Some(pid as i32),
        cmdline: vec![name],
    };
    tree.processes = processes.into_iter().map(process).collect();
    tree
}

fn one(event: &Event, names: &Names) -> FtraceEvent {
    let comm = |tid: u32| {
        Some(match tid {
            0 => format!("swapper/{}", event.cpu),
            tid => names.get(tid),
        })
    };
    let id = |tid: u32| Some(tid as i32);
    let mut to = FtraceEvent {
        timestamp: Some(event.at_ns),
        pid: Some(event.tid),
        ..FtraceEvent::default()
    };
    let wake = |tid: u32, prio: i16, cpu: u32| {
        Some(Wake {
            comm: comm(tid),
            pid: id(tid),
            prio: Some(prio.into()),
            success: Some(1),
            target_cpu: Some(cpu as i32),
        })
    };
    match event.kind {
        Kind::Switch { .. } => to.sched_switch = switch(event.kind, &comm),
        Kind::Waking { tid, prio, cpu } => to.sched_waking = wake(tid, prio, cpu),
        Kind::Wakeup { tid, prio, cpu } => to.sched_wakeup = wake(tid, prio, cpu),
        Kind::WakeupNew { tid, prio, cpu } => to.sched_wakeup_new = wake(tid, prio, cpu),
        Kind::Migrate {
            tid,
            from,
            to: dest,
        } => {
            to.sched_migrate_task = Some(Migrate {
                comm: comm(tid),
                pid: id(tid),
                prio: Some(120),
                orig_cpu: id(from),
                dest_cpu: id(dest),
            });
        }
        Kind::Fork { parent, child } => {
            to.sched_process_fork = Some(Fork {
                parent_comm: comm(parent),
                parent_pid: id(parent),
                child_comm: comm(child),
                child_pid: id(child),
            });
        }
        Kind::Exit { tid } => {
            to.sched_process_exit = Some(Exit {
                comm: comm(tid),
                pid: id(tid),
                tgid: id(tid),
                prio: Some(120),
            });
        }
    }
    to
}

fn switch(kind: Kind, comm: &dyn Fn(u32) -> Option<String>) -> Option<Switch> {
    let Kind::Switch {
        prev,
        prev_prio,
        state,
        next,
        next_prio,
    } = kind
    else {
        return None;
    };
    Some(Switch {
        prev_comm: comm(prev),
        prev_pid: Some(prev as i32),
        prev_prio: Some(prev_prio.into()),
        prev_state: Some(bits(state)),
        next_comm: comm(next),
        next_pid: Some(next as i32),
        next_prio: Some(next_prio.into()),
    })
}

/// The kernel's bits of a state (`TASK_STATE_TO_CHAR_STR`).
fn bits(state: State) -> i64 {
    match state {
        State::Runnable => 0,
        State::Dead => 0x10,
        State::Blocked(letter) => {
            let place = b"SDTtXZPI".iter().position(|l| *l == letter);
            1 << place.unwrap_or(0)
        }
    }
}

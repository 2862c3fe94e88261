//! The layout of `perf script --ns`, which `perf sched` scripts and this crate read.

use std::io::{self, Write};

use crate::event::{Event, Kind, Names};
use crate::recording::Recording;

pub fn write(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    recording
        .events
        .iter()
        .try_for_each(|event| line(event, &recording.names, out))
}

fn line(event: &Event, names: &Names, out: &mut impl Write) -> io::Result<()> {
    let (s, ns) = (event.at_ns / 1_000_000_000, event.at_ns % 1_000_000_000);
    let name = format!("sched:{}", name(event.kind));
    write!(
        out,
        "{:>16} {:>5} [{:03}] {s:>5}.{ns:09}: {name:>24}: ",
        names.get(event.tid),
        event.tid,
        event.cpu
    )?;
    let comm = |tid: u32| match tid {
        0 => format!("swapper/{}", event.cpu),
        tid => names.get(tid),
    };
    match event.kind {
        Kind::Switch {
            prev,
            prev_prio,
            state,
            next,
            next_prio,
        } => writeln!(
            out,
            "prev_comm={} prev_pid={prev} prev_prio={prev_prio} prev_state={} ==> next_comm={} \
             next_pid={next} next_prio={next_prio}",
            comm(prev),
            state.letter(),
            comm(next)
        ),
        Kind::Waking { tid, prio, cpu }
        | Kind::Wakeup { tid, prio, cpu }
        | Kind::WakeupNew { tid, prio, cpu } => writeln!(
            out,
            "comm={} pid={tid} prio={prio} target_cpu={cpu:03}",
            comm(tid)
        ),
        Kind::Migrate { tid, from, to } => writeln!(
            out,
            "comm={} pid={tid} prio=120 orig_cpu={from} dest_cpu={to}",
            comm(tid)
        ),
        Kind::Fork { parent, child } => writeln!(
            out,
            "comm={} pid={parent} child_comm={} child_pid={child}",
            comm(parent),
            comm(child)
        ),
        Kind::Exit { tid } => writeln!(out, "comm={} pid={tid} prio=120", comm(tid)),
    }
}

/// The tracepoint's name.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch { .. } => "sched_switch",
        Kind::Waking { .. } => "sched_waking",
        Kind::Wakeup { .. } => "sched_wakeup",
        Kind::WakeupNew { .. } => "sched_wakeup_new",
        Kind::Migrate { .. } => "sched_migrate_task",
        Kind::Fork { .. } => "sched_process_fork",
        Kind::Exit { .. } => "sched_process_exit",
    }
}

//! JSON lines and CSV: one event a line, the same columns in both.

use std::io::{self, Write};

use serde::Serialize;

use super::text::name;
use crate::event::{Event, Kind};
use crate::recording::Recording;

/// A line. Columns that an event does not have are null, or empty.
#[derive(Debug, Default, Serialize)]
struct Row<'a> {
    time_ns: u64,
    cpu: u32,
    tid: u32,
    event: &'a str,
    /// Who it is about: of a switch, who leaves.
    subject: u32,
    comm: String,
    state: Option<char>,
    /// Of a switch, who comes; of a fork, the child.
    other: Option<u32>,
    other_comm: Option<String>,
    from_cpu: Option<u32>,
    to_cpu: Option<u32>,
}

const HEAD: &str = "time_ns,cpu,tid,event,subject,comm,state,other,other_comm,from_cpu,to_cpu";

pub fn json_lines(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    for event in &recording.events {
        serde_json::to_writer(&mut *out, &row(event, recording))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

pub fn csv(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    fn or_empty<T: ToString>(value: Option<T>) -> String {
        value.map_or(String::new(), |v| v.to_string())
    }
    writeln!(out, "{HEAD}")?;
    for event in &recording.events {
        let r = row(event, recording);
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{}",
            r.time_ns,
            r.cpu,
            r.tid,
            r.event,
            r.subject,
            quoted(&r.comm),
            or_empty(r.state),
            or_empty(r.other),
            quoted(&r.other_comm.unwrap_or_default()),
            or_empty(r.from_cpu),
            or_empty(r.to_cpu),
        )?;
    }
    Ok(())
}

/// A name may have a comma or quotes in it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_string()
}

fn row<'a>(event: &Event, recording: &Recording) -> Row<'a> {
    let names = &recording.names;
    let mut row = Row {
        time_ns: event.at_ns,
        cpu: event.cpu,
        tid: event.tid,
        event: name(event.kind),
        ..Row::default()
    };
    let other = |row: &mut Row<'_>, tid: u32| {
        row.other = Some(tid);
        row.other_comm = Some(names.get(tid));
    };
    row.subject = match event.kind {
        Kind::Switch {
            prev, state, next, ..
        } => {
            row.state = Some(state.letter());
            other(&mut row, next);
            prev
        }
        Kind::Waking { tid, cpu, .. }
        | Kind::Wakeup { tid, cpu, .. }
        | Kind::WakeupNew { tid, cpu, .. } => {
            row.to_cpu = Some(cpu);
            tid
        }
        Kind::Migrate { tid, from, to } => {
            (row.from_cpu, row.to_cpu) = (Some(from), Some(to));
            tid
        }
        Kind::Fork { parent, child } => {
            other(&mut row, child);
            parent
        }
        Kind::Exit { tid } => tid,
    };
    row.comm = names.get(row.subject);
    row
}

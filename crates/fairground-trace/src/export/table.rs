//! JSON lines and CSV: one event a line, the same columns in both.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::shown::Shown;
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
    comm: &'a str,
    state: Option<char>,
    /// Of a switch, who comes; of a fork, the child.
    other: Option<u32>,
    other_comm: Option<&'a str>,
    from_cpu: Option<u32>,
    to_cpu: Option<u32>,
}

/// So much is put together before it is written.
const BUFFER: usize = 1 << 16;

const HEAD: &str = "time_ns,cpu,tid,event,subject,comm,state,other,other_comm,from_cpu,to_cpu";

pub fn json_lines(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    let shown = Shown::new(recording);
    let mut lines = Vec::with_capacity(2 * BUFFER);
    for event in scheduler(recording) {
        serde_json::to_writer(&mut lines, &row(event, &shown))?;
        lines.push(b'\n');
        if lines.len() >= BUFFER {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
}

pub fn csv(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    fn or_empty<T: ToString>(value: Option<T>) -> String {
        value.map_or(String::new(), |v| v.to_string())
    }
    let shown = Shown::new(recording);
    let mut out = io::BufWriter::with_capacity(BUFFER, out);
    writeln!(out, "{HEAD}")?;
    for event in scheduler(recording) {
        let r = row(event, &shown);
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{}",
            r.time_ns,
            r.cpu,
            r.tid,
            r.event,
            r.subject,
            quoted(r.comm),
            or_empty(r.state),
            or_empty(r.other),
            quoted(r.other_comm.unwrap_or_default()),
            or_empty(r.from_cpu),
            or_empty(r.to_cpu),
        )?;
    }
    out.flush()
}

/// The scheduler's events, of which alone there are columns.
fn scheduler(recording: &Recording) -> impl Iterator<Item = &Event> {
    let events = recording.events.iter();
    events.filter(|e| !matches!(e.kind, Kind::On | Kind::Told(_)))
}

/// A name may have a comma or quotes in it.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"']) {
        return format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text.into()
}

fn row<'a>(event: &Event, shown: &'a Shown) -> Row<'a> {
    let mut row = Row {
        time_ns: event.at_ns,
        cpu: event.cpu,
        tid: shown.thread(event.tid).tid,
        event: name(event.kind),
        ..Row::default()
    };
    let other = |row: &mut Row<'a>, tid: u32| {
        let who = shown.thread(tid);
        row.other = Some(who.tid);
        row.other_comm = Some(who.comm_at(event.at_ns));
    };
    let subject = match event.kind {
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
        Kind::On | Kind::Told(_) => event.tid,
    };
    let who = shown.thread(subject);
    (row.subject, row.comm) = (who.tid, who.comm_at(event.at_ns));
    row
}

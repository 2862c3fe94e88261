//! Text of `perf script`, `perf sched script`, ftrace (`trace`, `trace_pipe`) and
//! `trace-cmd report`, told apart line by line.
//!
//! | file | subject |
//! | --- | --- |
//! | `line` | who, where, when, which event |
//! | `fields` | what the event says: the kernel's `key=value`, or the short form of plugins |
//! | `joined` | events whose lines break within a name |
//! | `columns` | threads of files whose first columns do not name them |
//! | `refused` | what is wrong with text that has events in no layout that is read |
//! | `loss` | what recorders say they have lost, and where buffers begin |
//! | `stated` | what recorders say about the machine |

mod columns;
mod fields;
mod joined;
mod line;
mod loss;
mod refused;
mod stated;

use std::io::BufRead;

use crate::error::TraceError;
use crate::event::{Event, Kind};
use crate::recording::{CPU_MAX, Overwritten, Place, Recording, no_cpu};
use crate::told;
use joined::Held;
use loss::Loss;

/// How lines begin that say what events do not ([`Recording::said`]).
pub const SAID: &str = "#: ";
/// Such a line without words, as it is once its end is trimmed.
const SAID_BLANK: &[u8] = b"#:";
/// What it has in it if it is of a simulated run.
const RUN: &str = "[run]";
/// Most of that.
const SAID_MAX: usize = 4 << 20;

/// A file that begins with so many bytes of comments may have events behind them.
const COMMENTS_LEAST: usize = 32 << 10;

/// What some editors put before text in UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Longest line that is looked at; the rest of a longer one is skipped.
pub(crate) const LINE_MAX: usize = 4096;

/// A file is refused if it has so many lines with the scheduler's events that cannot be read, and
/// more than of others.
const UNREAD_LEAST: u64 = 16;

/// What is read, and what cannot be.
struct Reader {
    recording: Recording,
    /// Lines of events in a layout that is read.
    read: u64,
    /// Lines that seem to have the scheduler's events, in no such layout.
    unread: u64,
    /// The first of these.
    first_unread: Vec<u8>,
    /// Lines of the scheduler's events that end with the event's name.
    without_fields: u64,
    /// Lines that may go on in the next one.
    held: Held,
}

/// What became of a line.
enum Taken {
    /// It was used, or cannot be; false if no more events can be kept.
    All(bool),
    /// It may go on in the next line; nothing was done.
    Part,
    /// It has no event, and was counted for what it is.
    Nothing,
}

/// Reads text.
///
/// # Errors
/// When the source cannot be read at all; one that breaks off is used up to there. And when most
/// lines of events are in no layout that is read.
pub fn read(
    mut source: impl BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<Recording, TraceError> {
    let mut reader = Reader {
        recording: Recording::new("text"),
        read: 0,
        unread: 0,
        first_unread: Vec::new(),
        without_fields: 0,
        held: Held::default(),
    };
    let mut line = Vec::with_capacity(LINE_MAX);
    let (mut number, mut bytes) = (0_u64, 0_u64);
    loop {
        number += 1;
        let (read, more) = match next_line(&mut source, &mut line, number, &mut reader) {
            Ok((0, _)) => break,
            Ok(done) => done,
            Err(e) if reader.recording.events.is_empty() => return Err(e.into()),
            Err(e) => {
                reader.recording.left_out.cut = Some(e.to_string());
                break;
            }
        };
        bytes += read as u64;
        if number.is_multiple_of(1 << 14) {
            progress(bytes);
        }
        if !more {
            break;
        }
    }
    joined::flush(&mut reader);
    reader.refuse()?;
    let mut recording = reader.recording;
    let mut times = recording.events.iter().map(|e| e.at_ns);
    recording.whole_us = recording.said.is_empty() && times.all(|ns| ns.is_multiple_of(1000));
    recording.sort_recorded()?;
    columns::mend(&mut recording);
    if told::is_told(&recording.events) {
        told::contexts(&mut recording.events);
    }
    Ok(recording)
}

impl Reader {
    /// A line that has no event in a layout that is read: what is wrong with most of these is wrong
    /// with the file, of which the others would be a small and odd part.
    fn cannot_read(&mut self, text: &[u8]) {
        if memchr::memmem::find(text, b"sched_").is_some() {
            self.unread += 1;
            if self.first_unread.is_empty() {
                self.first_unread = text.to_vec();
            }
        }
    }

    fn refuse(&self) -> Result<(), TraceError> {
        if self.without_fields > 0 && self.recording.events.is_empty() {
            return Err(TraceError::Unsupported {
                what: "text without the fields of the events".into(),
                help: "add trace to `perf script -F`: comm,tid,cpu,time,event,trace",
            });
        }
        if self.unread < UNREAD_LEAST || self.unread <= self.read {
            return Ok(());
        }
        let Some((what, help)) = refused::why(&self.first_unread) else {
            return Ok(());
        };
        let all = self.unread + self.read;
        Err(TraceError::Unsupported {
            what: format!("{what} ({} of {all} lines)", self.unread),
            help,
        })
    }
}

/// Whether `head`, the beginning of a file, has a line of a trace; or nothing but comments up to
/// where it was cut off, as `perf script --header` writes many.
#[must_use]
pub fn looks_like(head: &[u8]) -> bool {
    let head = head.strip_prefix(BOM).unwrap_or(head);
    if head.starts_with(SAID.as_bytes()) {
        return true;
    }
    let lines = || head.split(|b| *b == b'\n');
    if lines().any(|l| line::parse(l).is_some()) {
        return true;
    }
    let comment = |l: &[u8]| l.first().is_none_or(|b| *b == b'#');
    // The last line may be cut off.
    let whole = lines().count().saturating_sub(1);
    head.len() >= COMMENTS_LEAST && lines().take(whole).all(comment) && head[0] == b'#'
}

/// What is not read of text that has the scheduler's events, and what to do.
#[must_use]
pub fn refused(head: &[u8]) -> Option<(&'static str, &'static str)> {
    refused::why(head)
}

/// Takes in the line up to the next line break, at most [`LINE_MAX`] bytes of it. The number of
/// bytes read, and false if no more events can be kept.
fn next_line(
    source: &mut impl BufRead,
    line: &mut Vec<u8>,
    number: u64,
    reader: &mut Reader,
) -> std::io::Result<(usize, bool)> {
    let buffer = source.fill_buf()?;
    if let Some(end) = memchr::memchr(b'\n', buffer) {
        // Nearly always: no copy is needed.
        let more = one_line(&buffer[..end.min(LINE_MAX)], number, reader);
        source.consume(end + 1);
        return Ok((end + 1, more));
    }
    line.clear();
    let mut read = 0;
    loop {
        let buffer = source.fill_buf()?;
        if buffer.is_empty() {
            // The last word of a line without an end may be a part of one: another thread's id.
            if line::parse(line.trim_ascii_end()).is_some() {
                reader.recording.left_out.cut = Some("its last line has no end".into());
                return Ok((read, true));
            }
            let more = read == 0 || one_line(line, number, reader);
            return Ok((read, more));
        }
        let end = memchr::memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = LINE_MAX.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        source.consume(used);
        read += used;
        if end.is_some() {
            return Ok((read, one_line(line, number, reader)));
        }
    }
}

/// Takes in a line; false if no more events can be kept.
fn one_line(text: &[u8], number: u64, reader: &mut Reader) -> bool {
    let text = match number {
        1 => text.strip_prefix(BOM).unwrap_or(text),
        _ => text,
    };
    let text = text.trim_ascii_end();
    // The name of a thread may begin with `#`, too.
    let comment = text.starts_with(b"# ") || text.starts_with(SAID.as_bytes());
    if text.is_empty() || comment || text == SAID_BLANK {
        let more = joined::flush(reader);
        said(text, &mut reader.recording);
        stated::see(text, &mut reader.recording);
        return more;
    }
    match reader.held.is_empty() {
        true => joined::start(text, number, reader),
        false => joined::go_on(text, number, reader),
    }
}

/// Takes in a line that is no comment; `whole` if what follows it does not belong to it.
fn take(text: &[u8], number: u64, reader: &mut Reader, whole: bool) -> Taken {
    let Some(head) = line::parse(text) else {
        return no_event(text, number, reader, whole);
    };
    let recording = &mut reader.recording;
    let name = head.event.strip_prefix(b"sched:").unwrap_or(head.event);
    recording.names.at(None);
    recording.names.see(head.tid, head.comm);
    recording.names.at(Some(head.at_ns));
    let mut parsed = fields::parse(name, head.fields, head.tid, &mut recording.names);
    if matches!(parsed, fields::Parsed::Other) && recording.said.contains(RUN) {
        parsed = fields::told(name, head.fields, head.period);
    }
    if let fields::Parsed::Missing(field) = parsed {
        // Without any fields, it is the text that lacks them.
        if !whole && !head.fields.is_empty() {
            return Taken::Part;
        }
        reader.read += 1;
        let name = String::from_utf8_lossy(name).into_owned();
        let lacks = match head.fields {
            [] => "fields; add trace to `perf script -F`",
            _ => field,
        };
        reader.without_fields += u64::from(head.fields.is_empty());
        recording
            .left_out
            .bad(|| format!("line {number}, {name} has no {lacks}"));
        return Taken::All(true);
    }
    reader.read += 1;
    if let Some(process) = head.process.filter(|_| head.tid != line::UNKNOWN) {
        recording.names.see_process(head.tid, process);
    }
    let fields::Parsed::Event(kind) = parsed else {
        other(&head, name, recording);
        return Taken::All(true);
    };
    if head.cpu > CPU_MAX {
        let why = || format!("line {number}, {}", no_cpu(head.cpu));
        recording.left_out.bad(why);
        return Taken::All(true);
    }
    Taken::All(recording.push(head.event(kind)))
}

/// An event of another kind.
fn other(head: &line::Line<'_>, name: &[u8], recording: &mut Recording) {
    let at = Place {
        at_ns: head.at_ns,
        cpu: head.cpu,
    };
    if let Some((tid, ns)) = fields::runtime(name, head.fields)
        && (tid == head.tid || head.tid == line::UNKNOWN)
    {
        recording.ran.see(at, tid, ns);
    }
    recording
        .left_out
        .other(&String::from_utf8_lossy(&name[..name.len().min(40)]));
}

impl line::Line<'_> {
    fn event(&self, kind: Kind) -> Event {
        Event {
            at_ns: self.at_ns,
            cpu: self.cpu,
            tid: self.tid,
            context: self.context,
            kind,
        }
    }
}

/// A line without an event: a comment, another record of perf, a loss, or nothing that is known.
fn no_event(text: &[u8], number: u64, reader: &mut Reader, whole: bool) -> Taken {
    if !is_known(text, reader) {
        if !whole && (joined::may_be_name(text) || !reader.held.is_empty()) {
            return Taken::Part;
        }
        let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        reader
            .recording
            .left_out
            .bad(|| format!("line {number}, no event in `{shown}`"));
        reader.cannot_read(text);
    }
    Taken::Nothing
}

/// Whether a line without an event is one that is known: then it is taken in.
fn is_known(text: &[u8], reader: &mut Reader) -> bool {
    let recording = &mut reader.recording;
    if text[0] == b'#' {
        if let Some(cpu) = loss::started(text) {
            recording.overwritten.insert(cpu, Overwritten::Perhaps);
        }
        return true;
    }
    match loss::of(text) {
        Some(Loss::Events(lost)) => {
            recording.left_out.lose(lost);
            return true;
        }
        Some(Loss::On(cpu)) => {
            recording.left_out.lost_on.insert(cpu);
            return true;
        }
        Some(Loss::Chunks(chunks)) => {
            recording.left_out.notes.push(format!(
                "perf says that it lost {chunks} chunks of events, of an unknown number"
            ));
            return true;
        }
        None => {}
    }
    if line::is_heading(text) || line::is_stack(text) {
        stated::see(text, recording);
        return true;
    }
    if let Some(record) = line::record(text) {
        recording.left_out.other(&String::from_utf8_lossy(record));
        return true;
    }
    false
}

/// A comment: in what [`crate::export`] wrote, some have more to say.
fn said(text: &[u8], recording: &mut Recording) {
    let line = match text.strip_prefix(SAID.as_bytes()) {
        Some(line) => line,
        // Lines are told by their number, so those without words count.
        None if text == SAID_BLANK && !recording.said.is_empty() => &[],
        None => return,
    };
    if recording.said.len() + line.len() < SAID_MAX {
        recording.said += &String::from_utf8_lossy(line);
        recording.said.push('\n');
    } else {
        recording
            .left_out
            .bad(|| format!("more than {SAID_MAX} bytes in lines of `{SAID}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, State};

    fn read_all(text: &str) -> Recording {
        read(text.as_bytes(), &mut |_| {}).unwrap()
    }

    #[test]
    fn the_layouts_of_perf_ftrace_and_trace_cmd_say_the_same() {
        let kernel = "sched_switch: prev_comm=a b prev_pid=7 prev_prio=120 prev_state=R+ ==> \
                      next_comm=c next_pid=8 next_prio=98";
        let lines = [
            format!("  a b     7 [001]  10.000002500: sched:{kernel}"),
            format!("a b     7/7     [001]  10.000002500:      {kernel}"),
            format!("  a b-7     [001] d..2.  10.000002500: {kernel}"),
            format!("  a b-7     (  7) [001] d..2.  10.000002500: {kernel}"),
            format!("  a b-7     [001]  10.000002500: {kernel}"),
            "  a b-7 [001] 10.000002500: sched_switch: a b:7 [120] R+ ==> c:8 [98]".to_string(),
        ];
        for line in lines {
            let r = read_all(&format!("{line}\n"));
            assert_eq!(r.left_out.text(), "", "{line}");
            let [event] = r.events[..] else {
                panic!("{line}")
            };
            assert_eq!((event.at_ns, event.cpu, event.tid), (10_000_002_500, 1, 7));
            let kind = Kind::Switch {
                prev: 7,
                prev_prio: 120,
                state: State::Runnable,
                next: 8,
                next_prio: 98,
            };
            assert_eq!(event.kind, kind, "{line}");
            assert_eq!((r.names.get(7), r.names.get(8)), ("a b".into(), "c".into()));
        }
    }

    #[test]
    fn flags_tell_an_interrupt_from_the_task() {
        let wake = "10.5: sched_waking: comm=c pid=8 prio=120 target_cpu=003";
        let context =
            |flags: &str| read_all(&format!("x-7 [0] {flags} {wake}\n")).events[0].context;
        assert_eq!(context("d.h4."), Context::Interrupt);
        assert_eq!(context("d.s4."), Context::Interrupt);
        assert_eq!(context("d..3."), Context::Task);
        let r = read_all(&format!("x 7 [0] {wake}\n"));
        assert_eq!(r.events[0].context, Context::Unknown);
        let kind = Kind::Waking {
            tid: 8,
            prio: 120,
            cpu: 3,
        };
        assert_eq!(r.events[0].kind, kind);
    }

    #[test]
    fn a_line_that_breaks_off_is_not_taken_for_another() {
        let line = "x-7 [0] 1.5: sched_wakeup: comm=c pid=8 prio=120 target_cpu=003";
        for cut in [line, &line[..line.len() - 1]] {
            let r = read_all(&format!("{line}\n{cut}"));
            assert_eq!(r.events.len(), 1);
            let told = r.left_out.text();
            assert!(
                told.contains("cut short: its last line has no end"),
                "{told}"
            );
        }
    }

    #[test]
    fn what_recorders_lost_is_counted_and_stacks_are_not_lines() {
        let r = read_all(
            "x 7 [000] 1.5: sched:sched_process_exit: comm=x pid=7 prio=120\n\
             \tffffffff8139 schedule+0x1 ([kernel.kallsyms])\n\
             \t         40 [unknown] (/bin/x)\n\
             \n\
             x 7 [000] 1.6: PERF_RECORD_LOST lost 3\n\
             CPU:0 [17 EVENTS DROPPED]\n\
             CPU:0 [EVENTS DROPPED]\n",
        );
        assert_eq!(
            (r.events.len(), r.left_out.lost, r.left_out.bad),
            (1, 20, 0)
        );
        let told = r.left_out.text();
        assert!(
            told.contains("an unknown number of events on CPU 0\n"),
            "{told}"
        );
    }

    #[test]
    fn what_perf_says_about_its_losses_is_told_and_a_byte_order_mark_is_skipped() {
        let r = read_all(
            "\u{feff}Warning:\nProcessed 80218 events and lost 3 chunks!\n\n\
             Check IO/CPU overload!\n\n\
             x 7 [000] 1.5: sched:sched_process_exit: comm=x pid=7 prio=120\n\
             CPU:1 [LOST EVENTS]\n",
        );
        assert_eq!((r.events.len(), r.left_out.bad), (1, 0));
        let told = r.left_out.text();
        assert!(
            told.contains("lost 3 chunks") && told.contains("unknown number of events on CPU 1"),
            "{told}"
        );
    }

    #[test]
    fn a_file_of_which_most_lines_lack_something_is_refused() {
        let exit = "[000] 1.5: sched:sched_process_exit: comm=x pid=7 prio=120\n";
        let without = format!("    7 {exit}").repeat(40);
        let few = format!("x   7 {exit}").repeat(3) + &format!("   -1 {exit}");
        let error = read((few.clone() + &without).as_bytes(), &mut |_| {}).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("without the name of the thread") && error.contains("41 of 44 lines"),
            "{error}"
        );
        let with = format!("x   7 {exit}").repeat(60);
        let r = read_all(&(with + &without));
        assert_eq!((r.events.len(), r.left_out.bad), (60, 40));
    }

    #[test]
    fn fields_are_read_as_the_record_has_them_too() {
        for (state, kind) in [("0x1 (1)", State::Blocked(b'S')), ("256", State::Runnable)] {
            let text = format!(
                "x-7 [0] 1.5: sched_switch: prev_comm=a ==> [b prev_pid=0x11 (17) \
                 prev_prio=0x78 (120) prev_state={state} next_comm=c d next_pid=0x12 (18) \
                 next_prio=0x62 (98)\n\
                 x-7 [0] 1.6: sched_wakeup: comm=c d pid=0x12 (18) prio=0x78 (120) target_cpu=0x3 \
                 (3)\n"
            );
            let r = read_all(&text);
            let switch = Kind::Switch {
                prev: 17,
                prev_prio: 120,
                state: kind,
                next: 18,
                next_prio: 98,
            };
            let wakeup = Kind::Wakeup {
                tid: 18,
                prio: 120,
                cpu: 3,
            };
            assert_eq!((r.events[0].kind, r.events[1].kind), (switch, wakeup));
            assert_eq!(r.names.get(17), "a ==> [b");
        }
    }

    #[test]
    fn a_name_with_a_bracket_is_read_from_the_short_form() {
        let r = read_all(
            "a [x]-7 [001] 1.5: sched_switch: a [x]:7 [120] S ==> b [y]: [9]:8 [98]\n\
             a [x]-7 [001] 1.6: sched_waking: a [x]:7 [120] success=1 CPU:003\n",
        );
        let tids: Vec<_> = r.events.iter().map(|e| e.kind).collect();
        let switch = Kind::Switch {
            prev: 7,
            prev_prio: 120,
            state: State::Blocked(b'S'),
            next: 8,
            next_prio: 98,
        };
        let waking = Kind::Waking {
            tid: 7,
            prio: 120,
            cpu: 3,
        };
        assert_eq!(tids, [switch, waking]);
        assert_eq!(
            (r.names.get(7), r.names.get(8)),
            ("a [x]".into(), "b [y]: [9]".into())
        );
    }

    #[test]
    fn columns_that_name_the_process_are_not_believed() {
        let switch = |us: u32, tid: i32, prev: u32, next: u32| {
            format!(
                "a {tid} [000] 1.{us:06}: sched:sched_switch: prev_comm=a prev_pid={prev} \
                 prev_prio=120 prev_state=S ==> next_comm=a next_pid={next} next_prio=120\n"
            )
        };
        let waking = |us: u32, tid: i32| {
            format!(
                "a {tid} [000] 1.{us:06}: sched:sched_waking: comm=b pid=9 prio=120 target_cpu=0\n"
            )
        };
        let process = [
            switch(1, 0, 0, 8),
            waking(2, 7),
            switch(3, 7, 8, 7),
            waking(4, 7),
        ]
        .concat();
        let r = read_all(&process);
        assert_eq!(
            r.events.iter().map(|e| e.tid).collect::<Vec<_>>(),
            [0, 8, 8, 7]
        );
        assert!(r.left_out.text().contains("another thread than 1 of 2"));
        // Of a thread that has exited perf knows no id.
        let exited = [switch(1, 0, 0, 8), waking(2, -1), switch(3, -1, 8, 7)].concat();
        let r = read_all(&exited.replace("a -1", ":-1    -1"));
        assert_eq!(
            r.events.iter().map(|e| e.tid).collect::<Vec<_>>(),
            [0, 8, 8]
        );
        assert_eq!(r.left_out.text(), "");
    }

    #[test]
    fn differences_of_times_are_refused() {
        let line = |n: u64| {
            let ns = n * 7919 % 1000;
            format!("a 7 [000] 0.{ns:09}: sched:sched_process_exit: comm=a pid=7 prio=120\n")
        };
        let text: String = (0..100).map(line).collect();
        let error = read(text.as_bytes(), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("--deltatime"), "{error}");
    }

    #[test]
    fn comments_of_any_length_may_stand_before_the_events() {
        let head = "# comment\n".repeat(7000);
        assert!(looks_like(&head.as_bytes()[..64 << 10]));
        assert!(!looks_like(b"# comment\nand more\n"));
    }

    #[test]
    fn a_name_may_begin_as_a_comment_does() {
        let r = read_all(
            "#           cmd   pid\n\
             #        | |   ||||| \\   |\n\
             #x-7 0d.h2. 16us+: sched_process_exit: comm=#x pid=7 prio=120\n",
        );
        assert_eq!((r.events.len(), r.left_out.bad), (1, 0));
        assert_eq!(r.names.get(7), "#x");
    }

    #[test]
    fn other_records_of_perf_are_skipped_and_missing_columns_are_named() {
        let r = read_all(
            "as 8 [000] 1.5: PERF_RECORD_COMM exec: as:8/8\n\
             as 8 [000] 1.6: PERF_RECORD_FORK(9:9):(8:8)\n\
             as 8 [000] 1.7: sched:sched_switch: \n\
             as 8 [000] 1.8: sched:sched_process_exit: comm=as pid=8 prio=120\n",
        );
        assert_eq!(r.left_out.other_events["PERF_RECORD_FORK"], 1);
        assert_eq!((r.left_out.other_events.len(), r.left_out.bad), (2, 1));
        let first = r.left_out.first_bad.unwrap();
        assert!(first.contains("add trace to"), "{first}");
        let none = "as 8 [000] 1.7: sched:sched_switch: \n";
        let error = read(none.as_bytes(), &mut |_| {}).unwrap_err().to_string();
        let said = "text without the fields of the events is not supported; add trace to";
        assert!(error.starts_with(said), "{error}");
    }

    #[test]
    fn a_cpu_beyond_those_that_can_be_read_is_told_with_its_line() {
        let exit = "1.000002: sched:sched_process_exit: comm=x pid=7 prio=120\n";
        let r = read_all(&format!("x 7 [000] {exit}x 7 [99999] {exit}"));
        assert_eq!((r.events.len(), r.whole_us), (1, true));
        assert_eq!(
            r.left_out.text(),
            "1 record makes no sense: line 2, CPU 99999, but the highest that can be read is 8191\n"
        );
        let ns = exit.replace("002:", "0025:");
        assert!(!read_all(&format!("cpus=4\nx 7 [000] {exit}x 7 [001] {ns}")).whole_us);
        assert_eq!(read_all(&format!("cpus=4\nx 7 [000] {exit}")).cpus, 4);
    }

    #[test]
    fn what_cannot_be_used_is_counted_and_the_first_is_told() {
        let r = read_all(
            "# tracer: nop\n\
             CPU:1 [LOST 12 EVENTS]\n\
             x-7 [0] 1.5: sched_stat_runtime: comm=x pid=7 runtime=5 [ns]\n\
             x-7 [0] 1.5: sched_wakeup: comm=x prio=7\n\
             nonsense\n\
             x-7 [0] 1.6: sched_process_exit: comm=x pid=7 prio=120\n",
        );
        assert_eq!(
            (r.events.len(), r.left_out.lost, r.left_out.bad),
            (1, 12, 2)
        );
        assert_eq!(r.left_out.other_events["sched_stat_runtime"], 1);
        let first = r.left_out.first_bad.unwrap();
        assert_eq!(first, "line 4, sched_wakeup has no pid");
    }
}

//! What is wrong with text that has the scheduler's events, but no line in a layout that is read.

use super::line;

const COLUMNS: &str = "`perf script -F comm,tid,cpu,time,event,trace` shows all that is needed";

/// What is not read of `head`, the beginning of a file, and what to do.
pub fn why(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let lines = || head.split(|b| *b == b'\n');
    let has = |words: &[u8]| memchr::memmem::find(head, words).is_some();
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some((
            "text in UTF-16",
            "save it as UTF-8 (`iconv -f utf-16 -t utf-8`)",
        ));
    }
    if let Some(ours) = ours(head) {
        return Some(ours);
    }
    if head.contains(&0) {
        return None;
    }
    if head.starts_with(b"{\"time_ns\":") || head.starts_with(b"time_ns,cpu,tid,event,") {
        let help = "write FILE.txt (`--export`, `--trace`), which has all that a replay needs";
        return Some((
            "a table of events, as fairground writes it for other tools,",
            help,
        ));
    }
    if let Some(counters) = counters(head) {
        return Some(counters);
    }
    if has(b"sch delay") && has(b"run time") {
        let help = "write the events themselves with `perf script`";
        return Some(("the table of `perf sched timehist`", help));
    }
    if has(b"type: ") && !has(b"sched_") {
        let numbers =
            |l: &[u8]| line::number(l).is_some() && memchr::memmem::find(l, b" type: ").is_some();
        let hex =
            |l: &[u8]| l.len() > 9 && l[8] == b' ' && l[..8].iter().all(u8::is_ascii_hexdigit);
        let found = lines().find(|l| numbers(l) || hex(l))?;
        return Some(match hex(found) {
            true => (
                "the option `hex` of ftrace",
                "turn it off (`echo 0 > options/hex`) and read the buffer again",
            ),
            false => (
                "the option `raw` of ftrace",
                "turn it off (`echo 0 > options/raw`) and read the buffer again",
            ),
        });
    }
    let mut events = lines().filter(|l| !l.starts_with(b"#"));
    events.find_map(|line| {
        let at = event_at(line).filter(|at| *at > 0)?;
        Some(columns(&line[..at]))
    })
}

/// Files of the kernel that count what a trace lists.
fn counters(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const RECORD: &str = "it has counters, no events; record these: `perf record -a -e 'sched:*' \
                          -k CLOCK_MONOTONIC -- sleep 10`";
    let mut lines = head.split(|b| *b == b'\n');
    let first = lines.next()?;
    if first.starts_with(b"Sched Debug Version") {
        return Some(("/sys/kernel/debug/sched/debug", RECORD));
    }
    let version = first.strip_prefix(b"version ")?;
    let is_number = !version.is_empty() && version.iter().all(u8::is_ascii_digit);
    (is_number && lines.next()?.starts_with(b"timestamp ")).then_some(("/proc/schedstat", RECORD))
}

/// Where a line has the name of one of the scheduler's events, with its colon.
fn event_at(line: &[u8]) -> Option<usize> {
    const PREFIX: &[u8] = b"sched_";
    memchr::memmem::find_iter(line, PREFIX).find(|at| {
        let name = &line[at + PREFIX.len()..];
        let letter = |b: &u8| b.is_ascii_lowercase() || *b == b'_';
        let end = name.iter().position(|b| !letter(b));
        end.is_some_and(|end| end > 0 && name[end] == b':')
    })
}

/// What this program writes and does not read again.
fn ours(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const EVENTS: &str =
        "write FILE.txt (`--export`, `--trace`), which has all that a replay needs";
    let json = head.trim_ascii_start().starts_with(b"{");
    if json && memchr::memmem::find(head, b"\"format\": \"fairground-").is_some() {
        let what = "a result in JSON, as fairground writes it with `--json`,";
        return Some((what, "it has no events; replay the trace itself"));
    }
    if is_perfetto(head) {
        return Some(("a trace of Perfetto (.pftrace)", EVENTS));
    }
    let mut lines = head.split(|b| *b == b'\n');
    // The last one may be cut off.
    lines.next_back();
    let mut any = false;
    let folded = lines.all(|line| {
        any |= line.contains(&b';');
        let blank = line.iter().rposition(|b| *b == b' ');
        blank.is_some_and(|at| {
            let (frames, count) = (&line[..at], &line[at + 1..]);
            let is_count = !count.is_empty() && count.iter().all(u8::is_ascii_digit);
            is_count && !frames.is_empty() && !frames.contains(&b'[')
        })
    });
    (folded && any).then_some(("time by stack (.folded), without events,", EVENTS))
}

/// Whether it is a row of packets, the only field of a file of Perfetto's.
fn is_perfetto(head: &[u8]) -> bool {
    const PACKET: u8 = 0x0a;
    let text = |b: &u8| *b >= b' ' || b.is_ascii_whitespace();
    let (mut at, mut packets) = (0_usize, 0);
    while let Some(first) = head.get(at) {
        let mut length = 0_usize;
        let mut end = None;
        for (n, byte) in head[at + 1..].iter().take(4).enumerate() {
            length |= usize::from(byte & 0x7f) << (7 * n);
            if byte & 0x80 == 0 {
                end = Some(at + n + 2);
                break;
            }
        }
        match end {
            Some(end) if *first == PACKET && length > 0 => at = end + length,
            _ => return false,
        }
        packets += 1;
    }
    packets > 1 && !head.iter().all(text)
}

/// What the columns before an event lack.
fn columns(before: &[u8]) -> (&'static str, &'static str) {
    let words = || {
        before
            .split(u8::is_ascii_whitespace)
            .filter(|w| !w.is_empty())
    };
    let in_brackets = |w: &[u8]| {
        let inside = w.strip_prefix(b"[").and_then(|w| w.strip_suffix(b"]"));
        inside.is_some_and(|w| w.iter().all(u8::is_ascii_digit))
    };
    let whole = |w: &[u8]| {
        let digits = w.strip_suffix(b":");
        digits.is_some_and(|w| !w.is_empty() && w.iter().all(u8::is_ascii_digit))
    };
    let time = |w: &[u8]| {
        let number = w.strip_suffix(b":").and_then(line::number);
        number.is_some_and(|(_, rest)| rest.starts_with(b"."))
    };
    if words().any(whole) {
        return (
            "a clock that counts no seconds (trace_clock `counter`, `x86-tsc`)",
            "record with another: `echo mono > trace_clock`, `trace-cmd record -C mono`",
        );
    }
    if words().any(|w| w.starts_with(b"(+") && w.ends_with(b"ms):")) {
        return (
            "the option `verbose` of ftrace",
            "turn it off (`echo 0 > options/verbose`) and read the buffer again",
        );
    }
    let bracketed = |w: &[u8]| {
        let inside = w.strip_prefix(b"[").and_then(|w| w.strip_suffix(b"]:"));
        let number = inside.and_then(line::number);
        number.is_some_and(|(_, rest)| rest.starts_with(b"."))
    };
    if words().any(bracketed) {
        return (
            "text with times in brackets, as the kernel's log has them,",
            "expected them as `perf script` and ftrace write them: `637.341234:`",
        );
    }
    if !words().any(time) {
        return ("text without times", COLUMNS);
    }
    if !words().any(in_brackets) {
        return ("text without the CPU of each event", COLUMNS);
    }
    let thread = words().take_while(|w| !in_brackets(w)).collect::<Vec<_>>();
    let id = |w: &[u8]| w.last().is_some_and(u8::is_ascii_digit);
    match thread[..] {
        [.., last] if !id(last) => ("text without the id of the thread of each event", COLUMNS),
        [_] => ("text without the name of the thread of each event", COLUMNS),
        _ => ("the layout of this text", COLUMNS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        for (text, what) in [
            ("  a 7 1.5: sched:sched_waking: x", "the CPU"),
            ("  a [000] 1.5: sched:sched_waking: x", "the id"),
            ("  7 [000] 1.5: sched:sched_waking: x", "the name"),
            ("  a 7 [000] sched:sched_waking: x", "times"),
            ("  a-7 [000] d..2. 15000: sched_waking: x", "trace_clock"),
            ("a 7 [000] [637.34]: sched_waking: x", "in brackets"),
            (
                "a 7 0 1 00000002 00000004 [0123abcd] 0.123ms (+0.004ms): sched_waking: x",
                "`verbose`",
            ),
            ("# tracer: nop\n11463 0 24599 type: 366\n", "`raw`"),
            ("0000159c 00000000 00003cbe78344ee2 type: 372\n", "`hex`"),
            ("\u{0}\u{0}", ""),
            ("{\"time_ns\":1,\"event\":\"sched_switch\"", "other tools"),
            (
                "time_ns,cpu,tid,event,subject\n1,0,7,sched_switch",
                "other tools",
            ),
            (
                "version 17\ntimestamp 4295\ncpu0 0 0 0 0 0 0 1 2 3\n",
                "/proc/schedstat",
            ),
            ("version 17\n", ""),
            ("Sched Debug Version: v0.11, 6.18.3\n", "sched/debug"),
            ("nothing of the kind", ""),
            ("{\"note\": \"no sched_switch in it\"}", ""),
            ("a 7 [000] 1.5: sched_waking: x\u{0}", ""),
            (
                "{\n  \"format\": \"fairground-replay/1\",\n  \"sched_switch: \": 0\n}",
                "in JSON",
            ),
            ("hog;schedule;pick_next_task 120\nhog 7\n", ".folded"),
            ("\n\u{2}\u{8}\u{1}\n\u{2}\u{8}\u{2}", ".pftrace"),
        ] {
            let found = why(text.as_bytes()).map_or("", |(what, _)| what);
            assert!(
                found.contains(what) && found.is_empty() == what.is_empty(),
                "{text}: {found}"
            );
        }
    }
}

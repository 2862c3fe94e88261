//! The part of a line that all layouts have: `comm tid [cpu] flags time: event: fields`.

use crate::event::Context;

/// A line, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Name of the current thread.
    pub comm: &'a [u8],
    /// Its id.
    pub tid: u32,
    /// Its process, where the layout has it.
    pub process: Option<u32>,
    /// CPU.
    pub cpu: u32,
    /// ns.
    pub at_ns: u64,
    /// From ftrace's flags.
    pub context: Context,
    /// What stands before the event: its period, or a counter's value.
    pub period: u64,
    /// With `sched:` in front if perf wrote it.
    pub event: &'a [u8],
    /// What follows the event's colon.
    pub fields: &'a [u8],
}

/// Takes a line apart; `None` if it is not one of an event. Names may hold brackets and spaces, so
/// every `[digits]` is tried until what follows is a time.
pub fn parse(text: &[u8]) -> Option<Line<'_>> {
    let usual = memchr::memchr_iter(b'[', text).find_map(|open| from_cpu(text, open));
    usual.or_else(|| latency(text))
}

fn from_cpu(text: &[u8], open: usize) -> Option<Line<'_>> {
    let (cpu, rest) = number(&text[open + 1..])?;
    let rest = rest.strip_prefix(b"]")?;
    let (first, after) = word(rest)?;
    let (context, at_ns, rest) = match time(first) {
        Some(at_ns) => (Context::Unknown, at_ns, after),
        None => {
            let (second, after) = word(after)?;
            (flags(first)?, time(second)?, after)
        }
    };
    from_time(thread(&text[..open])?, (cpu, context, at_ns), rest)
}

/// The latency format of ftrace and of `trace-cmd report -l`: CPU and flags are one word, and the
/// time may be in microseconds (`x-7 0d.h2. 16725us+: sched_waking: ...`).
fn latency(text: &[u8]) -> Option<Line<'_>> {
    let mut before = 0;
    let mut rest = text;
    while let Some((word, after)) = word(rest) {
        let about = number(word).and_then(|(cpu, letters)| Some((cpu, flags(letters)?)));
        if let Some((cpu, context)) = about
            && let Some((at_ns, after)) = time_or_us(after)
            && let Some(thread) = thread(&text[..before])
        {
            return from_time(thread, (cpu, context, at_ns), after);
        }
        before = text.len() - after.len();
        rest = after;
    }
    None
}

/// What comes from a thread, a CPU with its context and time, and what follows the time.
fn from_time<'a>(
    (comm, tid, process): (&'a [u8], u64, Option<u64>),
    (cpu, context, at_ns): (u64, Context, u64),
    rest: &'a [u8],
) -> Option<Line<'a>> {
    let mut rest = rest.trim_ascii_start();
    // `trace-cmd report --ts-diff` shows the time since the line before.
    if let Some(since) = rest.strip_prefix(b"(+") {
        let end = memchr::memchr(b')', since)?;
        rest = since[end + 1..].trim_ascii_start();
    }
    // `perf script` may show the period in front of the event.
    let (period, rest) = match number(rest) {
        Some((n, after)) if after.first() == Some(&b' ') => (n, after.trim_ascii_start()),
        _ => (0, rest),
    };
    let end = event_end(rest)?;
    Some(Line {
        comm,
        tid: u32::try_from(tid).ok()?,
        process: process.and_then(|p| u32::try_from(p).ok()),
        cpu: u32::try_from(cpu).ok()?,
        at_ns,
        context,
        period,
        event: &rest[..end],
        fields: rest[end + 1..].trim_ascii_start(),
    })
}

/// Where the event's name ends: its colon is followed by a blank or nothing.
fn event_end(text: &[u8]) -> Option<usize> {
    let end = memchr::memchr_iter(b':', text)
        .find(|at| text.get(at + 1).is_none_or(u8::is_ascii_whitespace))?;
    let name = &text[..end];
    let fits = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'-' | b'.');
    (!name.is_empty() && name.iter().all(fits)).then_some(end)
}

/// The id of a thread that perf does not know: one that has exited, `:-1 -1`.
pub const UNKNOWN: u32 = u32::MAX;

/// `comm-tid`, `comm-tid (tgid)`, `comm tid` or `comm tgid/tid`; perf knows the process of some
/// threads whose id it does not know.
fn thread(text: &[u8]) -> Option<(&[u8], u64, Option<u64>)> {
    let mut text = text.trim_ascii();
    let mut process = None;
    if let Some(inside) = text.strip_suffix(b")") {
        let open = memchr::memrchr(b'(', inside)?;
        process = number(inside[open + 1..].trim_ascii()).map(|(n, _)| n);
        text = text[..open].trim_ascii_end();
    }
    if let Some((comm, process)) = exited(text) {
        return Some((comm, UNKNOWN.into(), process));
    }
    if text == b"-1" {
        // perf's thread that has exited, without its name; the first process always has one.
        return None;
    }
    let (before, digits) = text.split_at(text.len() - digits_at_end(text));
    let (tid, _) = number(digits)?;
    let before = match before.last()? {
        b'-' if before.len() > 1 && before[before.len() - 2].is_ascii_whitespace() => {
            return Some((
                before[..before.len() - 2].trim_ascii(),
                UNKNOWN.into(),
                process,
            ));
        }
        b'-' => &before[..before.len() - 1],
        b'/' => {
            let n = digits_at_end(&before[..before.len() - 1]);
            let (before, digits) = before[..before.len() - 1].split_at(before.len() - 1 - n);
            process = number(digits).map(|(n, _)| n);
            before
        }
        b if b.is_ascii_whitespace() => before,
        _ => return None,
    };
    Some((before.trim_ascii(), tid, process))
}

/// `comm tgid/-1` and `comm -1/-1`.
fn exited(text: &[u8]) -> Option<(&[u8], Option<u64>)> {
    let before = text.strip_suffix(b"/-1")?;
    let (before, digits) = before.split_at(before.len() - digits_at_end(before));
    let (process, _) = number(digits)?;
    let known = !before.ends_with(b"-");
    let before = before.strip_suffix(b"-").unwrap_or(before);
    let apart = before.last().is_some_and(u8::is_ascii_whitespace);
    apart.then(|| (before.trim_ascii(), known.then_some(process)))
}

pub fn digits_at_end(text: &[u8]) -> usize {
    text.iter().rev().take_while(|b| b.is_ascii_digit()).count()
}

/// A time of the latency format, and what follows it: as everywhere, or `16725us :`, where another
/// mark than the blank is for those who read.
fn time_or_us(text: &[u8]) -> Option<(u64, &[u8])> {
    let (first, after) = word(text)?;
    if let Some(at_ns) = time(first) {
        return Some((at_ns, after));
    }
    let (us, rest) = number(text.trim_ascii_start())?;
    let rest = rest.strip_prefix(b"us")?;
    let rest = match rest.first()? {
        b':' => rest,
        _ => &rest[1..],
    };
    Some((us.checked_mul(1000)?, rest.strip_prefix(b":")?))
}

/// `12345.678901:` in ns, with any number of digits behind the point.
fn time(word: &[u8]) -> Option<u64> {
    let (seconds, rest) = number(word.strip_suffix(b":")?)?;
    let fraction = rest.strip_prefix(b".")?;
    let (mut ns, mut scale) = (0, 100_000_000);
    for digit in fraction {
        if !digit.is_ascii_digit() {
            return None;
        }
        ns += u64::from(digit - b'0') * scale;
        scale /= 10;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// ftrace's flags, `dNh2.`: interrupts off, reschedule, hard or soft interrupt, preemption count.
/// With seven of them, of a PREEMPT_RT kernel, the third is lazy rescheduling.
fn flags(word: &[u8]) -> Option<Context> {
    let interrupt = match word.len() {
        4..=6 => word[2],
        7 => word[3],
        _ => return None,
    };
    Some(match interrupt {
        b'h' | b'H' | b's' | b'z' | b'Z' => Context::Interrupt,
        b'.' => Context::Task,
        _ => return None,
    })
}

/// The kind of another record that `perf script --show-task-events` and the like show.
pub fn record(text: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(text, b": PERF_RECORD_")?;
    let name = &text[at + 2..];
    let end = name
        .iter()
        .position(|b| !b.is_ascii_uppercase() && !matches!(b, b'_' | b'0'..=b'9'));
    Some(&name[..end.unwrap_or(name.len())])
}

/// A line of the stack that `perf script` shows below an event: `   ffff8139 schedule+0x1 (...)`.
pub fn is_stack(text: &[u8]) -> bool {
    // An event without the name of its thread begins with a number, too.
    let is_cpu = |w: &[u8]| w.first() == Some(&b'[') && w.get(1).is_some_and(u8::is_ascii_digit);
    let is_event = memchr::memmem::find(text, b": sched:sched_").is_some();
    text[0].is_ascii_whitespace()
        && !is_event
        && word(text).is_some_and(|(address, after)| {
            let after = after.trim_ascii();
            address.iter().all(u8::is_ascii_hexdigit) && !after.is_empty() && !is_cpu(after)
        })
}

/// Lines around the events that say nothing about the scheduler.
pub fn is_heading(text: &[u8]) -> bool {
    text.starts_with(b"cpus=") || text.starts_with(b"version = ") || text.starts_with(b"CPU ")
}

/// The next word and what follows it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace)?;
    Some((&text[..end], &text[end..]))
}

/// Digits at the beginning, and what follows them.
pub fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    let mut n = 0;
    while let Some(digit) = text.get(n).filter(|b| b.is_ascii_digit()) {
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        n += 1;
    }
    (n > 0).then_some((value, &text[n..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_digits() {
        let l = parse(b"[x] [3]-y 12 [002] 5.25: sched:sched_wakeup: comm=a").unwrap();
        assert_eq!((l.comm, l.tid, l.cpu), (&b"[x] [3]-y"[..], 12, 2));
        assert_eq!(
            (l.at_ns, l.event),
            (5_250_000_000, &b"sched:sched_wakeup"[..])
        );
    }

    #[test]
    fn lines_of_the_latency_format_have_the_cpu_before_the_flags() {
        for (text, at_ns, context) in [
            (
                &b"a b-12 3d.h2.  16us : sched_wakeup: x"[..],
                16_000,
                Context::Interrupt,
            ),
            (
                b"a b-12     3d..2. 16us+: sched_wakeup: x",
                16_000,
                Context::Task,
            ),
            (
                b"a b-12 3.N.2  1.5: sched_wakeup: x",
                1_500_000_000,
                Context::Task,
            ),
            (
                b"a b-12 [003] d..h2.. 1.5: sched_wakeup: x",
                1_500_000_000,
                Context::Interrupt,
            ),
            (
                b"a b-12 [003] 1.5: (+20) sched_wakeup: x",
                1_500_000_000,
                Context::Unknown,
            ),
        ] {
            let l = parse(text).unwrap_or_else(|| panic!("{}", text.escape_ascii()));
            assert_eq!((l.comm, l.tid, l.cpu), (&b"a b"[..], 12, 3));
            assert_eq!(
                (l.at_ns, l.context),
                (at_ns, context),
                "{}",
                text.escape_ascii()
            );
            assert_eq!((l.event, l.fields), (&b"sched_wakeup"[..], &b"x"[..]));
        }
        assert!(parse(b"a-12 3d.h2. 16ms : sched_wakeup: x").is_none());
    }

    #[test]
    fn a_thread_that_has_exited_has_a_process_at_most() {
        let of = |text: &str| {
            let line = parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            (line.comm == b":-1", line.tid, line.process)
        };
        let rest = "[000] 1.5: sched:sched_switch: x";
        for (thread, process) in [
            (":-1    -1", None),
            (":-1 10166/-1   ", Some(10_166)),
            (":-1    -1/-1", None),
        ] {
            assert_eq!(of(&format!("{thread} {rest}")), (true, UNKNOWN, process));
        }
        let dashes = format!("a-1/b-2 7/8 {rest}");
        assert_eq!(of(&dashes), (false, 8, Some(7)));
        // ftrace writes a thread behind a dash, whatever its name ends with.
        let slash = format!("a/-12 {rest}");
        assert_eq!(of(&slash).1, 12);
    }

    #[test]
    fn numbers_beyond_the_range_are_no_event() {
        assert!(parse(b"a-99999999999 [0] 1.0: x: y").is_none());
        assert!(parse(b"a-1 [0] 99999999999999999999.0: x: y").is_none());
        assert!(parse(b"a-1 [99999999999] 1.0: x: y").is_none());
    }
}

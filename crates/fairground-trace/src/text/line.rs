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
    memchr::memchr_iter(b'[', text).find_map(|open| from_cpu(text, open))
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
    let rest = rest.trim_ascii_start();
    // `perf script` may show the period in front of the event.
    let (period, rest) = match number(rest) {
        Some((n, after)) if after.first() == Some(&b' ') => (n, after.trim_ascii_start()),
        _ => (0, rest),
    };
    let end = event_end(rest)?;
    let (comm, tid, process) = thread(&text[..open])?;
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

/// `comm-tid`, `comm-tid (tgid)`, `comm tid` or `comm tgid/tid`.
fn thread(text: &[u8]) -> Option<(&[u8], u64, Option<u64>)> {
    let mut text = text.trim_ascii();
    let mut process = None;
    if let Some(inside) = text.strip_suffix(b")") {
        let open = memchr::memrchr(b'(', inside)?;
        process = number(inside[open + 1..].trim_ascii()).map(|(n, _)| n);
        text = text[..open].trim_ascii_end();
    }
    let (before, digits) = text.split_at(text.len() - digits_at_end(text));
    let (tid, _) = number(digits)?;
    let before = match before.last()? {
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

fn digits_at_end(text: &[u8]) -> usize {
    text.iter().rev().take_while(|b| b.is_ascii_digit()).count()
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
fn flags(word: &[u8]) -> Option<Context> {
    if !(4..=6).contains(&word.len()) {
        return None;
    }
    Some(match word[2] {
        b'h' | b'H' | b's' | b'z' | b'Z' => Context::Interrupt,
        b'.' => Context::Task,
        _ => return None,
    })
}

/// How many events a line of the recorder says were lost.
pub fn lost(text: &[u8]) -> Option<u64> {
    let at =
        memchr::memmem::find(text, b"LOST ").or_else(|| memchr::memmem::find(text, b"lost "))?;
    let (n, rest) = number(text[at + 5..].trim_ascii_start())?;
    let rest = rest.trim_ascii_start();
    (rest.is_empty() || rest.starts_with(b"EVENTS") || rest.starts_with(b"events")).then_some(n)
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
    fn numbers_beyond_the_range_are_no_event() {
        assert!(parse(b"a-99999999999 [0] 1.0: x: y").is_none());
        assert!(parse(b"a-1 [0] 99999999999999999999.0: x: y").is_none());
        assert!(parse(b"a-1 [99999999999] 1.0: x: y").is_none());
    }
}

//! What recorders say about events that are not there.

use super::line::{digits_at_end, number};

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// So many events.
    Events(u64),
    /// Of this CPU the recorder does not know how many.
    On(u32),
    /// So many pieces of perf's buffers, each with many events.
    Chunks(u64),
}

/// Of a line: `CPU:1 [LOST 12 EVENTS]` and, without the number, `CPU:1 [LOST EVENTS]` (ftrace),
/// `PERF_RECORD_LOST lost 12` and `Processed 80218 events and lost 3 chunks!` (perf), `CPU:1 [12
/// EVENTS DROPPED]` and `CPU:1 [EVENTS DROPPED]` (trace-cmd). What perf says around the number of
/// chunks is no loss of its own.
pub fn of(text: &[u8]) -> Option<Loss> {
    if text == b"Warning:" || text.starts_with(b"Check IO/CPU overload") {
        return Some(Loss::Events(0));
    }
    if let Some(words) = text.strip_prefix(b"Processed ") {
        let at = memchr::memmem::find(words, b" and lost ")?;
        let (chunks, rest) = number(&words[at + 10..])?;
        return rest.starts_with(b" chunk").then_some(Loss::Chunks(chunks));
    }
    if let Some((cpu, rest)) = text.strip_prefix(b"CPU:").and_then(number)
        && matches!(rest, b" [LOST EVENTS]" | b" [EVENTS DROPPED]")
    {
        return u32::try_from(cpu).ok().map(Loss::On);
    }
    if let Some(before) = text.strip_suffix(b"EVENTS DROPPED]") {
        let before = before.trim_ascii_end();
        let digits = &before[before.len() - digits_at_end(before)..];
        return number(digits).map(|(n, _)| Loss::Events(n));
    }
    let counted = |at: usize| {
        let (n, rest) = number(text[at + 5..].trim_ascii_start())?;
        let rest = rest.trim_ascii_start();
        let ends = rest.is_empty() || rest.starts_with(b"EVENTS") || rest.starts_with(b"events");
        ends.then_some(Loss::Events(n))
    };
    let words = memchr::memmem::find_iter(text, b"LOST ");
    let words = words.chain(memchr::memmem::find_iter(text, b"lost "));
    words.into_iter().find_map(counted)
}

/// The CPU of `##### CPU 0 buffer started ####`: ftrace writes it before the first event of a CPU
/// whose buffer begins later than another one, if events were overwritten.
pub fn started(text: &[u8]) -> Option<u32> {
    let words = text.strip_prefix(b"##### CPU ")?;
    let (cpu, rest) = number(words)?;
    let starts = rest.starts_with(b" buffer started");
    u32::try_from(cpu).ok().filter(|_| starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_known_by_the_words_of_each_recorder() {
        for (text, loss) in [
            ("CPU:1 [LOST 12 EVENTS]", Some(Loss::Events(12))),
            ("CPU:1 [LOST EVENTS]", Some(Loss::On(1))),
            ("CPU:1 [12 EVENTS DROPPED]", Some(Loss::Events(12))),
            ("CPU:3 [EVENTS DROPPED]", Some(Loss::On(3))),
            (
                "x 7 [0] 1.6: PERF_RECORD_LOST lost 3",
                Some(Loss::Events(3)),
            ),
            (
                "Processed 80218 events and lost 3 chunks!",
                Some(Loss::Chunks(3)),
            ),
            ("Processed 80218 events", None),
            ("CPU:99999999999 [LOST EVENTS]", None),
            ("lost in thought", None),
        ] {
            assert_eq!(of(text.as_bytes()), loss, "{text}");
        }
        assert_eq!(started(b"##### CPU 12 buffer started ####"), Some(12));
        assert_eq!(started(b"##### CPU 12 buffer ended ####"), None);
    }
}

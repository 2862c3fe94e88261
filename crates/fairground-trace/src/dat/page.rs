//! Pages of ftrace's ring buffer: a time, a length, then records with time differences.
//!
//! A record begins with a word of 5 bits type or length and 27 bits time. 1 to 28 is the length
//! in words; 0 says that the length is in the next word; 29 is padding, 30 a longer time
//! difference, 31 a whole time. (`header_event` of each file says the same.)

use crate::bytes::{u32_of, u64_of};
use crate::raw::decode::Decoder;
use crate::raw::headers::PageHeader;
use crate::recording::Recording;

/// Bits of the commit word beside the length: events are missing before this page, and their
/// number stands behind its data.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 27) - 1;
/// A whole time has 59 bits; the others are those of the time before.
const ABSOLUTE_BITS: u32 = 59;

/// Pages of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    pub header: PageHeader,
    pub size: usize,
    pub big: bool,
    pub cpu: u32,
}

impl Pages {
    /// Reads all pages; false if no more events can be kept.
    pub fn read(&self, data: &[u8], decoder: &Decoder, recording: &mut Recording) -> bool {
        data.chunks(self.size)
            .all(|page| self.page(page, decoder, recording))
    }

    fn page(&self, page: &[u8], decoder: &Decoder, recording: &mut Recording) -> bool {
        let PageHeader { commit, data } = self.header;
        let head = page.get(..data).filter(|_| data >= 8);
        let word = head.and_then(|head| head.get(commit.offset..commit.offset + commit.size));
        let Some(word) = word else {
            let n = page.len();
            recording.left_out.bad(|| format!("a page of {n} bytes"));
            return true;
        };
        let word = match commit.size {
            8 => u64_of(word, self.big),
            _ => u32_of(word, self.big).into(),
        };
        let rest = &page[data..];
        let length = (word & LENGTH) as usize;
        if word & MISSED != 0 {
            let count = rest.get(length..length + 8).map(|n| u64_of(n, self.big));
            let count = count.filter(|_| word & MISSED_STORED != 0);
            recording.missed(self.cpu, count.unwrap_or(1));
        }
        recording.begun.insert(self.cpu);
        let Some(records) = rest.get(..length) else {
            let n = rest.len();
            let what = || format!("a page of {n} bytes that says it has {length}");
            recording.left_out.bad(what);
            return true;
        };
        self.records(records, u64_of(page, self.big), decoder, recording)
    }

    fn records(&self, data: &[u8], from: u64, decoder: &Decoder, r: &mut Recording) -> bool {
        let (mut at, mut time) = (0, from);
        let word = |at: usize| data.get(at..at + 4).map(|w| u32_of(w, self.big));
        while let Some(first) = word(at) {
            let (kind, delta) = if self.big {
                (first >> 27, u64::from(first & 0x07ff_ffff))
            } else {
                (first & 31, u64::from(first >> 5))
            };
            let next = word(at + 4);
            let (begin, length) = match (kind, next) {
                (29, _) if delta == 0 => return true,
                (29, Some(n)) => {
                    at += 4 + (n as usize).max(4);
                    continue;
                }
                (30, Some(high)) => {
                    time = time.wrapping_add(delta + (u64::from(high) << 27));
                    at += 8;
                    continue;
                }
                (31, Some(high)) => {
                    let whole = delta + (u64::from(high) << 27);
                    time = whole | (time >> ABSOLUTE_BITS << ABSOLUTE_BITS);
                    at += 8;
                    continue;
                }
                (0, Some(n)) if n >= 4 => (at + 8, n as usize - 4),
                (1..=28, _) => (at + 4, kind as usize * 4),
                _ => {
                    r.left_out.bad(|| format!("a record of type {kind}"));
                    return true;
                }
            };
            time = time.wrapping_add(delta);
            let Some(record) = data.get(begin..begin + length) else {
                r.left_out.bad(|| "a record beyond its page".into());
                return true;
            };
            if !decoder.record(record, self.cpu, time, r) {
                return false;
            }
            at = begin + length.next_multiple_of(4);
        }
        true
    }
}

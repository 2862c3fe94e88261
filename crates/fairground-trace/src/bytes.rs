//! Reading numbers and names out of a file of either byte order, never beyond its end.

use crate::error::TraceError;

/// A place in a file.
#[derive(Clone, Debug)]
pub struct Bytes<'a> {
    data: &'a [u8],
    /// Where it stands.
    pub at: usize,
    /// Byte order.
    pub big: bool,
    format: &'static str,
}

impl<'a> Bytes<'a> {
    /// At the beginning of `data`.
    pub fn new(data: &'a [u8], format: &'static str) -> Self {
        Self {
            data,
            at: 0,
            big: false,
            format,
        }
    }

    /// The same file from `at` on.
    pub fn seek(&self, at: u64) -> Result<Self, TraceError> {
        let mut there = self.clone();
        there.at = usize::try_from(at)
            .ok()
            .filter(|at| *at <= self.data.len())
            .ok_or_else(|| self.damaged(format!("a place inside the file, not byte {at}")))?;
        Ok(there)
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: u64) -> Result<&'a [u8], TraceError> {
        let rest = &self.data[self.at..];
        let part = usize::try_from(n).ok().and_then(|n| rest.get(..n));
        let part = part.ok_or_else(|| {
            self.damaged(format!("{n} bytes, but the file has {} more", rest.len()))
        })?;
        self.at += part.len();
        Ok(part)
    }

    pub fn u8(&mut self) -> Result<u8, TraceError> {
        Ok(self.take(1)?[0])
    }

    pub fn u16(&mut self) -> Result<u16, TraceError> {
        Ok(u16_of(self.take(2)?, self.big))
    }

    pub fn u32(&mut self) -> Result<u32, TraceError> {
        Ok(u32_of(self.take(4)?, self.big))
    }

    pub fn u64(&mut self) -> Result<u64, TraceError> {
        Ok(u64_of(self.take(8)?, self.big))
    }

    /// Up to a zero, which is skipped.
    pub fn text(&mut self) -> Result<&'a [u8], TraceError> {
        let rest = &self.data[self.at..];
        let end = memchr::memchr(0, rest)
            .ok_or_else(|| self.damaged("a text that ends with a zero".into()))?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    /// These bytes, and nothing else.
    pub fn expect(&mut self, words: &[u8]) -> Result<(), TraceError> {
        let before = self.clone();
        if self.take(words.len() as u64)? == words {
            return Ok(());
        }
        Err(before.damaged(format!("`{}`", words.escape_ascii())))
    }

    /// How much is left.
    pub fn left(&self) -> usize {
        self.data.len() - self.at
    }

    /// An error at this place.
    pub fn damaged(&self, what: String) -> TraceError {
        TraceError::Damaged {
            format: self.format,
            at: self.at as u64,
            what: format!("expected {what}"),
        }
    }
}

/// The first two bytes of `b`, which has as many.
pub fn u16_of(b: &[u8], big: bool) -> u16 {
    let b = [b[0], b[1]];
    if big {
        u16::from_be_bytes(b)
    } else {
        u16::from_le_bytes(b)
    }
}

/// The first four.
pub fn u32_of(b: &[u8], big: bool) -> u32 {
    let b = [b[0], b[1], b[2], b[3]];
    if big {
        u32::from_be_bytes(b)
    } else {
        u32::from_le_bytes(b)
    }
}

/// The first eight.
pub fn u64_of(b: &[u8], big: bool) -> u64 {
    let b = [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]];
    if big {
        u64::from_be_bytes(b)
    } else {
        u64::from_le_bytes(b)
    }
}

//! A perf.data that was written to a pipe (`perf record -o -`): what stands in a header and in
//! sections of a file are records there, in the order in which perf knew them. It is put in the
//! order of a file, so that there is one reader. A file of this kind that is cut short, or whose
//! recording was not ended, has all that is needed to read it.

use super::magic::MAGICS;
use crate::bytes::{Bytes, u16_of, u32_of};
use crate::error::TraceError;

/// Size of the header that says that it is one.
pub const HEADER: u64 = 16;

/// Record types of perf itself, as it numbers them.
const ATTR: u32 = 64;
const FIRST_OF_PERF: u32 = 64;
const TRACING_DATA: u32 = 66;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const HEADER_FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;
/// Bits of the features that the reader needs.
const FEATURE_TRACING_DATA: u32 = 1;
const FEATURE_OSRELEASE: u32 = 4;
const FEATURE_NRCPUS: u32 = 7;
const FEATURE_EVENT_DESC: u32 = 12;

/// Bytes of a record's head: type, flags, size.
const HEAD: usize = 8;
/// Bytes of a file's header: magic, two sizes, three sections, 256 bits of features.
const FILE_HEADER: usize = 8 + 2 * 8 + 3 * 16 + 4 * 8;

/// What was found in the records.
#[derive(Default)]
struct Found<'a> {
    /// Each event: its attributes and its ids.
    attrs: Vec<(&'a [u8], &'a [u8])>,
    tracing: Option<&'a [u8]>,
    /// The kernel's release, with its length in front.
    release: Option<&'a [u8]>,
    /// How many CPUs there could be, and how many are online.
    cpus: Option<&'a [u8]>,
    /// Whole records that a file has too.
    kept: Vec<&'a [u8]>,
}

/// The same as a file, and how many bytes at its end are no whole record.
///
/// # Errors
/// When it ends before any event is described.
pub fn as_file(data: &[u8], format: &'static str) -> Result<(Vec<u8>, usize), TraceError> {
    let mut bytes = Bytes::new(data, format);
    bytes.big = data.starts_with(MAGICS[1]);
    let mut at = bytes.seek(HEADER)?;
    let mut found = Found::default();
    let mut whole = at.at;
    while let Some(()) = record(&mut at, data, &mut found) {
        whole = at.at;
    }
    if found.attrs.is_empty() {
        return Err(at.damaged("a description of its events".into()));
    }
    Ok((found.file(data, bytes.big), data.len() - whole))
}

/// Takes in a record; `None` where the last whole one has ended.
fn record<'a>(at: &mut Bytes<'a>, data: &'a [u8], found: &mut Found<'a>) -> Option<()> {
    let begin = at.at;
    let head = at.take(HEAD as u64).ok()?;
    let (kind, size) = (u32_of(head, at.big), u16_of(&head[6..], at.big));
    let body = at.take(u64::from(size).checked_sub(HEAD as u64)?).ok()?;
    match kind {
        ATTR => {
            // The size of the attributes is their second word; ids are behind them.
            let n = body.get(4..8).map(|n| u32_of(n, at.big) as usize)?;
            found.attrs.push(body.split_at_checked(n)?);
        }
        TRACING_DATA => {
            let n = body.get(..4).map(|n| u32_of(n, at.big))?;
            found.tracing = Some(at.take(n.into()).ok()?);
        }
        HEADER_FEATURE => {
            let feature = body.get(..8).map(|n| crate::bytes::u64_of(n, at.big))?;
            match u32::try_from(feature).unwrap_or(0) {
                FEATURE_OSRELEASE => found.release = Some(&body[8..]),
                FEATURE_NRCPUS => found.cpus = Some(&body[8..]),
                _ => {}
            }
        }
        AUXTRACE => {
            let n = body.get(..8).map(|n| crate::bytes::u64_of(n, at.big))?;
            at.take(n).ok()?;
        }
        FINISHED_ROUND | COMPRESSED | COMPRESSED2 => found.kept.push(&data[begin..at.at]),
        _ if kind >= FIRST_OF_PERF => {}
        _ => found.kept.push(&data[begin..at.at]),
    }
    Some(())
}

/// A file that grows.
struct File {
    bytes: Vec<u8>,
    big: bool,
}

impl File {
    fn u32(&mut self, n: u32) {
        let n = if self.big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        };
        self.bytes.extend(n);
    }

    fn u64(&mut self, n: u64) {
        let n = if self.big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        };
        self.bytes.extend(n);
    }

    fn section(&mut self, (at, size): (usize, usize)) {
        self.u64(at as u64);
        self.u64(size as u64);
    }
}

impl Found<'_> {
    fn file(&self, data: &[u8], big: bool) -> Vec<u8> {
        let records: usize = self.kept.iter().map(|r| r.len()).sum();
        let attr = self
            .attrs
            .iter()
            .map(|(attr, _)| attr.len())
            .max()
            .unwrap_or(0);
        let described = self.described(attr, big);
        // In the order of their bits.
        let given = [
            (FEATURE_TRACING_DATA, self.tracing),
            (FEATURE_OSRELEASE, self.release),
            (FEATURE_NRCPUS, self.cpus),
            (FEATURE_EVENT_DESC, Some(&described[..])),
        ];
        let given: Vec<(u32, &[u8])> = given
            .into_iter()
            .filter_map(|(bit, data)| Some((bit, data?)))
            .collect();
        // Header, attributes, records, table of features, features.
        let attrs = (FILE_HEADER, (attr + 16) * self.attrs.len());
        let records = (attrs.0 + attrs.1, records);
        let mut at = records.0 + records.1 + 16 * given.len();
        let long: usize = given.iter().map(|(_, data)| data.len()).sum();
        let mut file = File {
            bytes: Vec::with_capacity(at + long),
            big,
        };
        file.bytes.extend_from_slice(&data[..8]);
        file.u64(FILE_HEADER as u64);
        file.u64(attr as u64 + 16);
        file.section(attrs);
        file.section(records);
        file.section((0, 0));
        file.u64(given.iter().fold(0, |bits, (bit, _)| bits | 1 << bit));
        for _ in 1..4 {
            file.u64(0);
        }
        for (words, _) in &self.attrs {
            file.bytes.extend_from_slice(words);
            file.bytes.resize(file.bytes.len() + attr - words.len(), 0);
            file.section((0, 0));
        }
        for record in &self.kept {
            file.bytes.extend_from_slice(record);
        }
        for (_, data) in &given {
            file.section((at, data.len()));
            at += data.len();
        }
        for (_, data) in &given {
            file.bytes.extend_from_slice(data);
        }
        file.bytes
    }

    /// The section that describes the events: how many, and of each attributes, ids and name.
    fn described(&self, attr: usize, big: bool) -> Vec<u8> {
        let mut file = File {
            bytes: Vec::new(),
            big,
        };
        file.u32(self.attrs.len() as u32);
        file.u32(attr as u32);
        for (words, ids) in &self.attrs {
            file.bytes.extend_from_slice(words);
            file.bytes.resize(file.bytes.len() + attr - words.len(), 0);
            file.u32((ids.len() / 8) as u32);
            // No name is needed; one byte of it is its end.
            file.u32(4);
            file.u32(0);
            file.bytes.extend_from_slice(&ids[..ids.len() / 8 * 8]);
        }
        file.bytes
    }
}

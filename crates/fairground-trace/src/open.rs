//! Which kind of file it is: by its first bytes, never by its name.

use std::io::{BufReader, Read};
use std::path::Path;

use crate::error::TraceError;
use crate::event::Kind;
use crate::recording::Recording;
use crate::unzstd::ZstdReader;
use crate::{begins, dat, lives, perf, text};

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// What is looked at to find out.
const HEAD: usize = 64 << 10;
/// Most bytes that a compressed binary file may become: these are held in memory as a whole.
const PLAIN_MAX: u64 = 2 << 30;
/// Most memory for the dictionary of a compressed file, KiB.
const DICTIONARY_KIB: u32 = 128 << 10;

/// Reads a trace. `progress` is told how many bytes were read, now and then.
///
/// # Errors
/// When it is no trace, has no `sched_switch`, or is damaged before its first event.
pub fn open(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Recording, TraceError> {
    if path.is_dir() {
        return Err(directory(path));
    }
    read(std::fs::File::open(path)?, progress)
}

/// Reads a trace from any source.
///
/// # Errors
/// As [`open`].
pub fn read(source: impl Read, progress: &mut dyn FnMut(u64)) -> Result<Recording, TraceError> {
    let mut source = Source::new(source)?;
    let mut recording = if source.head.starts_with(GZIP) {
        let plain = flate2::read::MultiGzDecoder::new(source);
        by_kind(&mut unpacked("gzip", plain)?, progress)
    } else if source.head.starts_with(XZ) {
        let plain = lzma_rust2::XzReader::new_mem_limit(source, true, DICTIONARY_KIB);
        by_kind(&mut unpacked("xz", plain)?, progress)
    } else if source.head.starts_with(ZSTD) {
        by_kind(&mut unpacked("zstd", ZstdReader::new(source))?, progress)
    } else {
        by_kind(&mut source, progress)
    }?;
    let mut switches = recording.events.iter();
    if switches.any(|e| matches!(e.kind, Kind::Switch { .. })) {
        recording.leave_out_wrong_cpus();
        begins::begin(&mut recording);
        recording.count_from_waking();
        recording.note_processes();
        recording.find_missing();
        lives::apart(&mut recording);
        recording.cut_gaps();
        return Ok(recording);
    }
    Err(TraceError::NoSwitches {
        format: recording.format,
        also: match recording.left_out.text().trim_end() {
            "" => String::new(),
            text => format!("\n{text}"),
        },
    })
}

/// What to say of a directory: perf writes one where each of its threads has a file of its own.
fn directory(path: &Path) -> TraceError {
    let is_perfs = path.join("data").exists() || path.join("data.0").exists();
    let (what, help) = match is_perfs {
        true => (
            "a directory, as `perf record --threads` writes it,",
            "record without --threads, or write text with `perf script -i DIRECTORY`",
        ),
        false => (
            "a directory",
            "expected a file: perf.data, trace.dat, or text of `perf script` or ftrace",
        ),
    };
    let what = what.into();
    TraceError::Unsupported { what, help }
}

/// A compressed source, of which at least the first byte can be had.
fn unpacked<R: Read>(by: &'static str, plain: R) -> Result<Source<Unpacked<R>>, TraceError> {
    let unpacked = Unpacked { by, plain };
    Source::new(unpacked).map_err(|e| TraceError::Packed(e.to_string()))
}

/// A compressed source whose errors say what is damaged: its readers say how they noticed.
struct Unpacked<R> {
    by: &'static str,
    plain: R,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.plain.read(buffer).map_err(|e| {
            let by = self.by;
            let text = match e.kind() {
                std::io::ErrorKind::Interrupted => return e,
                std::io::ErrorKind::UnexpectedEof => {
                    format!("what {by} has packed ends early: it was not copied as a whole")
                }
                _ => format!("what {by} has packed: {e}"),
            };
            std::io::Error::new(e.kind(), text)
        })
    }
}

fn by_kind<R: Read>(
    source: &mut Source<R>,
    progress: &mut dyn FnMut(u64),
) -> Result<Recording, TraceError> {
    let head = &source.head[..];
    let perf = perf::MAGICS.iter().any(|m| head.starts_with(m));
    if perf || head.starts_with(dat::MAGIC) {
        let mut data = Vec::new();
        // What could be unpacked before a compressed file breaks off is used.
        let cut = source.take(PLAIN_MAX + 1).read_to_end(&mut data).err();
        if data.len() as u64 > PLAIN_MAX {
            return Err(TraceError::Unsupported {
                what: format!("a binary trace of more than {PLAIN_MAX} bytes"),
                help: "record for a shorter time",
            });
        }
        let read = if perf {
            perf::read(data, progress)
        } else {
            dat::read(&data, progress)
        };
        // The reader sees the end of what was unpacked, not why it ends there.
        let mut recording = match (read, &cut) {
            (Err(error), Some(cut)) => return Err(TraceError::Packed(format!("{cut}; {error}"))),
            (read, _) => read?,
        };
        if let Some(cut) = cut {
            recording.left_out.cut = Some(cut.to_string());
        }
        return Ok(recording);
    }
    if text::looks_like(head) {
        return text::read(BufReader::with_capacity(1 << 20, source), progress);
    }
    if let Some((what, help)) = text::refused(head) {
        let what = what.to_string();
        return Err(TraceError::Unsupported { what, help });
    }
    let hint = if head.is_empty() {
        "; it is empty".to_string()
    } else {
        let first = &head[..head.len().min(12)];
        format!("; it begins with `{}`", first.escape_ascii())
    };
    Err(TraceError::Unknown { hint })
}

/// A source whose beginning can be looked at.
struct Source<R> {
    head: Vec<u8>,
    at: usize,
    /// Why there is nothing behind the beginning.
    broken: Option<std::io::Error>,
    rest: R,
}

impl<R: Read> Source<R> {
    fn new(mut rest: R) -> std::io::Result<Self> {
        let mut head = Vec::new();
        let read = rest.by_ref().take(HEAD as u64).read_to_end(&mut head);
        let broken = match read {
            Err(error) if head.is_empty() => return Err(error),
            other => other.err(),
        };
        let at = 0;
        Ok(Self {
            head,
            at,
            broken,
            rest,
        })
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut left = &self.head[self.at..];
        if left.is_empty() {
            return match self.broken.take() {
                Some(error) => Err(error),
                None => self.rest.read(buffer),
            };
        }
        let n = left.read(buffer)?;
        self.at += n;
        Ok(n)
    }
}

//! `trace.dat` of trace-cmd, versions 6 and 7.
//!
//! | file | subject |
//! | --- | --- |
//! | `sections` | version 7: sections, options, compression |
//! | `page` | pages of the ring buffer |
//!
//! Layout: man pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

mod page;
mod sections;

use crate::bytes::Bytes;
use crate::error::TraceError;
use crate::raw::decode::Decoder;
use crate::raw::headers::{self, Headers};
use crate::recording::{CPU_MAX, Recording};
use page::Pages;

const FORMAT: &str = "trace.dat";

/// How a file begins.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Where one CPU's pages are in a file.
#[derive(Clone, Copy, Debug)]
struct CpuData {
    cpu: u32,
    offset: u64,
    size: u64,
}

/// Reads a file.
///
/// # Errors
/// When it is damaged before the first event. Later damage is told in the recording.
pub fn read(data: &[u8], progress: &mut dyn FnMut(u64)) -> Result<Recording, TraceError> {
    let mut bytes = Bytes::new(data, FORMAT);
    let (version, page_size) = headers::beginning(&mut bytes)?;
    let mut recording = Recording::new(FORMAT);
    match version.as_str() {
        "6" => v6(&mut bytes, page_size, &mut recording, progress)?,
        "7" => sections::read(&mut bytes, &mut recording, progress)?,
        other => {
            return Err(TraceError::Unsupported {
                what: format!("version {other} of trace.dat"),
                help: "`trace-cmd convert --file-version 7` makes one that is",
            });
        }
    }
    recording.sort_recorded()?;
    Ok(recording)
}

fn v6(
    bytes: &mut Bytes<'_>,
    page_size: u32,
    recording: &mut Recording,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let headers = headers::all(bytes, true)?;
    let cpus = bytes.u32()?;
    if cpus > CPU_MAX {
        return Err(bytes.damaged(format!("a number of CPUs, not {cpus}")));
    }
    let mut kind = bytes.take(10)?;
    if kind == b"options  \0" {
        while let id @ 1.. = bytes.u16()? {
            let size = bytes.u32()?;
            let text = bytes.take(size.into())?;
            option(id, text, recording)?;
        }
        kind = bytes.take(10)?;
    }
    match kind {
        b"flyrecord\0" => {}
        b"latency  \0" => {
            let text = bytes.take(bytes.left() as u64)?;
            *recording = crate::text::read(text, progress)?;
            recording.format = FORMAT;
            return Ok(());
        }
        _ => return Err(bytes.damaged("`flyrecord` or `latency`".into())),
    }
    let mut places = Vec::new();
    for cpu in 0..cpus {
        let (offset, size) = (bytes.u64()?, bytes.u64()?);
        places.push(CpuData { cpu, offset, size });
    }
    recording.cpus = cpus;
    let decoder = begin(&headers, bytes.big, recording);
    let mut budget = bytes.left() as u64;
    for place in places {
        let data = available(bytes, place, &mut budget, recording);
        let pages = Pages {
            header: headers.page,
            size: page_size as usize,
            big: bytes.big,
            cpu: place.cpu,
        };
        if !pages.read(data, &decoder, recording) {
            break;
        }
        progress(place.offset.saturating_add(place.size));
    }
    Ok(())
}

/// What of a CPU's data is in the file. `budget` is what all CPUs together can have: a file that
/// names the same bytes again and again is damaged.
fn available<'a>(
    bytes: &Bytes<'a>,
    place: CpuData,
    budget: &mut u64,
    recording: &mut Recording,
) -> &'a [u8] {
    let mut there = match bytes.seek(place.offset) {
        Ok(there) => there,
        Err(error) => {
            recording.left_out.cut = Some(error.to_string());
            return &[];
        }
    };
    let left = (there.left() as u64).min(*budget);
    *budget -= place.size.min(left);
    if place.size > left {
        let lacks = place.size - left;
        recording.left_out.cut = Some(format!("CPU {} lacks {lacks} bytes", place.cpu));
    }
    there.take(place.size.min(left)).unwrap_or(&[])
}

/// Acts on an option: the clock matters, the kernel, and what the recorder lost.
fn option(id: u16, text: &[u8], recording: &mut Recording) -> Result<(), TraceError> {
    const CPUSTAT: u16 = 2;
    const TRACECLOCK: u16 = 4;
    const UNAME: u16 = 5;
    let text = String::from_utf8_lossy(text);
    match id {
        TRACECLOCK => return clock(text.split(['[', ']']).nth(1).unwrap_or("")),
        // `Linux HOST RELEASE MACHINE`.
        UNAME => {
            let release = text.split_ascii_whitespace().nth(2).unwrap_or("");
            recording.states_kernel(release.as_bytes());
        }
        CPUSTAT => {
            let mut cpu = 0;
            let number = |line: &str, key| {
                let n = line.trim().strip_prefix(key)?;
                n.trim().parse::<u64>().ok()
            };
            for line in text.lines() {
                if let Some(n) = number(line, "CPU:") {
                    cpu = n;
                }
                if let Some(lost) = number(line, "overrun:") {
                    recording.overrun(u32::try_from(cpu).unwrap_or(u32::MAX), lost);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Clocks that do not count nanoseconds give times of no use.
fn clock(name: &str) -> Result<(), TraceError> {
    if matches!(name, "counter" | "x86-tsc" | "uptime" | "ppc-tb") {
        return Err(TraceError::Unsupported {
            what: format!("a trace.dat with the clock `{name}`, which does not count nanoseconds,"),
            help: "record with another: `trace-cmd record -C mono`",
        });
    }
    Ok(())
}

fn begin(headers: &Headers, big: bool, recording: &mut Recording) -> Decoder {
    recording.names = headers.names.clone();
    Decoder::new(headers, big, recording)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_tell_the_clock_and_what_was_lost() {
        let mut r = Recording::new(FORMAT);
        let mut take = |id, text: &str| option(id, text.as_bytes(), &mut r);
        assert!(take(4, "[local] global counter uptime\n").is_ok());
        let error = take(4, "local global [counter] uptime\n").unwrap_err();
        assert!(error.to_string().contains("the clock `counter`"), "{error}");
        assert!(take(5, "Linux host 5.10.44-1-generic x86_64").is_ok());
        for cpu in 0..2 {
            let text = format!("CPU: {cpu}\nentries: 9\noverrun: 1{cpu}\ncommit overrun: 7\n");
            assert!(take(2, &text).is_ok());
        }
        // Pages lack some of these.
        r.missed(0, 4);
        r.missed(1, 12);
        assert_eq!(r.left_out.lost, 10 + 12);
        assert_eq!(r.kernel.as_deref(), Some("5.10.44-1-generic"));
    }
}

//! The block of format files: the head of a trace.dat, and the `TRACING_DATA` of a perf.data.
//!
//! Layout: man pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use super::format::{Field, Format, parse_field};
use super::ours::is_ours;
use crate::bytes::Bytes;
use crate::error::TraceError;
use crate::event::Names;

/// What the records of a file need to be read.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// Formats of the scheduler's events.
    pub formats: Vec<Format>,
    /// Names of other events, by number.
    pub others: Vec<(u32, String)>,
    /// How a page begins.
    pub page: PageHeader,
    /// Names of threads.
    pub names: Names,
}

/// Where the parts of a ring-buffer page are.
#[derive(Clone, Copy, Debug)]
pub struct PageHeader {
    /// Length of the data.
    pub commit: Field,
    /// Begin of the data.
    pub data: usize,
}

impl Default for PageHeader {
    fn default() -> Self {
        let commit = Field {
            offset: 8,
            size: 8,
            located: false,
        };
        Self { commit, data: 16 }
    }
}

/// `header_page`, its text, `header_event`, its text.
pub fn header_info(bytes: &mut Bytes<'_>, headers: &mut Headers) -> Result<(), TraceError> {
    bytes.expect(b"header_page\0")?;
    let size = bytes.u64()?;
    let text = String::from_utf8_lossy(bytes.take(size)?).into_owned();
    let fields = text.lines().filter_map(|l| l.trim().strip_prefix("field:"));
    for (name, field) in fields.filter_map(parse_field) {
        match name.as_str() {
            "commit" if matches!(field.size, 4 | 8) => headers.page.commit = field,
            "data" => headers.page.data = field.offset,
            _ => {}
        }
    }
    bytes.expect(b"header_event\0")?;
    let size = bytes.u64()?;
    bytes.take(size).map(drop)
}

/// Formats of ftrace's own events: not needed.
pub fn ftrace_formats(bytes: &mut Bytes<'_>) -> Result<(), TraceError> {
    for _ in 0..bytes.u32()? {
        let size = bytes.u64()?;
        bytes.take(size)?;
    }
    Ok(())
}

/// Formats of all other events, by system.
pub fn event_formats(bytes: &mut Bytes<'_>, headers: &mut Headers) -> Result<(), TraceError> {
    for _ in 0..bytes.u32()? {
        let system = bytes.text()?;
        for _ in 0..bytes.u32()? {
            let size = bytes.u64()?;
            let text = String::from_utf8_lossy(bytes.take(size)?);
            let Some(format) = Format::parse(&text) else {
                continue;
            };
            if system == b"sched" && is_ours(&format.name) {
                headers.formats.push(format);
            } else {
                headers.others.push((format.id, format.name));
            }
        }
    }
    Ok(())
}

/// `tid name` lines.
pub fn command_lines(text: &[u8], names: &mut Names) {
    for line in text.split(|b| *b == b'\n') {
        let line = line.trim_ascii();
        let Some(blank) = line.iter().position(|b| *b == b' ') else {
            continue;
        };
        let tid = std::str::from_utf8(&line[..blank]).ok();
        if let Some(tid) = tid.and_then(|t| t.parse().ok()) {
            names.see(tid, &line[blank + 1..]);
        }
    }
}

/// All of it in one piece, from behind the page size: trace.dat v6, and perf.data.
pub fn all(bytes: &mut Bytes<'_>, command_lines_too: bool) -> Result<Headers, TraceError> {
    let mut headers = Headers::default();
    header_info(bytes, &mut headers)?;
    ftrace_formats(bytes)?;
    event_formats(bytes, &mut headers)?;
    for _symbols_then_printk in 0..2 {
        let size = bytes.u32()?;
        bytes.take(size.into())?;
    }
    if command_lines_too {
        let size = bytes.u64()?;
        let text = bytes.take(size)?;
        command_lines(text, &mut headers.names);
    }
    Ok(headers)
}

/// Magic, version, byte order, size of a long; gives version and page size.
pub fn beginning(bytes: &mut Bytes<'_>) -> Result<(String, u32), TraceError> {
    bytes.expect(b"\x17\x08\x44tracing")?;
    let version = String::from_utf8_lossy(bytes.text()?).into_owned();
    bytes.big = match bytes.u8()? {
        0 => false,
        1 => true,
        _ => return Err(bytes.damaged("0 or 1 for the byte order".into())),
    };
    let _long = bytes.u8()?;
    let page = bytes.u32()?;
    if !(512..=1 << 20).contains(&page) {
        return Err(bytes.damaged(format!("a page size, not {page}")));
    }
    Ok((version, page))
}

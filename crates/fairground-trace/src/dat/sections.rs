//! Version 7: options say where sections are, and sections may be compressed.

use super::page::Pages;
use super::{CpuData, available, begin, clock, option};
use crate::bytes::Bytes;
use crate::error::TraceError;
use crate::raw::decode::Decoder;
use crate::raw::headers::{self, Headers};
use crate::recording::{CPU_MAX, Recording};

/// Most bytes that a section of formats or names becomes, and that a chunk of pages becomes.
const PLAIN_MAX: u32 = 256 << 20;
/// So many times smaller can compression make pages of events.
const RATIO_MAX: u64 = 256;
/// Most sections of options; a chain of more is a circle.
const OPTIONS_MAX: usize = 4096;

const DONE: u16 = 0;
const BUFFER: u16 = 3;
const HEADER_INFO: u16 = 16;
const EVENT_FORMATS: u16 = 18;
const CMDLINES: u16 = 21;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Zlib,
    Zstd,
}

/// A buffer of events: one instance of ftrace.
struct Buffer {
    offset: u64,
    name: String,
    page_size: u32,
    cpus: Vec<CpuData>,
}

/// Reads what follows the page size of the machine; each buffer has its own.
pub fn read(
    bytes: &mut Bytes<'_>,
    recording: &mut Recording,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let name = String::from_utf8_lossy(bytes.text()?).into_owned();
    let _version = bytes.text()?;
    let compression = match name.as_str() {
        "none" => Compression::None,
        "zlib" => Compression::Zlib,
        "zstd" => Compression::Zstd,
        other => {
            return Err(TraceError::Unsupported {
                what: format!("trace.dat compressed by `{other}`"),
                help: "`trace-cmd convert --compression none` makes one that is read",
            });
        }
    };
    let mut headers = Headers::default();
    let mut buffers = Vec::new();
    let mut next = bytes.u64()?;
    for _ in 0..OPTIONS_MAX {
        if next == 0 {
            break;
        }
        let data = section(&bytes.seek(next)?, 0, compression)?;
        let mut options = Bytes::new(&data, super::FORMAT);
        options.big = bytes.big;
        next = one_chain(
            bytes,
            &mut options,
            compression,
            &mut headers,
            &mut buffers,
            recording,
        )?;
    }
    let decoder = begin(&headers, bytes.big, recording);
    let mut budget = match compression {
        Compression::None => bytes.left() as u64,
        _ => bytes.left() as u64 * RATIO_MAX + u64::from(PLAIN_MAX),
    };
    for buffer in &buffers {
        if !one_buffer(
            bytes,
            buffer,
            compression,
            &headers,
            &decoder,
            &mut budget,
            recording,
        )? {
            break;
        }
        progress(buffer.offset);
    }
    Ok(())
}

/// The options of one section; where the next one is.
fn one_chain(
    file: &Bytes<'_>,
    options: &mut Bytes<'_>,
    compression: Compression,
    headers: &mut Headers,
    buffers: &mut Vec<Buffer>,
    recording: &mut Recording,
) -> Result<u64, TraceError> {
    loop {
        let id = options.u16()?;
        let size = options.u32()?;
        let data = options.take(size.into())?;
        let mut data_bytes = Bytes::new(data, super::FORMAT);
        data_bytes.big = file.big;
        let mut part = |id: u16| -> Result<Vec<u8>, TraceError> {
            section(&file.seek(data_bytes.u64()?)?, id, compression)
        };
        match id {
            DONE => return data_bytes.u64(),
            HEADER_INFO | EVENT_FORMATS | CMDLINES => {
                let plain = part(id)?;
                let mut plain = Bytes::new(&plain, super::FORMAT);
                plain.big = file.big;
                match id {
                    HEADER_INFO => headers::header_info(&mut plain, headers)?,
                    EVENT_FORMATS => headers::event_formats(&mut plain, headers)?,
                    _ => {
                        let size = plain.u64()?;
                        headers::command_lines(plain.take(size)?, &mut headers.names);
                    }
                }
            }
            BUFFER => buffers.push(buffer(&mut data_bytes)?),
            _ => option(id, data, recording)?,
        }
    }
}

fn buffer(data: &mut Bytes<'_>) -> Result<Buffer, TraceError> {
    let offset = data.u64()?;
    let name = String::from_utf8_lossy(data.text()?).into_owned();
    clock(&String::from_utf8_lossy(data.text()?))?;
    let page_size = data.u32()?;
    if !(512..=1 << 20).contains(&page_size) {
        return Err(data.damaged(format!("a page size, not {page_size}")));
    }
    let cpus = data.u32()?;
    if cpus > CPU_MAX {
        return Err(data.damaged(format!("a number of CPUs, not {cpus}")));
    }
    let mut places = Vec::new();
    for _ in 0..cpus {
        let (cpu, offset, size) = (data.u32()?, data.u64()?, data.u64()?);
        places.push(CpuData { cpu, offset, size });
    }
    Ok(Buffer {
        offset,
        name,
        page_size,
        cpus: places,
    })
}

/// Reads the pages of one buffer; false if no more events can be kept.
fn one_buffer(
    file: &Bytes<'_>,
    buffer: &Buffer,
    compression: Compression,
    headers: &Headers,
    decoder: &Decoder,
    budget: &mut u64,
    recording: &mut Recording,
) -> Result<bool, TraceError> {
    if !buffer.name.is_empty() {
        let note = format!("events of the instance `{}` are in", buffer.name);
        recording.left_out.notes.push(note);
    }
    let (_, flags, _) = section_head(&mut file.seek(buffer.offset)?)?;
    for place in &buffer.cpus {
        recording.cpus = recording.cpus.max(place.cpu.saturating_add(1).min(CPU_MAX));
        let pages = Pages {
            header: headers.page,
            size: buffer.page_size as usize,
            big: file.big,
            cpu: place.cpu,
        };
        if flags & 1 == 0 {
            if !pages.read(
                available(file, *place, budget, recording),
                decoder,
                recording,
            ) {
                return Ok(false);
            }
            continue;
        }
        if place.size == 0 {
            continue;
        }
        // trace-cmd 3.1 leaves the number of chunks out of the size, so chunks say how long it is.
        let mut chunks = match file.seek(place.offset) {
            Ok(chunks) => chunks,
            Err(error) => {
                recording.left_out.cut = Some(error.to_string());
                continue;
            }
        };
        for _ in 0..chunks.u32()? {
            let plain = match chunk(&mut chunks, compression) {
                Ok(plain) => plain,
                Err(error) => {
                    recording.left_out.cut = Some(error.to_string());
                    break;
                }
            };
            let Some(left) = budget.checked_sub(plain.len() as u64) else {
                recording.left_out.cut = Some("it names the same bytes again and again".into());
                return Ok(false);
            };
            *budget = left;
            if !pages.read(&plain, decoder, recording) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Number, flags and size of a section.
fn section_head(at: &mut Bytes<'_>) -> Result<(u16, u16, u64), TraceError> {
    let (id, flags) = (at.u16()?, at.u16()?);
    let _description = at.u32()?;
    Ok((id, flags, at.u64()?))
}

/// The plain content of the section at a place.
fn section(at: &Bytes<'_>, id: u16, compression: Compression) -> Result<Vec<u8>, TraceError> {
    let mut at = at.clone();
    let (found, flags, size) = section_head(&mut at)?;
    if found != id {
        return Err(at.damaged(format!("section {id}, not {found}")));
    }
    if flags & 1 == 0 {
        return Ok(at.take(size)?.to_vec());
    }
    chunk(&mut at, compression)
}

/// A compressed piece with its two sizes in front.
fn chunk(at: &mut Bytes<'_>, compression: Compression) -> Result<Vec<u8>, TraceError> {
    let (size, plain_size) = (at.u32()?, at.u32()?);
    if plain_size > PLAIN_MAX {
        return Err(at.damaged(format!("at most {PLAIN_MAX} bytes, not {plain_size}")));
    }
    let start = at.clone();
    let data = at.take(size.into())?;
    let damaged = |what: &str| start.damaged(format!("{plain_size} compressed bytes: {what}"));
    match compression {
        Compression::None => Err(damaged("the file says that nothing is compressed")),
        Compression::Zlib => {
            use std::io::Read;
            let mut plain = Vec::new();
            flate2::read::ZlibDecoder::new(data)
                .take(plain_size.into())
                .read_to_end(&mut plain)
                .map_err(|e| damaged(&e.to_string()))?;
            Ok(plain)
        }
        Compression::Zstd => {
            let mut plain = Vec::with_capacity(plain_size as usize);
            zstd_safe::decompress(&mut plain, data)
                .map_err(|code| damaged(zstd_safe::get_error_name(code)))?;
            Ok(plain)
        }
    }
}

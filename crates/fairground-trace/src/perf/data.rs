//! `perf.data`, by the library `linux-perf-data`. What a damaged file could make it allocate or
//! refuse as a whole is checked here first: sections beyond the end, records cut short.

use std::io::Cursor;

use linux_perf_data::linux_perf_event_reader::{
    AttrFlags, Endianness, EventRecord, PerfEventType, RawEventRecord, RecordType, SampleFormat,
    SamplingPolicy,
};
use linux_perf_data::{AttributeDescription, Feature, PerfFileReader, PerfFileRecord};

use super::magic::MAGICS;
use super::{pipe, sample};
use crate::bytes::{Bytes, u32_of, u64_of};
use crate::error::TraceError;
use crate::raw::decode::Decoder;
use crate::raw::headers::{self, Headers};
use crate::recording::{Overwritten, Recording, number_of};

const FORMAT: &str = "perf.data";

/// Record types that the check looks into.
const AUXTRACE: u32 = 71;
/// The bit of the feature that describes the events.
const EVENT_DESC: u32 = 12;
/// Bytes of the first published `perf_event_attr`.
const ATTR_SIZE_VER0: u32 = 64;
/// Where `read_format` stands in it.
const READ_FORMAT_AT: u64 = 32;
/// Bytes of a record's head: type, flags, size.
const HEAD: u64 = 8;

/// Reads a file.
///
/// # Errors
/// When it is damaged before the first record, or has no formats of tracepoints.
pub fn read(mut data: Vec<u8>, progress: &mut dyn FnMut(u64)) -> Result<Recording, TraceError> {
    let mut recording = Recording::new(FORMAT);
    let mut header = Bytes::new(&data, FORMAT).seek(8)?;
    header.big = data.starts_with(MAGICS[1]);
    if header.u64()? == pipe::HEADER {
        let (file, lacks) = pipe::as_file(&data, FORMAT)?;
        data = file;
        recording.left_out.cut = (lacks > 0).then(|| damaged_end(lacks as u64));
    }
    let counts_lost = check(&mut data, &mut recording)?;
    let total = data.len() as u64;
    let damaged = |e: linux_perf_data::Error| TraceError::Damaged {
        format: FORMAT,
        at: 0,
        what: e.to_string(),
    };
    let reader = PerfFileReader::parse_file(Cursor::new(data)).map_err(damaged)?;
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = reader;
    let Some(tracing) = perf_file.feature_section_data(Feature::TRACING_DATA) else {
        return Err(TraceError::Unsupported {
            what: "a perf.data without formats of tracepoints".into(),
            help: "record tracepoints, as `perf sched record` does",
        });
    };
    let mut bytes = Bytes::new(tracing, FORMAT);
    let headers = tracing_data(&mut bytes)?;
    let section = |feature| perf_file.feature_section_data(feature);
    about(section, bytes.big, &mut recording);
    recording.names = headers.names.clone();
    let decoder = Decoder::new(&headers, bytes.big, &mut recording);
    sampled(perf_file.event_attributes(), &decoder, &mut recording);
    recording.of_processes = is_of_command(perf_file.event_attributes());
    let mut attributes = perf_file.event_attributes().iter();
    let overwrites = attributes.any(|event| event.attr.flags.contains(AttrFlags::WRITE_BACKWARD));
    let mut count = 0_u64;
    loop {
        let record = match record_iter.next_record(&mut perf_file) {
            Ok(Some(PerfFileRecord::EventRecord { record, .. })) => record,
            Ok(Some(PerfFileRecord::UserRecord(_))) => continue,
            Ok(None) => break,
            Err(error) => {
                recording.left_out.cut = Some(error.to_string());
                break;
            }
        };
        count += 1;
        if count.is_multiple_of(1 << 14) {
            progress(total.min(count * 128));
        }
        if record.record_type == RecordType::SAMPLE {
            match take_sample(&record, counts_lost, &decoder, &mut recording) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => recording.left_out.bad(|| error.to_string()),
            }
            continue;
        }
        take(&record, &mut recording);
    }
    if overwrites {
        let cpus = 0..recording.cpus;
        recording.overwritten = cpus.map(|cpu| (cpu, Overwritten::Perhaps)).collect();
    }
    recording.sort_recorded()?;
    Ok(recording)
}

/// What the header states of the computer.
fn about<'a>(section: impl Fn(Feature) -> Option<&'a [u8]>, big: bool, recording: &mut Recording) {
    if let Some(text) = section(Feature::OSRELEASE) {
        // Its length, which its end tells as well, and then the release.
        recording.states_kernel(text.get(4..).unwrap_or(&[]));
    }
    if let Some(numbers) = section(Feature::NRCPUS) {
        // Those that could come online, then those that are: the latter take part.
        let online = numbers.get(4..8).map(|n| u32_of(n, big));
        recording.states_cpus(online.unwrap_or(0).into());
    }
}

/// Says so if the recorder did not write each of the scheduler's events.
fn sampled(events: &[AttributeDescription], decoder: &Decoder, recording: &mut Recording) {
    let some = |event: &&AttributeDescription| match event.attr.type_ {
        PerfEventType::Tracepoint(id) if decoder.reads(id) => match event.attr.sampling_policy {
            SamplingPolicy::Frequency(_) => true,
            SamplingPolicy::Period(period) => period.get() > 1,
            SamplingPolicy::NoSampling => false,
        },
        _ => false,
    };
    let of = events.iter().filter(some).count();
    if of > 0 {
        recording.left_out.notes.push(format!(
            "it is sampled: of {} of the scheduler's events only some were recorded (`perf record \
             -F`, `-c`), so switches and wake-ups are missing and little below is right; record \
             each event (`-c 1`)",
            number_of(of as u64, "kind", "kinds")
        ));
        recording.sampled = true;
    }
}

/// Whether one command was recorded: events of all CPUs begin at once, and not as it is executed.
fn is_of_command(events: &[AttributeDescription]) -> bool {
    events.iter().any(|event| {
        let tracepoint = matches!(event.attr.type_, PerfEventType::Tracepoint(_));
        tracepoint && event.attr.flags.contains(AttrFlags::ENABLE_ON_EXEC)
    })
}

/// Takes in a sample; false if no more can be kept.
fn take_sample(
    record: &RawEventRecord<'_>,
    counts_lost: bool,
    decoder: &Decoder,
    recording: &mut Recording,
) -> Result<bool, TraceError> {
    let bytes = record.data.as_slice();
    let sample = sample::sample(record, counts_lost, &bytes, FORMAT)?;
    let (Some(raw), Some(at_ns), Some(cpu)) = (sample.raw, sample.at_ns, sample.cpu) else {
        recording
            .left_out
            .other("samples without data, time or CPU");
        return Ok(true);
    };
    see_process(sample.tid, sample.pid, recording);
    group_of(record, &bytes, sample.tid, recording);
    Ok(decoder.record(raw, cpu, at_ns, recording))
}

/// Takes in a record that is no sample. Others than these are not looked into: the library takes
/// for granted that a map's build id has a length that fits, which a damaged file need not keep to.
fn take(raw: &RawEventRecord<'_>, recording: &mut Recording) {
    match raw.record_type {
        RecordType::LOST | RecordType::COMM | RecordType::FORK => {}
        RecordType::CGROUP => return group_name(raw, recording),
        _ => return,
    }
    match raw.parse() {
        Ok(EventRecord::Lost(lost)) => recording.left_out.lose(lost.count),
        Ok(EventRecord::Comm(comm)) => {
            let tid = u32::try_from(comm.tid).unwrap_or(0);
            recording.names.see(tid, &comm.name.as_slice());
            see_process(Some(comm.tid), Some(comm.pid), recording);
        }
        Ok(EventRecord::Fork(fork)) => see_process(Some(fork.tid), Some(fork.pid), recording),
        Ok(_) => {}
        Err(error) => recording.left_out.bad(|| error.to_string()),
    }
}

/// The number at a place of a record.
fn number(raw: &RawEventRecord<'_>, bytes: &[u8], at: usize) -> Option<u64> {
    let big = raw.parse_info.endian == Endianness::BigEndian;
    bytes.get(at..)?.get(..8).map(|b| u64_of(b, big))
}

/// The group of a sample: the kernel writes it behind the data, where only sizes of pages follow,
/// and lengths of other traces, which nobody records beside tracepoints.
fn group_of(raw: &RawEventRecord<'_>, bytes: &[u8], tid: Option<i32>, recording: &mut Recording) {
    let has = raw.parse_info.sample_format;
    if !has.contains(SampleFormat::CGROUP) || has.contains(SampleFormat::AUX) {
        return;
    }
    let sizes = SampleFormat::DATA_PAGE_SIZE | SampleFormat::CODE_PAGE_SIZE;
    let behind = 8 * (1 + has.intersection(sizes).bits().count_ones() as usize);
    let at = bytes.len().checked_sub(behind);
    let id = at.and_then(|at| number(raw, bytes, at));
    if let (Some(id), Some(Ok(tid))) = (id, tid.map(u32::try_from)) {
        recording.groups.see(tid, id);
    }
}

/// The path of a group, which the library leaves to its users.
fn group_name(raw: &RawEventRecord<'_>, recording: &mut Recording) {
    let path = raw.data.get(8..raw.data.len());
    let path = path.and_then(|mut rest| rest.read_string());
    let path = path.map(|path| String::from_utf8_lossy(&path.as_slice()).into_owned());
    let named = number(raw, &raw.data.as_slice(), 0)
        .zip(path)
        .is_some_and(|(id, path)| recording.groups.name(id, &path));
    if !named {
        recording.left_out.bad(|| "a group without a path".into());
    }
}

fn see_process(tid: Option<i32>, process: Option<i32>, recording: &mut Recording) {
    let number = |n: Option<i32>| n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    recording.names.see_process(number(tid), number(process));
}

/// The tracing data begin as a trace.dat, with a version of their own.
fn tracing_data(bytes: &mut Bytes<'_>) -> Result<Headers, TraceError> {
    let (version, _) = headers::beginning(bytes)?;
    headers::all(bytes, version.as_str() >= "0.6")
}

/// Proves that all sections are inside the file, and cuts the data after the last whole record;
/// whether counters in samples say how many were lost.
fn check(data: &mut [u8], recording: &mut Recording) -> Result<bool, TraceError> {
    let len = data.len() as u64;
    let mut bytes = Bytes::new(data, FORMAT);
    bytes.big = bytes.take(8)? == MAGICS[1];
    let header_size = bytes.u64()?;
    let attr_size = bytes.u64()?;
    let mut sections = Vec::new();
    for _ in 0..3 {
        sections.push((bytes.u64()?, bytes.u64()?));
    }
    let (offset, size) = sections[1];
    let known = bytes.u64()?;
    let mut features = u64::from(known.count_ones());
    for _ in 1..4 {
        features += u64::from(bytes.u64()?.count_ones());
    }
    if header_size < bytes.at as u64 || !(16..=4096).contains(&attr_size) {
        return Err(bytes.damaged("a header of perf's size".into()));
    }
    if size == 0 {
        return Err(TraceError::Unsupported {
            what: "a perf.data whose recording was not ended".into(),
            help: "the formats of its events stand at its end, which is missing",
        });
    }
    let end = offset
        .checked_add(size)
        .ok_or_else(|| bytes.damaged("a size".into()))?;
    let needs = end.saturating_add(16 * features);
    if needs > len {
        return Err(cut_short(len, needs));
    }
    let mut table = bytes.seek(end)?;
    for _ in 0..features {
        sections.push((table.u64()?, table.u64()?));
    }
    for (at, n) in &sections {
        match at.checked_add(*n) {
            Some(end) if end <= len => {}
            Some(end) => return Err(cut_short(len, end)),
            None => {
                let what = format!("a section inside the file, not {n} bytes at {at}");
                return Err(bytes.damaged(what));
            }
        }
    }
    if known >> EVENT_DESC & 1 == 0 {
        return Err(TraceError::Unsupported {
            what: "a perf.data without a description of its events".into(),
            help: "record with a perf of the last ten years, as `perf sched record` does",
        });
    }
    // Their table is in the order of the features, after the three sections of the header.
    let before = (known & ((1 << EVENT_DESC) - 1)).count_ones() as usize;
    let (at, n) = sections[3 + before];
    let mut events = Bytes::new(&data[..(at + n) as usize], FORMAT).seek(at)?;
    events.big = bytes.big;
    let counts_lost = event_desc(&mut events)?;
    let whole = whole_records(&bytes.seek(offset)?, size);
    if whole < size {
        recording.left_out.cut = Some(damaged_end(size - whole));
        let big = bytes.big;
        end_records(data, (offset, size, whole), features, big);
    }
    Ok(counts_lost)
}

/// Ends the records, of which so many bytes begin at an offset, after `whole` bytes.
fn end_records(data: &mut [u8], (offset, size, whole): (u64, u64, u64), features: u64, big: bool) {
    let new_end = if big {
        whole.to_be_bytes()
    } else {
        whole.to_le_bytes()
    };
    data[48..56].copy_from_slice(&new_end);
    // The table of features follows the records, wherever these end.
    let from = (offset + size) as usize;
    let table = from..from + 16 * features as usize;
    data.copy_within(table, (offset + whole) as usize);
}

fn cut_short(len: u64, needs: u64) -> TraceError {
    TraceError::Unsupported {
        what: format!("a perf.data that is cut short, at {len} bytes of {needs} or more,"),
        help: "the formats of its events stand at its end; what `perf record -o -` writes has them \
               at its beginning",
    }
}

/// Proves that as many events and ids are described as the section has room for
/// (`HEADER_EVENT_DESC` of the kernel's `perf.data-file-format.txt`); whether their counters say
/// how many samples were lost, a bit of `read_format` that the library does not know.
fn event_desc(bytes: &mut Bytes<'_>) -> Result<bool, TraceError> {
    let (events, attr_size) = (bytes.u32()?, bytes.u32()?);
    if attr_size < ATTR_SIZE_VER0 {
        let what = format!("attributes of at least {ATTR_SIZE_VER0} bytes, not {attr_size}");
        return Err(bytes.damaged(what));
    }
    let mut counts_lost = false;
    for _ in 0..events {
        let mut format = bytes.seek(bytes.at as u64 + READ_FORMAT_AT)?;
        bytes.take(attr_size.into())?;
        counts_lost |= format.u64()? & sample::FORMAT_LOST != 0;
        let ids = bytes.u32()?;
        let name = bytes.u32()?;
        bytes.take(name.into())?;
        bytes.take(8 * u64::from(ids))?;
    }
    Ok(counts_lost)
}

fn damaged_end(lacks: u64) -> String {
    format!("the last {lacks} bytes of the records are damaged")
}

/// Bytes of whole records from here on.
fn whole_records(from: &Bytes<'_>, size: u64) -> u64 {
    let mut done = 0;
    loop {
        let Ok(mut at) = from.seek(from.at as u64 + done) else {
            return done;
        };
        let head = (at.u32(), at.u16(), at.u16());
        let (Ok(kind), Ok(_), Ok(n)) = head else {
            return done;
        };
        let mut n = u64::from(n);
        if kind == AUXTRACE {
            n = n.saturating_add(at.u64().unwrap_or(u64::MAX));
        }
        match done.checked_add(n) {
            Some(next) if n >= HEAD && next <= size => done = next,
            _ => return done,
        }
        if done == size {
            return done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_events_or_ids_than_there_is_room_for_are_refused() {
        let section = |events: u32, attr_size: u32, ids: u32| {
            let mut data = Vec::new();
            for word in [events, attr_size] {
                data.extend(word.to_le_bytes());
            }
            data.extend([0; ATTR_SIZE_VER0 as usize]);
            for word in [ids, 2] {
                data.extend(word.to_le_bytes());
            }
            data.extend(b"e\0");
            data.extend([0; 8]);
            data
        };
        let fits = |data: Vec<u8>| event_desc(&mut Bytes::new(&data, FORMAT)).is_ok();
        assert!(fits(section(1, ATTR_SIZE_VER0, 1)));
        assert!(!fits(section(1 << 30, ATTR_SIZE_VER0, 1)));
        assert!(!fits(section(1, ATTR_SIZE_VER0, u32::MAX)));
        assert!(!fits(section(1, 0, 1)));
    }
}

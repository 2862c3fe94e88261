//! A sample of a perf.data, up to its data (`perf_event_open(2)`, `PERF_RECORD_SAMPLE`): what
//! stands before them has a size that the file says, so all of it is checked.

use linux_perf_data::linux_perf_event_reader::{
    Endianness, RawEventRecord, ReadFormat, SampleFormat,
};

use crate::bytes::Bytes;
use crate::error::TraceError;

/// What is used of it; `None` where the recording does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Process.
    pub pid: Option<i32>,
    /// Thread.
    pub tid: Option<i32>,
    /// Time, ns.
    pub at_ns: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
    /// The tracepoint's data.
    pub raw: Option<&'a [u8]>,
}

/// `PERF_FORMAT_LOST` (Linux 6.0), which the library leaves out of its read formats.
pub const FORMAT_LOST: u64 = 1 << 4;

/// Reads the bytes of a record; whether its counters say how many samples were lost.
///
/// # Errors
/// They end before the data do.
pub fn sample<'a>(
    record: &RawEventRecord<'_>,
    counts_lost: bool,
    bytes: &'a [u8],
    format: &'static str,
) -> Result<Sample<'a>, TraceError> {
    let has = record.parse_info.sample_format;
    let mut at = Bytes::new(bytes, format);
    at.big = record.parse_info.endian == Endianness::BigEndian;
    let mut sample = Sample::default();
    let skip = |at: &mut Bytes<'a>, what: SampleFormat| -> Result<(), TraceError> {
        let words = u64::from(has.intersection(what).bits().count_ones());
        at.take(8 * words).map(drop)
    };
    skip(&mut at, SampleFormat::IDENTIFIER | SampleFormat::IP)?;
    if has.contains(SampleFormat::TID) {
        sample.pid = Some(at.u32()? as i32);
        sample.tid = Some(at.u32()? as i32);
    }
    if has.contains(SampleFormat::TIME) {
        sample.at_ns = Some(at.u64()?);
    }
    skip(
        &mut at,
        SampleFormat::ADDR | SampleFormat::ID | SampleFormat::STREAM_ID,
    )?;
    if has.contains(SampleFormat::CPU) {
        sample.cpu = Some(at.u32()?);
        at.u32()?;
    }
    skip(&mut at, SampleFormat::PERIOD)?;
    if has.contains(SampleFormat::READ) {
        counts(&mut at, record.parse_info.read_format, counts_lost)?;
    }
    if has.contains(SampleFormat::CALLCHAIN) {
        let frames = at.u64()?;
        at.take(frames.saturating_mul(8))?;
    }
    if has.contains(SampleFormat::RAW) {
        let size = at.u32()?;
        sample.raw = Some(at.take(size.into())?);
    }
    Ok(sample)
}

/// Values of counters: of one, or of a group of them.
fn counts(at: &mut Bytes<'_>, has: ReadFormat, lost: bool) -> Result<(), TraceError> {
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    let times = u64::from(has.intersection(times).bits().count_ones());
    let each = 1 + u64::from(has.contains(ReadFormat::ID)) + u64::from(lost);
    if !has.contains(ReadFormat::GROUP) {
        return at.take(8 * (times + each)).map(drop);
    }
    let counters = at.u64()?;
    at.take(8 * times)?;
    at.take(counters.saturating_mul(8 * each)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_may_say_how_many_samples_were_lost() {
        let left = |has: ReadFormat, lost: bool, words: u64| {
            let bytes: Vec<u8> = (0..words).flat_map(|n| (n + 2).to_le_bytes()).collect();
            let mut at = Bytes::new(&bytes, "test");
            counts(&mut at, has, lost).map(|()| at.left() / 8).ok()
        };
        let id = ReadFormat::ID;
        assert_eq!((left(id, false, 4), left(id, true, 4)), (Some(2), Some(1)));
        // The first word says two.
        let group = ReadFormat::GROUP | id;
        assert_eq!(left(group, false, 8), Some(3));
        assert_eq!(
            (left(group, true, 8), left(group, true, 6)),
            (Some(1), None)
        );
    }
}

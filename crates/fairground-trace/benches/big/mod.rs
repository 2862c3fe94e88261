//! Large traces: made up, or a real file again and again, each time later.

use std::io::Read;
use std::path::Path;

use fairground_trace::{Context, Event, Kind, Names, Recording, State};

/// Two threads that take turns on each of 8 CPUs.
pub fn made_up(events: u32) -> Recording {
    let mut recording = Recording::new("made up");
    let mut names = Names::default();
    for tid in 100..116 {
        names.see(tid, format!("worker/{tid}").as_bytes());
    }
    recording.names = names;
    for n in 0..events {
        let (cpu, turn) = (n % 8, n / 8);
        let (prev, next) = (100 + cpu * 2 + turn % 2, 100 + cpu * 2 + (turn + 1) % 2);
        let (tid, prio) = (next, 120);
        let kind = match turn % 3 {
            0 => Kind::Waking { tid, prio, cpu },
            1 => Kind::Wakeup { tid, prio, cpu },
            _ => Kind::Switch {
                prev,
                prev_prio: 120,
                state: State::Blocked(b'S'),
                next,
                next_prio: 120,
            },
        };
        recording.push(Event {
            at_ns: 1_000_000_000 + u64::from(n) * 731,
            cpu,
            tid: prev,
            context: Context::Unknown,
            kind,
        });
    }
    recording
}

/// A file of the tests.
fn data(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let packed = std::fs::read(dir.join(name)).expect("a file of the tests");
    let mut plain = Vec::new();
    let mut reader = lzma_rust2::XzReader::new(&packed[..], true);
    reader.read_to_end(&mut plain).expect("whole");
    plain
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"))
}

fn put(data: &mut [u8], at: usize, value: u64) {
    data[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A trace.dat of version 6 with at least so many events, from one of `had` in `span_ns`.
pub fn trace_dat(events: usize, had: usize, span_ns: u64) -> Vec<u8> {
    const PAGE: usize = 4096;
    const MARK: &[u8] = b"flyrecord\0";
    const CPUS: usize = 2;
    let mut file = data("sleeper.v6.dat.xz");
    let mark = file.windows(MARK.len()).rposition(|w| w == MARK);
    let places = mark.expect("version 6") + MARK.len();
    for cpu in 0..CPUS {
        let place = places + cpu * 16;
        let (from, size) = (
            u64_at(&file, place) as usize,
            u64_at(&file, place + 8) as usize,
        );
        let pages = file[from..from + size].to_vec();
        let end = file.len() as u64;
        put(&mut file, place, end);
        let times = events.div_ceil(had);
        put(&mut file, place + 8, (size * times) as u64);
        for turn in 0..times as u64 {
            let begin = file.len();
            file.extend_from_slice(&pages);
            for page in (begin..file.len()).step_by(PAGE) {
                let at = u64_at(&file, page) + turn * span_ns;
                put(&mut file, page, at);
            }
        }
    }
    file
}

/// `PERF_RECORD_FINISHED_ROUND`.
const FINISHED_ROUND: u32 = 68;

/// A perf.data with at least so many events, from one of `had` in `span_ns`.
pub fn perf_data(events: usize, had: usize, span_ns: u64) -> Vec<u8> {
    const SAMPLE: u32 = 9;
    let file = data("sleeper.perf.data.xz");
    let (attr, from, size) = (u64_at(&file, 24), u64_at(&file, 40), u64_at(&file, 48));
    let (attr, from, size) = (attr as usize, from as usize, size as usize);
    // `perf_event_attr.sample_type`; what stands before the time in a sample.
    let kinds = u64_at(&file, attr + 24);
    let before = [16, 0, 1]
        .iter()
        .filter(|bit| kinds >> **bit & 1 == 1)
        .count();
    assert_eq!(kinds >> 2 & 1, 1, "samples have times");
    let mut out = file[..from + size].to_vec();
    for turn in 1..events.div_ceil(had) as u64 {
        let mut at = from;
        while at < from + size {
            let kind = u64_at(&file, at) as u32;
            let length = (u64_at(&file, at) >> 48) as usize;
            let begin = out.len();
            if matches!(kind, SAMPLE | FINISHED_ROUND) {
                out.extend_from_slice(&file[at..at + length]);
            }
            if kind == SAMPLE {
                let place = begin + 8 + before * 8;
                let later = u64_at(&out, place) + turn * span_ns;
                put(&mut out, place, later);
            }
            at += length;
        }
    }
    ended(out, &file)
}

/// `out`, which is `file` up to the end of its records with others in their place, with the rest of
/// `file` behind it.
fn ended(mut out: Vec<u8>, file: &[u8]) -> Vec<u8> {
    let (from, size) = (u64_at(file, 40) as usize, u64_at(file, 48) as usize);
    let grown = (out.len() as u64).wrapping_sub((from + size) as u64);
    put(&mut out, 48, (size as u64).wrapping_add(grown));
    let features: u32 = (0..4).map(|n| u64_at(file, 72 + n * 8).count_ones()).sum();
    let table = out.len();
    out.extend_from_slice(&file[from + size..]);
    for n in 0..features as usize {
        let offset = u64_at(&out, table + n * 16).wrapping_add(grown);
        put(&mut out, table + n * 16, offset);
    }
    out
}

/// The same with compressed records, as `perf record -z` writes them: what says that a round of its
/// buffers is finished stands between them.
pub fn compressed(file: &[u8]) -> Vec<u8> {
    const COMPRESSED: u32 = 81;
    const PART: usize = 60 << 10;
    let (from, size) = (u64_at(file, 40) as usize, u64_at(file, 48) as usize);
    let mut out = file[..from].to_vec();
    let pack = |part: &[u8], out: &mut Vec<u8>| {
        for part in part.chunks(PART) {
            let mut packed = vec![0; zstd_safe::compress_bound(part.len())];
            let n = zstd_safe::compress(&mut packed[..], part, 1).expect("room");
            out.extend(COMPRESSED.to_le_bytes());
            out.extend(0_u16.to_le_bytes());
            out.extend((n as u16 + 8).to_le_bytes());
            out.extend_from_slice(&packed[..n]);
        }
    };
    let (mut begin, mut at) = (from, from);
    while at < from + size {
        let length = (u64_at(file, at) >> 48) as usize;
        if u64_at(file, at) as u32 == FINISHED_ROUND {
            pack(&file[begin..at], &mut out);
            out.extend_from_slice(&file[at..at + length]);
            begin = at + length;
        }
        at += length;
    }
    pack(&file[begin..at], &mut out);
    ended(out, file)
}

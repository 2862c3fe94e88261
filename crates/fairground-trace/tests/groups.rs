//! Groups that `perf record --all-cgroups` writes: none of the recordings at hand has them, so they
//! are put into one, as `perf_event_open(2)` and the kernel's `perf.data-file-format.txt` describe
//! them.

use std::io::Read as _;

use fairground_trace::derive::Attributes;
use fairground_trace::{Recording, perf};

/// Bit 21 of `sample_type`, bit 32 of the attribute's flags, and the type of the record.
const PERF_SAMPLE_CGROUP: u64 = 1 << 21;
const ATTR_CGROUP: u64 = 1 << 32;
const PERF_RECORD_CGROUP: u32 = 19;
const PERF_RECORD_SAMPLE: u32 = 9;
/// Where these words are in a `perf_event_attr`.
const SAMPLE_TYPE: usize = 24;
const FLAGS: usize = 40;
/// Bits of `sample_type` that stand before the thread id, and that one.
const IDENTIFIER: u64 = 1 << 16;
const IP: u64 = 1;
const TID: u64 = 1 << 1;
/// The feature that describes events, and the words of the header.
const EVENT_DESC: u64 = 12;

fn number(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().unwrap())
}

fn small(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap())
}

fn set(b: &mut [u8], at: usize, value: u64) {
    b[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// The recording with groups: `paths` by id, and the id of each sample's thread.
fn with_groups(mut file: Vec<u8>, paths: &[(u64, &str)], of: impl Fn(u32) -> u64) -> Vec<u8> {
    let attrs = number(&file, 24) as usize..(number(&file, 24) + number(&file, 32)) as usize;
    let (data, size) = (number(&file, 40) as usize, number(&file, 48) as usize);
    let features = number(&file, 72);
    let sample_type = number(&file, attrs.start + SAMPLE_TYPE);
    let before_tid = 8 * (sample_type & (IDENTIFIER | IP)).count_ones() as usize;
    assert!(sample_type & TID != 0);
    let mark = |file: &mut [u8], attr: usize| {
        for (at, bit) in [(SAMPLE_TYPE, PERF_SAMPLE_CGROUP), (FLAGS, ATTR_CGROUP)] {
            let word = number(file, attr + at);
            set(file, attr + at, word | bit);
        }
    };
    let attr_size = number(&file, 16) as usize;
    for attr in attrs.step_by(attr_size) {
        mark(&mut file, attr);
    }
    let table = data + size;
    let place = (features & ((1 << EVENT_DESC) - 1)).count_ones() as usize;
    let mut at = number(&file, table + 16 * place) as usize;
    let (events, attr_size) = (small(&file, at), small(&file, at + 4) as usize);
    at += 8;
    for _ in 0..events {
        mark(&mut file, at);
        let (ids, name) = (
            small(&file, at + attr_size),
            small(&file, at + attr_size + 4),
        );
        at += attr_size + 8 + name as usize + 8 * ids as usize;
    }
    let mut records = Vec::new();
    for (id, path) in paths {
        let mut body = id.to_le_bytes().to_vec();
        body.extend(path.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        // Behind it stands what identifies the event; nothing there is looked at.
        body.extend([0; 48]);
        records.extend(PERF_RECORD_CGROUP.to_le_bytes());
        records.extend(0_u16.to_le_bytes());
        records.extend((8 + body.len() as u16).to_le_bytes());
        records.extend(body);
    }
    let mut at = data;
    while at < data + size {
        let n = u16::from_le_bytes([file[at + 6], file[at + 7]]);
        let sample = small(&file, at) == PERF_RECORD_SAMPLE;
        let head = records.len();
        records.extend(&file[at..at + usize::from(n)]);
        if sample {
            let tid = small(&file, at + 8 + before_tid + 4);
            records[head + 6..head + 8].copy_from_slice(&(n + 8).to_le_bytes());
            records.extend(of(tid).to_le_bytes());
        }
        at += usize::from(n);
    }
    let longer = records.len() - size;
    let mut out = file[..data].to_vec();
    set(&mut out, 48, records.len() as u64);
    out.extend(records);
    let rest = out.len();
    out.extend(&file[table..]);
    for feature in 0..features.count_ones() as usize {
        let place = rest + 16 * feature;
        let moved = number(&out, place) + longer as u64;
        set(&mut out, place, moved);
    }
    out
}

fn read(change: impl Fn(Vec<u8>) -> Vec<u8>) -> Recording {
    let dir = env!("CARGO_MANIFEST_DIR");
    let packed = std::fs::File::open(format!("{dir}/tests/data/sleeper.perf.data.xz")).unwrap();
    let mut file = Vec::new();
    let mut plain = lzma_rust2::XzReader::new(packed, true);
    plain.read_to_end(&mut file).unwrap();
    perf::read(change(file), &mut |_| {}).unwrap()
}

#[test]
fn threads_are_in_the_groups_that_perf_has_recorded() {
    let plain = read(|file| file);
    let tid = |comm: &str| {
        let mut tids = plain.events.iter().map(|e| e.tid);
        tids.find(|tid| plain.names.get(*tid) == comm).unwrap()
    };
    let (hog, sleeper) = (tid("hog"), tid("sleeper"));
    let paths = [(1, "/"), (11, "/web/a"), (12, "/db.slice/x\\x2dy")];
    let of = |tid: u32| match tid {
        t if t == hog => 11,
        t if t == sleeper => 12,
        _ => 1,
    };
    let r = read(|file| with_groups(file, &paths, of));
    assert_eq!(r.events, plain.events);
    assert_eq!(r.left_out.text(), "");
    let found: Vec<_> = r.groups.of_threads().into_iter().collect();
    let mut expected = [(hog, "/web/a"), (sleeper, "/db.slice/x\\x2dy")];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(plain.groups.of_threads().is_empty());

    let mut known =
        Attributes::parse("[[cgroup]]\npath = \"/web\"\n\"cpu.weight\" = 50\n").unwrap();
    known.take_groups(&r.groups);
    let mut paths = known.groups();
    // Parents come before children.
    assert_eq!(paths[..3], ["/", "/web", "/db.slice"]);
    paths.sort_unstable();
    let all = ["/", "/db.slice", "/db.slice/x\\x2dy", "/web", "/web/a"];
    assert_eq!(paths, all);
    assert_eq!(known.cgroups[0].weight, Some(50));
    assert_eq!(known.path_of(hog, "hog"), Some("/web/a"));
    let said = "recorded_cgroups = false\n";
    let mut known = Attributes::parse(said).unwrap();
    known.take_groups(&r.groups);
    assert_eq!(known.path_of(hog, "hog"), None);
}

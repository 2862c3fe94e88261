//! Files of all kinds that a real kernel's recorders wrote.

use std::io::{Read as _, Write as _};

use fairground_trace::{Context, Event, Kind, Recording, State, open};

fn data(name: &str) -> Recording {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    open::open(path.as_ref(), &mut |_| {}).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn count(r: &Recording, f: impl Fn(&Kind) -> bool) -> usize {
    r.events.iter().filter(|e| f(&e.kind)).count()
}

#[test]
fn versions_and_compressions_of_trace_dat_say_the_same() {
    let v6 = data("sleeper.v6.dat.xz");
    assert_eq!((v6.events.len(), v6.cpus), (368, 2));
    assert_eq!(v6.left_out.text(), "");
    // `trace-cmd report` shows the first two as
    // 3137.884704: sched_waking: comm=kworker/0:1H pid=58 prio=100 target_cpu=000
    // 3137.884707: sched_wakeup: ...
    let first = v6.events[0];
    let kind = Kind::Waking {
        tid: 58,
        prio: 100,
        cpu: 0,
    };
    assert_eq!(first.kind, kind);
    assert_eq!(
        (first.at_ns / 1000, first.cpu, first.tid),
        (3_137_884_703, 0, 27_120)
    );
    assert_ne!(first.context, Context::Unknown);
    assert_eq!(v6.names.get(58), "kworker/0:1H");
    let blocked = |k: &Kind| {
        matches!(
            k,
            Kind::Switch {
                state: State::Blocked(b'D'),
                ..
            }
        )
    };
    assert!(count(&v6, blocked) > 0);
    for other in ["sleeper.v7-plain.dat.xz", "sleeper.v7-zstd.dat.xz"] {
        let other = data(other);
        assert_eq!(other.left_out.text(), "");
        assert_eq!(other.events, v6.events);
        assert_eq!(other.names.get(27_177), "hog");
    }
}

#[test]
fn perf_data_is_read() {
    let r = data("sleeper.perf.data.xz");
    assert_eq!((r.events.len(), r.cpus, r.format), (324, 2, "perf.data"));
    assert_eq!(r.left_out.text(), "");
    // `perf script` shows the first as
    // :2739 2739 [001] 3136.680307: sched_switch: prev_comm=stranger ... ==> swapper/1
    let Event {
        at_ns,
        cpu,
        tid,
        kind,
        ..
    } = r.events[0];
    assert_eq!((at_ns / 1000, cpu, tid), (3_136_680_307, 1, 2739));
    let sleeps = State::Blocked(b'S');
    assert!(matches!(kind, Kind::Switch { prev: 2739, state, next: 0, .. } if state == sleeps));
    assert!(count(&r, |k| matches!(k, Kind::Fork { .. })) > 0);
}

/// The bytes of a packed file.
fn plain(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut plain = Vec::new();
    let mut unpacked = lzma_rust2::XzReader::new(std::fs::File::open(path).unwrap(), true);
    std::io::Read::read_to_end(&mut unpacked, &mut plain).unwrap();
    plain
}

fn word(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(data[at..at + 8].try_into().unwrap())
}

/// Where the attributes of events stand in a perf.data: those of its header, and those of its
/// description of events, which is the feature of bit 12.
fn attributes(data: &[u8]) -> Vec<usize> {
    let (size, from) = (word(data, 16) as usize, word(data, 24) as usize);
    let end = from + word(data, 32) as usize;
    let mut all: Vec<usize> = (from..end).step_by(size).collect();
    let table = (word(data, 40) + word(data, 48)) as usize;
    let before = (word(data, 72) & 0xfff).count_ones() as usize;
    let mut at = word(data, table + 16 * before) as usize;
    let small = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
    let (events, size) = (small(at), small(at + 4));
    at += 8;
    for _ in 0..events {
        all.push(at);
        at += size;
        at += 8 + small(at + 4) + 8 * small(at);
    }
    all
}

#[test]
fn a_build_id_of_any_length_is_not_looked_at() {
    const SAMPLE: u64 = 9;
    const MMAP2: u64 = 10;
    const BUILD_ID: u64 = 1 << 14;
    let mut file = plain("sleeper.perf.data.xz");
    let mut at = word(&file, 40) as usize;
    // A record is its type, flags and size. The recording has no maps: a sample becomes one.
    while word(&file, at) & 0xffff_ffff != SAMPLE || word(&file, at) >> 48 < 96 {
        at += (word(&file, at) >> 48) as usize;
    }
    let head = word(&file, at) >> 48 << 48 | BUILD_ID << 32 | MMAP2;
    file[at..at + 8].copy_from_slice(&head.to_le_bytes());
    // Behind the ids, the address, the length and the offset.
    file[at + 40] = 255;
    let r = open::read(&file[..], &mut |_| {}).unwrap();
    let good = data("sleeper.perf.data.xz").events;
    assert!(r.events.len() + 1 == good.len() && r.events.iter().all(|e| good.contains(e)));
}

#[test]
fn a_recording_that_is_sampled_says_so() {
    const PERIOD: usize = 16;
    const FLAGS: usize = 40;
    const FREQ: u64 = 1 << 10;
    let good = plain("sleeper.perf.data.xz");
    let with = |change: &dyn Fn(&mut Vec<u8>, usize)| {
        let mut file = good.clone();
        attributes(&good)
            .iter()
            .for_each(|at| change(&mut file, *at));
        open::read(&file[..], &mut |_| {}).unwrap().left_out.text()
    };
    let set = |file: &mut Vec<u8>, at: usize, value: u64| {
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    assert_eq!(with(&|_, _| {}), "");
    let tenth = with(&|file, at| set(file, at + PERIOD, 10));
    assert!(tenth.contains("only some were recorded"), "{tenth}");
    let often = with(&|file, at| {
        let flags = word(file, at + FLAGS);
        set(file, at + FLAGS, flags | FREQ);
    });
    assert!(often.contains("only some were recorded"), "{often}");
}

#[test]
fn what_perf_writes_to_a_pipe_is_read_also_where_it_is_cut() {
    let file = data("sleeper.perf.data.xz");
    let piped = data("pipe/sleeper.perf.data.xz");
    assert_eq!(piped.left_out.text(), "");
    assert!(piped.events == file.events && piped.cpus == file.cpus);
    let packed = std::fs::File::open(format!(
        "{}/tests/data/pipe/sleeper.perf.data.xz",
        env!("CARGO_MANIFEST_DIR")
    ));
    let mut plain = Vec::new();
    let mut unpacked = lzma_rust2::XzReader::new(packed.unwrap(), true);
    std::io::Read::read_to_end(&mut unpacked, &mut plain).unwrap();
    let cut = open::read(&plain[..plain.len() * 9 / 10 + 3], &mut |_| {}).unwrap();
    let text = cut.left_out.text();
    assert!(text.contains("cut short"), "{text}");
    assert!(cut.events.iter().all(|e| file.events.contains(e)));
    assert!(cut.events.len() > file.events.len() / 2);
}

/// The release of the kernel is a record of a pipe, and a section of the file that it becomes.
#[test]
fn the_recorded_kernel_is_read() {
    const HEADER: usize = 16;
    let mut piped = plain("pipe/sleeper.perf.data.xz");
    let release = b"5.10.44-1-generic\0\0\0";
    let mut record = 80_u32.to_le_bytes().to_vec();
    record.extend(0_u16.to_le_bytes());
    record.extend((8 + 8 + 4 + release.len() as u16).to_le_bytes());
    record.extend(4_u64.to_le_bytes());
    record.extend((release.len() as u32).to_le_bytes());
    record.extend(release);
    piped.splice(HEADER..HEADER, record);
    let r = open::read(&piped[..], &mut |_| {}).unwrap();
    assert_eq!(r.kernel.as_deref(), Some("5.10.44-1-generic"));
    assert_eq!(r.events, data("sleeper.perf.data.xz").events);
    assert_eq!(r.left_out.text(), "");
}

#[test]
fn a_file_that_lacks_its_end_is_told() {
    let path = format!(
        "{}/tests/data/sleeper.perf.data.xz",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut plain = Vec::new();
    let mut unpacked = lzma_rust2::XzReader::new(std::fs::File::open(path).unwrap(), true);
    std::io::Read::read_to_end(&mut unpacked, &mut plain).unwrap();
    let error = open::read(&plain[..plain.len() / 2], &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
}

#[test]
fn text_is_read() {
    let r = data("sleeper.script.txt.xz");
    assert_eq!((r.events.len(), r.cpus, r.format), (686, 2, "text"));
    assert_eq!(r.left_out.text(), "");
    assert_eq!(r.names.get(32_326), "sleeper");
}

#[test]
fn what_is_no_trace_is_refused_with_what_was_expected() {
    let read = |bytes: &[u8]| open::read(bytes, &mut |_| {}).unwrap_err().to_string();
    assert!(read(b"").contains("it is empty"));
    let error = read(b"\x7fELF and so on");
    assert!(
        error.contains("expected perf.data, trace.dat, or text"),
        "{error}"
    );
    assert!(error.contains("\\x7fELF"), "{error}");
    let error = read(b"x-7 [0] 1.5: irq_handler_entry: irq=1\n");
    assert!(error.contains("no sched_switch"), "{error}");
    assert!(error.contains("irq_handler_entry"), "{error}");
    let error = read(b"\x17\x08\x44tracing5\0\0\x08\0\x10\0\0");
    assert!(
        error.contains("version 5 of trace.dat is not supported"),
        "{error}"
    );
}

fn packed(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

fn unpacked(name: &str) -> Vec<u8> {
    let packed = packed(name);
    let mut plain = Vec::new();
    let mut reader = lzma_rust2::XzReader::new(&packed[..], true);
    reader.read_to_end(&mut plain).unwrap();
    plain
}

/// A copy that was broken off says so, whoever packed it, and not what its reader missed first.
#[test]
fn compressed_files_that_break_off_say_that_they_do() {
    let plain = unpacked("sleeper.perf.data.xz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut zstd = vec![0; zstd_safe::compress_bound(plain.len())];
    let n = zstd_safe::compress(&mut zstd[..], &plain, 1).unwrap();
    zstd.truncate(n);
    for (by, packed) in [
        ("xz", packed("sleeper.perf.data.xz")),
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd),
    ] {
        let whole = open::read(&packed[..], &mut |_| {}).unwrap();
        assert!(
            whole.left_out.cut.is_none() && !whole.events.is_empty(),
            "{by}"
        );
        for part in [packed.len() / 4, packed.len() / 2, packed.len() - 9] {
            let told = match open::read(&packed[..part], &mut |_| {}) {
                Ok(some) => some.left_out.text(),
                Err(error) => error.to_string(),
            };
            let words = format!("what {by} has packed ends early");
            assert!(told.contains(&words), "{by}, {part} bytes: {told}");
        }
    }
}

/// CPUs that have no event, and of which the file's header says that they are online.
#[test]
fn a_perf_data_says_how_many_cpus_are_online() {
    const NRCPUS: u32 = 7;
    let mut plain = unpacked("sleeper.perf.data.xz");
    let word = |plain: &[u8], at: usize| -> usize {
        usize::try_from(u64::from_le_bytes(plain[at..at + 8].try_into().unwrap())).unwrap()
    };
    let features = word(&plain, 72);
    assert!(features >> NRCPUS & 1 == 1);
    let before = (features & ((1 << NRCPUS) - 1)).count_ones() as usize;
    let table = word(&plain, 40) + word(&plain, 48);
    let section = word(&plain, table + 16 * before);
    assert_eq!(plain[section..section + 8], [2, 0, 0, 0, 2, 0, 0, 0]);
    let read = |plain: &[u8]| open::read(plain, &mut |_| {}).unwrap();
    assert_eq!(read(&plain).cpus, 2);
    plain[section + 4] = 6;
    let more = read(&plain);
    assert_eq!((more.cpus, more.silent_cpus()), (6, vec![2, 3, 4, 5]));
    // A damaged number is none.
    plain[section + 7] = 255;
    assert_eq!(read(&plain).cpus, 2);
}

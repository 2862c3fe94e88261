//! Damaged files: an answer, never a panic, and no memory beyond what the file can need.
//!
//! Each file of the corpus is cut at many places, and has bytes changed at places drawn from a
//! fixed seed.

use std::io::{Read, Write};

use fairground_sim::rng::{Generator, Purpose, generator};
use fairground_trace::measure::measure;
use fairground_trace::open;

const FILES: &[&str] = &[
    "sleeper.v6.dat.xz",
    "sleeper.v7-plain.dat.xz",
    "sleeper.v7-zstd.dat.xz",
    "sleeper.perf.data.xz",
    "pipe/sleeper.perf.data.xz",
    "pipe.script.txt.xz",
];
/// Damaged copies of each file.
const COPIES: usize = 150;

fn plain(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(path).unwrap();
    let mut data = Vec::new();
    lzma_rust2::XzReader::new(file, true)
        .read_to_end(&mut data)
        .unwrap();
    data
}

/// Whatever it is, it can be read and measured, or refused.
fn survives(data: &[u8]) -> bool {
    let Ok(recording) = open::read(data, &mut |_| {}) else {
        return false;
    };
    let m = measure(&recording.events, recording.cpus, recording.span(), None);
    assert!(m.cpu_ns() <= (recording.span().1 - recording.span().0) * u64::from(recording.cpus));
    true
}

#[test]
fn files_that_are_cut_short() {
    for name in FILES {
        let data = plain(name);
        assert!(survives(&data), "{name}");
        let mut used = 0;
        for part in 0..64 {
            used += usize::from(survives(&data[..data.len() * part / 64]));
        }
        // What the end of the file holds is in some formats needed for all of it.
        let needs_end = name.starts_with("sleeper.perf") || name.contains("v7");
        assert!(used > 0 || needs_end, "{name}");
    }
}

#[test]
fn compressed_files_that_break_off_are_used_up_to_there() {
    for name in ["sleeper.script.txt.xz", "sleeper.v6.dat.xz"] {
        let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
        let packed = std::fs::read(path).unwrap();
        let whole = open::read(&packed[..], &mut |_| {}).unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&plain(name)).unwrap();
        let gz = gz.finish().unwrap();
        let part = open::read(&gz[..gz.len() * 3 / 4], &mut |_| {}).unwrap();
        assert!(part.left_out.cut.is_some(), "{name}");
        assert!(!part.events.is_empty() && part.events.len() < whole.events.len());
        let nothing = open::read(&packed[..20], &mut |_| {}).unwrap_err();
        assert!(nothing.to_string().contains("damaged compressed file"));
    }
}

#[test]
fn files_with_changed_bytes() {
    let mut rng: Generator = generator(1, Purpose::Start);
    for name in FILES {
        let data = plain(name);
        // Heads are where the sizes are.
        for copy in 0..COPIES {
            let mut damaged = data.clone();
            let reach = if copy % 2 == 0 {
                data.len()
            } else {
                data.len().min(400)
            };
            for _ in 0..1 + rng.below(8) {
                let at = rng.below(reach as u64) as usize;
                damaged[at] = match rng.below(4) {
                    0 => 0xff,
                    1 => 0,
                    _ => rng.bits() as u8,
                };
            }
            survives(&damaged);
        }
    }
}

#[test]
fn a_cut_perf_data_is_used_up_to_there() {
    let mut data = plain("sleeper.perf.data.xz");
    // The size of the 100th record becomes nonsense.
    let mut at = u64::from_le_bytes(data[40..48].try_into().unwrap()) as usize;
    for _ in 0..100 {
        at += usize::from(u16::from_le_bytes([data[at + 6], data[at + 7]]));
    }
    data[at + 6] = 1;
    data[at + 7] = 0;
    let r = open::read(&data[..], &mut |_| {}).unwrap();
    // 37 of these records are samples.
    assert_eq!(r.events.len(), 37);
    assert!(
        r.left_out.text().contains("damaged"),
        "{}",
        r.left_out.text()
    );
}

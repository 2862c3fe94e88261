//! Reading and writing a million events: events per second of one core, and memory.
//!
//! `cargo bench -p fairground-trace --bench read`. Each case runs in a process of its own, as the
//! highest memory of a process never falls. Time is CPU time, the best of three.

mod big;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairground_trace::export::{self, Format};
use fairground_trace::open;

const EVENTS: usize = 1_000_000;
const FLOOR_PER_S: f64 = 1e6;
const FLOOR_MIB: f64 = 200.0;
const CASE: &str = "FAIRGROUND_TRACE_CASE";
const TIMES: usize = 3;

/// Name, and whether the whole file is held in memory.
const READ: [(&str, bool); 4] = [
    ("big.txt", false),
    ("big.dat", true),
    ("big.data", true),
    ("big-z.data", true),
];
const WRITE: [&str; 4] = ["out.txt", "out.pftrace", "out.jsonl", "out.csv"];

fn main() {
    if let Ok(case) = std::env::var(CASE) {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&case);
        match READ.iter().find(|(name, _)| *name == case) {
            Some((_, held)) => read(&path, *held),
            None => write(&path),
        }
        return;
    }
    make();
    let exe = std::env::current_exe().expect("this program");
    for case in READ.iter().map(|(name, _)| *name).chain(WRITE) {
        let ended = Command::new(&exe).env(CASE, case).status();
        assert!(ended.expect("it starts").success());
    }
}

/// The files to read.
fn make() {
    let tmp = |name: &str| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let of = |bytes: Vec<u8>| {
        let r = open::read(&bytes[..], &mut |_| {}).expect("a trace");
        let (first, last) = r.span();
        (r.events.len(), last - first + 1_000)
    };
    let mut text = Vec::new();
    export::write(&big::made_up(EVENTS as u32), Format::Text, &mut text).expect("memory");
    std::fs::write(tmp("big.txt"), text).expect("room");
    let (had, span) = of(big::trace_dat(1, 1, 0));
    std::fs::write(tmp("big.dat"), big::trace_dat(EVENTS, had, span)).expect("room");
    let (had, span) = of(big::perf_data(1, 1, 0));
    let data = big::perf_data(EVENTS, had, span);
    std::fs::write(tmp("big-z.data"), big::compressed(&data)).expect("room");
    std::fs::write(tmp("big.data"), data).expect("room");
}

fn read(path: &Path, held: bool) {
    let mut best = f64::MAX;
    let (mut events, mut format) = (0, "");
    for _ in 0..TIMES {
        let start = cpu_s();
        let recording = open::open(path, &mut |_| {}).expect("a trace");
        best = best.min(cpu_s() - start);
        assert_eq!(recording.left_out.text(), "");
        (events, format) = (recording.events.len(), recording.format);
    }
    assert!(events >= EVENTS, "{events}");
    let file = std::fs::metadata(path).map_or(0, |m| m.len());
    let file = if held { file as f64 / MIB } else { 0.0 };
    told(
        &format!(
            "read {format}{}",
            if path.ends_with("big-z.data") {
                " -z"
            } else {
                ""
            }
        ),
        events,
        best,
        peak_mib().map(|peak| peak - file),
    );
}

fn write(path: &Path) {
    let recording = big::made_up(EVENTS as u32);
    let before = peak_mib();
    let format = Format::of(path).expect("a known end");
    let mut best = f64::MAX;
    for _ in 0..TIMES {
        let file = std::fs::File::create(path).expect("room");
        let mut out = std::io::BufWriter::new(file);
        let start = cpu_s();
        export::write(&recording, format, &mut out).expect("room");
        out.flush().expect("room");
        best = best.min(cpu_s() - start);
    }
    let beyond = peak_mib().zip(before).map(|(peak, before)| peak - before);
    told(&format!("write {format:?}"), EVENTS, best, beyond);
    std::fs::remove_file(path).expect("it was there");
}

fn told(what: &str, events: usize, seconds: f64, beyond_mib: Option<f64>) {
    let verdict = |met: bool| if met { "met" } else { "MISSED" };
    let rate = events as f64 / seconds;
    println!(
        "{what:<16} {events} events, {:.2} M/s, floor {:.2}: {}",
        rate / 1e6,
        FLOOR_PER_S / 1e6,
        verdict(rate >= FLOOR_PER_S)
    );
    match beyond_mib {
        Some(mib) => println!(
            "{:<16} peak {mib:.0} MiB beyond the file, floor {FLOOR_MIB:.0}: {}",
            "",
            verdict(mib <= FLOOR_MIB)
        ),
        None => println!("  this system does not tell its peak memory"),
    }
}

const MIB: f64 = 1024.0 * 1024.0;

/// Peak resident memory of this process, MiB (Linux only).
fn peak_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

/// CPU time of this thread, s; where the system does not tell, the time of day.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = text.and_then(|t| t.split(' ').next()?.parse::<f64>().ok());
    ns.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map_or(0.0, |d| d.as_secs_f64() * 1e9)
    }) / 1e9
}

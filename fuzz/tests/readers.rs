//! Each reader against its findings of old, what a fuzzer kept, and random edits of good files.
//!
//! `cargo test` draws the same edits every time (`FUZZ_SEED` in `.cargo/config.toml`).
//! `fuzz/run` builds this test for libFuzzer, which is guided by what the reader executes, and runs
//! a target for longer. A finding is written to the directory for temporary files of cargo's
//! target directory; its file belongs into `corpus/READER/`, where it is a test from then on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use fairground_fuzz::{Edits, READERS, Reader, plain, seeds};
use fairground_sim::machine_file::{FNV_START, fnv1a};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Longest that a reader may take for a file of a few kilobytes, in an unoptimised build on a busy
/// machine.
const SLOWEST: Duration = Duration::from_secs(20);

/// Random edits that a plain test makes for each reader.
const DRAWS: usize = 60;

fn fuzz(name: &str) {
    let fuzzed = std::env::var_os("FUZZ_TARGET");
    // libFuzzer starts this program again to merge, without the name of the test.
    if fuzzed.as_ref().is_some_and(|target| target != name) {
        return;
    }
    let reader = READERS.iter().find(|r| r.name == name).expect("a reader");
    let seeds = seeds(name);
    assert!(!seeds.is_empty());
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    if let Some(found) = std::env::var_os("FUZZ_KEEP") {
        keep(Path::new(&found), &corpus, &seeds);
    }
    for entry in std::fs::read_dir(corpus).into_iter().flatten().flatten() {
        let data = plain(&entry.path());
        if !entry.file_name().to_string_lossy().starts_with("edits.txt") {
            survive(reader, &data);
            continue;
        }
        for line in String::from_utf8_lossy(&data).lines() {
            // A seed that is gone takes its lines along.
            if let Some(edits) = Edits::of_line(line, &seeds) {
                survive(reader, &edits.apply(&seeds));
            }
        }
    }
    let edit = |bytes: &[u8]| survive(reader, &Edits::of_bytes(bytes, seeds.len()).apply(&seeds));
    if fuzzed.is_some() {
        bolero::check!()
            .with_max_len(Edits::BYTES_MAX)
            .for_each(edit);
    } else {
        draws().for_each(|bytes| edit(&bytes));
    }
}

/// Bytes as a fuzzer draws them, by `FUZZ_SEED`: a plain test of bolero draws others in every run.
fn draws() -> impl Iterator<Item = Vec<u8>> {
    let seed = std::env::var("FUZZ_SEED").map_or(Ok(0), |seed| seed.parse());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.expect("FUZZ_SEED is a number"));
    (0..DRAWS).map(move |_| {
        let mut bytes = vec![0; (rng.next_u64() % (Edits::BYTES_MAX as u64 + 1)) as usize];
        rng.fill_bytes(&mut bytes);
        bytes
    })
}

/// Writes what a fuzzer has found into the corpus, a line each.
fn keep(found: &Path, corpus: &Path, seeds: &[(String, Vec<u8>)]) {
    let entries = std::fs::read_dir(found).expect("a directory of inputs");
    let line = |entry: std::fs::DirEntry| {
        let bytes = std::fs::read(entry.path()).expect("an input");
        Edits::of_bytes(&bytes, seeds.len()).line(seeds)
    };
    let mut lines: Vec<String> = entries.flatten().map(line).collect();
    lines.sort();
    lines.dedup();
    std::fs::write(corpus.join("edits.txt"), lines.join("\n") + "\n").expect("the corpus");
}

/// Reads; keeps the input if it is a finding.
fn survive(reader: &Reader, data: &[u8]) {
    let start = Instant::now();
    let answer = catch_unwind(AssertUnwindSafe(|| (reader.read)(data)));
    let slow = start.elapsed() > SLOWEST;
    if slow || answer.is_err() {
        let name = format!("{}-{:016x}", reader.name, fnv1a(FNV_START, data));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, data).expect("the finding can be written");
        eprintln!("finding: {}", path.display());
    }
    match answer {
        Err(panic) => resume_unwind(panic),
        Ok(_) => assert!(!slow, "{} took {:?}", reader.name, start.elapsed()),
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            fuzz(stringify!($name));
        }
    )*};
}

targets!(
    trace, attributes, machine, hwloc, scenario, case, recorded, costs, smp, pelt, saved, pipe,
);

#[test]
fn no_reader_is_forgotten() {
    assert_eq!(READERS.len(), 12);
}

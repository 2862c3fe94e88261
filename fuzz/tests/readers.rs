//! Each reader against its findings of old and random edits of good files.
//!
//! `cargo test` draws the same edits every time (`BOLERO_RANDOM_SEED` in `.cargo/config.toml`).
//! `FUZZ_SECONDS=600 BOLERO_RANDOM_SEED=$RANDOM cargo test -p fairground-fuzz --test readers
//! machine` looks at others, for so long. A finding is written to the directory for temporary
//! files of cargo's target directory; its file belongs into `corpus/READER/`, where it is a test
//! from then on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use fairground_fuzz::{Edit, READERS, Reader, edited, plain, seeds};
use fairground_sim::machine_file::{FNV_START, fnv1a};

/// Longest that a reader may take for a file of a few kilobytes, in an unoptimised build on a busy
/// machine.
const SLOWEST: Duration = Duration::from_secs(20);

fn fuzz(name: &str) {
    let reader = READERS.iter().find(|r| r.name == name).expect("a reader");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    for entry in std::fs::read_dir(corpus).into_iter().flatten().flatten() {
        (reader.read)(&plain(&entry.path()));
    }
    let seeds: Vec<Vec<u8>> = seeds(name).into_iter().map(|(_, data)| data).collect();
    assert!(!seeds.is_empty());
    let seconds = std::env::var("FUZZ_SECONDS")
        .ok()
        .map(|s| s.parse().expect("seconds"));
    let check = bolero::check!();
    let check = match seconds {
        Some(seconds) => check.with_test_time(Duration::from_secs(seconds)),
        None => check.with_iterations(60),
    };
    check
        .with_type::<(u16, Vec<Edit>)>()
        .for_each(|(which, edits)| {
            let seed = &seeds[usize::from(*which) % seeds.len()];
            survive(reader, &edited(seed, edits));
        });
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
    trace, machine, hwloc, scenario, case, recorded, costs, smp, saved
);

#[test]
fn no_reader_is_forgotten() {
    assert_eq!(READERS.len(), 9);
}

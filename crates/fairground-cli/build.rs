//! The hash of what decides results: the sources of the engine and of the simulator. A result says
//! it, so that those of two builds can be told apart.

use std::io;
use std::path::{Path, PathBuf};

/// Directories beside this crate's.
const DECIDING: [&str; 2] = ["fairground/src", "fairground-sim/src"];

fn main() -> io::Result<()> {
    // A build script runs in the folder of its crate, wherever it was compiled.
    let crates = Path::new("..");
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for dir in DECIDING {
        let dir = crates.join(dir);
        println!("cargo::rerun-if-changed={}", dir.display());
        let mut files = Vec::new();
        collect(&dir, &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(crates).unwrap_or(&file);
            hash = fnv1a(hash, name.to_string_lossy().as_bytes());
            hash = fnv1a(hash, &std::fs::read(&file)?);
        }
    }
    println!("cargo::rustc-env=FAIRGROUND_SOURCES={hash:016x}");
    Ok(())
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// 64-bit FNV-1a, as hashes of machine files are.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(hash, step)
}

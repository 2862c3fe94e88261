//! Good files of the repository, by reader.

use std::io::Read;
use std::path::{Path, PathBuf};

/// Files up to this size are seeds: larger ones make a turn slow.
const SEED_MAX: usize = 96 << 10;

/// Between the files of a recording of load tracking.
pub const PART: &str = "\n----\n";

/// Name and content of the seeds of a reader.
pub fn seeds(reader: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seeds = match reader {
        "machine" => files(&root.join("machines"), ".toml"),
        "hwloc" => files(&root.join("crates/fairground-sim/tests/data"), ".xml"),
        "scenario" => {
            let dir = root.join("scenarios");
            [files(&dir, ".toml"), files(&dir, ".json")].concat()
        }
        "trace" => files(&root.join("crates/fairground-trace/tests/data"), ".xz"),
        "pipe" => files(&root.join("crates/fairground-trace/tests/data/pipe"), ".xz"),
        "case" => members(&root, "kernel-truth.jsonl.gz", "case"),
        "recorded" => members(&root, "kernel-truth.jsonl.gz", "result"),
        "costs" => files(
            &root.join("crates/fairground-sim/tests/data"),
            "costs.json.gz",
        ),
        "saved" => files(&root.join("fuzz/corpus/saved"), ".json"),
        "attributes" => files(&root.join("fuzz/corpus/attributes"), ".toml"),
        "pelt" => load_tracking(&root),
        "smp" => ["choice", "balance", "pelt", "runs"]
            .iter()
            .flat_map(|name| smp(&root, name))
            .collect(),
        _ => Vec::new(),
    };
    seeds.retain(|(_, data)| data.len() <= SEED_MAX || matches!(reader, "trace" | "pipe"));
    seeds
}

fn files(dir: &Path, end: &str) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .map(|entries| entries.flatten().map(|e| e.path()).collect())
        .unwrap_or_default();
    paths.sort();
    let of = |path: &PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        name.ends_with(end).then(|| (name, plain(path)))
    };
    paths.iter().filter_map(of).collect()
}

/// A file, unpacked if it is packed (`.xz`, `.gz`).
pub fn plain(path: &Path) -> Vec<u8> {
    let data = std::fs::read(path).unwrap_or_default();
    let mut out = Vec::new();
    let read = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => lzma_rust2::XzReader::new(&data[..], true).read_to_end(&mut out),
        Some("gz") => flate2::read::GzDecoder::new(&data[..]).read_to_end(&mut out),
        _ => return data,
    };
    if read.is_ok() { out } else { Vec::new() }
}

fn lines(root: &Path, name: &str) -> Vec<serde_json::Value> {
    let data = plain(&root.join("crates/fairground-sim/tests/data").join(name));
    let text = String::from_utf8_lossy(&data);
    let value = |line: &str| serde_json::from_str(line).ok();
    text.lines().filter_map(value).collect()
}

/// A member of each line of a packed recording.
fn members(root: &Path, name: &str, member: &str) -> Vec<(String, Vec<u8>)> {
    let of = |line: serde_json::Value| {
        let part = &line[member];
        let text = match part.as_str() {
            Some(text) => text.to_string(),
            None => part.to_string(),
        };
        (
            line["name"].as_str().unwrap_or(member).to_string(),
            text.into_bytes(),
        )
    };
    lines(root, name).into_iter().map(of).collect()
}

/// Files of the recording of decisions: their name in the first line, then their first lines.
fn smp(root: &Path, name: &str) -> Vec<(String, Vec<u8>)> {
    const LINES: usize = 6;
    let of = |line: serde_json::Value| {
        let (file, text) = (line["file"].as_str()?, line["text"].as_str()?);
        let whole = file.ends_with(".json");
        let kept: Vec<&str> = text
            .lines()
            .take(if whole { usize::MAX } else { LINES })
            .collect();
        let seed = format!("{file}\n{}\n", kept.join("\n"));
        Some((file.to_string(), seed.into_bytes()))
    };
    let path = format!("kernel-truth-smp/{name}.jsonl.gz");
    lines(root, &path).into_iter().filter_map(of).collect()
}

/// The files of recordings of load tracking: the first lines of the long ones.
fn load_tracking(root: &Path) -> Vec<(String, Vec<u8>)> {
    const LINES: usize = 240;
    let of = |line: serde_json::Value| {
        let first = |key: &str| -> Option<String> {
            let lines: Vec<&str> = line[key].as_str()?.lines().take(LINES).collect();
            Some(lines.join("\n"))
        };
        let case = line["case"].to_string();
        let parts = [case, first("window")?, first("records")?, first("script")?];
        let name = line["case"]["name"].as_str()?.to_string();
        Some((name, parts.join(PART).into_bytes()))
    };
    let recorded = lines(root, "kernel-truth-pelt.jsonl.gz");
    recorded.into_iter().filter_map(of).collect()
}

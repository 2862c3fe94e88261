//! A recording from its file, with progress.

use std::path::Path;

use fairground_trace::Recording;

use crate::failure::Failure;
use crate::progress::bar;

/// Reads a trace, with a bar on a terminal.
///
/// # Errors
/// With the name of the file.
pub fn open(path: &Path, no_progress: bool) -> Result<Recording, Failure> {
    if path == Path::new("-") {
        let read = fairground_trace::open::read(std::io::stdin().lock(), &mut |_| {});
        return read.map_err(|e| Failure::new(format!("standard input: {e}")));
    }
    let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
    let bar = bar(
        bytes,
        "reading {bytes}/{total_bytes} {wide_bar}",
        no_progress,
    );
    let read = fairground_trace::open(path, &mut |at| bar.set_position(at.min(bytes)));
    bar.finish_and_clear();
    read.map_err(|e| Failure::new(format!("{}: {e}", path.display())))
}

//! `fairground compare BASE.json PATCH.json`: two saved results.

use std::path::Path;

use fairground_report::{Compare, Saved, compare_saved};
use fairground_sim::limited;

use crate::args::CompareArgs;
use crate::failure::Failure;

/// Largest saved result that is read: 10 000 runs are about half of it.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// Compares the files.
///
/// # Errors
/// One of them cannot be read or is no such result, or an option says what to simulate.
pub fn compare(args: &CompareArgs, base: &Path, patch: &Path) -> Result<Compare, Failure> {
    let own = [
        ("--base", !args.base.is_empty()),
        ("--base-profile", args.base_profile.is_some()),
        ("--metric", !args.metric.is_empty()),
    ];
    let simulates = [&args.what.given()[..], &own].concat();
    if let Some((option, _)) = simulates.iter().find(|(_, given)| *given) {
        return Err(Failure::with_help(
            format!("{option} says what to simulate, but two files are saved results"),
            "leave it out, or give one scenario file",
        ));
    }
    let result = compare_saved(load(base)?, load(patch)?);
    // With --quiet there is no table that they would stand below.
    let differ = result.notes.iter().filter(|note| note.is_of_conditions());
    for note in differ.filter(|_| args.how.quiet) {
        crate::stderr(&format!("note: {note}\n"));
    }
    Ok(result)
}

fn load(path: &Path) -> Result<Saved, Failure> {
    let name = path.display();
    let cannot =
        |e: std::io::Error| Failure::new(format!("cannot read the saved result `{name}`: {e}"));
    let text = limited::read_text(path, BYTES_MAX).map_err(cannot)?;
    if text.trim().is_empty() {
        let help = "expected what `fairground run --json` or `compare --json` writes";
        return Err(Failure::with_help(format!("`{name}` is empty"), help));
    }
    Saved::parse(&text).map_err(|e| {
        let help = "two files are compared as saved results: write them with --json";
        Failure::with_help(format!("{name}: {e}"), help)
    })
}

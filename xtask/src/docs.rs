//! `docs/patches.md`, made from the engine's own tables, so that it cannot be out of date.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use fairground::policy::{CATALOGUE, Features, PROFILES, decisions};

/// The page, below the root of the repository.
pub const FILE: &str = "docs/patches.md";

/// Writes the page anew.
///
/// # Errors
/// If the file cannot be written.
pub fn write(root: &Path) -> std::io::Result<()> {
    fs::write(root.join(FILE), text())
}

/// The page.
#[must_use]
pub fn text() -> String {
    let mut out = String::from(
        "# Decisions, patches and profiles\n\n\
         Made by `cargo run -p xtask -- docs` from the tables in `crates/fairground/src/policy/`; \
         do not edit.\n\n\
         ## Patches\n\n\
         `--patch NAME` compares `base` with `patch`, both on top of the profile.\n\n\
         | name | change | base | patch | origin |\n| --- | --- | --- | --- | --- |\n",
    );
    for p in CATALOGUE {
        let seed = p.seed.map_or_else(String::new, |n| format!(" ({n:03})"));
        let (base, sets) = (pairs(p.base), pairs(p.sets));
        row(
            &mut out,
            &[
                &format!("`{}`{seed}", p.name),
                p.what,
                &base,
                &sets,
                p.origin,
            ],
        );
    }
    out.push_str(
        "\n## Profiles\n\n\
         `--profile NAME`. A profile sets decisions on top of `linux-6.18`; what no decision names \
         is that of 6.18.\n\n\
         | name | kernel | sets |\n| --- | --- | --- |\n",
    );
    for p in PROFILES {
        row(
            &mut out,
            &[&format!("`{}`", p.name), p.what, &pairs(p.sets)],
        );
    }
    out.push_str(
        "\n## Decisions\n\n\
         `--set NAME=VALUE`.\n\n\
         | name | decides | values | default |\n| --- | --- | --- | --- |\n",
    );
    let default = Features::default();
    for d in decisions() {
        let value = format!("`{}`", (d.get)(&default));
        row(
            &mut out,
            &[&format!("`{}`", d.name), d.what, d.values, &value],
        );
    }
    out
}

fn pairs(pairs: &[(&str, &str)]) -> String {
    let words: Vec<String> = pairs.iter().map(|(n, v)| format!("`{n}={v}`")).collect();
    words.join(", ")
}

fn row(out: &mut String, cells: &[&str]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

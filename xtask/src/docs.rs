//! `docs/patches.md`, made from the engine's own tables, so that it cannot be out of date.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use fairground::policy::{CATALOGUE, Features, PROFILES, decisions};

/// The page, below the root of the repository.
pub const FILE: &str = "docs/patches.md";

const HEAD: &str = "# Decisions, patches and profiles

The scheduler's behaviour is a set of decisions. A **profile** sets them as a kernel version has
them, a **patch** sets those that a published change touches, and `--set` sets single ones, in this
order. So old and new behaviour are in one binary:

    fairground compare --machine spr-8480-2s --profile linux-6.9 --patch cfs-rq-reorder -- hackbench
    fairground compare --machine spr-8480-2s --set run_to_parity=off -- hackbench

Made by `cargo run -p xtask -- docs` from the tables in `crates/fairground/src/policy/`;
do not edit.

## Patches

In `compare`, `--patch NAME` sets the column `base` on one side and `patch` on the other, on top of
the profile; elsewhere it sets `patch`. A number in brackets is
that of the change in `crates/fairground-cli/experiments/`.

| name | change | base | patch | origin |
| --- | --- | --- | --- | --- |
";

/// Writes the page.
///
/// # Errors
/// If the file cannot be written.
pub fn write(root: &Path) -> std::io::Result<()> {
    fs::write(root.join(FILE), text())
}

/// The page.
#[must_use]
pub fn text() -> String {
    let mut out = String::from(HEAD);
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
         `--profile NAME`. A profile sets decisions on top of `linux-6.18`. What no decision\n\
         names is that of 6.18, so an old profile is no emulation of that kernel: see [known\n\
         limits](known-limits.md#old-profiles).\n\n\
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

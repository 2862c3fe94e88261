//! Figures that the built-in files have: a file of one's own spells them in the same way, in the
//! same units.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use super::error::Text;
use super::{BUILTIN, MachineError};

/// The unit of each figure of a table, by its path (`kernel_ops.syscall`).
static UNITS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let mut units = BTreeMap::new();
    for (table, name, figure) in figures() {
        let unit = figure.get("unit").and_then(toml::Value::as_str);
        units.extend(unit.map(|unit| (format!("{table}.{name}"), unit.to_owned())));
    }
    units
});

/// Figures of which a file of this directory has several, by path: those are for people.
static LISTS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut lists = BTreeSet::new();
    for (table, name, figure) in figures() {
        if figure.get("v").is_some_and(toml::Value::is_array) {
            lists.insert(format!("{table}.{name}"));
        }
    }
    lists
});

/// Table, name and content of each figure of the built-in files.
fn figures() -> impl Iterator<Item = (String, String, toml::Value)> {
    // Whether they are well-formed is the parser's business.
    let files = BUILTIN
        .iter()
        .map(|(_, text)| text.parse::<toml::Table>().unwrap_or_default());
    files.flatten().flat_map(|(table, figures)| {
        let figures = match figures {
            toml::Value::Table(figures) => figures,
            _ => toml::Table::new(),
        };
        let of = move |(name, figure)| (table.clone(), name, figure);
        figures.into_iter().map(of)
    })
}

/// Tables of which nothing is computed.
const FOR_PEOPLE: [&str; 2] = ["idle_note.", "transfer_2s."];

/// Whether several numbers may stand where the figure at `path` does. Elsewhere one is used, and
/// would be missed without a word.
pub(super) fn may_be_list(path: &str) -> bool {
    LISTS.contains(path) || FOR_PEOPLE.iter().any(|table| path.starts_with(table))
}

/// Units that a figure is computed with. Other words only explain it, and are free.
const MEASURES: [&str; 4] = ["ns", "cycles", "GHz", "ratio"];

/// How many letters a misspelt name may be away from the right one.
const NEAR: usize = 2;

/// The figure at `path` is in the unit that the simulator takes it for, and no misspelling of one:
/// a file may have figures that are only read by people, but under names of their own.
///
/// # Errors
/// The unit or name that was expected.
pub(super) fn check(
    t: &Text<'_>,
    at: &Range<usize>,
    path: &str,
    unit: &str,
) -> Result<(), MachineError> {
    let is_cache = path.starts_with("cache.");
    let known = UNITS.get(path).map(String::as_str);
    match known.or(is_cache.then_some("ns")) {
        Some(known) if unit != known && MEASURES.contains(&known) => Err(t.bad(
            at.clone(),
            format!("{path} is in `{unit}`"),
            format!("the unit `{known}`"),
        )),
        Some(_) => Ok(()),
        None => match UNITS.keys().find(|known| is_misspelt(path, known)) {
            None => Ok(()),
            Some(known) => {
                let message = format!("{path} is not known");
                Err(t.bad(at.clone(), message, format!("`{known}`, or another name")))
            }
        },
    }
}

/// Each part of `src` is a key of the file's `[sources]`.
///
/// # Errors
/// The one that is not.
pub(super) fn check_source(
    t: &Text<'_>,
    at: &Range<usize>,
    path: &str,
    src: &str,
    sources: &BTreeMap<String, String>,
) -> Result<(), MachineError> {
    let missing = src.split('+').find(|key| !sources.contains_key(*key));
    match missing {
        None => Ok(()),
        Some(key) => {
            let keys: Vec<&str> = sources.keys().map(String::as_str).collect();
            let expected = match keys.is_empty() {
                true => "a table [sources] that says what it is".into(),
                false => format!("a key of [sources]: {}", keys.join(", ")),
            };
            Err(t.bad(
                at.clone(),
                format!("{path} has the source `{key}`"),
                expected,
            ))
        }
    }
}

/// Whether `path` is nearly `known`, not only by its numbers (`host_gap_p95`).
fn is_misspelt(path: &str, known: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(|c| !c.is_numeric()).collect() };
    strsim::damerau_levenshtein(path, known) <= NEAR && letters(path) != letters(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_misspellings_are_told() {
        let t = Text {
            path: "m.toml",
            text: "",
        };
        let told = |path, unit| {
            let result = check(&t, &(0..0), path, unit);
            result.err().map(|e| e.to_string())
        };
        assert_eq!(told("memory.local", "ns"), None);
        assert!(told("cache.l2.latency", "us").is_some());
        let wrong = told("memory.local", "us").unwrap();
        assert!(wrong.contains("memory.local is in `us`"), "{wrong}");
        let wrong = told("kernel_ops.ipi_to_handlr", "ns").unwrap();
        assert!(wrong.contains("not known"), "{wrong}");
        for (path, unit, expected) in [
            ("machine.model_ghz", "MHz", "GHz"),
            ("machine.model_ghz", "clock", "GHz"),
            ("memory.local", "cycles", "ns"),
            ("memory.local", "banana", "ns"),
            ("alu.div64", "ns", "cycles"),
            ("alu.smt_throughput", "percent", "ratio"),
        ] {
            let Err(MachineError::Bad(bad)) = check(&t, &(0..0), path, unit) else {
                panic!("{path} in {unit}");
            };
            assert_eq!(bad.expected, format!("the unit `{expected}`"));
        }
        for own in ["kernel_ops.host_gap_p95", "kernel_ops.my_own_figure"] {
            assert_eq!(told(own, "ns"), None);
        }
    }

    #[test]
    fn a_source_that_is_not_listed_is_told() {
        let t = Text {
            path: "m.toml",
            text: "",
        };
        let sources = BTreeMap::from(["guest", "vendor"].map(|k| (k.to_owned(), String::new())));
        let told = |src| {
            let result = check_source(&t, &(0..0), "memory.local", src, &sources);
            result.err().map(|e| e.to_string())
        };
        assert_eq!(told("guest"), None);
        assert_eq!(told("guest+vendor"), None);
        for (src, key) in [("gest", "gest"), ("guest+me", "me"), ("", "")] {
            let wrong = told(src).unwrap();
            assert!(wrong.contains(&format!("the source `{key}`")), "{wrong}");
        }
    }
}

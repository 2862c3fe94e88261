//! Figures that the built-in files have: a file of one's own spells them in the same way, in the
//! same units.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::error::Text;
use super::{BUILTIN, MachineError};

/// The unit of each figure of a table, by its path (`kernel_ops.syscall`).
static UNITS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let mut units = BTreeMap::new();
    for (_, text) in BUILTIN {
        // Whether they are well-formed is the parser's business.
        let file: toml::Table = text.parse().unwrap_or_default();
        for (table, figures) in &file {
            for (name, figure) in figures.as_table().into_iter().flatten() {
                let unit = figure.get("unit").and_then(toml::Value::as_str);
                units.extend(unit.map(|unit| (format!("{table}.{name}"), unit.to_owned())));
            }
        }
    }
    units
});

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
        Some(known) if is_another_time(unit, known) => Err(t.bad(
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

/// Whether one is milliseconds, say, and the other nanoseconds. Words for what is no time are free.
fn is_another_time(unit: &str, known: &str) -> bool {
    const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];
    unit != known && TIMES.contains(&unit) && TIMES.contains(&known)
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
        assert_eq!(told("machine.model_ghz", "clock"), None);
        for own in ["kernel_ops.host_gap_p95", "kernel_ops.my_own_figure"] {
            assert_eq!(told(own, "ns"), None);
        }
    }
}

//! What stands before and after the tables.

use std::collections::BTreeSet;

use crate::redo::Redo;
use crate::result::{MachineId, Variant};

/// Columns that nothing may reach.
const WIDTH: usize = 99;

/// What was simulated.
pub fn head(version: &str, machine: &MachineId, profile: &str, workload: &[String]) -> String {
    let hash: String = machine.hash.chars().take(12).collect();
    [
        labelled(
            "machine",
            &format!("{} ({hash}), fairground {version}", machine.id),
        ),
        labelled("profile", profile),
        labelled("workload", &workload.join(" ")),
    ]
    .concat()
}

/// How many runs, and in which decisions the variants differ.
pub fn variants_text(variants: &[Variant]) -> String {
    let mut text = match variants {
        [base, patch] if base.runs.len() != patch.runs.len() => labelled(
            "runs",
            &format!("{} of base, {} of patch", base.runs.len(), patch.runs.len()),
        ),
        [base, ..] => labelled("runs", &base.runs.len().to_string()),
        [] => String::new(),
    };
    if let [only] = variants {
        for (name, value) in &only.settings {
            text += &labelled("set", &format!("{name} = {value}"));
        }
    }
    let [base, patch] = variants else { return text };
    let names: BTreeSet<&String> = base
        .decisions
        .keys()
        .chain(patch.decisions.keys())
        .collect();
    for name in names {
        let value = |v: &Variant| v.decisions.get(name).map_or("(none)".into(), String::clone);
        let (before, after) = (value(base), value(patch));
        if before != after {
            text += &labelled("patch", &format!("{name} = {after} (base: {before})"));
        }
    }
    for (name, after) in &patch.settings {
        let before = base.settings.get(name).map_or("(none)", String::as_str);
        if before != after {
            text += &labelled("patch", &format!("{name} = {after} (base: {before})"));
        }
    }
    text
}

/// What to know and how to get the same again.
pub fn foot(redo: &Redo, notes: &[String]) -> String {
    let mut text: String = notes.iter().map(|note| labelled("note", note)).collect();
    for line in redo.command.lines() {
        // In one piece, so that it can be pasted into a shell.
        text += &format!("redo      {line}\n");
    }
    if !redo.seeds.is_empty() {
        let seeds: Vec<String> = redo.seeds.iter().map(u64::to_string).collect();
        text += &labelled("seeds", &seeds.join(" "));
    }
    if !redo.not_modelled.is_empty() {
        text += &labelled(
            "",
            &format!("not modelled: {}", redo.not_modelled.join(", ")),
        );
    }
    if !redo.assumed.is_empty() {
        let figures = if redo.assumed.len() == 1 {
            "figure"
        } else {
            "figures"
        };
        let count = redo.assumed.len();
        text += &labelled(
            "",
            &format!("{count} {figures} of the machine file assumed, not measured (see --json)"),
        );
    }
    text
}

/// `label     words ...`, wrapped, further lines indented.
pub fn labelled(label: &str, words: &str) -> String {
    const INDENT: usize = 10;
    let mut text = String::new();
    let mut line = format!("{label:<INDENT$}");
    for word in words.split_whitespace() {
        if line.len() + word.len() > WIDTH && line.len() > INDENT {
            text += line.trim_end();
            text += "\n";
            line = " ".repeat(INDENT);
        }
        line += word;
        line += " ";
    }
    text + line.trim_end() + "\n"
}

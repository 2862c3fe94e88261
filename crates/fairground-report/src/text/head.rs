//! What stands before and after the tables.

use crate::differing::differing;
use crate::machine::MachineId;
use crate::redo::Redo;
use crate::result::{Compare, Variant};

/// Columns that nothing may reach.
const WIDTH: usize = 99;

/// What was simulated; a replay has no workload.
pub fn head(version: &str, machine: &MachineId, profile: &str, workload: &[String]) -> String {
    head_of(version, &machine.with_parts(), profile, workload)
}

/// The same of a comparison, whose sides may have been saved on two machines.
pub fn head_of_both(result: &Compare) -> String {
    head_of(
        &result.fairground,
        &result.machines(),
        &result.profile,
        &result.workload,
    )
}

fn head_of(version: &str, machine: &str, profile: &str, workload: &[String]) -> String {
    let mut text = labelled("machine", &format!("{machine}, fairground {version}"));
    text += &labelled("profile", profile);
    if !workload.is_empty() {
        text += &labelled("workload", &workload.join(" "));
    }
    text
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
    if let [base, patch] = variants {
        text += &changes_text(["base", "patch"], base, patch);
    }
    text
}

/// In which decisions and settings two variants with these names differ.
pub fn changes_text(names: [&str; 2], base: &Variant, patch: &Variant) -> String {
    let [before_name, label] = names;
    let rows = differing(base, patch).into_iter();
    rows.map(|(name, [before, after])| {
        labelled(
            label,
            &format!("{name} = {after} ({before_name}: {before})"),
        )
    })
    .collect()
}

/// What to know and how to get the same again.
pub fn foot(redo: &Redo, notes: &[String]) -> String {
    let mut text: String = notes.iter().map(|note| labelled("note", note)).collect();
    for line in redo.command.lines() {
        // In one piece, so that it can be pasted into a shell.
        text += &format!("redo      {line}\n");
    }
    if !redo.seeds.is_empty() {
        let words = |seeds: &[u64]| -> String {
            let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
            seeds.join(" ")
        };
        let seeds = words(&redo.seeds);
        if redo.patch_seeds.is_empty() {
            text += &labelled("seeds", &seeds);
        } else {
            text += &labelled("seeds", &format!("base: {seeds}"));
            text += &labelled("", &format!("patch: {}", words(&redo.patch_seeds)));
        }
    }
    if let Some(words) = redo.not_modelled_text() {
        text += &labelled("", &words);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_two_saved_results_are_those_of_each() {
        let redo = Redo {
            seeds: vec![1, 2],
            patch_seeds: vec![3],
            ..Redo::default()
        };
        assert_eq!(
            foot(&redo, &[]),
            "seeds     base: 1 2\n          patch: 3\n"
        );
        let alike = Redo {
            patch_seeds: Vec::new(),
            ..redo
        };
        assert_eq!(foot(&alike, &[]), "seeds     1 2\n");
    }
}

//! The ratchet: what is too long and known. One line per case, `FILE WHAT COUNT`.

use std::collections::BTreeMap;

use super::{Finding, finding};

pub(super) const FILE: &str = "xtask/tidy-ratchet.txt";

const HEAD: &str = "# What is longer than the rules allow: FILE WHAT COUNT. Counts may only go \
                    down;\n# `cargo xtask tidy --ratchet` writes them. New entries need a reason \
                    in the commit.\n";

/// Takes out the findings that the ratchet allows; adds one for each entry that could be lower.
pub(super) fn apply(allowed: &str, findings: Vec<Finding>) -> Vec<Finding> {
    let mut allowed = parse(allowed);
    let mut left = Vec::new();
    for found in findings {
        let key = found
            .size
            .as_ref()
            .map(|(what, _)| (found.file.clone(), what.clone()));
        let count = found.size.as_ref().map_or(0, |&(_, count)| count);
        match key.and_then(|key| allowed.remove(&key)) {
            Some((_, most)) if count == most => {}
            Some((line, most)) if count < most => left.push(lower(line, &found.file, count)),
            _ => left.push(found),
        }
    }
    left.extend(
        allowed
            .into_iter()
            .map(|((file, _), (line, _))| lower(line, &file, 0)),
    );
    left
}

/// The ratchet that allows exactly `findings`.
pub(super) fn text(findings: &[Finding]) -> String {
    let mut lines: Vec<String> = findings
        .iter()
        .filter_map(|f| {
            f.size
                .as_ref()
                .map(|(what, n)| format!("{} {what} {n}\n", f.file))
        })
        .collect();
    lines.sort();
    HEAD.to_string() + &lines.concat()
}

fn lower(line: usize, file: &str, count: usize) -> Finding {
    let now = if count == 0 {
        "within the rules".into()
    } else {
        format!("at {count}")
    };
    let message = format!("{file} is now {now}; run `cargo xtask tidy --ratchet`");
    finding(FILE, line, "ratchet", message)
}

fn parse(text: &str) -> BTreeMap<(String, String), (usize, usize)> {
    let mut allowed = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [file, what, count] = words[..]
            && let Ok(count) = count.parse()
        {
            allowed.insert((file.to_string(), what.to_string()), (number, count));
        }
    }
    allowed
}

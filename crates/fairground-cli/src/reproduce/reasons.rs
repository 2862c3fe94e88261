//! Reasons of misses and cautions in words. Rows that share one are named together, so that a
//! reader meets each once.

use fairground_report::reproduce::Row;

use super::experiment::RowSpec;

/// Why a row is missed.
pub fn why<'a>(spec: &'a RowSpec, row: &'a Row) -> &'a str {
    let why = row.dead.as_deref().or(spec.why.as_deref());
    why.unwrap_or("NOT EXPLAINED")
}

/// Names with a text each become the names of each text, `; ` between them, in the order in which
/// the texts first came.
pub fn grouped(named: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut groups: Vec<(String, String)> = Vec::new();
    for (name, text) in named {
        match groups.iter_mut().find(|(_, known)| *known == text) {
            Some((names, _)) => {
                names.push_str("; ");
                names.push_str(&name);
            }
            None => groups.push((name, text)),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn names_of_one_text_stand_together() {
        let named = [("a", "one"), ("b", "two"), ("c", "one")];
        let named = named
            .map(|(name, text)| (name.into(), text.into()))
            .to_vec();
        let groups = grouped(named);
        let groups: Vec<(&str, &str)> = groups.iter().map(|(n, t)| (&n[..], &t[..])).collect();
        assert_eq!(groups, [("a; c", "one"), ("b", "two")]);
    }
}

//! Groups whose tasks waited mostly for the quota of a group above their own.

use std::collections::BTreeMap;

use crate::result::Variant;

/// Most groups that a note names.
const HELD_NOTED: usize = 3;

/// Groups with a limit of their own whose tasks waited mostly for a quota above, with the group
/// that most of it was for: raising their own limit alone changes little.
pub(crate) fn held_from_above(variant: &Variant) -> Vec<(String, String)> {
    let mut waited: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in variant.runs.iter().flat_map(|run| &run.throttled_by) {
        *waited.entry((&row.group, &row.by)).or_default() += row.ns;
    }
    let of = |group: &str| {
        let rows = waited.iter().filter(move |((of, _), _)| *of == group);
        rows.map(|((_, by), ns)| (*by, *ns)).collect::<Vec<_>>()
    };
    // One without a limit of its own has no other row, and no limit to raise.
    let limited = waited.keys().filter(|(group, by)| group == by);
    let held = limited.filter_map(|(group, _)| {
        let rows = of(group);
        let all: u64 = rows.iter().map(|(_, ns)| ns).sum();
        let own: u64 = rows.iter().filter(|r| r.0 == *group).map(|r| r.1).sum();
        let (by, _) = rows.iter().max_by_key(|(_, ns)| *ns)?;
        (2 * own < all).then(|| ((*group).to_string(), (*by).to_string()))
    });
    held.collect()
}

/// What to say of that; `whose`: of which sides or points.
pub(crate) fn held_words(held: &[(String, String)], whose: &str) -> Option<String> {
    let pair = |(group, by): &(String, String)| format!("{group} for that of {by}");
    let mut told: Vec<String> = held.iter().take(HELD_NOTED).map(pair).collect();
    if held.len() > HELD_NOTED {
        told.push(format!("{} more", held.len() - HELD_NOTED));
    }
    (!held.is_empty()).then(|| {
        format!(
            "{whose}tasks waited mostly for a quota above their group's own: {}. A higher limit of \
             the group itself changes little there",
            told.join(", ")
        )
    })
}

/// The note of a run or of two sides.
pub(crate) fn held_notes(variants: &[Variant]) -> Vec<String> {
    let of = |variant: &Variant| {
        let whose = match variants.len() {
            1 => String::new(),
            _ => format!("in {}, ", variant.name),
        };
        held_words(&held_from_above(variant), &whose)
    };
    variants.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throttled_by::tests::variant;

    #[test]
    fn who_waits_for_a_quota_above_is_named_with_that() {
        let one = variant(&[
            &[
                ("/p", "/p", 90),
                ("/p/a", "/p/a", 10),
                ("/p/a", "/p", 90),
                ("/p/b", "/p", 1),
            ],
            &[
                ("/p", "/p", 0),
                ("/p/a", "/p/a", 75),
                ("/p/a", "/p", 5),
                ("/p/b", "/p", 1),
            ],
        ]);
        let held = [("/p/a".to_string(), "/p".to_string())];
        assert_eq!(held_from_above(&one), held);
        let said = held_notes(std::slice::from_ref(&one)).concat();
        assert!(
            said.starts_with("tasks waited mostly for a quota above"),
            "{said}"
        );
        assert!(
            said.contains("own: /p/a for that of /p. A higher"),
            "{said}"
        );
        let own = variant(&[&[("/p", "/p", 0), ("/p/a", "/p/a", 50), ("/p/a", "/p", 50)]]);
        let none = variant(&[&[("/p", "/p", 0), ("/p/a", "/p/a", 0), ("/p/a", "/p", 0)]]);
        assert!(held_notes(&[own, none]).is_empty());
    }
}

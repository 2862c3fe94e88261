//! In which decisions and files of groups two variants differ.

use std::collections::BTreeSet;

use crate::result::{GroupStat, Variant};

/// What differs, by name: the value in base and in patch.
pub fn differing(base: &Variant, patch: &Variant) -> Vec<(String, [String; 2])> {
    let both = [base, patch];
    let names = |keys: [Vec<&String>; 2]| -> BTreeSet<String> {
        keys.into_iter().flatten().cloned().collect()
    };
    let decisions = names(both.map(|v| v.decisions.keys().collect()));
    let settings = names(both.map(|v| v.settings.keys().collect()));
    let decision = |v: &Variant, name: &str| v.decisions.get(name).cloned();
    let decisions = decisions.into_iter().map(|name| {
        let values = both.map(|v| decision(v, &name).unwrap_or("(none)".into()));
        (name, values)
    });
    let settings = settings.into_iter().map(|name| {
        let values = both.map(|v| setting(v, &name));
        (name, values)
    });
    let all = decisions.chain(settings);
    all.filter(|(_, [b, p])| b != p).collect()
}

/// Whether they differ, and only in decisions that have no part in either.
pub(crate) fn in_vain(base: &Variant, patch: &Variant) -> bool {
    let differing = differing(base, patch);
    let vain =
        |name: &String| base.without_part.contains(name) && patch.without_part.contains(name);
    !differing.is_empty() && differing.iter().all(|(name, _)| vain(name))
}

/// What a file of a group holds in a variant. Where its command line wrote to none, as when two
/// saved results are compared, the groups of its runs say it.
fn setting(variant: &Variant, name: &str) -> String {
    let unknown = || "not saved".to_string();
    if let Some(value) = variant.settings.get(name) {
        return value.clone();
    }
    let Some((path, file)) = name.rsplit_once('/') else {
        return unknown();
    };
    let Some(run) = variant.runs.first() else {
        return unknown();
    };
    let value = |group: &GroupStat| match file {
        "cpu.max" => Some(group.max.clone()),
        "cpu.max.burst" => Some(group.burst.to_string()),
        "cpu.weight" => Some(group.own_weight_text()),
        _ => None,
    };
    let found = run
        .groups
        .iter()
        .filter(|group| is_meant(path, &group.path));
    let found: BTreeSet<Option<String>> = found.map(value).collect();
    match *found.iter().collect::<Vec<_>>() {
        [Some(value)] => value.clone(),
        // All that have a limit are there.
        [] if file == "cpu.max" && run.other_groups.is_none() && !path.contains('*') => {
            "no limit".into()
        }
        [] | [None] => unknown(),
        _ => "mixed".into(),
    }
}

/// Whether `path` means this group: it is its own, or that of a count of groups.
fn is_meant(path: &str, group: &str) -> bool {
    let path = path.trim_start_matches('/');
    let Some(rest) = group.trim_start_matches('/').strip_prefix(path) else {
        return false;
    };
    let number = rest.strip_prefix('.');
    let digits = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || number.is_some_and(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Run;

    fn with(groups: &[(&str, &str)]) -> Variant {
        let group = |(path, max): &(&str, &str)| GroupStat {
            path: (*path).into(),
            max: (*max).into(),
            weight: 100,
            ..GroupStat::default()
        };
        let run = Run {
            groups: groups.iter().map(group).collect(),
            ..Run::new(1)
        };
        Variant {
            runs: vec![run],
            ..Variant::default()
        }
    }

    fn set(mut variant: Variant, name: &str, value: &str) -> Variant {
        variant.settings.insert(name.into(), value.into());
        variant
    }

    #[test]
    fn a_saved_result_without_settings_says_by_its_groups_what_they_hold() {
        let base = || with(&[("/web", "130000 100000"), ("/job.0", "1000 2000")]);
        let told = |base: Variant, name: &str, value: &str| {
            let rows = differing(&base, &set(base.clone(), name, value));
            rows.into_iter().map(|(_, [base, _])| base).next()
        };
        let max = "/web/cpu.max";
        let found = told(base(), max, "200000 100000");
        assert_eq!(found.as_deref(), Some("130000 100000"));
        assert_eq!(told(base(), max, "130000 100000"), None);
        assert_eq!(told(base(), "/web/cpu.weight", "100"), None);
        let told = |base, name| told(base, name, "7").unwrap();
        assert_eq!(told(base(), "/job/cpu.max"), "1000 2000");
        assert_eq!(told(base(), "/other/cpu.max"), "no limit");
        assert_eq!(told(base(), "/web/cpu.idle"), "not saved");
        assert_eq!(told(base(), "/*/cpu.max"), "not saved");
        assert_eq!(told(Variant::default(), max), "not saved");
        let two = with(&[("/job.0", "1 2"), ("/job.1", "3 4"), ("/job.x", "5 6")]);
        assert_eq!(told(two, "/job/cpu.max"), "mixed");
    }
}

//! The nearest known name, for messages about unknown ones.

/// The known name that is most like `given`, if any is like it at all. Which are not is as in
/// `fairground_report::nearest`.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: String = given.chars().take(64).collect::<String>().to_lowercase();
    let scored = known.into_iter().map(|k| (alike(&given, k), k));
    // The first of equals wins, so the answer does not depend on how floats are ordered.
    let best = scored.fold(
        None,
        |best: Option<(f64, &str)>, (score, name)| match best {
            Some((top, _)) if top >= score => best,
            _ => Some((score, name)),
        },
    );
    best.filter(|(score, _)| *score >= 0.7)
        .map(|(_, name)| name)
}

/// The words of a reader of serde's, with the nearest name if they are about one that is not known:
/// they list all in order, the unknown one first, each in backquotes.
#[must_use]
pub fn with_nearest(words: &str) -> String {
    let mut quoted = words.split('`').skip(1).step_by(2);
    let unknown = ["unknown field ", "unknown variant "];
    if !unknown.iter().any(|begin| words.starts_with(begin)) {
        return words.to_owned();
    }
    let given = quoted.next().unwrap_or_default();
    match nearest(given, quoted) {
        Some(near) => format!("{words}; did you mean `{near}`?"),
        None => words.to_owned(),
    }
}

/// From 0 to 1. Of short words one letter more, less or out of place is much to Jaro and Winkler.
fn alike(given: &str, known: &str) -> f64 {
    let known = known.to_lowercase();
    let score = strsim::jaro_winkler(given, &known);
    let slip = given.len() > 2 && strsim::osa_distance(given, &known) == 1;
    if slip { score.max(0.9) } else { score }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_the_names_that_serde_lists() {
        let told = with_nearest("unknown field `atomix`, expected one of `schema`, `atomics`");
        assert!(
            told.ends_with("`atomics`; did you mean `atomics`?"),
            "{told}"
        );
        for same in [
            "unknown field `q`, expected `tids` or `comm`",
            "missing field `tids`",
            "invalid type: string \"`tids`\", expected u32",
        ] {
            assert_eq!(with_nearest(same), same);
        }
    }
}

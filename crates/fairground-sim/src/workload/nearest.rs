//! The nearest known name, for messages about unknown ones.

/// The known name that is most like `given`, if any is like it at all. Which are not is as in
/// `fairground_report::nearest`.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: String = given.chars().take(64).collect::<String>().to_lowercase();
    let scored = known
        .into_iter()
        .map(|k| (strsim::jaro_winkler(&given, &k.to_lowercase()), k));
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

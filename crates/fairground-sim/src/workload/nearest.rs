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

/// From 0 to 1. Of short words one letter more, less or out of place is much to Jaro and Winkler.
fn alike(given: &str, known: &str) -> f64 {
    let known = known.to_lowercase();
    let score = strsim::jaro_winkler(given, &known);
    let slip = given.len() > 2 && strsim::osa_distance(given, &known) == 1;
    if slip { score.max(0.9) } else { score }
}

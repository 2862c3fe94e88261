//! What the words of a comparison mean.

use super::head::labelled;
use crate::result::{Comparison, Verdict};

/// What a word of a comparison means.
pub(crate) const SAME_WORDS: &str = "same: every count of every run is the same";

/// What a verdict per unit of work is on.
pub(crate) const PER_WORDS: &str = "totals of runs that end at a time are judged per unit of \
                                    work, seed by seed";

/// What must be known of many intervals side by side.
pub(crate) const EACH_ALONE: &str =
    "each interval holds at 95 % by itself: of 20 rows without effect, about one excludes 0";

/// What the words of the comparison mean, where they need it.
pub(super) fn legend(rows: &[Comparison]) -> String {
    let mut text = labelled("", EACH_ALONE);
    if rows
        .iter()
        .any(|row| row.differs && row.verdict == Verdict::Noise)
    {
        text += &labelled(
            "",
            "differs: the interval excludes 0, but neither direction is better",
        );
    }
    if rows.iter().any(|row| row.same) {
        text += &labelled("", SAME_WORDS);
    }
    if rows.iter().any(|row| row.shown_per().is_some()) {
        text += &labelled("", PER_WORDS);
    }
    text
}

//! What is told of the records of a file: how many, how many equal.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::truth::Row;

/// What a comparison of decisions says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionVerdict {
    /// Every decision compared is the kernel's.
    Equal,
    /// One or more are not.
    Miss,
    /// Nothing was compared.
    Skipped,
}

impl DecisionVerdict {
    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Miss => "miss",
            Self::Skipped => "skipped",
        }
    }
}

/// One decision over all records of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionRow {
    /// The file.
    pub case: String,
    /// What was decided.
    pub metric: &'static str,
    /// Records in which it was; `equal + different + skipped`.
    pub records: u64,
    /// The engine decides the same.
    pub equal: u64,
    /// The engine decides otherwise.
    pub different: u64,
    /// The record does not determine the decision.
    pub skipped: u64,
    /// Verdict.
    pub verdict: DecisionVerdict,
    /// Why records were skipped, and how many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<&'static str, u64>,
    /// The first differences, with their lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

/// A row of the comparison: decisions of a file, or a number of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SmpRow {
    /// Decisions.
    Decisions(DecisionRow),
    /// A number.
    Number(Row),
}

/// Differences that are shown.
const SHOWN: usize = 3;

/// The rows of a file's counts, without those of which it has no record; of an empty file the
/// first.
pub(super) fn rows(counts: impl IntoIterator<Item = Count>) -> Vec<DecisionRow> {
    let mut rows: Vec<_> = counts.into_iter().map(Count::row).collect();
    if rows.iter().all(|row| row.records == 0) {
        rows.truncate(1);
        for row in &mut rows {
            row.reasons.insert("the file has no record", 0);
        }
    } else {
        rows.retain(|row| row.records > 0);
    }
    rows
}

/// Counts one kind of decision.
pub(super) struct Count {
    row: DecisionRow,
}

impl Count {
    pub(super) fn new(case: &str, metric: &'static str) -> Self {
        Self {
            row: DecisionRow {
                case: case.to_string(),
                metric,
                records: 0,
                equal: 0,
                different: 0,
                skipped: 0,
                verdict: DecisionVerdict::Skipped,
                reasons: BTreeMap::new(),
                differences: Vec::new(),
            },
        }
    }

    /// A decision at `line`; `what` says how it differs.
    pub(super) fn compare(&mut self, same: bool, line: usize, what: impl FnOnce() -> String) {
        self.row.records += 1;
        if same {
            self.row.equal += 1;
            return;
        }
        self.row.different += 1;
        if self.row.differences.len() < SHOWN {
            self.row
                .differences
                .push(format!("line {line}: {}", what()));
        }
    }

    /// A decision whose state may have changed while the kernel looked at it: that it is the same
    /// is told, that it is another one is not held against the engine.
    pub(super) fn compare_changed(&mut self, same: bool, why: &'static str) {
        match same {
            true => self.compare(true, 0, String::new),
            false => self.skip(why),
        }
    }

    /// A record that does not determine the decision.
    pub(super) fn skip(&mut self, why: &'static str) {
        self.row.records += 1;
        self.row.skipped += 1;
        *self.row.reasons.entry(why).or_default() += 1;
    }

    /// The row, with its verdict.
    pub(super) fn row(mut self) -> DecisionRow {
        self.row.verdict = match (self.row.different, self.row.equal) {
            (0, 0) => DecisionVerdict::Skipped,
            (0, _) => DecisionVerdict::Equal,
            _ => DecisionVerdict::Miss,
        };
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_something_compared() {
        let mut count = Count::new("f", "chosen");
        count.skip("changed");
        assert_eq!(count.row.clone(), count.row);
        assert_eq!(Count::new("f", "m").row().verdict, DecisionVerdict::Skipped);
        let mut changed = Count::new("f", "chosen");
        changed.compare_changed(false, "changed");
        changed.compare_changed(true, "changed");
        let row = changed.row();
        assert_eq!((row.equal, row.different, row.skipped), (1, 0, 1));
        count.compare(true, 1, String::new);
        let equal = Count {
            row: count.row.clone(),
        }
        .row();
        assert_eq!(equal.verdict, DecisionVerdict::Equal);
        count.compare(false, 2, || "5 instead of 4".into());
        let row = count.row();
        assert_eq!(row.verdict, DecisionVerdict::Miss);
        assert_eq!((row.records, row.skipped, row.different), (3, 1, 1));
        assert_eq!(row.differences, ["line 2: 5 instead of 4"]);
    }
}

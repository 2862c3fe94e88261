//! What a reader must know before believing the numbers: values, so that code which asks what a
//! note is about looks at its kind and not at its words. They become sentences once
//! (`notes/words.rs`), where a result is written: in text, on the page, in JSON. A saved note comes
//! back as its sentence.
//!
//! `whose` is a side or a point of several; `None` where there is no other that it could be
//! confused with.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::requests::OpenRequests;
use super::waiting::StillWaiting;
use crate::number::Number;

/// One of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Note {
    /// A sentence of elsewhere: of the workload, of the command line, of a saved result.
    Said(String),
    /// It is so of these points.
    Of {
        /// In few words.
        whose: String,
        /// What is so.
        note: Box<Note>,
    },
    /// Of saved results.
    Saved(OfSaved),
    /// Of the runs and their seeds.
    Seeds(OfSeeds),
    /// Of the work that totals are of.
    Work(OfWork),
    /// Of how two sides of one metric were compared.
    Metric(OfMetric),
    /// Of values that runs lack, or that are of too few.
    Values(OfValues),
    /// Of what was still waiting at the end, or waited too much.
    Waiting(OfWaiting),
}

/// What is to know of results that were saved.
#[derive(Clone, Debug)]
pub enum OfSaved {
    /// They differ in what they were made with.
    Differ {
        /// In what, e.g. `machine`.
        what: String,
        /// On the side of base.
        base: String,
        /// On the side of patch.
        patch: String,
    },
    /// One side of a saved comparison is taken.
    LeftOut {
        /// Which of the two results.
        file: &'static str,
        /// Which side.
        taken: &'static str,
        /// The other one.
        other: &'static str,
        /// What differs on the side that is left out, `name = value`.
        sets: Vec<String>,
    },
}

/// What is to know of the runs.
#[derive(Clone, Debug)]
pub enum OfSeeds {
    /// A side has one run, 0 = base, 1 = patch; `None`: both have.
    One(Option<usize>),
    /// A side has two.
    Two,
    /// The sides have other seeds.
    Others,
    /// One was run more than once.
    Repeated {
        /// By whom.
        whose: Option<String>,
        /// Which.
        seed: u64,
    },
    /// What differs between the sides changed no count of any run.
    SameCounts(SameCounts),
}

/// Why two sides are the same in every count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameCounts {
    /// Nothing differs between them.
    Alike,
    /// What differs has no part in either.
    InVain,
    /// The workload did not come to it.
    NotReached,
}

/// What is to know of totals.
#[derive(Clone, Debug)]
pub enum OfWork {
    /// Of these nobody knows how much work they are of.
    Uncounted(Vec<String>),
    /// The sides count other things: what one total of each is of.
    Others([String; 2]),
    /// Runs got nothing done.
    Nothing {
        /// Of what.
        unit: String,
        /// How many runs of base and patch.
        runs: [usize; 2],
    },
}

/// What is to know of a comparison of one metric.
#[derive(Clone, Debug)]
pub enum OfMetric {
    /// It is of all groups with a limit, and these have one on one side only.
    OtherGroups {
        /// The metric.
        metric: String,
        /// Their paths.
        groups: Vec<String>,
    },
    /// These count periods of groups, which are of another length on each side.
    OtherPeriods {
        /// The metrics.
        metrics: Vec<String>,
        /// The groups' paths.
        groups: Vec<String>,
    },
    /// Each side had its own usual time in these groups.
    OwnYardsticks {
        /// The metric.
        metric: String,
        /// Their paths.
        groups: Vec<String>,
    },
    /// Two seeds differ by the same.
    Coincidence(String),
    /// Not all runs have a value.
    Dropped {
        /// The metric.
        metric: String,
        /// Runs of base and patch that have one.
        have: [usize; 2],
        /// Runs of base.
        runs: usize,
        /// Seeds that have it on both sides.
        both: usize,
    },
    /// A change from 0 has no percentage.
    FromZero {
        /// The metric.
        metric: String,
        /// Its unit.
        unit: String,
        /// The change.
        diff: Number,
        /// Its interval.
        ci95_diff: [Number; 2],
    },
    /// The same of several.
    FromZeros(Vec<String>),
}

/// What is to know of values.
#[derive(Clone, Debug)]
pub enum OfValues {
    /// Some runs have none.
    Lacking {
        /// The metric.
        metric: String,
        /// Whose runs.
        whose: Option<String>,
        /// How many have none.
        lacking: usize,
        /// Of how many.
        runs: usize,
    },
    /// Requests come faster than they are answered.
    NotSustained {
        /// By whom, e.g. `in patch`.
        whose: Option<String>,
        /// Kinds of request.
        kinds: Vec<String>,
    },
    /// Requests take as long as the measured time, of clients that wait for answers.
    TooShort {
        /// Of whom, e.g. `in patch`.
        whose: Option<String>,
        /// Kinds of request.
        kinds: Vec<String>,
    },
    /// Too few periods of groups for what is said of throttling.
    FewPeriods {
        /// Whose, e.g. `runs of base have`.
        runs_have: String,
        /// Each group with its fewest.
        groups: BTreeMap<String, u64>,
    },
    /// A percentile of too few values.
    FewRequests {
        /// The metric.
        metric: String,
        /// Whose runs.
        whose: Option<String>,
        /// The fewest in a run.
        fewest: u64,
    },
}

/// What is to know of waiting.
#[derive(Clone, Debug)]
pub enum OfWaiting {
    /// What is usual is not known well in these groups.
    UnreliableUsual(Vec<String>),
    /// In these groups, which waited for quota, nothing is usual.
    NothingUsual(Vec<String>),
    /// Wake-ups that no percentile has.
    Still {
        /// Whose runs.
        whose: Option<String>,
        /// All of these runs together.
        all: StillWaiting,
        /// In so many runs, of how many.
        runs: [usize; 2],
    },
    /// Requests that leave metrics undecided.
    Open {
        /// Whose runs.
        whose: Option<String>,
        /// All of these runs together.
        all: OpenRequests,
        /// In so many runs, of how many.
        runs: [usize; 2],
    },
}

impl Note {
    /// Whether it says that two saved results are of different things.
    #[must_use]
    pub fn is_of_conditions(&self) -> bool {
        matches!(self, Self::Saved(OfSaved::Differ { .. }))
    }

    /// Whether it is about wake-ups that no percentile has.
    pub(crate) fn is_of_still_waiting(&self) -> bool {
        matches!(self, Self::Waiting(OfWaiting::Still { .. }))
    }
}

/// Two are the same if they say the same: one of them may have been saved.
impl PartialEq for Note {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Note {}

impl From<String> for Note {
    fn from(sentence: String) -> Self {
        Self::Said(sentence)
    }
}

impl From<Note> for String {
    fn from(note: Note) -> Self {
        note.to_string()
    }
}

impl JsonSchema for Note {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_note_says_what_it_said_and_its_kind_is_not_read_from_its_words() {
        let note = Note::Saved(OfSaved::Differ {
            what: "machine".into(),
            base: "a".into(),
            patch: "b".into(),
        });
        let text = serde_json::to_string(&note).unwrap();
        assert_eq!(text, "\"the results differ in machine: base a, patch b\"");
        let back: Note = serde_json::from_str(&text).unwrap();
        assert_eq!(back, note);
        assert!(note.is_of_conditions() && !back.is_of_conditions());
    }
}

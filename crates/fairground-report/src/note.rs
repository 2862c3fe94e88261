//! What a reader must know before believing the numbers: values, so that code which asks what a
//! note is about looks at its kind and not at its words. They become sentences once, where a result
//! is written: in text, on the page, in JSON. A saved note comes back as its sentence.
//!
//! `whose` is a side or a point of several; `None` where there is no other that it could be
//! confused with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::few_periods::few_periods_words;
use crate::requests::{few_words, not_sustained_words};
use crate::result::Number;
use crate::text::number;
use crate::watched::{OpenRequests, StillWaiting, nothing_usual_words};

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
    SameCounts {
        /// Nothing differs between them.
        alike: bool,
    },
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

/// What the sides of a comparison are called.
const SIDES: [&str; 2] = ["base", "patch"];

impl Note {
    /// The same of a comparison whose sides have other names than base and patch.
    pub(crate) fn of_sides(&self, sides: [&str; 2]) -> String {
        match self {
            Self::Seeds(of) => of.words(sides),
            Self::Work(of) => of.words(sides),
            Self::Metric(of) => of.words(sides),
            other => other.to_string(),
        }
    }

    /// The sentences of notes.
    pub(crate) fn sentences(notes: &[Self]) -> Vec<String> {
        notes.iter().map(Self::to_string).collect()
    }

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

/// `a`, `b`.
fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// ` of base`, where there is another.
fn of(whose: &Option<String>) -> String {
    let of = whose.as_ref().map(|whose| format!(" of {whose}"));
    of.unwrap_or_default()
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(sentence) => f.write_str(sentence),
            Self::Of { whose, note } => write!(f, "{whose}: {note}"),
            Self::Saved(of) => of.fmt(f),
            Self::Seeds(of) => f.write_str(&of.words(SIDES)),
            Self::Work(of) => f.write_str(&of.words(SIDES)),
            Self::Metric(of) => f.write_str(&of.words(SIDES)),
            Self::Values(of) => of.fmt(f),
            Self::Waiting(of) => of.fmt(f),
        }
    }
}

impl fmt::Display for OfSaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differ { what, base, patch } => {
                write!(
                    f,
                    "the results differ in {what}: base {base}, patch {patch}"
                )
            }
            Self::LeftOut {
                file,
                taken,
                other,
                sets,
            } => write!(
                f,
                "the {file} result is a comparison: its {taken} is taken, its {other} ({}) is \
                 left out",
                sets.join(", ")
            ),
        }
    }
}

impl OfSeeds {
    fn words(&self, [base, patch]: [&str; 2]) -> String {
        match self {
            Self::One(side) => {
                let who = match side {
                    None => "one run per variant has".to_string(),
                    Some(side) => format!("{} has one run, which has", [base, patch][*side]),
                };
                format!("{who} no spread, so there is no interval and no verdict; give more seeds")
            }
            // The t distribution with one degree of freedom.
            Self::Two => "two runs tell almost nothing about a difference: an interval is 12.7 \
                          standard errors to each side, and noise does not mean that there is \
                          none; with 5 runs it is 2.8, so take 5 or more"
                .into(),
            Self::Others => {
                format!("{base} and {patch} ran with different seeds: independent samples, Welch")
            }
            Self::Repeated { whose, seed } => match whose {
                Some(whose) => format!("{whose} ran seed {seed} more than once; it counts once"),
                None => format!("seed {seed} was run more than once; it counts once"),
            },
            Self::SameCounts { alike: true } => {
                format!("{base} and {patch} make the same decisions, so all differences are 0")
            }
            Self::SameCounts { alike: false } => format!(
                "{base} and {patch} are the same in every count of every run: this workload did \
                 not reach what differs between them"
            ),
        }
    }
}

impl OfWork {
    fn words(&self, [base, patch]: [&str; 2]) -> String {
        match self {
            Self::Uncounted(totals) => format!(
                "{}: totals of runs that end at a time, and nothing counts all that was done by \
                 then. Who does more in it has more of them, so see what else changed",
                quoted(totals)
            ),
            Self::Others([of_base, of_patch]) => format!(
                "totals of {base} are per {of_base}, those of {patch} per {of_patch}: no verdict"
            ),
            Self::Nothing {
                unit,
                runs: [of_base, of_patch],
            } => format!(
                "nothing was done ({unit}) in {of_base} runs of {base} and in {of_patch} of \
                 {patch}: totals per {unit} are of the seeds that have some on both sides, without \
                 an interval"
            ),
        }
    }
}

impl OfMetric {
    fn words(&self, [base, patch]: [&str; 2]) -> String {
        match self {
            Self::OtherGroups { metric, groups } => format!(
                "`{metric}` is of all groups with a limit, but one side alone limits {}: no \
                 verdict",
                groups.join(", ")
            ),
            Self::OwnYardsticks { metric, groups } => format!(
                "`{metric}`: {base} and {patch} were made apart, and each took its own usual time \
                 for what is slow in {}: no verdict; compare them in one command, or give both \
                 the same --slow",
                groups.join(", ")
            ),
            Self::Coincidence(metric) => format!(
                "`{metric}` differs by the same in both seeds, which is chance where it varies \
                 from seed to seed: no interval"
            ),
            Self::Dropped {
                metric,
                have: [in_base, in_patch],
                runs,
                both,
            } => format!(
                "`{metric}` has a value in {in_base} of {runs} runs of {base} and in {in_patch} of \
                 {patch}: means and change are of the {both} seeds that have both, without an \
                 interval, for it is no chance who has none"
            ),
            Self::FromZero {
                metric,
                unit,
                diff,
                ci95_diff,
            } => {
                let interval = match ci95_diff {
                    [lo @ Some(_), hi @ Some(_)] => {
                        format!(", 95 % CI [{}, {}],", number(*lo), number(*hi))
                    }
                    _ => String::new(),
                };
                let diff = number(*diff);
                format!(
                    "`{metric}` is 0 in {base}, so its change of {diff} {unit}{interval} has no \
                     percentage"
                )
            }
            Self::FromZeros(metrics) => format!(
                "{} are 0 in {base}, so their changes have no percentage; the JSON has their \
                 intervals (`ci95_diff`)",
                quoted(metrics)
            ),
        }
    }
}

impl fmt::Display for OfValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacking {
                metric,
                whose,
                lacking,
                runs,
            } => write!(
                f,
                "`{metric}`{} has no value in {lacking} of {runs} runs, which its mean leaves out",
                of(whose)
            ),
            Self::NotSustained { whose, kinds } => {
                f.write_str(&not_sustained_words(kinds, whose.as_deref()))
            }
            Self::FewPeriods { runs_have, groups } => {
                f.write_str(&few_periods_words(groups, runs_have))
            }
            Self::FewRequests {
                metric,
                whose,
                fewest,
            } => f.write_str(&few_words(metric, &of(whose), *fewest)),
        }
    }
}

impl fmt::Display for OfWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnreliableUsual(groups) => write!(
                f,
                "what is usual in {} is unreliable: more than a tenth of the stretches waited for \
                 quota, so it is of the periods with least work, or of work that gathered while it \
                 waited. Say with --slow TIME what is slow; compare with --base \
                 '/GROUP/cpu.max=max', or replay with --set of that, shows what is usual without \
                 the limit",
                groups.join(", ")
            ),
            Self::NothingUsual(groups) => f.write_str(&nothing_usual_words(groups)),
            Self::Still {
                whose,
                all,
                runs: [runs, of_runs],
            } => write!(
                f,
                "`wakeup_latency_us`{} lacks {} of {} wake-ups in {runs} of {of_runs} runs: they \
                 had not led to a switch by the end, the longest for {:.3} ms",
                of(whose),
                all.waiting,
                all.wakeups,
                ms(all.longest_ns)
            ),
            Self::Open {
                whose,
                all,
                runs: [runs, of_runs],
            } => write!(
                f,
                "`{}`{}: {} of {} requests had no answer by the end of {runs} of {of_runs} runs, \
                 the oldest for {:.3} ms, so nobody knows {}",
                all.request,
                of(whose),
                all.open,
                all.open + all.ended,
                ms(all.longest_ns),
                quoted(&all.undecided)
            ),
        }
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

    #[test]
    fn the_only_side_needs_no_name() {
        let lacks = |whose: Option<&str>| {
            let whose = whose.map(String::from);
            let (metric, lacking, runs) = ("web.p99".into(), 1, 3);
            let of = OfValues::Lacking {
                metric,
                whose,
                lacking,
                runs,
            };
            of.to_string()
        };
        assert!(lacks(None).starts_with("`web.p99` has no value in 1 of 3 runs"));
        assert!(lacks(Some("base")).starts_with("`web.p99` of base has no value"));
    }
}

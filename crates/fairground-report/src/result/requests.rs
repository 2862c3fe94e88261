//! Requests of a run: those without an answer, and how long they took in each half of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::Number;

/// Requests of one kind that were not answered by the end of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenRequests {
    /// Its name.
    pub request: String,
    /// How many were open.
    pub open: u64,
    /// How many had been answered in the measured time.
    pub ended: u64,
    /// For how long the oldest had been open.
    pub longest_ns: u64,
    /// Metrics that have no value for that reason: so many were open that the percentile of all may
    /// be above every one that was answered.
    pub undecided: Vec<String>,
    /// What each of these is at least: its value if all that were open had been answered then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_least: BTreeMap<String, f64>,
}

/// How long requests of one kind took in each half of the measured time: those that ended in it,
/// and those that were open at its end with the time they had taken by then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Halves {
    /// The kind's name.
    pub request: String,
    /// How many.
    pub requests: [u64; 2],
    /// Mean of what they took; `null` of none.
    pub mean_us: [Number; 2],
    /// How many were open at the beginning of the measured time, in its middle and at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<[u64; 3]>,
    /// How many tasks asked, of the requests that ended in the measured time or were open at its
    /// end: as many as requests if each comes from a task of its own, few if clients wait for an
    /// answer before they ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub askers: Option<u64>,
}

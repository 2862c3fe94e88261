//! What a case is turned into a workload with: the two, what names stand for, and what is refused.

use std::collections::BTreeMap;

use super::case::Case;
use super::others::Others;
use crate::workload::program::{Ns, Workload};

/// The marks that count the turns of a task's loops.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// Passed in each turn.
    pub(super) one: u32,
    /// Passed after each [`AT_ONCE`](super::spinning::AT_ONCE) turns that take no time of their
    /// own.
    pub(super) of_pieces: u32,
}

/// A workload that is being made of a case.
pub(super) struct Builder<'a> {
    pub(super) case: &'a Case,
    pub(super) others: &'a Others,
    pub(super) workload: Workload,
    pub(super) names: Vec<Option<String>>,
    pub(super) pipes: BTreeMap<u32, u32>,
    pub(super) sems: BTreeMap<u32, u32>,
    pub(super) barriers: BTreeMap<u32, u32>,
    pub(super) t0_ns: Ns,
    /// What a turn of a loop takes whose steps take no time.
    pub(super) turn_ns: f64,
    /// Mark that the recorder passes when the threads may know T0.
    pub(super) told: u32,
    pub(super) refused: Vec<(usize, String)>,
}

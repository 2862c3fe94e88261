//! What a scenario file says of its run, and how long that is.

use core::ops::Range;

use super::error::Source;
use super::node::Node;
use crate::workload::program::{Ns, Until, Workload};

/// A name in the file that only the caller can check (a machine, a profile).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Its place, for [`Source::error`].
    pub span: Range<usize>,
}

/// How long to run, said outside of the file; what is not said is the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// Measured time, ns; not 0.
    pub duration_ns: Option<Ns>,
    /// Time before it, ns.
    pub warmup_ns: Option<Ns>,
}

/// A scenario that is right as far as it can be without its machine.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name; the file's name without extension by default.
    pub name: String,
    /// The machine it asks for.
    pub machine: Option<Named>,
    /// The profile it asks for.
    pub profile: Option<Named>,
    /// Ticks per second.
    pub hz: Option<u32>,
    /// Seeds of the runs; empty if the file does not say.
    pub seeds: Vec<u64>,
    /// For errors about it.
    pub source: Source,
    pub(super) root: Node,
    pub(super) length: Length,
    pub(super) is_rt_app: bool,
}

impl Length {
    /// Replaces what the file says.
    pub(super) fn apply(self, w: &mut Workload) {
        let measured_ns = match w.duration {
            Until::Time(end_ns) => Some(end_ns - w.warmup_ns),
            _ => None,
        };
        w.warmup_ns = self.warmup_ns.unwrap_or(w.warmup_ns);
        if let Some(measured_ns) = self.duration_ns.or(measured_ns) {
            w.duration = Until::Time(w.warmup_ns.saturating_add(measured_ns));
        }
    }
}

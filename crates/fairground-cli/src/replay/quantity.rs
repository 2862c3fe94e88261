//! A quantity by which replays are measured, on two sides.

use fairground_report::{Better, MetricInfo};
use fairground_trace::fidelity::{Fidelity, Item, Pair};

/// Two sides and, if the first one is a replay, that one beside the recording.
pub type Both<'a> = (&'a Fidelity, Option<&'a Fidelity>);

/// A quantity on two sides.
pub struct Quantity {
    /// For programs.
    pub name: String,
    /// For people.
    pub label: String,
    /// Its unit.
    pub unit: &'static str,
    /// Which direction users want.
    pub better: Option<Better>,
    /// By which verdict it is to be believed.
    pub item: Item,
    /// What it is of.
    pub of: Of,
    /// Both values.
    pub pair: Pair,
    /// Sides whose value is a lower bound.
    pub at_least: [bool; 2],
    /// Sides that cannot have it.
    pub absent: [bool; 2],
    /// Why a what-if has no verdict on it.
    pub why_not: Option<WhyNot>,
}

/// What a quantity is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All.
    All,
    /// A CPU.
    Cpu,
    /// The n-th thread.
    Thread(usize),
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// A side was stopped, and the value is of what had been done by then.
    Stopped,
    /// A side was held up.
    Beyond,
    /// The what-if does work before it came.
    Early,
}

/// More CPUs than these are shown only if they are used.
const CPUS_SHOWN: usize = 16;

impl Quantity {
    /// Of all, with a value on both sides and no direction.
    pub fn new(name: &str, label: &str, unit: &'static str, item: Item, pair: Pair) -> Self {
        Self {
            name: name.into(),
            label: label.into(),
            unit,
            better: None,
            item,
            of: Of::All,
            pair,
            at_least: [false; 2],
            absent: [false; 2],
            why_not: None,
        }
    }

    /// Less of it is better: waiting.
    pub fn lower(self) -> Self {
        Self {
            better: Some(Better::Lower),
            ..self
        }
    }

    /// With sides whose value is a lower bound.
    pub fn at_least(self, at_least: [bool; 2]) -> Self {
        Self { at_least, ..self }
    }

    /// Whether a table of so many threads, and CPUs in all, has it.
    pub fn is_shown(&self, threads: usize, cpus: usize) -> bool {
        match self.of {
            Of::All => true,
            Of::Cpu => cpus <= CPUS_SHOWN || self.pair.recorded + self.pair.replayed >= 1.0,
            Of::Thread(n) => n < threads,
        }
    }

    /// As a metric of the statistics.
    pub fn info(&self) -> MetricInfo {
        MetricInfo {
            name: self.name.clone(),
            unit: self.unit.into(),
            better: self.better,
            description: self.label.trim_start().into(),
        }
    }
}

impl WhyNot {
    /// For programs and people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Stopped => "a replay was stopped",
            Self::Beyond => {
                "threads computed on beyond the recording's end while others waited with recorded \
                 work"
            }
            Self::Early => "work of a group is done before that may have been there to do",
        }
    }
}

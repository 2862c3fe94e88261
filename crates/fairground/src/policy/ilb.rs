//! Kicking the idle load balancer (patch `ilb-skip-redundant`).
//!
//! Source: "sched/balance: Skip unnecessary updates to idle load balancer's flags", Tim Chen,
//! 2024, for 6.11; the alternative choice of the CPU is from the review of that change.

use crate::value::Cpu;

/// Whether flags that are already set are written again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IlbKick {
    /// Atomic OR always (up to 6.10).
    Always,
    /// Only if it adds a bit.
    SkipRedundant,
}

impl IlbKick {
    /// Whether the flags are looked at before they are written.
    #[inline]
    #[must_use]
    pub const fn looks_first(self) -> bool {
        matches!(self, Self::SkipRedundant)
    }
}

/// Which idle CPU balances for the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IlbPick {
    /// The first one of the mask.
    First,
    /// The next one after the kicking CPU.
    Wrap,
}

impl IlbPick {
    /// Where the search through the mask begins when `kicker` asks.
    #[inline]
    #[must_use]
    pub const fn start(self, kicker: Cpu) -> Cpu {
        match self {
            Self::First => Cpu(0),
            Self::Wrap => Cpu(kicker.0 + 1),
        }
    }
}

//! Kicking the idle load balancer (founding change 001).
//!
//! Source: "sched/balance: Skip unnecessary updates to idle load balancer's flags", Tim Chen,
//! 2024, for 6.11; the alternative choice of the CPU is from the review of that change.

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

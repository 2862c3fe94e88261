//! Kicking the idle load balancer (patch `ilb-skip-redundant`).
//!
//! Source: "sched/balance: Skip unnecessary updates to idle load balancer's flags", Tim Chen,
//! 2024, for 6.11; the alternative choice of the CPU is from the review of that change. What the
//! asked CPU does: "sched/core: Remove the unnecessary need_resched() check in nohz_csd_func()"
//! and "sched/fair: Check idle_cpu() before need_resched() to detect ilb CPU turning busy", K
//! Prateek Nayak, 2024 (Linux 6.13), which name "smp: Optimize send_call_function_single_ipi()"
//! (5.8) as the beginning.

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

/// What an asked CPU, and one that balances for others, takes for a sign that it has got work.
///
/// An idle CPU that watches its flags is woken by the one that asks for a switch, without there
/// being anything to switch to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IlbCsd {
    /// That flag: so who was woken by it does not balance (5.8 to 6.12).
    ChecksResched,
    /// That it is not idle any more.
    IdleOnly,
}

impl IlbCsd {
    /// Whether a request to switch alone ends it.
    #[inline]
    #[must_use]
    pub const fn checks_resched(self) -> bool {
        matches!(self, Self::ChecksResched)
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

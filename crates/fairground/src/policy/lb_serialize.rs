//! When a CPU asks to be the only one that balances between nodes (`SD_SERIALIZE`).
//!
//! Sources: "sched/fair: Skip sched_balance_running cmpxchg when balance is not due", Tim Chen, and
//! "sched/fair: Have SD_SERIALIZE affect newidle balancing", Peter Zijlstra, November 2025, for
//! 6.19, in stable 6.18 from 6.18.10 of February 2026 on.

/// Who takes the word that all CPUs of the machine share (`sched_balance_running`), and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LbSerialize {
    /// Every periodic look at such a level, whether it is due or not; who finds it taken looks
    /// again at the next tick (up to 6.18.9).
    EachLook,
    /// Who balances for its group when that is due; who finds it taken waits for the next interval.
    WhenDue,
    /// The same, and a newly idle CPU, too.
    NewidleToo,
}

impl LbSerialize {
    /// Whether it is taken before the interval is looked at.
    #[inline]
    #[must_use]
    pub const fn at_each_look(self) -> bool {
        matches!(self, Self::EachLook)
    }

    /// Whether an attempt of a CPU that is `newidle` or not takes it.
    #[inline]
    #[must_use]
    pub const fn in_attempt(self, newidle: bool) -> bool {
        match self {
            Self::EachLook => false,
            Self::WhenDue => !newidle,
            Self::NewidleToo => true,
        }
    }
}

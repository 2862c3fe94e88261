//! What the `menu` governor of idle states makes of the last stays. No rules of the scheduler, and
//! the engine asks for none; but in which state a CPU idles decides how late what is woken runs.
//!
//! Sources: `admin-guide/pm/cpuidle.rst`; "cpuidle: menu: Skip tick_nohz_get_sleep_length() call in
//! some cases", Rafael J. Wysocki, 2023 (Linux 6.6); "Eliminate outliers on both ends of the sample
//! set" and "Avoid discarding useful information" (85975daeaa4d), the same, 2025 (6.15), the second
//! of which was taken back for 6.18 and stable kernels (10fad4012234); "Always check timers with
//! tick stopped", the same, 2026 (stable).

/// Which stays count for the typical one, and when the timers are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Menu {
    /// The longest are left out first, and the next timer is always looked at (up to 6.5).
    Longest,
    /// The longest are left out first, and where the typical stay is short no timer is looked at
    /// (6.6 to 6.14).
    SkipTimers,
    /// Whichever is farther from the mean is left out first; if what is left has no typical stay
    /// but is half of them or more, the longest of these is believed (6.15 to 6.17).
    KeepsLongest,
    /// Whichever is farther from the mean is left out first, and timers are looked at where the
    /// tick has been stopped or the typical stay is not short (6.18; also asked for 6.12-stable).
    BothEnds,
}

impl Menu {
    /// Whether the shortest stays may be left out, too.
    #[inline]
    #[must_use]
    pub const fn trims_both_ends(self) -> bool {
        matches!(self, Self::BothEnds | Self::KeepsLongest)
    }

    /// Whether the variance of stays is the mean of their squares less the square of their mean,
    /// which is rounded down ("cpuidle: menu: Use one loop for average and variance computations",
    /// 6.15), not the mean of squared differences.
    #[inline]
    #[must_use]
    pub const fn spread_is_of_squares(self) -> bool {
        matches!(self, Self::BothEnds | Self::KeepsLongest)
    }

    /// Whether a stay is expected to last no longer than the longest of those that count, where
    /// they have nothing else in common.
    #[inline]
    #[must_use]
    pub const fn believes_longest(self) -> bool {
        matches!(self, Self::KeepsLongest)
    }

    /// Whether the next timer is looked at where a stay is expected to be `short`.
    #[inline]
    #[must_use]
    pub const fn looks_at_timers(self, short: bool, tick_stopped: bool) -> bool {
        match self {
            Self::Longest => true,
            Self::SkipTimers | Self::KeepsLongest => !short,
            Self::BothEnds => !short || tick_stopped,
        }
    }
}

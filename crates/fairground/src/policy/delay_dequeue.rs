//! What happens to an entity that goes to sleep owing service.
//!
//! It needs lag, so it has no effect on the CFS pick.

/// `DELAY_DEQUEUE` and `DELAY_ZERO`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayDequeue {
    /// It leaves at once (up to 6.11).
    Off,
    /// It stays on the queue until it is picked, and leaves with its lag.
    Keep,
    /// The same, and a positive lag earned meanwhile is cut to zero (6.12 and later default).
    KeepZero,
}

impl DelayDequeue {
    /// Whether an ineligible sleeper stays queued, where lag is kept
    /// ([`Features::delays_dequeue`](super::Features::delays_dequeue)).
    #[inline]
    #[must_use]
    pub(super) const fn delays(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// The lag with which a delayed sleeper leaves, having `vlag` (virtual ns).
    #[inline]
    #[must_use]
    pub fn lag_after(self, vlag: i64) -> i64 {
        if self.cuts_lag() { vlag.min(0) } else { vlag }
    }

    /// Whether lag earned while delayed is cut.
    #[inline]
    #[must_use]
    pub const fn cuts_lag(self) -> bool {
        matches!(self, Self::KeepZero)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Features, Pick};

    #[test]
    fn nobody_is_delayed_by_cfs() {
        let mut features = Features::default();
        assert!(features.delays_dequeue());
        features.pick = Pick::Cfs;
        assert!(!features.delays_dequeue());
    }
}

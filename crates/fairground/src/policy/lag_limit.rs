//! How much lag an entity keeps when it leaves its queue or changes its weight.
//!
//! Source: changelog of "sched/fair: Fix lag clamp" (Peter Zijlstra, 2026): the bound of EEVDF is
//! about the longest request on the queue, not about the entity's own. That the recorded kernel,
//! 6.18.44, has it: the entity of a group on a queue of 1.4 ms slices keeps 5.40 ms there, a slice
//! and a tick of 4 ms (kernel-truth, load tracking of `e3-quota-50of100-2t`).

/// What the lag is cut to, as service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LagLimit {
    /// Two slices of the entity, as a slice ends at the first tick after it was used up, and at
    /// least a tick (6.6 to the first of 6.18).
    OwnSlice,
    /// The longest slice on the queue and a tick (7.0, and 6.18 as recorded).
    LongestSlice,
}

impl LagLimit {
    /// The limit for an entity with a slice of `own_ns`, ns; `longest` answers for its queue, it
    /// included.
    #[inline]
    pub fn ns(self, own_ns: u64, longest: impl FnOnce() -> u64, tick_ns: u64) -> u64 {
        match self {
            Self::OwnSlice => (2 * own_ns).max(tick_ns),
            Self::LongestSlice => longest() + tick_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LagLimit;

    #[test]
    fn the_longest_slice_counts_or_ones_own() {
        let limit = |l: LagLimit, own: u64| l.ns(own, || 20_000, 4_000);
        assert_eq!(limit(LagLimit::OwnSlice, 1_400), 4_000);
        assert_eq!(limit(LagLimit::OwnSlice, 20_000), 40_000);
        assert_eq!(limit(LagLimit::LongestSlice, 1_400), 24_000);
        assert_eq!(limit(LagLimit::LongestSlice, 20_000), 24_000);
    }
}

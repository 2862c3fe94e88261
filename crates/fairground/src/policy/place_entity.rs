//! Where an entity is placed in virtual time when it joins a queue.

/// The rules of `place_entity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceEntity {
    /// `PLACE_LAG`: keep the lag over sleep (EEVDF).
    pub lag: bool,
    /// `PLACE_DEADLINE_INITIAL`: a new task starts with half a slice (EEVDF).
    pub deadline_initial: bool,
    /// `PLACE_REL_DEADLINE`: keep the rest of the deadline over a move (6.11 and later).
    pub rel_deadline: bool,
    /// `GENTLE_FAIR_SLEEPERS`: half of the latency as credit for sleepers (CFS).
    pub gentle_sleepers: bool,
    /// `START_DEBIT`: a new task starts one slice late (CFS).
    pub start_debit: bool,
}

impl PlaceEntity {
    /// All rules of current kernels.
    pub const LINUX_6_18: Self = Self {
        lag: true,
        deadline_initial: true,
        rel_deadline: true,
        gentle_sleepers: true,
        start_debit: true,
    };
}

impl PlaceEntity {
    /// CFS: where a new entity starts, virtual ns; `debit` is its slice.
    #[inline]
    #[must_use]
    pub const fn initial_vruntime(self, floor: u64, debit: u64) -> u64 {
        if self.start_debit {
            floor.wrapping_add(debit)
        } else {
            floor
        }
    }

    /// CFS: how far before the floor a sleeper may start, virtual ns.
    #[inline]
    #[must_use]
    pub const fn sleeper_credit(self, latency_ns: u64) -> u64 {
        if self.gentle_sleepers {
            latency_ns / 2
        } else {
            latency_ns
        }
    }
}

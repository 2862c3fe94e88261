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

//! Where an entity is placed in virtual time when it joins a queue.

/// When a new task gets its place.
///
/// Source: "sched: Initialize the vruntime of a new task when it is first enqueued", Zhang Qiao,
/// 2024, for 6.12.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceNew {
    /// At fork, beside its parent (`task_fork_fair`, up to 6.11). CFS keeps its distance from the
    /// floor of the parent's queue; with deadlines it is placed once more as it joins its queue,
    /// like anybody, so what a new task is granted has no effect.
    AtFork,
    /// As it joins its queue.
    AtEnqueue,
}

/// The rules of `place_entity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceEntity {
    /// `PLACE_LAG`: keep the lag over sleep (EEVDF).
    pub lag: bool,
    /// `PLACE_DEADLINE_INITIAL`: a new task starts with half a slice (EEVDF).
    pub deadline_initial: bool,
    /// `PLACE_REL_DEADLINE`: keep the rest of the deadline over a move (6.12 and later).
    pub rel_deadline: bool,
    /// `GENTLE_FAIR_SLEEPERS`: half of the latency as credit for sleepers (CFS).
    pub gentle_sleepers: bool,
    /// `START_DEBIT`: a new task starts one slice late (CFS).
    pub start_debit: bool,
    /// When a new task gets its place.
    pub new: PlaceNew,
}

impl PlaceEntity {
    /// All rules of current kernels.
    pub const LINUX_6_18: Self = Self {
        lag: true,
        deadline_initial: true,
        rel_deadline: true,
        gentle_sleepers: true,
        start_debit: true,
        new: PlaceNew::AtEnqueue,
    };
}

impl PlaceEntity {
    /// Whether a new task is placed beside its parent, at fork.
    #[inline]
    #[must_use]
    pub const fn places_at_fork(self) -> bool {
        matches!(self.new, PlaceNew::AtFork)
    }

    /// EEVDF: whether the first request of a new task is half a slice.
    #[inline]
    #[must_use]
    pub const fn halves_first_request(self) -> bool {
        self.deadline_initial && !self.places_at_fork()
    }

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

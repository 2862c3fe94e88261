//! How a queue that is out of quota is kept from running.
//!
//! Source: "Defer throttle when task exits to user", for 6.18.

/// The way of throttling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttle {
    /// The whole queue is taken off its parent at once (up to 6.17).
    WholeQueue,
    /// Each task takes itself off when it returns to user space.
    AtUserReturn,
}

impl Throttle {
    /// Whether throttling is left to the tasks.
    #[inline]
    #[must_use]
    pub const fn is_per_task(self) -> bool {
        matches!(self, Self::AtUserReturn)
    }

    /// Whether the entities of throttled groups keep their weight: nothing in them can run, so
    /// there is nothing to weigh.
    #[inline]
    #[must_use]
    pub const fn freezes_group_weight(self) -> bool {
        matches!(self, Self::WholeQueue)
    }

    /// Runtime of a queue whose group gets a quota, ns. Since 6.18 a queue without runtime cannot
    /// be unthrottled, so it starts with one.
    #[inline]
    #[must_use]
    pub const fn first_runtime(self) -> i64 {
        match self {
            Self::WholeQueue => 0,
            Self::AtUserReturn => 1,
        }
    }

    /// Whether a queue joins the list of leaf queues when it gets its first entity; `throttled` =
    /// its hierarchy is throttled.
    #[inline]
    #[must_use]
    pub const fn joins_leaf_list(self, throttled: bool) -> bool {
        self.is_per_task() || !throttled
    }
}

/// When the period timers of groups fire.
///
/// Source: "sched: Interleave cfs bandwidth timers for improved single thread performance at low
/// utilization", Shrikanth Hegde, 2023, for 6.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeriodPhase {
    /// At multiples of the period, so those of one period all at once. Where between two ticks that
    /// is, is decided when the machine boots, for ticks are not at multiples of theirs (up to 6.3).
    Common,
    /// Each at a phase of its own, drawn at random.
    Random,
}

impl PeriodPhase {
    /// Whether all groups have one phase.
    #[inline]
    #[must_use]
    pub const fn is_common(self) -> bool {
        matches!(self, Self::Common)
    }
}

/// When the throttled time of a queue begins (`throttled_usec`).
///
/// Source: "sched: don't account throttle time for empty groups", Josh Don, 2023 (Linux 6.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThrottledClock {
    /// With its throttling, even if nobody is left on it (up to 6.5).
    AtThrottle,
    /// With the first task that waits.
    Waiting,
}

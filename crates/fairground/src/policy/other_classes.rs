//! How the time that other classes and interrupts take of a CPU is averaged.
//!
//! Source: "track CPU utilization", Vincent Guittot, 2018 (Linux 4.19): averages of real-time and
//! deadline tasks and of interrupts by load tracking, in place of `rt_avg`.

/// What is aged beside the load of fair tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherClasses {
    /// One sum, halved from time to time: blocked load has nothing to age beside it. (The average
    /// itself is that of load tracking here.)
    RtAvg,
    /// An average each, aged whenever blocked load is, also if there never was such a task.
    Pelt,
}

impl OtherClasses {
    /// Whether decaying blocked load ages the averages of other classes, too.
    #[inline]
    #[must_use]
    pub const fn age_with_blocked_load(self) -> bool {
        matches!(self, Self::Pelt)
    }
}

//! Simulated time, and when it is over.

/// Nanoseconds of simulated time.
pub type Ns = u64;

/// When the run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When all tasks have exited, forked ones too.
    AllExit,
    /// At this time from the start.
    Time(Ns),
}

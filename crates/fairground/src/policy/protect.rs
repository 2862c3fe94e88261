//! How long a picked entity is protected from better-placed ones.

/// `RUN_TO_PARITY` and its history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunToParity {
    /// No protection beyond the tick.
    Off,
    /// Until the deadline it had when picked is reached or it becomes ineligible
    /// (6.6 to 6.16: `vlag == deadline` marks the protected stretch).
    OwnSlice,
    /// For the shortest slice on the queue (6.17 and later).
    ShortestSlice,
}

//! Scheduling classes of tasks.

/// Scheduling policy of a task of the fair class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_NORMAL`, also called `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
}

/// A task of the real-time class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// 1 to 99, the most urgent.
    pub priority: u8,
    /// `SCHED_RR`: takes turns with others of its priority. Else `SCHED_FIFO`.
    pub takes_turns: bool,
}

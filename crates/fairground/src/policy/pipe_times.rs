//! Whether reads and writes of a pipe without a name keep the times of its inode. No rule of the
//! scheduler: it is part of what a message costs.
//!
//! Source: "pipe: don't update {a,c,m}time for anonymous pipes", Oleg Nesterov, 2025 (Linux 6.15).

/// Which pipes keep the times of their last read and write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeTimes {
    /// All: each call looks whether the clock of ticks has moved since (`file_accessed`,
    /// `file_update_time`).
    EachCall,
    /// Those with a name in the file system.
    Fifos,
}

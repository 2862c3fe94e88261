//! What the engine asks of the machine.

use fairground::host::{Kick, Timer};
use fairground::value::{Cpu, TaskId};

/// What the engine asked for, with the time at which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Switch on another CPU.
    Resched(Cpu),
    /// Work for a CPU.
    Kick(Cpu, Kick),
    /// Set a timer, ns.
    Start(Timer, u64),
    /// Withdraw a timer.
    Cancel(Timer),
}

/// A task that nobody has is a defect of the machine.
#[must_use]
pub fn no_task(id: TaskId) -> String {
    format!("task {} is in nobody's keeping", id.0)
}

//! A host to whom nothing matters, for engine functions that read and answer.

use fairground::host::{Host, Kick, Timer};
use fairground::task::Task;
use fairground::value::Cpu;

/// Its clock stands still; nobody hears what it is asked for.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    /// What the clock says, ns.
    pub now: u64,
}

impl Host for Quiet {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, _: Task) {}
    fn start_timer(&mut self, _: Timer, _: u64) {}
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        0
    }
}

//! Holding a run to exact times: what a recording fixes and a benchmark leaves to chance.

use super::{Sim, Stuck};
use crate::cache::NS;

impl Sim<'_> {
    /// The ticks of all CPUs fall on `phase_ns` and multiples of the tick after it.
    ///
    /// Since Linux 6.4 the tick is aligned to the clock, so a recording whose window starts on a
    /// multiple of the tick has phase 0.
    pub fn align_ticks(&mut self, phase_ns: u64) {
        self.tick_phase = phase_ns * NS % self.tick;
    }

    /// The initial task number `task` sleeps until `at_ns`, and its grid begins there.
    pub fn start_at(&mut self, task: usize, at_ns: u64) {
        let task = &mut self.tasks[task];
        task.born_ns = at_ns;
        task.grid_ns = at_ns;
        task.due_ns = at_ns;
    }

    /// Runs all events before `at_ns`.
    ///
    /// # Errors
    /// [`Stuck`] when nothing can happen any more but tasks still wait.
    pub fn run_to(&mut self, at_ns: u64) -> Result<(), Stuck> {
        while !self.ended && self.queue.next_at().is_some_and(|at| at < at_ns * NS) {
            self.one_event()?;
        }
        Ok(())
    }

    /// Template of each task that ever existed, by task number.
    pub fn templates(&self) -> Vec<u32> {
        self.tasks.iter().map(|t| t.template).collect()
    }
}

//! The kernel's count of ticks at any time.

use super::BOOT_NS;
use crate::cache::{NS, Ps};

/// Counts ticks, and remembers the last answer for as long as it holds: most questions come in
/// rows, and a division takes longer than anything else about them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jiffies {
    /// When the first tick of the run is.
    phase: Ps,
    /// When `count` is right.
    from: Ps,
    to: Ps,
    count: u64,
}

impl Jiffies {
    /// The first tick of the run is at `phase`.
    pub fn from_phase(phase: Ps) -> Self {
        Self {
            phase,
            ..Self::default()
        }
    }

    /// At `at`; a tick takes `tick_ns`, always the same.
    #[inline]
    pub fn at(&mut self, at: Ps, tick_ns: u64) -> u64 {
        if !(self.from..self.to).contains(&at) {
            self.ask(at, tick_ns);
        }
        self.count
    }

    #[cold]
    fn ask(&mut self, at: Ps, tick_ns: u64) {
        let since_boot = at.saturating_sub(self.phase) / NS + BOOT_NS;
        self.count = since_boot / tick_ns;
        let time = |count: u64| (count * tick_ns).saturating_sub(BOOT_NS) * NS + self.phase;
        // Before the first tick time stands still, as far as jiffies go.
        (self.from, self.to) = match at < self.phase {
            true => (at, self.phase),
            false => (time(self.count), time(self.count + 1)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remembered_answer_is_the_computed_one() {
        let tick_ns = 1_000_000;
        let phase = 300_000 * NS + 7;
        let mut jiffies = Jiffies::from_phase(phase);
        let edges = (0..5).map(|n| phase + n * tick_ns * NS);
        let around = edges.flat_map(|at| (at - 3..at + 3).chain([at + 700_000 * NS]));
        for at in around.clone().chain(around.rev()).chain([0, 1, phase]) {
            let plain = (at.saturating_sub(phase) / NS + BOOT_NS) / tick_ns;
            assert_eq!(jiffies.at(at, tick_ns), plain, "{at}");
        }
    }
}

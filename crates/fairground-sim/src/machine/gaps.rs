//! Time that a guest does not get: the hypervisor takes each CPU away for a moment at a steady
//! rate.
//!
//! The guest's clock runs on, so the scheduler charges the moment to the running task, but its
//! program does not advance. Only computing is stretched here; kernel code is not.
//!
//! With a gap of length L at the begin of each period G, progress since the grid's begin is P(t) =
//! floor(t / G) (G - L) + max(0, t mod G - L); both directions are closed forms, so gaps cost no
//! events.

use crate::cache::{NS, Ps};
use crate::machine_file::Machine;
use crate::rng::Generator;

/// The grid of gaps of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    every: Ps,
    length: Ps,
    /// Time since the grid's begin at time zero.
    phase: Ps,
}

impl Gaps {
    /// Of a CPU of `machine`; none unless its file says so (`kernel_ops.host_gap` in ns, once in
    /// `kernel_ops.host_gap_every`).
    pub fn new(machine: &Machine, rng: &mut Generator) -> Self {
        let ps = |name: &str| {
            let ns = machine.kernel_op_ns(name).unwrap_or(0.0);
            (ns * NS as f64).round() as Ps
        };
        let (every, length) = (ps("host_gap_every"), ps("host_gap"));
        if length == 0 || every <= length {
            return Self::default();
        }
        let phase = rng.below(every);
        Self {
            every,
            length,
            phase,
        }
    }

    /// When a program that computes from `from` on has advanced by `work`.
    #[inline]
    pub fn after(&self, from: Ps, work: Ps) -> Ps {
        if self.length == 0 {
            return from + work;
        }
        let goal = self.progress(from + self.phase) + work;
        let each = self.every - self.length;
        let (full, rest) = (goal / each, goal % each);
        let at = if rest == 0 {
            // Done just before the next gap, not after it.
            full * self.every
        } else {
            full * self.every + self.length + rest
        };
        at.saturating_sub(self.phase).max(from)
    }

    /// How far a program advances between two points in time.
    #[inline]
    pub fn advance(&self, from: Ps, to: Ps) -> Ps {
        if self.length == 0 {
            return to - from;
        }
        self.progress(to + self.phase) - self.progress(from + self.phase)
    }

    fn progress(&self, t: Ps) -> Ps {
        let (full, rest) = (t / self.every, t % self.every);
        full * (self.every - self.length) + rest.saturating_sub(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_work_is_the_time_in_which_it_is_done() {
        let gaps = Gaps {
            every: 1000,
            length: 60,
            phase: 130,
        };
        for from in 0..2500 {
            for work in [1, 7, 800, 939, 940, 941, 5000] {
                let to = gaps.after(from, work);
                assert_eq!(gaps.advance(from, to), work, "{from} {work}");
                assert!(to - from >= work && to - from <= work + 60 * (work / 940 + 1));
            }
        }
    }

    #[test]
    fn without_gaps_work_takes_its_time() {
        let none = Gaps::default();
        assert_eq!(none.after(5, 10), 15);
        assert_eq!(none.advance(5, 15), 10);
    }
}

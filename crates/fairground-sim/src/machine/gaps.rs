//! Time that a guest does not get: the hypervisor takes each CPU away for a moment at a steady
//! rate.
//!
//! The guest's clock runs on, so the scheduler charges the moment to the running task, but neither
//! its program nor kernel code advances. A step of kernel code that a gap cuts ends later by it;
//! what it did for others before has happened when it was simulated. A CPU that is halted has no
//! gaps: the host has nothing to take away.
//!
//! Gaps begin on a grid and differ in length: a file with percentiles of the length has them drawn
//! once for each CPU, [`DRAWN`] in turn. Sums over them are kept, so the way from work to time and
//! back is a division and a search, and gaps cost no events.

use crate::cache::{NS, Ps};
use crate::machine_file::Machine;
use crate::rng::Generator;

/// How many lengths are drawn before they come again (a second of a host's tick of 1 ms).
const DRAWN: u64 = 1024;

/// Percentiles of the length in a machine file, and the share of gaps below each, in 1/1000.
const PERCENTILES: [(&str, u64); 5] = [
    ("host_gap_least", 0),
    ("host_gap", 500),
    ("host_gap_p90", 900),
    ("host_gap_p99", 990),
    ("host_gap_most", 1000),
];

/// The grid of gaps of one CPU.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    every: Ps,
    /// What a program has done when the first, second, ... period has passed; begins with 0. None
    /// at all without gaps.
    done: Vec<Ps>,
    /// Time since the grid's begin at time zero.
    phase: Ps,
    /// Since when the CPU executes, if it does.
    awake: Ps,
}

impl Gaps {
    /// Of a CPU of `machine`; none unless its file says so (`kernel_ops.host_gap` in ns, once in
    /// `kernel_ops.host_gap_every`). Lengths are drawn from `lengths`.
    pub fn new(machine: &Machine, rng: &mut Generator, lengths: &mut Generator) -> Self {
        let known = |name: &str| {
            let ns = machine.kernel_op_ns(name)?;
            Some((ns * NS as f64).round() as Ps)
        };
        let (every, middle) = (known("host_gap_every"), known("host_gap"));
        let (Some(every), Some(middle)) = (every, middle) else {
            return Self::default();
        };
        if middle == 0 || every <= middle {
            return Self::default();
        }
        let phase = rng.below(every);
        let points: Option<Vec<_>> = PERCENTILES
            .iter()
            .map(|(name, share)| known(name).map(|length| (*share, length)))
            .collect();
        match points {
            None => Self::with(every, phase, std::iter::once(middle)),
            Some(points) => {
                let drawn = (0..DRAWN).map(|_| draw(&points, lengths).min(every - 1));
                Self::with(every, phase, drawn)
            }
        }
    }

    fn with(every: Ps, phase: Ps, lengths: impl Iterator<Item = Ps>) -> Self {
        let mut done = vec![0];
        let mut sum = 0;
        for length in lengths {
            sum += every - length;
            done.push(sum);
        }
        Self {
            every,
            done,
            phase,
            awake: 0,
        }
    }

    /// When a program that computes from `from` on has advanced by `work`.
    #[inline]
    pub fn after(&self, from: Ps, work: Ps) -> Ps {
        let Some((&round, before)) = self.done.split_last() else {
            return from + work;
        };
        let goal = self.progress(from + self.phase) + work;
        let periods = before.len() as u64;
        let (rounds, left) = (goal / round, goal % round);
        // The last period that begins with less done; if none, it is done just before the next
        // gap, not after it.
        let within = match self.done.partition_point(|done| *done < left) {
            0 => 0,
            next => {
                let gap = self.every - (self.done[next] - self.done[next - 1]);
                (next - 1) as u64 * self.every + gap + (left - self.done[next - 1])
            }
        };
        let at = rounds * periods * self.every + within;
        at.saturating_sub(self.phase).max(from)
    }

    /// The CPU, which was halted, executes from `at` on.
    #[inline]
    pub fn wakes(&mut self, at: Ps) {
        self.awake = at;
    }

    /// When the gap is over that the executing CPU is in at `at`, if it is in one.
    #[inline]
    pub fn end(&self, at: Ps) -> Option<Ps> {
        if self.done.is_empty() {
            return None;
        }
        let since = (at + self.phase) % self.every;
        let gap = self.gap_of(at);
        (since < gap && since + self.awake <= at).then(|| at + gap - since)
    }

    /// When kernel code is over that began at `from` and has work until `to`: gaps that begin in
    /// between come on top.
    #[inline]
    pub fn cut(&self, from: Ps, to: Ps) -> Ps {
        if self.done.is_empty() {
            return to;
        }
        let mut begin = from + self.every - (from + self.phase) % self.every;
        let mut end = to;
        while begin < end {
            end += self.gap_of(begin);
            begin += self.every;
        }
        end
    }

    /// Length of the gap at the begin of the period in which `at` is.
    fn gap_of(&self, at: Ps) -> Ps {
        let periods = self.done.len() - 1;
        let i = ((at + self.phase) / self.every) as usize % periods;
        self.every - (self.done[i + 1] - self.done[i])
    }

    /// How far a program advances between two points in time.
    #[inline]
    pub fn advance(&self, from: Ps, to: Ps) -> Ps {
        if self.done.is_empty() {
            return to - from;
        }
        self.progress(to + self.phase) - self.progress(from + self.phase)
    }

    fn progress(&self, t: Ps) -> Ps {
        let periods = self.done.len() as u64 - 1;
        let (full, rest) = (t / self.every, t % self.every);
        let (rounds, i) = (full / periods, (full % periods) as usize);
        let (done, next) = (self.done[i], self.done[i + 1]);
        let gap = self.every - (next - done);
        rounds * self.done[self.done.len() - 1] + done + rest.saturating_sub(gap)
    }
}

/// A length from the distribution whose percentiles are `points`, straight lines between them.
fn draw(points: &[(u64, Ps)], rng: &mut Generator) -> Ps {
    const FINE: u64 = 1 << 10;
    let at = rng.below(1000 * FINE);
    let line = points
        .windows(2)
        .find(|line| at < line[1].0 * FINE)
        .unwrap_or(&points[points.len() - 2..]);
    let ((from, low), (to, high)) = (line[0], line[1]);
    low + high.saturating_sub(low) * (at - from * FINE) / ((to - from) * FINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_work_is_the_time_in_which_it_is_done() {
        let alike = Gaps::with(1000, 130, std::iter::once(60));
        for from in 0..2500 {
            let gaps = &alike;
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

    #[test]
    fn gaps_of_many_lengths_give_back_the_work_too() {
        let gaps = Gaps::with(1000, 370, [60, 10, 400, 0, 90].into_iter());
        for from in (0..12_000).step_by(7) {
            for work in [1, 7, 590, 600, 601, 990, 4440, 4441, 30_000] {
                let to = gaps.after(from, work);
                assert_eq!(gaps.advance(from, to), work, "{from} {work}");
                assert!(
                    to == from || gaps.advance(from, to - 1) < work,
                    "{from} {work}"
                );
            }
        }
    }

    #[test]
    fn kernel_code_is_cut_by_the_gaps_that_begin_in_it() {
        let gaps = Gaps::with(1000, 370, [60, 10].into_iter());
        // Gaps of 60 and 10 begin in turn at 630, 1630, 2630 (that at -370 is the first of 60).
        assert_eq!(gaps.end(620), None);
        assert_eq!(gaps.end(630), Some(640));
        assert_eq!(gaps.end(1650), Some(1690));
        assert_eq!(gaps.cut(100, 630), 630);
        assert_eq!(gaps.cut(100, 631), 641);
        assert_eq!(gaps.cut(641, 1630), 1630);
        assert_eq!(gaps.cut(641, 2625), 2695);
        for from in (0..5000).step_by(7) {
            for takes in [1, 30, 999, 2500] {
                let at = gaps.end(from).unwrap_or(from);
                let to = gaps.cut(at, at + takes);
                assert_eq!(gaps.advance(at, to), takes, "{from} {takes}");
            }
        }
        let mut gaps = gaps;
        gaps.wakes(1631);
        assert_eq!(gaps.end(1650), None, "halted when the gap began");
        let none = Gaps::default();
        assert_eq!((none.end(5), none.cut(5, 10)), (None, 10));
    }

    #[test]
    fn lengths_are_as_their_percentiles_say() {
        let points = [
            (0, 2200),
            (500, 6100),
            (900, 8700),
            (990, 22_800),
            (1000, 80_000),
        ];
        let mut rng = crate::rng::generator(1, crate::rng::Purpose::HostGaps);
        let mut drawn: Vec<_> = (0..20_000).map(|_| draw(&points, &mut rng)).collect();
        drawn.sort_unstable();
        let near = |share: usize, length: Ps| {
            let got = drawn[drawn.len() * share / 1000];
            assert!(
                got.abs_diff(length) * 20 < length,
                "{share}: {got} for {length}"
            );
        };
        near(500, 6100);
        near(900, 8700);
        assert!(drawn[0] >= 2200 && drawn[drawn.len() - 1] <= 80_000);
    }
}

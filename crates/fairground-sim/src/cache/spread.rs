//! Lines of one class of distance do not all take the same time.
//!
//! The home of a line is the slice of the socket that its physical address hashes to, so the way
//! from owner to home to requester differs from line to line and from pair to pair, within the
//! range `lo` to `hi` of the machine file's hand-overs: that of a core-to-core matrix where one was
//! found, else that in which the derived figure may lie, an assumption. Here a
//! hash of the line and of the two cores draws from that range, such that the mean stays the
//! file's value. Addresses differ from run to run, so the seed is in the hash.
//!
//! Beside what it is on a machine, this keeps threads with equal programs from going in step for
//! ever, as they do where all distances are equal: small variations of memory latency are what
//! simulators of parallel programs need to see more than one of the ways a run can go
//! (A. Alameldeen and D. Wood, "Variability in Architectural Simulations of Multi-threaded
//! Workloads", HPCA 2003).

use super::{LineId, Ps};
use crate::machine_file::{Distance, Machine};
use crate::rng::{SPLITMIX64_STEP, mix};

/// Parts of 65536.
const ONE: i64 = 1 << 16;

/// Range of a class of distance around its value, in parts of 65536 of it.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    /// At most 0.
    lo: i64,
    /// At least 0.
    hi: i64,
    /// How often a hand-over is shorter than the value: so often that the mean is the value.
    shorter: i64,
}

impl Range {
    fn new(v: f64, lo: f64, hi: f64) -> Self {
        let part = |x: f64| ((x / v - 1.0) * ONE as f64).round() as i64;
        let (lo, hi) = (part(lo).min(0), part(hi).max(0));
        match lo < 0 && hi > 0 {
            true => Self {
                lo,
                hi,
                shorter: ONE * hi / (hi - lo),
            },
            false => Self::default(),
        }
    }
}

/// What each pair of cores takes for each line.
pub(super) struct Spread {
    seed: u64,
    /// By `Distance`.
    ranges: [Range; 5],
}

impl Spread {
    /// No difference at all where `on` is false, or for classes without a range in the file.
    pub fn new(machine: &Machine, seed: u64, on: bool) -> Self {
        let range = |d: Distance| match machine.transfer_range_ns(d) {
            Some((v, lo, hi)) if on && v > 0.0 => Range::new(v, lo, hi),
            _ => Range::default(),
        };
        Self {
            seed,
            ranges: Distance::ALL.map(range),
        }
    }

    /// `latency`, the mean of hand-overs over `distance`, as it is for `line` between two cores.
    #[inline]
    pub fn of(&self, latency: Ps, distance: Distance, cores: (usize, usize), line: LineId) -> Ps {
        let range = self.ranges[distance as usize];
        if range.shorter == 0 {
            return latency;
        }
        let pair = (cores.0.min(cores.1) as u64) << 16 | cores.0.max(cores.1) as u64;
        let key = self.seed ^ (u64::from(line) << 32 | pair);
        let bits = mix(key.wrapping_add(SPLITMIX64_STEP));
        let (which, place) = ((bits & 0xffff) as i64, (bits >> 16 & 0xffff) as i64);
        let part = match which < range.shorter {
            true => range.lo * place / ONE,
            false => range.hi * place / ONE,
        };
        latency.saturating_add_signed(latency as i64 * part / ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean over many lines is the value, and all of the range is used, also where the value is
    /// not in its middle.
    #[test]
    fn the_mean_is_the_value() {
        let spread = Spread {
            seed: 7,
            ranges: [Range::new(65.0, 36.4, 76.0); 5],
        };
        let all: Vec<Ps> = (0..200_000)
            .map(|line| spread.of(65_000, Distance::SameSocket, (3, 9), line))
            .collect();
        let mean = all.iter().sum::<Ps>() as f64 / all.len() as f64;
        assert!((mean - 65_000.0).abs() < 100.0, "{mean}");
        let (min, max) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
        assert!((36_390..36_700).contains(&min), "{min}");
        assert!((75_700..=76_000).contains(&max), "{max}");
    }

    #[test]
    fn a_pair_and_a_line_always_take_the_same_whoever_asks() {
        let m = Machine::builtin("spr-8480-2s").unwrap();
        let s = Spread::new(&m, 1, true);
        let d = Distance::SameSocket;
        assert_eq!(s.of(65_000, d, (3, 9), 5), s.of(65_000, d, (9, 3), 5));
        let different = (0..20).filter(|l| s.of(65_000, d, (3, 9), *l) != 65_000);
        assert!(different.count() > 15);
        let other_run = Spread::new(&m, 2, true);
        let moved =
            (0..20).filter(|l| s.of(65_000, d, (3, 9), *l) != other_run.of(65_000, d, (3, 9), *l));
        assert!(moved.count() > 15);
        let off = Spread::new(&m, 1, false);
        assert_eq!(off.of(65_000, d, (3, 9), 5), 65_000);
    }

    /// Threads of a core share its caches: no way, no difference.
    #[test]
    fn a_class_without_a_range_does_not_differ() {
        let m = Machine::builtin("spr-8480-2s").unwrap();
        let s = Spread::new(&m, 1, true);
        assert_eq!(s.of(9_000, Distance::Smt, (3, 3), 5), 9_000);
    }
}

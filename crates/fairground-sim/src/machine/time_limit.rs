//! How long a run may be. Times are picoseconds in 64 bits, which hold 213 days, and so are sums of
//! what all CPUs do: beyond that they would begin anew, without a word.

use super::Sim;
use super::setup::SetupError;
use super::stuck::Stuck;
use crate::cache::{NS, Ps};
use crate::workload::program::{Ns, Until};

const DAY_NS: Ns = 86_400_000_000_000;
/// Longest run. What a program waits for from there on, its slack and the end of all time of a
/// recording (`validate::TIME_NS_MAX`) still has a number.
const LONGEST_NS: Ns = 100 * DAY_NS;
/// Longest time of all CPUs together.
const OF_ALL_CPUS_NS: Ns = 200 * DAY_NS;

/// How long a run on so many CPUs may be.
fn longest_ns(cpus: usize) -> Ns {
    LONGEST_NS.min(OF_ALL_CPUS_NS / cpus.max(1) as Ns)
}

/// Refuses an end that no run comes to, before it begins.
pub(super) fn check(until: Until, cpus: usize) -> Result<(), SetupError> {
    let longest_ns = longest_ns(cpus);
    match until {
        Until::Time(ends_ns) if ends_ns > longest_ns => Err(SetupError::TooLong {
            ends_s: ends_ns / 1_000_000_000,
            most_s: longest_ns / 1_000_000_000,
            cpus,
        }),
        _ => Ok(()),
    }
}

impl Sim<'_> {
    /// When something is to be done beside the event that is due then: at the end of the warm-up,
    /// and where the run becomes too long.
    pub(super) fn next_milestone(&self) -> Ps {
        let longest = longest_ns(self.cpus.len()) * NS;
        match self.warm {
            true => longest + 1,
            false => self.warmup.min(longest + 1),
        }
    }

    /// An event is due at `at`, behind a milestone.
    ///
    /// # Errors
    /// The run is too long.
    #[cold]
    pub(super) fn pass_milestone(&mut self, at: Ps) -> Result<(), Stuck> {
        let longest_ns = longest_ns(self.cpus.len());
        if at > longest_ns * NS {
            return Err(Stuck::TooLong {
                most_s: longest_ns / 1_000_000_000,
                cpus: self.cpus.len(),
            });
        }
        if !self.warm && at >= self.warmup {
            self.end_warmup();
        }
        self.milestone = self.next_milestone();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_together_stay_within_what_64_bits_hold() {
        for cpus in [1, 2, 3, 384, 512] {
            let all = u128::from(longest_ns(cpus)) * 1000 * cpus as u128;
            assert!(all < u128::from(u64::MAX) * 95 / 100, "{cpus}: {all}");
            assert!(check(Until::Time(longest_ns(cpus)), cpus).is_ok());
            assert!(check(Until::Time(longest_ns(cpus) + 1), cpus).is_err());
        }
        let told = check(Until::Time(1_000_000 * 1_000_000_000), 384).unwrap_err();
        let wanted = "the run would take 1000000 s of simulated time; expected at most 45000 s on \
                      384 CPUs";
        assert_eq!(told.to_string(), wanted);
        assert!(check(Until::AllExit, 384).is_ok());
    }
}

//! Seeded generators, one for each purpose, so that drawing more in one place changes nothing
//! elsewhere.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a generator is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Random decisions of the scheduler.
    Scheduler,
    /// Phases at the start: tick against workload, CPU of the first task.
    Start,
    /// When each domain was balanced last, at the start.
    BalancePhase,
    /// How long a hypervisor takes each CPU away.
    HostGaps,
    /// Durations drawn by one task.
    Task(u32),
}

/// The generator for `purpose` in the run with `seed`.
#[must_use]
pub fn generator(seed: u64, purpose: Purpose) -> Generator {
    let stream = match purpose {
        Purpose::Scheduler => 1,
        Purpose::Start => 2,
        Purpose::BalancePhase => 3,
        Purpose::HostGaps => 4,
        Purpose::Task(id) => 16 + u64::from(id),
    };
    // `seed_from_u64` spreads its argument; an odd multiplier keeps (seed, stream) pairs apart.
    let mixed = seed.wrapping_mul(SPLITMIX64_STEP) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
    Generator(Xoshiro256PlusPlus::seed_from_u64(mixed))
}

/// By what the state of SplitMix64 grows at each number: 2^64 by the golden ratio, made odd.
pub(crate) const SPLITMIX64_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014), for dice that are told
/// by where they fall and not by when: each bit of the result depends on all of `z`.
#[inline]
pub(crate) const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random words.
#[derive(Clone, Debug)]
pub struct Generator(Xoshiro256PlusPlus);

impl Generator {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n` (> 0).
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
}

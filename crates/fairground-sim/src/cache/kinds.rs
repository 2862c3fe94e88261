//! Kinds of touches, their prices, and what is counted.

use super::Ps;

/// How a word is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// A plain load.
    Load = 0,
    /// A plain store; retires through the store buffer.
    Store = 1,
    /// One atomic update: `lock add`, `xadd`, `ldadd`, a lock's swap.
    Rmw = 2,
    /// Load, compute, compare-and-swap, again until it succeeds: `atomic_fetch_or` on x86.
    CasLoop = 3,
}

/// Where a core finds a line in its own caches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    L1,
    L2,
    Gone,
}

/// Why a touch was not a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MissClass {
    /// In the core's own caches.
    Hit = 0,
    /// The core never had the line.
    Cold = 1,
    /// It had, and other lines took the place.
    Capacity = 2,
    /// Another core wrote a word that this touch uses.
    TrueSharing = 3,
    /// Another core wrote the line, but none of the words that this touch uses.
    FalseSharing = 4,
    /// The copy was current but not exclusive: a write had to invalidate the others.
    Upgrade = 5,
}

/// The price of one touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// When the core goes on.
    pub done_at: Ps,
    /// Time spent queueing for the line (part of `done_at - now` unless a store buffer hid it).
    pub wait: Ps,
    /// Unloaded latency of the access, before anything is hidden.
    pub latency: Ps,
    /// Hit, or the reason of the miss. For a CAS loop: of its first transaction.
    pub class: MissClass,
    /// The data came from another core's cache or another L3 domain.
    pub transfer: bool,
    /// The core's L3 domain had no copy.
    pub llc_miss: bool,
    /// Failed attempts of a CAS loop.
    pub retries: u8,
}

/// Counters of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineStats {
    /// Loads.
    pub reads: u32,
    /// Plain stores.
    pub writes: u32,
    /// Atomic updates; a CAS loop counts once.
    pub rmws: u32,
    /// Times the data came from another core or L3 domain.
    pub transfers: u32,
    /// Transfers that crossed sockets.
    pub remote: u32,
    /// Invalidations of other copies without data.
    pub upgrades: u32,
    /// Misses because a used word was written elsewhere.
    pub true_sharing: u32,
    /// Misses because another word of the line was written elsewhere.
    pub false_sharing: u32,
    /// Misses because the line had been displaced.
    pub capacity: u32,
    /// Failed CAS attempts.
    pub cas_failures: u32,
    /// Time spent queueing for the line.
    pub wait: Ps,
}

impl LineStats {
    /// Accesses of any kind.
    #[must_use]
    pub fn touches(&self) -> u64 {
        [self.reads, self.writes, self.rmws]
            .map(u64::from)
            .iter()
            .sum()
    }
}

/// Counters of one L3 domain, as `perf stat` would see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainStats {
    /// Loads, those of locked instructions too, that found no copy in the domain.
    pub llc_load_misses: u64,
    /// Those of them that memory answered, not the caches of another domain.
    pub memory_loads: u64,
    /// Stores that found no copy in the domain.
    pub llc_store_misses: u64,
    /// Loads that left the private caches.
    pub llc_loads: u64,
    /// Stores that left the private caches.
    pub llc_stores: u64,
}

impl DomainStats {
    /// A miss of private caches comes to the domain, and misses there or not. How many load misses
    /// that makes: a locked instruction loads its line too.
    #[inline]
    pub(super) fn count(&mut self, access: Access, from: Answer) -> u64 {
        let miss = u64::from(from != Answer::Here);
        if access == Access::Store {
            self.llc_stores += 1;
            self.llc_store_misses += miss;
            return 0;
        }
        self.llc_loads += 1;
        self.llc_load_misses += miss;
        self.memory_loads += u64::from(from == Answer::Memory);
        miss
    }
}

/// Who answers what has left the private caches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The core's own L3 domain.
    Here,
    /// The caches of another one.
    OtherCaches,
    Memory,
}

impl PartialOrd for Access {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}

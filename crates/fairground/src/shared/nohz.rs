//! Idle balancing's machine-wide words, and the root domain's.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::Relaxed;
use crate::value::{Cpu, CpuMask, MAX_CPUS};

/// The `nohz` structure: CPUs whose tick is stopped, and when somebody must balance for them.
#[derive(Debug)]
pub struct Nohz {
    mask: Vec<AtomicU64>,
    /// Number of CPUs in the mask.
    pub nr_cpus: AtomicU32,
    /// Some idle CPU has load to decay.
    pub has_blocked: AtomicBool,
    /// `next_balance` must be computed anew.
    pub needs_update: AtomicBool,
    /// When the next balance on behalf of idle CPUs is due, jiffies.
    pub next_balance: AtomicU64,
    /// When the blocked load should next be decayed, jiffies.
    pub next_blocked: AtomicU64,
}

impl Nohz {
    /// Nobody idle.
    #[must_use]
    pub fn new() -> Self {
        Self {
            mask: (0..MAX_CPUS / 64).map(|_| AtomicU64::new(0)).collect(),
            nr_cpus: AtomicU32::new(0),
            has_blocked: AtomicBool::new(false),
            needs_update: AtomicBool::new(false),
            next_balance: AtomicU64::new(0),
            next_blocked: AtomicU64::new(0),
        }
    }

    /// The idle CPUs.
    #[must_use]
    pub fn idle_cpus(&self) -> CpuMask {
        CpuMask::from_words(|i| self.mask[i].load(Relaxed))
    }

    /// Adds or removes `cpu`.
    pub fn set_idle(&self, cpu: Cpu, idle: bool) {
        let (word, bit) = (&self.mask[cpu.idx() / 64], 1 << (cpu.0 % 64));
        if idle {
            word.fetch_or(bit, Relaxed);
        } else {
            word.fetch_and(!bit, Relaxed);
        }
    }
}

impl Default for Nohz {
    fn default() -> Self {
        Self::new()
    }
}

/// The root domain's words.
#[derive(Debug, Default)]
pub struct RootDomain {
    /// Some CPU has more than one task: newly-idle balancing is worth a try.
    pub overloaded: AtomicBool,
    /// Some CPU is used beyond its capacity (energy awareness; kept for misfit).
    pub overutilized: AtomicBool,
}

//! The machine as the scheduler sees it: sched domains and groups for each CPU.
//!
//! [`CpuPlace`] says where each CPU is; `build` makes the domains from that, as the kernel does
//! from SMT siblings, clusters, last-level caches, packages and NUMA distances.

mod build;
mod check;
mod domain;
mod group;
mod levels;
mod limits;
mod rings;

pub use build::{CpuPlace, Machine};
pub use check::{MAX_NODES, TopologyError};
pub use domain::{DomainKind, SchedDomain, SdFlags, SdState};
pub use group::{GroupState, GroupType, SchedGroup};

use alloc::vec::Vec;

use crate::value::{Cpu, CpuMask, GroupId, LlcId};

/// All domains and groups of a machine.
#[derive(Debug, Default)]
pub struct Topology {
    /// Where each CPU is.
    pub places: Vec<CpuPlace>,
    /// For each CPU its domains, smallest first.
    pub domains: Vec<Vec<SchedDomain>>,
    /// All groups; domains name them by id.
    pub groups: Vec<SchedGroup>,
    /// For each CPU its last-level cache (`sd_llc_id`).
    pub llc_of: Vec<LlcId>,
    /// For each last-level cache its CPUs.
    pub llc_span: Vec<CpuMask>,
    /// For each CPU the CPUs of its core, itself included (`cpu_smt_mask`).
    pub smt_of: Vec<CpuMask>,
    /// For each CPU the CPUs of its cluster; just itself where there are no clusters.
    pub cluster_of: Vec<CpuMask>,
    /// For each CPU the index of its last-level-cache domain in `domains[cpu]`; `None` if the
    /// CPU has a cache of its own.
    pub sd_llc: Vec<Option<usize>>,
    /// Distances between NUMA nodes as in the SLIT, row by row.
    pub distance: Vec<Vec<u32>>,
}

impl Topology {
    /// Number of CPUs.
    #[must_use]
    pub fn nr_cpus(&self) -> usize {
        self.places.len()
    }

    /// Number of last-level caches.
    #[must_use]
    pub fn nr_llcs(&self) -> usize {
        self.llc_span.len()
    }

    /// A group by its id.
    #[inline]
    #[must_use]
    pub fn group(&self, id: GroupId) -> &SchedGroup {
        &self.groups[id.idx()]
    }

    /// The domains of `cpu`, smallest first.
    #[inline]
    #[must_use]
    pub fn domains(&self, cpu: Cpu) -> &[SchedDomain] {
        self.domains.get(cpu.idx()).map_or(&[], Vec::as_slice)
    }

    /// Whether the CPUs share their last-level cache (`cpus_share_cache`).
    #[inline]
    #[must_use]
    pub fn share_cache(&self, a: Cpu, b: Cpu) -> bool {
        self.llc_of[a.idx()] == self.llc_of[b.idx()]
    }

    /// The last-level-cache domain of `cpu`.
    #[inline]
    #[must_use]
    pub fn llc_domain(&self, cpu: Cpu) -> Option<&SchedDomain> {
        self.sd_llc[cpu.idx()].map(|level| &self.domains[cpu.idx()][level])
    }

    /// Whether cores have several threads somewhere (`sched_smt_active`).
    #[must_use]
    pub fn smt_active(&self) -> bool {
        self.smt_of.iter().any(|m| m.weight() > 1)
    }
}

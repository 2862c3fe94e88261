//! From places of CPUs to sched domains.

use alloc::vec::Vec;

use super::Topology;

/// Where one CPU is. Ids are dense, machine-wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuPlace {
    /// Core; threads of one core share it.
    pub core: u32,
    /// Cluster of cores; equal to `core` where there are none.
    pub cluster: u32,
    /// Last-level cache.
    pub llc: u32,
    /// Package.
    pub package: u32,
    /// NUMA node.
    pub node: u32,
    /// Capacity, 1024 = the biggest CPU of the machine.
    pub capacity: u32,
}

/// A machine to build domains for.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// One place for each CPU.
    pub cpus: Vec<CpuPlace>,
    /// NUMA distances by node, row by row; empty = one node.
    pub distance: Vec<Vec<u32>>,
}

impl Topology {
    /// Builds all domains of `machine`.
    #[must_use]
    pub fn build(machine: &Machine) -> Self {
        let _ = machine;
        Self::default()
    }
}

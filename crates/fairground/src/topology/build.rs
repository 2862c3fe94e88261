//! From places of CPUs to sched domains.
//!
//! Read `levels` (which CPUs each level spans), `limits` (what a level is allowed) and `rings`
//! (the groups of a domain) with this file; here they are put together and what adds nothing is
//! left out.

use alloc::vec::Vec;

use super::levels::Raw;
use super::{SchedDomain, SdState, Topology, TopologyError, check, levels, limits, rings};
use crate::policy::DomainLimits;
use crate::value::{Cpu, CpuMask, GroupId, LlcId, SCHED_CAPACITY_SCALE};

/// Where one CPU is. Ids are dense, machine-wide. The default is a thread of the first core: CPUs
/// that all have it are threads of one core. [`Machine::flat`] makes cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuPlace {
    /// Core; threads of one core share it, and all below.
    pub core: u32,
    /// Cluster of cores; equal to `core` where there are none. It is within a cache, or has all of
    /// one or several and counts for nothing.
    pub cluster: u32,
    /// Last-level cache; one over several nodes counts as one in each.
    pub llc: u32,
    /// Package. Not used by the domains: `PKG` is a NUMA node, as in the kernel.
    pub package: u32,
    /// NUMA node; that of all threads of a core.
    pub node: u32,
    /// Capacity, 1024 at most = the biggest CPU of the machine; 0 is taken for 1024.
    pub capacity: u32,
}

/// A machine to build domains for.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// One place for each CPU.
    pub cpus: Vec<CpuPlace>,
    /// NUMA distances by node, row by row: square, and each node nearest to itself. Empty =
    /// all nodes are equally far from each other.
    pub distance: Vec<Vec<u32>>,
    /// Distance beyond which tasks are not placed at fork, exec and wake-up
    /// (`node_reclaim_distance`); 0 = the kernel's 30. The kernel sets 32 on AMD EPYC.
    pub reclaim_distance: u32,
}

impl Machine {
    /// Cores of one thread each that share a cache, all as big.
    #[must_use]
    pub fn flat(cpus: u32) -> Self {
        let place = |core| CpuPlace {
            core,
            cluster: core,
            ..CpuPlace::default()
        };
        Self {
            cpus: (0..cpus).map(place).collect(),
            ..Self::default()
        }
    }
}

impl Topology {
    /// Builds all domains of `machine`.
    ///
    /// Source: "Scheduler Domains" in the kernel's documentation, the changelogs named in
    /// `SOURCES.md`, and `/sys/kernel/debug/sched/domains` of three machines.
    ///
    /// # Errors
    /// [`TopologyError`], of a machine that cannot be.
    pub fn build(machine: &Machine) -> Result<Self, TopologyError> {
        check::check(machine)?;
        let mut places = machine.cpus.clone();
        for place in &mut places {
            if place.capacity == 0 {
                place.capacity = SCHED_CAPACITY_SCALE as u32;
            }
        }
        let raw = levels::chains(&places, machine);
        let mut top = Self {
            smt_of: levels::masks(&places, levels::smt_mask),
            cluster_of: Vec::new(),
            distance: levels::distances(&places, machine),
            places,
            ..Self::default()
        };
        let mut rings = rings::Rings::new(&raw, top.smt_of.clone());
        top.domains = (0..raw.len())
            .map(|cpu| domains_of(&raw, Cpu(cpu as u32), &mut rings))
            .collect();
        top.groups = rings.groups;
        top.fill_capacities();
        top.find_caches();
        top.limit_domains(DomainLimits::Weight16);
        Ok(top)
    }

    /// Gives all domains the intervals and margins of a kernel; they begin with the shortest
    /// interval.
    pub fn limit_domains(&mut self, limits: DomainLimits) {
        for sd in self.domains.iter_mut().flatten() {
            let flags = &sd.flags;
            let level = [flags.share_cpucapacity, flags.share_llc, flags.numa];
            let limit = limits.of(sd.weight, level);
            [sd.min_interval_ms, sd.max_interval_ms] = limit.interval_ms;
            (sd.busy_factor, sd.imbalance_pct) = (limit.busy_factor, limit.imbalance_pct);
            sd.state.balance_interval_ms = sd.min_interval_ms.into();
        }
    }

    /// First capacities of all groups, as if no CPU had ever been used by another class.
    fn fill_capacities(&mut self) {
        use core::sync::atomic::Ordering::Relaxed;
        for group in &self.groups {
            let of = |cpu: Cpu| u64::from(self.places[cpu.idx()].capacity);
            let state = &group.state;
            let sum = group.span.iter().map(of).sum();
            state.capacity.store(sum, Relaxed);
            let (min, max) = (
                group.span.iter().map(of).min(),
                group.span.iter().map(of).max(),
            );
            state.min_capacity.store(min.unwrap_or(1), Relaxed);
            state.max_capacity.store(max.unwrap_or(1), Relaxed);
        }
    }

    /// Last-level caches and clusters by CPU: the largest domain that shares a cache, the
    /// smallest that is a cluster.
    fn find_caches(&mut self) {
        let n = self.nr_cpus();
        self.sd_llc = self
            .domains
            .iter()
            .map(|sds| sds.iter().rposition(|sd| sd.flags.share_llc))
            .collect();
        let alone = |cpu: usize| CpuMask::of(Cpu(cpu as u32));
        let span = |top: &Self, cpu: usize| match top.sd_llc[cpu] {
            Some(level) => top.domains[cpu][level].span,
            None => alone(cpu),
        };
        for cpu in 0..n {
            let mask = span(self, cpu);
            let known = self.llc_span.iter().position(|m| *m == mask);
            let id = known.unwrap_or_else(|| {
                self.llc_span.push(mask);
                self.llc_span.len() - 1
            });
            self.llc_of.push(LlcId(id as u32));
            let cluster = self.domains[cpu].iter().find(|sd| sd.flags.cluster);
            self.cluster_of
                .push(cluster.map_or_else(|| alone(cpu), |sd| sd.span));
        }
    }
}

/// The domains of one CPU that do something, smallest first.
fn domains_of(raw: &[Vec<Raw>], cpu: Cpu, rings: &mut rings::Rings<'_>) -> Vec<SchedDomain> {
    let imb = limits::imb_numa_nr(&raw[cpu.idx()]);
    limits::worth_keeping(&raw[cpu.idx()])
        .into_iter()
        .enumerate()
        .map(|(index, (level, flags))| {
            let sd = &raw[cpu.idx()][level];
            let weight = sd.span.weight();
            let groups: Vec<GroupId> = rings.ring(cpu, level);
            SchedDomain {
                kind: sd.kind,
                level: index as u32,
                span: sd.span,
                weight,
                groups,
                flags,
                min_interval_ms: 0,
                max_interval_ms: 0,
                busy_factor: 0,
                imbalance_pct: 0,
                cache_nice_tries: limits::cache_nice_tries(&sd.flags),
                imb_numa_nr: imb[level],
                distance: sd.distance,
                state: first_state(),
            }
        })
        .collect()
}

/// The state of a domain that has never balanced; half of its newly-idle attempts count as
/// successful.
fn first_state() -> SdState {
    SdState {
        newidle_call: 512.into(),
        newidle_success: 256.into(),
        newidle_ratio: 512.into(),
        ..SdState::default()
    }
}

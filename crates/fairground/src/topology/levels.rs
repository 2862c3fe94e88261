//! Which CPUs each level spans, before anything is left out.
//!
//! From small to large: threads of a core, cores of a cluster, CPUs of a last-level cache, CPUs
//! of a node, then for each NUMA distance of the machine the nodes within it. A CPU's chain ends
//! at the first level that spans the machine.

use alloc::vec::Vec;

use super::{CpuPlace, DomainKind, Machine, SdFlags};
use crate::value::{Cpu, CpuMask};

/// Distance of a node to itself (`LOCAL_DISTANCE`).
pub(super) const LOCAL_DISTANCE: u32 = 10;
/// Distance to another node where the machine says nothing (`REMOTE_DISTANCE`).
const REMOTE_DISTANCE: u32 = 20;
/// `RECLAIM_DISTANCE`, the default of `node_reclaim_distance`.
const RECLAIM_DISTANCE: u32 = 30;

/// One level of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) kind: DomainKind,
    pub(super) span: CpuMask,
    pub(super) flags: SdFlags,
    pub(super) distance: u32,
}

/// The chain of each CPU, smallest level first. Chains of different length agree level by level.
pub(super) fn chains(places: &[CpuPlace], machine: &Machine) -> Vec<Vec<Raw>> {
    let all = CpuMask::first_n(places.len());
    let distance = distances(places, machine);
    let smt = masks(places, smt_mask);
    let cluster = masks(places, cluster_mask);
    let mc = masks(places, llc_mask);
    let node = masks(places, node_mask);
    let far = distinct(places, &distance);
    let reclaim = match machine.reclaim_distance {
        0 => RECLAIM_DISTANCE,
        given => given,
    };
    (0..places.len())
        .map(|cpu| {
            let near = [
                (DomainKind::Smt, smt[cpu]),
                (DomainKind::Cluster, cluster[cpu]),
                (DomainKind::Mc, mc[cpu]),
                (DomainKind::Pkg, node[cpu]),
            ];
            let near = near.map(|(kind, span)| (kind, span, LOCAL_DISTANCE));
            let row = &distance[places[cpu].node as usize];
            let numa = far.iter().map(|d| {
                let span = within(places, row, *d);
                (DomainKind::Numa, span, *d)
            });
            let mut chain = Vec::new();
            for (kind, span, distance) in near.into_iter().chain(numa) {
                let flags = flags_of(kind, distance > reclaim, asymmetric(places, &span));
                push(&mut chain, kind, span, flags, distance);
                if span == all {
                    break;
                }
            }
            chain
        })
        .collect()
}

/// Appends a level. Where capacities differ, the level below does not spread tasks evenly.
fn push(chain: &mut Vec<Raw>, kind: DomainKind, span: CpuMask, flags: SdFlags, distance: u32) {
    if flags.asym_cpucapacity
        && let Some(child) = chain.last_mut()
    {
        child.flags.prefer_sibling = false;
    }
    chain.push(Raw {
        kind,
        span,
        flags,
        distance,
    });
}

/// What a level is meant to do.
fn flags_of(kind: DomainKind, beyond_reclaim: bool, asym_cpucapacity: bool) -> SdFlags {
    let numa = kind == DomainKind::Numa;
    let place = !(numa && beyond_reclaim);
    SdFlags {
        balance: true,
        balance_newidle: true,
        balance_exec: place,
        balance_fork: place,
        wake_affine: place,
        share_cpucapacity: kind == DomainKind::Smt,
        share_llc: matches!(kind, DomainKind::Smt | DomainKind::Cluster | DomainKind::Mc),
        cluster: kind == DomainKind::Cluster,
        serialize: numa,
        prefer_sibling: !numa,
        overlap: kind.overlaps(),
        numa,
        asym_cpucapacity,
    }
}

/// For each CPU the CPUs for which `mask` holds.
pub(super) fn masks(
    places: &[CpuPlace],
    mask: fn(&[CpuPlace], &CpuPlace) -> CpuMask,
) -> Vec<CpuMask> {
    places.iter().map(|place| mask(places, place)).collect()
}

fn those(places: &[CpuPlace], test: impl Fn(&CpuPlace) -> bool) -> CpuMask {
    let with_index = places.iter().enumerate();
    with_index
        .filter(|(_, place)| test(place))
        .map(|(i, _)| Cpu(i as u32))
        .collect()
}

/// The threads of the core.
pub(super) fn smt_mask(places: &[CpuPlace], of: &CpuPlace) -> CpuMask {
    those(places, |p| p.core == of.core && p.node == of.node)
}

/// The cluster of cores, if it is smaller than the last-level cache; else the core
/// (`cpu_clustergroup_mask` of arm64).
fn cluster_mask(places: &[CpuPlace], of: &CpuPlace) -> CpuMask {
    let core = smt_mask(places, of);
    let cluster = those(places, |p| p.cluster == of.cluster && p.node == of.node).or(&core);
    if llc_mask(places, of).is_subset(&cluster) {
        core
    } else {
        cluster
    }
}

/// The last-level cache within the node: a cache over several nodes counts as one in each
/// (sub-NUMA clustering).
fn llc_mask(places: &[CpuPlace], of: &CpuPlace) -> CpuMask {
    let cache = those(places, |p| p.llc == of.llc && p.node == of.node);
    cache.or(&smt_mask(places, of))
}

fn node_mask(places: &[CpuPlace], of: &CpuPlace) -> CpuMask {
    those(places, |p| p.node == of.node)
}

/// The CPUs of nodes within `distance`, whose row of the table is `row`.
fn within(places: &[CpuPlace], row: &[u32], distance: u32) -> CpuMask {
    those(places, |p| row[p.node as usize] <= distance)
}

/// Whether the CPUs of `span` differ in capacity.
fn asymmetric(places: &[CpuPlace], span: &CpuMask) -> bool {
    let mut capacities = span.iter().map(|cpu| places[cpu.idx()].capacity);
    let first = capacities.next();
    capacities.any(|c| Some(c) != first)
}

/// Distances from each node to each, complete and square.
pub(super) fn distances(places: &[CpuPlace], machine: &Machine) -> Vec<Vec<u32>> {
    let nodes = places.iter().map(|p| p.node as usize + 1).max();
    let nodes = nodes.unwrap_or(0).max(machine.distance.len());
    let of = |a: usize, b: usize| {
        let given = machine.distance.get(a).and_then(|row| row.get(b));
        let assumed = if a == b {
            LOCAL_DISTANCE
        } else {
            REMOTE_DISTANCE
        };
        given.copied().unwrap_or(assumed)
    };
    (0..nodes)
        .map(|a| (0..nodes).map(|b| of(a, b)).collect())
        .collect()
}

/// The distances between nodes with CPUs, ascending, without the smallest, which is the node's
/// own.
fn distinct(places: &[CpuPlace], distance: &[Vec<u32>]) -> Vec<u32> {
    let mut nodes: Vec<usize> = places.iter().map(|p| p.node as usize).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let row = |a: usize| nodes.iter().map(move |b| (a, *b));
    let mut all: Vec<u32> = nodes
        .iter()
        .flat_map(|a| row(*a))
        .map(|(a, b)| distance[a][b])
        .collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().skip(1).collect()
}

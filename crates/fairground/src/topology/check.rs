//! Which machines are none: refused before anything is built from them.

use core::fmt;

use super::{CpuPlace, Machine};
use crate::value::{Cpu, MAX_CPUS, SCHED_CAPACITY_SCALE};

/// Nodes are numbered below this (the kernel's largest `MAX_NUMNODES`).
pub const MAX_NODES: usize = 1024;

/// Why a [`Machine`] has no [`Topology`](super::Topology).
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TopologyError {
    /// It has no CPU.
    NoCpu,
    /// It has more than [`MAX_CPUS`].
    TooManyCpus(usize),
    /// A CPU is on a node that is not in the table of distances, or, without a table, not below
    /// [`MAX_NODES`].
    NodeOutOfRange {
        /// The CPU.
        cpu: Cpu,
        /// Its node.
        node: u32,
    },
    /// A CPU's capacity is above that of the biggest, [`SCHED_CAPACITY_SCALE`]: its load-tracking
    /// clock would run faster than time.
    TooMuchCapacity {
        /// The CPU.
        cpu: Cpu,
        /// Its capacity.
        capacity: u32,
    },
    /// Threads of one core are on two nodes.
    CoreOnTwoNodes {
        /// The first thread of the core.
        cpu: Cpu,
        /// One that is on another node.
        other: Cpu,
    },
    /// Threads of one core have two last-level caches.
    CoreOnTwoCaches {
        /// The first thread of the core.
        cpu: Cpu,
        /// One that has another cache.
        other: Cpu,
    },
    /// Threads of one core are in two clusters.
    CoreInTwoClusters {
        /// The first thread of the core.
        cpu: Cpu,
        /// One that is in another cluster.
        other: Cpu,
    },
    /// A cluster and a last-level cache of one node have CPUs in common, and neither is within the
    /// other.
    ClusterOnTwoCaches {
        /// A CPU of both.
        cpu: Cpu,
        /// One of the cluster that has another cache.
        other: Cpu,
    },
    /// The table of distances has more than [`MAX_NODES`] rows, or this row of it has not as many
    /// columns as there are rows.
    NotSquare {
        /// The row.
        row: usize,
    },
    /// A node is not nearer to itself than to another.
    NotNearest {
        /// The node.
        node: usize,
        /// The other.
        other: usize,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCpu => f.write_str("a machine without a CPU"),
            Self::TooManyCpus(n) => write!(f, "{n} CPUs, at most {MAX_CPUS}"),
            Self::NodeOutOfRange { cpu, node } => {
                write!(f, "CPU {} is on node {node}, which there is not", cpu.0)
            }
            Self::TooMuchCapacity { cpu, capacity } => write!(
                f,
                "CPU {} has a capacity of {capacity}, at most {SCHED_CAPACITY_SCALE}",
                cpu.0
            ),
            Self::CoreOnTwoNodes { cpu, other } => write!(
                f,
                "CPU {} and CPU {} are threads of one core, but on two nodes",
                cpu.0, other.0
            ),
            Self::CoreOnTwoCaches { cpu, other } => write!(
                f,
                "CPU {} and CPU {} are threads of one core, but have two caches",
                cpu.0, other.0
            ),
            Self::CoreInTwoClusters { cpu, other } => write!(
                f,
                "CPU {} and CPU {} are threads of one core, but in two clusters",
                cpu.0, other.0
            ),
            Self::ClusterOnTwoCaches { cpu, other } => write!(
                f,
                "CPU {} and CPU {} are in one cluster, but have two caches, of which that of the \
                 first is not all in the cluster",
                cpu.0, other.0
            ),
            Self::NotSquare { row } => {
                write!(f, "the table of distances is not square in row {row}")
            }
            Self::NotNearest { node, other } => {
                write!(f, "node {node} is as near to node {other} as to itself")
            }
        }
    }
}

impl core::error::Error for TopologyError {}

/// What has to hold for the levels and rings that are built.
///
/// A node nearer to another than to itself would not be in its own domain; nor does the kernel take
/// such a table from firmware. One that is not symmetric is taken, as there: it is what some
/// machines report (`slit_snc3` of `machines/`). A cache over several nodes is taken too: it counts
/// as one in each (sub-NUMA clustering). So is a cluster that has all of a cache or of several: it
/// adds no level.
///
/// Otherwise the spans of a level below NUMA are equal or disjoint, and each is within one of the
/// level above, as the kernel asks (`topology_span_sane`).
pub(super) fn check(machine: &Machine) -> Result<(), TopologyError> {
    match machine.cpus.len() {
        0 => return Err(TopologyError::NoCpu),
        n if n > MAX_CPUS => return Err(TopologyError::TooManyCpus(n)),
        _ => {}
    }
    let table = &machine.distance;
    let nodes = table.len();
    let known = if nodes == 0 { MAX_NODES } else { nodes };
    for (cpu, place) in (0..).map(Cpu).zip(&machine.cpus) {
        if place.node as usize >= known {
            let node = place.node;
            return Err(TopologyError::NodeOutOfRange { cpu, node });
        }
        let capacity = place.capacity;
        if u64::from(capacity) > SCHED_CAPACITY_SCALE {
            return Err(TopologyError::TooMuchCapacity { cpu, capacity });
        }
        check_core(machine, cpu, place)?;
    }
    for (cpu, place) in (0..).map(Cpu).zip(&machine.cpus) {
        check_cluster(machine, cpu, place)?;
    }
    let uneven = |row: &usize| table[*row].len() != nodes || *row >= MAX_NODES;
    if let Some(row) = (0..nodes).find(uneven) {
        return Err(TopologyError::NotSquare { row });
    }
    for (node, row) in table.iter().enumerate() {
        let as_near = |other: &usize| *other != node && row[*other] <= row[node];
        if let Some(other) = (0..nodes).find(as_near) {
            return Err(TopologyError::NotNearest { node, other });
        }
    }
    Ok(())
}

/// The threads of a core are together in everything.
fn check_core(machine: &Machine, cpu: Cpu, place: &CpuPlace) -> Result<(), TopologyError> {
    let of_core = |(_, first): &(Cpu, &CpuPlace)| first.core == place.core;
    let Some((first, of_first)) = (0..).map(Cpu).zip(&machine.cpus).find(of_core) else {
        return Ok(());
    };
    let (cpu, other) = (first, cpu);
    if of_first.node != place.node {
        Err(TopologyError::CoreOnTwoNodes { cpu, other })
    } else if of_first.llc != place.llc {
        Err(TopologyError::CoreOnTwoCaches { cpu, other })
    } else if of_first.cluster != place.cluster {
        Err(TopologyError::CoreInTwoClusters { cpu, other })
    } else {
        Ok(())
    }
}

/// A cluster, as far as it is on the node, is within a cache or has all of it.
fn check_cluster(machine: &Machine, cpu: Cpu, place: &CpuPlace) -> Result<(), TopologyError> {
    let on_node = || {
        let cpus = (0..).map(Cpu).zip(&machine.cpus);
        cpus.filter(|(_, p)| p.node == place.node)
    };
    let outside = on_node().find(|(_, p)| p.cluster == place.cluster && p.llc != place.llc);
    let Some((other, _)) = outside else {
        return Ok(());
    };
    match on_node().any(|(_, p)| p.llc == place.llc && p.cluster != place.cluster) {
        true => Err(TopologyError::ClusterOnTwoCaches { cpu, other }),
        false => Ok(()),
    }
}

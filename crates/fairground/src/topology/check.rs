//! Which machines are none: refused before anything is built from them.

use core::fmt;

use super::Machine;
use crate::value::{Cpu, MAX_CPUS};

/// Nodes are numbered below this (the kernel's largest `MAX_NUMNODES`).
pub const MAX_NODES: usize = 1024;

/// Why a [`Machine`] has no [`Topology`](super::Topology).
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
/// machines report (`slit_snc3` of `machines/`).
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

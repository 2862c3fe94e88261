//! Where each CPU sits. All ids are dense, machine-wide and start at 0.

/// How far apart two CPUs are, nearest first. The order is used: a figure that is
/// missing for one class is taken from the next farther one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Distance {
    /// Threads of one core.
    Smt = 0,
    /// Cores of one cluster (aarch64: shared L3 tags or L2).
    SameCluster = 1,
    /// Cores of one die.
    SameDie = 2,
    /// Any other core of the socket.
    SameSocket = 3,
    /// A core of another socket.
    CrossSocket = 4,
}

impl Distance {
    /// All classes, nearest first.
    pub const ALL: [Self; 5] = [
        Self::Smt,
        Self::SameCluster,
        Self::SameDie,
        Self::SameSocket,
        Self::CrossSocket,
    ];

    /// The key in machine files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Smt => "smt",
            Self::SameCluster => "same_cluster",
            Self::SameDie => "same_die",
            Self::SameSocket => "same_socket",
            Self::CrossSocket => "cross_socket",
        }
    }
}

/// Capacity of the fastest CPU (`SCHED_CAPACITY_SCALE`).
pub const FULL_CAPACITY: u32 = 1024;

/// What [`not_nearest`] expects.
pub(super) const NEAREST: &str =
    "each node nearest to itself: the least distance of row N in column N";

/// A node that is not nearer to itself than to another, if there is one: no domain can be built
/// round it.
pub(super) fn not_nearest(slit: &[Vec<u32>]) -> Option<String> {
    slit.iter().enumerate().find_map(|(node, row)| {
        let as_near = |other: &usize| *other != node && row[*other] <= row[node];
        let other = (0..row.len()).find(as_near)?;
        Some(format!(
            "node {node} is as near to node {other} as to itself"
        ))
    })
}

/// The place of one CPU, and how fast it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// Package.
    pub socket: u32,
    /// Die.
    pub die: u32,
    /// Domain of the last-level cache.
    pub llc: u32,
    /// NUMA node.
    pub numa_node: u32,
    /// Cluster; equal to `core` on machines without clusters.
    pub cluster: u32,
    /// Core.
    pub core: u32,
    /// Thread within the core.
    pub thread: u32,
    /// How much it gets done, of [`FULL_CAPACITY`] (`/sys/devices/system/cpu/cpu*/cpu_capacity`).
    pub capacity: u32,
}

impl Default for CpuPlace {
    fn default() -> Self {
        Self {
            socket: 0,
            die: 0,
            llc: 0,
            numa_node: 0,
            cluster: 0,
            core: 0,
            thread: 0,
            capacity: FULL_CAPACITY,
        }
    }
}

impl CpuPlace {
    /// Distance class to another CPU.
    pub fn distance(&self, other: &Self) -> Distance {
        if self.core == other.core {
            Distance::Smt
        } else if self.cluster == other.cluster {
            Distance::SameCluster
        } else if self.die == other.die {
            Distance::SameDie
        } else if self.socket == other.socket {
            Distance::SameSocket
        } else {
            Distance::CrossSocket
        }
    }
}

/// The CPUs of a machine and the distances of its NUMA nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Indexed by CPU number, as the operating system counts.
    pub cpus: Vec<CpuPlace>,
    /// SLIT distances, node by node; 10 is local.
    pub slit: Vec<Vec<u32>>,
    /// True if siblings are `cpu` and `cpu + cores`, false if they are neighbours.
    pub siblings_apart: bool,
}

impl Topology {
    /// Whether some CPUs are slower than others.
    #[must_use]
    pub fn is_asymmetric(&self) -> bool {
        self.cpus.iter().any(|p| p.capacity != FULL_CAPACITY)
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }
    /// Number of cores.
    pub fn nr_cores(&self) -> usize {
        self.count(|p| p.core)
    }
    /// Number of sockets.
    pub fn nr_sockets(&self) -> usize {
        self.count(|p| p.socket)
    }
    /// Number of last-level cache domains.
    pub fn nr_llcs(&self) -> usize {
        self.count(|p| p.llc)
    }
    /// Number of NUMA nodes.
    pub fn nr_nodes(&self) -> usize {
        self.slit.len()
    }
    /// CPUs of the same core as `cpu`, itself included, in ascending order.
    pub fn siblings(&self, cpu: usize) -> Vec<usize> {
        let core = self.cpus[cpu].core;
        (0..self.cpus.len())
            .filter(|c| self.cpus[*c].core == core)
            .collect()
    }

    fn count(&self, id: impl Fn(&CpuPlace) -> u32) -> usize {
        self.cpus
            .iter()
            .map(|p| id(p) as usize + 1)
            .max()
            .unwrap_or(0)
    }

    /// Makes ids dense, counts the threads of each core and finds the numbering style. NUMA
    /// nodes are left alone: memory without CPUs is a node too.
    pub(super) fn renumber(&mut self) {
        for id in IDS {
            densify(&mut self.cpus, id);
        }
        let mut seen = vec![0; self.cpus.len()];
        for p in &mut self.cpus {
            p.thread = seen[p.core as usize];
            seen[p.core as usize] += 1;
        }
        self.siblings_apart = self.cpus.iter().skip(1).take(1).any(|p| p.thread == 0)
            && self.cpus.iter().any(|p| p.thread > 0);
    }

    /// A copy with the first `cores_per_socket` cores of the first `sockets` sockets. Ids are
    /// made dense again and the numbering style is kept; `None` if there are not that many.
    pub(super) fn limited(&self, sockets: u32, cores_per_socket: u32) -> Option<Self> {
        let mut kept: Vec<CpuPlace> = Vec::new();
        for socket in 0..sockets {
            let mut cores: Vec<u32> = self
                .cpus
                .iter()
                .filter(|p| p.socket == socket)
                .map(|p| p.core)
                .collect();
            cores.sort_unstable();
            cores.dedup();
            let wanted = cores.get(..cores_per_socket as usize)?;
            kept.extend(self.cpus.iter().filter(|p| wanted.contains(&p.core)));
        }
        let nodes = densify(&mut kept, |p| &mut p.numa_node);
        for id in IDS {
            densify(&mut kept, id);
        }
        if self.siblings_apart {
            kept.sort_by_key(|p| (p.thread, p.core));
        } else {
            kept.sort_by_key(|p| (p.core, p.thread));
        }
        let slit = nodes
            .iter()
            .map(|a| {
                nodes
                    .iter()
                    .map(|b| self.slit[*a as usize][*b as usize])
                    .collect()
            })
            .collect();
        (!kept.is_empty()).then_some(Self {
            cpus: kept,
            slit,
            siblings_apart: self.siblings_apart,
        })
    }
}

/// The ids that are made dense together.
const IDS: [fn(&mut CpuPlace) -> &mut u32; 5] = [
    |p| &mut p.socket,
    |p| &mut p.die,
    |p| &mut p.llc,
    |p| &mut p.cluster,
    |p| &mut p.core,
];

/// Renumbers one kind of id to 0, 1, 2 ... in ascending order; returns the old ids.
fn densify(cpus: &mut [CpuPlace], id: impl Fn(&mut CpuPlace) -> &mut u32) -> Vec<u32> {
    let mut old: Vec<u32> = cpus.iter_mut().map(|p| *id(p)).collect();
    old.sort_unstable();
    old.dedup();
    for p in cpus {
        let i = id(p);
        *i = old.partition_point(|o| *o < *i) as u32;
    }
    old
}

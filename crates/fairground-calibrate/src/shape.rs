//! From the places of the CPUs to the regular shape that a machine file can say: sockets x dies x
//! cores x threads. What does not fit is left out, and said.

use std::collections::BTreeMap;

use crate::sysfs::{Cpu, System};

/// The most CPUs that a machine file describes.
const CPUS_MAX: u32 = 512;

/// How CPUs are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Threads of a core are neighbours.
    Linear,
    /// The second threads follow all first ones.
    SiblingsApart,
}

/// `[topology]` of a machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Packages.
    pub sockets: u32,
    /// Dies, or last-level caches where a die has several.
    pub dies_per_socket: u32,
    /// Cores of a die.
    pub cores_per_die: u32,
    /// Threads of a core.
    pub threads_per_core: u32,
    /// Last-level caches of a package.
    pub llcs_per_socket: u32,
    /// NUMA nodes of a package.
    pub nodes_per_socket: u32,
    /// CPUs of a cluster; 0 without clusters.
    pub cluster_cpus: u32,
    /// Distances of the nodes.
    pub slit: Vec<Vec<u32>>,
    /// How CPUs are numbered in the file.
    pub numbering: Numbering,
    /// `cpu_capacity` by CPU; empty if the system says none, or all are alike.
    pub capacities: Vec<u32>,
    /// What of the machine the file does not say.
    pub notes: Vec<String>,
}

impl Shape {
    /// The shape of the online CPUs.
    pub fn of(system: &System) -> Self {
        let mut notes = Vec::new();
        let cpus: Vec<&Cpu> = system.cpus.iter().collect();
        let mut part = |what: &str, sizes: Vec<u32>| regular(what, &sizes, &mut notes);
        let packages = split(&cpus, |c| c.package);
        let dies: Vec<_> = packages.iter().flat_map(|p| split(p, |c| c.die)).collect();
        let cores: Vec<_> = dies.iter().flat_map(|d| split(d, |c| c.core)).collect();
        let count = |of: &[Vec<&Cpu>], id: fn(&Cpu) -> u32| -> Vec<u32> {
            of.iter().map(|p| split(p, id).len() as u32).collect()
        };
        let mut shape = Self {
            sockets: packages.len() as u32,
            dies_per_socket: part("dies of a package", count(&packages, |c| c.die)),
            cores_per_die: part("cores of a die", count(&dies, |c| c.core)),
            threads_per_core: part("threads of a core", count(&cores, |c| c.id)),
            llcs_per_socket: part("caches of a package", count(&packages, |c| c.llc)),
            nodes_per_socket: 1,
            cluster_cpus: clusters(&dies),
            slit: Vec::new(),
            numbering: Numbering::Linear,
            capacities: Vec::new(),
            notes: Vec::new(),
        };
        shape.notes = notes;
        shape.limit();
        let per_socket = shape.dies_per_socket * shape.cores_per_die;
        if !per_socket.is_multiple_of(shape.llcs_per_socket) {
            shape.llcs_per_socket = shape.dies_per_socket;
        }
        shape.nodes(system, &packages);
        shape.number(system);
        if shape.cpus() < system.cpus.len() as u32 {
            let (n, all) = (shape.cpus(), system.cpus.len());
            shape
                .notes
                .push(format!("the file describes {n} of {all} online CPUs"));
        }
        shape
    }

    /// Number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.sockets * self.dies_per_socket * self.cores_per_die * self.threads_per_core
    }

    /// Number of cores.
    pub fn cores(&self) -> u32 {
        self.sockets * self.dies_per_socket * self.cores_per_die
    }

    /// Takes packages, then cores away until a machine file can hold it.
    fn limit(&mut self) {
        while self.cpus() > CPUS_MAX && self.sockets > 1 {
            self.sockets -= 1;
        }
        while self.cpus() > CPUS_MAX && self.dies_per_socket > 1 {
            self.dies_per_socket -= 1;
            self.llcs_per_socket = self.dies_per_socket;
        }
        while self.cpus() > CPUS_MAX {
            self.cores_per_die -= 1;
        }
    }

    fn nodes(&mut self, system: &System, packages: &[Vec<&Cpu>]) {
        let of = |package: &Vec<&Cpu>| -> Vec<usize> {
            let has = |n: &usize| {
                let node = &system.nodes[*n];
                package.iter().any(|c| node.cpus.contains(&c.id))
            };
            (0..system.nodes.len()).filter(has).collect()
        };
        let each: Vec<Vec<usize>> = packages.iter().map(of).collect();
        let per_socket = self.dies_per_socket * self.cores_per_die;
        let k = each.first().map_or(0, Vec::len);
        let mut order: Vec<usize> = each.iter().flatten().copied().collect();
        order.sort_unstable();
        order.dedup();
        let fits = k > 0
            && each.iter().all(|nodes| nodes.len() == k)
            && order.len() == k * each.len()
            && per_socket.is_multiple_of(k as u32);
        let online: Vec<u32> = system.nodes.iter().map(|n| n.id).collect();
        if fits {
            self.nodes_per_socket = k as u32;
            order.truncate(k * self.sockets as usize);
            if let Some(slit) = matrix(system, &order) {
                self.slit = slit;
                return;
            }
            self.notes
                .push("no usable node distances: 10 and 20 are written".into());
        } else if !online.is_empty() {
            self.notes.push(format!(
                "{} NUMA nodes do not fit {} packages: one for each is written",
                online.len(),
                self.sockets
            ));
        }
        let n = self.sockets * self.nodes_per_socket;
        let row = |a| (0..n).map(|b| if a == b { 10 } else { 20 }).collect();
        self.slit = (0..n).map(row).collect();
    }

    fn number(&mut self, system: &System) {
        let mut choices = vec![Numbering::Linear];
        if self.threads_per_core > 1 {
            choices.insert(0, Numbering::SiblingsApart);
        }
        let fits =
            |n: &Numbering| self.cpus() == system.cpus.len() as u32 && self.is_numbered(system, *n);
        let kept = choices.into_iter().find(fits);
        if let Some(n) = kept {
            self.numbering = n;
        } else {
            self.notes
                .push("CPUs are numbered package by package, not as on the machine".into());
        }
        let capacities: Vec<u32> = system.cpus.iter().filter_map(|c| c.capacity).collect();
        let all = capacities.len() == system.cpus.len();
        let fastest = capacities.iter().max().copied().unwrap_or(0);
        if !all || capacities.iter().all(|c| *c == fastest) {
            return;
        }
        if kept.is_none() {
            let note = "CPUs differ in capacity, which is not in the file: it has them elsewhere";
            return self.notes.push(note.into());
        }
        // The kernel shows 1024 for the fastest that it has, perhaps one that is not online.
        let of = |c: u32| (u64::from(c) * 1024 / u64::from(fastest)).max(1) as u32;
        self.capacities = capacities.into_iter().map(of).collect();
    }

    /// Whether `numbering` puts the same CPUs together as the system does.
    fn is_numbered(&self, system: &System, numbering: Numbering) -> bool {
        let (cores, threads) = (self.cores(), self.threads_per_core);
        let per_die = self.cores_per_die;
        let per_socket = self.dies_per_socket * per_die;
        let mut seen: BTreeMap<(u8, u32), u32> = BTreeMap::new();
        let mut same = |kind: u8, number: u32, group: u32| {
            *seen.entry((kind, number)).or_insert(group) == group
        };
        system.cpus.iter().enumerate().all(|(index, c)| {
            let core = match numbering {
                Numbering::Linear => index as u32 / threads,
                Numbering::SiblingsApart => index as u32 % cores,
            };
            same(0, core, c.core)
                && same(1, core / per_die, c.die)
                && same(2, core / per_socket, c.package)
        })
    }
}

/// The size that all parts have, or else the smallest.
fn regular(what: &str, sizes: &[u32], notes: &mut Vec<String>) -> u32 {
    let (min, max) = (sizes.iter().min(), sizes.iter().max());
    let (min, max) = (min.copied().unwrap_or(1), max.copied().unwrap_or(1));
    if min != max {
        notes.push(format!(
            "{what}: {min} to {max}; a machine file holds {min}"
        ));
    }
    min
}

/// CPUs by group, in ascending order of the group.
fn split<'a>(cpus: &[&'a Cpu], id: impl Fn(&Cpu) -> u32) -> Vec<Vec<&'a Cpu>> {
    let mut groups: BTreeMap<u32, Vec<&Cpu>> = BTreeMap::new();
    for cpu in cpus {
        groups.entry(id(cpu)).or_default().push(cpu);
    }
    groups.into_values().collect()
}

/// CPUs of a cluster, if all clusters are alike.
fn clusters(dies: &[Vec<&Cpu>]) -> u32 {
    let mut sizes = dies
        .iter()
        .flat_map(|die| split(die, |c| c.cluster.unwrap_or(u32::MAX)))
        .map(|cluster| {
            let some = cluster.iter().all(|c| c.cluster.is_some());
            if some { cluster.len() as u32 } else { 0 }
        });
    let first = sizes.next().unwrap_or(0);
    if sizes.all(|n| n == first) { first } else { 0 }
}

/// Distances of `order`; positions in a row are those of the nodes that are online.
fn matrix(system: &System, order: &[usize]) -> Option<Vec<Vec<u32>>> {
    let row = |a: &usize| -> Option<Vec<u32>> {
        let node = &system.nodes[*a];
        // Nodes without CPUs have a column too; their numbers are then not those of the list.
        let column = |b: &usize| {
            let all = node.distance.len();
            let at = if all == system.nodes.len() {
                *b
            } else {
                system.nodes[*b].id as usize
            };
            node.distance.get(at).copied().filter(|d| *d > 0)
        };
        order.iter().map(column).collect()
    };
    order.iter().map(row).collect()
}

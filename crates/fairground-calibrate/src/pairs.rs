//! Which pairs of CPUs are measured, and what class of distance each is of.

use crate::sysfs::{Cpu, System};

/// How far apart two CPUs are, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Threads of one core.
    Smt,
    /// Cores of one cluster.
    SameCluster,
    /// Cores under one last-level cache, where a package has several.
    SameDie,
    /// Other cores of the package.
    SameSocket,
    /// Cores of different packages.
    CrossSocket,
}

impl Class {
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

    fn of(a: &Cpu, b: &Cpu, several_dies: bool) -> Self {
        if a.package != b.package {
            Self::CrossSocket
        } else if a.core == b.core {
            Self::Smt
        } else if a.cluster.is_some() && a.cluster == b.cluster {
            Self::SameCluster
        } else if several_dies && a.die == b.die {
            Self::SameDie
        } else {
            Self::SameSocket
        }
    }
}

/// Two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// One.
    pub a: u32,
    /// The other, of a higher number.
    pub b: u32,
    /// How far apart they are.
    pub class: Class,
}

/// Every pair of `allowed` CPUs, in order.
pub fn all(system: &System, allowed: &[u32]) -> Vec<Pair> {
    let several_dies = system.cpus.iter().any(|a| {
        system
            .cpus
            .iter()
            .any(|b| a.package == b.package && a.die != b.die)
    });
    let cpus: Vec<&Cpu> = system
        .cpus
        .iter()
        .filter(|c| allowed.contains(&c.id))
        .collect();
    let mut pairs = Vec::new();
    for (i, a) in cpus.iter().enumerate() {
        pairs.extend(cpus[i + 1..].iter().map(|b| Pair {
            a: a.id,
            b: b.id,
            class: Class::of(a, b, several_dies),
        }));
    }
    pairs
}

/// At most `each` pairs of every class, evenly taken from the list.
pub fn sampled(pairs: &[Pair], each: usize) -> Vec<Pair> {
    let mut kept = Vec::new();
    for class in Class::ALL {
        let these: Vec<&Pair> = pairs.iter().filter(|p| p.class == class).collect();
        let n = these.len().min(each);
        kept.extend((0..n).map(|i| *these[i * these.len() / n]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(id: u32, package: u32, die: u32, core: u32) -> Cpu {
        Cpu {
            id,
            package,
            die,
            llc: die,
            cluster: None,
            capacity: None,
            core,
        }
    }

    #[test]
    fn classes_follow_the_topology() {
        // Two packages; the first has two dies of a core with two threads each.
        let system = System {
            cpus: vec![
                cpu(0, 0, 0, 0),
                cpu(1, 0, 0, 0),
                cpu(2, 0, 2, 2),
                cpu(3, 3, 3, 3),
            ],
            ..System::default()
        };
        let classes: Vec<Class> = all(&system, &[0, 1, 2, 3])
            .iter()
            .map(|p| p.class)
            .collect();
        use Class::{CrossSocket, SameSocket, Smt};
        let expected = [
            Smt,
            SameSocket,
            CrossSocket,
            SameSocket,
            CrossSocket,
            CrossSocket,
        ];
        assert_eq!(classes, expected);
        assert_eq!(all(&system, &[2]), []);
    }

    #[test]
    fn a_sample_is_spread_over_each_class() {
        let cpus = (0..100).map(|id| cpu(id, id / 50, id / 50, id)).collect();
        let system = System {
            cpus,
            ..System::default()
        };
        let every = all(&system, &(0..100).collect::<Vec<_>>());
        assert_eq!(every.len(), 4950);
        let some = sampled(&every, 10);
        assert_eq!(some.len(), 20);
        let firsts: Vec<u32> = some.iter().map(|p| p.a).collect();
        assert!(firsts.iter().any(|a| *a >= 50) && firsts.contains(&0));
        assert_eq!(sampled(&every, 5000), {
            let mut sorted = every.clone();
            sorted.sort_by_key(|p| p.class);
            sorted
        });
    }
}

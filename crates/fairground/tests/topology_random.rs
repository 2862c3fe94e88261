//! Machines at random: what is built runs, what is none is refused.

mod crude;

use crude::Crude;
use fairground::topology::{CpuPlace, Machine, Topology, TopologyError};
use fairground::value::{Cpu, CpuMask, MAX_CPUS};
use proptest::prelude::*;

/// Distances between nodes: 11 and more, and 10 within each.
fn table(nodes: u32, near: &[u32], asymmetric: bool) -> Vec<Vec<u32>> {
    let at = |a: u32, b: u32| match a == b {
        true => 10,
        false => {
            let (low, high) = match asymmetric {
                true => (a, b),
                false => (a.min(b), a.max(b)),
            };
            11 + near[(low * nodes + high) as usize % near.len()]
        }
    };
    let row = |a| (0..nodes).map(|b| at(a, b)).collect();
    (0..nodes).map(row).collect()
}

proptest! {
    /// Caches need not be within nodes, parts need not be alike, and distances not be symmetric.
    #[test]
    fn what_is_built_runs(
        places in prop::collection::vec((0u32..4, 0u32..4, 0u32..2), 1..10),
        caches in prop::collection::vec((0u32..4, 0u32..2), 16),
        near in prop::collection::vec(0u32..4, 16),
        asymmetric in any::<bool>(),
    ) {
        let cpus = places.iter().map(|(core, node, capacity)| {
            let core = 4 * node + core;
            let (llc, cluster) = caches[core as usize];
            CpuPlace {
                core,
                cluster: 2 * llc + cluster,
                llc,
                package: *node,
                node: *node,
                capacity: 512 + 512 * capacity,
            }
        });
        let machine = Machine {
            cpus: cpus.collect(),
            distance: table(4, &near, asymmetric),
            ..Machine::default()
        };
        let all = CpuMask::first_n(places.len());
        let mut m = Crude::new(&machine).idle();
        for i in 0..2 * places.len() as u32 {
            m.hog(Cpu(i % places.len() as u32), all);
        }
        m.ticks(10);
    }

    /// Whatever contradicts itself is refused, and nothing else: below NUMA the domains of CPUs are
    /// equal or disjoint, and each is within the one above.
    #[test]
    fn what_is_built_has_no_contradiction(
        places in prop::collection::vec((0u32..4, 0u32..3, 0u32..3, 0u32..2), 1..8),
    ) {
        let cpus: Vec<CpuPlace> = places.iter().map(|p| CpuPlace {
            core: p.0,
            cluster: p.1,
            llc: p.2,
            node: p.3,
            ..CpuPlace::default()
        }).collect();
        let apart = |a: &CpuPlace, b: &CpuPlace| {
            a.core == b.core && (a.node, a.llc, a.cluster) != (b.node, b.llc, b.cluster)
        };
        let cut = |a: &CpuPlace, b: &CpuPlace, c: &CpuPlace| {
            let same_node = a.node == b.node && a.node == c.node;
            let leaves_cache = a.cluster == b.cluster && a.llc != b.llc;
            same_node && leaves_cache && a.llc == c.llc && a.cluster != c.cluster
        };
        let wrong = cpus.iter().any(|a| {
            cpus.iter().any(|b| apart(a, b) || cpus.iter().any(|c| cut(a, b, c)))
        });
        let built = Topology::build(&Machine { cpus, ..Machine::default() });
        prop_assert_eq!(built.is_err(), wrong);
        let Ok(top) = built else {
            return Ok(());
        };
        let all = || top.domains.iter().flatten().filter(|sd| !sd.flags.numa);
        for sd in all() {
            for other in all().filter(|other| other.kind == sd.kind) {
                let same = sd.span == other.span;
                prop_assert!(same || !sd.span.intersects(&other.span));
            }
        }
        for pair in top.domains.iter().flat_map(|chain| chain.windows(2)) {
            prop_assert!(pair[0].span.is_subset(&pair[1].span));
        }
    }
}

/// Two nodes with a CPU each.
fn two_nodes(distance: &[&[u32]]) -> Machine {
    let place = |node: u32| CpuPlace {
        core: node,
        cluster: node,
        llc: node,
        node,
        ..CpuPlace::default()
    };
    Machine {
        cpus: (0..2).map(place).collect(),
        distance: distance.iter().map(|row| row.to_vec()).collect(),
        ..Machine::default()
    }
}

#[test]
fn what_is_no_machine_is_refused() {
    use TopologyError::{NoCpu, NodeOutOfRange, NotNearest, NotSquare, TooManyCpus};
    let built = |machine: &Machine| Topology::build(machine).map(|top| top.nr_cpus());
    let nearest = |node, other| Err(NotNearest { node, other });
    for (distance, expected) in [
        (&[][..], Ok(2)),
        (&[&[10, 20][..], &[20, 10]][..], Ok(2)),
        (&[&[10, 28], &[21, 10]], Ok(2)),
        (&[&[10, 20], &[20]], Err(NotSquare { row: 1 })),
        (&[&[10, 20, 20], &[20, 10, 20]], Err(NotSquare { row: 0 })),
        (&[&[20, 10], &[10, 20]], nearest(0, 1)),
        (&[&[10, 20], &[10, 10]], nearest(1, 0)),
        (&[&[0, 0], &[0, 0]], nearest(0, 1)),
        (
            &[&[10]],
            Err(NodeOutOfRange {
                cpu: Cpu(1),
                node: 1,
            }),
        ),
    ] {
        assert_eq!(built(&two_nodes(distance)), expected, "{distance:?}");
    }
    let mut far = two_nodes(&[]);
    far.cpus[0].node = u32::MAX;
    assert!(matches!(built(&far), Err(NodeOutOfRange { .. })));
    let mut big = Machine::flat(2);
    big.cpus[1].capacity = 1024;
    assert_eq!(built(&big), Ok(2));
    for capacity in [1025, u32::MAX] {
        big.cpus[1].capacity = capacity;
        let refused = TopologyError::TooMuchCapacity {
            cpu: Cpu(1),
            capacity,
        };
        assert_eq!(built(&big), Err(refused));
    }
    let many = |n| Machine {
        cpus: vec![CpuPlace::default(); n],
        ..Machine::default()
    };
    assert_eq!(built(&many(0)), Err(NoCpu));
    assert_eq!(built(&many(MAX_CPUS)), Ok(MAX_CPUS));
    assert_eq!(built(&many(MAX_CPUS + 1)), Err(TooManyCpus(MAX_CPUS + 1)));
    assert_eq!(
        TooManyCpus(513).to_string(),
        "513 CPUs, at most 512",
        "it says what is wrong"
    );
}

#[test]
fn a_machine_that_contradicts_itself_is_refused() {
    let built = |machine: &Machine| Topology::build(machine).map(|top| top.nr_cpus());
    let (cpu, other) = (Cpu(0), Cpu(1));
    // Threads of a core are on one node; a cache may be on two.
    let mut split = two_nodes(&[]);
    split.cpus[1].llc = 0;
    assert_eq!(built(&split), Ok(2));
    split.cpus[1].core = 0;
    assert_eq!(
        built(&split),
        Err(TopologyError::CoreOnTwoNodes { cpu, other })
    );
    // They have one cache, and one cluster.
    let mut core = Machine::flat(4);
    core.cpus[1].core = 0;
    assert_eq!(
        built(&core),
        Err(TopologyError::CoreInTwoClusters { cpu, other })
    );
    core.cpus[1].cluster = 0;
    assert_eq!(built(&core), Ok(4));
    core.cpus[1].llc = 1;
    assert_eq!(
        built(&core),
        Err(TopologyError::CoreOnTwoCaches { cpu, other })
    );
    // A cluster is within a cache, or has all of it.
    let mut cluster = Machine::flat(6);
    let of = |machine: &mut Machine, clusters: [u32; 6], caches: [u32; 6]| {
        for (at, place) in machine.cpus.iter_mut().enumerate() {
            (place.cluster, place.llc) = (clusters[at], caches[at]);
        }
    };
    for (clusters, caches) in [
        ([0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]),
        ([0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]),
        ([0; 6], [0, 0, 1, 1, 2, 2]),
    ] {
        of(&mut cluster, clusters, caches);
        assert_eq!(built(&cluster), Ok(6), "{clusters:?} {caches:?}");
    }
    of(&mut cluster, [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]);
    let (cpu, other) = (Cpu(2), Cpu(0));
    assert_eq!(
        built(&cluster),
        Err(TopologyError::ClusterOnTwoCaches { cpu, other })
    );
}

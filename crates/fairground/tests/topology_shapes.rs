//! Domains and groups on shapes whose domains are known from their documentation. Those of a real
//! Linux 6.12 on three machines: `crates/fairground-sim/tests/smp_decisions.rs`.

use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask};

/// `0-3,8` as the kernel prints masks.
fn mask(text: &str) -> CpuMask {
    let number = |s: &str| s.parse::<u32>().expect("a CPU number");
    text.split(',')
        .flat_map(|part| match part.split_once('-') {
            Some((a, b)) => number(a)..=number(b),
            None => number(part)..=number(part),
        })
        .map(Cpu)
        .collect()
}

/// CPUs spread evenly over nodes and caches, siblings side by side.
fn even(cpus: u32, nodes: u32, caches: u32, threads: u32) -> Machine {
    let places = (0..cpus).map(|cpu| CpuPlace {
        core: cpu / threads,
        cluster: cpu / threads,
        llc: cpu * caches / cpus,
        package: cpu * nodes / cpus,
        node: cpu * nodes / cpus,
        capacity: 1024,
    });
    Machine {
        cpus: places.collect(),
        ..Machine::default()
    }
}

fn names(top: &Topology, cpu: u32) -> Vec<(&'static str, u32)> {
    let domains = top.domains(Cpu(cpu)).iter();
    domains.map(|sd| (sd.kind.name(), sd.weight)).collect()
}

#[test]
fn one_cpu_has_no_domain_and_two_have_one() {
    let one = Topology::build(&even(1, 1, 1, 1)).expect("a machine");
    assert!(names(&one, 0).is_empty());
    assert_eq!((one.nr_llcs(), one.sd_llc[0]), (1, None));
    assert_eq!(
        names(&Topology::build(&even(2, 1, 1, 1)).expect("a machine"), 1),
        [("MC", 2)]
    );
    let threads = Topology::build(&even(2, 1, 1, 2)).expect("a machine");
    assert_eq!(names(&threads, 0), [("SMT", 2)]);
    assert_eq!(threads.sd_llc[0], Some(0));
}

#[test]
fn a_flat_machine_has_cores_and_equal_places_are_threads() {
    let flat = Topology::build(&Machine::flat(4)).expect("a machine");
    assert_eq!(names(&flat, 0), [("MC", 4)]);
    assert!(!flat.smt_active());
    let threads = Machine {
        cpus: vec![CpuPlace::default(); 4],
        ..Machine::default()
    };
    let threads = Topology::build(&threads).expect("a machine");
    assert_eq!(names(&threads, 0), [("SMT", 4)]);
}

#[test]
fn a_desktop_stops_at_its_cache() {
    let top = Topology::build(&even(8, 1, 1, 2)).expect("a machine");
    assert_eq!(names(&top, 5), [("SMT", 2), ("MC", 8)]);
    assert!(top.group(top.domains(Cpu(5))[1].groups[0]).smt);
    assert_eq!(top.domains(Cpu(5))[1].imb_numa_nr, 0);
}

/// 2 sockets of 12 caches of 8 cores of 2 threads.
#[test]
fn many_caches_in_a_node_make_a_package_level() {
    let mut machine = even(384, 2, 24, 2);
    machine.distance = vec![vec![10, 32], vec![32, 10]];
    let top = Topology::build(&machine).expect("a machine");
    let levels = [("SMT", 2), ("MC", 16), ("PKG", 192), ("NUMA", 384)];
    assert_eq!(names(&top, 200), levels);
    let [_, mc, pkg, numa] = top.domains(Cpu(200)) else {
        panic!("four levels");
    };
    assert_eq!(
        (mc.groups.len(), pkg.groups.len(), numa.groups.len()),
        (8, 12, 2)
    );
    assert_eq!((pkg.imb_numa_nr, numa.imb_numa_nr), (12, 12));
    assert!(pkg.flags.prefer_sibling && !pkg.flags.share_llc);
    assert_eq!(top.nr_llcs(), 24);
    assert!(!numa.flags.wake_affine && !numa.flags.balance_fork);
    machine.reclaim_distance = 32; // what the kernel sets on these machines
    let top = Topology::build(&machine).expect("a machine");
    let numa = &top.domains(Cpu(200))[3];
    assert!(numa.flags.wake_affine && numa.flags.balance_fork && numa.flags.balance_exec);
}

/// Kunpeng 920: four nodes of 32 cores in clusters of 4; two sockets.
#[test]
fn four_nodes_make_a_level_for_each_distance() {
    let mut machine = even(128, 4, 4, 1);
    for place in &mut machine.cpus {
        place.cluster = place.core / 4;
    }
    machine.distance = [
        [10, 12, 20, 22],
        [12, 10, 22, 24],
        [20, 22, 10, 12],
        [22, 24, 12, 10],
    ]
    .map(|row| row.to_vec())
    .to_vec();
    let top = Topology::build(&machine).expect("a machine");
    let near = [
        ("CLS", 4),
        ("MC", 32),
        ("NUMA", 64),
        ("NUMA", 96),
        ("NUMA", 128),
    ];
    assert_eq!(names(&top, 33), near);
    // Node 0 reaches everything within 22.
    assert_eq!(names(&top, 0), near);
    assert_eq!(top.domains(Cpu(0))[4].distance, 22);
    assert_eq!(top.domains(Cpu(33))[4].distance, 24);
    assert_eq!(top.cluster_of[5], mask("4-7"));
    let third = &top.domains(Cpu(0))[3];
    assert_eq!(third.span, mask("0-95"));
    let rings: Vec<_> = third.groups.iter().map(|g| top.group(*g).span).collect();
    // Node 1 is in node 0's group; node 2 comes with its neighbour at distance 12 only where
    // that stays inside the domain, so it comes alone.
    assert_eq!(rings, [mask("0-63"), mask("64-95")]);
    for sd in (0..128).flat_map(|c| top.domains(Cpu(c))) {
        let covered = sd.groups.iter().map(|g| top.group(*g).span);
        assert_eq!(covered.fold(CpuMask::empty(), |a, b| a.or(&b)), sd.span);
        for id in &sd.groups {
            let group = top.group(*id);
            assert!(group.balance_mask.is_subset(&group.span));
            assert!(!group.balance_mask.is_empty());
        }
    }
}

/// Three nodes in a row: the middle one is near to both ends, so groups overlap.
#[test]
fn groups_overlap_where_nodes_form_a_line() {
    let mut machine = even(6, 3, 3, 1);
    machine.distance = vec![vec![10, 20, 30], vec![20, 10, 20], vec![30, 20, 10]];
    let top = Topology::build(&machine).expect("a machine");
    assert_eq!(names(&top, 2), [("MC", 2), ("NUMA", 6)]);
    assert_eq!(names(&top, 0), [("MC", 2), ("NUMA", 4), ("NUMA", 6)]);
    let ends = &top.domains(Cpu(0))[2];
    let rings: Vec<_> = ends.groups.iter().map(|g| top.group(*g)).collect();
    assert_eq!(rings[0].span, mask("0-3"));
    assert_eq!(rings[1].span, mask("2-5"));
    assert_eq!(rings[1].balance_mask, mask("4-5"));
}

#[test]
fn threads_apart_by_half_the_machine_keep_their_groups() {
    let mut machine = even(8, 1, 1, 1);
    for (i, place) in machine.cpus.iter_mut().enumerate() {
        place.core = i as u32 % 4;
        place.cluster = place.core;
    }
    let top = Topology::build(&machine).expect("a machine");
    assert_eq!(names(&top, 6), [("SMT", 2), ("MC", 8)]);
    let mc = &top.domains(Cpu(6))[1];
    let rings: Vec<_> = mc.groups.iter().map(|g| top.group(*g).span).collect();
    assert_eq!(rings, [mask("2,6"), mask("3,7"), mask("0,4"), mask("1,5")]);
}

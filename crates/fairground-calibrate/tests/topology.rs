//! Trees as Linux shows them in /sys, made by hand: what is read, and the shape that a machine file
//! gets.

use std::path::{Path, PathBuf};

use fairground_calibrate::{CalibrateError, Class, Numbering, Shape, System, all_pairs};

/// A tree below the directory for tests; files are added one by one.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn online(&self, list: &str) -> &Self {
        self.file("sys/devices/system/cpu/online", list)
    }

    /// A CPU with the lists of its core, die and package, and of its L3.
    fn cpu(&self, id: u32, core: &str, die: &str, package: &str, l3: &str) -> &Self {
        let cpu = format!("sys/devices/system/cpu/cpu{id}");
        for (file, list) in [
            ("core_cpus_list", core),
            ("die_cpus_list", die),
            ("package_cpus_list", package),
        ] {
            self.file(&format!("{cpu}/topology/{file}"), list);
        }
        let own = id.to_string();
        for (index, (level, kind, size, shared)) in [
            ("1", "Data", "48K", &own[..]),
            ("1", "Instruction", "32K", &own),
            ("2", "Unified", "2048K", &own),
            ("3", "Unified", "32M", l3),
        ]
        .iter()
        .enumerate()
        {
            let dir = format!("{cpu}/cache/index{index}");
            self.file(&format!("{dir}/level"), level)
                .file(&format!("{dir}/type"), kind)
                .file(&format!("{dir}/size"), size)
                .file(&format!("{dir}/ways_of_associativity"), "16")
                .file(&format!("{dir}/coherency_line_size"), "64")
                .file(&format!("{dir}/shared_cpu_list"), shared);
        }
        self
    }

    fn node(&self, id: u32, cpus: &str, distance: &str) -> &Self {
        let node = format!("sys/devices/system/node/node{id}");
        self.file(&format!("{node}/cpulist"), cpus)
            .file(&format!("{node}/distance"), distance)
    }

    fn read(&self) -> Result<System, CalibrateError> {
        System::read(&self.0)
    }

    fn shape(&self) -> Shape {
        Shape::of(&self.read().unwrap())
    }
}

fn sizes(s: &Shape) -> [u32; 6] {
    let (sockets, dies, cores) = (s.sockets, s.dies_per_socket, s.cores_per_die);
    [
        sockets,
        dies,
        cores,
        s.threads_per_core,
        s.llcs_per_socket,
        s.nodes_per_socket,
    ]
}

#[test]
fn two_packages_with_threads_apart() {
    let tree = Tree::new("two-packages");
    tree.online("0-7");
    for id in 0..8u32 {
        let core = format!("{},{}", id % 4, id % 4 + 4);
        let package = if id % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
        tree.cpu(id, &core, package, package, package);
    }
    tree.file("sys/devices/system/node/online", "0-1")
        .node(0, "0-1,4-5", "10 21")
        .node(1, "2-3,6-7", "21 10")
        .file(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Some \"Xeon\"\nflags\t\t: fpu hypervisor\n",
        );
    let idle = "sys/devices/system/cpu/cpu0/cpuidle/state";
    for (i, (name, latency, residency)) in [("POLL", "0", "0"), ("C6", "170", "600")]
        .iter()
        .enumerate()
    {
        tree.file(&format!("{idle}{i}/name"), name)
            .file(&format!("{idle}{i}/latency"), latency)
            .file(&format!("{idle}{i}/residency"), residency);
    }
    let system = tree.read().unwrap();
    assert_eq!(
        (system.model.as_str(), system.guest),
        ("Some \"Xeon\"", true)
    );
    assert_eq!(system.idle[1].exit_us, 170.0);
    let levels: Vec<(u32, u32)> = system
        .caches
        .iter()
        .map(|c| (c.level, c.size_kib))
        .collect();
    assert_eq!(levels, [(1, 48), (2, 2048), (3, 32768)]);
    let shape = Shape::of(&system);
    assert_eq!(sizes(&shape), [2, 1, 2, 2, 1, 1]);
    assert_eq!(shape.slit, [[10, 21], [21, 10]]);
    assert_eq!(shape.numbering, Numbering::SiblingsApart);
    assert_eq!(shape.notes, Vec::<String>::new());
    let classes = all_pairs(&system, &[0, 1, 2, 4]);
    let of = |a, b| {
        classes
            .iter()
            .find(|p| (p.a, p.b) == (a, b))
            .map(|p| p.class)
    };
    assert_eq!(of(0, 4), Some(Class::Smt));
    assert_eq!(of(0, 1), Some(Class::SameSocket));
    assert_eq!(of(0, 2), Some(Class::CrossSocket));
}

#[test]
fn several_caches_in_a_package_are_dies() {
    let tree = Tree::new("core-dies");
    tree.online("0-7");
    for id in 0..8u32 {
        let l3 = if id < 4 { "0-3" } else { "4-7" };
        tree.cpu(id, &id.to_string(), "0-7", "0-7", l3);
        // Pairs of cores that share their second-level cache.
        let cluster = format!("{}-{}", id & !1, id | 1);
        let path = format!("sys/devices/system/cpu/cpu{id}/topology/cluster_cpus_list");
        tree.file(&path, &cluster);
    }
    let shape = tree.shape();
    assert_eq!(sizes(&shape), [1, 2, 4, 1, 2, 1]);
    assert_eq!((shape.cluster_cpus, shape.slit), (2, vec![vec![10]]));
    assert_eq!(shape.numbering, Numbering::Linear);
    let system = tree.read().unwrap();
    let pairs = all_pairs(&system, &[0, 1, 2, 4]);
    let classes: Vec<Class> = pairs.iter().filter(|p| p.a == 0).map(|p| p.class).collect();
    assert_eq!(
        classes,
        [Class::SameCluster, Class::SameDie, Class::SameSocket]
    );
}

#[test]
fn offline_cpus_are_not_there() {
    let tree = Tree::new("offline");
    // CPU 1 is off, and with it one thread of the first core; lists still name it.
    tree.online("0,2-3");
    tree.cpu(0, "0-1", "0-3", "0-3", "0-3");
    tree.cpu(2, "2-3", "0-3", "0-3", "0-3");
    tree.cpu(3, "2-3", "0-3", "0-3", "0-3");
    let shape = tree.shape();
    assert_eq!(sizes(&shape), [1, 1, 2, 1, 1, 1]);
    let notes = shape.notes.join("\n");
    assert!(notes.contains("threads of a core: 1 to 2"), "{notes}");
    assert!(notes.contains("2 of 3 online CPUs"), "{notes}");
}

#[test]
fn without_numa_topology_or_caches() {
    let tree = Tree::new("bare");
    tree.online("0-3")
        .file("sys/devices/system/cpu/cpu0/uevent", "");
    let system = tree.read().unwrap();
    assert!(system.nodes.is_empty() && system.caches.is_empty() && system.idle.is_empty());
    let shape = Shape::of(&system);
    assert_eq!(sizes(&shape), [1, 1, 4, 1, 1, 1]);
    assert_eq!(shape.slit, [[10]]);
}

#[test]
fn nodes_that_do_not_fit_are_told() {
    let tree = Tree::new("one-node");
    tree.online("0-3");
    for id in 0..4u32 {
        let package = if id < 2 { "0-1" } else { "2-3" };
        tree.cpu(id, &id.to_string(), package, package, package);
    }
    tree.file("sys/devices/system/node/online", "0")
        .node(0, "0-3", "10");
    let shape = tree.shape();
    assert_eq!(shape.slit, [[10, 20], [20, 10]]);
    assert!(shape.notes[0].contains("1 NUMA nodes do not fit 2 packages"));
}

#[test]
fn odd_numbers_and_large_machines_are_told() {
    // Even CPUs in one package, odd ones in the other.
    let tree = Tree::new("interleaved");
    tree.online("0-3");
    for id in 0..4u32 {
        let package = if id % 2 == 0 { "0,2" } else { "1,3" };
        tree.cpu(id, &id.to_string(), package, package, package);
    }
    let shape = tree.shape();
    assert_eq!(sizes(&shape), [2, 1, 2, 1, 1, 1]);
    assert!(shape.notes[0].contains("numbered package by package"));
    let many = Tree::new("many");
    many.online("0-767");
    let shape = many.shape();
    assert_eq!(shape.cpus(), 512);
    assert!(shape.notes.join("\n").contains("512 of 768 online CPUs"));
}

#[test]
fn damaged_files_are_named() {
    let tree = Tree::new("damaged");
    let message = |tree: &Tree| tree.read().unwrap_err().to_string();
    assert!(message(&tree).contains("cpu/online: cannot be read"));
    tree.online("0-x");
    assert!(message(&tree).contains("cpu/online: `0-x`; expected a list"));
    tree.online("");
    assert!(message(&tree).contains("no CPU"));
    tree.online("0").cpu(0, "0", "0", "0", "0");
    tree.file("sys/devices/system/cpu/cpu0/cache/index3/size", "32X");
    assert!(message(&tree).contains("index3/size: `32X`"));
}

/// As on a phone: the file says how fast each CPU is, if the system does of all of them.
#[test]
fn cpus_of_two_kinds_have_their_capacities() {
    let tree = Tree::new("kinds");
    tree.online("0-3");
    for (id, capacity) in (0..4u32).zip(["250", "250", "500", "500"]) {
        tree.cpu(id, &id.to_string(), "0-3", "0-3", "0-3");
        tree.file(
            &format!("sys/devices/system/cpu/cpu{id}/cpu_capacity"),
            capacity,
        );
    }
    assert_eq!(tree.shape().capacities, [512, 512, 1024, 1024]);
    tree.file("sys/devices/system/cpu/cpu0/cpu_capacity", "");
    assert!(tree.shape().capacities.is_empty());
}

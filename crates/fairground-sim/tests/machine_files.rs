//! Every machine file loads and agrees with itself; bad files say what is wrong and where.

use fairground_sim::machine_file::{Conf, Distance, Machine, MachineError};

const SPR: &str = include_str!("../../../machines/spr-8480-2s.toml");

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn all_machines_of_the_directory_are_built_in() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let mut files: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().into_string().ok())
        .filter_map(|n| n.strip_suffix(".toml").map(str::to_owned))
        .collect();
    files.sort();
    assert_eq!(files, Machine::builtin_ids().collect::<Vec<_>>());
    for id in &files {
        let m = Machine::builtin(id).unwrap_or_else(|e| panic!("{id}: {e}"));
        assert_eq!(&m.id, id);
        assert_eq!(m.hash().len(), 16);
        assert!(m.llc().unwrap().lines() > 0 && m.cache(2).unwrap().lines() > 0);
        let ns: Vec<f64> = Distance::ALL.iter().map(|d| m.transfer_ns(*d)).collect();
        assert!(ns.windows(2).all(|w| w[0] <= w[1]), "{id}: {ns:?}");
        for op in [
            "syscall",
            "switch_to_hw",
            "ipi_to_handler",
            "ipi_send_cpu",
            "tick_handler",
        ] {
            assert!(m.kernel_op_ns(op).unwrap() > 0.0);
        }
        assert!(!m.idle_states().is_empty());
    }
}

#[test]
fn numbering_and_domains() {
    let spr = Machine::builtin("spr-8480-2s").unwrap();
    let t = &spr.topology;
    assert_eq!(
        (t.nr_cpus(), t.nr_cores(), t.nr_sockets(), t.nr_llcs()),
        (224, 112, 2, 2)
    );
    assert_eq!(t.siblings(3), [3, 115]);
    assert_eq!(t.cpus[0].distance(&t.cpus[112]), Distance::Smt);
    assert_eq!(t.cpus[0].distance(&t.cpus[55]), Distance::SameSocket);
    assert_eq!(t.cpus[0].distance(&t.cpus[56]), Distance::CrossSocket);
    let genoa = Machine::builtin("genoa-9654-2s").unwrap();
    let t = &genoa.topology;
    assert_eq!(
        (t.nr_cpus(), t.nr_llcs(), t.cpus[8].llc, t.cpus[191].die),
        (384, 24, 1, 23)
    );
    assert_eq!(genoa.transfer_ns(t.cpus[0].distance(&t.cpus[7])), 27.1);
    let kunpeng = Machine::builtin("kunpeng920-6426-2s").unwrap();
    let t = &kunpeng.topology;
    assert_eq!(
        (t.nr_nodes(), t.cpus[127].numa_node, t.cpus[7].cluster),
        (4, 3, 1)
    );
    assert_eq!(t.slit[1][2], 22);
    assert_eq!(kunpeng.memory_ns(0, 1), 135.3);
    assert_eq!(kunpeng.memory_ns(1, 3), 208.6);
}

#[test]
fn a_missing_class_falls_back_to_the_next_farther() {
    let spr = Machine::builtin("spr-8480-2s").unwrap();
    assert_eq!(
        spr.transfer_ns(Distance::SameDie),
        spr.transfer_ns(Distance::SameSocket)
    );
    assert_eq!(spr.rmw_service_ns(Distance::SameDie), 62.0);
    let guest = Machine::builtin("spr-guest-2cpu").unwrap();
    assert_eq!(guest.transfer_ns(Distance::Smt), 71.0);
    let genoa = Machine::builtin("genoa-9654-2s").unwrap();
    assert_eq!(genoa.load_hitm_ns(Distance::SameSocket), 99.3);
}

#[test]
fn figures_keep_their_origin() {
    let spr = Machine::builtin("spr-8480-2s").unwrap();
    let assumed = spr.assumed();
    assert!(
        assumed
            .iter()
            .any(|(path, _)| *path == "atomics.ingress_limit")
    );
    assert!(assumed.iter().all(|(_, f)| f.conf >= Conf::Recalled));
    let f = spr.figure("transfer.same_socket").unwrap();
    let low = spr
        .with_figure("transfer.same_socket", f.lo.unwrap())
        .unwrap();
    assert_eq!(low.transfer_ns(Distance::SameSocket), 36.4);
    assert_ne!(low.hash(), spr.hash());
    let e = spr.with_figure("transfer.same_sockets", 1.0).unwrap_err();
    assert!(e.to_string().contains("same_sockets"), "{e}");
    assert!(spr.with_figure("transfer.smt", f64::NAN).is_err());
    // An operation that the file lacks is there, and admitted.
    let guest = Machine::builtin("spr-guest-2cpu").unwrap();
    assert!(
        guest
            .assumed()
            .iter()
            .any(|(path, _)| *path == "kernel_ops.ipi_send_cpu")
    );
}

#[test]
fn shrinking_keeps_whole_cores() {
    let spr = Machine::builtin("spr-8480-2s").unwrap();
    let m = spr.shrunk(128).unwrap();
    let t = &m.topology;
    assert_eq!((t.nr_cpus(), t.nr_cores(), t.nr_sockets()), (128, 64, 2));
    assert_eq!(t.siblings(0), [0, 64]);
    assert_eq!(t.cpus[32].socket, 1);
    assert_ne!(m.hash(), spr.hash());
    let one = spr.shrunk(8).unwrap();
    assert_eq!((one.topology.nr_cpus(), one.topology.nr_sockets()), (8, 1));
    assert_eq!(one.topology.slit, [[10]]);
    for bad in [0, 7, 226] {
        assert!(spr.shrunk(bad).is_err(), "{bad}");
    }
}

#[test]
fn deep_idle_states_can_be_left_out() {
    let whole = Machine::builtin("xeon-8cpu-2013").unwrap();
    let names = |m: &Machine| -> Vec<String> {
        let states = m.idle_states().into_iter();
        states.map(|state| state.name).collect()
    };
    let shallow = whole.with_idle_up_to("c1e").unwrap();
    assert_eq!(names(&shallow), ["POLL", "C1", "C1E"]);
    assert_ne!(shallow.hash(), whole.hash());
    // Nothing is left out.
    let deepest = whole.with_idle_up_to("C7").unwrap();
    assert_eq!(
        (deepest.hash(), names(&deepest)),
        (whole.hash(), names(&whole))
    );
    let e = shallow.with_idle_up_to("C6").unwrap_err().to_string();
    assert!(e.contains("no idle state `C6`"), "{e}");
}

#[test]
fn an_unknown_id_names_the_nearest() {
    let Err(MachineError::UnknownId { nearest, .. }) = Machine::from_path_or_id("spr-8480") else {
        panic!("accepted")
    };
    assert_eq!(nearest.as_deref(), Some("spr-8480-2s"));
    assert!(matches!(
        Machine::from_path_or_id("no/such.toml"),
        Err(MachineError::Io { .. })
    ));
}

/// Replaces `from` in the Sapphire Rapids file and returns line and message of the complaint.
fn complaint(from: &str, to: &str) -> (usize, String) {
    assert!(SPR.contains(from), "{from}");
    match Machine::from_toml("m.toml", &SPR.replacen(from, to, 1)) {
        Err(MachineError::Bad(b)) => (b.line, format!("{} | {}", b.message, b.expected)),
        other => panic!("{from} -> {to}: {other:?}"),
    }
}

fn line_of(needle: &str) -> usize {
    1 + SPR[..SPR.find(needle).unwrap()].matches('\n').count()
}

#[test]
fn figures_that_would_be_rounded_away_are_refused() {
    let cases = [
        (
            "model_ghz = { v = 3.0",
            "model_ghz = { v = 1e-5",
            "0.1 to 100 GHz",
        ),
        (
            "model_ghz = { v = 3.0",
            "model_ghz = { v = 1e9",
            "0.1 to 100 GHz",
        ),
        (
            "cluster_cpus = 0",
            "cluster_cpus = 3",
            "do not divide the 112 CPUs",
        ),
        (
            "cluster_cpus = 0",
            "cluster_cpus = 48",
            "do not divide the 112 CPUs",
        ),
        (
            "shared_by = \"core\"",
            "shared_by = \"cores\"",
            "core, cluster, die, socket",
        ),
    ];
    for (from, to, expected) in cases {
        let (line, message) = complaint(from, to);
        assert!(message.contains(expected), "{from} -> {to}: {message}");
        assert_eq!(line, line_of(from));
    }
}

#[test]
fn bad_files_are_refused_with_line_and_expectation() {
    let cases = [
        ("cpus = 224", "cpus = 0", "cpus is 0"),
        ("cpus = 224", "cpus = 223", "= 224"),
        ("cpus = 224", "cpus = 1024", "at most 512"),
        ("sockets = 2", "sockets = -2", ""),
        ("cpu+112", "cpu+56", "cpu+112"),
        ("[10, 21],\n", "[10],\n", "slit"),
        (
            "cpus = 224",
            "cpus = 224\ncpu_capacity = [1024, 512]",
            "has 2 numbers | one for each of 224 CPUs",
        ),
        ("schema = 1", "schema = 2", "schema = 1"),
        (
            "same_socket = { v = 65.0",
            "same_socket = { v = -65.0",
            "transfer.same_socket is -65",
        ),
        (
            "local = { v = 109.0",
            "local = { v = nan",
            "memory.local is NaN",
        ),
        (
            "local = { v = 109.0",
            "local = { v = inf",
            "memory.local is inf",
        ),
        (
            "local = { v = 109.0",
            "lokal = { v = 109.0",
            "memory.lokal is not known",
        ),
        (
            "v = 145.0, lo = 125, hi = 165",
            "v = 245.0, lo = 125, hi = 165",
            "lo <= v <= hi",
        ),
        ("level = 2", "level = 4", "1, 2, 3"),
        ("conf = \"vendor\"", "conf = \"rumour\"", "rumour"),
        (
            "[atomics]",
            "[atomix]",
            "did you mean `atomics`? | a machine",
        ),
    ];
    for (from, to, expected) in cases {
        let (line, message) = complaint(from, to);
        assert!(message.contains(expected), "{from} -> {to}: {message}");
        assert!(line > 0);
    }
    assert_eq!(
        complaint("cpus = 224", "cpus = 223").0,
        line_of("cpus = 224")
    );
    assert_eq!(complaint("v = 65.0", "v = -65.0").0, line_of("v = 65.0"));
    assert!(matches!(
        Machine::from_toml("m", "  \n"),
        Err(MachineError::Empty { .. })
    ));
    let huge = format!("{SPR}\n#{}", "x".repeat(1 << 20));
    assert!(matches!(
        Machine::from_toml("m", &huge),
        Err(MachineError::TooLarge { .. })
    ));
}

/// Their product is 4 beyond what 64 bits hold, as 4 CPUs would be.
#[test]
fn parts_whose_product_wraps_do_not_fit() {
    let text = include_str!("../../../machines/xeon-8cpu-2013.toml");
    let text = [
        ("dies_per_socket = 1", "dies_per_socket = 976604708"),
        ("cores_per_die = 4", "cores_per_die = 11242729"),
        ("threads_per_core = 2", "threads_per_core = 21841"),
        ("cpus = 8", "cpus = 4"),
        ("linux: siblings are cpu and cpu+4", "linear"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| {
        text.replacen(from, to, 1)
    });
    let Err(MachineError::Bad(bad)) = Machine::from_toml("m.toml", &text) else {
        panic!("accepted");
    };
    assert_eq!(bad.message, "cpus = 4 does not fit");
    let product = 976_604_708u128 * 11_242_729 * 21_841;
    assert_eq!(product as u64, 4, "it wraps");
    assert!(
        bad.expected.ends_with(&format!("= {product}")),
        "{}",
        bad.expected
    );
}

#[test]
fn figures_and_names_that_no_machine_has_are_refused() {
    for (from, to, expected) in [
        (
            "smt = { v = 8.1",
            "smt = { v = 1e8",
            "transfer.smt is 100000000 | a value from 0 to 1e4 ns",
        ),
        (
            "smt = { v = 8.1",
            "smt = { v = [8.1, 9.0]",
            "transfer.smt is a list of 2 numbers | one number",
        ),
        (
            "local = { v = 109.0",
            "local = { v = []",
            "memory.local is a list of 0 numbers | one number",
        ),
        (
            "v = [95.4, 106.3, 111.9, 123.2]",
            "v = []",
            "memory.snc4_local is a list of 0 numbers | a number, or some",
        ),
        ("id = \"spr-8480-2s\"", "id = \" \"", "id is empty"),
        (
            "id = \"spr-8480-2s\"",
            "id = \"a\\u001b[31m\"",
            "id has control characters",
        ),
    ] {
        let (line, message) = complaint(from, to);
        assert!(message.contains(expected), "{from} -> {to}: {message}");
        assert_eq!(line, line_of(from));
    }
}

/// Their figures are found by their names.
#[test]
fn idle_states_have_names_of_their_own() {
    let first = |name: &str| {
        let text = format!("\n[[idle]]\nname = \"{name}\"\n");
        complaint("\n[[idle]]\nname = \"POLL\"\n", &text)
    };
    for (name, expected) in [
        ("", "name is empty | a name of its own, without dots"),
        (
            "C\\u0007",
            "name has control characters | a name of its own",
        ),
        (
            "C1.5",
            "idle state `C1.5` | a name of its own, without dots",
        ),
    ] {
        let (line, message) = first(name);
        assert!(message.contains(expected), "{message}");
        assert_eq!(line, 2 + line_of("\n[[idle]]\nname = \"POLL\"\n"));
    }
    let (line, message) = first("c1");
    assert!(message.contains("a second idle state `C1`"), "{message}");
    assert_eq!(line, line_of("name = \"C1\""));
}

#[test]
fn units_sources_and_distances_are_checked_where_they_stand() {
    for (from, to, expected) in [
        (
            "[10, 21],\n",
            "[21, 21],\n",
            "slit: node 0 is as near to node 1 as to itself | each node nearest",
        ),
        (
            "unit = \"GHz\"",
            "unit = \"MHz\"",
            "machine.model_ghz is in `MHz` | the unit `GHz`",
        ),
        (
            "src = \"",
            "src = \"nobody+",
            "has the source `nobody` | a key of [sources]: ",
        ),
    ] {
        let (line, message) = complaint(from, to);
        assert!(message.contains(expected), "{from} -> {to}: {message}");
        assert!(line > 1);
    }
    let clock = complaint("unit = \"GHz\"", "unit = \"MHz\"");
    assert_eq!(clock.0, line_of("unit = \"GHz\""));
}

#[test]
fn hwloc_two_packages() {
    let m = Machine::from_path_or_id(&data("lstopo-2x4x2.xml")).unwrap();
    let t = &m.topology;
    assert_eq!(
        (t.nr_cpus(), t.nr_cores(), t.nr_sockets(), t.nr_llcs()),
        (16, 8, 2, 2)
    );
    assert_eq!(t.siblings(1), [1, 9]);
    assert!(t.siblings_apart);
    assert_eq!(t.slit, [[10, 21], [21, 10]]);
    assert_eq!((t.cpus[3].numa_node, t.cpus[4].numa_node), (0, 1));
    assert_eq!(m.cache(2).unwrap().size_bytes, 1 << 20);
    assert_eq!(m.llc().unwrap().size_bytes, 12 << 20);
    assert_eq!(m.name, "Example two-package server");
    // No latency in the file: all are admitted to be estimates.
    assert_eq!(m.assumed().len(), m.figures().count());
    let based =
        Machine::from_path_or_id(&format!("{}@icx-8358-2s", data("lstopo-2x4x2.xml"))).unwrap();
    assert_eq!(based.transfer_ns(Distance::SameSocket), 51.1);
}

#[test]
fn hwloc_several_l3_per_package() {
    let m = Machine::from_path_or_id(&data("lstopo-2x4l3.xml")).unwrap();
    let t = &m.topology;
    assert_eq!(
        (t.nr_cpus(), t.nr_cores(), t.nr_llcs(), t.nr_nodes()),
        (16, 16, 8, 8)
    );
    assert_eq!(t.cpus[3].llc, 1);
    assert_eq!(t.cpus[15].numa_node, 7);
    assert_eq!(t.slit[0][3], 12);
    assert_eq!(t.slit[0][4], 32);
    assert_eq!(t.cpus[0].distance(&t.cpus[2]), Distance::SameSocket);
    assert_eq!(t.cpus[0].distance(&t.cpus[1]), Distance::SameDie);
}

/// CPUs of two kinds, as of a phone: what Linux says of the fastest is not 1024 in every file.
#[test]
fn hwloc_kinds_of_cpus() {
    let text = std::fs::read_to_string(data("lstopo-2x4x2.xml")).unwrap();
    let kinds = "<cpukind cpuset=\"0x0,,0x0,0x00000f0f\" forced_efficiency=\"0\">\
                 <info name=\"LinuxCapacity\" value=\"256\"/></cpukind>\
                 <cpukind cpuset=\"0x0000f0f0\"><info name=\"CoreType\" value=\"big\"/>\
                 <info name=\"LinuxCapacity\" value=\"512\"/></cpukind></topology>";
    let text = text.replace("</topology>", kinds);
    let m = fairground_sim::machine_file::hwloc::from_xml("x.xml", &text, None).unwrap();
    let slow: Vec<usize> = (0..16)
        .filter(|c| m.topology.cpus[*c].capacity == 512)
        .collect();
    assert_eq!(slow, [0, 1, 2, 3, 8, 9, 10, 11]);
    assert!(m.topology.is_asymmetric());
    assert_eq!(m.topology.cpus[4].capacity, 1024);
}

/// CPUs that are offline are missing in the system's numbers, not here.
#[test]
fn hwloc_numbers_with_holes() {
    let text = std::fs::read_to_string(data("lstopo-2x4x2.xml")).unwrap();
    let of = |text: &str| {
        let read = fairground_sim::machine_file::hwloc::from_xml("x.xml", text, None);
        read.unwrap().topology.cpus
    };
    let whole = of(&text);
    let sparse = of(&text.replacen("\"PU\" os_index=\"9\"", "\"PU\" os_index=\"99\"", 1));
    // CPU 9 has become the last one, and those above it one less.
    assert_eq!(sparse.len(), 16);
    assert_eq!(sparse[15].core, whole[9].core);
    assert_eq!(sparse[9].core, whole[10].core);
    assert_eq!(sparse[1].core, whole[1].core);
}

/// A file that leaves a figure out does not get the operation for nothing.
#[test]
fn a_missing_price_is_a_generic_one() {
    let without = |key: &str| {
        let lines = SPR.lines().filter(|line| !line.starts_with(key));
        let text = lines.collect::<Vec<_>>().join("\n");
        Machine::from_toml("m.toml", &text).unwrap()
    };
    let figure = |m: &Machine, path: &str| m.figure(path).map(|figure| figure.v);
    assert_eq!(figure(&without("div64 ="), "alu.div64"), Some(18.0));
    assert_eq!(
        figure(&without("syscall ="), "kernel_ops.syscall"),
        Some(60.0)
    );
}

#[test]
fn hwloc_bad_files() {
    let text = std::fs::read_to_string(data("lstopo-2x4x2.xml")).unwrap();
    let refuse = |text: &str, what: &str| match fairground_sim::machine_file::hwloc::from_xml(
        "x.xml", text, None,
    ) {
        Err(MachineError::Bad(b)) => {
            assert!(b.message.contains(what), "{}", b.message);
            b.line
        }
        other => panic!("{what}: {other:?}"),
    };
    refuse(&text.replace("type=\"PU\"", "type=\"Misc\""), "0 CPUs");
    let kind = |cpuset: &str, capacity: &str| {
        let kind = format!(
            "<cpukind cpuset=\"{cpuset}\"><info name=\"LinuxCapacity\" value=\"{capacity}\"/>\
             </cpukind></topology>"
        );
        text.replace("</topology>", &kind)
    };
    let lines = text.lines().count();
    let at = refuse(&kind("0xf0f,,0xslow", "256"), "cpuset `0xf0f,,0xslow`");
    assert_eq!(at, lines);
    assert_eq!(refuse(&kind("0xf", "big"), "LinuxCapacity `big`"), lines);
    refuse(&kind("0xf", "0"), "LinuxCapacity `0`");
    refuse(
        &text.replace("version=\"2.0\"", "version=\"1.0\""),
        "version",
    );
    let twice = text.replacen("\"PU\" os_index=\"9\"", "\"PU\" os_index=\"8\"", 1);
    refuse(&twice, "os_index 8 twice");
    refuse("<html></html>", "topology");
    let broken = text.replacen("</object>", "</objekt>", 1);
    assert!(refuse(&broken, "") > 1);
    refuse(&text.replace(">10 21 21 10 <", ">10 21 21 <"), "matrix");
    let near = text.replace(">10 21 21 10 <", ">10 21 10 10 <");
    let place = text.lines().position(|line| line.contains("<distances2"));
    let at = refuse(&near, "node 1 is as near to node 0 as to itself");
    assert_eq!(Some(at - 1), place);
}

#[test]
fn the_fastest_cpu_has_full_capacity() {
    let of = |list: &str| {
        let text = include_str!("../../../machines/xeon-8cpu-2013.toml");
        let text = text.replacen("cpus = 8", &format!("cpus = 8\ncpu_capacity = {list}"), 1);
        Machine::from_toml("m.toml", &text)
    };
    let machine = of("[1024, 1024, 1024, 1024, 300, 300, 300, 300]").unwrap();
    assert_eq!(machine.topology.cpus[7].capacity, 300);
    for list in [
        "[512, 512, 512, 512, 300, 300, 300, 300]",
        "[1024, 0, 1, 1, 1, 1, 1, 1]",
        "[1025, 1, 1, 1, 1, 1, 1, 1]",
    ] {
        let Err(MachineError::Bad(bad)) = of(list) else {
            panic!("{list}");
        };
        assert!(bad.expected.contains("1 to 1024"), "{}", bad.expected);
    }
}

/// Those of Intel from C3 on, AMD's CC6 (a port), and what a file says.
#[test]
fn deep_states_flush_the_caches_of_a_core() {
    let flushing = |machine: &Machine| -> Vec<String> {
        let states = machine.idle_states().into_iter();
        states
            .filter(|s| s.flushes_caches)
            .map(|s| s.name)
            .collect()
    };
    for (id, names) in [
        ("xeon-8cpu-2013", &["C3", "C6", "C7"][..]),
        ("gnr-6972p-2s", &["C6", "C6P"]),
        ("genoa-9654-2s", &["C2"]),
        ("kunpeng920-6426-2s", &[]),
        ("spr-guest-2cpu", &[]),
    ] {
        let machine = Machine::from_path_or_id(id).unwrap();
        assert_eq!(flushing(&machine), names, "{id}");
    }
    let text = include_str!("../../../machines/icx-8358-2s.toml");
    let says = |state: &str, what: &str| {
        let (named, says) = (
            format!("name = \"{state}\"\n"),
            format!("flushes_caches = {what}\n"),
        );
        let text = text.replace(&named, &format!("{named}{says}"));
        flushing(&Machine::from_toml("icx.toml", &text).unwrap())
    };
    assert_eq!(says("C6", "false"), [""; 0]);
    assert_eq!(says("C1E", "true"), ["C1E", "C6"]);
}

#[test]
fn a_machine_is_read_from_its_file_if_it_has_one() {
    for (arg, file) in [
        ("spr-8480-2s", None),
        ("m.toml", Some(("m.toml", None))),
        ("a.xml@spr-8480-2s", Some(("a.xml", Some("spr-8480-2s")))),
        ("me@home.toml", Some(("me@home.toml", None))),
    ] {
        assert_eq!(Machine::file_of(arg), file, "{arg}");
    }
}

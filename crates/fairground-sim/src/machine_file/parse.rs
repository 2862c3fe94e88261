//! From the file as written to a checked [`Machine`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toml::Spanned;

use super::caches::caches;
use super::error::Text;
use super::figures::Figures;
use super::idle;
use super::raw::{RawFile, RawMachine, RawTopology};
use super::topology::{CpuPlace, FULL_CAPACITY, NEAREST, Topology, not_nearest};
use super::{Conf, FNV_START, Figure, MAX_CPUS, Machine, MachineError, fnv1a};
use crate::workload::nearest::with_nearest;

/// What two threads of a core do together over one alone, where a file does not say: as the files
/// of the servers have it.
const SMT: f64 = 1.22;
const SMT_PATH: &str = "alu.smt_throughput";

/// Stand-ins for operations that a file leaves out, which would be free without: generic figures of
/// the other files.
const GENERIC: [(&str, f64, &str); 8] = [
    ("kernel_ops.syscall", 60.0, "ns"),
    ("kernel_ops.switch_to_hw", 150.0, "ns"),
    ("kernel_ops.ipi_to_handler", 1243.0, "ns"),
    ("kernel_ops.ipi_send_cpu", 200.0, "ns"),
    ("kernel_ops.irq_entry_exit", 300.0, "ns"),
    ("kernel_ops.tick_handler", 1500.0, "ns"),
    ("kernel_ops.sched_clock", 8.0, "ns"),
    ("alu.div64", 18.0, "cycles"),
];

/// Clocks that a machine may have.
const CLOCK_GHZ: RangeInclusive<f64> = 0.1..=100.0;

pub(super) fn machine(path: &str, text: &str) -> Result<Machine, MachineError> {
    let t = Text { path, text };
    let raw: RawFile = toml::from_str(text).map_err(|e| {
        let expected = "a machine description, schema = 1 (see machines/README.md)";
        let message = with_nearest(e.message());
        t.bad(e.span().unwrap_or(0..0), message, expected)
    })?;
    if *raw.schema.get_ref() != 1 {
        return Err(t.bad(raw.schema.span(), "unknown schema", "schema = 1"));
    }
    names(&t, &raw.machine)?;
    let topology = topology(&t, &raw.topology)?;
    let mut figures = Figures {
        t: &t,
        sources: &raw.sources,
        map: BTreeMap::new(),
    };
    figures.add("machine.model_ghz", &raw.machine.model_ghz)?;
    let ghz = figures.map["machine.model_ghz"].v;
    if !(CLOCK_GHZ.contains(&ghz)) {
        let at = raw.machine.model_ghz.span();
        let expected = format!("{} to {} GHz", CLOCK_GHZ.start(), CLOCK_GHZ.end());
        return Err(t.bad(at, format!("a clock of {ghz} GHz"), expected));
    }
    let caches = caches(&t, &raw, &mut figures)?;
    for (name, table) in [
        ("memory", raw.memory.get_ref()),
        ("transfer", raw.transfer.get_ref()),
        ("transfer_2s", &raw.transfer_2s),
        ("atomics", raw.atomics.get_ref()),
        ("alu", &raw.alu),
        ("kernel_ops", &raw.kernel_ops),
        ("idle_note", &raw.idle_note),
    ] {
        figures.table(name, table)?;
    }
    let idle_kinds = idle::states(&raw, &mut figures)?;
    required(&t, &raw, &topology, &figures.map)?;
    let mut figures = figures.map;
    fill_in(&mut figures);
    if topology.nr_cpus() > topology.nr_cores() {
        let generic = Figure::made(SMT, "ratio", Conf::Estimate, "absent from the file");
        figures.entry(SMT_PATH.into()).or_insert(generic);
    }
    Ok(Machine {
        id: raw.machine.id.into_inner(),
        name: raw.machine.name.into_inner(),
        uarch: raw
            .machine
            .uarch
            .map_or_else(String::new, Spanned::into_inner),
        arch: raw.machine.arch.into_inner(),
        topology,
        caches,
        sources: raw.sources,
        idle_kinds,
        figures,
        cost_scale: super::CostScale::NONE,
        hash: fnv1a(FNV_START, text.as_bytes()),
    })
}

/// What a machine is called stands in terminals and tables.
fn names(t: &Text, machine: &RawMachine) -> Result<(), MachineError> {
    t.name(&machine.id, "id", "a short name")?;
    t.name(&machine.name, "name", "the machine's name")?;
    t.name(&machine.arch, "arch", "`x86_64`, `aarch64`, ...")?;
    match &machine.uarch {
        Some(uarch) if !uarch.get_ref().is_empty() => t.name(uarch, "uarch", "a name"),
        _ => Ok(()),
    }
}

fn topology(t: &Text, raw: &Spanned<RawTopology>) -> Result<Topology, MachineError> {
    let r = raw.get_ref();
    for (key, n) in [
        ("sockets", &r.sockets),
        ("dies_per_socket", &r.dies_per_socket),
        ("cores_per_die", &r.cores_per_die),
        ("threads_per_core", &r.threads_per_core),
        ("cpus", &r.cpus),
        ("llc_domains_per_socket", &r.llc_domains_per_socket),
        ("numa_nodes_per_socket", &r.numa_nodes_per_socket),
    ] {
        if *n.get_ref() == 0 {
            return Err(t.bad(n.span(), format!("{key} is 0"), "at least 1"));
        }
    }
    let (sockets, dies) = (*r.sockets.get_ref(), *r.dies_per_socket.get_ref());
    let (cores, threads) = (*r.cores_per_die.get_ref(), *r.threads_per_core.get_ref());
    // Wide enough for any four numbers: what fits is at most the CPUs, and so is each part of it.
    let product: u128 = [sockets, dies, cores, threads]
        .iter()
        .map(|n| u128::from(*n))
        .product();
    let cpus = *r.cpus.get_ref();
    if cpus as usize > MAX_CPUS {
        return Err(t.bad(
            r.cpus.span(),
            format!("{cpus} CPUs"),
            format!("at most {MAX_CPUS}"),
        ));
    }
    if product != u128::from(cpus) {
        let expected = format!(
            "cpus = sockets x dies_per_socket x cores_per_die x threads_per_core = {product}"
        );
        return Err(t.bad(
            r.cpus.span(),
            format!("cpus = {cpus} does not fit"),
            expected,
        ));
    }
    let per_socket = dies * cores;
    for (key, n) in [
        ("llc_domains_per_socket", &r.llc_domains_per_socket),
        ("numa_nodes_per_socket", &r.numa_nodes_per_socket),
    ] {
        if !per_socket.is_multiple_of(*n.get_ref()) {
            let m = format!("{key} does not divide the {per_socket} cores of a socket");
            return Err(t.bad(n.span(), m, "a divisor"));
        }
    }
    let cluster = cluster_cpus(r);
    let per_llc = per_socket / r.llc_domains_per_socket.get_ref() * threads;
    let whole = cluster.is_multiple_of(threads) && per_llc.is_multiple_of(cluster.max(1));
    if cluster > 0 && !whole {
        let m = format!("clusters of {cluster} CPUs do not divide the {per_llc} CPUs of a cache");
        let expected = "0 for none, or a divisor in whole cores";
        let at = r.cluster_cpus.as_ref().map_or(0..0, Spanned::span);
        return Err(t.bad(at, m, expected));
    }
    let siblings_apart = numbering(t, r, sockets * per_socket)?;
    let mut places: Vec<CpuPlace> = (0..cpus).map(|cpu| place(r, cpu, siblings_apart)).collect();
    capacities(t, r, &mut places)?;
    let nodes = (sockets * r.numa_nodes_per_socket.get_ref()) as usize;
    Ok(Topology {
        cpus: places,
        slit: slit(t, r, nodes)?,
        siblings_apart,
    })
}

fn slit(t: &Text, r: &RawTopology, nodes: usize) -> Result<Vec<Vec<u32>>, MachineError> {
    let slit = r.slit.get_ref().clone();
    if slit.len() != nodes
        || slit
            .iter()
            .any(|row| row.len() != nodes || row.contains(&0))
    {
        let e = format!("{nodes} rows of {nodes} distances above 0");
        return Err(t.bad(r.slit.span(), "slit does not fit the NUMA nodes", e));
    }
    if let Some(message) = not_nearest(&slit) {
        return Err(t.bad(r.slit.span(), format!("slit: {message}"), NEAREST));
    }
    Ok(slit)
}

/// `linux: siblings are cpu and cpu+N ...` or `linear ...`.
fn numbering(t: &Text, r: &RawTopology, cores: u32) -> Result<bool, MachineError> {
    let words = r.cpu_numbering.get_ref();
    if words.starts_with("linear") {
        return Ok(false);
    }
    let wanted = format!("linux: siblings are cpu and cpu+{cores}");
    if words.starts_with(&wanted)
        && !words[wanted.len()..].starts_with(|c: char| c.is_ascii_digit())
    {
        return Ok(true);
    }
    let at = r.cpu_numbering.span();
    Err(t.bad(
        at,
        "unknown CPU numbering",
        format!("`linear` or `{wanted}`"),
    ))
}

/// CPUs of a cluster; 0 where there are none.
fn cluster_cpus(r: &RawTopology) -> u32 {
    r.cluster_cpus.as_ref().map_or(0, |n| *n.get_ref())
}

fn place(r: &RawTopology, cpu: u32, siblings_apart: bool) -> CpuPlace {
    let threads = *r.threads_per_core.get_ref();
    let cores_per_socket = r.dies_per_socket.get_ref() * r.cores_per_die.get_ref();
    let cores = r.sockets.get_ref() * cores_per_socket;
    let (core, thread) = if siblings_apart {
        (cpu % cores, cpu / cores)
    } else {
        (cpu / threads, cpu % threads)
    };
    let socket = core / cores_per_socket;
    let within = core % cores_per_socket;
    let part = |n: u32| socket * n + within / (cores_per_socket / n);
    let per_cluster = (cluster_cpus(r) / threads).max(1);
    CpuPlace {
        socket,
        die: part(*r.dies_per_socket.get_ref()),
        llc: part(*r.llc_domains_per_socket.get_ref()),
        numa_node: part(*r.numa_nodes_per_socket.get_ref()),
        cluster: core / per_cluster,
        core,
        thread,
        capacity: FULL_CAPACITY,
    }
}

/// `cpu_capacity`: as the kernel shows it in sysfs, the fastest CPU has 1024.
fn capacities(t: &Text, r: &RawTopology, places: &mut [CpuPlace]) -> Result<(), MachineError> {
    let Some(list) = &r.cpu_capacity else {
        return Ok(());
    };
    let given = list.get_ref();
    if given.len() != places.len() {
        let m = format!("cpu_capacity has {} numbers", given.len());
        return Err(t.bad(
            list.span(),
            m,
            format!("one for each of {} CPUs", places.len()),
        ));
    }
    let wrong = given.iter().find(|c| !(1..=FULL_CAPACITY).contains(*c));
    let fastest = given.iter().max().copied().unwrap_or(0);
    if let Some(c) = wrong.or((fastest != FULL_CAPACITY).then_some(&fastest)) {
        let m = format!("a cpu_capacity of {c}");
        let expected = format!("1 to {FULL_CAPACITY}, which the fastest CPU has");
        return Err(t.bad(list.span(), m, expected));
    }
    for (place, capacity) in places.iter_mut().zip(given) {
        place.capacity = *capacity;
    }
    Ok(())
}

fn required(
    t: &Text,
    raw: &RawFile,
    topology: &Topology,
    figures: &BTreeMap<String, Figure>,
) -> Result<(), MachineError> {
    let cross = topology.nr_sockets() > 1;
    let inside = topology.nr_cores() > topology.nr_sockets();
    for (path, at, needed) in [
        ("memory.local", raw.memory.span(), true),
        ("memory.remote", raw.memory.span(), cross),
        ("transfer.same_socket", raw.transfer.span(), inside),
        ("transfer.cross_socket", raw.transfer.span(), cross),
        ("atomics.rmw_uncontended", raw.atomics.span(), true),
        ("atomics.cas_loop_uncontended", raw.atomics.span(), true),
    ] {
        if needed && !figures.contains_key(path) {
            let key = path.split('.').next_back().unwrap_or(path);
            let e = format!("{key} = {{ v = .., unit = \"ns\", conf = \"..\", src = \"..\" }}");
            return Err(t.bad(at, format!("missing latency: {path}"), e));
        }
    }
    Ok(())
}

fn fill_in(figures: &mut BTreeMap<String, Figure>) {
    let src = "absent from the file; generic value";
    for (name, v, unit) in GENERIC {
        let figure = || Figure::made(v, unit, Conf::Estimate, src);
        figures.entry(name.to_owned()).or_insert_with(figure);
    }
}

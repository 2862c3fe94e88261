//! Topology from `lstopo --of xml` (hwloc 2.x).
//!
//! Read: `Package`, `Die`, `L3Cache`, `L2Cache`, `L1Cache`, `Core`, `PU` with `os_index`, memory
//! children (`NUMANode`), the `NUMALatency` matrix of `<distances2>` and `LinuxCapacity` of
//! `<cpukind>`. The format is described in hwloc's manual, "Importing and exporting topologies
//! from/to XML files". It has no latencies: these come from a base machine, or are the figures of
//! a two-socket server, all marked `estimate`. Clusters are `Group` objects of subkind or name
//! "Cluster".

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::error::Text;
use super::topology::{CpuPlace, FULL_CAPACITY, NEAREST, Topology, not_nearest};
use super::{CacheLevel, Conf, MAX_CPUS, Machine, MachineError, fnv1a};

/// The machine whose latencies stand in when no base is named.
const DEFAULT_BASE: &str = "spr-8480-2s";

/// Reads hwloc XML. `path` is used in messages; its file name and the name of the base become the
/// id, `FILE@BASE`.
///
/// # Errors
/// [`MachineError::Bad`] for broken XML, hwloc 1.x, no PU, more than 512 PUs, or `os_index`es
/// that are not 0..n.
pub fn from_xml(path: &str, text: &str, base: Option<&Machine>) -> Result<Machine, MachineError> {
    let t = Text { path, text };
    let found = walk(&t)?;
    let (topology, _) = build(&t, &found)?;
    let mut machine = match base {
        Some(base) => base.clone(),
        None => generic()?,
    };
    let stem = std::path::Path::new(path)
        .file_stem()
        .map_or_else(|| "hwloc".into(), |s| s.to_string_lossy().into_owned())
        .replace(char::is_control, "?");
    machine.name = found
        .name
        .clone()
        .unwrap_or_else(|| format!("hwloc topology {stem}"));
    // Whose latencies these are belongs to what the machine is.
    machine.id = format!("{stem}@{}", machine.id);
    if let Some(arch) = &found.arch {
        machine.arch.clone_from(arch);
    }
    for (level, size, line, ways) in &found.caches {
        if let Some(cache) = machine.caches.iter_mut().find(|c| c.level == *level) {
            *cache = CacheLevel {
                level: *level,
                size_bytes: *size,
                line_bytes: *line,
                ways: if *ways > 0 { *ways as u32 } else { cache.ways },
                shared_by: cache.shared_by.clone(),
            };
        }
    }
    machine.topology = topology;
    machine.hash = fnv1a(machine.hash, text.as_bytes());
    Ok(machine)
}

fn generic() -> Result<Machine, MachineError> {
    let mut m = Machine::builtin(DEFAULT_BASE)?;
    for f in m.figures.values_mut() {
        f.conf = Conf::Estimate;
        f.note = format!("hwloc gives no latencies; value of {DEFAULT_BASE}");
    }
    Ok(m)
}

/// One PU with the running numbers of the objects around it (made dense later).
struct Pu {
    os_index: u32,
    at: usize,
    place: CpuPlace,
}

#[derive(Default)]
struct Found {
    pus: Vec<Pu>,
    nodes: Vec<u32>,
    caches: Vec<(u8, u64, u32, i64)>,
    slit_index: Vec<u32>,
    slit: Vec<u32>,
    name: Option<String>,
    arch: Option<String>,
    /// CPUs of the open `<cpukind>`, by `os_index`.
    kind: Vec<u32>,
    /// CPUs and their capacity.
    capacities: Vec<(Vec<u32>, u32)>,
}

/// Running numbers of the open objects, copied when an object opens and restored at its end.
#[derive(Clone, Copy, Default)]
struct Scope {
    package: u32,
    die: Option<u32>,
    l3: Option<u32>,
    cluster: Option<u32>,
    core: u32,
    /// Index into `Found::nodes` of the nearest memory child.
    node: Option<u32>,
    /// First PU of this object: a memory child applies to the whole object, and may come
    /// before or after the PUs.
    first_pu: usize,
}

#[derive(PartialEq, Clone, Copy)]
enum Part {
    None,
    Indexes,
    Values,
}

fn walk(t: &Text) -> Result<Found, MachineError> {
    let mut reader = Reader::from_str(t.text);
    let mut found = Found::default();
    let mut stack = vec![Scope::default()];
    let mut count = [0u32; 6];
    let mut matrix = false;
    let mut part = Part::None;
    let mut seen_root = false;
    loop {
        let at = reader.buffer_position() as usize;
        let event = reader.read_event();
        let end = reader.buffer_position() as usize;
        let xml = |m: String| t.bad(at..end, m, "well-formed output of `lstopo --of xml`");
        match event.map_err(|e| xml(e.to_string()))? {
            Event::Start(e) => match e.name().as_ref() {
                "object" => {
                    let outer = *stack.last().unwrap_or(&Scope::default());
                    stack.push(open(t, at, &e, outer, &mut found, &mut count)?);
                }
                "topology" => seen_root = root(t, at..end, &e)?,
                "cpukind" => found.kind = cpukind(t, at..end, &e)?,
                "distances2" => matrix = attr(&e, "name").is_some_and(|n| n == "NUMALatency"),
                "indexes" if matrix => part = Part::Indexes,
                "u64values" if matrix => part = Part::Values,
                _ => {}
            },
            Event::Empty(e) => match e.name().as_ref() {
                "object" => {
                    let outer = *stack.last().unwrap_or(&Scope::default());
                    open(t, at, &e, outer, &mut found, &mut count)?;
                    propagate(&e, &mut stack, &mut found);
                }
                "info" => info(t, at..end, &e, &mut found)?,
                "topology" => return Err(t.bad(at..end, "an empty <topology>", "objects in it")),
                _ => {}
            },
            Event::Text(words) if part != Part::None => {
                let words = words.into_inner();
                let numbers = numbers(&words);
                let list = if part == Part::Indexes {
                    &mut found.slit_index
                } else {
                    &mut found.slit
                };
                list.extend(numbers.ok_or_else(|| xml("not a list of numbers".into()))?);
            }
            Event::End(e) => match e.name().as_ref() {
                "object" if stack.len() > 1 => {
                    let closed = stack.pop().unwrap_or_default();
                    close(closed, &mut stack, &mut found);
                }
                "cpukind" => found.kind.clear(),
                "distances2" => matrix = false,
                "indexes" | "u64values" => part = Part::None,
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    if !seen_root {
        return Err(t.bad(0..1, "no <topology> element", "output of `lstopo --of xml`"));
    }
    Ok(found)
}

fn numbers(words: &str) -> Option<Vec<u32>> {
    words.split_whitespace().map(|w| w.parse().ok()).collect()
}

fn root(t: &Text, at: Range<usize>, e: &BytesStart) -> Result<bool, MachineError> {
    let version = attr(e, "version").unwrap_or_default();
    if version.starts_with("2.") || version.starts_with("3.") {
        return Ok(true);
    }
    Err(t.bad(
        at,
        format!("hwloc XML version `{version}`"),
        "version 2 or 3",
    ))
}

/// An attribute, which can be shown on a terminal.
fn attr(e: &BytesStart, name: &str) -> Option<String> {
    let a = e.try_get_attribute(name).ok()??;
    Some(a.value.chars().filter(|c| !c.is_control()).collect())
}

fn info(t: &Text, at: Range<usize>, e: &BytesStart, found: &mut Found) -> Result<(), MachineError> {
    let value = attr(e, "value");
    match attr(e, "name").as_deref() {
        Some("CPUModel") if found.name.is_none() => found.name = value,
        Some("Architecture") => found.arch = value,
        Some("LinuxCapacity") if !found.kind.is_empty() => {
            let value = value.unwrap_or_default();
            let number = value.parse().ok().filter(|n| *n > 0);
            let number = number.ok_or_else(|| {
                let message = format!("LinuxCapacity `{value}`");
                t.bad(at, message, "a capacity above 0, of 1024 at most")
            })?;
            let kind = std::mem::take(&mut found.kind);
            found.capacities.push((kind, number));
        }
        _ => {}
    }
    Ok(())
}

/// The CPUs of a `<cpukind>`.
fn cpukind(t: &Text, at: Range<usize>, e: &BytesStart) -> Result<Vec<u32>, MachineError> {
    let words = attr(e, "cpuset").unwrap_or_default();
    cpuset(&words).ok_or_else(|| {
        let message = format!("cpuset `{words}` of a kind of CPUs");
        t.bad(at, message, "a mask like 0x3,0xffffffff")
    })
}

/// The CPUs of a mask like `0x3,0xffffffff`: words of 32 bits, the first CPUs in the last. A word
/// of 0 may be empty.
fn cpuset(words: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (n, word) in (0..).zip(words.rsplit(',')) {
        let hex = word.trim().trim_start_matches("0x");
        let word = match hex.is_empty() {
            true => 0,
            false => u32::from_str_radix(hex, 16).ok()?,
        };
        if n >= MAX_CPUS as u32 / 32 {
            match word {
                0 => break,
                _ => return None,
            }
        }
        cpus.extend((0..32).filter(|b| word >> b & 1 == 1).map(|b| 32 * n + b));
    }
    Some(cpus)
}

/// The scope inside an object; records PUs, nodes and cache sizes.
fn open(
    t: &Text,
    at: usize,
    e: &BytesStart,
    mut scope: Scope,
    found: &mut Found,
    count: &mut [u32; 6],
) -> Result<Scope, MachineError> {
    let mut next = |kind: usize| {
        count[kind] += 1;
        count[kind] - 1
    };
    scope.first_pu = found.pus.len();
    let number = |name: &str| attr(e, name).and_then(|v| v.parse::<u64>().ok());
    let span = at..at + e.len();
    let kind = attr(e, "type").unwrap_or_default();
    match kind.as_str() {
        "Package" => scope.package = next(0),
        "Die" => scope.die = Some(next(1)),
        "L3Cache" => scope.l3 = Some(next(2)),
        "Core" => scope.core = next(3),
        "Group" if attr(e, "subtype").as_deref() == Some("Cluster") => {
            scope.cluster = Some(next(4))
        }
        "NUMANode" => {
            let os = number("os_index").unwrap_or(found.nodes.len() as u64) as u32;
            scope.node = Some(found.nodes.len() as u32);
            found.nodes.push(os);
        }
        "PU" => {
            let Some(os_index) = number("os_index") else {
                return Err(t.bad(span, "PU without os_index", "a number"));
            };
            let place = CpuPlace {
                socket: scope.package,
                die: scope
                    .die
                    .or(scope.l3)
                    .map_or(1 << 20 | scope.package, |d| d),
                llc: scope.l3.map_or(1 << 20 | scope.package, |l| l),
                numa_node: scope.node.unwrap_or(u32::MAX),
                cluster: scope.cluster.map_or(1 << 20 | scope.core, |c| c),
                core: scope.core,
                thread: 0,
                capacity: FULL_CAPACITY,
            };
            found.pus.push(Pu {
                os_index: os_index as u32,
                at,
                place,
            });
            if found.pus.len() > MAX_CPUS {
                return Err(t.bad(span, "too many PUs", format!("at most {MAX_CPUS}")));
            }
        }
        _ => {}
    }
    cache(&kind, e, found);
    Ok(scope)
}

/// Records the size of the first cache of each level.
fn cache(kind: &str, e: &BytesStart, found: &mut Found) {
    let level = match kind {
        "L1Cache" => 1,
        "L2Cache" => 2,
        "L3Cache" => 3,
        _ => return,
    };
    let number = |name: &str| attr(e, name).and_then(|v| v.parse::<u64>().ok());
    let (size, line) = (number("cache_size"), number("cache_linesize"));
    if let (Some(size @ 1..), Some(line @ 16..=1024)) = (size, line)
        && found.caches.iter().all(|c| c.0 != level)
    {
        let ways = attr(e, "cache_associativity")
            .and_then(|w| w.parse().ok())
            .unwrap_or(0);
        found.caches.push((level, size, line as u32, ways));
    }
}

/// An empty `<object .../>` has no end event: a NUMA node then applies to its parent at once.
fn propagate(e: &BytesStart, stack: &mut [Scope], found: &mut Found) {
    if attr(e, "type").as_deref() == Some("NUMANode") {
        let node = found.nodes.len() as u32 - 1;
        adopt(node, stack, found);
    }
}

fn close(closed: Scope, stack: &mut [Scope], found: &mut Found) {
    let Some(parent) = stack.last() else { return };
    // Only a NUMANode object changes the node between itself and its parent.
    if let Some(node) = closed.node
        && closed.node != parent.node
        && found.pus.len() == closed.first_pu
    {
        adopt(node, stack, found);
    }
}

/// The node becomes the memory of the innermost open object: of PUs seen and to come.
fn adopt(node: u32, stack: &mut [Scope], found: &mut Found) {
    let Some(parent) = stack.last_mut() else {
        return;
    };
    if parent.node.is_none_or(|n| n != node) {
        parent.node = Some(node);
    }
    for pu in &mut found.pus[parent.first_pu..] {
        if pu.place.numa_node == u32::MAX {
            pu.place.numa_node = node;
        }
    }
}

fn build(t: &Text, found: &Found) -> Result<(Topology, Vec<u32>), MachineError> {
    let Some(first) = found.pus.first() else {
        return Err(t.bad(0..1, "0 CPUs: no PU object", "at least one PU"));
    };
    let mut pus: Vec<(u32, usize, CpuPlace)> = found
        .pus
        .iter()
        .map(|p| (p.os_index, p.at, p.place))
        .collect();
    pus.sort_by_key(|p| p.0);
    if let Some(two) = pus.windows(2).find(|two| two[0].0 == two[1].0) {
        let p = two[1];
        let m = format!("PU os_index {} twice", p.0);
        return Err(t.bad(p.1..p.1 + 1, m, "a number of its own for each CPU"));
    }
    // CPUs that are offline leave holes; here they are numbered without.
    let mut cpus: Vec<CpuPlace> = pus.iter().map(|p| p.2).collect();
    let numbers: Vec<u32> = pus.iter().map(|p| p.0).collect();
    capacities(found, &numbers, &mut cpus);
    // Nodes are numbered by the system's order, so that the matrix can be looked up.
    let mut order: Vec<u32> = (0..found.nodes.len() as u32).collect();
    order.sort_by_key(|n| found.nodes[*n as usize]);
    let last = cpus.iter().any(|p| p.numa_node == u32::MAX) && found.nodes.is_empty();
    for p in &mut cpus {
        p.numa_node = match order.iter().position(|n| *n == p.numa_node) {
            Some(n) => n as u32,
            None if last => 0,
            None => return Err(t.bad(first.at..first.at + 1, "PU without NUMA node", "a node")),
        };
    }
    let mut topology = Topology {
        cpus,
        slit: Vec::new(),
        siblings_apart: false,
    };
    topology.renumber();
    topology.slit = slit(t, found, &order)?;
    Ok((topology, order))
}

/// What Linux said of the capacity of each kind of CPU, relative to the fastest.
/// `numbers`: those of the system, sorted.
fn capacities(found: &Found, numbers: &[u32], cpus: &mut [CpuPlace]) {
    let fastest = found.capacities.iter().map(|kind| kind.1).max();
    let Some(fastest) = fastest.filter(|c| *c > 0) else {
        return;
    };
    for (kind, capacity) in &found.capacities {
        let of_full = u64::from(*capacity) * u64::from(FULL_CAPACITY) / u64::from(fastest);
        for cpu in kind {
            if let Ok(nth) = numbers.binary_search(cpu) {
                cpus[nth].capacity = (of_full as u32).max(1);
            }
        }
    }
}

fn slit(t: &Text, found: &Found, order: &[u32]) -> Result<Vec<Vec<u32>>, MachineError> {
    let n = order.len().max(1);
    let os: Vec<u32> = order.iter().map(|i| found.nodes[*i as usize]).collect();
    if order.is_empty() || found.slit.is_empty() {
        // hwloc leaves the matrix out where the system has none: local and one hop. One without
        // nodes is about nothing: all CPUs are on one.
        let row = |a| (0..n).map(|b| if a == b { 10 } else { 20 }).collect();
        return Ok((0..n).map(row).collect());
    }
    let k = found.slit_index.len();
    let position = |node: &u32| found.slit_index.iter().position(|i| i == node);
    let rows: Option<Vec<usize>> = os.iter().map(position).collect();
    let at = t.text.find("<distances2").unwrap_or(0);
    let bad = |message: &str, expected| Err(t.bad(at..at + 11, message, expected));
    let Some(rows) = rows.filter(|_| found.slit.len() == k * k) else {
        return bad("distance matrix does not fit the nodes", "n x n values");
    };
    let row = |a: &usize| rows.iter().map(|b| found.slit[a * k + b]).collect();
    let slit: Vec<Vec<u32>> = rows.iter().map(row).collect();
    match not_nearest(&slit) {
        Some(message) => bad(&format!("distance matrix: {message}"), NEAREST),
        None => Ok(slit),
    }
}

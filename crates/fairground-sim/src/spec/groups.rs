//! The cgroup tree of a scenario: paths and parents resolved, attributes checked as the kernel
//! checks them (`Documentation/admin-guide/cgroup-v2.rst` and `scheduler/sched-bwc.rst`).
use super::error::{Error, Source};
use super::group_values::{burst, check_burst, cpu_max, weight};
use super::names::mask;
use super::node::{Fields, Node, unknown_name};
use super::scenario::Length;
use crate::workload::program::{Cgroup, CgroupWrite, Event, Ns, Until, Workload};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of `[[cgroup]]`.
pub const CGROUP_KEYS: &[&str] = &[
    "path",
    "parent",
    "count",
    "cpu.weight",
    "cpu.shares",
    "cpu.max",
    "cpu.max.burst",
    "cpu.idle",
    "cpuset.cpus",
];
/// Keys of `[[event]]`.
pub const EVENT_KEYS: &[&str] = &[
    "at",
    "cgroup",
    "cpu.weight",
    "cpu.shares",
    "cpu.max",
    "cpu.max.burst",
    "cpu.idle",
];
/// Most groups of a scenario.
const GROUPS_MAX: usize = 1_000_000;

/// Of an idle group; nothing would come of it.
const WEIGHT_REFUSED: &str = "the kernel refuses a weight while cpu.idle is 1";

/// What names of cgroups stand for: several groups if it was declared with a count.
pub type Groups = BTreeMap<String, Range<u32>>;

struct Declared<'a> {
    fields: Fields<'a>,
    path: String,
    /// Index of the declaration of the parent, `None` for the root.
    parent: Option<usize>,
    count: u32,
}

/// Reads all `[[cgroup]]` into `w`, parents first.
pub fn declare(
    source: &Source,
    nodes: &[Node],
    cpus: Option<u32>,
    w: &mut Workload,
) -> Result<Groups, Error> {
    let declared = resolve(source, nodes)?;
    let mut groups = Groups::from([("/".to_owned(), 0..1)]);
    let mut index = vec![0u32; declared.len()];
    let mut paths = BTreeSet::new();
    for i in parents_first(source, &declared)? {
        let d = &declared[i];
        let parent = d.parent.map_or(0, |p| index[p]);
        let above = w.cgroups[parent as usize].path.trim_end_matches('/');
        let name = d.path.rsplit('/').next().unwrap_or_default();
        let path = format!("{above}/{name}");
        let first = w.cgroups.len() as u32;
        let mut group = Cgroup::new(path.clone(), parent);
        attributes(&d.fields, cpus, w, &mut group)?;
        if w.cgroups.len() + d.count as usize > GROUPS_MAX {
            let message = format!("more than {GROUPS_MAX} cgroups");
            return Err(source.error(d.fields.node.span.clone(), message));
        }
        for k in 0..d.count {
            let mut one = group.clone();
            if d.count > 1 {
                one.path = format!("{path}.{k}");
            }
            if !paths.insert(one.path.clone()) {
                let message = format!("the cgroup '{}' is declared twice", one.path);
                return Err(source.error(d.fields.node.span.clone(), message));
            }
            if d.fields.get("cpu.max").is_some() {
                // `max`, too: the result is held against those with a limit.
                w.watched.push(first + k);
            }
            w.cgroups.push(one);
        }
        index[i] = first;
        let range = first..first + d.count;
        groups.insert(d.path.clone(), range.clone());
        if d.path != path && groups.insert(path.clone(), range).is_some() {
            let message = format!("the cgroup '{path}' is declared twice");
            return Err(source.error(d.fields.node.span.clone(), message));
        }
    }
    Ok(groups)
}

/// Finds each declaration's parent.
fn resolve<'a>(source: &'a Source, nodes: &'a [Node]) -> Result<Vec<Declared<'a>>, Error> {
    let mut declared: Vec<Declared<'a>> = Vec::new();
    let mut by_path: BTreeMap<String, usize> = BTreeMap::new();
    for node in nodes {
        let fields = Fields::open(source, node, "a cgroup", CGROUP_KEYS)?;
        let path_node = fields.need("path", "a cgroup")?;
        let path = path_node.str(source, "a path like \"/web\"")?.to_owned();
        check_path(&path).map_err(|e| source.error(path_node.span.clone(), e))?;
        let count = fields
            .get("count")
            .map_or(Ok(1), |n| n.int(source, 1..=100_000))? as u32;
        if by_path.insert(path.clone(), declared.len()).is_some() {
            let message = format!("the cgroup '{path}' is declared twice");
            return Err(source.error(path_node.span.clone(), message));
        }
        declared.push(Declared {
            fields,
            path,
            parent: None,
            count,
        });
    }
    for i in 0..declared.len() {
        let d = &declared[i];
        let path_node = d.fields.need("path", "a cgroup")?;
        let (parent, span) = match (d.fields.get("parent"), d.path.rsplit_once('/')) {
            (Some(node), None) => (node.str(source, "a cgroup")?.to_owned(), node.span.clone()),
            (Some(node), Some(_)) => {
                let message = "an absolute path says its parent already; expected no 'parent'";
                return Err(source.error(node.span.clone(), message));
            }
            (None, Some((above, _))) => (above.to_owned(), path_node.span.clone()),
            (None, None) => (String::new(), path_node.span.clone()),
        };
        if parent.is_empty() || parent == "/" {
            continue;
        }
        let known = by_path.keys().map(String::as_str);
        let found = by_path.get(&parent).copied();
        let found = found.ok_or_else(|| {
            let others = known.filter(|name| *name != d.path);
            unknown_name(source, &span, "parent cgroup", &parent, others).help(Some(format!(
                "declare it too: [[cgroup]] path = \"{parent}\""
            )))
        })?;
        if declared[found].count > 1 {
            let message = format!("'{parent}' are several groups, so it cannot be a parent");
            return Err(source.error(span, message));
        }
        declared[i].parent = Some(found);
    }
    Ok(declared)
}

/// An order in which each parent stands before its children.
fn parents_first(source: &Source, declared: &[Declared<'_>]) -> Result<Vec<usize>, Error> {
    let mut order = Vec::with_capacity(declared.len());
    let mut placed = vec![false; declared.len()];
    for i in 0..declared.len() {
        let mut chain = Vec::new();
        let mut at = Some(i);
        while let Some(k) = at.filter(|&k| !placed[k]) {
            if chain.contains(&k) {
                let names: Vec<&str> = chain.iter().map(|&c: &usize| &*declared[c].path).collect();
                let message = format!(
                    "the cgroup tree has a cycle: {} -> {}",
                    names.join(" -> "),
                    declared[k].path
                );
                return Err(source.error(declared[k].fields.node.span.clone(), message));
            }
            chain.push(k);
            // Nesting deeper than this is a mistake, and keeps the search above linear.
            if chain.len() > 256 {
                let message = "cgroups nest deeper than 256";
                return Err(source.error(declared[i].fields.node.span.clone(), message));
            }
            at = declared[k].parent;
        }
        for k in chain.into_iter().rev() {
            placed[k] = true;
            order.push(k);
        }
    }
    Ok(order)
}

/// The group of a path like "/a/b", made with those above it where they are not there yet.
pub fn enter(w: &mut Workload, path: &str) -> u32 {
    let mut parent = 0;
    for (end, _) in path.match_indices('/').skip(1).chain([(path.len(), "")]) {
        let path = &path[..end];
        let known = w.cgroups.iter().position(|group| group.path == path);
        parent = known.unwrap_or_else(|| {
            w.cgroups.push(Cgroup::new(path, parent as u32));
            w.cgroups.len() - 1
        });
    }
    parent as u32
}

/// Whether a path of a group can be one.
pub fn check_path(path: &str) -> Result<(), String> {
    let relative = path.strip_prefix('/').unwrap_or(path);
    let bad = |p: &str| p.is_empty() || p == "." || p == "..";
    if path == "/" {
        Err("the root cgroup is always there and has no attributes".into())
    } else if relative.split('/').any(bad) || (!path.starts_with('/') && relative.contains('/')) {
        Err(format!(
            "'{path}' is no path; expected \"/a/b\", or a name with 'parent'"
        ))
    } else {
        Ok(())
    }
}

fn attributes(
    fields: &Fields<'_>,
    cpus: Option<u32>,
    w: &mut Workload,
    group: &mut Cgroup,
) -> Result<(), Error> {
    let source = fields.source;
    let written = weight(fields)?;
    if let Some((_, shares)) = written {
        group.shares = shares;
    }
    if let Some(node) = fields.get("cpu.max") {
        (group.quota_ns, group.period_ns) = cpu_max(source, node, group.period_ns)?;
    }
    if let Some(node) = fields.get("cpu.max.burst") {
        group.burst_ns = burst(source, node)?;
        check_burst(source, node, group.burst_ns, group.quota_ns)?;
    }
    if let Some(node) = fields.get("cpu.idle") {
        group.idle = node.bool(source)?;
    }
    if let (true, Some((node, _))) = (group.idle, written) {
        return Err(source.error(node.span.clone(), WEIGHT_REFUSED));
    }
    if let Some(node) = fields.get("cpuset.cpus") {
        group.cpuset = Some(mask(source, node, cpus, w)?);
    }
    Ok(())
}

/// Reads all `[[event]]` into `w`, in order of time.
pub fn events(
    source: &Source,
    nodes: &[Node],
    groups: &Groups,
    w: &mut Workload,
) -> Result<(), Error> {
    let mut opened = Vec::new();
    for node in nodes {
        let fields = Fields::open(source, node, "an event", EVENT_KEYS)?;
        opened.push((fields.need("at", "an event")?.ns(source)?, fields));
    }
    opened.sort_by_key(|(at, _)| *at);
    // What a write of cpu.max or of the burst is checked against: the values at that time.
    let mut idle: Vec<bool> = w.cgroups.iter().map(|g| g.idle).collect();
    let mut now: Vec<(Option<Ns>, Ns, Ns)> = w
        .cgroups
        .iter()
        .map(|g| (g.quota_ns, g.period_ns, g.burst_ns))
        .collect();
    for (at_ns, fields) in opened {
        let name = fields.need("cgroup", "an event")?;
        let range = find(source, name, groups)?;
        if range.contains(&0) {
            return Err(source.error(name.span.clone(), "the root cgroup has no attributes"));
        }
        let before = w.events.len();
        if before + 4 * range.len() > GROUPS_MAX {
            let message = format!("the events make more than {GROUPS_MAX} writes");
            return Err(source.error(fields.node.span.clone(), message));
        }
        for cgroup in range {
            let state = &mut now[cgroup as usize];
            let mut write = |write| {
                w.events.push(Event {
                    at_ns,
                    cgroup,
                    write,
                })
            };
            weight_and_idle(source, &fields, &mut idle[cgroup as usize], &mut write)?;
            let before = state.2;
            let max = fields.get("cpu.max");
            if let Some(node) = max {
                (state.0, state.1) = cpu_max(source, node, state.1)?;
            }
            let new_burst = fields.get("cpu.max.burst");
            if let Some(node) = new_burst {
                state.2 = burst(source, node)?;
            }
            // The kernel refuses a burst above the quota after each write: what falls is first.
            let mut writes = [
                max.map(|_| CgroupWrite::Max {
                    quota_ns: state.0,
                    period_ns: state.1,
                }),
                new_burst.map(|_| CgroupWrite::Burst(state.2)),
            ];
            if state.2 < before {
                writes.reverse();
            }
            writes.into_iter().flatten().for_each(&mut write);
            check_burst(source, fields.node, state.2, state.0)?;
        }
        if w.events.len() == before {
            let message = "an event that writes nothing; expected \"cpu.max\" or another file";
            return Err(source.error(fields.node.span.clone(), message));
        }
    }
    Ok(())
}

/// Refuses events after the end of the run: nothing would come of them.
pub fn none_too_late(
    source: &Source,
    nodes: &[Node],
    length: Length,
    w: &Workload,
) -> Result<(), Error> {
    let Until::Time(end_ns) = w.duration else {
        return Ok(());
    };
    for node in nodes {
        let fields = Fields::open(source, node, "an event", EVENT_KEYS)?;
        let at = fields.need("at", "an event")?;
        if at.ns(source)? >= end_ns {
            let ms = end_ns as f64 / 1e6;
            let message = format!("the run ends before that, after {ms} ms");
            let said = length != Length::default();
            let help = "`--duration` and `--warmup` say how long it is; leave them out, or \
                        measure for longer";
            let error = source.error(at.span.clone(), message);
            return Err(error.help(said.then_some(help)));
        }
    }
    Ok(())
}

/// Writes of weight and `cpu.idle` by one event. The kernel refuses a weight while the group is
/// idle, so what ends that is written before it.
fn weight_and_idle(
    source: &Source,
    fields: &Fields<'_>,
    idle: &mut bool,
    write: &mut impl FnMut(CgroupWrite),
) -> Result<(), Error> {
    let now = fields.get("cpu.idle").map(|node| node.bool(source));
    let now = now.transpose()?;
    if now == Some(false) {
        *idle = false;
        write(CgroupWrite::Idle(false));
    }
    if let Some((node, shares)) = weight(fields)? {
        // With `cpu.idle` the weight would be taken first and then mean nothing.
        if *idle || now == Some(true) {
            return Err(source.error(node.span.clone(), WEIGHT_REFUSED));
        }
        write(CgroupWrite::Shares(shares));
    }
    if now == Some(true) {
        *idle = true;
        write(CgroupWrite::Idle(true));
    }
    Ok(())
}

/// The groups that a name or path stands for.
pub fn find(source: &Source, node: &Node, groups: &Groups) -> Result<Range<u32>, Error> {
    let name = node.str(source, "a cgroup like \"/web\"")?;
    let known = groups.keys().map(String::as_str);
    let unknown = || unknown_name(source, &node.span, "cgroup", name, known);
    groups.get(name).cloned().ok_or_else(unknown)
}

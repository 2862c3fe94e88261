//! Names of things that programs use (pipes, mutexes, ...) and sets of CPUs, resolved to indices
//! of a [`Workload`].
use super::error::{Error, Source};
use super::node::{Fields, Node, Value, unknown_name};
use crate::workload::program::{Chan, ChanKind, Labels, Workload};
use std::collections::BTreeMap;

/// Highest CPU number that is read; `CONFIG_NR_CPUS` of x86 ends there.
const CPU_MAX: u32 = 8191;

/// Most different sets; they are searched one by one.
const MASKS_MAX: usize = 10_000;

/// Index of each declared name, by kind.
#[derive(Debug, Default)]
pub struct Names {
    /// Pipes and sockets.
    pub chans: BTreeMap<String, u32>,
    /// Mutexes.
    pub mutexes: BTreeMap<String, u32>,
    /// Semaphores.
    pub semaphores: BTreeMap<String, u32>,
    /// Futexes.
    pub futexes: BTreeMap<String, u32>,
    /// Condition variables, which are futexes of the C library's.
    pub conds: BTreeMap<String, u32>,
    /// Barriers.
    pub barriers: BTreeMap<String, u32>,
    /// Request/reply services.
    pub services: BTreeMap<String, u32>,
}

impl Names {
    /// Reads the declarations at the top of a scenario into `w`.
    pub fn declare(top: &Fields<'_>, w: &mut Workload) -> Result<Self, Error> {
        let mut names = Self::default();
        for (key, kind) in [("pipes", ChanKind::PIPE), ("sockets", ChanKind::SOCKET)] {
            for (name, node) in list(top, key)? {
                let index = w.chans.len() as u32;
                add(top.source, node, &mut names.chans, name, index)?;
                w.chans.push(Chan { kind });
            }
        }
        let plain = |key, map: &mut BTreeMap<String, u32>, count: &mut u32| {
            for (name, node) in list(top, key)? {
                add(top.source, node, map, name, *count)?;
                *count += 1;
            }
            Ok(())
        };
        plain("mutexes", &mut names.mutexes, &mut w.n_mutexes)?;
        plain("futexes", &mut names.futexes, &mut w.n_futexes)?;
        plain("conditions", &mut names.conds, &mut w.n_futexes)?;
        for (name, node) in list(top, "services")? {
            add(
                top.source,
                node,
                &mut names.services,
                name,
                w.services.len() as u32,
            )?;
            w.services.push(name.to_owned());
        }
        for (name, count) in counted(top, "semaphores", 0)? {
            names.semaphores.insert(name, w.sems.len() as u32);
            w.sems.push(count);
        }
        for (name, parties) in counted(top, "barriers", 1)? {
            names.barriers.insert(name, w.barriers.len() as u32);
            w.barriers.push(parties);
        }
        w.labels = names.labels();
        Ok(names)
    }

    fn labels(&self) -> Labels {
        Labels {
            chans: by_index(&self.chans),
            sems: by_index(&self.semaphores),
            futexes: self.of_futexes(),
            mutexes: by_index(&self.mutexes),
            barriers: by_index(&self.barriers),
        }
    }

    fn of_futexes(&self) -> BTreeMap<u32, String> {
        let mut all = by_index(&self.futexes);
        all.extend(by_index(&self.conds));
        all
    }
}

/// Names by index.
pub fn by_index(names: &BTreeMap<String, u32>) -> BTreeMap<u32, String> {
    names.iter().map(|(name, i)| (*i, name.clone())).collect()
}

/// The index of a name, or an error that shows the known ones.
pub fn find(
    source: &Source,
    node: &Node,
    what: &str,
    map: &BTreeMap<String, u32>,
) -> Result<u32, Error> {
    let name = node.str(source, &format!("the name of a {what}"))?;
    let unknown = || {
        unknown_name(
            source,
            &node.span,
            what,
            name,
            map.keys().map(String::as_str),
        )
    };
    map.get(name).copied().ok_or_else(unknown)
}

fn list<'a>(top: &Fields<'a>, key: &str) -> Result<Vec<(&'a str, &'a Node)>, Error> {
    let Some(node) = top.get(key) else {
        return Ok(Vec::new());
    };
    let items = node.array(top.source, "a list of names")?;
    items
        .iter()
        .map(|n| Ok((n.str(top.source, "a name")?, n)))
        .collect()
}

/// A table of names and numbers.
fn counted(top: &Fields<'_>, key: &str, least: i64) -> Result<Vec<(String, u32)>, Error> {
    let Some(node) = top.get(key) else {
        return Ok(Vec::new());
    };
    let table = node.table(top.source, "a table of names and numbers")?;
    let entry = |(k, v): &(super::node::Key, Node)| {
        k.check_name(top.source, &format!("one of {key}"))?;
        Ok((k.name.clone(), v.int(top.source, least..=1_000_000)? as u32))
    };
    table.iter().map(entry).collect()
}

fn add(
    source: &Source,
    node: &Node,
    map: &mut BTreeMap<String, u32>,
    name: &str,
    index: u32,
) -> Result<(), Error> {
    match map.insert(name.to_owned(), index) {
        None => Ok(()),
        Some(_) => Err(source.error(node.span.clone(), format!("'{name}' is declared twice"))),
    }
}

/// Reads a set of CPUs, "0-3,8" or a list of numbers, and adds it to the masks of `w`. `cpus` is
/// the size of the machine, `None` if it is not known yet.
pub fn mask(
    source: &Source,
    node: &Node,
    cpus: Option<u32>,
    w: &mut Workload,
) -> Result<u32, Error> {
    let mut set = Vec::new();
    match &node.value {
        Value::Str(text) if text == "all" => set.extend(0..cpus.unwrap_or(CPU_MAX + 1)),
        Value::Str(text) => parse_cpus(text, &mut set)
            .map_err(|message| source.error(node.span.clone(), message))?,
        Value::Int(_) => set.push(node.int(source, 0..=i64::from(CPU_MAX))? as u32),
        _ => {
            for item in node.array(source, "CPUs like \"0-3,8\"")? {
                set.push(item.int(source, 0..=i64::from(CPU_MAX))? as u32);
            }
        }
    }
    set.sort_unstable();
    set.dedup();
    if set.is_empty() {
        return Err(source.error(node.span.clone(), "no CPU; expected CPUs like \"0-3,8\""));
    }
    if let Some(cpus) = cpus {
        set.retain(|&c| c < cpus);
        if set.is_empty() {
            let last = cpus.saturating_sub(1);
            let message = format!("no CPU of the machine, which has CPUs 0-{last}");
            return Err(source.error(node.span.clone(), message));
        }
    }
    if let Some(known) = w.masks.iter().position(|m| *m == set) {
        return Ok(known as u32);
    }
    if w.masks.len() >= MASKS_MAX {
        let message = format!("more than {MASKS_MAX} different sets of CPUs");
        return Err(source.error(node.span.clone(), message));
    }
    w.masks.push(set);
    Ok(w.masks.len() as u32 - 1)
}

/// Reads a set of CPUs, "0-3,8", sorted.
///
/// # Errors
/// What is wrong with it.
pub fn cpu_list(text: &str) -> Result<Vec<u32>, String> {
    let mut set = Vec::new();
    parse_cpus(text, &mut set)?;
    set.sort_unstable();
    set.dedup();
    if set.is_empty() {
        return Err("no CPU; expected CPUs like \"0-3,8\"".into());
    }
    Ok(set)
}

fn parse_cpus(text: &str, set: &mut Vec<u32>) -> Result<(), String> {
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.trim().parse::<u32>().ok().filter(|&c| c <= CPU_MAX);
        match (number(first), number(last)) {
            (Some(a), Some(b)) if a <= b => set.extend(a..=b),
            _ => {
                return Err(format!(
                    "'{part}' is no range of CPUs 0-{CPU_MAX}, like \"0-3,8\""
                ));
            }
        }
        if set.len() > 1 << 16 {
            return Err("too many ranges".into());
        }
    }
    Ok(())
}

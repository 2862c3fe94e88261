//! `topology/*.json`: where each CPU of the recorded machine is, and the domains and groups that
//! its kernel made of that.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use fairground::topology::{CpuPlace, Machine, SchedDomain, SchedGroup, SdFlags, Topology};
use fairground::value::{Cpu, CpuMask, MAX_CPUS};
use serde::Deserialize;

use super::file::File;
use super::row::{Count, DecisionRow, rows};
use super::text::cpu_list;
use crate::truth::TruthError;

/// A recorded machine.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    machine: Machine,
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(rename = "topology")]
    _topology: String,
    cpus: Vec<CpuText>,
    #[serde(default, rename = "sched")]
    _sched: BTreeMap<String, String>,
    #[serde(default)]
    flag_names: BTreeMap<String, FlagNames>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CpuText {
    cpu: u32,
    node: u32,
    capacity: u32,
    llc_id: u32,
    llc_size: u32,
    domains: Vec<DomainText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DomainText {
    name: String,
    #[serde(rename = "level")]
    _level: u32,
    span: String,
    weight: u32,
    flags: u64,
    min_interval: u64,
    max_interval: u64,
    busy_factor: u32,
    imbalance_pct: u32,
    cache_nice_tries: u32,
    imb_numa_nr: u32,
    #[serde(rename = "balance_interval")]
    _balance_interval: u64,
    groups: Vec<GroupText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupText {
    span: String,
    mask: String,
    weight: u32,
    cores: u32,
    capacity: u64,
    flags: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlagNames {
    name: String,
    flags: String,
    #[serde(rename = "groups_flags")]
    _groups_flags: String,
}

impl Guest {
    /// A machine whose name says all: nodes x cores (x threads), one cache a node.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let numbers: Option<Vec<u32>> = name.split('x').map(|n| n.parse().ok()).collect();
        let (nodes, cores, threads) = match numbers?[..] {
            [nodes, cores] => (nodes, cores, 1),
            [nodes, cores, threads] => (nodes, cores, threads),
            _ => return None,
        };
        let cpus = nodes.checked_mul(cores)?.checked_mul(threads)?;
        if cpus == 0 || cpus as usize > MAX_CPUS {
            return None;
        }
        let places = (0..cpus).map(|cpu| CpuPlace {
            core: cpu / threads,
            cluster: cpu / threads,
            llc: cpu / (cores * threads),
            package: cpu / (cores * threads),
            node: cpu / (cores * threads),
            capacity: 1024,
        });
        Some(Self {
            machine: Machine {
                cpus: places.collect(),
                ..Machine::default()
            },
        })
    }

    /// From `topology/*.json`.
    pub(super) fn read(file: &File<'_>) -> Result<Self, TruthError> {
        let text: Text = file.json()?;
        Self::of(&text).map_err(|what| file.error(1, what))
    }

    fn of(text: &Text) -> Result<Self, String> {
        let n = text.cpus.len();
        if n == 0 || n > MAX_CPUS {
            return Err(format!("cpus: {n} CPUs, expected 1 to {MAX_CPUS}"));
        }
        let mut places = Vec::with_capacity(n);
        for (i, cpu) in text.cpus.iter().enumerate() {
            let at = |what: String| format!("cpus[{i}]: {what}");
            if cpu.cpu as usize != i {
                return Err(at(format!("cpu {} out of order", cpu.cpu)));
            }
            if cpu.node as usize >= n || cpu.llc_id as usize >= n {
                return Err(at("node and llc_id are below the number of CPUs".into()));
            }
            if !(1..=1024).contains(&cpu.capacity) {
                return Err(at(format!("capacity {}: expected 1 to 1024", cpu.capacity)));
            }
            let first = |name| cpu.first_of(name, n).map_err(at);
            let core = first("SMT")?.unwrap_or(i as u32);
            places.push(CpuPlace {
                core,
                cluster: first("CLS")?.unwrap_or(core),
                llc: cpu.llc_id,
                package: cpu.node,
                node: cpu.node,
                capacity: cpu.capacity,
            });
        }
        let distance = distances(text)?;
        let machine = Machine {
            cpus: dense(places),
            distance,
            ..Machine::default()
        };
        Topology::build(&machine).map_err(|e| format!("cpus: {e}"))?;
        Ok(Self { machine })
    }

    /// Where each CPU is, as the engine wants it.
    pub(super) fn places(&self) -> &Machine {
        &self.machine
    }

    /// Domains and groups, made by the engine.
    pub(super) fn topology(&self) -> Topology {
        Topology::build(&self.machine).expect("tried when it was read")
    }
}

impl CpuText {
    /// First CPU of the domain called `name`, if there is one.
    fn first_of(&self, name: &str, n: usize) -> Result<Option<u32>, String> {
        let Some(domain) = self.domains.iter().find(|d| d.name == name) else {
            return Ok(None);
        };
        let first = mask(&domain.span, n)?.first();
        Ok(first.map(|cpu| cpu.0))
    }
}

/// A list of CPUs of a machine of `n`.
fn mask(text: &str, n: usize) -> Result<CpuMask, String> {
    let mask = cpu_list(text)?;
    if mask.is_subset(&CpuMask::first_n(n)) {
        Ok(mask)
    } else {
        Err(format!("'{text}' names CPUs beyond the {n} of the machine"))
    }
}

/// Numbers without gaps, in the order of the CPUs, as the engine wants them.
fn dense(mut places: Vec<CpuPlace>) -> Vec<CpuPlace> {
    fn renumber(places: &mut [CpuPlace], id: impl Fn(&mut CpuPlace) -> &mut u32) {
        let mut known = BTreeMap::new();
        for place in places {
            let id = id(place);
            let next = known.len() as u32;
            *id = *known.entry(*id).or_insert(next);
        }
    }
    renumber(&mut places, |p| &mut p.core);
    renumber(&mut places, |p| &mut p.cluster);
    renumber(&mut places, |p| &mut p.llc);
    places
}

/// Distances between nodes: the n-th NUMA domain of a node reaches the nodes at the n-th distance.
fn distances(text: &Text) -> Result<Vec<Vec<u32>>, String> {
    let n = text.cpus.len();
    let nodes = text.cpus.iter().map(|c| c.node).max().unwrap_or(0) as usize + 1;
    let mut rows = vec![vec![20; nodes]; nodes];
    for (i, cpu) in text.cpus.iter().enumerate() {
        rows[cpu.node as usize][cpu.node as usize] = 10;
        let numa = cpu.domains.iter().filter(|d| d.name == "NUMA").enumerate();
        let mut seen = vec![false; nodes];
        seen[cpu.node as usize] = true;
        for (level, domain) in numa {
            let span = mask(&domain.span, n).map_err(|e| format!("cpus[{i}]: {e}"))?;
            for other in span.iter() {
                let node = text.cpus[other.idx()].node as usize;
                if !seen[node] {
                    seen[node] = true;
                    rows[cpu.node as usize][node] = 20 + 10 * level as u32;
                }
            }
        }
    }
    Ok(rows)
}

/// The kernel's bits of `SD_*` in 6.12, in the order of its flag table, with their names.
fn flags(f: &SdFlags) -> [(bool, u32, &'static str); 12] {
    [
        (f.balance_newidle, 0, "SD_BALANCE_NEWIDLE"),
        (f.balance_exec, 1, "SD_BALANCE_EXEC"),
        (f.balance_fork, 2, "SD_BALANCE_FORK"),
        (f.wake_affine, 4, "SD_WAKE_AFFINE"),
        (f.asym_cpucapacity, 5, "SD_ASYM_CPUCAPACITY"),
        (f.share_cpucapacity, 7, "SD_SHARE_CPUCAPACITY"),
        (f.cluster, 8, "SD_CLUSTER"),
        (f.share_llc, 9, "SD_SHARE_LLC"),
        (f.serialize, 10, "SD_SERIALIZE"),
        (f.prefer_sibling, 12, "SD_PREFER_SIBLING"),
        (f.overlap, 13, "SD_OVERLAP"),
        (f.numa, 14, "SD_NUMA"),
    ]
}

fn bits(f: &SdFlags) -> u64 {
    let on = flags(f).into_iter().filter(|(on, ..)| *on);
    on.map(|(_, bit, _)| 1 << bit).sum()
}

fn names(f: &SdFlags) -> String {
    let on = flags(f).into_iter().filter(|(on, ..)| *on);
    on.map(|(.., name)| name).collect::<Vec<_>>().join(" ")
}

/// Domains, groups and the named flags, each against what the engine builds.
pub(super) fn check(file: &File<'_>) -> Result<Vec<DecisionRow>, TruthError> {
    let text: Text = file.json()?;
    let error = |what: String| file.error(1, what);
    let top = Guest::of(&text).map_err(error)?.topology();
    let mut domains = Count::new(file.name, "domains");
    let mut groups = Count::new(file.name, "groups");
    for (i, cpu) in text.cpus.iter().enumerate() {
        let id = Cpu(i as u32);
        let ours = top.domains(id);
        let llc = &top.llc_span[top.llc_of[i].idx()];
        let same_llc = llc.weight() == cpu.llc_size && ours.len() == cpu.domains.len();
        if cpu.domains.is_empty() && !ours.is_empty() {
            domains.compare(false, 1, || {
                format!("cpu {i} has no domain, the engine builds {}", ours.len())
            });
        }
        for (level, theirs) in cpu.domains.iter().enumerate() {
            let Some(sd) = ours.get(level) else {
                domains.compare(false, 1, || format!("cpu {i} has no {}", theirs.name));
                continue;
            };
            let same = same_llc && same_domain(sd, theirs).map_err(error)?;
            domains.compare(same, 1, || format!("cpu {i}: {sd:?}"));
            for (at, theirs) in theirs.groups.iter().enumerate() {
                let ours = sd.groups.get(at).map(|id| top.group(*id));
                let same = match ours {
                    Some(ours) => same_group(ours, theirs).map_err(error)?,
                    None => false,
                };
                groups.compare(same, 1, || format!("cpu {i} level {level}: {ours:?}"));
            }
        }
    }
    let mut flag_names = Count::new(file.name, "flag_names");
    for (key, theirs) in &text.flag_names {
        let at = key
            .strip_prefix("cpu")
            .and_then(|k| k.split_once("/domain"));
        let at = at.and_then(|(cpu, level)| Some((cpu.parse().ok()?, level.parse().ok()?)));
        let Some((cpu, level)): Option<(usize, usize)> = at else {
            return Err(error(format!("flag_names: '{key}' is not cpuN/domainM")));
        };
        let sd = top.domains.get(cpu).and_then(|d| d.get(level));
        let same =
            sd.is_some_and(|sd| sd.kind.name() == theirs.name && names(&sd.flags) == theirs.flags);
        flag_names.compare(same, 1, || format!("{key}: {:?}", sd.map(|sd| sd.flags)));
    }
    Ok(rows([domains, groups, flag_names]))
}

fn same_domain(sd: &SchedDomain, theirs: &DomainText) -> Result<bool, String> {
    Ok(sd.kind.name() == theirs.name
        && sd.span == cpu_list(&theirs.span)?
        && sd.weight == theirs.weight
        && bits(&sd.flags) == theirs.flags
        && sd.min_interval_ms == theirs.min_interval
        && sd.max_interval_ms == theirs.max_interval
        && sd.busy_factor == theirs.busy_factor
        && sd.imbalance_pct == theirs.imbalance_pct
        && sd.cache_nice_tries == theirs.cache_nice_tries
        && sd.imb_numa_nr == theirs.imb_numa_nr
        && sd.groups.len() == theirs.groups.len())
}

fn same_group(ours: &SchedGroup, theirs: &GroupText) -> Result<bool, String> {
    Ok(ours.span == cpu_list(&theirs.span)?
        && ours.balance_mask == cpu_list(&theirs.mask)?
        && ours.weight == theirs.weight
        && ours.cores == theirs.cores
        && ours.state.capacity.load(Relaxed) == theirs.capacity
        && ours.smt == (theirs.flags >> 7 & 1 == 1)
        && ours.prefer_sibling == (theirs.flags >> 12 & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_without_domains_has_none_in_the_engine() {
        let cpu = |cpu: u32| {
            format!(
                r#"{{"cpu": {cpu}, "node": 0, "capacity": 1024, "llc_id": 0, "llc_size": 2,
                "domains": []}}"#
            )
        };
        let equal_of = |cpus: &str| {
            let text = format!(r#"{{"topology": "t", "cpus": [{cpus}]}}"#);
            let recording = super::super::Recording::new([("topology/t.json".to_string(), text)]);
            let file = recording.file("topology/t.json").expect("a file");
            check(&file).expect("rows").remove(0)
        };
        let two = equal_of(&format!("{}, {}", cpu(0), cpu(1)));
        assert_eq!((two.equal, two.different), (0, 2), "{two:?}");
        let one = equal_of(&cpu(0));
        assert_eq!((one.equal, one.different), (0, 0), "{one:?}");
    }

    #[test]
    fn a_name_says_nodes_cores_and_threads() {
        let guest = Guest::by_name("2x8x2").expect("a machine");
        assert_eq!(guest.machine.cpus.len(), 32);
        assert_eq!(guest.topology().domains(Cpu(5)).len(), 3);
        for wrong in ["seed1", "bg", "0x8", "999x999", "2x8x2x2", "x"] {
            assert!(Guest::by_name(wrong).is_none(), "{wrong}");
        }
    }
}

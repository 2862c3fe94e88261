//! What Linux says about the machine in `/sys` and `/proc`
//! (Documentation/ABI/stable/sysfs-devices-system-cpu, Documentation/admin-guide/cputopology.rst).
//! Only CPUs that are online have a place.
//!
//! A group of CPUs (package, die, core, ...) is named by its lowest CPU: the ids that the files
//! hold are not unique across packages, the lists of members are.

use std::path::{Path, PathBuf};

use crate::CalibrateError;

/// The computer, as its system describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// Online CPUs, in ascending order.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes that have online CPUs; empty without NUMA.
    pub nodes: Vec<Node>,
    /// Caches of the first online CPU that hold data.
    pub caches: Vec<Cache>,
    /// Idle states, shallow first; empty without a driver.
    pub idle: Vec<Idle>,
    /// Name of the processor.
    pub model: String,
    /// Whether this is a guest of a hypervisor.
    pub guest: bool,
}

/// Where a CPU is. Groups are named by their lowest online CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// Physical package.
    pub package: u32,
    /// Die, or last-level cache where a die has several.
    pub die: u32,
    /// Last-level cache.
    pub llc: u32,
    /// Cluster, where it is more than a core and less than a die.
    pub cluster: Option<u32>,
    /// Core.
    pub core: u32,
    /// How much it gets done, where the system says so; the fastest CPU has 1024.
    pub capacity: Option<u32>,
}

/// A NUMA node with CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its online CPUs.
    pub cpus: Vec<u32>,
    /// Distances to all online nodes, in order of their numbers.
    pub distance: Vec<u32>,
}

/// One level of caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is nearest.
    pub level: u32,
    /// Size of one instance.
    pub size_kib: u32,
    /// Associativity; 0 if the system does not say.
    pub ways: u32,
    /// Line size, bytes.
    pub line: u32,
    /// Online CPUs that share the instance.
    pub cpus: Vec<u32>,
}

/// An idle state that the governor knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Idle {
    /// `POLL`, `C1`, ...
    pub name: String,
    /// Exit latency, us: what the driver says, until it is measured.
    pub exit_us: f64,
    /// Target residency, us.
    pub residency_us: u32,
}

impl System {
    /// Reads `ROOT/sys` and `ROOT/proc/cpuinfo`; `root` is `/` but in tests.
    ///
    /// # Errors
    /// A file that is missing but must be there, or that is not of the documented form.
    pub fn read(root: &Path) -> Result<Self, CalibrateError> {
        let cpu_dir = root.join("sys/devices/system/cpu");
        let online = must_list(&cpu_dir.join("online"))?;
        if online.is_empty() {
            let path = cpu_dir.join("online");
            return Err(bad(&path, "no CPU".into(), "a list of CPUs such as 0-3,8"));
        }
        let cpus: Result<Vec<Cpu>, _> = online
            .iter()
            .map(|id| cpu(&cpu_dir, *id, &online))
            .collect();
        let first = cpu_dir.join(format!("cpu{}", online[0]));
        let info = std::fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
        Ok(Self {
            cpus: cpus?,
            nodes: nodes(&root.join("sys/devices/system/node"), &online)?,
            caches: caches(&first, &online)?,
            idle: idle(&first.join("cpuidle"))?,
            model: model(&info),
            guest: field(&info, "flags").is_some_and(|f| f.split(' ').any(|w| w == "hypervisor")),
        })
    }

    /// The place of an online CPU.
    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|c| c.id == id)
    }
}

/// A list such as `0-3,8,10-11`, empty for an empty line. `None` if it is not one.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    /// More than any kernel supports: a damaged file must not fill the memory.
    const MOST: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn cpu(dir: &Path, id: u32, online: &[u32]) -> Result<Cpu, CalibrateError> {
    let here = dir.join(format!("cpu{id}"));
    let group = |names: [&str; 2]| -> Result<Option<Vec<u32>>, CalibrateError> {
        for name in names {
            let list = list(&here.join("topology").join(name))?;
            if let Some(list) = list.filter(|l| l.contains(&id)) {
                return Ok(Some(kept(list, online)));
            }
        }
        Ok(None)
    };
    let core = group(["core_cpus_list", "thread_siblings_list"])?.unwrap_or_else(|| vec![id]);
    let package =
        group(["package_cpus_list", "core_siblings_list"])?.unwrap_or_else(|| online.to_vec());
    let die = group(["die_cpus_list", "die_cpus_list"])?.unwrap_or_else(|| package.clone());
    let llc = caches(&here, online)?
        .pop()
        .map_or_else(|| die.clone(), |last| last.cpus);
    // A cache that spans packages is a mistake of a hypervisor.
    let llc = if llc.iter().all(|c| package.contains(c)) {
        llc
    } else {
        package.clone()
    };
    let die = if llc.len() < die.len() { &llc } else { &die };
    let cluster = group(["cluster_cpus_list", "cluster_cpus_list"])?
        .filter(|c| c.len() > core.len() && c.len() < die.len());
    Ok(Cpu {
        id,
        package: package[0],
        die: die[0],
        llc: llc[0],
        cluster: cluster.map(|c| c[0]),
        core: core[0],
        capacity: word(&here.join("cpu_capacity")).and_then(|w| w.parse().ok()),
    })
}

/// Data and unified caches by level, nearest first.
fn caches(cpu: &Path, online: &[u32]) -> Result<Vec<Cache>, CalibrateError> {
    let mut found: Vec<Cache> = Vec::new();
    for index in 0..16 {
        let dir = cpu.join(format!("cache/index{index}"));
        let Some(kind) = word(&dir.join("type")) else {
            break;
        };
        if kind == "Instruction" {
            continue;
        }
        let number = |name: &str| word(&dir.join(name)).and_then(|w| w.parse().ok());
        let level = number("level");
        let size = word(&dir.join("size")).map(|w| kib(&w));
        let (Some(level), Some(size)) = (level, size) else {
            continue;
        };
        let size_kib = size.ok_or_else(|| {
            let found = word(&dir.join("size")).unwrap_or_default();
            bad(&dir.join("size"), found, "a size such as 48K or 32M")
        })?;
        let shared = list(&dir.join("shared_cpu_list"))?;
        if size_kib > 0 && !found.iter().any(|c| c.level == level) {
            found.push(Cache {
                level,
                size_kib,
                ways: number("ways_of_associativity").unwrap_or(0),
                line: number("coherency_line_size").unwrap_or(64),
                cpus: kept(shared.unwrap_or_default(), online),
            });
        }
    }
    found.retain(|c| !c.cpus.is_empty());
    found.sort_by_key(|c| c.level);
    Ok(found)
}

fn nodes(dir: &Path, online: &[u32]) -> Result<Vec<Node>, CalibrateError> {
    let Some(ids) = list(&dir.join("online"))? else {
        return Ok(Vec::new());
    };
    let mut nodes = Vec::new();
    for id in ids {
        let here = dir.join(format!("node{id}"));
        let cpus = kept(list(&here.join("cpulist"))?.unwrap_or_default(), online);
        if cpus.is_empty() {
            continue;
        }
        let path = here.join("distance");
        let words = word(&path).unwrap_or_default();
        let distance: Option<Vec<u32>> = words.split_whitespace().map(|w| w.parse().ok()).collect();
        let distance = distance.ok_or_else(|| bad(&path, words, "numbers"))?;
        nodes.push(Node { id, cpus, distance });
    }
    Ok(nodes)
}

fn idle(dir: &Path) -> Result<Vec<Idle>, CalibrateError> {
    let mut states = Vec::new();
    for index in 0..32 {
        let here = dir.join(format!("state{index}"));
        let Some(name) = word(&here.join("name")) else {
            break;
        };
        let number = |file: &str| {
            let path = here.join(file);
            let text = word(&path).unwrap_or_default();
            text.parse().map_err(|_| bad(&path, text, "microseconds"))
        };
        states.push(Idle {
            // In a machine file a dot is where the name of one of its figures begins.
            name: name.replace('.', "-"),
            exit_us: f64::from(number("latency")?),
            residency_us: number("residency")?,
        });
    }
    Ok(states)
}

fn model(info: &str) -> String {
    let names = ["model name", "Model", "cpu model", "Hardware", "CPU part"];
    let found = names.iter().find_map(|name| field(info, name));
    found.unwrap_or("unknown processor").to_string()
}

/// The first line `NAME : VALUE` of /proc/cpuinfo.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let lines = info.lines().filter_map(|l| l.split_once(':'));
    lines
        .filter(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
        .find(|value| !value.is_empty())
}

fn kib(text: &str) -> Option<u32> {
    let (number, factor) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1),
        b'M' => (&text[..text.len() - 1], 1024),
        b'G' => (&text[..text.len() - 1], 1024 * 1024),
        _ => (text, 1),
    };
    number.parse::<u32>().ok()?.checked_mul(factor)
}

fn kept(list: Vec<u32>, online: &[u32]) -> Vec<u32> {
    list.into_iter().filter(|c| online.contains(c)).collect()
}

fn must_list(path: &Path) -> Result<Vec<u32>, CalibrateError> {
    list(path)?.ok_or_else(|| {
        bad(
            path,
            "cannot be read".into(),
            "a list of CPUs such as 0-3,8",
        )
    })
}

/// `None` if the file is not there.
fn list(path: &Path) -> Result<Option<Vec<u32>>, CalibrateError> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    match cpu_list(&text) {
        Some(list) => Ok(Some(list)),
        None => Err(bad(path, text.trim().into(), "a list such as 0-3,8")),
    }
}

fn word(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_string())
}

fn bad(path: &Path, found: String, expected: &'static str) -> CalibrateError {
    let found = if found.starts_with("cannot") || found.starts_with("no ") {
        found
    } else {
        format!("`{}`", found.chars().take(40).collect::<String>())
    };
    CalibrateError::System {
        path: PathBuf::from(path).display().to_string(),
        found,
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        assert_eq!(cpu_list("5,1-2,2"), Some(vec![1, 2, 5]));
        for wrong in ["a", "3-1", "0-", "-1", "0-4000000000", "1;2"] {
            assert_eq!(cpu_list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(kib("48K"), Some(48));
        assert_eq!(kib("32M"), Some(32768));
        assert_eq!(kib("4294967295M"), None);
        assert_eq!(kib(""), None);
    }
}

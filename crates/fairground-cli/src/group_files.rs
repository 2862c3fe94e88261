//! Files of cgroups on the command line: `--set /web/cpu.max=40ms/100ms`. Read here for all
//! commands; what is written is refused where the kernel refuses it.

use fairground_report::nearest;
use fairground_sim::spec::cpu_list;
use fairground_sim::truth::asks_for;
use fairground_sim::workload::Workload;
use fairground_sim::workload::cpu_counts::weight_hint;
use fairground_sim::workload::limit_words::{cpu_max, time};
use fairground_sim::workload::program::{Cgroup, CgroupWrite, Ns};
use fairground_sim::workload::validate::burst_refused;

use crate::failure::Failure;
use crate::what::Setting;

/// The files that can be written.
pub const FILES: [&str; 5] = [
    "cpu.max",
    "cpu.max.burst",
    "cpu.weight",
    "cpu.idle",
    "cpuset.cpus",
];

/// Files of cgroup v1, and what says the same in v2.
const V1_FILES: [(&str, &str); 4] = [
    (
        "cpu.cfs_quota_us",
        "`cpu.max=QUOTA PERIOD`, or `cpu.max=QUOTA` if the period stays; -1 is `max`",
    ),
    (
        "cpu.cfs_period_us",
        "`cpu.max=QUOTA PERIOD`: quota and period are in one file",
    ),
    ("cpu.cfs_burst_us", "`cpu.max.burst`"),
    (
        "cpu.shares",
        "`cpu.weight`: 100 weighs as much as 1024 shares. What a runtime of containers writes for \
         a request of Kubernetes is another weight: docs/cpu-limits.md",
    ),
];

/// Most groups that a message lists.
const FEW: usize = 8;

/// Longest burst that is read, as in a scenario: 1000 s.
const BURST_NS_MAX: Ns = 1_000_000_000_000;

/// What is written into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// `cpu.max`; without a period it stays.
    Max {
        /// `None`: max.
        quota_ns: Option<Ns>,
        /// `None`: as it was.
        period_ns: Option<Ns>,
    },
    /// `cpu.max.burst`.
    Burst(Ns),
    /// `cpu.weight`.
    Weight(u64),
    /// `cpu.idle`.
    Idle(bool),
    /// `cpuset.cpus`.
    Cpus(Vec<u32>),
}

/// A write, read from `PATH/FILE=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFile {
    /// Path of the group.
    pub path: String,
    /// One of [`FILES`].
    pub file: &'static str,
    /// What is written.
    pub write: Write,
}

/// Whether a setting is of a file of a group (`/path/cpu.max`), not a decision.
pub fn is_one(setting: &Setting) -> bool {
    setting.name.contains('/')
}

/// Whether a name without a path is meant as a file of a group, perhaps one that there is not.
pub fn is_meant(name: &str) -> bool {
    name.starts_with("cpu.") || name.starts_with("cpuset.")
}

/// The name of a file of a group without the group.
pub fn without_group(name: &str, value: &str) -> Failure {
    let near = nearest(name, FILES).unwrap_or_else(|| FILES[0].into());
    Failure::with_help(
        format!("`{name}` is a setting of a cgroup, not a decision of the scheduler"),
        format!(
            "write it as a file of a group: `--set '/GROUP/{near}={value}'` (docs/cpu-limits.md)"
        ),
    )
}

/// The file called `name`.
///
/// # Errors
/// A name that no file has.
pub fn file_named(name: &str) -> Result<&'static str, Failure> {
    if let Some((_, v2)) = V1_FILES.iter().find(|(v1, _)| *v1 == name) {
        let what = format!("`{name}` is a file of cgroup v1, and groups here have those of v2");
        return Err(Failure::with_help(what, format!("write {v2}")));
    }
    FILES.into_iter().find(|file| *file == name).ok_or_else(|| {
        let near = nearest(name, FILES).unwrap_or_else(|| FILES[0].into());
        let help = format!("did you mean `{near}`? there are {}", FILES.join(", "));
        Failure::with_help(format!("no file `{name}` of a group can be set"), help)
    })
}

impl GroupFile {
    /// Reads a setting.
    ///
    /// # Errors
    /// An unknown file, or a value that the kernel would not take.
    pub fn read(setting: &Setting) -> Result<Self, Failure> {
        let Setting { name, value } = setting;
        let (path, file) = name.rsplit_once('/').unwrap_or(("", name));
        let file = file_named(file)?;
        // As in any path, two slashes are one.
        let groups: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if groups.is_empty() {
            let help = format!("name a group: `/GROUP/{file}`");
            return Err(Failure::with_help(
                format!("the root cgroup has no `{file}`"),
                help,
            ));
        }
        let from_root = if path.starts_with('/') { "/" } else { "" };
        Ok(Self {
            path: format!("{from_root}{}", groups.join("/")),
            file,
            write: Write::read(file, value)
                .map_err(|e| Failure::new(format!("`{name}` cannot be `{value}`: {e}")))?,
        })
    }

    /// Which of the groups with these paths are meant: the one, those of a group with a count, or
    /// those that fit a pattern with `*`.
    ///
    /// # Errors
    /// None is.
    pub fn find(&self, known: &[String]) -> Result<Vec<usize>, Failure> {
        let path = self.path.trim_start_matches('/');
        let counted = |known: &str| {
            let number = known
                .strip_prefix(path)
                .and_then(|rest| rest.strip_prefix('.'));
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let that = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let all = known.iter().enumerate();
            let all = all.filter(|(_, k)| k.as_str() != "/");
            all.filter(|(_, k)| fits(k.trim_start_matches('/')))
                .map(|(i, _)| i)
                .collect()
        };
        let ways: [&dyn Fn(&str) -> bool; 3] = [&|k| k == path, &counted, &|k| {
            path.contains('*') && asks_for(path, k)
        }];
        let found = ways.into_iter().map(that).find(|found| !found.is_empty());
        found.ok_or_else(|| unknown_group(&self.path, known))
    }
}

/// A path that no group has.
pub fn unknown_group(path: &str, known: &[String]) -> Failure {
    let known: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|k| *k != "/")
        .collect();
    let help = match nearest(path, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => {
            "there is none: groups come from a scenario, from --cgroup or --tree of a workload, \
             from --attributes of a replay"
                .to_string()
        }
        None => listed(&known),
    };
    Failure::with_help(format!("no cgroup `{path}`"), help)
}

/// The first few groups.
pub fn listed(known: &[&str]) -> String {
    let more = match known.len().saturating_sub(FEW) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let few = &known[..known.len().min(FEW)];
    format!("there are `{}`{more}", few.join("`, `"))
}

impl Write {
    /// Reads what is written into `file`.
    ///
    /// # Errors
    /// What was expected.
    pub fn read(file: &str, value: &str) -> Result<Self, String> {
        match file {
            "cpu.max" => match cpu_max(value) {
                Ok((quota_ns, period_ns)) => Ok(Self::Max {
                    quota_ns,
                    period_ns,
                }),
                Err(refused) => Err(refused.to_string()),
            },
            "cpu.max.burst" => match time(value)? {
                ns if ns > BURST_NS_MAX => Err("expected at most 1000s".into()),
                ns => Ok(Self::Burst(ns)),
            },
            "cpu.weight" => {
                let weight = value.parse().ok().filter(|w| (1..=10_000).contains(w));
                let expected =
                    || weight_hint(value).unwrap_or_else(|| "expected 1 to 10000".into());
                weight.map(Self::Weight).ok_or_else(expected)
            }
            "cpu.idle" => match value {
                "0" => Ok(Self::Idle(false)),
                "1" => Ok(Self::Idle(true)),
                _ => Err("expected 0 or 1".into()),
            },
            _ => cpu_list(value).map(Self::Cpus),
        }
    }
}

/// Writes files of a workload's groups; `cpus` is the size of the machine.
///
/// # Errors
/// A group that is not there, or a set of CPUs that the machine does not have.
pub fn write(workload: &mut Workload, cpus: u32, files: &[GroupFile]) -> Result<(), Failure> {
    let paths = paths(workload);
    for file in files {
        let groups = file.find(&paths)?;
        let mask = match &file.write {
            Write::Cpus(set) if set.iter().all(|cpu| *cpu >= cpus) => {
                let message = format!(
                    "`{}/{}` has no CPU of the machine, which has CPUs 0-{}",
                    file.path,
                    file.file,
                    cpus.saturating_sub(1)
                );
                return Err(Failure::new(message));
            }
            Write::Cpus(set) => {
                workload.masks.push(set.clone());
                Some(workload.masks.len() as u32 - 1)
            }
            _ => None,
        };
        for index in groups {
            let group = &mut workload.cgroups[index];
            match file.write {
                Write::Max {
                    quota_ns,
                    period_ns,
                } => {
                    // `max`, too: the result is held against those with a limit.
                    workload.watched.push(index as u32);
                    group.quota_ns = quota_ns;
                    group.period_ns = period_ns.unwrap_or(group.period_ns);
                }
                Write::Burst(ns) => group.burst_ns = ns,
                Write::Weight(weight) => group.shares = Cgroup::shares_of_weight(weight),
                Write::Idle(idle) => group.idle = idle,
                Write::Cpus(_) => group.cpuset = mask,
            }
        }
    }
    Ok(())
}

/// Why the kernel would refuse what the groups of `files` hold together, or what is written to them
/// during the run, if it would.
pub fn refusal(workload: &Workload, files: &[GroupFile]) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    at_start(workload, files).or_else(|| during_run(workload))
}

/// The first write of the run that the kernel would refuse.
fn during_run(workload: &Workload) -> Option<String> {
    let mut groups = workload.cgroups.clone();
    for (i, event) in workload.events.iter().enumerate() {
        let group = &mut groups[event.cgroup as usize];
        match event.write {
            CgroupWrite::Max { quota_ns, .. } => group.quota_ns = quota_ns,
            CgroupWrite::Burst(ns) => group.burst_ns = ns,
            CgroupWrite::Idle(idle) => group.idle = idle,
            CgroupWrite::Shares(_) => {}
        }
        let mut seen = group.clone();
        // Of what is written at once, burst and quota fit or do not when both are written.
        let next = workload.events.get(i + 1);
        if next.is_some_and(|n| (n.at_ns, n.cgroup) == (event.at_ns, event.cgroup)) {
            seen.burst_ns = 0;
        }
        let weighs = matches!(event.write, CgroupWrite::Shares(_));
        if let Some(why) = refused(&seen, weighs) {
            let ms = event.at_ns as f64 / 1e6;
            return Some(format!("{why}, which is written after {ms} ms"));
        }
    }
    None
}

fn at_start(workload: &Workload, files: &[GroupFile]) -> Option<String> {
    let paths = paths(workload);
    let groups = files
        .iter()
        .filter_map(|file| Some((file, file.find(&paths).ok()?)));
    let each = groups.flat_map(|(file, found)| found.into_iter().map(move |g| (file, g)));
    let refuse = |(file, g): (&GroupFile, usize)| {
        refused(&workload.cgroups[g], matches!(file.write, Write::Weight(_)))
    };
    each.into_iter().find_map(refuse)
}

/// Why a group cannot be as it is, or cannot have its weight written.
fn refused(group: &Cgroup, weighs: bool) -> Option<String> {
    let path = &group.path;
    if let Some(quota) = group.quota_ns
        && group.burst_ns > quota
    {
        let refused = burst_refused(group.burst_ns, quota);
        return Some(format!("{refused} of `{path}`"));
    }
    (weighs && group.idle)
        .then(|| format!("the kernel refuses a weight of `{path}` while its cpu.idle is 1"))
}

/// A weight as it is shown: the `cpu.weight`, or shares that no `cpu.weight` stands for.
pub fn weight_text(shares: u64) -> String {
    Cgroup::weight_of_shares(shares).map_or(format!("{shares} shares"), |w| w.to_string())
}

/// `cpu.max` as the kernel shows it.
pub fn max_text(quota_ns: Option<Ns>, period_ns: Ns) -> String {
    let quota = quota_ns.map_or("max".into(), |ns| (ns / 1000).to_string());
    format!("{quota} {}", period_ns / 1000)
}

/// Paths of all groups, the root first.
pub fn paths(workload: &Workload) -> Vec<String> {
    workload.cgroups.iter().map(|g| g.path.clone()).collect()
}

/// `0-3,8`.
pub fn ranges(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<GroupFile, String> {
        let setting = Setting {
            name: name.into(),
            value: value.into(),
        };
        GroupFile::read(&setting).map_err(|e| e.text(false))
    }

    #[test]
    fn a_limit_is_read_as_the_kernel_and_as_people_write_it() {
        const MS: Ns = 1_000_000;
        let max = |quota_ms: Option<u64>, period_ms: Option<u64>| Write::Max {
            quota_ns: quota_ms.map(|ms| ms * MS),
            period_ns: period_ms.map(|ms| ms * MS),
        };
        for (text, wanted) in [
            ("20000 100000", max(Some(20), Some(100))),
            ("20ms/100ms", max(Some(20), Some(100))),
            ("0.02s / 100000", max(Some(20), Some(100))),
            ("20ms", max(Some(20), None)),
            ("max", max(None, None)),
            ("max 50000", max(None, Some(50))),
        ] {
            assert_eq!(
                read("/web/cpu.max", text).map(|f| f.write),
                Ok(wanted),
                "{text}"
            );
        }
        for text in [
            "",
            "fast",
            "1 2 3",
            "20ms/100",
            "999",
            "20ms/2s",
            "1.5us/100ms",
            "-1",
        ] {
            assert!(read("/web/cpu.max", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_weight_that_no_file_of_v2_can_hold_is_shown_as_shares() {
        let shown = [2, 10, 15, 512, 1000, 1024, 102_400, 262_144].map(weight_text);
        let expected = [
            "2 shares",
            "1",
            "15 shares",
            "50",
            "1000 shares",
            "100",
            "10000",
            "262144 shares",
        ];
        assert_eq!(shown, expected);
        for weight in 1..=10_000 {
            assert_eq!(
                weight_text(Cgroup::shares_of_weight(weight)),
                weight.to_string()
            );
        }
    }

    #[test]
    fn other_files_are_read() {
        let write = |name, value| read(name, value).map(|f| f.write);
        assert_eq!(
            write("/a/cpu.max.burst", "50ms"),
            Ok(Write::Burst(50_000_000))
        );
        assert_eq!(write("/a/b/cpu.weight", "200"), Ok(Write::Weight(200)));
        assert_eq!(write("/a/cpu.idle", "1"), Ok(Write::Idle(true)));
        assert_eq!(
            write("/a/cpuset.cpus", "0-1,4"),
            Ok(Write::Cpus(vec![0, 1, 4]))
        );
        for (name, value, told) in [
            ("/a/cpu.weight", "10001", "1 to 10000"),
            ("/a/cpu.idle", "yes", "0 or 1"),
            ("/a/cpu.max", "300m", "a time per period: 30ms/100ms"),
            (
                "/a/cpu.max",
                "0.3",
                "`0.3` is a number of CPUs; a limit is a time per period: 30ms",
            ),
            ("/a/cpu.max", "-0.3", "expected QUOTA PERIOD"),
            ("/a/cpu.max", "1250m 100000", "125ms/100ms"),
            (
                "/a/cpu.max",
                "2",
                "`2` is a number of CPUs; a limit is a time per period: 200ms",
            ),
            ("/a/cpu.max", "50%", "a time per period: 50ms/100ms"),
            ("/a/cpu.max", "2cpu", "a time per period: 200ms/100ms"),
            (
                "/a/cpu.weight",
                "500m",
                "weight of 20 (linear) or 59 (quadratic scale)",
            ),
            ("/a/cpu.cfs_quota_us", "20000", "cgroup v1"),
            ("/a/cpu.shares", "512", "cgroup v1"),
            ("/a/cpu.shares", "512", "another weight: docs/cpu-limits.md"),
            ("/a/cpu.mx", "1", "did you mean `cpu.max`"),
            ("/cpu.max", "max", "the root cgroup"),
            ("//cpu.max", "max", "the root cgroup"),
            ("/a/cpuset.cpus", "4-1", "range"),
            ("/a/cpu.max.burst", "2000s", "at most"),
        ] {
            let error = read(name, value).expect_err(name);
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn paths_stand_for_one_group_for_a_count_or_for_a_pattern() {
        let known = ["/", "/web", "/job.0", "/job.1", "/job.x", "/web/a"].map(String::from);
        let find = |path: &str| {
            let file = read(&format!("{path}/cpu.idle"), "1").expect("a file");
            file.find(&known).map_err(|e| e.text(false))
        };
        assert_eq!(find("/web"), Ok(vec![1]));
        assert_eq!(find("web"), Ok(vec![1]));
        assert_eq!(find("/job"), Ok(vec![2, 3]));
        assert_eq!(find("/web*"), Ok(vec![1, 5]));
        let error = find("/wbe").expect_err("no such group");
        assert!(
            error.contains("no cgroup `/wbe`") && error.contains("`/web`"),
            "{error}"
        );
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }
}

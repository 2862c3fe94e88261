//! What a trace does not say, from a TOML file: the tick, groups, and policy, slice, affinity and
//! group of threads by name. `docs/replay.md` describes the file.

use std::collections::BTreeMap;

use fairground_sim::glob::fits;
use fairground_sim::spec::Source;
use fairground_sim::workload::limit_words::{self, Refused};
use fairground_sim::workload::program::PERIOD_NS_DEFAULT;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::objects::Objects;
use super::spelled;
use crate::event::Names;
use crate::groups::Groups;

/// Longest time in such a file, microseconds: the longest that a scenario may name for the same.
pub(super) const US_MAX: u64 = 1_000_000_000;

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Attributes {
    /// Ticks a second of the recorded kernel.
    pub hz: Option<u32>,
    /// Of a simulated run: what it began with.
    pub run: Option<RunWords>,
    /// Groups, parents before children.
    #[serde(default, rename = "cgroup")]
    pub cgroups: Vec<Group>,
    /// Threads; the first that fits a thread counts.
    #[serde(default, rename = "thread")]
    pub threads: Vec<ThreadWords>,
    /// Whether the groups of the recording, if it has any, are used.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub recorded_cgroups: bool,
    /// The group of each thread by the recording.
    #[serde(skip)]
    pub recorded: BTreeMap<u32, String>,
    /// Paths of groups of threads of which nothing is said, but of others of their processes.
    #[serde(skip)]
    pub of_processes: BTreeMap<u32, String>,
}

/// What a simulated run began with, at time 0 of its trace: its seed draws when ticks fall and when
/// each CPU was balanced last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunWords {
    /// Seed.
    pub seed: u64,
    /// Machine.
    pub machine: String,
    /// Hash of its file and of what was changed in it (of those CPUs); older runs lack it.
    pub machine_hash: Option<String>,
    /// How many of its CPUs.
    pub cpus: u32,
    /// Decisions that are not those of the default profile.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// From when on its figures count, ns.
    #[serde(default)]
    pub warmup_ns: u64,
    /// Until when balancing was hurried on, ns.
    #[serde(default)]
    pub settle_ns: u64,
    /// When it was to end, ns; without it, when all threads of the start had exited.
    pub ends_ns: Option<u64>,
    /// No idle state was as deep as to have an exit latency (`/dev/cpu_dma_latency`).
    #[serde(default, skip_serializing_if = "is_no")]
    pub no_idle_states: bool,
    /// The process whose page tables every CPU had at its start.
    pub process: Option<u32>,
    /// What its threads share.
    #[serde(default)]
    pub objects: Objects,
    /// Files of groups that were written meanwhile, in order of time.
    #[serde(default, rename = "write", skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Write>,
}

/// A file of a group that is written during a run: one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// When, ns from the start.
    pub at_ns: u64,
    /// Path of the group.
    pub cgroup: String,
    /// `cpu.max`: quota and period in microseconds, or `max` and the period.
    #[serde(rename = "cpu.max")]
    pub max: Option<String>,
    /// `cpu.max.burst`, microseconds.
    #[serde(rename = "cpu.max.burst")]
    pub burst_us: Option<u64>,
    /// cgroup v1 `cpu.shares`.
    #[serde(rename = "cpu.shares")]
    pub shares: Option<u64>,
    /// `cpu.idle`.
    #[serde(rename = "cpu.idle")]
    pub idle: Option<bool>,
}

/// A group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Absolute path.
    pub path: String,
    /// `cpu.weight`, 1 to 10000.
    #[serde(rename = "cpu.weight", default, deserialize_with = "spelled::weight")]
    pub weight: Option<u64>,
    /// cgroup v1 `cpu.shares`, instead of `cpu.weight`.
    #[serde(rename = "cpu.shares")]
    pub shares: Option<u64>,
    /// Of an autogroup: the nice value whose weight it has, instead of either.
    pub nice: Option<i8>,
    /// `cpu.max`: quota and period in microseconds or with units, or `max`.
    #[serde(rename = "cpu.max", default, deserialize_with = "spelled::max")]
    pub max: Option<String>,
    /// `cpu.max.burst`, microseconds.
    #[serde(rename = "cpu.max.burst", default, deserialize_with = "spelled::burst")]
    pub burst_us: Option<u64>,
    /// `cpu.idle`.
    #[serde(default, rename = "cpu.idle", deserialize_with = "spelled::idle")]
    pub idle: bool,
    /// `cpuset.cpus`, which its threads' own CPUs cannot go beyond.
    #[serde(rename = "cpuset.cpus", default, deserialize_with = "spelled::cpus")]
    pub cpus: Option<Vec<u32>>,
}

/// Threads of a name, or with these numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadWords {
    /// Name; `*` stands for any text, `?` for any character.
    #[serde(default = "any", skip_serializing_if = "is_any")]
    pub comm: String,
    /// Thread ids; without them, all.
    #[serde(
        default,
        deserialize_with = "some",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tids: Vec<u32>,
    /// `normal`, `batch` or `idle`.
    #[serde(default)]
    pub policy: PolicyWords,
    /// Own slice, microseconds; 0 is none.
    pub slice_us: Option<u64>,
    /// CPUs that it may use.
    #[serde(default, deserialize_with = "spelled::cpus")]
    pub cpus: Option<Vec<u32>>,
    /// Path of its group.
    pub cgroup: Option<String>,
    /// Bytes of memory that it goes through in a microsecond.
    pub footprint_bytes_per_us: Option<u32>,
    /// Bytes after which it is the same memory again.
    pub working_set_bytes: Option<u64>,
    /// Of a simulated run: it was made as a thread of its process.
    pub thread: Option<bool>,
    /// Its process: threads of one name share an address space. `own`: nobody else is in it.
    /// `kernel`: it has none.
    pub process: Option<String>,
}

/// [`ThreadWords::process`] of a thread that shares its address space with nobody.
pub const OWN: &str = "own";
/// That of a kernel thread, which keeps the page tables of the CPU.
pub const OF_KERNEL: &str = "kernel";

impl Default for Attributes {
    fn default() -> Self {
        Self {
            hz: None,
            run: None,
            cgroups: Vec::new(),
            threads: Vec::new(),
            recorded_cgroups: true,
            recorded: BTreeMap::new(),
            of_processes: BTreeMap::new(),
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_yes(said: &bool) -> bool {
    *said
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_no(said: &bool) -> bool {
    !*said
}

/// None at all would be taken for no word about them, which means all.
fn some<'de, D: serde::Deserializer<'de>>(list: D) -> Result<Vec<u32>, D::Error> {
    let tids = Vec::deserialize(list)?;
    match tids.is_empty() {
        true => Err(D::Error::custom("no thread id; expected at least one")),
        false => Ok(tids),
    }
}

fn any() -> String {
    "*".into()
}

fn is_any(comm: &str) -> bool {
    comm == "*"
}

/// Policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyWords {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO`; its priority is recorded.
    Fifo,
    /// `SCHED_RR`.
    Rr,
}

impl Attributes {
    /// Reads words that stand in no file of their own.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(&Source::new("", text))
            .map_err(|e| format!("line {}: {}", e.line(), e.message()))
    }

    /// What is said about the thread `tid` called `comm`.
    #[must_use]
    pub fn of(&self, tid: u32, comm: &str) -> Option<&ThreadWords> {
        let named = |t: &&ThreadWords| t.tids.is_empty() || t.tids.contains(&tid);
        let mut threads = self.threads.iter();
        threads.find(|t| named(t) && fits(&t.comm, comm))
    }

    /// Paths of all groups, the root first.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        let known = self.cgroups.iter().map(|g| g.path.clone());
        let known = known.filter(|path| path != "/");
        std::iter::once("/".to_string()).chain(known).collect()
    }

    /// Takes in the groups of a recording, with the groups above them: a thread is in the one that
    /// is said here, else in the recorded one. Weights and limits are not recorded.
    pub fn take_groups(&mut self, groups: &Groups) {
        if !self.recorded_cgroups {
            return;
        }
        for (tid, path) in groups.of_threads() {
            let ends = path.match_indices('/').map(|(i, _)| i).skip(1);
            for end in ends.chain([path.len()]) {
                let known = self.cgroups.iter().any(|g| g.path == path[..end]);
                if !known {
                    let path = path[..end].to_string();
                    self.cgroups.push(Group {
                        path,
                        ..Group::default()
                    });
                }
            }
            self.recorded.insert(tid, path.to_string());
        }
        if !self.recorded.is_empty() {
            // Parents before children.
            self.cgroups.sort_by_key(|g| g.path.matches('/').count());
        }
    }

    /// Takes in what is known of processes: a thread of which nothing is said is in the group of
    /// the others of its process. Who looks at all threads misses those that come meanwhile. A
    /// simulated run says who is in a group: of whom it says nothing is in the root.
    pub fn take_processes(&mut self, names: &Names) {
        if self.run.is_some() {
            return;
        }
        let mut of: BTreeMap<u32, String> = BTreeMap::new();
        let mut unsaid = Vec::new();
        for (tid, comm) in names.all() {
            let Some(process) = names.process(tid) else {
                continue;
            };
            match self.path_of(tid, &comm) {
                Some(path) => drop(of.entry(process).or_insert(path.to_string())),
                None => unsaid.push((tid, process)),
            }
        }
        for (tid, process) in unsaid {
            if let Some(path) = of.get(&process) {
                self.of_processes.insert(tid, path.clone());
            }
        }
    }

    /// Whether each thread and group has one of the first `cpus` CPUs. The others of its set may
    /// be beyond: a kernel also lists CPUs that are offline or could be added.
    ///
    /// # Errors
    /// Which, and its first CPU.
    pub fn fits(&self, cpus: usize) -> Result<(), String> {
        let threads = self.threads.iter().map(|t| (t.who(), &t.cpus));
        let group = |g: &Group| format!("cgroup `{}`", g.path);
        let groups = self.cgroups.iter().map(|g| (group(g), &g.cpus));
        for (who, set) in threads.chain(groups) {
            let set = set.as_deref().unwrap_or_default();
            let beyond = set.iter().all(|cpu| *cpu as usize >= cpus);
            if let Some(first) = set.first().filter(|_| beyond) {
                return Err(format!(
                    "{who}: CPU {first}, but the machine has {cpus} CPUs"
                ));
            }
        }
        Ok(())
    }

    /// The path of the group of the thread `tid` called `comm`, if it is in one. Of a thread with
    /// an entry that names none, and none in the recording, that is the root, wherever its process
    /// is.
    #[must_use]
    pub fn path_of(&self, tid: u32, comm: &str) -> Option<&str> {
        let entry = self.of(tid, comm);
        let said = entry.and_then(|t| t.cgroup.as_ref());
        let of_process = || self.of_processes.get(&tid).filter(|_| entry.is_none());
        said.or_else(|| self.recorded.get(&tid))
            .or_else(of_process)
            .map(String::as_str)
    }

    /// The group of the thread `tid` called `comm`, by its place in [`Attributes::groups`].
    #[must_use]
    pub fn group_of(&self, tid: u32, comm: &str) -> u32 {
        let Some(path) = self.path_of(tid, comm) else {
            return 0;
        };
        let groups = self.groups();
        groups.iter().position(|g| g == path).unwrap_or(0) as u32
    }
}

impl ThreadWords {
    /// Whom it is about, as the file says it.
    pub(crate) fn who(&self) -> String {
        const SHOWN: usize = 3;
        let tids: Vec<String> = self.tids.iter().take(SHOWN).map(u32::to_string).collect();
        let more = if self.tids.len() > SHOWN { ", ..." } else { "" };
        match (tids.is_empty(), is_any(&self.comm)) {
            (true, _) => format!("thread `{}`", self.comm),
            (false, true) => format!("thread with tids {}{more}", tids.join(", ")),
            (false, false) => format!("thread `{}` with tids {}{more}", self.comm, tids.join(", ")),
        }
    }
}

impl Group {
    /// Quota (`None`: no limit) and period, ns.
    ///
    /// # Errors
    /// What is wrong with the words.
    pub fn limit(&self) -> Result<(Option<u64>, u64), String> {
        self.max
            .as_deref()
            .map_or(Ok((None, PERIOD_NS_DEFAULT)), limit)
    }
}

/// Reads `cpu.max`: quota and period, ns.
///
/// # Errors
/// What was expected.
pub fn limit(text: &str) -> Result<(Option<u64>, u64), String> {
    let told = |e: Refused| match e.hint {
        // It has the words in it.
        Some(hint) => format!("cpu.max: {hint}"),
        None => format!("cpu.max `{text}`: {}", e.expected),
    };
    let read = limit_words::cpu_max(text).map_err(told);
    read.map(|(quota_ns, period_ns)| (quota_ns, period_ns.unwrap_or(PERIOD_NS_DEFAULT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_the_kernel_refuses_is_told_with_what_it_takes() {
        assert_eq!(limit("5000 10000"), Ok((Some(5_000_000), 10_000_000)));
        let of = |text: &str| limit(text).expect_err("refused");
        let period = "cpu.max `5000 10`: expected a period from 1ms to 1s";
        assert_eq!(of("5000 10"), period);
        assert_eq!(
            of("5 10000"),
            "cpu.max `5 10000`: expected a quota of at least 1ms"
        );
        assert!(of("5000 10000 1").contains("expected QUOTA PERIOD"));
    }

    #[test]
    fn a_thread_needs_a_cpu_of_the_machine() {
        let of =
            |cpus: &str| Attributes::parse(&format!("[[thread]]\ncomm = \"a\"\ncpus = [{cpus}]\n"));
        let fits = |cpus: &str| of(cpus).expect("attributes").fits(2);
        assert_eq!((fits("0"), fits("1, 7")), (Ok(()), Ok(())));
        let error = fits("7, 8").expect_err("beyond");
        assert_eq!(error, "thread `a`: CPU 7, but the machine has 2 CPUs");
        let ids = "[[thread]]\ntids = [4, 5, 6, 7]\ncpus = [7]\n";
        let error = Attributes::parse(ids).unwrap().fits(2).unwrap_err();
        assert!(
            error.starts_with("thread with tids 4, 5, 6, ...: CPU 7"),
            "{error}"
        );
        assert!(of("").is_err());
    }

    #[test]
    fn a_file_is_read_and_mistakes_are_told() {
        let a = Attributes::parse(
            "hz = 250\n[[cgroup]]\npath = \"/a\"\n\"cpu.max\" = \"20000 50000\"\n\
             [[thread]]\ncomm = \"web*\"\npolicy = \"idle\"\ncgroup = \"/a\"\n",
        )
        .unwrap();
        assert_eq!(a.cgroups[0].limit(), Ok((Some(20_000_000), 50_000_000)));
        assert_eq!(a.of(1, "webserver").unwrap().policy, PolicyWords::Idle);
        assert!(a.of(1, "db").is_none());
        let tids = Attributes::parse("[[thread]]\ntids = [7]\nslice_us = 3000\n").unwrap();
        assert!(tids.of(7, "x").is_some() && tids.of(8, "x").is_none());
        let error = Attributes::parse("[[thread]]\ncom = 1\n").unwrap_err();
        assert!(error.contains("line 2") && error.contains("com"), "{error}");
        for (words, told) in [
            (
                "[[thread]]\ncpus = [0, 4294967295]",
                "CPU 4294967295: expected at most 8191",
            ),
            (
                "[[thread]]\nslice_us = 18446744073709",
                "expected at most 1000000000",
            ),
            ("[[cgroup]]\npath = '/a/..'", "without `.` and `..`"),
            (
                "[[cgroup]]\npath = '/a'\n\"cpu.max.burst\" = 1000000001",
                "at most 1000000000",
            ),
            (
                "[[cgroup]]\npath = '/a'\n[[cgroup]]\npath = '/a'",
                "declared twice",
            ),
        ] {
            let error = Attributes::parse(words).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        assert!(limit("fast").unwrap_err().contains("QUOTA PERIOD"));
        assert!(fits("a*c", "abc") && fits("*", "") && !fits("a*c", "ab"));
    }

    #[test]
    fn who_is_not_named_is_in_the_group_of_its_process() {
        let words = "[[cgroup]]\npath = \"/a\"\n[[thread]]\ntids = [7, 20]\ncgroup = \"/a\"\n";
        let mut known = Attributes::parse(words).unwrap();
        let mut names = Names::default();
        for (tid, process) in [(7, 7), (8, 7), (9, 9), (20, 30), (31, 30)] {
            names.see(tid, b"t");
            names.see_process(tid, process);
        }
        names.see(10, b"t");
        known.take_processes(&names);
        let of = |tid| known.path_of(tid, "t");
        let in_a = Some("/a");
        assert_eq!([7, 8, 31].map(of), [in_a; 3]);
        assert_eq!([9, 10].map(of), [None; 2]);
    }
}

//! What is wrong with attributes, and where that stands in their file: a file is refused as a
//! scenario is, with its line.

use std::collections::BTreeSet;
use std::ops::Range;

use fairground::policy::Features;
use fairground_sim::machine_file::MAX_CPUS;
use fairground_sim::spec::{Error, Source};
use fairground_sim::workload::duration::DURATION_NS_MAX;
use fairground_sim::workload::nearest::with_nearest;
use fairground_sim::workload::size::parse_bytes;
use fairground_sim::workload::validate::{SHARES, TIME_NS_MAX, burst_refused};
use toml::de::{DeTable, DeValue};

use super::attributes::{Attributes, Group, RunWords, ThreadWords, US_MAX};
use crate::groups::Groups;
use crate::recording::CPU_MAX;

/// Most memory that a thread goes through, bytes in a microsecond: `schbench -F` may be so large.
const FOOTPRINT_MAX: u32 = 1 << 30;

/// An attribute that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    of: Of,
    key: &'static str,
    /// What is wrong, and what was expected.
    pub message: String,
}

/// Of what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// All.
    File,
    /// The n-th group.
    Group(usize),
    /// The n-th entry about threads.
    Thread(usize),
    /// What a simulated run says about itself.
    Run,
}

/// A key and what is wrong with it.
type Wrong = (&'static str, String);

impl Refused {
    /// With its place in the file.
    #[must_use]
    pub fn in_file(&self, source: &Source) -> Error {
        let span = self.span(source.text()).unwrap_or(0..0);
        source.error(span, &self.message)
    }

    /// That of the key's value or, if the table does not have it, of the table.
    fn span(&self, text: &str) -> Option<Range<usize>> {
        let file = DeTable::parse(text).ok()?;
        let (tables, n) = match self.of {
            Of::File => return value(file.get_ref(), self.key).map(|v| v.span()),
            Of::Group(n) => ("cgroup", n),
            Of::Thread(n) => ("thread", n),
            Of::Run => {
                let run = value(file.get_ref(), "run")?;
                return keys_of(run).and_then(|keys| Some(value(keys, self.key)?.span()));
            }
        };
        let DeValue::Array(tables) = value(file.get_ref(), tables)?.get_ref() else {
            return None;
        };
        let table = tables.get(n)?;
        let found = keys_of(table).and_then(|keys| value(keys, self.key));
        Some(found.map_or(table.span(), |v| v.span()))
    }
}

fn value<'a, 'b>(table: &'a DeTable<'b>, key: &str) -> Option<&'a toml::Spanned<DeValue<'b>>> {
    let mut entries = table.iter();
    let found = entries.find(|(name, _)| name.get_ref() == key)?;
    Some(found.1)
}

fn keys_of<'a, 'b>(table: &'a toml::Spanned<DeValue<'b>>) -> Option<&'a DeTable<'b>> {
    match table.get_ref() {
        DeValue::Table(keys) => Some(keys),
        _ => None,
    }
}

impl Attributes {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn read(source: &Source) -> Result<Self, Error> {
        let read: Self = toml::from_str(source.text()).map_err(|e| {
            let message = e.message().lines().collect::<Vec<_>>().join("; ");
            let message = with_nearest(&message);
            source.error(e.span().unwrap_or(0..0), message)
        })?;
        match read.check() {
            Ok(()) => Ok(read),
            Err(refused) => Err(refused.in_file(source)),
        }
    }

    fn check(&self) -> Result<(), Refused> {
        if let Some(hz) = self.hz
            && let Err(e) = Features::default().set("hz", &hz.to_string())
        {
            let (of, key, message) = (Of::File, "hz", e.to_string());
            return Err(Refused { of, key, message });
        }
        for (n, words) in self.threads.iter().enumerate() {
            let at = |(key, message): Wrong| Refused {
                of: Of::Thread(n),
                key,
                message: format!("{}: {message}", words.who()),
            };
            words.check().map_err(at)?;
        }
        self.check_tids()?;
        if let Some(run) = &self.run {
            let (of, at) = (Of::Run, |(key, message)| (key, format!("run: {message}")));
            let refused = |(key, message)| Refused { of, key, message };
            run.check().map_err(at).map_err(refused)?;
        }
        let mut paths = BTreeSet::new();
        for (n, group) in self.cgroups.iter().enumerate() {
            let at = |(key, message): Wrong| Refused {
                of: Of::Group(n),
                key,
                message: format!("cgroup `{}`: {message}", group.path),
            };
            group.check().map_err(at)?;
            if !paths.insert(&group.path) {
                return Err(Refused {
                    of: Of::Group(n),
                    key: "path",
                    message: format!("cgroup `{}` is declared twice", group.path),
                });
            }
        }
        Ok(())
    }

    /// Whether each thread is in one entry, or in several that tell it apart by its name: of those
    /// that fit, the first counts.
    fn check_tids(&self) -> Result<(), Refused> {
        const ANY: &str = "*";
        let mut seen = BTreeSet::new();
        for (n, words) in self.threads.iter().enumerate() {
            let comm = words.comm.as_str();
            let again = |tid: &&u32| seen.contains(&(**tid, ANY)) || !seen.insert((**tid, comm));
            if let Some(tid) = words.tids.iter().find(again) {
                let (of, key) = (Of::Thread(n), "tids");
                let message = format!("tid {tid} is named before; expected each once");
                return Err(Refused { of, key, message });
            }
        }
        Ok(())
    }

    /// Whether all groups that are named are there: in the file, parents before children, or in the
    /// recording, if its groups are used.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_groups(&self, recorded: &Groups) -> Result<(), Refused> {
        let mut known = vec!["/"];
        let recorded = match self.recorded_cgroups {
            true => recorded.of_threads(),
            false => Default::default(),
        };
        for path in recorded.values() {
            let ends = path.match_indices('/').map(|(i, _)| i).skip(1);
            known.extend(ends.chain([path.len()]).map(|end| &path[..end]));
        }
        if !recorded.is_empty() {
            // With them, those of the file come in any order.
            known.extend(self.cgroups.iter().map(|g| &*g.path));
        }
        for (n, group) in self.cgroups.iter().enumerate() {
            let above = group.above();
            if let Some(above) = above.filter(|above| !known.contains(above)) {
                let message = format!("cgroup `{}`: {}", group.path, no_group(above, &known));
                let (of, key) = (Of::Group(n), "path");
                return Err(Refused { of, key, message });
            }
            known.push(&group.path);
        }
        for (n, words) in self.threads.iter().enumerate() {
            if let Some(path) = words.cgroup.as_deref().filter(|path| !known.contains(path)) {
                let message = format!("{}: {}", words.who(), no_group(path, &known));
                let (of, key) = (Of::Thread(n), "cgroup");
                return Err(Refused { of, key, message });
            }
        }
        Ok(())
    }
}

/// A path that is none of those that are known.
pub(super) fn no_group(path: &str, known: &[&str]) -> String {
    const SHOWN: usize = 20;
    let mut all: Vec<&str> = Vec::new();
    for path in known {
        if !all.contains(path) {
            all.push(path);
        }
    }
    let more = if all.len() > SHOWN { ", ..." } else { "" };
    all.truncate(SHOWN);
    format!("no cgroup `{path}`; there are {}{more}", all.join(", "))
}

impl RunWords {
    /// Whether a run can have been so.
    fn check(&self) -> Result<(), Wrong> {
        if !(1..=MAX_CPUS as u32).contains(&self.cpus) {
            let message = format!("cpus {}: expected 1 to {MAX_CPUS}", self.cpus);
            return Err(("cpus", message));
        }
        let times = [
            ("warmup_ns", Some(self.warmup_ns), DURATION_NS_MAX),
            ("settle_ns", Some(self.settle_ns), self.warmup_ns),
            // The warm-up, and what is measured.
            ("ends_ns", self.ends_ns, 2 * DURATION_NS_MAX),
            (
                "at_ns",
                self.writes.iter().map(|w| w.at_ns).max(),
                TIME_NS_MAX,
            ),
        ];
        for (key, ns, most) in times {
            if let Some(ns) = ns.filter(|ns| *ns > most) {
                return Err((key, format!("{key} {ns}: expected at most {most}")));
            }
        }
        Ok(())
    }
}

impl ThreadWords {
    fn check(&self) -> Result<(), Wrong> {
        if let Some(cpu) = self.cpus.iter().flatten().find(|cpu| **cpu > CPU_MAX) {
            return Err(("cpus", format!("CPU {cpu}: expected at most {CPU_MAX}")));
        }
        if self.cpus.as_ref().is_some_and(Vec::is_empty) {
            return Err(("cpus", "cpus: none, expected at least one".into()));
        }
        if let Some(us) = self.slice_us.filter(|us| *us > US_MAX) {
            let message = format!("slice_us {us}: expected at most {US_MAX}");
            return Err(("slice_us", message));
        }
        if let Some(n) = self.footprint_bytes_per_us.filter(|n| *n > FOOTPRINT_MAX) {
            let message = format!("footprint_bytes_per_us {n}: expected at most {FOOTPRINT_MAX}");
            return Err(("footprint_bytes_per_us", message));
        }
        // As scenarios read it.
        let bytes = self.working_set_bytes.map(|n| parse_bytes(&n.to_string()));
        let refused = |e: String| ("working_set_bytes", format!("working_set_bytes {e}"));
        bytes.transpose().map(drop).map_err(refused)
    }
}

impl Group {
    /// Whether each of its attributes can be, and all together.
    ///
    /// # Errors
    /// A key, and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let wrong = |key: &'static str, message: String| Err((key, message));
        if self.path == "/" {
            let message = "the root cgroup is always there and has no attributes";
            return wrong("path", message.into());
        }
        if self.above().is_none() {
            return wrong("path", "expected a path that begins with `/`".into());
        }
        if self.path.split('/').any(|name| name == "." || name == "..") {
            return wrong("path", "expected a path without `.` and `..`".into());
        }
        if let Some(cpus) = &self.cpus
            && (cpus.is_empty() || cpus.iter().any(|cpu| *cpu > CPU_MAX))
        {
            let message = format!("cpuset.cpus: expected CPUs up to {CPU_MAX}");
            return wrong("cpuset.cpus", message);
        }
        self.one_weight()?;
        if let Some(weight) = self.weight.filter(|w| !(1..=10_000).contains(w)) {
            let message = format!("cpu.weight {weight}: expected 1 to 10000");
            return wrong("cpu.weight", message);
        }
        if let Some(shares) = self.shares.filter(|shares| !SHARES.contains(shares)) {
            let (least, most) = (SHARES.start(), SHARES.end());
            let message = format!("cpu.shares {shares}: expected {least} to {most}");
            return wrong("cpu.shares", message);
        }
        if let Some(nice) = self.nice.filter(|nice| !(-20..=19).contains(nice)) {
            return wrong("nice", format!("nice {nice}: expected -20 to 19"));
        }
        if let Some(us) = self.burst_us.filter(|us| *us > US_MAX) {
            let message = format!("cpu.max.burst {us}: expected at most {US_MAX} us");
            return wrong("cpu.max.burst", message);
        }
        let (quota_ns, _) = self.limit().map_err(|e| ("cpu.max", e))?;
        let burst_ns = self.burst_us.unwrap_or(0).saturating_mul(1000);
        match quota_ns.filter(|ns| burst_ns > *ns) {
            Some(quota_ns) => wrong("cpu.max.burst", burst_refused(burst_ns, quota_ns)),
            None => Ok(()),
        }
    }

    /// Whether its weight is said in one way at most: only one of several would count.
    fn one_weight(&self) -> Result<(), Wrong> {
        let said = [
            ("cpu.weight", self.weight.is_some()),
            ("cpu.shares", self.shares.is_some()),
            ("nice", self.nice.is_some()),
        ];
        let said: Vec<&str> = said.iter().filter(|s| s.1).map(|s| s.0).collect();
        match *said.as_slice() {
            [] | [_] => Ok(()),
            [first, second, ..] => Err((
                second,
                format!("{first} and {second} are both its weight; expected one of them"),
            )),
        }
    }

    /// The path of the group above, `/` for the root; `None`: its own is no path.
    pub(super) fn above(&self) -> Option<&str> {
        match self.path.rsplit_once('/') {
            Some(("", name)) if !name.is_empty() => Some("/"),
            Some((above, name)) if !name.is_empty() && above.starts_with('/') => Some(above),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let source = Source::new("a.toml", text);
        let refused = |known: Attributes| known.check_groups(&Groups::default());
        match Attributes::read(&source).map(refused) {
            Ok(Ok(())) => String::new(),
            Ok(Err(refused)) => refused.in_file(&source).to_string(),
            Err(e) => e.to_string(),
        }
    }

    fn is_told(text: &str, said: &str) {
        let told = told(text);
        let right = told.starts_with(said) && told.is_empty() == said.is_empty();
        assert!(right, "{told}");
    }

    #[test]
    fn each_mistake_has_its_line() {
        let root = "[[cgroup]]\npath = \"/\"\n\"cpu.max\" = \"max\"\n";
        let a = "[[cgroup]]\npath = \"/a\"\n";
        let group = |key: &str, value: &str| format!("hz = 250\n{a}\"{key}\" = {value}\n");
        let thread =
            |key: &str, value: &str| format!("{a}[[thread]]\ncomm = \"x\"\n{key} = {value}\n");
        for (text, said) in [
            (
                root.into(),
                "a.toml:2: cgroup `/`: the root cgroup is always there",
            ),
            ("\nhz = 999\n".into(), "a.toml:2: "),
            (
                group("cpu.max", "\"20 ms\""),
                "a.toml:4: cgroup `/a`: cpu.max `20 ms`: expected",
            ),
            (
                group("cpu.weight", "0"),
                "a.toml:4: cgroup `/a`: cpu.weight 0: expected 1 to",
            ),
            (
                group("cpu.max.burst", "9000\n\"cpu.max\" = \"5000 10000\""),
                "a.toml:4: cgroup `/a`: the kernel refuses a burst of 9000 us",
            ),
            (
                format!("{a}[[cgroup]]\npath = \"/b/c\"\n"),
                "a.toml:4: cgroup `/b/c`: no cgroup `/b`; there are /, /a",
            ),
            (
                thread("cgroup", "\"/b\""),
                "a.toml:5: thread `x`: no cgroup `/b`; there are /, /a",
            ),
            (
                thread("working_set_bytes", "99999999999999999"),
                "a.toml:5: thread `x`: working_set_bytes 99999999999999999: expected 1 byte to",
            ),
            (format!("{a}{a}"), "a.toml:4: cgroup `/a` is declared twice"),
            (
                "[[thread]]\ncom = 1\n".into(),
                "a.toml:2: unknown field `com`",
            ),
            (thread("cgroup", "\"/a\""), ""),
            (thread("working_set_bytes", "1125899906842624"), ""),
        ] {
            is_told(&text, said);
        }
    }

    #[test]
    fn a_weight_is_said_in_one_way() {
        let of = |words: &str| format!("[[cgroup]]\npath = \"/a\"\n{words}\n");
        let weight = "\"cpu.weight\" = 100";
        for (words, said) in [
            (
                format!("{weight}\n\"cpu.shares\" = 2"),
                "a.toml:4: cgroup `/a`: cpu.weight and cpu.shares are both its weight; expected",
            ),
            (
                format!("nice = 5\n{weight}"),
                "a.toml:3: cgroup `/a`: cpu.weight and nice are both its weight",
            ),
            (
                "nice = 5\n\"cpu.shares\" = 1024".into(),
                "a.toml:3: cgroup `/a`: cpu.shares and nice are both its weight",
            ),
            ("nice = 5".into(), ""),
        ] {
            is_told(&of(&words), said);
        }
    }

    #[test]
    fn numbers_that_mean_nothing_are_told() {
        let a = "[[cgroup]]\npath = \"/a\"\n";
        let group = |key: &str, value: &str| format!("hz = 250\n{a}\"{key}\" = {value}\n");
        let thread =
            |key: &str, value: &str| format!("{a}[[thread]]\ncomm = \"x\"\n{key} = {value}\n");
        let run = |words: &str| format!("[run]\nseed = 1\nmachine = \"x\"\n{words}\n");
        for (text, said) in [
            (
                group("cpu.shares", "0"),
                "a.toml:4: cgroup `/a`: cpu.shares 0: expected 2 to 262144",
            ),
            (
                thread("tids", "[]"),
                "a.toml:5: no thread id; expected at least one",
            ),
            (thread("tids", "[4, 5]") + "[[thread]]\ntids = [5]\n", ""),
            (
                thread("tids", "[4, 5]") + "[[thread]]\ncomm = \"x\"\ntids = [5]\n",
                "a.toml:8: tid 5 is named before; expected each once",
            ),
            (
                "[[thread]]\ntids = [5]\n[[thread]]\ncomm = \"x\"\ntids = [4, 5]\n".into(),
                "a.toml:5: tid 5 is named before",
            ),
            (thread("tids", "[4, 4]"), "a.toml:5: tid 4 is named before"),
            (
                run("cpus = 99999"),
                "a.toml:4: run: cpus 99999: expected 1 to 512",
            ),
            (
                run("cpus = 8\nwarmup_ns = 18446744073709551615"),
                "a.toml:5: run: warmup_ns 18446744073709551615: expected at most 1",
            ),
            (
                run("cpus = 8\nwarmup_ns = 5\nsettle_ns = 6"),
                "a.toml:6: run: settle_ns 6: expected at most 5",
            ),
            (run("cpus = 8\nends_ns = 2000000000000000"), ""),
        ] {
            is_told(&text, said);
        }
    }
}

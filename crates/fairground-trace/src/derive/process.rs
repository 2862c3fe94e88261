//! Which threads share an address space: a switch between two that do not changes page tables.

use std::collections::BTreeMap;

use fairground_sim::workload::program::KERNEL_PROCESS;

use super::attributes::{Attributes, OF_KERNEL, OWN};
use super::log::Logs;
use crate::event::Names;
use crate::walk::ThreadId;

/// Names of kernel threads, and how others begin.
const KERNEL: &[&str] = &["kthreadd", "kauditd", "khugepaged", "oom_reaper"];
const KERNEL_BEGINS: &[&str] = &[
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "cpuhp/",
    "rcu_",
    "rcuc/",
    "rcuop/",
    "rcuog/",
    "irq/",
    "idle_inject/",
    "watchdog/",
    "kswapd",
    "kcompactd",
    "jbd2/",
];
/// Threads of which nothing is known are in one process.
const UNKNOWN: u32 = 1;

/// The process of each thread.
#[derive(Clone, Debug)]
pub struct Processes {
    of: Vec<u32>,
    threads: BTreeMap<u32, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Named(String),
    Id(u32),
    Kernel,
    Own(ThreadId),
}

impl Processes {
    /// By what the attributes say, else by the recording; kernel threads by name, unless it is a
    /// simulated run, which says who they are.
    #[must_use]
    pub fn new(logs: &Logs, names: &Names, attributes: &Attributes) -> Self {
        let mut numbers: BTreeMap<Key, u32> = BTreeMap::new();
        let mut of = Vec::new();
        // Page tables that every CPU has from the start: those of number 0.
        let at_start = attributes.run.as_ref().and_then(|run| run.process);
        numbers.extend(at_start.map(|id| (Key::Id(id), 0)));
        let by_name = attributes.run.is_none();
        for (thread, about) in logs.threads.iter().enumerate() {
            let name = names.get(about.tid);
            let words = attributes.of(about.tid, &name);
            let key = match (
                words.and_then(|w| w.process.as_ref()),
                names.process(about.tid),
            ) {
                (Some(word), _) if word == OWN => Some(Key::Own(thread)),
                (Some(word), _) if word == OF_KERNEL => Some(Key::Kernel),
                (Some(word), _) => Some(Key::Named(word.clone())),
                (None, known) => known.map(Key::Id),
            };
            let shared = matches!(&key, Some(Key::Id(id)) if *id != about.tid);
            let next = UNKNOWN + 1 + numbers.len() as u32;
            of.push(match key {
                Some(Key::Kernel) => KERNEL_PROCESS,
                _ if by_name && is_kernel(&name) && !shared => KERNEL_PROCESS,
                Some(key) => *numbers.entry(key).or_insert(next),
                None => UNKNOWN,
            });
        }
        let mut threads = BTreeMap::new();
        for process in &of {
            *threads.entry(*process).or_default() += 1;
        }
        Self { of, threads }
    }

    /// The number of a thread's process.
    #[must_use]
    pub fn of(&self, thread: ThreadId) -> u32 {
        self.of[thread]
    }

    /// Whether the thread is known to share its process with nobody.
    #[must_use]
    pub fn is_alone(&self, thread: ThreadId) -> bool {
        let process = self.of[thread];
        process != UNKNOWN && process != KERNEL_PROCESS && self.threads.get(&process) == Some(&1)
    }
}

pub(super) fn is_kernel(name: &str) -> bool {
    KERNEL.contains(&name) || KERNEL_BEGINS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event, Kind};

    #[test]
    fn processes_come_from_attributes_from_the_recording_and_from_names() {
        let mut names = Names::default();
        for (tid, comm) in [
            (1, "a"),
            (2, "b"),
            (3, "b"),
            (4, "kworker/0:1"),
            (5, "c"),
            (6, "d"),
            (7, "e"),
        ] {
            names.see(tid, comm.as_bytes());
        }
        names.see_process(2, 2);
        names.see_process(3, 2);
        names.see_process(4, 4);
        names.see_process(5, 5);
        let exit = |tid: u32| Event {
            at_ns: u64::from(tid),
            cpu: 0,
            tid,
            context: Context::Unknown,
            kind: Kind::Exit { tid },
        };
        let events: Vec<Event> = (1..=7).map(exit).collect();
        let logs = Logs::of(&events, 1);
        let words = "[[thread]]\ncomm = \"d\"\nprocess = \"own\"\n\
                     [[thread]]\ncomm = \"e\"\nprocess = \"kernel\"\n";
        let p = Processes::new(&logs, &names, &Attributes::parse(words).unwrap());
        let of: Vec<u32> = (0..7).map(|t| p.of(t)).collect();
        assert_eq!(of, [UNKNOWN, 2, 2, KERNEL_PROCESS, 3, 4, KERNEL_PROCESS]);
        let alone: Vec<bool> = (0..7).map(|t| p.is_alone(t)).collect();
        assert_eq!(alone, [false, false, false, false, true, true, false]);
    }
}

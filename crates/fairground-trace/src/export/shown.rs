//! Names of threads as they are written, looked up once.

use rustc_hash::FxHashMap;

use crate::event::{Event, Kind};
use crate::recording::Recording;

/// A thread.
#[derive(Debug)]
pub struct Who {
    /// The kernel's id of it.
    pub tid: u32,
    /// Its last name.
    comm: String,
    /// Since when it had which, if there were several.
    over_time: Vec<(u64, String)>,
    /// The kernel's id of its process, where that is known.
    pub process: Option<u32>,
}

impl Who {
    /// What it was called at a time.
    pub fn comm_at(&self, at_ns: u64) -> &str {
        let since = self.over_time.partition_point(|(at, _)| *at <= at_ns);
        // Before the first time that it was named it had that name, too.
        let known = self.over_time.get(since.saturating_sub(1));
        known.map_or(&self.comm, |(_, comm)| comm)
    }
}

/// All threads of a recording.
#[derive(Debug)]
pub struct Shown {
    threads: FxHashMap<u32, Who>,
    idle: Vec<String>,
    nobody: Who,
}

impl Shown {
    /// Of a recording.
    pub fn new(recording: &Recording) -> Self {
        let names = &recording.names;
        let mut threads = FxHashMap::default();
        let mut see = |tid: u32| {
            threads.entry(tid).or_insert_with(|| Who {
                tid: names.kernel_id(tid),
                comm: names.get(tid),
                over_time: names.over_time(tid).to_vec(),
                process: names.process(tid).map(|p| names.kernel_id(p)),
            });
        };
        for event in &recording.events {
            see(event.tid);
            match event.kind {
                Kind::Switch { prev, next, .. } => {
                    see(prev);
                    see(next);
                }
                Kind::Waking { tid, .. }
                | Kind::Wakeup { tid, .. }
                | Kind::WakeupNew { tid, .. }
                | Kind::Migrate { tid, .. }
                | Kind::Exit { tid } => see(tid),
                Kind::Fork { parent, child } => {
                    see(parent);
                    see(child);
                }
                Kind::On | Kind::Told(_) => {}
            }
        }
        Self {
            threads,
            idle: (0..recording.cpus)
                .map(|cpu| format!("swapper/{cpu}"))
                .collect(),
            nobody: Who {
                tid: 0,
                comm: "?".into(),
                over_time: Vec::new(),
                process: None,
            },
        }
    }

    /// A thread of the recording.
    pub fn thread(&self, tid: u32) -> &Who {
        self.threads.get(&tid).unwrap_or(&self.nobody)
    }

    /// Its id and what it was called when that event was; the name of the idle task of that CPU,
    /// if it is 0.
    pub fn then(&self, tid: u32, event: &Event) -> (&str, u32) {
        let who = self.thread(tid);
        match (tid, self.idle.get(event.cpu as usize)) {
            (0, Some(idle)) => (idle, 0),
            _ => (who.comm_at(event.at_ns), who.tid),
        }
    }
}

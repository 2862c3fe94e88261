//! Names of threads as they are written, looked up once.

use rustc_hash::FxHashMap;

use crate::event::Kind;
use crate::recording::Recording;

/// A thread.
#[derive(Debug)]
pub struct Who {
    /// Name.
    pub comm: String,
    /// Process, where that is known.
    pub process: Option<u32>,
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
                comm: names.get(tid),
                process: names.process(tid),
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
                comm: "?".into(),
                process: None,
            },
        }
    }

    /// A thread of the recording.
    pub fn thread(&self, tid: u32) -> &Who {
        self.threads.get(&tid).unwrap_or(&self.nobody)
    }

    /// Its name; that of the idle task on `cpu`, if it is 0.
    pub fn comm(&self, tid: u32, cpu: u32) -> &str {
        match (tid, self.idle.get(cpu as usize)) {
            (0, Some(idle)) => idle,
            _ => &self.thread(tid).comm,
        }
    }
}

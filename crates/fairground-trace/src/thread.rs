//! A thread of the recording, and what it and a CPU are doing at a point of the walk.

use crate::fact::ThreadId;

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The kernel's id.
    pub tid: u32,
    /// Priority as first seen: 120 is nice 0, below 100 real time.
    pub prio: i16,
    /// As last seen, if an event has named it.
    pub(crate) prio_now: Option<i16>,
    /// When it was first heard of.
    pub born_ns: u64,
    /// It was created inside the recording.
    pub forked: bool,
    /// The CPU that executed the event in which it was first heard of.
    pub born_on: u32,
    /// What it is doing at this point of the walk.
    pub(crate) state: At,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Not heard of since it was named.
    Unknown,
    /// On a CPU since then.
    Running,
    /// Waiting for a CPU: which, since when, and whether after a wake-up.
    Runnable { cpu: u32, since: u64, woken: bool },
    /// Asleep; whether its wake-up has begun.
    Blocked { waking: bool },
    /// Gone.
    Dead,
}

/// What a CPU is doing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuAt {
    /// Anything is known.
    pub known: bool,
    /// Who runs; `None` is idle.
    pub current: Option<ThreadId>,
    pub since: u64,
    /// When it last executed an event.
    pub seen: u64,
}

impl CpuAt {
    /// Nobody runs since then.
    pub fn free(since: u64) -> Self {
        Self {
            known: true,
            current: None,
            since,
            seen: since,
        }
    }
}

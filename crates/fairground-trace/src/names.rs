//! Names of threads (`comm`), and of which process each is, where the recording says so. A name
//! changes: what events say is kept with its time. Threads that share an id of the kernel, one
//! after the other, have ids of their own here ([`crate::lives`]). Times are in nanoseconds on the
//! recording's clock.

use rustc_hash::FxHashMap;

/// Longest name in the kernel, with the terminating zero.
pub const COMM: usize = 16;

/// Most changes of names that are kept, as against damage.
const CHANGES_MAX: usize = 1 << 20;

type Comm = [u8; COMM];

/// Names of threads: the last one that was seen, and what events said before.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_tid: FxHashMap<u32, Known>,
    processes: FxHashMap<u32, u32>,
    /// The time of the event that is being read.
    now: Option<u64>,
    /// Names that events said, wherever that changed: thread, since when, name.
    changes: Vec<(u32, u64, Comm)>,
    /// Of threads whose name changed: since when which.
    over_time: FxHashMap<u32, Vec<(u64, String)>>,
    /// Who has an id of the kernel after others: that id, and the how many-th it is.
    lives: FxHashMap<u32, (u32, u32)>,
}

/// A thread's name.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// As it is shown: by whatever named it last.
    shown: Comm,
    /// As the fields of events had it last; ftrace's first column has what it was at the end.
    told: Option<Comm>,
}

impl Names {
    /// Names that come next are those at this time, as the fields of an event say them; `None`:
    /// those of nobody knows when.
    #[inline]
    pub fn at(&mut self, now: Option<u64>) {
        self.now = now;
    }

    /// Remembers a name; empty ones, `<...>` and perf's `:TID` say nothing.
    #[inline]
    pub fn see(&mut self, tid: u32, comm: &[u8]) {
        if tid == 0 || comm.is_empty() || (matches!(comm[0], b'<' | b':') && is_stand_in(comm)) {
            return;
        }
        let fixed = fixed(comm);
        let known = self.by_tid.entry(tid).or_default();
        known.shown = fixed;
        // Nearly always the name is known.
        if let Some(now) = self.now.filter(|_| known.told != Some(fixed)) {
            known.told = Some(fixed);
            if self.changes.len() < CHANGES_MAX {
                self.changes.push((tid, now, fixed));
            }
        }
    }

    /// Remembers the process (thread group) of a thread.
    pub fn see_process(&mut self, tid: u32, process: u32) {
        if tid != 0 && process != 0 {
            self.processes.insert(tid, process);
        }
    }

    /// The process of a thread; `None` if the recording does not say.
    #[must_use]
    pub fn process(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// All names, by thread id.
    #[must_use]
    pub fn all(&self) -> Vec<(u32, String)> {
        let mut tids: Vec<u32> = self.by_tid.keys().copied().collect();
        tids.sort_unstable();
        tids.into_iter().map(|tid| (tid, self.get(tid))).collect()
    }

    /// The name of a thread, `tid N` if it was never seen.
    #[must_use]
    pub fn get(&self, tid: u32) -> String {
        if tid == 0 {
            return "swapper".into();
        }
        match self.by_tid.get(&tid) {
            Some(known) => clean(&known.shown),
            None => format!("tid {}", self.id(tid)),
        }
    }

    /// Its names and since when it had each, if there were several.
    #[must_use]
    pub fn over_time(&self, tid: u32) -> &[(u64, String)] {
        self.over_time.get(&tid).map_or(&[], Vec::as_slice)
    }

    /// The id of a thread as people read it: the kernel's and, if others had it before, the how
    /// many-th it is.
    #[must_use]
    pub fn id(&self, tid: u32) -> String {
        match self.lives.get(&tid) {
            Some((kernel, nth)) => format!("{kernel} #{nth}"),
            None => tid.to_string(),
        }
    }

    /// The kernel's id of a thread.
    #[must_use]
    pub fn kernel_id(&self, tid: u32) -> u32 {
        self.lives.get(&tid).map_or(tid, |(kernel, _)| *kernel)
    }

    /// Whether others had the thread's id of the kernel before.
    #[must_use]
    pub fn is_later(&self, tid: u32) -> bool {
        self.lives.contains_key(&tid)
    }

    /// A thread had these names, since then each.
    pub(crate) fn set_over_time(&mut self, tid: u32, names: Vec<(u64, String)>) {
        self.over_time.insert(tid, names);
    }

    /// Threads have the ids that they have in `other`.
    pub(crate) fn take_ids(&mut self, other: &Self) {
        self.lives.clone_from(&other.lives);
    }

    /// Puts what events said in order of time, thread by thread.
    pub(crate) fn sort(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by_key(|(tid, at, _)| (*tid, *at));
        changes.dedup_by(|b, a| (a.0, a.2) == (b.0, b.2));
        for (tid, at, comm) in changes {
            let of = self.over_time.entry(tid).or_default();
            of.push((at, clean(&comm)));
        }
        self.over_time.retain(|_, of| of.len() > 1);
    }

    /// When names changed is not known any more.
    pub(crate) fn forget_times(&mut self) {
        self.over_time.clear();
    }

    /// These threads had the kernel's id `tid`, one after the other: each has the names of its own
    /// time, and the last one its last name.
    pub(crate) fn split(&mut self, tid: u32, lives: &[Life]) {
        let all = self.over_time.remove(&tid).unwrap_or_default();
        let shown = self.by_tid.get(&tid).copied();
        self.processes.remove(&tid);
        for (nth, life) in (1..).zip(lives) {
            if nth > 1 {
                self.lives.insert(life.id, (tid, nth));
            }
            self.see_process(life.id, life.process.unwrap_or(0));
            let began = all.partition_point(|(at, _)| *at <= life.from_ns);
            let ended = all.partition_point(|(at, _)| *at <= life.to_ns);
            let own = all.get(began.saturating_sub(1)..ended).unwrap_or(&[]);
            let Some(mut known) = shown else {
                continue;
            };
            if let Some((_, last)) = own.last().filter(|_| (nth as usize) < lives.len()) {
                known.shown = fixed(last.as_bytes());
            }
            self.by_tid.insert(life.id, known);
            if own.len() > 1 {
                self.over_time.insert(life.id, own.to_vec());
            }
        }
    }
}

/// One of those that had an id of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Its own id.
    pub id: u32,
    /// Its process.
    pub process: Option<u32>,
    /// When it was first heard of, and last.
    pub from_ns: u64,
    pub to_ns: u64,
}

fn fixed(comm: &[u8]) -> Comm {
    let mut fixed = [0; COMM];
    let n = comm.len().min(COMM - 1);
    fixed[..n].copy_from_slice(&comm[..n]);
    fixed
}

/// For people.
fn clean(comm: &Comm) -> String {
    let end = comm.iter().position(|b| *b == 0).unwrap_or(COMM);
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let text = String::from_utf8_lossy(&comm[..end]);
    text.chars().map(clean).collect()
}

/// Whether it stands for a name that the recorder did not know.
fn is_stand_in(comm: &[u8]) -> bool {
    match comm.strip_prefix(b":") {
        Some(tid) => tid.iter().all(|b| b.is_ascii_digit() || *b == b'-'),
        None => matches!(comm, b"<...>" | b"<idle>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_last_one_that_was_seen() {
        let mut names = Names::default();
        names.see(7, b"bash");
        for nothing in [&b"<...>"[..], b"<idle>", b":7", b":-1", b""] {
            names.see(7, nothing);
            assert_eq!(names.get(7), "bash");
        }
        for name in ["<x>", ":x", "<"] {
            names.see(7, name.as_bytes());
            assert_eq!(names.get(7), name);
        }
        names.see(7, b"a name that is far too long");
        assert_eq!(names.get(7), "a name that is ");
        assert_eq!(
            (names.get(8), names.get(0)),
            ("tid 8".into(), "swapper".into())
        );
    }
}

//! Store misses that a hardware thread does not wait for.
//!
//! Each thread has its own part of its core's buffer: how far ahead in time the one has booked is
//! nothing to the other.

use super::params::STORE_BUFFER;
use super::{HwThread, LineId, Ps, Req};

/// Lines whose pending store is remembered, so that further stores join it.
const PENDING: usize = 4;

/// A store on its way: later stores of the thread to the same line write with it.
#[derive(Clone, Copy, Default)]
struct Pending {
    line: LineId,
    version: u32,
    done: Ps,
}

/// In the order of use: atomic updates ask for `last`, stores for what is pending.
#[derive(Clone)]
#[repr(C, align(128))]
struct Buffer {
    last: Ps,
    pending: [Pending; PENDING],
    next: u32,
    head: u32,
    len: u32,
    /// Commit times, a ring; stores leave in order.
    commits: [Ps; STORE_BUFFER],
}

pub(super) struct StoreBuffers {
    /// By core, then by thread.
    buffers: Vec<Buffer>,
    threads: usize,
}

impl StoreBuffers {
    pub fn new(cores: usize, threads: usize) -> Self {
        let empty = Buffer {
            last: 0,
            pending: [Pending::default(); PENDING],
            next: 0,
            head: 0,
            len: 0,
            commits: [0; STORE_BUFFER],
        };
        Self {
            buffers: vec![empty; cores * threads],
            threads,
        }
    }

    /// The version that a store of `r`'s thread to its line, if one is still pending, will write.
    pub fn pending(&self, r: &Req) -> Option<u32> {
        let hit = |p: &&Pending| p.line == r.line && p.done > r.now;
        let buffer = &self.buffers[self.index(r)];
        buffer.pending.iter().find(hit).map(|p| p.version)
    }

    /// When the stores that the core's thread has made so far are all done.
    #[inline]
    pub fn drained(&self, HwThread { core, thread }: HwThread) -> Ps {
        self.buffers[usize::from(core) * self.threads + usize::from(thread)].last
    }

    fn index(&self, r: &Req) -> usize {
        r.core * self.threads + r.thread as usize
    }

    /// Puts the store of `r` that completes at `done` into the buffer; returns when the thread goes
    /// on.
    pub fn push(&mut self, r: &Req, version: u32, done: Ps) -> Ps {
        let (line, now, index) = (r.line, r.now, self.index(r));
        let b = &mut self.buffers[index];
        while b.len > 0 && b.first() <= now {
            b.pop();
        }
        let mut free = now;
        if b.len == STORE_BUFFER as u32 {
            free = b.first();
            b.pop();
        }
        b.last = b.last.max(done);
        let at = (b.head + b.len) as usize % STORE_BUFFER;
        b.commits[at] = b.last;
        b.len += 1;
        b.pending[b.next as usize % PENDING] = Pending {
            line,
            version,
            done,
        };
        b.next = (b.next + 1) % PENDING as u32;
        free
    }
}

impl Buffer {
    /// When the oldest store is done.
    fn first(&self) -> Ps {
        self.commits[self.head as usize % STORE_BUFFER]
    }

    fn pop(&mut self) {
        self.head = (self.head + 1) % STORE_BUFFER as u32;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Access;

    fn store(thread: u32, line: LineId, now: Ps) -> Req {
        Req {
            core: 0,
            thread,
            line,
            words: 1,
            access: Access::Store,
            now,
        }
    }

    #[test]
    fn stalls_only_when_full() {
        let mut s = StoreBuffers::new(1, 1);
        for i in 0..STORE_BUFFER as u64 {
            assert_eq!(s.push(&store(0, i as u32, i), 1, 1000 + i), i);
        }
        assert_eq!(s.push(&store(0, 99, 60), 1, 5000), 1000);
        assert_eq!(s.pending(&store(0, 99, 70)), Some(1));
        assert_eq!(s.pending(&store(0, 99, 5000)), None);
        assert_eq!(s.push(&store(0, 100, 9000), 1, 9100), 9000);
        assert_eq!(s.drained(HwThread::default()), 9100);
    }

    #[test]
    fn a_thread_that_has_booked_far_ahead_does_not_stall_the_other() {
        let mut s = StoreBuffers::new(1, 2);
        for i in 0..STORE_BUFFER as u64 {
            s.push(&store(0, i as u32, 1_000_000), 1, 1_000_100 + i);
        }
        assert_eq!(s.push(&store(1, 99, 10), 1, 70), 10);
        assert_eq!(s.pending(&store(0, 99, 20)), None);
        assert_eq!(s.pending(&store(1, 99, 20)), Some(1));
    }
}

//! Store misses that the core does not wait for.

use super::params::STORE_BUFFER;
use super::{LineId, Ps};

/// Lines whose pending store is remembered, so that further stores join it.
const PENDING: usize = 4;

/// A store on its way: later stores of the core to the same line write with it.
#[derive(Clone, Copy, Default)]
struct Pending {
    line: LineId,
    version: u32,
    done: Ps,
}

#[derive(Clone)]
struct Buffer {
    /// Commit times, a ring; stores leave in order.
    commits: [Ps; STORE_BUFFER],
    head: usize,
    len: usize,
    last: Ps,
    pending: [Pending; PENDING],
    next: usize,
}

pub(super) struct StoreBuffers(Vec<Buffer>);

impl StoreBuffers {
    pub fn new(cores: usize) -> Self {
        let empty = Buffer {
            commits: [0; STORE_BUFFER],
            head: 0,
            len: 0,
            last: 0,
            pending: [Pending::default(); PENDING],
            next: 0,
        };
        Self(vec![empty; cores])
    }

    /// The version that a store of this core to `line`, still pending at `now`, will write.
    pub fn pending(&self, core: usize, line: LineId, now: Ps) -> Option<u32> {
        let hit = |p: &&Pending| p.line == line && p.done > now;
        self.0[core].pending.iter().find(hit).map(|p| p.version)
    }

    /// Puts a store that completes at `done` into the buffer; returns when the core goes on.
    pub fn push(&mut self, core: usize, line: LineId, version: u32, now: Ps, done: Ps) -> Ps {
        let b = &mut self.0[core];
        while b.len > 0 && b.commits[b.head] <= now {
            b.pop();
        }
        let mut free = now;
        if b.len == STORE_BUFFER {
            free = b.commits[b.head];
            b.pop();
        }
        b.last = b.last.max(done);
        b.commits[(b.head + b.len) % STORE_BUFFER] = b.last;
        b.len += 1;
        b.pending[b.next] = Pending {
            line,
            version,
            done,
        };
        b.next = (b.next + 1) % PENDING;
        free
    }
}

impl Buffer {
    fn pop(&mut self) {
        self.head = (self.head + 1) % STORE_BUFFER;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_only_when_full() {
        let mut s = StoreBuffers::new(1);
        for i in 0..STORE_BUFFER as u64 {
            assert_eq!(s.push(0, i as u32, 1, i, 1000 + i), i);
        }
        assert_eq!(s.push(0, 99, 1, 60, 5000), 1000);
        assert_eq!(s.pending(0, 99, 70), Some(1));
        assert_eq!(s.pending(0, 99, 5000), None);
        assert_eq!(s.push(0, 100, 1, 9000, 9100), 9000);
    }
}

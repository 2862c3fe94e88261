//! Locks: who holds a queue makes others wait until it lets go.
//!
//! A queue's lock is a first-come server. Calls arrive out of time order by up to a handler's
//! length, so a request that fits before a hold that was booked already takes that gap; how long it
//! will hold is not known yet and is guessed from how long that lock was held so far.

use fairground::place::Lock;

use crate::cache::{Ps, Resource};

/// All locks of the machine.
#[derive(Debug)]
pub struct Locks {
    /// Of the queues by CPU, then of the groups' bandwidth.
    all: Vec<Resource>,
    cpus: usize,
    /// Which are held, and since when.
    held: Vec<(usize, Ps)>,
    wait: Ps,
}

impl Locks {
    /// No lock is held.
    pub fn new(cpus: usize) -> Self {
        Self {
            all: vec![Resource::default(); cpus],
            cpus,
            held: Vec::with_capacity(4),
            wait: 0,
        }
    }

    /// Takes `lock` at or after `now`; the time at which it is taken.
    #[inline]
    pub fn lock(&mut self, lock: Lock, now: Ps) -> Ps {
        let i = self.index(lock);
        if i >= self.all.len() {
            self.all.resize(i + 1, Resource::default());
        }
        let start = self.all[i].earliest(now);
        self.held.push((i, start));
        self.wait += start - now;
        start
    }

    /// Releases `lock` at `now`.
    #[inline]
    pub fn unlock(&mut self, lock: Lock, now: Ps) {
        let Some((held, start)) = self.held.pop() else {
            debug_assert!(false, "{lock:?} is not held");
            return;
        };
        debug_assert_eq!(held, self.index(lock), "released in reverse order");
        self.all[held].acquire(start, now - start);
    }

    /// The sum of the waits starts again at zero.
    pub fn clear_counters(&mut self) {
        self.wait = 0;
    }

    /// Sum of the waits, queue and bandwidth locks together.
    pub fn wait(&self) -> Ps {
        self.wait
    }

    #[inline]
    fn index(&self, lock: Lock) -> usize {
        match lock {
            Lock::Rq(cpu) => cpu.idx(),
            Lock::Bandwidth(tg) => self.cpus + tg.idx(),
        }
    }
}

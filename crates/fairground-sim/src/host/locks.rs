//! Locks: who holds a queue makes others wait until it lets go.
//!
//! A queue's lock is a first-come server. Calls arrive out of time order by up to a handler's
//! length, so a request that fits before a hold that was booked already takes that gap; how long it
//! will hold is not known yet and is guessed from how long that lock was held so far.

use fairground::place::Lock;
use rustc_hash::FxHashMap;

use crate::cache::{Ps, Resource};

/// All locks of the machine.
#[derive(Debug)]
pub struct Locks {
    rq: Vec<Resource>,
    bandwidth: FxHashMap<u32, Resource>,
    held: Vec<(Lock, Ps)>,
    wait: Ps,
}

impl Locks {
    /// No lock is held.
    pub fn new(cpus: usize) -> Self {
        Self {
            rq: vec![Resource::default(); cpus],
            bandwidth: FxHashMap::default(),
            held: Vec::with_capacity(4),
            wait: 0,
        }
    }

    /// Takes `lock` at or after `now`; the time at which it is taken.
    pub fn lock(&mut self, lock: Lock, now: Ps) -> Ps {
        let resource = self.of(lock);
        let start = resource.earliest(now);
        self.held.push((lock, start));
        self.wait += start - now;
        start
    }

    /// Releases `lock` at `now`.
    pub fn unlock(&mut self, lock: Lock, now: Ps) {
        let Some((held, start)) = self.held.pop() else {
            debug_assert!(false, "{lock:?} is not held");
            return;
        };
        debug_assert_eq!(held, lock, "locks are released in reverse order");
        self.of(lock).acquire(start, now - start);
    }

    /// The sum of the waits starts again at zero.
    pub fn clear_counters(&mut self) {
        self.wait = 0;
    }

    /// Sum of the waits, queue and bandwidth locks together.
    pub fn wait(&self) -> Ps {
        self.wait
    }

    fn of(&mut self, lock: Lock) -> &mut Resource {
        match lock {
            Lock::Rq(cpu) => &mut self.rq[cpu.idx()],
            Lock::Bandwidth(tg) => self.bandwidth.entry(tg.0).or_default(),
        }
    }
}

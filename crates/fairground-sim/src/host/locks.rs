//! Locks: who holds a queue makes others wait until it lets go.
//!
//! A queue's lock is a first-come server. Calls arrive out of time order by up to a handler's
//! length, so a request that fits before a hold that was booked already takes that gap; how long it
//! will hold is not known yet and is guessed from how long that lock was held so far.
//!
//! Who waits looks once in a round of its loop, `cpu_relax()` in between, and so sees the release
//! at its next look. Meanwhile nobody else can take the lock: who spins stands in its word or
//! queue.

use fairground::place::Lock;

use super::rounds::Rounds;
use crate::cache::{Ps, Resource};

/// All locks of the machine.
#[derive(Debug)]
pub struct Locks {
    /// Of the queues by CPU, then of the groups' bandwidth.
    all: Vec<Resource>,
    cpus: usize,
    /// Which are held, and since when nobody else can take them.
    held: Vec<(usize, Ps)>,
    rounds: Rounds,
    wait: Ps,
}

impl Locks {
    /// No lock is held.
    pub fn new(cpus: usize, rounds: Rounds) -> Self {
        Self {
            all: vec![Resource::default(); cpus],
            cpus,
            held: Vec::with_capacity(4),
            rounds,
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
        let free = self.all[i].earliest(now);
        self.held.push((i, free));
        let seen = self.rounds.seen(now, free);
        self.wait += seen - now;
        seen
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

#[cfg(test)]
mod tests {
    use fairground::value::Cpu;

    use super::*;

    #[test]
    fn a_lock_is_taken_at_a_look_and_by_nobody_else_before_it() {
        let lock = Lock::Rq(Cpu(0));
        let mut locks = Locks::new(1, Rounds(40));
        assert_eq!(locks.lock(lock, 0), 0);
        locks.unlock(lock, 100);
        // It looks at 10, 50, 90 and 130.
        assert_eq!(locks.lock(lock, 10), 130);
        locks.unlock(lock, 150);
        assert_eq!(locks.lock(lock, 110), 150);
        locks.unlock(lock, 160);
        assert_eq!(locks.wait(), 120 + 40);
    }
}

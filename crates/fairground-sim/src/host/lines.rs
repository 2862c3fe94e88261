//! Touches of lines that are no scheduler objects: one by one, or many at once.

use super::{Place, SimHost, Waited};
use crate::cache::{self, Access::Store, Cost, MissClass, Ps};
use crate::costs::KernelOp;

impl SimHost {
    /// The executing CPU touches a line that is no scheduler object, in the course of `op`.
    #[inline]
    pub fn touch_line(&mut self, op: KernelOp, line: u32, words: u8, access: cache::Access) {
        let (from, before) = (self.at, self.cache.load_misses);
        let done = match op {
            KernelOp::UserAtomic => self.touch_by_program(line, words, access),
            _ => self.cache.pass_from(self.thread, line, words, access, from),
        };
        if done == from {
            return;
        }
        self.missed_other(op, before);
        self.profile.add_time(Place::Op(op), from, done - from);
        self.at = done;
        self.stalled += done - from;
        if self.waits.is_some() {
            self.waited(from, Waited::Other(self.cache.name_of(line), op));
        }
    }

    /// Another CPU, or this one without waiting for it, touches such a line at `at`.
    pub fn touch_aside(
        &mut self,
        op: KernelOp,
        cpu: u32,
        (line, words): (u32, u8),
        access: cache::Access,
        at: Ps,
    ) -> Cost {
        let before = self.cache.load_misses;
        let cost = self.cache.touch(cpu, line, words, access, at);
        self.missed_other(op, before);
        cost
    }

    /// What has missed since there were `before` misses is that of `op`.
    #[inline]
    fn missed_other(&mut self, op: KernelOp, before: u64) {
        let missed = self.cache.load_misses - before;
        self.profile.missed_other(Place::Op(op), missed);
    }

    /// A program's own access has no other price than this. When the CPU goes on.
    fn touch_by_program(&mut self, line: u32, words: u8, access: cache::Access) -> Ps {
        let cost = self.cache.touch(self.cpu, line, words, access, self.at);
        if cost.class == MissClass::Hit || access == Store {
            return cost.done_at + self.cache.user_hit(access);
        }
        cost.done_at
    }

    /// The executing CPU reads or writes whole lines in the course of `op`. None of these waits for
    /// another: a core has all the lines of a small message on their way at once.
    pub fn copy_lines(
        &mut self,
        op: KernelOp,
        lines: impl Iterator<Item = u32>,
        access: cache::Access,
    ) {
        let (from, before) = (self.at, self.cache.load_misses);
        let (mut done, mut last) = (from, None);
        for line in lines {
            let cost = self.cache.touch(self.cpu, line, 0xff, access, from);
            if cost.done_at > done {
                (done, last) = (cost.done_at, Some(line));
            }
        }
        self.missed_other(op, before);
        self.profile.add_time(Place::Op(op), from, done - from);
        self.stalled += done - from;
        self.at = done;
        if self.waits.is_some()
            && let Some(line) = last
        {
            self.waited(from, Waited::Other(self.cache.name_of(line), op));
        }
    }
}

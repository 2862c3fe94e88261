//! Touches of lines that are no scheduler objects: one by one, or many at once.

use super::{Place, SimHost, Waited};
use crate::cache::{self, Access::Store, MissClass, Ps};
use crate::costs::KernelOp;

impl SimHost {
    /// The executing CPU touches a line that is no scheduler object, in the course of `op`.
    #[inline]
    pub fn touch_line(&mut self, op: KernelOp, line: u32, words: u8, access: cache::Access) {
        let cost = self.cache.touch(self.cpu, line, words, access, self.at);
        let mut done = cost.done_at;
        // A program's own access has no other price than this.
        if op == KernelOp::UserAtomic && (cost.class == MissClass::Hit || access == Store) {
            done += self.cache.user_hit(access);
        }
        let from = self.at;
        self.profile.add_time(Place::Op(op), from, done - from);
        self.at = done;
        self.stalled += done - from;
        if self.waits.is_some() && done > from {
            self.waited(from, Waited::Own(op));
        }
    }

    /// The executing CPU copies from or to whole lines in the course of `op`. None of these waits
    /// for another: a core has all the lines of a small message on their way at once.
    pub fn copy_lines(
        &mut self,
        op: KernelOp,
        lines: impl Iterator<Item = u32>,
        access: cache::Access,
    ) {
        self.lines_at_once(op, lines, access, |cost, _| cost.done_at);
    }

    /// The executing CPU stores to lines in the course of `op` and goes on to an atomic update,
    /// which is not begun before all stores are done. None of these waits for another.
    pub fn store_lines(&mut self, op: KernelOp, lines: impl Iterator<Item = u32>) {
        let done = |cost: cache::Cost, from| match cost.class {
            MissClass::Hit => from,
            _ => from + cost.wait + cost.latency,
        };
        self.lines_at_once(op, lines, Store, done);
    }

    fn lines_at_once(
        &mut self,
        op: KernelOp,
        lines: impl Iterator<Item = u32>,
        access: cache::Access,
        until: impl Fn(cache::Cost, Ps) -> Ps,
    ) {
        let from = self.at;
        let mut done = from;
        for line in lines {
            let cost = self.cache.touch(self.cpu, line, 0xff, access, from);
            done = done.max(until(cost, from));
        }
        self.profile.add_time(Place::Op(op), from, done - from);
        self.stalled += done - from;
        self.at = done;
        if self.waits.is_some() && done > from {
            self.waited(from, Waited::Own(op));
        }
    }
}

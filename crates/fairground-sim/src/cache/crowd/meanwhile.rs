//! What others have done to a line since the executing core touched it, or began its step.

use super::{RARELY, is_shorter};
use crate::cache::block::NO_OWNER;
use crate::cache::entry::Entry;
use crate::cache::shared::{Copy, mark};
use crate::cache::{Access, Cache, LineId, NONE, Ps};

impl Cache {
    /// `core` begins a step at `at`; steps come in the order of their beginnings.
    #[inline]
    pub fn begin_step(&mut self, core: u16, at: Ps) {
        self.began = at;
        self.ages.execute(core.into());
    }

    /// The words of a lock, or of what explicitly waits for one, were updated last on `line`.
    pub fn leave_line_to_lock(&mut self, line: LineId) {
        let link = self.lines[line as usize].link;
        if link != NONE {
            self.shared.line_mut(link).crowd.asks = 0;
        }
    }
}

impl Entry<'_> {
    /// Before `core` touches a crowded line: has another core updated it since the own touch, or
    /// since this step began? Then the line belongs to the last of the others. Returns
    /// when the touch begins: the core's second turn in a step is as far away as its first was, for
    /// those who have come meanwhile are as many as it found, and are not simulated yet.
    #[inline(never)]
    pub fn see_crowd(&mut self, core: usize, access: Access, now: Ps) -> Ps {
        self.give_up();
        let began = self.began;
        let crowd = &mut self.s.crowd;
        let again = usize::from(crowd.toucher) == core && crowd.touched >= began;
        if again && crowd.holds > 0 && now < crowd.turn + Ps::from(crowd.holds) {
            return now;
        }
        let from = if again { crowd.turn } else { began };
        let interval = crowd.interval(began);
        let behind = match again {
            true => crowd.turn.saturating_sub(crowd.touched),
            false => 0,
        };
        (crowd.toucher, crowd.touched, crowd.turn) = (core as u16, now, now);
        crowd.holds = 0;
        if interval >= RARELY {
            return now;
        }
        let dice = self.ages.throw(self.line, core, now);
        // In intervals, of 65536 parts.
        let since = (now.saturating_sub(from) << 16) / interval.max(1);
        let stays = match behind > interval {
            true => since < (1 << 15) + u64::from(dice.stays()), // a queue waits
            false => is_shorter(since, dice.stays()),
        };
        if stays {
            return now;
        }
        let (other, words) = match usize::from(crowd.last.0) == core {
            true => crowd.prev,
            false => crowd.last,
        };
        if other == NO_OWNER {
            return now;
        }
        let read =
            access == Access::Load && crowd.read_last(self.p.nr_llcs as u32, || dice.which());
        self.comes(other, words, read);
        let begins = now + behind;
        self.s.stats.wait += behind;
        if read {
            // The home answers in the order in which it was asked: behind all who wait there.
            let answered = self.s.ring.idle_at(begins);
            self.s.crowd.turn = answered;
            let (llc, version) = (self.p.cores[core].llc as usize, self.s.version);
            self.l3_fill(llc, version, answered);
        }
        begins
    }

    /// `other` has updated `words` meanwhile; and if `read`, others have read them since.
    #[inline]
    fn comes(&mut self, other: u16, words: u8, read: bool) {
        let s = &mut *self.s;
        s.version += 1;
        let version = s.version;
        mark(&mut s.words, words, version);
        (s.owner, s.exclusive, s.dirty, s.span) = (other, !read, true, 0);
        self.renew();
        let other = usize::from(other);
        let stamp = self.ages.core_fills(other);
        self.set_copy(other, Copy { version, stamp });
    }
}

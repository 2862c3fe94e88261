//! The core that is noted in a line: hits of that one need not look at the shared record, and what
//! they change is written there when another core takes its place. Loads of the others' copies.

use super::age::Place;
use super::coherence::Own;
use super::shared::{Copy, NONE};
use super::tops::{ABREAST, SHARES, UNTOUCHED};
use super::{Access, Cache, Cost, LineId, MissClass, Ps, Req};

/// Loads by others after which who loads takes the place of who is noted, and only shares the line.
const OFTENER: u64 = 4;

impl Cache {
    /// Writes back what hits have noted in the line instead of in the shared record.
    #[inline]
    pub(super) fn give_up_line(&mut self, line: LineId) {
        let Some((holder, written)) = self.tops.give_up(line) else {
            return;
        };
        let core = usize::from(holder & !SHARES);
        let l = &mut self.lines[line as usize];
        if l.link == NONE {
            let llc = self.p.cores[core].llc as usize;
            l.link = self.shared.adopt(l, written != 0, holder, llc);
        } else {
            let s = self.shared.line_mut(l.link);
            if written != 0 {
                s.written(written, l.tail);
            }
            let (version, stamp) = (s.version, l.stamp);
            self.shared.set_copy(l.link, core, Copy { version, stamp });
        }
        l.tail = 0;
    }

    /// The requester has the line current now, as of `stamp`: noted in the line, for hits, instead
    /// of in the record.
    #[inline]
    pub(super) fn keep_line(&mut self, core: usize, line: LineId, stamp: u32) {
        let l = &mut self.lines[line as usize];
        debug_assert_eq!(self.tops.holder(line), UNTOUCHED);
        let s = self.shared.line(l.link);
        (l.version, l.row) = (s.version, s.calm_row());
        if s.crowd.is_one() {
            let (version, link) = (s.version, l.link);
            return self.shared.set_copy(link, core, Copy { version, stamp });
        }
        let exclusive = s.exclusive && usize::from(s.owner) == core;
        let holder = core as u16 | if exclusive { 0 } else { SHARES };
        self.tops.note(line, holder, stamp);
        (l.stamp, l.tail) = (stamp, 0);
    }

    /// A load that its tag does not tell to be a hit: when the core goes on.
    #[inline]
    pub(super) fn load(&mut self, at: (u16, u8), line: LineId, words: u8, now: Ps) -> Ps {
        let price = Ps::from(self.p.hit_ps[Access::Load as usize]);
        let holder = self.tops.holder(line);
        if holder & !SHARES == at.0 {
            return match self.load_again(at.0, line) {
                true => now + price,
                false => self.load_rare(at, line, words, now),
            };
        }
        match self.load_copy(at.0, line, holder) {
            None => self.load_rare(at, line, words, now),
            Some(Place::Gone) => self.load_lost(at, line, words, now, Some(Place::Gone)),
            Some(place) => now + price + self.p.farther(place),
        }
    }

    /// A load by `core`, which is noted in the line. Whether it is near the top of its stack;
    /// nothing is done if not.
    #[inline]
    fn load_again(&mut self, core: u16, line: LineId) -> bool {
        let fills = self.ages.core_fills(usize::from(core));
        let Some(l) = self.lines.get_mut(line as usize) else {
            return false;
        };
        let near = fills.wrapping_sub(l.stamp) <= self.p.recent;
        if near {
            l.stamp = fills;
            let (block, lane) = (line as usize / ABREAST, line as usize % ABREAST);
            self.tops.touched_again(block, lane, fills, (1, 0));
        }
        near
    }

    /// Most loads of words that many cores read: `core` is not the `holder` noted in the line, but
    /// has had a copy that is still current, and nobody crowds the line. Where the copy is; `None`,
    /// and nothing done, if it is no such load.
    #[inline]
    fn load_copy(&mut self, core: u16, line: LineId, holder: u16) -> Option<Place> {
        let c = usize::from(core);
        let l = self.lines.get_mut(line as usize)?;
        let (copy, version) = match (l.row, l.link) {
            (NONE, NONE) => None,
            (NONE, link) => self.shared.calm_copy(link, c),
            (row, link) => {
                debug_assert_eq!(self.shared.line(link).version, l.version);
                self.shared.row_copy(row, c).map(|copy| (copy, l.version))
            }
        }?;
        if copy.version != version {
            return None;
        }
        let place = self.ages.look(c, copy.stamp, line);
        let fills = self.ages.core_fills(c);
        copy.stamp = fills;
        if place != Place::Gone {
            self.tops.count(line, 1, 0);
            if holder & SHARES != 0 {
                l.tail += 1;
                if l.tail >= OFTENER {
                    self.give_up_line(line);
                    self.keep_line(c, line, fills);
                }
            }
        }
        Some(place)
    }

    /// The version and the row of the record have changed, or whether the line is crowded.
    #[inline]
    pub(super) fn renew_line(&mut self, line: LineId) {
        let l = &mut self.lines[line as usize];
        let s = self.shared.line(l.link);
        (l.version, l.row) = (s.version, s.calm_row());
    }

    /// A load that is no [`Cache::quick`] hit: when the core goes on.
    #[inline(never)]
    pub(super) fn load_rare(&mut self, at: (u16, u8), line: LineId, words: u8, now: Ps) -> Ps {
        if self.lines[line as usize].link == NONE {
            self.slow(at, line, words, Access::Load, now).done_at
        } else if self.tops.holder(line) & !SHARES == at.0 && !self.is_crowded(line) {
            self.load_noted(at, line, words, now)
        } else {
            self.load_shared(at, line, words, now)
        }
    }

    /// A load, by the core that is noted, of a line with a record that is not near the top of its
    /// stack. What is noted is written to the record as if another core came, and noted again.
    fn load_noted(&mut self, at: (u16, u8), line: LineId, words: u8, now: Ps) -> Ps {
        let (core, l) = (usize::from(at.0), &self.lines[line as usize]);
        let place = self.ages.look(core, l.stamp, line);
        if place == Place::Gone {
            return self.load_lost(at, line, words, now, Some(place));
        }
        let written = self.tops.take_written(line);
        let fills = self.ages.core_fills(core);
        let l = &mut self.lines[line as usize];
        if written != 0 {
            self.shared.line_mut(l.link).written(written, l.tail);
        }
        (l.stamp, l.tail) = (fills, 0);
        self.tops.note(line, self.tops.holder(line), fills);
        self.tops.count(line, 1, 0);
        now + Ps::from(self.p.hit_ps[Access::Load as usize]) + self.p.farther(place)
    }

    /// A load of a line that several cores have touched, and that does not note the requester: when
    /// the core goes on.
    #[inline]
    pub(super) fn load_shared(&mut self, at: (u16, u8), line: LineId, words: u8, now: Ps) -> Ps {
        let now = match self.is_crowded(line) {
            true => self.see_crowd(usize::from(at.0), line, Access::Load, now),
            false => now,
        };
        match self.read_copy(usize::from(at.0), line) {
            Some(place) if place != Place::Gone => {
                self.tops.count(line, 1, 0);
                now + Ps::from(self.p.hit_ps[Access::Load as usize]) + self.p.farther(place)
            }
            found => self.load_lost(at, line, words, now, found),
        }
    }

    /// [`Cache::load_shared`] of a copy that is gone, or not current, or never was.
    #[inline(never)]
    fn load_lost(
        &mut self,
        at: (u16, u8),
        line: LineId,
        words: u8,
        now: Ps,
        found: Option<Place>,
    ) -> Ps {
        let r = Req {
            core: usize::from(at.0),
            thread: u32::from(at.1),
            line,
            words,
            access: Access::Load,
            now,
        };
        self.count(line, Access::Load);
        let cost = self.load_of(r, found);
        self.classes[cost.class as usize] += 1;
        cost.done_at
    }

    /// A load that has found what [`Cache::read_copy`] says: what it costs.
    #[inline]
    pub(super) fn load_of(&mut self, r: Req, found: Option<Place>) -> Cost {
        match found {
            None => self.coherent(r),
            Some(Place::Gone) => {
                self.give_up_line(r.line);
                self.coherent_from(r, Own::Miss(MissClass::Capacity))
            }
            Some(place) => {
                let mut cost = self.p.hit(r.access, r.now);
                cost.latency += self.p.farther(place);
                cost.done_at += self.p.farther(place);
                cost
            }
        }
    }

    /// Where a core finds its copy of a line that does not note it; `None` if that is not current.
    /// The core that is noted has lost nothing; but who reads oftener than that one takes its
    /// place.
    #[inline]
    pub(super) fn read_copy(&mut self, core: usize, line: LineId) -> Option<Place> {
        let link = self.lines[line as usize].link;
        let ages = &mut self.ages;
        let (place, stamp) = self.shared.refresh(link, core, |copy, version| {
            let place = (copy.version == version).then(|| ages.look(core, copy.stamp, line))?;
            copy.stamp = ages.core_fills(core);
            Some((place, copy.stamp))
        })?;
        if place != Place::Gone {
            self.has_read(core, line, stamp);
        }
        Some(place)
    }

    /// `core` has read its copy of a line that does not note it.
    #[inline]
    fn has_read(&mut self, core: usize, line: LineId, stamp: u32) {
        if self.tops.holder(line) & SHARES != 0 {
            let l = &mut self.lines[line as usize];
            l.tail += 1;
            if l.tail >= OFTENER {
                self.give_up_line(line);
                self.keep_line(core, line, stamp);
            }
        }
    }
}

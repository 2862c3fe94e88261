//! Loads of lines that several cores have touched. Most are of the core that is noted in the line,
//! or of a copy that is still current: those need not look at the shared record, and what they
//! change is written there when another core takes the noted one's place.

use super::block::SHARES;
use super::entry::Entry;
use super::kinds::Place;
use super::shared::NONE;
use super::{Access, Cache, Cost, HwThread, LineId, MissClass, Ps, Req};

/// Loads by others after which who loads takes the place of who is noted, and only shares the line.
const OFTENER: u64 = 4;

impl Cache {
    /// A load that its tag does not tell to be a hit: when the core goes on.
    #[inline]
    pub(super) fn load(&mut self, who: HwThread, line: LineId, words: u8, now: Ps) -> Ps {
        let price = Ps::from(self.p.hit_ps[Access::Load as usize]);
        let holder = self.tops.holder(line);
        if holder & !SHARES == who.core {
            return match self.load_again(who.core, line) {
                true => now + price,
                false => self.load_rare(who, line, words, now),
            };
        }
        match self.load_copy(who.core, line, holder) {
            None => self.load_rare(who, line, words, now),
            Some(Place::Gone) => self.load_gone(who, line, words, now),
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
            let mut top = self.tops.lane(line);
            top.count(1, 0);
            top.note_again(fills);
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
            (row, _) => self.shared.row_copy(row, c).map(|copy| (copy, l.version)),
        }?;
        if copy.version != version {
            return None;
        }
        let place = self.ages.look(c, copy.stamp, line);
        let fills = self.ages.core_fills(c);
        copy.stamp = fills;
        if place != Place::Gone {
            self.tops.lane(line).count(1, 0);
            if holder & SHARES != 0 {
                l.tail += 1;
                if l.tail >= OFTENER {
                    let mut entry = self.entry(line);
                    entry.give_up();
                    entry.keep(c, fills);
                }
            }
        }
        Some(place)
    }

    /// A load that is no hit of the usual kinds: when the core goes on.
    #[inline(never)]
    pub(super) fn load_rare(&mut self, who: HwThread, line: LineId, words: u8, now: Ps) -> Ps {
        let r = Req::new(who, line, words, Access::Load, now);
        if self.lines[line as usize].link == NONE {
            return self.slow(r).done_at;
        }
        let mut entry = self.entry(line);
        let cost = entry.load_here(r);
        self.classes[cost.class as usize] += 1;
        cost.done_at
    }

    /// A load of a copy that has left the core's caches: when the core goes on.
    #[inline(never)]
    fn load_gone(&mut self, who: HwThread, line: LineId, words: u8, now: Ps) -> Ps {
        let r = Req::new(who, line, words, Access::Load, now);
        let mut entry = self.entry(line);
        let cost = entry.load_gone(r);
        self.classes[cost.class as usize] += 1;
        cost.done_at
    }
}

impl Entry<'_> {
    /// A load.
    #[inline(never)]
    pub fn load(&mut self, r: Req) -> Cost {
        self.load_here(r)
    }

    /// [`Entry::load`], for whom it is worth the code ([`Cache::load_rare`]).
    #[inline(always)]
    fn load_here(&mut self, mut r: Req) -> Cost {
        let noted = usize::from(self.top.holder() & !SHARES) == r.core;
        if self.s.crowd.is_one() {
            r.now = self.see_crowd(r.core, r.access, r.now);
        } else if noted {
            return self.load_noted(r);
        }
        let copy = self.copy(r.core);
        if copy.version != self.s.version {
            self.give_up();
            let class = self.not_current(r, copy);
            return self.load_miss(r, class);
        }
        let place = self.ages.look(r.core, copy.stamp, r.line);
        let stamp = self.ages.core_fills(r.core);
        self.stamp_copy(r.core, stamp);
        if place == Place::Gone {
            return self.load_gone(r);
        }
        self.has_read(r.core, stamp);
        self.load_hit(r, place)
    }

    /// A load of a copy that is current, but has left the core's caches.
    #[inline(never)]
    fn load_gone(&mut self, r: Req) -> Cost {
        self.give_up();
        self.load_miss(r, MissClass::Capacity)
    }

    #[inline(always)]
    fn load_miss(&mut self, r: Req, class: MissClass) -> Cost {
        self.s.stats.reads = self.s.stats.reads.wrapping_add(1);
        self.fetch(r, class)
    }

    /// A load, by the core that is noted, that is not near the top of its stack. What is noted is
    /// written to the record as if another core came, and noted again.
    fn load_noted(&mut self, r: Req) -> Cost {
        let place = self.ages.look(r.core, self.l.stamp, r.line);
        if place == Place::Gone {
            return self.load_gone(r);
        }
        let written = self.top.take_written();
        let fills = self.ages.core_fills(r.core);
        if written != 0 {
            self.s.written(written, self.l.tail);
        }
        (self.l.stamp, self.l.tail) = (fills, 0);
        self.top.note_again(fills);
        self.load_hit(r, place)
    }

    /// `core` has read its copy of a line that does not note it. The core that is noted has lost
    /// nothing; but who reads oftener than that one takes its place.
    #[inline]
    fn has_read(&mut self, core: usize, stamp: u32) {
        if self.top.holder() & SHARES != 0 {
            self.l.tail += 1;
            if self.l.tail >= OFTENER {
                self.give_up();
                self.keep(core, stamp);
            }
        }
    }
}

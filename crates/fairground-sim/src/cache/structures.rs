//! Whole structures: one question tells that a touch of some fields of one hits nothing but lines
//! that the core has.
//!
//! Nearly every touch repeats an earlier one: the same fields of the same structure, by the same
//! core, with nothing in between that moved a line. A structure remembers of which touches that is
//! known, for one core and epoch; the next such touch is a bit and a counter, however many lines it
//! goes to. What could make one of them anything but a hit changes the tag of one of its lines
//! (`tops.rs`), and with it the structure forgets.

use std::rc::Rc;

use super::block::{ABREAST, SHARES, StructureId};
use super::run::Part;
use super::{Access, Cache, HwThread, LineId, Ps};

/// Structures whose fields are at the same places, by number.
pub type Family = u8;
/// One way to touch a structure of a family; dense.
pub type Pattern = u32;

/// Patterns of a family that structures remember: those that come first. The others are looked at
/// line by line.
pub const REMEMBERED: usize = 47;

/// One host line: with hundreds of CPUs what decides is how many of them a tick goes to.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Structure {
    /// Patterns of which every line is a hit now, a bit each.
    hits: u64,
    /// The core and epoch that `hits` is about.
    tag: u32,
    first: LineId,
    family: Family,
    /// Touches by pattern that its lines' counters do not have yet.
    touches: [u8; REMEMBERED],
}

const _: () = assert!(size_of::<Structure>() == 64 && REMEMBERED <= 64);

impl Structure {
    pub(super) fn new(first: LineId, family: Family) -> Self {
        Self {
            // No core has this number.
            tag: u32::MAX,
            first,
            hits: 0,
            family,
            touches: [0; REMEMBERED],
        }
    }

    /// The tag of one of its lines was `old` and is another now.
    #[inline]
    pub fn line_changed(&mut self, old: u32) {
        // What `hits` is about are lines of its own tag, or, if only loaded, of one that shares.
        if (old ^ self.tag) & !u32::from(SHARES) == 0 {
            self.hits = 0;
        }
    }

    pub fn family(&self) -> usize {
        self.family.into()
    }

    pub fn clear_counters(&mut self) {
        self.touches = [0; REMEMBERED];
    }

    /// Reads and writes of `line`, by touches of `patterns`, that its own counters do not have.
    pub fn counts(&self, patterns: &[Rc<[Part]>], line: LineId) -> (u32, u32) {
        let (block, lane) = (line as usize / ABREAST, line as usize % ABREAST);
        let mut sum = (0u32, 0u32);
        let touched = patterns.iter().zip(self.touches).filter(|(_, n)| *n != 0);
        for (parts, n) in touched {
            for part in parts.iter().filter(|p| p.block(self.first) == block) {
                let (loads, stores) = part.counts(lane);
                sum.0 = sum.0.wrapping_add(u32::from(n) * loads);
                sum.1 = sum.1.wrapping_add(u32::from(n) * stores);
            }
        }
        sum
    }
}

/// A pattern that goes to one line: which of the structure's, and which words; no words for any
/// other pattern.
#[derive(Clone, Copy, Default)]
pub(super) struct OneLine {
    line: u16,
    words: u8,
    stores: bool,
}

impl OneLine {
    fn of(parts: &[Part]) -> Self {
        let [part] = parts else {
            return Self::default();
        };
        let stores = part.stores();
        part.only_line(0)
            .map_or(Self::default(), |(line, words)| Self {
                line: line as u16,
                words,
                stores,
            })
    }
}

impl Cache {
    /// A way to touch structures of `family`.
    pub fn pattern(&mut self, family: Family, parts: Vec<Part>) -> Pattern {
        let family = usize::from(family);
        if self.patterns.len() <= family {
            self.patterns.resize_with(family + 1, Vec::new);
            self.ones.resize_with(family + 1, Vec::new);
        }
        self.ones[family].push(OneLine::of(&parts));
        self.patterns[family].push(parts.into());
        (self.patterns[family].len() - 1) as Pattern
    }

    /// The executing core touches a structure by `pattern`; true if that is known to hit. If not,
    /// nothing is done, and it may still be one: [`Cache::pass_structure`] knows.
    #[inline(always)]
    pub fn hits_known(&mut self, id: StructureId, pattern: Pattern) -> bool {
        let tag = self.ages.tag_now();
        let Some(structure) = self.tops.structures.get_mut(id as usize) else {
            return false;
        };
        let Some(touches) = structure.touches.get_mut(pattern as usize) else {
            return false;
        };
        let hits = structure.tag == tag && structure.hits >> pattern & 1 == 1;
        if hits {
            *touches = touches.wrapping_add(1);
            if *touches == 0 {
                self.count_touches(id, pattern, 1 << u8::BITS);
            }
        }
        hits
    }

    /// `n` touches by `pattern`, in its lines' counters.
    #[cold]
    fn count_touches(&mut self, id: StructureId, pattern: Pattern, n: u32) {
        let (first, parts) = self.parts_of(id, pattern);
        for part in &*parts {
            for (line, _) in part.lines(first) {
                let (loads, stores) = part.counts(line as usize % ABREAST);
                self.tops.count(line, n * loads, n * stores);
            }
        }
    }

    /// A core's thread touches a structure by `pattern`; says when the core goes on.
    pub fn pass_structure(
        &mut self,
        who: HwThread,
        id: StructureId,
        pattern: Pattern,
        now: Ps,
    ) -> Ps {
        if let Some((line, one)) = self.only_line(id, pattern).filter(|(_, one)| !one.stores) {
            return self.pass_load(who, (id, pattern), line, one.words, now);
        }
        let (first, parts) = self.parts_of(id, pattern);
        let (mut hits, mut done) = (true, now);
        self.begin_touch(now);
        for part in &*parts {
            let (hit, then) = self.pass_part(who, (id, first), part, now);
            hits &= hit;
            done = done.max(then);
        }
        // One part that was no hit may be one from now on.
        if hits || matches!(&*parts, [part] if self.all_hit(who.core, first, part)) {
            let price = parts.iter().map(Part::price).max();
            self.remember(who.core, id, pattern, price.unwrap_or(0));
        }
        done
    }

    /// [`Cache::pass_structure`] by a pattern that loads `words` of one line: most touches that are
    /// not known to hit.
    #[inline]
    fn pass_load(
        &mut self,
        who: HwThread,
        (id, pattern): (StructureId, Pattern),
        line: LineId,
        words: u8,
        now: Ps,
    ) -> Ps {
        let price = Ps::from(self.p.hit_ps[Access::Load as usize]);
        let now = if self.has_now(who.core, line) {
            self.tops.count(line, 1, 0);
            now + price
        } else {
            self.load_in_turn(id, now, |cache, now| cache.load(who, line, words, now))
        };
        if self.has_now(who.core, line) {
            self.remember(who.core, id, pattern, price);
        }
        now
    }

    /// Whether a load of `line` is a hit for `core` by its tag alone.
    #[inline(always)]
    fn has_now(&self, core: u16, line: LineId) -> bool {
        let of_core = |tag| (self.tops.tag(line) ^ tag) & !u32::from(SHARES) == 0;
        self.ages.tag(core).is_some_and(of_core)
    }

    /// All lines that a touch by `pattern` goes to are hits for `core`. Hits that have a price are
    /// not remembered.
    #[inline]
    fn remember(&mut self, core: u16, id: StructureId, pattern: Pattern, price: Ps) {
        let (tag, structure) = (
            self.ages.tag(core),
            self.tops.structures.get_mut(id as usize),
        );
        let Some((tag, structure)) = tag.zip(structure) else {
            return;
        };
        if pattern as usize >= REMEMBERED || price != 0 {
            return;
        }
        if structure.tag != tag {
            (structure.tag, structure.hits) = (tag, 0);
        }
        structure.hits |= 1 << pattern;
    }

    /// [`Cache::pass_structure`] with an atomic update of each line.
    pub fn pass_atomic(
        &mut self,
        who: HwThread,
        id: StructureId,
        pattern: Pattern,
        how: Access,
        mut now: Ps,
    ) -> Ps {
        if let Some((line, one)) = self.only_line(id, pattern) {
            return self.pass_from(who, line, one.words, how, now);
        }
        let (first, parts) = self.parts_of(id, pattern);
        for (line, words) in parts.iter().flat_map(|part| part.lines(first)) {
            now = self.pass_from(who, line, words, how, now);
        }
        now
    }

    /// [`Cache::pass_atomic`] of the word of a lock, which is then left to the lock:
    /// [`Cache::leave_line_to_lock`].
    pub fn pass_lock(&mut self, who: HwThread, id: StructureId, pattern: Pattern, now: Ps) -> Ps {
        let Some((line, one)) = self.only_line(id, pattern) else {
            debug_assert!(false, "a lock is one word");
            return now;
        };
        let now = self.pass_from(who, line, one.words, Access::Rmw, now);
        self.leave_line_to_lock(line);
        now
    }

    /// The line that a touch by `pattern` goes to, if it is only one.
    #[inline]
    fn only_line(&self, id: StructureId, pattern: Pattern) -> Option<(LineId, OneLine)> {
        let structure = self.tops.structures.get(id as usize)?;
        let one = *self.ones.get(structure.family())?.get(pattern as usize)?;
        let line = structure.first + LineId::from(one.line);
        (one.words != 0).then_some((line, one))
    }

    /// The first line of a structure, and what a touch by `pattern` goes to.
    #[inline(always)]
    fn parts_of(&self, id: StructureId, pattern: Pattern) -> (LineId, Rc<[Part]>) {
        let structure = &self.tops.structures[id as usize];
        let parts = &self.patterns[structure.family()][pattern as usize];
        (structure.first, Rc::clone(parts))
    }

    /// The first line of a structure.
    pub fn first_line(&self, id: StructureId) -> LineId {
        self.tops.structures[id as usize].first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Options;
    use crate::machine_file::Machine;

    fn thread(core: u16) -> HwThread {
        HwThread { core, thread: 0 }
    }

    /// A structure of two lines, of which a touch loads the second.
    fn one_load() -> (Cache, StructureId, Pattern) {
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let options = Options {
            hits: false,
            ..Options::default()
        };
        let mut cache = Cache::with_options(&machine, 1, options);
        let id = cache.alloc_structure(3, 2, 0);
        let parts = cache.parts([(1, 0b100, 0)].into_iter(), false);
        let pattern = cache.pattern(3, parts);
        (cache, id, pattern)
    }

    #[test]
    fn a_load_of_one_line_is_known_until_another_core_writes() {
        let (mut cache, id, pattern) = one_load();
        let line = cache.first_line(id) + 1;
        cache.begin_step(5, 0);
        assert!(!cache.hits_known(id, pattern));
        let at = cache.pass_structure(thread(5), id, pattern, 1000);
        assert!(at > 1000, "it comes from memory");
        assert!(cache.hits_known(id, pattern));
        assert_eq!(cache.pass_structure(thread(5), id, pattern, at), at);
        let at = cache.pass_from(thread(9), line, 0b100, Access::Rmw, at);
        assert!(!cache.hits_known(id, pattern));
        let done = cache.pass_structure(thread(5), id, pattern, at + 10_000);
        assert!(done > at + 10_000, "it comes from the other core");
        assert!(cache.hits_known(id, pattern));
        let stats = cache.line_stats(line);
        assert_eq!((stats.reads, stats.rmws), (5, 1));
    }

    #[test]
    fn one_line_of_many_readers_is_a_hit_for_each() {
        let (mut cache, id, pattern) = one_load();
        let line = cache.first_line(id) + 1;
        let mut at = cache.pass_from(thread(0), line, 0b100, Access::Store, 1000);
        for _ in 0..3 {
            for core in 0..8 {
                at = cache.pass_structure(thread(core), id, pattern, at + 1_000_000);
            }
        }
        for core in (0..8).rev() {
            let done = cache.pass_structure(thread(core), id, pattern, at);
            assert_eq!(done, at, "core {core}");
        }
        assert_eq!(cache.line_stats(line).reads, 32);
    }
}

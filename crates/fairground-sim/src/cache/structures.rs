//! Whole structures: one question tells that a touch of some fields of one hits nothing but lines
//! that the core has.
//!
//! Nearly every touch repeats an earlier one: the same fields of the same structure, by the same
//! core, with nothing in between that moved a line. A structure remembers of which touches that is
//! known, for one core and epoch; the next such touch is a bit and a counter, however many lines it
//! goes to. What could make one of them anything but a hit changes the tag of one of its lines
//! (`tops.rs`), and with it the structure forgets.

use std::rc::Rc;

use super::run::Part;
use super::tops::{ABREAST, SHARES};
use super::{Access, Cache, LineId, Ps};

/// Structures whose fields are at the same places, by number.
pub type Family = u8;
/// A structure; dense, from [`Cache::alloc_structure`]. The first is nobody's.
pub type StructureId = u32;
/// One way to touch a structure of a family; dense.
pub type Pattern = u32;

/// Patterns of a family that structures remember: those that come first. The others are looked at
/// line by line.
const REMEMBERED: usize = 47;

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

impl Cache {
    /// A way to touch structures of `family`.
    pub fn pattern(&mut self, family: Family, parts: Vec<Part>) -> Pattern {
        let family = usize::from(family);
        if self.patterns.len() <= family {
            self.patterns.resize_with(family + 1, Vec::new);
        }
        self.patterns[family].push(parts.into());
        (self.patterns[family].len() - 1) as Pattern
    }

    /// `core` touches a structure by `pattern`; true if that is known to hit. If not, nothing
    /// is done, and it may still be one: [`Cache::pass_structure`] knows.
    #[inline(always)]
    pub fn hits_known(&mut self, core: u16, id: StructureId, pattern: Pattern) -> bool {
        let Some(structure) = self.tops.structures.get_mut(id as usize) else {
            return false;
        };
        let Some(touches) = structure.touches.get_mut(pattern as usize) else {
            return false;
        };
        let hits = self.ages.tag(core) == Some(structure.tag) && structure.hits >> pattern & 1 == 1;
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

    /// A core's thread touches a structure by `pattern`, line after line; says when the core
    /// goes on.
    pub fn pass_structure(
        &mut self,
        at: (u16, u8),
        id: StructureId,
        pattern: Pattern,
        mut now: Ps,
    ) -> Ps {
        let (first, parts) = self.parts_of(id, pattern);
        let mut hits = true;
        for part in &*parts {
            let hit = self.pass_part(at, first, part, &mut now);
            hits &= hit;
        }
        // One part that was no hit may be one from now on.
        if hits || matches!(&*parts, [part] if self.all_hit(at.0, first, part)) {
            self.remember(at.0, id, pattern, &parts);
        }
        now
    }

    /// All lines that a touch by `pattern`, of `parts`, goes to are hits for `core`. Hits that have
    /// a price are not remembered.
    #[inline]
    fn remember(&mut self, core: u16, id: StructureId, pattern: Pattern, parts: &[Part]) {
        let (tag, structure) = (
            self.ages.tag(core),
            self.tops.structures.get_mut(id as usize),
        );
        let Some((tag, structure)) = tag.zip(structure) else {
            return;
        };
        if pattern as usize >= REMEMBERED || parts.iter().any(|part| part.price() != 0) {
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
        at: (u16, u8),
        id: StructureId,
        pattern: Pattern,
        how: Access,
        mut now: Ps,
    ) -> Ps {
        if let Some((line, words)) = self.only_line(id, pattern) {
            return self.pass_from(at, line, words, how, now);
        }
        let (first, parts) = self.parts_of(id, pattern);
        for (line, words) in parts.iter().flat_map(|part| part.lines(first)) {
            now = self.pass_from(at, line, words, how, now);
        }
        now
    }

    /// [`Cache::pass_atomic`] of the word of a lock, which is then left to the lock:
    /// [`Cache::leave_line_to_lock`].
    pub fn pass_lock(&mut self, at: (u16, u8), id: StructureId, pattern: Pattern, now: Ps) -> Ps {
        let Some((line, words)) = self.only_line(id, pattern) else {
            debug_assert!(false, "a lock is one word");
            return now;
        };
        let now = self.pass_from(at, line, words, Access::Rmw, now);
        self.leave_line_to_lock(line);
        now
    }

    /// The line that a touch by `pattern` goes to, if it is only one, and its words.
    #[inline]
    fn only_line(&self, id: StructureId, pattern: Pattern) -> Option<(LineId, u8)> {
        let structure = self.tops.structures.get(id as usize)?;
        match &**self.patterns[structure.family()].get(pattern as usize)? {
            [part] => part.only_line(structure.first),
            _ => None,
        }
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

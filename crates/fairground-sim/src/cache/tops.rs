//! What hits need to know of lines, eight lines abreast.
//!
//! Nearly all touches of a scheduler are of a few fields of a structure of the own CPU, and nearly
//! all of them are hits. A structure's lines lie beside each other here, so that one comparison
//! tells for up to eight of them that the core still has them, and one addition counts them.

use super::LineId;
use super::block::{ABREAST, EMPTY, StructureId, Top, UNTOUCHED, place};
use super::structures::{Family, Structure};

/// Fills of an epoch, log2, where lines count as near the top of the stack for `recent` fills. An
/// epoch is at most half of that: a line in steady use is looked at again before it seems to have
/// aged.
pub(super) fn epoch_shift(recent: u32) -> u32 {
    (recent / 2).max(1).ilog2()
}

/// The tag of a line that `holder` touched at `fills` of its counter.
#[inline(always)]
pub(super) fn tag(holder: u16, fills: u32, epoch_shift: u32) -> u32 {
    fills >> epoch_shift << 16 | u32::from(holder)
}

/// All lines' tops, and the structures that they make up.
pub(super) struct Tops {
    blocks: Vec<Top>,
    pub structures: Vec<Structure>,
    /// Fills of an epoch, log2.
    epoch_shift: u32,
}

impl Tops {
    /// For lines that count as near the top of the stack for `recent` fills.
    pub fn new(recent: u32) -> Self {
        Self {
            blocks: Vec::new(),
            structures: vec![Structure::new(0, 0)],
            epoch_shift: epoch_shift(recent),
        }
    }

    pub fn resize(&mut self, lines: usize) {
        self.blocks.resize(lines.div_ceil(ABREAST), EMPTY);
    }

    /// The blocks from the one that begins with `first` on are a structure of `family`.
    pub fn add_structure(&mut self, first: LineId, family: Family) -> StructureId {
        let id = self.structures.len() as StructureId;
        self.structures.push(Structure::new(first, family));
        for top in &mut self.blocks[place(first).0..] {
            top.structure = id;
        }
        id
    }

    /// The structure that a line belongs to.
    pub fn structure(&self, line: LineId) -> &Structure {
        &self.structures[self.blocks[place(line).0].structure as usize]
    }

    #[inline(always)]
    pub fn block(&self, block: usize) -> Option<&Top> {
        self.blocks.get(block)
    }

    #[inline(always)]
    pub fn block_mut(&mut self, block: usize) -> Option<&mut Top> {
        self.blocks.get_mut(block)
    }

    #[inline]
    pub fn tag(&self, line: LineId) -> u32 {
        let (block, lane) = place(line);
        self.blocks[block].tags[lane]
    }

    #[inline]
    pub fn holder(&self, line: LineId) -> u16 {
        self.tag(line) as u16
    }

    /// The top of one line.
    #[inline(always)]
    pub fn lane(&mut self, line: LineId) -> Lane<'_> {
        let (block, lane) = place(line);
        Lane {
            top: &mut self.blocks[block],
            lane,
            structures: &mut self.structures,
            epoch_shift: self.epoch_shift,
        }
    }

    #[inline]
    pub fn count(&mut self, line: LineId, reads: u32, writes: u32) {
        self.lane(line).count(reads, writes);
    }

    /// Reads and writes of a line, without those that its structure remembers.
    pub fn counts(&self, line: LineId) -> (u32, u32) {
        let (block, lane) = place(line);
        let top = &self.blocks[block];
        (top.reads[lane], top.writes[lane])
    }

    pub fn clear_counters(&mut self) {
        for top in &mut self.blocks {
            (top.reads, top.writes) = ([0; ABREAST], [0; ABREAST]);
        }
        self.structures
            .iter_mut()
            .for_each(Structure::clear_counters);
    }

    pub fn host_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Top>()
            + self.structures.capacity() * size_of::<Structure>()
    }
}

/// The top of one line.
pub(super) struct Lane<'a> {
    top: &'a mut Top,
    lane: usize,
    structures: &'a mut [Structure],
    epoch_shift: u32,
}

impl Lane<'_> {
    #[inline(always)]
    pub fn holder(&self) -> u16 {
        self.top.tags[self.lane] as u16
    }

    /// Words that the holder has written.
    #[inline(always)]
    pub fn write(&mut self, words: u8) {
        self.top.written |= u64::from(words) << (self.lane * 8);
    }

    #[inline(always)]
    pub fn count(&mut self, reads: u32, writes: u32) {
        let (r, w) = (
            &mut self.top.reads[self.lane],
            &mut self.top.writes[self.lane],
        );
        (*r, *w) = (r.wrapping_add(reads), w.wrapping_add(writes));
    }

    /// The holder is `holder` now, who touches the line at `fills`.
    #[inline(always)]
    pub fn note(&mut self, holder: u16, fills: u32) {
        self.set(tag(holder, fills, self.epoch_shift));
    }

    /// The holder touches the line again, at `fills`.
    #[inline(always)]
    pub fn note_again(&mut self, fills: u32) {
        self.note(self.holder(), fills);
    }

    /// No core holds the line any more; returns which one did, and the words that it wrote.
    #[inline(always)]
    pub fn give_up(&mut self) -> Option<(u16, u8)> {
        let old = self.holder();
        if old == UNTOUCHED {
            return None;
        }
        self.set(UNTOUCHED.into());
        Some((old, self.take_written()))
    }

    /// Which words the holder wrote; none of them is from now on.
    #[inline(always)]
    pub fn take_written(&mut self) -> u8 {
        let at = self.lane * 8;
        let written = (self.top.written >> at) as u8;
        self.top.written &= !(0xff << at);
        written
    }

    /// The line has another tag, so its structure may know less.
    #[inline(always)]
    fn set(&mut self, new: u32) {
        let old = std::mem::replace(&mut self.top.tags[self.lane], new);
        if old != new
            && self.top.structure != 0
            && let Some(structure) = self.structures.get_mut(self.top.structure as usize)
        {
            structure.line_changed(old);
        }
    }
}

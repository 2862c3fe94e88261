//! What hits need to know of lines, eight lines abreast.
//!
//! Nearly all touches of a scheduler are of a few fields of a structure of the own CPU, and nearly
//! all of them are hits. A structure's lines lie beside each other here, so that one comparison
//! tells for up to eight of them that the core still has them, and one addition counts them.

use super::LineId;
use super::structures::{Family, Structure, StructureId};

/// Lines in one block.
pub const ABREAST: usize = 8;

/// Nobody is noted as the holder.
pub(super) const UNTOUCHED: u16 = u16::MAX;
/// Added to a holder that has the line current, but not for itself.
pub(super) const SHARES: u16 = 1 << 15;

/// Two host lines: the first decides, the second counts.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Top {
    /// Lower half: the core that alone has touched the line. Of a line with a shared record: the
    /// core that has it exclusively and current, or, with `SHARES` added, one of those that have it
    /// current; or `UNTOUCHED`. Upper half: in which epoch of its fill counter the core touched it.
    pub tags: [u32; ABREAST],
    /// Words written, a byte each line: ever; of a line with a record, since its holder has it
    /// and not yet in the record.
    pub written: u64,
    /// The structure that the lines make up; 0 of lines that are no structure's.
    structure: StructureId,
    pub reads: [u32; ABREAST],
    pub writes: [u32; ABREAST],
}

const EMPTY: Top = Top {
    tags: [UNTOUCHED as u32; ABREAST],
    written: 0,
    structure: 0,
    reads: [0; ABREAST],
    writes: [0; ABREAST],
};

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

#[inline]
fn place(line: LineId) -> (usize, usize) {
    (line as usize / ABREAST, line as usize % ABREAST)
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

    /// The tag of a line of `structure` was `old`.
    #[inline]
    fn changed(&mut self, structure: StructureId, old: u32) {
        if structure != 0
            && let Some(structure) = self.structures.get_mut(structure as usize)
        {
            structure.line_changed(old);
        }
    }

    #[inline(always)]
    pub fn block(&self, block: usize) -> Option<&Top> {
        self.blocks.get(block)
    }

    #[inline(always)]
    pub fn block_mut(&mut self, block: usize) -> Option<&mut Top> {
        self.blocks.get_mut(block)
    }

    /// The holder in `lane` of `block` touches the line at `fills`, as the counters say.
    #[inline(always)]
    pub fn touched_again(&mut self, block: usize, lane: usize, fills: u32, counts: (u32, u32)) {
        let lane = lane % ABREAST;
        let Some(top) = self.blocks.get_mut(block) else {
            return;
        };
        top.reads[lane] = top.reads[lane].wrapping_add(counts.0);
        top.writes[lane] = top.writes[lane].wrapping_add(counts.1);
        let old = top.tags[lane];
        let new = tag(old as u16, fills, self.epoch_shift);
        if old != new {
            top.tags[lane] = new;
            let structure = top.structure;
            self.changed(structure, old);
        }
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

    /// Notes that `holder` touched the line at `fills`.
    #[inline]
    pub fn note(&mut self, line: LineId, holder: u16, fills: u32) {
        let (block, lane) = place(line);
        let tag = tag(holder, fills, self.epoch_shift);
        let top = &mut self.blocks[block];
        let old = std::mem::replace(&mut top.tags[lane], tag);
        if old != tag {
            let structure = top.structure;
            self.changed(structure, old);
        }
    }

    /// Nobody holds the line any more; says who did, and which words he wrote.
    #[inline]
    pub fn give_up(&mut self, line: LineId) -> Option<(u16, u8)> {
        let (block, lane) = place(line);
        let top = &mut self.blocks[block];
        let old = top.tags[lane];
        if old as u16 == UNTOUCHED {
            return None;
        }
        top.tags[lane] = UNTOUCHED.into();
        let written = (top.written >> (lane * 8)) as u8;
        top.written &= !(0xff << (lane * 8));
        let structure = top.structure;
        self.changed(structure, old);
        Some((old as u16, written))
    }

    /// Which words the holder wrote; none of them is from now on.
    #[inline]
    pub fn take_written(&mut self, line: LineId) -> u8 {
        let (block, lane) = place(line);
        let top = &mut self.blocks[block];
        let written = (top.written >> (lane * 8)) as u8;
        top.written &= !(0xff << (lane * 8));
        written
    }

    #[inline]
    pub fn write(&mut self, line: LineId, words: u8) {
        let (block, lane) = place(line);
        self.blocks[block].written |= u64::from(words) << (lane * 8);
    }

    #[inline]
    pub fn count(&mut self, line: LineId, reads: u32, writes: u32) {
        let (block, lane) = place(line);
        let top = &mut self.blocks[block];
        top.reads[lane] = top.reads[lane].wrapping_add(reads);
        top.writes[lane] = top.writes[lane].wrapping_add(writes);
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

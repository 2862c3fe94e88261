//! A block of lines: what hits need to know of eight lines that lie side by side.

use super::LineId;

/// A structure; dense, from [`Cache::alloc_structure`](super::Cache::alloc_structure). The first
/// is nobody's.
pub type StructureId = u32;

/// Lines in one block.
pub const ABREAST: usize = 8;

/// Nobody is noted as the holder.
pub(super) const UNTOUCHED: u16 = u16::MAX;
/// Nobody owns the line.
pub(super) const NO_OWNER: u16 = u16::MAX;
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
    pub structure: StructureId,
    pub reads: [u32; ABREAST],
    pub writes: [u32; ABREAST],
}

pub(super) const EMPTY: Top = Top {
    tags: [UNTOUCHED as u32; ABREAST],
    written: 0,
    structure: 0,
    reads: [0; ABREAST],
    writes: [0; ABREAST],
};

/// The block of a line, and where in it the line is.
#[inline(always)]
pub(super) fn place(line: LineId) -> (usize, usize) {
    (line as usize / ABREAST, line as usize % ABREAST)
}

//! On which cache line each field of each structure is.
//!
//! A layout is data: for each field its byte offset and size in one build of one kernel. Two
//! fields on one line are one line, so false sharing and capacity misses follow from this table.

use super::{Fields, Kind};

/// Where the fields of one structure are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StructLayout {
    /// Size of one instance in bytes.
    pub size: u32,
    /// For each field, by bit index: offset of its first byte, and its length in bytes.
    pub fields: &'static [(u32, u32)],
}

/// One complete table: a row for each [`Kind`], in the order of [`Kind::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Name as in `--set layout=NAME`.
    pub name: &'static str,
    /// One row for each kind.
    pub structs: [StructLayout; 11],
}

impl Layout {
    /// The row of `kind`.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> &StructLayout {
        &self.structs[kind as usize]
    }

    /// Number of lines that one instance of `kind` takes with lines of `line_bytes`.
    #[must_use]
    pub const fn lines(&self, kind: Kind, line_bytes: u32) -> u32 {
        self.of(kind).size.div_ceil(line_bytes)
    }

    /// The fields of `kind` that lie, wholly or in part, on line `line` of an instance.
    #[must_use]
    pub fn fields_on_line(&self, kind: Kind, line: u32, line_bytes: u32) -> Fields {
        let (from, to) = (line * line_bytes, (line + 1) * line_bytes);
        let mut set = 0;
        for (bit, (offset, len)) in self.of(kind).fields.iter().enumerate() {
            if *offset < to && offset + len > from {
                set |= 1 << bit;
            }
        }
        Fields(set)
    }
}

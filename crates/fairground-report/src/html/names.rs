//! The columns that say of which group and of which side a row is.

use super::table::{Cell, Column};
use crate::result::Variant;

/// Columns of the names of a group and of a side.
pub(super) fn name_heads(sides: usize, first: &str) -> Vec<Column> {
    let mut columns = vec![Column::left(first)];
    if sides > 1 {
        columns.push(Column::left(""));
    }
    columns
}

/// The cells below [`name_heads`]; a group is named on its first row.
pub(super) fn names(path: &str, side: usize, variant: &Variant, sides: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::text(if side == 0 { path } else { "" }).class("name")];
    if sides > 1 {
        cells.push(Cell::text(&variant.name).class(&variant.name));
    }
    cells
}

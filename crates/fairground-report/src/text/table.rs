//! Columns, and the colours of verdicts.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// Side of a column that its cells keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table without lines, two spaces between columns, no space at line ends.
pub fn render(header: &[&str], rows: &[Vec<String>], align: &[Align]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row.clone());
    }
    for (index, &side) in align.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match side {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
    }
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// The words that have a colour of their own wherever they stand in a table.
pub const VERDICTS: [&str; 4] = ["better", "worse", "noise", "same"];

/// A verdict with the escape codes of its colour. Codes have no width: after layout.
pub fn in_colour(word: &str) -> String {
    let colour = match word {
        "better" => "32",
        "worse" => "31",
        // Nothing that asks for attention.
        _ => "2",
    };
    format!("\x1b[{colour}m{word}\x1b[0m")
}

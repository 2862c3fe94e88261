//! The columns that say of which group and of which side a row is.

use super::table::{Cell, Column, Row};
use crate::result::Variant;

/// Columns of the names of a group and of a side.
pub(super) fn name_heads(sides: usize, first: &str) -> Vec<Column> {
    let mut columns = vec![Column::left(first)];
    if sides > 1 {
        columns.push(Column::left(""));
    }
    columns
}

/// A row below [`name_heads`] for each variant that has `cells`. The first of them names the group:
/// base may have nothing of it.
pub(super) fn rows_of(
    path: &str,
    variants: &[Variant],
    cells: impl Fn(&Variant) -> Option<Vec<Cell>>,
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for variant in variants {
        let Some(of_variant) = cells(variant) else {
            continue;
        };
        let name = if rows.is_empty() { path } else { "" };
        let mut row = vec![Cell::text(name).class("name")];
        if variants.len() > 1 {
            row.push(Cell::text(&variant.name).class(&variant.name));
        }
        row.extend(of_variant);
        rows.push(Row {
            cells: row,
            joined: true,
        });
    }
    if let Some(last) = rows.last_mut() {
        last.joined = false;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_on_the_first_row_that_there_is() {
        let variants = ["base", "patch"].map(|name| Variant {
            name: name.into(),
            ..Variant::default()
        });
        let told = |has: &[&str]| {
            let some = |v: &Variant| has.contains(&v.name.as_str()).then(Vec::new);
            let rows = rows_of("/web", &variants, some);
            let told = |row: &Row| (row.cells[0].text.clone(), row.joined);
            rows.iter().map(told).collect::<Vec<_>>()
        };
        let web = |joined| ("/web".to_string(), joined);
        assert_eq!(
            told(&["base", "patch"]),
            [web(true), (String::new(), false)]
        );
        assert_eq!(told(&["base"]), [web(false)]);
        assert_eq!(told(&["patch"]), [web(false)]);
        assert_eq!(told(&[]), []);
    }
}

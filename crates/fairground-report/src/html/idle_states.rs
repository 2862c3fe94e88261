//! The table of the idle states that CPUs were in.

use super::table::{Cell, Column, Row, Table};
use crate::number::{count, number};
use crate::result::Variant;
use crate::text::idle_means;

/// A row for each state and side; without rows where a machine has nothing to choose from.
pub fn of(variants: &[Variant]) -> Table {
    let sides: Vec<_> = variants.iter().map(|v| (v, idle_means(v))).collect();
    let states = sides.first().map_or(0, |(_, means)| means.len());
    let mut rows = Vec::new();
    for state in (0..states).filter(|_| states > 1) {
        for (side, (variant, means)) in sides.iter().enumerate() {
            let Some(mean) = means.get(state) else {
                continue;
            };
            rows.push(Row {
                cells: vec![
                    Cell::text(if side == 0 { mean.name } else { "" }),
                    Cell::text(&variant.name).class(&variant.name),
                    Cell::number(Some(mean.pct), format!("{:.3} %", mean.pct)),
                    Cell::number(Some(mean.usage), count(mean.usage)),
                    Cell::number(mean.stay_us, number(mean.stay_us)),
                ],
                joined: side + 1 < sides.len(),
            });
        }
    }
    Table {
        id: "idle-states-table".into(),
        caption: "Idle states".into(),
        note: "Means over the seeds. Stays of all CPUs that ended in the measured time or last at \
               its end; the way out of a state is not part of the stay."
            .into(),
        columns: vec![
            Column::left("state"),
            Column::left(""),
            Column::right("of all CPU time"),
            Column::right("stays"),
            Column::right("mean stay, us"),
        ],
        rows,
    }
}

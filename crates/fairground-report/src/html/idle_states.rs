//! The table of the idle states that CPUs were in.

use super::names::{name_heads, rows_of};
use super::table::{Cell, Column, Table};
use crate::number::{count, number};
use crate::result::Variant;
use crate::text::idle_means;

/// A row for each state and side, of all states that a side has; without rows where a machine has
/// nothing to choose from.
pub fn of(variants: &[Variant]) -> Table {
    let means: Vec<_> = variants.iter().flat_map(idle_means).collect();
    let mut states: Vec<&str> = Vec::new();
    for mean in &means {
        if !states.contains(&mean.name) {
            states.push(mean.name);
        }
    }
    let of_state = |state: &&str| {
        rows_of(state, variants, |variant| {
            let mean = idle_means(variant).into_iter().find(|m| m.name == *state)?;
            Some(vec![
                Cell::number(Some(mean.pct), format!("{:.3} %", mean.pct)),
                Cell::number(Some(mean.usage), count(mean.usage)),
                Cell::number(mean.stay_us, number(mean.stay_us)),
            ])
        })
    };
    let some = states.iter().filter(|_| states.len() > 1);
    let rows = some.flat_map(of_state).collect();
    let mut columns = name_heads(variants.len(), "state");
    columns.extend(["of all CPU time", "stays", "mean stay, us"].map(Column::right));
    Table {
        id: "idle-states-table".into(),
        caption: "Idle states".into(),
        note: "Means over the seeds. Stays of all CPUs that ended in the measured time or last at \
               its end; the way out of a state is not part of the stay."
            .into(),
        columns,
        rows,
    }
}

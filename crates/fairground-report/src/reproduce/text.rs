//! The rows as a table for a terminal.

use std::fmt::Write as _;

use super::{Class, Row};
use crate::result::Number;
use crate::text::{Align, number, render};

/// All rows of one change: the published table and the simulated one, side by side.
pub fn reproduce_text(rows: &[Row]) -> String {
    let header = [
        "class",
        "machine",
        "workload",
        "load",
        "metric",
        "published",
        "->",
        "change",
        "simulated",
        "->",
        "change",
        "95 % CI (%)",
    ];
    use Align::{Left, Right};
    let align = [
        Left, Left, Left, Left, Left, Right, Right, Right, Right, Right, Right, Right,
    ];
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut text = render(&header, &cells, &align);
    for (row, why) in rows.iter().filter_map(|r| Some((r, r.dead.as_ref()?))) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{}, {}: {why}", row.workload, row.metric);
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let (p, s) = (&row.published, &row.simulated);
    let ends = match s.ci95_pct {
        [Some(lo), Some(hi)] => format!("{lo:+.1} .. {hi:+.1}"),
        _ => "-".into(),
    };
    vec![
        row.class.name().into(),
        row.machine.clone(),
        row.workload.clone(),
        row.load.clone(),
        row.metric.clone(),
        number(p.base),
        number(p.patch),
        percent(p.change_pct),
        number(s.base),
        number(s.patch),
        percent(s.change_pct),
        ends,
    ]
}

/// A change in percent with its sign.
pub(super) fn percent(change: Number) -> String {
    change.map_or("-".into(), |c| format!("{c:+.1} %"))
}

/// How many rows of each class, and the share that is no miss.
pub fn tally_line(rows: &[Row]) -> String {
    let count = |class| rows.iter().filter(|r| r.class == class).count();
    let kept = rows.len() - count(Class::Miss);
    let mut line = String::new();
    for class in [Class::Factor2, Class::Sign, Class::Noise, Class::Miss] {
        // Writing to a string cannot fail.
        let _ = write!(line, "{} {}, ", count(class), class.name());
    }
    let share = 100.0 * kept as f64 / rows.len().max(1) as f64;
    let _ = write!(line, "of {} rows: {share:.0} % not missed", rows.len());
    let within = |r: &&Row| {
        let change = r.published.change_pct.zip(r.simulated.change_pct);
        let in_size = change.is_some_and(|(want, got)| (0.5..=2.0).contains(&(got / want)));
        r.class == Class::Factor2 && in_size && r.simulated.holds_zero()
    };
    let unsure = rows.iter().filter(within).count();
    if unsure > 0 {
        let _ = write!(
            line,
            " ({unsure} of `factor2` with an interval that holds 0)"
        );
    }
    line
}

impl Class {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Factor2 => "factor2",
            Self::Sign => "sign",
            Self::Noise => "noise",
            Self::Miss => "miss",
        }
    }
}

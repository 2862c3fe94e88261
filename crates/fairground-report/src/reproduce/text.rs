//! The rows as a table for a terminal.

use std::fmt::Write as _;

use super::{Class, Evidence, Row, near};
use crate::number::{Number, number};
use crate::text::{Align, render};

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
        "level",
        "95 % CI (%)",
    ];
    use Align::{Left, Right};
    let align = [
        Left, Left, Left, Left, Left, Right, Right, Right, Right, Right, Right, Right, Right,
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
        class_text(row),
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
        level_text(row),
        ends,
    ]
}

/// A change in percent with its sign.
pub(super) fn percent(change: Number) -> String {
    change.map_or("-".into(), |c| format!("{c:+.1} %"))
}

/// The class, and in brackets why the row is not counted if it is not.
fn class_text(row: &Row) -> String {
    let class = row.class.name();
    row.evidence
        .map_or(class.into(), |e| format!("{class} ({})", e.name()))
}

/// Simulated base by published base; `!` where it is another regime.
pub fn level_text(row: &Row) -> String {
    let mark = if row.other_regime() { " !" } else { "" };
    row.level.map_or("-".into(), |level| match level < 10.0 {
        true => format!("x{level:.2}{mark}"),
        false => format!("x{level:.0}{mark}"),
    })
}

/// How many rows of each class, and the share that is no miss; rows that are no evidence apart.
pub fn tally_line(rows: &[Row]) -> String {
    let tests: Vec<&Row> = rows.iter().filter(|r| r.evidence.is_none()).collect();
    let count = |class| tests.iter().filter(|r| r.class == class).count();
    let kept = tests.len() - count(Class::Miss);
    let mut line = String::new();
    for class in [Class::Factor2, Class::Sign, Class::Noise, Class::Miss] {
        // Writing to a string cannot fail.
        let _ = write!(line, "{} {}, ", count(class), class.name());
    }
    let share = 100.0 * kept as f64 / tests.len().max(1) as f64;
    let _ = write!(line, "of {} rows: {share:.0} % not missed", tests.len());
    let mut apart = Vec::new();
    let elsewhere = |r: &&&Row| r.class != Class::Miss && r.other_regime();
    let far = tests.iter().filter(elsewhere).count();
    if far > 0 {
        apart.push(format!("{far} of these with base at another level"));
    }
    let within = |r: &&&Row| {
        let change = r.published.change_pct.zip(r.simulated.change_pct);
        let in_size = change.is_some_and(|(want, got)| near(want, got));
        r.class == Class::Factor2 && in_size && r.simulated.holds_zero()
    };
    let unsure = tests.iter().filter(within).count();
    if unsure > 0 {
        apart.push(format!(
            "{unsure} of `factor2` with an interval that holds 0"
        ));
    }
    if !apart.is_empty() {
        let _ = write!(line, " ({})", apart.join("; "));
    }
    let kinds = Evidence::ALL.map(|kind| {
        let n = rows.iter().filter(|r| r.evidence == Some(kind)).count();
        (n > 0).then(|| format!("{n} {}", kind.name()))
    });
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    if !kinds.is_empty() {
        let _ = write!(line, "; not counted: {}", kinds.join(", "));
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

#[cfg(test)]
mod tests {
    use super::super::{Published, Simulated};
    use super::*;

    #[test]
    fn what_is_no_evidence_is_not_counted() {
        let row = |class, evidence, got| Row {
            change: String::new(),
            machine: String::new(),
            workload: String::new(),
            load: String::new(),
            metric: String::new(),
            published: Published::new(Some(10.0), None),
            simulated: Simulated::of(&[Some(got)], &[Some(got)]),
            level: Some(got / 10.0),
            class,
            evidence,
            dead: None,
            made: None,
        };
        let rows = [
            row(Class::Factor2, None, 10.0),
            row(Class::Noise, None, 50.0),
            row(Class::Miss, None, 50.0),
            row(Class::Factor2, Some(Evidence::Input), 10.0),
            row(Class::Miss, Some(Evidence::Limit), 50.0),
        ];
        assert_eq!(
            tally_line(&rows),
            "1 factor2, 0 sign, 1 noise, 1 miss, of 3 rows: 67 % not missed \
             (1 of these with base at another level); not counted: 1 input, 1 limit"
        );
        assert_eq!(class_text(&rows[3]), "factor2 (input)");
        assert_eq!(level_text(&rows[1]), "x5.00 !");
    }
}

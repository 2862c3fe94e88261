//! The table that says whose quota each group waited for, where there is more than one it can be.

use super::table::{Align, render};
use crate::number::number;
use crate::result::Variant;
use crate::throttled_by::{mean, pairs};

/// Most rows of a side.
const ROWS_MAX: usize = 32;

/// For how long the tasks of each group waited for its own quota and for that of each group above.
/// Empty where no group with a limit is below another one, or has groups without one.
pub fn throttled_by_text(variants: &[Variant]) -> String {
    let pairs = pairs(variants);
    let several = variants.len() > 1;
    let (mut rows, mut before) = (Vec::new(), None);
    for (group, by) in pairs.iter().copied().take(ROWS_MAX) {
        for (side, variant) in variants.iter().enumerate() {
            let first = side == 0;
            let name = if first && before != Some(group) {
                group
            } else {
                ""
            };
            let whose = match (first, group == by) {
                (false, _) => "",
                (true, true) => "its own",
                (true, false) => by,
            };
            let mut row = vec![name.to_string(), whose.to_string()];
            row.extend(several.then(|| variant.name.clone()));
            row.extend(match mean(variant, group, by) {
                Some((ms, share)) => [
                    format!("{ms:.1}"),
                    share.map_or("-".into(), |share| format!("{share:.1}%")),
                ],
                None => ["-".into(), "-".into()],
            });
            rows.push(row);
        }
        before = Some(group);
    }
    let mut header = vec!["kept off the CPU", "by quota of"];
    header.extend(several.then_some(""));
    let mut align = vec![Align::Left; header.len()];
    header.extend(["task ms", "share"]);
    align.resize(header.len(), Align::Right);
    let more = pairs.len().saturating_sub(ROWS_MAX);
    let more = match more {
        0 => String::new(),
        more => format!(
            "... and {} more rows in the JSON\n",
            number(Some(more as f64))
        ),
    };
    render(&header, &rows, &align) + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Run, ThrottledBy};

    fn side(name: &str, rows: &[(&str, &str, u64)]) -> Variant {
        let row = |(group, by, ms): &(&str, &str, u64)| ThrottledBy {
            group: (*group).into(),
            by: (*by).into(),
            ns: ms * 1_000_000,
        };
        Variant {
            name: name.into(),
            runs: vec![Run {
                throttled_by: rows.iter().map(row).collect(),
                ..Run::new(1)
            }],
            ..Variant::default()
        }
    }

    #[test]
    fn a_group_is_named_once_and_its_own_quota_as_such() {
        let run = side(
            "base",
            &[
                ("/pod", "/pod", 700),
                ("/pod/app", "/pod/app", 100),
                ("/pod/app", "/pod", 300),
            ],
        );
        let wanted = "\
kept off the CPU  by quota of  task ms   share
/pod              its own        700.0  100.0%
/pod/app          its own        100.0   25.0%
                  /pod           300.0   75.0%
";
        assert_eq!(throttled_by_text(&[run]), wanted);
    }

    #[test]
    fn sides_stand_below_each_other_and_one_level_is_no_table() {
        let base = side("base", &[("/pod/app", "/pod", 0)]);
        let patch = side("patch", &[("/pod/app", "/pod/app", 10)]);
        let text = throttled_by_text(&[base, patch.clone()]);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(lines[1], ["/pod/app", "/pod", "base", "0.0", "-"]);
        assert_eq!(lines[2], ["patch", "-", "-"]);
        assert_eq!(lines[3], ["its", "own", "base", "-", "-"]);
        assert_eq!(lines[4], ["patch", "10.0", "100.0%"]);
        assert_eq!(throttled_by_text(&[patch]), "");
    }
}

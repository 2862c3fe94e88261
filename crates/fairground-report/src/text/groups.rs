//! The tables of groups with a limit, and of those with a weight of their own.

use super::table::{Align, render};
use crate::groups::{GroupMeans, listed, means, summed, weighed};
use crate::number::{few, number};
use crate::result::Variant;

/// Most groups in a table.
const ROWS_MAX: usize = 16;

/// What each group with a limit used and how it was throttled, most throttled time first; and what
/// those used that have only a weight.
pub fn groups_text(variants: &[Variant]) -> String {
    let mut text = table("limited group", &HEADER, variants, &listed(variants), cells);
    let weighed: Vec<Option<&str>> = weighed(variants).into_iter().map(Some).collect();
    let columns = ["cpu.weight", "CPUs", "usage ms"];
    let weighed = table("weighted group", &columns, variants, &weighed, weight_cells);
    if !text.is_empty() && !weighed.is_empty() {
        text.push('\n');
    }
    text + &weighed
}

fn table(
    head: &str,
    columns: &[&str],
    variants: &[Variant],
    groups: &[Option<&str>],
    cells: fn(&GroupMeans) -> Vec<String>,
) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let shown = groups.iter().copied().take(ROWS_MAX);
    let text = by_group(head, columns, variants, shown, |variant, path| {
        means(variant, path).map(|group| cells(&group))
    });
    let dropped = groups.iter().skip(ROWS_MAX);
    let alone = dropped.clone().filter(|path| path.is_some()).count();
    // Else the sum has a row.
    let summed = if dropped.count() > alone {
        summed(variants)
    } else {
        0
    };
    text + &more(alone, summed, "as a sum")
}

/// Groups that tables of groups with a limit show, but for the sum of the others.
pub(super) fn shown(variants: &[Variant]) -> impl Iterator<Item = Option<&str>> {
    let groups = listed(variants).into_iter().take(ROWS_MAX);
    groups.filter(Option::is_some)
}

/// That there are more than [`shown`], of which no sum is kept.
pub(super) fn more_than_shown(variants: &[Variant]) -> String {
    let alone = listed(variants).into_iter().flatten().skip(ROWS_MAX);
    more(alone.count(), summed(variants), "in the metrics only")
}

/// The line below a table that lacks groups: those that the JSON has one by one, and the others.
fn more(alone: usize, others: u64, others_are: &str) -> String {
    match (alone, others) {
        (0, 0) => String::new(),
        (alone, 0) => format!("... and {alone} more in the JSON\n"),
        (0, others) => format!("... and {others} more groups {others_are}\n"),
        (alone, others) => {
            let all = alone as u64 + others;
            format!("... and {all} more groups: {alone} in the JSON, {others} {others_are}\n")
        }
    }
}

/// A table with a row for each of `groups` (`None`: the others) and each variant. `cells` are those
/// below `columns`, or dashes where a variant says nothing.
pub(super) fn by_group<'a>(
    head: &str,
    columns: &[&str],
    variants: &[Variant],
    groups: impl Iterator<Item = Option<&'a str>>,
    mut cells: impl FnMut(&Variant, Option<&str>) -> Option<Vec<String>>,
) -> String {
    let several = variants.len() > 1;
    let mut rows = Vec::new();
    for path in groups {
        for (index, variant) in variants.iter().enumerate() {
            let mut row = vec![match index {
                0 => path.map_or_else(|| others(variants), String::from),
                _ => String::new(),
            }];
            let at_most = path.is_some_and(|path| variant.at_most.iter().any(|p| p == path));
            let mark = if at_most { " <" } else { "" };
            row.extend(several.then(|| format!("{}{mark}", variant.name)));
            let found = cells(variant, path);
            row.extend(found.unwrap_or_else(|| vec!["-".into(); columns.len()]));
            rows.push(row);
        }
    }
    let mut header = vec![head];
    header.extend(several.then_some(""));
    let mut align = vec![Align::Left; header.len()];
    header.extend(columns);
    align.resize(header.len(), Align::Right);
    render(&header, &rows, &align)
}

/// How many groups are not listed by themselves.
fn others(variants: &[Variant]) -> String {
    let name = |variant: &Variant| means(variant, None).map(|group| group.name);
    let first = variants.iter().find_map(name);
    first.unwrap_or_else(|| "others".into())
}

const HEADER: [&str; 8] = [
    "cpu.max",
    "burst",
    "CPUs",
    "periods",
    "throttled",
    "share",
    "time ms",
    "burst ms",
];

fn weight_cells(g: &GroupMeans) -> Vec<String> {
    vec![
        g.weight.clone().unwrap_or_else(|| "-".into()),
        number(g.cpus),
        format!("{:.1}", g.usage_ms),
    ]
}

fn cells(g: &GroupMeans) -> Vec<String> {
    let limit = |show: fn(&(String, String)) -> String| g.limit.as_ref().map_or("-".into(), show);
    vec![
        limit(|(max, _)| max.clone()),
        limit(|(_, burst)| burst.clone()),
        number(g.cpus),
        few(g.periods),
        few(g.throttled),
        format!("{:.1}%", g.throttled_pct()),
        format!("{:.1}", g.throttled_ms),
        format!("{:.1}", g.burst_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::cut_groups;
    use crate::result::{GroupStat, QuotaWait, Run};

    /// A run whose groups all have a limit.
    fn of(groups: usize) -> [Variant; 1] {
        let group = |i: usize| GroupStat {
            path: format!("/g{i}"),
            counted: true,
            max: "20000 100000".into(),
            wait: Some(QuotaWait::default()),
            ..GroupStat::default()
        };
        let run = Run {
            groups: (0..groups).map(group).collect(),
            ..Run::new(1)
        };
        let mut variants = [Variant {
            name: "base".into(),
            runs: vec![run],
            ..Variant::default()
        }];
        cut_groups(&mut variants);
        variants
    }

    #[test]
    fn groups_without_a_row_are_counted() {
        let last = |text: String| text.lines().last().unwrap_or_default().to_string();
        let both = |groups| {
            let variants = of(groups);
            let waiting =
                super::super::watched::quota_text(&variants, &super::super::watched::run_why);
            [last(groups_text(&variants)), last(waiting)]
        };
        assert!(both(16).iter().all(|line| line.starts_with("/g")));
        assert_eq!(both(20), ["... and 4 more in the JSON"; 2]);
        assert_eq!(
            both(70),
            [
                "... and 54 more groups: 48 in the JSON, 6 as a sum",
                "... and 54 more groups: 48 in the JSON, 6 in the metrics only"
            ]
        );
    }

    #[test]
    fn rows_of_upper_bounds_are_marked() {
        let side = |name: &str, at_most: &[&str]| Variant {
            name: name.into(),
            at_most: at_most.iter().map(|path| (*path).into()).collect(),
            ..of(2)[0].clone()
        };
        let text = groups_text(&[side("replayed", &[]), side("what if", &["/g1"])]);
        let marked: Vec<bool> = text
            .lines()
            .map(|line| line.contains("what if <"))
            .collect();
        assert_eq!(marked, [false, false, false, false, true], "{text}");
    }
}

//! The tables of groups with a limit, and of those with a weight of their own.

use super::table::{Align, number, render};
use super::watched::few;
use crate::groups::{GroupMeans, listed, means, weighed};
use crate::result::Variant;

/// Most groups in a table; all are in the JSON.
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
    let mut text = by_group(head, columns, variants, shown, |variant, path| {
        means(variant, path).map(|group| cells(&group))
    });
    let dropped = groups.len().saturating_sub(ROWS_MAX);
    if dropped > 0 {
        text += &format!("... and {dropped} more in the JSON\n");
    }
    text
}

/// Groups that tables of groups with a limit show, but for the sum of the others.
pub(super) fn shown(variants: &[Variant]) -> impl Iterator<Item = Option<&str>> {
    let groups = listed(variants).into_iter().take(ROWS_MAX);
    groups.filter(Option::is_some)
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
            row.extend(several.then(|| variant.name.clone()));
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
    let limit = |show: fn(&(String, u64)) -> String| g.limit.as_ref().map_or("-".into(), show);
    vec![
        limit(|(max, _)| max.clone()),
        limit(|(_, burst)| burst.to_string()),
        number(g.cpus),
        few(g.periods),
        few(g.throttled),
        format!("{:.1}%", g.throttled_pct()),
        format!("{:.1}", g.throttled_ms),
        format!("{:.1}", g.burst_ms),
    ]
}

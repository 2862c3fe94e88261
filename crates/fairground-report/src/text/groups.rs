//! The table of groups with a limit.

use super::table::{Align, number, render};
use super::watched::few;
use crate::groups::{GroupMeans, listed, means};
use crate::result::Variant;

/// Most groups in the table; all are in the JSON.
const ROWS_MAX: usize = 16;

/// What each group with a limit used and how it was throttled, most throttled time first.
pub fn groups_text(variants: &[Variant]) -> String {
    let groups = listed(variants);
    let mut rows = Vec::new();
    for path in groups.iter().take(ROWS_MAX) {
        for (index, variant) in variants.iter().enumerate() {
            let found = means(variant, *path);
            let name = match (&found, path) {
                (Some(group), _) => group.name.clone(),
                (None, path) => path.unwrap_or("others").into(),
            };
            let name = if index == 0 { name } else { String::new() };
            let mut row = vec![name];
            if variants.len() > 1 {
                row.push(variant.name.clone());
            }
            row.extend(
                found
                    .as_ref()
                    .map_or_else(|| cells(None), |g| cells(Some(g))),
            );
            rows.push(row);
        }
    }
    let mut header = vec!["limited group"];
    if variants.len() > 1 {
        header.push("");
    }
    header.extend(HEADER);
    let mut align = vec![Align::Right; header.len()];
    align[..header.len() - HEADER.len()].fill(Align::Left);
    let mut text = render(&header, &rows, &align);
    let dropped = groups.len().saturating_sub(ROWS_MAX);
    if dropped > 0 {
        text += &format!("... and {dropped} more in the JSON\n");
    }
    text
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

fn cells(group: Option<&GroupMeans>) -> Vec<String> {
    let Some(g) = group else {
        return vec!["-".into(); HEADER.len()];
    };
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

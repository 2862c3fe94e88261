//! Results as text that pastes into a changelog: plain ASCII, under 100 columns, colour only on
//! request. Counts are means over the seeds.

mod costs;
mod groups;
mod head;
mod idle_states;
mod legend;
mod quota_work;
mod replay;
mod table;
mod throttled_by;
mod watched;

use crate::catalogue::MetricInfo;
use crate::number::{change, interval, number};
use crate::percentile::is_left_out;
use crate::result::{Compare, Comparison, Judged, Note, RunResult, Variant};
use crate::stats::{Summary, summary};
pub(crate) use costs::{
    FunctionRow, Functions, MeanCost, Traffic, place_name, places_by_wait, traffic, words_text,
};
use costs::{functions_text, lines_text};
pub use groups::groups_text;
pub(crate) use head::variants_text as variants_head;
pub use head::{changes_text, foot, head, labelled};
pub(crate) use idle_states::idle_means;
use idle_states::idle_states_text;
use legend::legend;
pub(crate) use legend::{EACH_ALONE, PER_WORDS, SAME_WORDS};
pub(crate) use quota_work::WorkMeans;
use quota_work::work_text;
pub use replay::{faithful_text, fidelity_text, what_if_text};
pub(crate) use table::{Align, VERDICTS, in_colour, render};
use throttled_by::throttled_by_text;
pub(crate) use watched::{IdleMeans, QuotaMeans};
pub use watched::{TaskAt, watched_text};
use watched::{idle_text, quota_text, run_why};

/// How a result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours for the verdicts; for terminals.
    pub colour: bool,
    /// How many places the table of cache lines shows at most.
    pub lines: usize,
    /// How many functions the profile shows at most.
    pub functions: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            colour: false,
            lines: 8,
            functions: 16,
        }
    }
}

/// The result of `compare`: what it was, the comparison, the cache lines and the profile by
/// scheduler function that explain it, and how to redo it.
pub fn compare_text(result: &Compare, style: Style) -> String {
    let variants = &result.variants;
    let shown: Vec<Comparison> = result
        .comparison
        .iter()
        .filter(|row| !is_left_out(variants, &row.metric))
        .cloned()
        .collect();
    let mut parts = vec![
        head::head_of_both(result) + &head::variants_text(variants),
        comparison_text(&shown, style),
    ];
    parts.extend(explained(variants, style));
    parts.push(foot(&result.redo, &Note::sentences(&result.notes)) + &legend(&shown));
    join(&parts)
}

/// Cache lines and profile of a base and a patch: what explains their difference.
pub fn costs_text(base: &Variant, patch: &Variant, style: Style) -> String {
    let variants = [base.clone(), patch.clone()];
    join(&[
        lines_text(&variants, style.lines),
        functions_text(&variants, style.functions),
    ])
}

/// The result of `run`: the same without a second variant.
pub fn run_text(result: &RunResult, style: Style) -> String {
    let variants = &result.variants;
    let about = head(
        &result.fairground,
        &result.machine,
        &result.profile,
        &result.workload,
    );
    let set = |change: &String| labelled("set", change);
    let changes: String = result.changes.iter().map(set).collect();
    let mut parts = vec![
        about + &head::variants_text(variants) + &changes,
        variants
            .iter()
            .map(|v| metrics_text(v, &result.metric_info))
            .collect(),
    ];
    parts.extend(explained(variants, style));
    parts.push(foot(&result.redo, &Note::sentences(&result.notes)));
    join(&parts)
}

/// What stands between the metrics and the foot: where the numbers come from.
fn explained(variants: &[Variant], style: Style) -> [String; 8] {
    [
        groups_text(variants),
        quota_text(variants, &run_why),
        throttled_by_text(variants),
        work_text(variants),
        idle_text(variants, &run_why) + &idle_states_text(variants),
        lines_text(variants, style.lines),
        functions_text(variants, style.functions),
        words_text(variants),
    ]
}

fn join(parts: &[String]) -> String {
    parts
        .iter()
        .filter(|p| !p.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join("\n")
}

fn comparison_text(rows: &[Comparison], style: Style) -> String {
    const HEADER: [&str; 6] = [
        "metric",
        "base +- sd",
        "patch +- sd",
        "change",
        "95 % CI (%)",
        "verdict",
    ];
    let lines: Vec<ComparisonLine> = rows.iter().flat_map(comparison_lines).collect();
    let body: Vec<Vec<String>> = lines.iter().map(|line| line.cells.clone()).collect();
    let plain = render(
        &HEADER,
        &body,
        &[
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
        ],
    );
    if !style.colour {
        return plain;
    }
    // Colour after layout: escape codes have no width.
    let mut shown = plain.lines();
    let mut text = format!("{}\n", shown.next().unwrap_or_default());
    for (line, ComparisonLine { word, .. }) in shown.zip(lines) {
        let at = line.len().saturating_sub(word.len());
        let (start, verdict) = line.split_at(at);
        let verdict = if word.is_empty() {
            String::new()
        } else {
            in_colour(verdict)
        };
        text += &format!("{start}{verdict}\n");
    }
    text
}

/// A line of the table, and the verdict at its end.
struct ComparisonLine {
    cells: Vec<String>,
    word: &'static str,
}

/// A metric; a total that is judged per unit of work has its quotient below it, and the verdict
/// stands there.
fn comparison_lines(row: &Comparison) -> Vec<ComparisonLine> {
    let line = |name: String, on: Judged, word: &'static str| ComparisonLine {
        cells: vec![
            name,
            with_sd(on.base, on.base_sd),
            with_sd(on.patch, on.patch_sd),
            change(on.change_pct),
            interval(on.ci95_pct).unwrap_or("-".into()),
            word.into(),
        ],
        word,
    };
    let own = row.total();
    match row.shown_per() {
        None => vec![line(row.metric.clone(), own, row.word())],
        Some(per) => vec![
            line(row.metric.clone(), own, ""),
            line(format!("  {}", per.label()), row.judged(), row.word()),
        ],
    }
}

fn metrics_text(variant: &Variant, metrics: &[MetricInfo]) -> String {
    let left_out = |name: &str| is_left_out(std::slice::from_ref(variant), name);
    let body: Vec<Vec<String>> = metrics
        .iter()
        .filter(|info| !left_out(&info.name))
        .map(|info| {
            let values = variant.runs.iter().filter_map(|r| r.metric(&info.name));
            let found = summary(&values.collect::<Vec<f64>>()).map(|s| s.up_to(info.whole()));
            let ci = found.and_then(|s| s.ci95);
            vec![
                info.name.clone(),
                with_sd(found.map(|s| s.mean), found.and_then(|s: Summary| s.sd)),
                ci.map_or("-".into(), |[lo, hi]| {
                    format!("[{}, {}]", number(Some(lo)), number(Some(hi)))
                }),
            ]
        })
        .collect();
    render(
        &["metric", "mean +- sd", "95 % CI"],
        &body,
        &[Align::Left, Align::Right, Align::Right],
    )
}

/// `12.34 +- 1.2%`: the deviation in percent of the mean, as `perf stat` writes it.
fn with_sd(mean: Option<f64>, sd: Option<f64>) -> String {
    match (mean, sd) {
        // Of a saved result that somebody made up.
        (Some(mean), Some(sd)) if !mean.is_finite() || !sd.is_finite() => number(None),
        (Some(mean), Some(sd)) if mean != 0.0 => {
            format!("{} +- {:4.1}%", number(Some(mean)), 100.0 * sd / mean.abs())
        }
        (Some(mean), Some(_)) => format!("{} +-  0.0%", number(Some(mean))),
        _ => number(mean),
    }
}

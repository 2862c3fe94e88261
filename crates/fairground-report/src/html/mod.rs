//! The report page: one file that opens without a network.
//!
//! Tables are made here, so that they are there without scripts, and each number has its exact
//! value beside it. Scripts draw what is embedded as JSON: the result as `--json` writes it, and
//! [`Samples`] of the first seed.
//!
//! | file | subject |
//! | --- | --- |
//! | `table` | tables and their cells |
//! | `metrics` | metrics of a run; base against patch |
//! | `groups` | groups with a limit or a weight |
//! | `costs` | cache lines in the columns of `perf c2c`, functions |
//! | `plot` | lines with intervals, drawn without scripts |
//! | `samples` | what the plots are made of |

mod costs;
mod groups;
mod idle_states;
mod metrics;
mod names;
mod periods;
mod plot;
mod quota_work;
mod samples;
mod table;
mod watched_tables;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

use crate::differing::differing;
use crate::redo::Redo;
use crate::result::{Compare, Note, RunResult, Variant};
use crate::text::{Style, compare_text, run_text};
pub use costs::{functions, lines};
pub use groups::of as groups;
pub use periods::figures as period_figures;
pub use plot::{Dot, Figure, Plot, Series};
pub use samples::{Heat, PeriodRow, Periods, Samples, Slice, Slices, StackRow, Task};
pub use table::{Bar, Cell, Column, Row, Table};
pub use watched_tables::of as watched;

const TEMPLATE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPTS: [&str; 6] = [
    include_str!("../../assets/base.js"),
    include_str!("../../assets/view.js"),
    include_str!("../../assets/latency.js"),
    include_str!("../../assets/timeline.js"),
    include_str!("../../assets/heat.js"),
    include_str!("../../assets/flame.js"),
];

/// A page, complete: what [`page`] writes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// What was run.
    pub title: String,
    /// One sentence below it.
    pub lead: String,
    /// What one looks for first: label and text.
    pub facts: Vec<(String, String)>,
    /// The main tables.
    pub tables: Vec<Table>,
    /// The main tables as text, for a changelog.
    pub text: String,
    /// Plots below them.
    pub figures: Vec<Figure>,
    /// Cache lines, if there are any.
    pub lines: Option<Table>,
    /// Functions, if there are any.
    pub functions: Option<Table>,
    /// What the real tool would have printed.
    pub output: String,
    /// What to know before believing the numbers.
    pub notes: Vec<String>,
    /// How to get the same again: the command line.
    pub redo: String,
    /// More tables at the end: decisions, assumed figures.
    pub more: Vec<Table>,
    /// The result as `--json` writes it.
    pub json: String,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The template; a defect of this crate.
    #[error("cannot make the report page: {0}")]
    Template(#[from] minijinja::Error),
    /// The numbers.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// What both kinds of results begin with.
struct Head<'a> {
    version: &'a str,
    machine: String,
    profile: &'a str,
    workload: &'a [String],
    variants: &'a [Variant],
    redo: &'a Redo,
    notes: &'a [Note],
}

macro_rules! head {
    ($result:expr, $machine:expr) => {
        Head {
            version: &$result.fairground,
            machine: $machine,
            profile: &$result.profile,
            workload: &$result.workload,
            variants: &$result.variants,
            redo: &$result.redo,
            notes: &$result.notes,
        }
    };
}

/// The page of a run.
///
/// # Errors
/// Only if the page itself is at fault.
pub fn run_page(
    result: &RunResult,
    samples: &[Samples],
    style: Style,
) -> Result<String, PageError> {
    let about = Page {
        lead: format!("fairground run on {}", result.machine.id),
        tables: with_groups(metrics::of_run(result), &result.variants),
        text: run_text(result, plain(style)),
        json: serde_json::to_string(result)?,
        figures: periods::figures(samples),
        ..common(
            &head!(result, result.machine.with_parts()),
            metrics::headlines_of_run(result),
            style,
        )
    };
    page(&about, samples)
}

/// The page of a comparison.
///
/// # Errors
/// Only if the page itself is at fault.
pub fn compare_page(
    result: &Compare,
    samples: &[Samples],
    style: Style,
) -> Result<String, PageError> {
    let machine = &result.machine.id;
    let about = Page {
        lead: format!("fairground compare on {machine}: base and patch"),
        tables: with_groups(metrics::of_compare(result), &result.variants),
        text: compare_text(result, plain(style)),
        json: serde_json::to_string(result)?,
        figures: periods::figures(samples),
        ..common(
            &head!(result, result.machines()),
            metrics::headlines_of_compare(result),
            style,
        )
    };
    page(&about, samples)
}

/// Any page.
///
/// # Errors
/// Only if the page itself is at fault.
pub fn page(page: &Page, samples: &[Samples]) -> Result<String, PageError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let mut syntax = SyntaxConfig::builder();
    environment.set_syntax(syntax.trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("report.html", TEMPLATE)?;
    let values = context! {
        page => Value::from(Serde(page)),
        style => STYLE,
        scripts => SCRIPTS.concat(),
        result => inert(&page.json),
        samples => inert(&serde_json::to_string(samples)?),
        timeline => samples.iter().any(|s| s.cpus > 0),
        latency => samples.iter().any(|s| !s.latency.is_empty()),
        flame => samples.iter().any(|s| !s.stacks.is_empty()),
    };
    Ok(environment.get_template("report.html")?.render(values)?)
}

/// JSON that cannot end the element it stands in: the same to every reader of JSON.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}

fn title(workload: &[String]) -> String {
    if workload.is_empty() {
        return "fairground".into();
    }
    workload.join(" ")
}

fn with_groups(metrics: Table, variants: &[Variant]) -> Vec<Table> {
    std::iter::once(metrics)
        .chain(groups::of(variants))
        .chain(watched(variants))
        .collect()
}

fn plain(style: Style) -> Style {
    Style {
        colour: false,
        ..style
    }
}

fn facts(head: &Head<'_>) -> Vec<(String, String)> {
    let Head {
        machine, variants, ..
    } = head;
    let runs: Vec<String> = variants.iter().map(|v| v.runs.len().to_string()).collect();
    let mut facts = vec![
        ("machine".into(), machine.clone()),
        ("profile".into(), head.profile.into()),
        ("seeds".into(), runs.join(" and ")),
        ("fairground".into(), head.version.into()),
    ];
    if let [base, patch] = variants {
        for (name, [base, patch]) in differing(base, patch) {
            facts.push((name, format!("{patch} (base: {base})")));
        }
    }
    facts
}

fn common(head: &Head<'_>, headlines: Vec<(String, String)>, style: Style) -> Page {
    let Head { variants, redo, .. } = head;
    let mut facts = facts(head);
    facts.extend(headlines);
    let mut notes = Note::sentences(head.notes);
    notes.extend(redo.not_modelled_text());
    Page {
        title: title(head.workload),
        facts,
        lines: costs::lines(variants, style.lines),
        functions: costs::functions(variants, style.functions),
        output: crate::text::words_text(variants),
        notes,
        redo: redo.command.clone(),
        more: vec![decisions(variants), assumed(redo)]
            .into_iter()
            .filter(|t| !t.rows.is_empty())
            .collect(),
        ..Page::default()
    }
}

fn decisions(variants: &[Variant]) -> Table {
    let mut columns = vec![Column::left("decision")];
    columns.extend(variants.iter().map(|v| Column::left(&v.name)));
    let names: std::collections::BTreeSet<&String> =
        variants.iter().flat_map(|v| v.decisions.keys()).collect();
    let row = |name: &&String| {
        let mut cells = vec![Cell::text(name)];
        for v in variants {
            cells.push(Cell::text(v.decisions.get(*name).map_or("-", |d| d)));
        }
        Row::from(cells)
    };
    Table {
        id: "decisions".into(),
        caption: "Decisions".into(),
        columns,
        rows: names.iter().map(row).collect(),
        ..Table::default()
    }
}

fn assumed(redo: &Redo) -> Table {
    let row =
        |f: &crate::redo::AssumedFigure| Row::from(vec![Cell::text(&f.key), Cell::text(&f.value)]);
    Table {
        id: "assumed".into(),
        caption: "Figures of the machine file that are assumed, not measured".into(),
        columns: vec![Column::left("figure"), Column::left("value")],
        rows: redo.assumed.iter().map(row).collect(),
        ..Table::default()
    }
}

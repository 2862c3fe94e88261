//! docs/reproduction.md: both tables side by side, a plot for each change, and the reason for
//! every miss. Made from the rows and the experiment files only.

use std::fmt::Write as _;
use std::path::Path;

use fairground_report::reproduce::{Class, Row, tally_line, tells};

use super::{Reproduced, headlines, html, plot, telling_line};
use crate::failure::Failure;

const HEAD: &str = "# The five published changes, reproduced

Made by `fairground reproduce --all --markdown docs`; do not edit. The published tables and the
words are those of `crates/fairground-cli/experiments/`; the workloads are described in
`docs/workloads/`, the costs, and what of them is assumed, in [calibration.md](calibration.md).

| class | meaning |
| --- | --- |
| `factor2` | same sign and the change within a factor of two; shares and counts: the values |
| `sign` | the same sign, another size, but at least a tenth of it, and no interval that holds 0 |
| `noise` | noise was published; the simulated change is below 5 % or its 95 % interval holds 0 |
| `miss` | anything else |

A class with `?` is what the means say, but the interval is too wide to tell: of noise it is wider
than 5 % on either side, of a change it is wider than the published change, or there is none (one
seed). A row in whose window nothing or too little happened is a miss and says so. Simulated are
tens of milliseconds after a warm-up; how many, and with how many seeds, is chosen by the time it
takes, the same for base and patch.

Read the counts with these in mind: some rows can hardly miss, and a sceptic leaves them out.
Published writes of the group's line are arithmetic on published rates, and with the change its own
limit; `us` of lazy-h-load is an input; rows of small machines in ilb-skip-redundant have an upper
limit only; a share of 81 % is inside a factor of two from 41 % on (the headline holds it to 12
points); the placement rows are one observation. A change can agree while the rates are far apart:
compare the columns of base.

";

/// Writes the page and its plots.
///
/// # Errors
/// A file that cannot be written.
pub fn write(dir: &Path, done: &[Reproduced]) -> Result<(), Failure> {
    let save = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text)
            .map_err(|e| Failure::new(format!("cannot write `{}`: {e}", path.display())))
    };
    for change in done {
        save(&plot_name(change), &plot::svg(change)?)?;
    }
    save("reproduction.md", &page(done))
}

fn plot_name(change: &Reproduced) -> String {
    format!("reproduction-{}.svg", change.experiment.change)
}

// Writing to a string cannot fail.
fn page(done: &[Reproduced]) -> String {
    let mut text = HEAD.to_string();
    let all: Vec<Row> = done
        .iter()
        .flat_map(Reproduced::all_rows)
        .cloned()
        .collect();
    let runs = done.iter().flat_map(|change| &change.experiment.runs);
    let known: usize = runs.map(|run| run.rows.len()).sum();
    let _ = writeln!(
        text,
        "Simulated are {} of {known} rows: {}. {}.\n",
        all.len(),
        tally_line(&all),
        telling_line(done)
    );
    text += "| headline | simulated | |\n| --- | ---: | --- |\n";
    for (headline, row) in done.iter().flat_map(headlines) {
        let value = headline
            .value(row)
            .map_or("-".into(), |v| format!("{v:.1}"));
        let held = if headline.holds(row) {
            "in band"
        } else {
            "**missed**"
        };
        let _ = writeln!(text, "| {} | {value} | {held} |", headline.text);
    }
    for change in done {
        text += &section(change);
    }
    text
}

fn section(change: &Reproduced) -> String {
    let e = &change.experiment;
    let mut text = format!("\n## {}: {}\n\n{}\n\n", e.change, e.title, e.source);
    if !e.mechanism.trim().is_empty() {
        let _ = writeln!(text, "{}\n", e.mechanism.trim());
    }
    let _ = writeln!(text, "![change by row]({})\n", plot_name(change));
    text +=
        "| class | run | metric | published | | change | simulated | | change | 95 % interval |\n";
    text += "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    for (run, rows) in &change.rows {
        for (spec, row) in run.rows.iter().zip(rows) {
            let told = tells(spec.kind, row);
            let _ = writeln!(text, "{}", table_row(&run.load, row, told));
        }
    }
    let rows: Vec<Row> = change.all_rows().cloned().collect();
    let _ = writeln!(text, "\n{}. {}.", tally_line(&rows), telling_line([change]));
    for (name, [base, patch]) in &change.traces {
        for (side, lines) in [("base", base), ("patch", patch)] {
            let _ = writeln!(
                text,
                "\n{name}, {side}:\n\n```text\n{}\n```",
                lines.join("\n")
            );
        }
    }
    text += &misses(change);
    for (title, points) in [
        ("Not stated, and assumed", &e.unknowns),
        ("Left out", &e.left_out),
    ] {
        if !points.is_empty() {
            let _ = writeln!(text, "\n{title}:\n");
            for point in points {
                let _ = writeln!(text, "- {point}");
            }
        }
    }
    text
}

fn table_row(load: &str, row: &Row, told: bool) -> String {
    let number = fairground_report::reproduce::number;
    let percent = |c: Option<f64>| c.map_or("-".into(), |c| format!("{c:+.1} %"));
    let (p, s) = (&row.published, &row.simulated);
    let ends = match s.ci95_pct {
        [Some(lo), Some(hi)] => format!("{lo:+.1} .. {hi:+.1}"),
        _ => "-".into(),
    };
    let class = match row.class {
        Class::Miss => "**miss**".into(),
        class if told => class.name().to_string(),
        class => format!("{} ?", class.name()),
    };
    format!(
        "| {class} | {}: `{}`, {load} | {} | {} | {} | {} | {} | {} | {} | {ends} |",
        row.machine,
        row.workload,
        row.metric,
        number(p.base),
        number(p.patch),
        percent(p.change_pct),
        number(s.base),
        number(s.patch),
        percent(s.change_pct),
    )
}

/// Each miss with its reason.
fn misses(change: &Reproduced) -> String {
    let mut text = String::new();
    for (run, rows) in &change.rows {
        for (spec, row) in run.rows.iter().zip(rows) {
            if row.class == Class::Miss {
                let why = html::why(spec, row).unwrap_or("not explained yet");
                let _ = writeln!(text, "- {} {}: {why}", run.name, row.metric);
            }
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\nMisses:\n\n{text}")
    }
}

//! docs/reproduction.md: both tables side by side, a plot for each change, and the reason for
//! every miss. Made from the rows and the experiment files only.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use fairground_report::reproduce::{Class, Row, level_text, tally_line, tells};

use super::experiment::Experiment;
use super::reasons::{grouped, why};
use super::{Reproduced, WHOLE, headlines, plot, runs_missing, telling_line, verdict};
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::output::Place;
use crate::wrap::wrap;

/// Columns of prose.
const WIDTH: usize = 100;

const LEGEND: &str = "
## How to read the tables

| class | meaning |
| --- | --- |
| `factor2` | same sign and the change within a factor of two; shares and counts: the values |
| `sign` | the same sign, another size, but at least a tenth of it, and no interval that holds 0 |
| `noise` | noise was published; the simulated change is below 5 % or its 95 % interval holds 0 |
| `miss` | anything else; each has its reason below the table, or says NOT EXPLAINED |

- **`?`**: the means say this class, but the interval is too wide to tell. Of noise it is wider than
  5 % on either side, of a change it is wider than the published change, or there is none (one
  seed).
- **In brackets**: not counted, as the row is no evidence. The published number is an input, was
  derived from others of the table, is a limit that can hardly be missed, or the row repeats the
  observation of another; which and why is said below the table.
- **`level`** is the simulated base divided by the published one. Beyond a factor of two (**bold**)
  the machine works in another regime, and an agreeing change may have other reasons.
- **Windows**: tens of milliseconds after a warm-up are simulated. How many, and with how many
  seeds, is chosen by the time it takes, the same for base and patch: first the runs that a headline
  is about. A row in whose window nothing or too little happened is a miss and says so.

Published tables and reasons are those of `crates/fairground-cli/experiments/`, workloads those of
`docs/workloads/`. Costs, and what of them is assumed, are in [calibration.md](calibration.md).
";

/// The files of the page, known to be writable before anything is simulated.
pub struct Places {
    page: Place,
    /// By experiment.
    plots: Vec<Place>,
}

impl Places {
    /// Those in `dir`.
    ///
    /// # Errors
    /// One that cannot be written.
    pub fn new(dir: &Path, experiments: &[Experiment], inputs: &Inputs) -> Result<Self, Failure> {
        let place = |name: &str| Place::new("--markdown", &dir.join(name), inputs);
        let plot = |e: &Experiment| place(&plot_name(e));
        Ok(Self {
            page: place("reproduction.md")?,
            plots: experiments.iter().map(plot).collect::<Result<_, _>>()?,
        })
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.page).chain(&self.plots)
    }

    /// Writes the page and its plots: `command` made it, and started no simulation after what
    /// `calls` says.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, done: &[Reproduced], command: &str, calls: Calls) -> Result<(), Failure> {
        for (change, place) in done.iter().zip(&self.plots) {
            place.write(&plot::svg(change)?)?;
        }
        self.page
            .write(&page(done, &head(done.len(), command, calls)))
    }
}

/// How the outcomes of a page came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// In one call, which started no simulation after this.
    One(Option<Duration>),
    /// In this one and perhaps earlier ones, whose outcomes were kept (`--keep`).
    Several,
}

fn plot_name(e: &Experiment) -> String {
    format!("reproduction-{}.svg", e.change)
}

/// What the page is and how it was made.
fn head(changes: usize, command: &str, calls: Calls) -> String {
    let (title, about) = match changes {
        1 => ("A published change", "a scheduler change"),
        5 => ("The five published changes", "five scheduler changes"),
        _ => ("Published changes", "scheduler changes"),
    };
    let words = |limit: Duration| match limit.as_secs() {
        s if s > 0 && s % 60 == 0 => format!("{} minutes", s / 60),
        _ => format!("{limit:?}"),
    };
    let how = match calls {
        Calls::One(None) => String::new(),
        Calls::One(Some(limit)) => format!(
            " (It starts no simulation after {}; with `--keep DIR` the same command goes on.)",
            words(limit)
        ),
        // Each call has its own limit, and only all of them together make the page.
        Calls::Several => format!(
            " (With `--keep DIR`, in one call or several: each starts no simulation after a time, \
             {} unless `--within` says another, and goes on where the last one stopped.)",
            words(WHOLE)
        ),
    };
    let text = format!(
        "What authors published about {about}, beside what the simulator makes of the same \
         benchmarks on machines of the same kind. Made by `{command}`; do not edit.{how}"
    );
    format!(
        "# {title}, reproduced\n\n{}\n\n",
        wrap(&text, WIDTH).join("\n")
    )
}

// Writing to a string cannot fail.
fn page(done: &[Reproduced], head: &str) -> String {
    let mut text = head.to_string();
    let all: Vec<Row> = done
        .iter()
        .flat_map(Reproduced::all_rows)
        .cloned()
        .collect();
    let runs = done.iter().flat_map(|change| &change.experiment.runs);
    let known: usize = runs.map(|run| run.rows.len()).sum();
    let _ = writeln!(
        text,
        "Simulated are {} of {known} rows: {}. {}.{}\n",
        all.len(),
        tally_line(&all),
        telling_line(done),
        models(&all)
            .map(|made| format!(" Made by {made}."))
            .collect::<String>(),
    );
    text += "| headline | simulated | |\n| --- | ---: | --- |\n";
    for (headline, row) in done.iter().flat_map(headlines) {
        let (value, held) = verdict(&headline, row);
        let held = match held {
            "in band" => held.to_string(),
            _ => format!("**{}**", held.to_lowercase()),
        };
        let _ = writeln!(text, "| {} | {value} | {held} |", headline.text);
    }
    text += LEGEND;
    for change in done {
        text += &section(change);
    }
    text
}

/// What the rows were made with.
pub fn models<'a>(rows: impl IntoIterator<Item = &'a Row>) -> impl Iterator<Item = String> {
    let rows = rows.into_iter();
    let models: BTreeSet<(&str, &str)> = rows
        .filter_map(|r| r.made.as_ref())
        .map(|made| (made.version.as_str(), made.model.as_str()))
        .collect();
    let say = |(version, model)| format!("fairground {version}, model `{model}`");
    let said: Vec<String> = models.into_iter().map(say).collect();
    said.into_iter()
}

fn section(change: &Reproduced) -> String {
    let e = &change.experiment;
    let mut text = format!("\n## {}: {}\n\n{}\n\n", e.change, e.title, e.source);
    if !e.mechanism.is_empty() {
        let _ = writeln!(text, "{}\n", wrap(&e.mechanism, WIDTH).join("\n"));
    }
    let _ = writeln!(text, "![change by row]({})\n", plot_name(e));
    text += "| class | run | metric | published | | change | simulated | | change \
             | 95 % interval | seeds | level |\n";
    text += "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
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
    text += &list("Not stated, and assumed", &e.unknowns);
    text + &list("Left out", &e.left_out)
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
        class if row.evidence.is_some() => class.name().to_string(),
        Class::Miss => "**miss**".into(),
        class if told => class.name().to_string(),
        class => format!("{} ?", class.name()),
    };
    let apart = row.evidence.map(|e| format!(" ({})", e.name()));
    let seeds = row.made.as_ref().map_or(0, |made| made.seeds.len());
    let level = match row.other_regime() {
        true => format!("**{}**", level_text(row).trim_end_matches(" !")),
        false => level_text(row),
    };
    format!(
        "| {class}{} | {}: `{}`, {load} | {} | {} | {} | {} | {} | {} | {} | {ends} | {seeds} \
         | {level} |",
        apart.unwrap_or_default(),
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

/// Each miss with its reason, what to know of other rows, and what was not simulated.
fn misses(change: &Reproduced) -> String {
    let (mut misses, mut cautions) = (Vec::new(), Vec::new());
    let apart = |row: &Row| {
        let apart = row
            .evidence
            .map(|e| format!(" ({}, not counted)", e.name()));
        apart.unwrap_or_default()
    };
    for (run, rows) in &change.rows {
        let mut of_run: Vec<(String, String)> = Vec::new();
        for (spec, row) in run.rows.iter().zip(rows) {
            let name = format!("{} {}", run.name, row.metric);
            if row.class == Class::Miss && row.evidence.is_none() {
                misses.push((name.clone(), why(spec, row).into()));
            }
            if let Some(caution) = &spec.caution {
                of_run.push((name + &apart(row), caution.clone()));
            }
        }
        // What is to be known of all rows of a run is said of the run.
        let first = of_run.first().map(|(_, text)| text.clone());
        let alike = of_run.len() == rows.len()
            && of_run.iter().all(|(_, text)| Some(text) == first.as_ref())
            && rows.iter().all(|row| row.evidence == rows[0].evidence);
        match (first, &rows[..]) {
            (Some(text), [row, _, ..]) if alike => {
                cautions.push((format!("{}, all rows{}", run.name, apart(row)), text));
            }
            _ => cautions.extend(of_run),
        }
    }
    let missing = runs_missing(change).map(|run| format!("{}, {} rows", run.name, run.rows.len()));
    let points = |named| -> Vec<String> {
        let point = |(names, text)| format!("**{names}**: {text}");
        grouped(named).into_iter().map(point).collect()
    };
    list("Misses", &points(misses))
        + &list("To know before believing", &points(cautions))
        + &list("Not run", &missing.collect::<Vec<_>>())
}

/// Points under a title, wrapped; nothing if there are none.
fn list(title: &str, points: &[String]) -> String {
    if points.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}:\n\n");
    for point in points {
        let _ = writeln!(text, "- {}", wrap(point, WIDTH - 2).join("\n  "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_says_which_command_made_the_page() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        // The committed page is of all changes, perhaps with fewer seeds or of saved rows.
        let command = docs.split('`').nth(1).expect("a command");
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        let ends = ["fairground reproduce --all", "--markdown docs"];
        assert!(
            command.starts_with(ends[0]) && command.ends_with(ends[1]),
            "{command}"
        );
        let whole = Calls::One(Some(WHOLE));
        let made = [whole, Calls::One(None), Calls::Several].map(|calls| head(5, &command, calls));
        assert_ne!(made[0], made[2]);
        assert!(
            made.iter().any(|head| docs.starts_with(head.as_str())),
            "{docs:.500}"
        );
        let part = "fairground reproduce lazy-h-load --quick --markdown somewhere/else";
        let part = head(1, part, Calls::One(None));
        assert!(
            part.starts_with("# A published change, reproduced\n"),
            "{part}"
        );
        let flat = part.replace('\n', " ");
        assert!(flat.contains("lazy-h-load --quick --markdown somewhere/else`; do not edit.  "));
    }
}

//! `fairground reproduce`: the published tables of the founding changes beside simulated ones.
//!
//! ```text
//!   experiments/*.toml ─► experiment ─► runner (jobs, in parallel) ─► rows ─► text, JSON, page
//!                                          └─ measure: a run as the published quantity
//! ```

mod experiment;
mod html;
mod measure;
mod page;
mod plot;
mod runner;
mod sensitivity;
mod window;

use std::path::PathBuf;

use clap::Args;
use fairground_report::reproduce::{Row, reproduce_text, tally_line, tells};

use crate::failure::Failure;
use crate::output;
use experiment::{Experiment, RowSpec, RunSpec};

/// `fairground reproduce`.
#[derive(Debug, Args)]
#[command(
    after_help = "Changes are those of `fairground list patches`; docs/reproduction.md has the \
                        result of --all with an explanation of every miss."
)]
pub struct ReproduceArgs {
    /// Names of the changes
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// All changes
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// A part of the rows, one or two seeds each: minutes instead of half an hour
    #[arg(long)]
    pub quick: bool,
    /// At most so many seeds for each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Only runs whose name fits (`*` any text), e.g. 'udp_rr-spr-*'
    #[arg(long, value_name = "GLOB", default_value = "*")]
    pub only: String,
    /// Threads [default: one per CPU of this computer]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub jobs: Option<u16>,
    /// Write the rows as JSON (schemas/); `-` is standard output, then without a table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page that opens in a browser without a network: the tables, and why rows are missed
    #[arg(long, value_name = "FILE", conflicts_with = "sensitivity")]
    pub report: Option<PathBuf>,
    /// Write reproduction.md and a plot for each change to this directory; with --sensitivity its
    /// table into calibration.md there
    #[arg(long, value_name = "DIR")]
    pub markdown: Option<PathBuf>,
    /// Show rows saved with --json instead of simulating [repeatable]
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["quick", "jobs", "json", "seeds", "sensitivity"])]
    pub saved: Vec<PathBuf>,
    /// Vary each assumed figure over its range and say which classes stay (the runs of --quick)
    #[arg(long, conflicts_with_all = ["json", "saved"])]
    pub sensitivity: bool,
    /// Show counters, cache lines and functions of each run
    #[arg(long)]
    pub explain: bool,
    /// No progress
    #[arg(long)]
    pub no_progress: bool,
}

/// A change with its rows: run by run, in the order of the tables.
pub struct Reproduced {
    experiment: Experiment,
    /// Rows by run.
    rows: Vec<(RunSpec, Vec<Row>)>,
    /// `sched_wakeup_new` lines by run, base and patch, where they were asked for.
    traces: Vec<(String, [Vec<String>; 2])>,
    /// Counters, lines and functions by run, where they were asked for.
    explained: Vec<(String, String)>,
}

impl Reproduced {
    fn all_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flat_map(|(_, rows)| rows)
    }

    /// The rows with what is compared in them.
    fn asked(&self) -> impl Iterator<Item = (&RowSpec, &Row)> {
        self.rows
            .iter()
            .flat_map(|(run, rows)| run.rows.iter().zip(rows))
    }
}

/// How many of the rows can tell what they are asked, beside how they are classed.
fn telling_line<'a>(done: impl IntoIterator<Item = &'a Reproduced>) -> String {
    let asked = done.into_iter().flat_map(Reproduced::asked);
    let (mut told, mut all) = (0, 0);
    for (spec, row) in asked {
        told += usize::from(tells(spec.kind, row));
        all += 1;
    }
    format!("{told} of {all} rows can tell: events enough, and intervals narrow enough")
}

/// Simulates what is asked for, and prints and writes it.
///
/// # Errors
/// An unknown name, a place that cannot be written, a run that fails.
pub fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let mut experiments = experiment::select(&args.names)?;
    let quick = args.quick || args.sensitivity;
    for e in &mut experiments {
        e.runs
            .retain(|r| fits(&args.only, &r.name) && (r.quick > 0 || !quick));
        if quick {
            e.runs = e.runs.drain(..).map(RunSpec::shortened).collect();
        }
        for run in &mut e.runs {
            run.seeds = run.seeds.min(args.seeds.unwrap_or(u64::MAX));
        }
    }
    experiments.retain(|e| !e.runs.is_empty());
    if experiments.is_empty() {
        let message = format!("no run is called `{}`", args.only);
        return Err(Failure::with_help(
            message,
            "leave out --only to see all names",
        ));
    }
    let place = |path: &Option<PathBuf>| path.as_deref().map(output::Place::new).transpose();
    let (json, report) = (place(&args.json)?, place(&args.report)?);
    if args.sensitivity {
        return sensitivity::sensitivity(&experiments, args);
    }
    let done = if args.saved.is_empty() {
        runner::simulate(experiments, args)?
    } else {
        saved(&args.saved, experiments)?
    };
    let rows: Vec<&Row> = done.iter().flat_map(Reproduced::all_rows).collect();
    if let Some(place) = &json {
        let text = serde_json::to_string_pretty(&rows)
            .map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        place.write(&(text + "\n"))?;
    }
    if let Some(place) = &report {
        let words = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
        let page = html::report(&done, &format!("fairground {words}"));
        place.write(&page.map_err(Failure::new)?)?;
    }
    if let Some(dir) = &args.markdown {
        page::write(dir, &done)?;
    }
    if [&json, &report]
        .into_iter()
        .flatten()
        .any(output::Place::is_stdout)
    {
        return Ok(());
    }
    output::stdout(&text(&done))
}

/// The tables, the traces, the headlines and the count of classes.
fn text(done: &[Reproduced]) -> String {
    let mut text = String::new();
    let mut all = Vec::new();
    for change in done {
        let e = &change.experiment;
        let rows: Vec<Row> = change.all_rows().cloned().collect();
        text += &format!("{}: {}\n{}\n\n", e.change, e.title, e.source);
        text += &reproduce_text(&rows);
        for (run, [base, patch]) in &change.traces {
            text += &format!("\n{run}, base:\n{}\n", base.join("\n"));
            text += &format!("{run}, patch:\n{}\n", patch.join("\n"));
        }
        for (run, explanation) in &change.explained {
            text += &format!("\n{run}\n{explanation}");
        }
        text += "\n";
        for (headline, row) in headlines(change) {
            let held = if headline.holds(row) {
                "in band"
            } else {
                "MISSED "
            };
            let value = headline
                .value(row)
                .map_or("-".into(), |v| format!("{v:.1}"));
            text += &format!("{held}  {}: {value}\n", headline.text);
        }
        text += &format!("{}\n{}\n\n", tally_line(&rows), telling_line([change]));
        all.extend(rows);
    }
    if done.len() > 1 {
        let kept = |of: &[(fairground_report::reproduce::Headline, &Row)]| {
            of.iter().filter(|(h, row)| h.holds(row)).count()
        };
        let headlines: Vec<_> = done.iter().flat_map(headlines).collect();
        text += &format!("all changes: {}\n", tally_line(&all));
        text += &format!("{}\n", telling_line(done));
        let (held, asked) = (kept(&headlines), headlines.len());
        text += &format!("headlines in their bands: {held} of {asked}\n");
    }
    text
}

/// The headlines whose rows were simulated.
fn headlines(change: &Reproduced) -> Vec<(fairground_report::reproduce::Headline, &Row)> {
    let found = change.experiment.headline.iter().filter_map(|h| {
        let (_, rows) = change.rows.iter().find(|(run, _)| run.name == h.run)?;
        let fits = |r: &&Row| h.metric == "*" || r.metric == h.metric;
        // Of a headline about a whole table the row that breaks it, if there is one.
        let mut rows = rows.iter().filter(fits);
        let first = rows.clone().next()?;
        let broken = rows.find(|row| !h.headline().holds(row));
        Some((h.headline(), broken.unwrap_or(first)))
    });
    found.collect()
}

/// Rows of files, put where they belong by change, load, workload and metric.
fn saved(paths: &[PathBuf], experiments: Vec<Experiment>) -> Result<Vec<Reproduced>, Failure> {
    let mut rows: Vec<Row> = Vec::new();
    for path in paths {
        let fail = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| fail(&e))?;
        let these: Vec<Row> = serde_json::from_str(&text).map_err(|e| fail(&e))?;
        rows.extend(these);
    }
    let place = |experiment: Experiment| -> Result<Reproduced, Failure> {
        let (mut found, mut runs) = (Vec::new(), experiment.runs.clone());
        for run in runs.drain(..) {
            let machine = runner::machine_name(&run);
            let of_run = |r: &&Row| {
                (&r.change, &r.machine, &r.workload, &r.load)
                    == (&experiment.change, &machine, &run.workload, &run.load)
            };
            let known = |r: &&Row| run.rows.iter().any(|spec| spec.metric == r.metric);
            let these: Vec<Row> = rows.iter().filter(of_run).filter(known).cloned().collect();
            if these.len() == run.rows.len() {
                found.push((run, these));
            }
        }
        Ok(Reproduced {
            experiment,
            rows: found,
            traces: Vec::new(),
            explained: Vec::new(),
        })
    };
    experiments.into_iter().map(place).collect()
}

/// Whether `name` fits `glob`, in which `*` stands for any text.
fn fits(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        None => glob == name,
        Some((head, tail)) => {
            let Some(rest) = name.strip_prefix(head) else {
                return false;
            };
            let starts = rest.char_indices().map(|(i, _)| i).chain([rest.len()]);
            starts.into_iter().any(|i| fits(tail, &rest[i..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn globs() {
        assert!(fits("*", "udp_rr-spr-75"));
        assert!(fits("udp_rr-*-75", "udp_rr-spr-75"));
        assert!(!fits("udp_rr-*-75", "udp_rr-spr-100"));
        assert!(!fits("udp", "udp_rr"));
        assert!(fits("*spr*", "udp_rr-spr-75"));
    }
}

//! `fairground reproduce`: what was published about five changes beside what is simulated.
//!
//! ```text
//!   experiments/*.toml ─► experiment ─► jobs ─► runner (in parallel) ─► rows ─► text, JSON, page
//!                                         keep ◄───┘ └─ measure: a run as the published quantity
//! ```

mod experiment;
mod hash;
mod html;
mod jobs;
mod keep;
mod measure;
mod model;
mod page;
mod plot;
mod reasons;
mod runner;
mod saved;
mod sensitivity;
mod varied;
mod window;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fairground_report::reproduce::{Headline, Of, Row, reproduce_text, tally_line, tells};
use fairground_report::{Redo, foot_text, labelled, redo_command};
use fairground_sim::glob::fits;
use fairground_sim::workload::duration;

use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::output;
use experiment::{Experiment, HeadlineSpec, RowSpec, RunSpec};

/// How long `--all` starts simulations, so that it ends within half an hour.
const WHOLE: Duration = Duration::from_secs(1500);

/// `fairground reproduce`.
#[derive(Debug, Args)]
#[command(
    after_help = "Changes are those of `fairground list patches` that were published with tables: \
                  tg-load-avg-ratelimit, ilb-skip-redundant, idlest-util-tiebreak, lazy-h-load, \
                  cfs-rq-reorder. docs/reproduction.md has the result of --all, with the reason of \
                  every miss that has one."
)]
pub struct ReproduceArgs {
    /// Names of the changes
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "saved"])]
    pub names: Vec<String>,
    /// All changes
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// A part of the rows, one or two seeds each: minutes instead of half an hour
    #[arg(long)]
    pub quick: bool,
    /// Keep the outcome of each simulation in this directory, and reuse those of the same model,
    /// machine, workload and seed: a run that was stopped goes on
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Start no simulation after this time (e.g. 25m or 10h); rows without one are `not run`. Those
    /// that a headline is about come first, then one seed of all, then more of what takes least
    /// [default: 1500s with --all, but for --quick, --seeds and --sensitivity]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub within: Option<Duration>,
    /// Say on standard error how much CPU time each run took
    #[arg(long)]
    pub times: bool,
    /// At most N seeds for each run
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
    /// Show rows saved with --json, of --quick as well, instead of simulating; of a run that is in
    /// two files the later one counts [repeatable]
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["quick", "jobs", "json", "seeds", "sensitivity", "keep",
                                "within", "times"])]
    pub saved: Vec<PathBuf>,
    /// Vary each assumed figure over its range and say which verdicts stay: one seed of the
    /// runs that a headline is about
    #[arg(long, conflicts_with_all = ["json", "saved"])]
    pub sensitivity: bool,
    /// Show counters, cache lines and functions of each run
    #[arg(long)]
    pub explain: bool,
    /// No progress
    #[arg(long)]
    pub no_progress: bool,
}

impl ReproduceArgs {
    /// When no simulation is started any more: all seeds of all rows take longer than one waits.
    fn limit(&self) -> Option<Duration> {
        let whole = self.all && !self.quick && self.seeds.is_none() && !self.sensitivity;
        self.within.or(whole.then_some(WHOLE))
    }
}

/// A length of time on the command line.
fn time(text: &str) -> Result<Duration, String> {
    duration::parse_length_ns(text).map(Duration::from_nanos)
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
    for (spec, row) in asked.filter(|(_, row)| row.evidence.is_none()) {
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
    let names = run_names(&experiments, args.quick);
    for e in &mut experiments {
        choose(e, args);
    }
    experiments.retain(|e| !e.runs.is_empty());
    if experiments.is_empty() {
        let message = format!("no run is called `{}`", args.only);
        return Err(Failure::with_help(message, format!("there are {names}")));
    }
    let inputs = Inputs::new(&args.saved);
    let place = |option: &str, path: &Option<PathBuf>| {
        let path = path.as_deref();
        path.map(|p| output::Place::new(option, p, &inputs))
            .transpose()
    };
    let (json, report) = (
        place("--json", &args.json)?,
        place("--report", &args.report)?,
    );
    if args.sensitivity {
        return sensitivity::sensitivity(&experiments, args);
    }
    let markdown = args.markdown.as_deref();
    let markdown = markdown.map(|dir| page::Places::new(dir, &experiments, &inputs));
    let markdown = markdown.transpose()?;
    let mut places = vec![("--json", json.as_ref()), ("--report", report.as_ref())];
    let pages = markdown.iter().flat_map(page::Places::all);
    places.extend(pages.map(|place| ("--markdown", Some(place))));
    output::all_differ(&places)?;
    let done = if args.saved.is_empty() {
        runner::simulate(experiments, args)?
    } else {
        let mut done = saved::saved(&args.saved, experiments)?;
        // Without a name, those that the files are about.
        done.retain(|r| args.all || !args.names.is_empty() || r.all_rows().next().is_some());
        done
    };
    let rows: Vec<&Row> = done.iter().flat_map(Reproduced::all_rows).collect();
    if let Some(place) = &json {
        let text = serde_json::to_string_pretty(&rows)
            .map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        place.write(&(text + "\n"))?;
    }
    if let Some(place) = &report {
        let page = html::report(&done, &command(args));
        place.write(&page.map_err(Failure::new)?)?;
    }
    if let Some(places) = &markdown {
        places.write(&done, &command(args), calls(args))?;
    }
    if [&json, &report]
        .into_iter()
        .flatten()
        .any(output::Place::is_stdout)
    {
        return Ok(());
    }
    output::stdout(&(text(&done) + &foot(&rows, args)))
}

/// What was typed, without what changes no row. If earlier calls have a part in it, `--within` says
/// only when the last one stopped.
fn command(args: &ReproduceArgs) -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if calls(args) == page::Calls::Several {
        while let Some(at) = words.iter().position(|w| w.starts_with("--within")) {
            let own_word = !words[at].contains('=');
            words.drain(at..(at + 1 + usize::from(own_word)).min(words.len()));
        }
    }
    redo_command(&words)
}

/// How the outcomes came to be.
fn calls(args: &ReproduceArgs) -> page::Calls {
    match &args.keep {
        Some(_) => page::Calls::Several,
        None => page::Calls::One(args.saved.is_empty().then(|| args.limit()).flatten()),
    }
}

/// The runs that `--only` chooses from.
fn run_names(experiments: &[Experiment], quick: bool) -> String {
    let runs = experiments.iter().flat_map(|e| &e.runs);
    let runs = runs.filter(|run| run.quick > 0 || !quick);
    let names: Vec<&str> = runs.map(|run| run.name.as_str()).collect();
    names.join(", ")
}

/// Leaves the runs that are asked for, as they are asked for.
fn choose(e: &mut Experiment, args: &ReproduceArgs) {
    let asked = |run: &RunSpec| {
        let headline = || e.headline.iter().any(|h| h.run == run.name);
        fits(&args.only, &run.name)
            && (run.quick > 0 || !args.quick)
            && (!args.sensitivity || headline())
    };
    e.runs = e.runs.iter().filter(|run| asked(run)).cloned().collect();
    if args.quick {
        e.runs = e.runs.drain(..).map(RunSpec::shortened).collect();
    }
    let most = args.seeds.unwrap_or(match args.sensitivity {
        true => 1,
        false => u64::MAX,
    });
    for run in &mut e.runs {
        run.seeds = run.seeds.min(most);
    }
}

/// What the rows were made with, and how to get them again.
fn foot(rows: &[&Row], args: &ReproduceArgs) -> String {
    let redo = Redo {
        command: command(args),
        ..Redo::new(&[], Vec::new(), Vec::new())
    };
    let made = page::models(rows.iter().copied());
    let made: String = made.map(|made| labelled("made by", &made)).collect();
    made + &foot_text(&redo, &[])
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
            let (value, held) = verdict(&headline, row);
            text += &format!("{held:<7}  {}: {value}\n", headline.text);
        }
        text += &not_run(change);
        text += &format!("{}\n{}\n\n", tally_line(&rows), telling_line([change]));
        all.extend(rows);
    }
    if done.len() > 1 {
        let headlines: Vec<_> = done.iter().flat_map(headlines).collect();
        let held = |(h, row): &&(Headline, Option<&Row>)| row.is_some_and(|row| h.holds(row));
        text += &format!("all changes: {}\n", tally_line(&all));
        text += &format!("{}\n", telling_line(done));
        let (held, asked) = (headlines.iter().filter(held).count(), headlines.len());
        text += &format!("headlines in their bands: {held} of {asked}\n");
    }
    text
}

/// The number of a headline's row, and whether it is in its band.
fn verdict(headline: &Headline, row: Option<&Row>) -> (String, &'static str) {
    let Some(row) = row else {
        return ("-".into(), "not run");
    };
    let value = match headline.of {
        Of::NoMiss => counts(row),
        _ => headline.value(row).map(|v| format!("{v:.1}")),
    };
    let held = match headline.holds(row) {
        true => "in band",
        false => "MISSED",
    };
    (value.unwrap_or("-".into()), held)
}

/// Simulated of published counts, base and patch: `4 of 4, 4 of 4`.
fn counts(row: &Row) -> Option<String> {
    let (s, p) = (&row.simulated, &row.published);
    let of = |s: Option<f64>, p: Option<f64>| Some(format!("{} of {}", s?, p?));
    Some(format!(
        "{}, {}",
        of(s.base, p.base)?,
        of(s.patch, p.patch)?
    ))
}

/// The headlines of the runs that were asked for, each with the number of its run.
fn asked(experiment: &Experiment) -> impl Iterator<Item = (usize, &HeadlineSpec)> {
    experiment.headline.iter().filter_map(|headline| {
        let mut runs = experiment.runs.iter();
        Some((runs.position(|run| run.name == headline.run)?, headline))
    })
}

/// The headlines of the runs that were asked for, with their rows if those were simulated.
fn headlines(change: &Reproduced) -> Vec<(Headline, Option<&Row>)> {
    let with_row = |(_, h): (usize, &HeadlineSpec)| {
        let rows = change.rows.iter().find(|(run, _)| run.name == h.run);
        let rows = rows.map_or(&[][..], |(_, rows)| rows);
        let fits = |r: &&Row| h.metric == "*" || r.metric == h.metric;
        // Of a headline about a whole table the row that breaks it, if there is one.
        let mut rows = rows.iter().filter(fits);
        let first = rows.clone().next();
        let broken = rows.find(|row| !h.headline().holds(row));
        (h.headline(), broken.or(first))
    };
    asked(&change.experiment).map(with_row).collect()
}

/// Runs that were asked for and have no rows, as the time was over or no file had them.
fn runs_missing(change: &Reproduced) -> impl Iterator<Item = &RunSpec> {
    let known = |run: &&RunSpec| change.rows.iter().all(|(done, _)| done.name != run.name);
    change.experiment.runs.iter().filter(known)
}

fn not_run(change: &Reproduced) -> String {
    let line = |run: &RunSpec| format!("not run  {} ({} rows)\n", run.name, run.rows.len());
    runs_missing(change).map(line).collect()
}

//! `fairground compare`: two variants simulated side by side, or two saved results. Several
//! machines or workloads at once are in [`crate::signs`].

use std::io::Read;
use std::path::{Path, PathBuf};

use fairground_report::html::{Samples, compare_page};
use fairground_report::{Compare, FailOn, Saved, compare_saved, compare_text, csv_of_compare};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::pair::{Pair, titles};
use crate::report;
use crate::signs;
use crate::simulate::{Keep, simulate};
use crate::usual;

/// Largest saved result that is read: 10 000 runs are about half of it.
const BYTES_MAX: u64 = 1 << 30;

/// Compares, writes, and gives the reasons why `--fail-on` wants a failure.
///
/// # Errors
/// Anything that keeps it from running or writing.
pub fn compare(args: &CompareArgs, command_line: &[String]) -> Result<Vec<String>, Failure> {
    let conditions = args
        .fail_on
        .iter()
        .map(|text| FailOn::parse(text).map_err(Failure::new))
        .collect::<Result<Vec<_>, _>>()?;
    if args.whole && args.config.is_empty() {
        return Err(Failure::with_help(
            "--whole is about the series of a configuration, but there is none",
            "name one with --config; `fairground list configs` shows all",
        ));
    }
    output::leaves(&args.how, &args.files)?;
    if let [base, patch] = &args.files[..] {
        let result = saved(args, base, patch)?;
        return written(&Output::new(&args.how)?, &conditions, &result, "", &[]);
    }
    if signs::several(args) {
        return signs::compare(args, &conditions, command_line);
    }
    if !args.metric.is_empty() {
        return Err(Failure::with_help(
            "--metric says what the verdicts of several machines are about, but there is one",
            "leave it out, or give several: --machine A,B",
        ));
    }
    let file = args.files.first().map(PathBuf::as_path);
    let pair = Pair::new(args, &args.what, file, &args.workload)?;
    let catalogue = pair.catalogue();
    for condition in &conditions {
        condition
            .check(&catalogue, pair.plan.seeds.len())
            .map_err(Failure::new)?;
    }
    // Before the minutes, not after them.
    let output = Output::new(&args.how)?;
    let (result, samples) = simulated(args, &pair, command_line)?;
    let title = titles(&args.what)?;
    written(&output, &conditions, &result, &title, &samples)
}

/// Writes the result, and gives the reasons why `--fail-on` wants a failure.
fn written(
    output: &Output<'_>,
    conditions: &[FailOn],
    result: &Compare,
    title: &str,
    samples: &[Samples],
) -> Result<Vec<String>, Failure> {
    output.write(
        &|| serde_json::to_string_pretty(result),
        &|| csv_of_compare(result),
        &|style| title.to_string() + &compare_text(result, style),
        &|style| compare_page(result, samples, style),
    )?;
    // What was simulated is written, whatever can be decided.
    let mut reasons = Vec::new();
    for condition in conditions {
        let met = condition.evaluate(result).map_err(Failure::new)?;
        reasons.extend(met.map(|m| m.reason));
    }
    Ok(reasons)
}

fn simulated(
    args: &CompareArgs,
    pair: &Pair,
    command_line: &[String],
) -> Result<(Compare, Vec<Samples>), Failure> {
    let jobs = pair.jobs();
    let mut simulated = simulate(&jobs, &pair.plan.seeds, &args.how, Keep::All)?;
    usual::share(&mut simulated.outcomes);
    let samples = report::of_runs(&jobs, &simulated, &["base", "patch"]);
    let [base, patch] = <[_; 2]>::try_from(simulated.outcomes)
        .map_err(|_| Failure::new("two variants gave other than two lists of runs"))?;
    Ok((pair.result(base, patch, command_line), samples))
}

fn saved(args: &CompareArgs, base: &Path, patch: &Path) -> Result<Compare, Failure> {
    let own = [
        ("--base", !args.base.is_empty()),
        ("--base-profile", args.base_profile.is_some()),
        ("--metric", !args.metric.is_empty()),
    ];
    let simulates = [&args.what.given()[..], &own].concat();
    if let Some((option, _)) = simulates.iter().find(|(_, given)| *given) {
        return Err(Failure::with_help(
            format!("{option} says what to simulate, but two files are saved results"),
            "leave it out, or give one scenario file",
        ));
    }
    let result = compare_saved(load(base)?, load(patch)?);
    // With --quiet there is no table that they would stand below.
    let differ = |note: &&String| note.starts_with("the results differ");
    for note in result
        .notes
        .iter()
        .filter(differ)
        .filter(|_| args.how.quiet)
    {
        crate::stderr(&format!("note: {note}\n"));
    }
    Ok(result)
}

fn load(path: &Path) -> Result<Saved, Failure> {
    let name = path.display();
    let cannot =
        |e: std::io::Error| Failure::new(format!("cannot read the saved result `{name}`: {e}"));
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut text = String::new();
    file.take(BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    if text.len() as u64 > BYTES_MAX {
        let limit = BYTES_MAX >> 20;
        return Err(Failure::new(format!("`{name}` has more than {limit} MiB")));
    }
    if text.trim().is_empty() {
        let help = "expected what `fairground run --json` or `compare --json` writes";
        return Err(Failure::with_help(format!("`{name}` is empty"), help));
    }
    Saved::parse(&text).map_err(|e| {
        let help = "two files are compared as saved results: write them with --json";
        Failure::with_help(format!("{name}: {e}"), help)
    })
}

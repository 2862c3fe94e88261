//! `fairground compare`: two variants simulated side by side. Two saved results are in
//! [`crate::saved`], several machines or workloads at once in [`crate::signs`].

use std::path::PathBuf;

use fairground_report::html::{Samples, compare_page};
use fairground_report::{Catalogue, Compare, FailOn, compare_text, csv_of_compare};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::output::Output;
use crate::pair::Pair;
use crate::plan::titles;
use crate::report;
use crate::saved;
use crate::signs;
use crate::simulate::{Keep, simulate};
use crate::usual;

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
    if let [base, patch] = &args.files[..] {
        let result = saved::compare(args, base, patch)?;
        let catalogue = Catalogue::new(result.metric_info.iter().cloned());
        let runs = result.variants.iter().map(|v| v.runs.len()).min();
        check(&conditions, &catalogue, runs.unwrap_or(0))?;
        let output = Output::new(&args.how, args.most, &Inputs::new(&args.files))?;
        return written(&output, &conditions, &result, "", &[]);
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
    check(&conditions, &pair.catalogue(), pair.plan.seeds.len())?;
    // Before the minutes, not after them.
    let output = Output::new(&args.how, args.most, &pair.plan.inputs)?;
    let (result, samples) = simulated(args, &pair, command_line)?;
    let title = titles(&args.what)?;
    written(&output, &conditions, &result, &title, &samples)
}

/// What can never be decided, whatever comes of the runs: nothing is simulated or written for it.
fn check(conditions: &[FailOn], catalogue: &Catalogue, runs: usize) -> Result<(), Failure> {
    let mut conditions = conditions.iter();
    conditions.try_for_each(|c| c.check(catalogue, runs).map_err(Failure::new))
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

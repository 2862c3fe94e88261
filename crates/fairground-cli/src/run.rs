//! `fairground run`.

use fairground_report::html::run_page;
use fairground_report::{Note, RunResult, csv_of_run, run_text};
use fairground_sim::exact::Exact;

use crate::args::RunArgs;
use crate::decided;
use crate::explain::{self, Asking};
use crate::failure::Failure;
use crate::glue;
use crate::group_settings::side_by_side;
use crate::output::{Output, stdout};
use crate::plan::{Plan, Side, patches};
use crate::report;
use crate::simulate::{Keep, simulate};
use crate::traced::Traced;

/// Runs a workload and writes what came of it.
///
/// # Errors
/// Anything that keeps it from running or writing.
pub fn run(args: &RunArgs, command_line: &[String]) -> Result<(), Failure> {
    let plan = Plan::new(&args.what, args.scenario.as_deref(), &args.workload)?;
    let patches = patches(&args.what.patch)?;
    let mut case = plan.case(plan.profile, &patches, Side::Patch, &args.what.set)?;
    case.check()?;
    side_by_side(&mut [&mut case]);
    let job = case.job(&plan.machine);
    let seed = plan.seeds.first().copied().unwrap_or(1);
    if let Some(asked) = &args.explain {
        let setup = fairground_sim::machine::Setup {
            machine: job.machine,
            features: job.features.clone(),
            workload: job.workload,
            seed,
            trace: true,
        };
        let asking = Asking {
            setup: &setup,
            exact: &Exact::default(),
            identities: &|born| fairground_trace::simulated::identities(job.workload, born),
            origin_ns: 0,
            of_recording: false,
        };
        return stdout(&explain::answer(&asking, asked)?);
    }
    let output = Output::new(&args.how, args.most, &plan.inputs)?;
    let traced = |path| Traced::new("--trace", path, &plan.inputs);
    let trace = args.trace.as_deref().map(traced).transpose()?;
    if let Some(trace) = &trace {
        output.refuse_same("--trace", trace.place())?;
    }
    if args.at.is_some() && trace.as_ref().is_some_and(|t| !t.is_instant()) {
        let help = "tracepoints are of the whole run, stacks of all that is measured";
        let message = "--at goes with --trace FILE.schedstat or FILE.debug";
        return Err(Failure::with_help(message, help));
    }
    let mut simulated = simulate(&[job], &plan.seeds, &args.how, Keep::All)?;
    if let Some(trace) = trace {
        if let (Some(at_ns), [first, ..]) = (args.at, &simulated.outcomes[0][..]) {
            ends_later(at_ns, job.workload.warmup_ns + first.elapsed_ns)?;
        }
        trace.write(job, seed, args.at)?;
    }
    let samples = report::of_runs(&[job], &simulated, &["run"]);
    let setup = glue::setup(&plan, &case, plan.profile.name.into(), command_line);
    let told = decided::of_runs(&plan, &case, &patches, &args.what.set);
    let mut result = RunResult::new(
        setup,
        glue::variant(&case, simulated.outcomes.remove(0), told),
    )
    .with_changes(decided::beside_profile(&case.features, plan.profile));
    // Of this command line, not of what was run.
    let vain = decided::already_in(&patches, plan.profile);
    result.notes.extend(vain.into_iter().map(Note::Said));
    output.write(
        &|| serde_json::to_string_pretty(&result),
        &|| csv_of_run(&result),
        &|style| run_text(&result, style),
        &|style| run_page(&result, &samples, style),
    )
}

/// A moment after the end of the run is none of the run.
fn ends_later(at_ns: u64, ends_ns: u64) -> Result<(), Failure> {
    if at_ns <= ends_ns {
        return Ok(());
    }
    let [at, ends] = [at_ns, ends_ns].map(|ns| ns as f64 / 1e6);
    let message = format!("--at {at:.3} ms: the run ends after {ends:.3} ms");
    Err(Failure::new(message))
}

//! `fairground compare`: two variants simulated side by side, or two saved results.

use std::io::Read;
use std::path::{Path, PathBuf};

use fairground::policy::Patch;
use fairground_report::html::{Samples, compare_page};
use fairground_report::{
    Catalogue, Compare, FailOn, Saved, compare_saved, compare_text, csv_of_compare,
};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::glue;
use crate::output::Output;
use crate::plan::{Plan, Side, patches, profile_named, side_by_side};
use crate::report;
use crate::simulate::{Keep, simulate};

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
    let (result, title, samples) = match &args.files[..] {
        [base, patch] => (saved(args, base, patch)?, String::new(), Vec::new()),
        files => simulated(args, files.first(), &conditions, command_line)?,
    };
    let output = Output::new(&args.how)?;
    let mut reasons = Vec::new();
    for condition in &conditions {
        let met = condition.evaluate(&result).map_err(Failure::new)?;
        reasons.extend(met.map(|m| m.reason));
    }
    output.write(
        &|| serde_json::to_string_pretty(&result),
        &|| csv_of_compare(&result),
        &|style| title.clone() + &compare_text(&result, style),
        &|style| compare_page(&result, &samples, style),
    )?;
    Ok(reasons)
}

fn simulated(
    args: &CompareArgs,
    file: Option<&PathBuf>,
    conditions: &[FailOn],
    command_line: &[String],
) -> Result<(Compare, String, Vec<Samples>), Failure> {
    let what = &args.what;
    let patches = patches(&what.patch)?;
    if patches.is_empty()
        && what.set.is_empty()
        && args.base.is_empty()
        && args.base_profile.is_none()
    {
        return Err(Failure::with_help(
            "nothing to compare",
            "give --patch, --set, --base or --base-profile, or two saved results; \
             `fairground list patches` shows the patches",
        ));
    }
    let plan = Plan::new(what, file.map(PathBuf::as_path), &args.workload)?;
    let base_profile = match &args.base_profile {
        Some(name) => profile_named(name)?,
        None => plan.profile,
    };
    let mut base = plan.case(base_profile, &patches, Side::Base, &args.base)?;
    let mut patch = plan.case(plan.profile, &patches, Side::Patch, &what.set)?;
    base.check()?;
    patch.check()?;
    side_by_side(&mut [&mut base, &mut patch]);
    let catalogue = Catalogue::new(glue::metric_info(&patch.workload));
    for condition in conditions {
        condition
            .check(&catalogue, plan.seeds.len())
            .map_err(Failure::new)?;
    }
    // Before the minutes, not after them.
    Output::new(&args.how)?;
    let jobs = [base.job(&plan.machine), patch.job(&plan.machine)];
    let simulated = simulate(&jobs, &plan.seeds, &args.how, Keep::All)?;
    let samples = report::of_runs(&jobs, &simulated, &["base", "patch"]);
    let profile = if base_profile.name == plan.profile.name {
        plan.profile.name.into()
    } else {
        format!("{} (base: {})", plan.profile.name, base_profile.name)
    };
    let setup = glue::setup(&plan, &patch, profile, command_line);
    let [base_runs, patch_runs] = <[_; 2]>::try_from(simulated.outcomes)
        .map_err(|_| Failure::new("two variants gave other than two lists of runs"))?;
    let (base, patch) = (
        glue::variant(&base, base_runs),
        glue::variant(&patch, patch_runs),
    );
    let alike = base.decisions == patch.decisions && base.settings == patch.settings;
    let mut result = Compare::new(setup, base, patch);
    if alike {
        let note = "base and patch make the same decisions, so all differences are 0";
        result.notes.push(note.into());
    }
    Ok((result, patches.iter().map(|p| title(p)).collect(), samples))
}

/// What a patch is and where it comes from.
fn title(patch: &Patch) -> String {
    format!(
        "{}: {}\n          {}\n",
        patch.name, patch.what, patch.origin
    )
}

fn saved(args: &CompareArgs, base: &Path, patch: &Path) -> Result<Compare, Failure> {
    let what = &args.what;
    let simulates = [
        ("--machine", what.machine.is_some()),
        ("--cpus", what.cpus.is_some()),
        ("--profile", what.profile.is_some()),
        ("--patch", !what.patch.is_empty()),
        ("--set", !what.set.is_empty()),
        ("--seeds", what.seeds.is_some()),
        ("--seed", what.seed.is_some()),
        ("--base", !args.base.is_empty()),
        ("--base-profile", args.base_profile.is_some()),
    ];
    if let Some((option, _)) = simulates.iter().find(|(_, given)| *given) {
        return Err(Failure::with_help(
            format!("{option} says what to simulate, but two files are saved results"),
            "leave it out, or give one scenario file",
        ));
    }
    Ok(compare_saved(load(base)?, load(patch)?))
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

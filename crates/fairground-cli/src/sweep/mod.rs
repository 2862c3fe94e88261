//! `fairground sweep`: a product of settings, each point over the seeds.

pub mod args;
mod twice;

use fairground::policy::Features;
use fairground_report::{
    Axis, Catalogue, MachineId, PointAbout, Sweep, Target, Tried, csv_of_sweep, products,
    sweep_page, sweep_text,
};
use fairground_sim::workload::Workload;

use crate::apart;
use crate::decided;
use crate::failure::Failure;
use crate::glue;
use crate::group_files::{self, GroupFile, Write};
use crate::group_settings::{full_reserve, side_by_side, with_counted};
use crate::how::{How, Most};
use crate::inputs::Inputs;
use crate::machine_id::machine_id;
use crate::output::Output;
use crate::plan::{Case, Plan, Side, patches, set};
use crate::simulate::{Job, Keep, simulate};
use crate::sweep::args::{Over, SweepArgs};
use crate::usual;
use crate::what::{Setting, What};

/// Most points: a thousand rows are no table any more.
const POINTS_MAX: usize = 1000;

/// What can be swept beside decisions and files of groups.
const OF_MACHINES: [&str; 4] = ["cpus", "machine", "max-idle", "profile"];

/// Runs all points and writes what came of them.
///
/// # Errors
/// Anything that keeps it from running or writing.
pub fn sweep(args: &SweepArgs, command_line: &[String]) -> Result<(), Failure> {
    let targets = args
        .target
        .iter()
        .map(|text| Target::parse(text).map_err(Failure::new));
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    let mut points = Points::new(args)?;
    let axes = points.axes(&args.over)?;
    let mut tried = points.tried(&axes)?;
    let cases = tried.iter_mut().filter_map(|t| t.case.as_mut().ok());
    let mut cases: Vec<&mut Case> = cases.collect();
    side_by_side(&mut cases);
    for case in cases {
        case.apart = apart::groups(args.metric.iter().chain(&args.target));
    }
    let first = tried
        .iter()
        .find_map(|t| Some((t.plan, t.case.as_ref().ok()?)));
    let Some((first, case)) = first else {
        let why = tried.into_iter().find_map(|t| t.case.err());
        return Err(Failure::with_help(
            "no point can be run",
            why.unwrap_or_default(),
        ));
    };
    let plan = &points.plans[first].1;
    let catalogue = Catalogue::new(glue::metric_info(&case.workload, &case.apart));
    for metric in &args.metric {
        catalogue.get(metric).map_err(Failure::new)?;
    }
    for target in &targets {
        target.check(&catalogue).map_err(Failure::new)?;
    }
    let output = Output::new(&args.how, Most::default(), &points.inputs())?;
    let jobs = tried.iter().filter_map(|trial| {
        let case = trial.case.as_ref().ok()?;
        Some(case.job(&points.plans[trial.plan].1.machine))
    });
    let jobs: Vec<Job<'_>> = jobs.collect();
    let quick = How {
        report: None,
        ..args.how.clone()
    };
    let mut done = simulate(&jobs, &plan.seeds, &quick, Keep::Metrics)?;
    usual::share(&mut done.outcomes);
    let setup = glue::setup(plan, case, plan.profile.name.into(), command_line);
    let mut outcomes = done.outcomes.into_iter();
    let runs = |trial: &Trial| -> Tried {
        let case = trial.case.as_ref().map_err(String::clone)?;
        // What must be known of it is told with its point.
        let ran = outcomes.next().unwrap_or_default();
        Ok(glue::variant(case, ran, Vec::new()))
    };
    let ran = tried.iter().map(runs).collect();
    let result = Sweep::new(setup, axes, ran, &args.metric, &targets);
    let mut result = result.map_err(Failure::new)?;
    points.describe(&tried, &mut result);
    full_reserve(&mut result, &case.workload);
    output.write(
        &|| serde_json::to_string_pretty(&result),
        &|| csv_of_sweep(&result),
        &|style| sweep_text(&result, style),
        &|style| sweep_page(&result, style),
    )?;
    if args.how.quiet {
        tell_refused(&result);
    }
    Ok(())
}

/// There is no table that would say which points the kernel refuses, and why.
fn tell_refused(result: &Sweep) {
    for point in &result.points {
        if let Some(why) = &point.refused {
            let name = &point.variant.name;
            crate::stderr(&format!("note: not run: {name}: {why}\n"));
        }
    }
}

/// A point.
struct Trial {
    /// The place of its plan.
    plan: usize,
    /// What was set.
    settings: Vec<Setting>,
    /// What is run, or why the kernel refuses it.
    case: Result<Case, String>,
}

/// Plans by what of them is swept: machine, CPUs, profile.
struct Points<'a> {
    args: &'a SweepArgs,
    patches: Vec<&'static fairground::policy::Patch>,
    plans: Vec<([Option<String>; 4], Plan)>,
}

impl<'a> Points<'a> {
    fn new(args: &'a SweepArgs) -> Result<Self, Failure> {
        Ok(Self {
            args,
            patches: patches(&args.what.patch)?,
            plans: Vec::new(),
        })
    }

    /// The place of the plan with these values of [`OF_MACHINES`].
    fn plan(&mut self, values: [Option<String>; 4]) -> Result<usize, Failure> {
        if let Some(known) = self.plans.iter().position(|(key, _)| *key == values) {
            return Ok(known);
        }
        let args = self.args;
        let mut what = args.what.clone();
        let [cpus, machine, max_idle, profile] = values.clone();
        if let Some(cpus) = cpus {
            what.cpus = vec![cpus_of(&cpus)?];
        }
        if let Some(machine) = machine {
            what.machine = vec![machine];
        }
        what.max_idle = max_idle.or(what.max_idle);
        what.profile = profile.or(what.profile);
        let plan = Plan::new(&what, args.scenario.as_deref(), &args.workload)?;
        self.plans.push((values, plan));
        Ok(self.plans.len() - 1)
    }

    /// What is read for all of them.
    fn inputs(&self) -> Inputs {
        let mut all = Inputs::default();
        for (_, plan) in &self.plans {
            all.add(&plan.inputs);
        }
        all
    }

    /// What is swept, with full names and sizes; all values checked.
    fn axes(&mut self, over: &[Over]) -> Result<Vec<Axis>, Failure> {
        // Of the first machine that is asked for, to know the groups.
        let first = OF_MACHINES.map(|name| {
            let axis = over.iter().find(|axis| axis.name == name)?;
            axis.values.first().cloned()
        });
        let plan = self.plan(first)?;
        let workload = &self.plans[plan].1.workload;
        let mut axes: Vec<Axis> = Vec::new();
        for Over { name, values } in over {
            let name = full_name(name, values, workload)?;
            if axes.iter().any(|axis| axis.name == name) {
                return Err(Failure::new(format!("`--over {name}` is there twice")));
            }
            if let Some(option) = beaten(&self.args.what, &name, values, workload)? {
                let what = format!("`--over {name}` and `{option}` say different things");
                return Err(Failure::with_help(what, "leave one of them out"));
            }
            twice::refuse(&name, values, workload)?;
            let sizes = sizes(&name, values, workload)?;
            axes.push(Axis {
                name,
                values: values.clone(),
                sizes,
            });
        }
        for (number, axis) in axes.iter().enumerate() {
            let files = group_files_of(&axis.name, &axis.values, workload)?;
            for other in &axes[..number] {
                let others = group_files_of(&other.name, &other.values, workload)?;
                if files.iter().any(|file| others.contains(file)) {
                    let message =
                        format!("`{}` and `{}` write the same file", other.name, axis.name);
                    return Err(Failure::with_help(message, "sweep over one of them"));
                }
            }
        }
        let points = axes.iter().map(|axis| axis.values.len());
        match points.fold(1usize, usize::saturating_mul) {
            points if points > POINTS_MAX => {
                let message = format!("{points} points; expected at most {POINTS_MAX}");
                Err(Failure::with_help(message, "leave out some values"))
            }
            _ => Ok(axes),
        }
    }

    /// Each point with the place of its plan; those that the kernel refuses with its words.
    fn tried(&mut self, axes: &[Axis]) -> Result<Vec<Trial>, Failure> {
        let mut tried = Vec::new();
        for values in products(axes) {
            let of = |name: &str| {
                let axis = axes.iter().position(|axis| axis.name == name)?;
                Some(values[axis].clone())
            };
            let at = self.plan(OF_MACHINES.map(of))?;
            let plan = &self.plans[at].1;
            let named = axes.iter().zip(&values);
            let swept = named.filter(|(axis, _)| !OF_MACHINES.contains(&axis.name.as_str()));
            let mut settings = self.args.what.set.clone();
            settings.extend(swept.map(|(axis, value)| setting(&axis.name, value)));
            let case = plan.case(plan.profile, &self.patches, Side::Patch, &settings)?;
            let refusal = group_files::refusal(&case.workload, &case.files);
            tried.push(Trial {
                plan: at,
                settings,
                case: refusal.map_or(Ok(case), Err),
            });
        }
        Ok(tried)
    }

    /// Says of each point on which machine it was, with which profile, and what to know of it.
    fn describe(&self, tried: &[Trial], result: &mut Sweep) {
        let mut whole: Vec<MachineId> = Vec::new();
        let mut about = Vec::new();
        for trial in tried {
            let plan = &self.plans[trial.plan].1;
            if !whole.contains(&plan.whole) {
                whole.push(plan.whole.clone());
            }
            let case = trial.case.as_ref();
            let notes = |case| decided::of_case(plan, case, &self.patches, &trial.settings);
            about.push(PointAbout {
                machine: machine_id(&plan.machine),
                profile: plan.profile.name.into(),
                notes: case.map_or(Vec::new(), notes),
            });
        }
        result.describe(whole, about);
    }
}

/// What else on the command line says what is swept over, and would not count.
fn beaten(
    what: &What,
    name: &str,
    values: &[String],
    workload: &Workload,
) -> Result<Option<String>, Failure> {
    let option = match name {
        "cpus" => what.cpus.first().map(|n| format!("--cpus {n}")),
        "machine" => what.machine.first().map(|m| format!("--machine {m}")),
        "max-idle" => what
            .max_idle
            .as_ref()
            .map(|state| format!("--max-idle {state}")),
        "profile" => what.profile.as_ref().map(|p| format!("--profile {p}")),
        _ => None,
    };
    let files = group_files_of(name, values, workload)?;
    for set in &what.set {
        let others = group_files_of(&set.name, std::slice::from_ref(&set.value), workload)?;
        if set.name == name || files.iter().any(|file| others.contains(file)) {
            return Ok(Some(format!("--set {}={}", set.name, set.value)));
        }
    }
    Ok(option)
}

/// Group and file of all that an axis writes, if it writes files.
fn group_files_of(
    name: &str,
    values: &[String],
    workload: &Workload,
) -> Result<Vec<(usize, String)>, Failure> {
    let (true, Some(value)) = (name.contains('/'), values.first()) else {
        return Ok(Vec::new());
    };
    let file = name.rsplit('/').next().unwrap_or_default();
    let groups = GroupFile::read(&setting(name, value))?.find(&group_files::paths(workload))?;
    Ok(groups.into_iter().map(|g| (g, file.to_string())).collect())
}

fn setting(name: &str, value: &str) -> Setting {
    Setting {
        name: name.into(),
        value: value.into(),
    }
}

fn cpus_of(value: &str) -> Result<usize, Failure> {
    let cpus = value.parse().ok().filter(|n| *n > 0);
    cpus.ok_or_else(|| Failure::new(format!("`cpus` cannot be `{value}`: expected a number")))
}

/// A file of a group with its path; any other name as it is.
fn full_name(name: &str, values: &[String], workload: &Workload) -> Result<String, Failure> {
    if name.contains('/') || !group_files::is_meant(name) {
        return Ok(name.into());
    }
    let file = group_files::file_named(name)?;
    let paths = group_files::paths(workload);
    let limited = workload.limited();
    let group = match limited[..] {
        [one] => paths.get(one as usize),
        // There is no other.
        [] if paths.len() == 2 => paths.get(1),
        _ => None,
    };
    if let Some(group) = group {
        return Ok(format!("{group}/{file}"));
    }
    let candidates: Vec<&str> = match limited[..] {
        [] => paths[1..].iter().map(String::as_str).collect(),
        _ => limited.iter().map(|g| &*paths[*g as usize]).collect(),
    };
    let message = match limited.len() {
        0 => format!("`{name}` of which group? None has a limit"),
        n => format!("`{name}` of which group? {n} have a limit"),
    };
    let example = format!("`--over '/GROUP/{file}={}'`", values.join(","));
    let help = match candidates[..] {
        [] => "there are no groups: declare some in the scenario".into(),
        _ => {
            let candidates = with_counted(&candidates);
            format!("say {example}; {}", group_files::listed(&candidates))
        }
    };
    Err(Failure::with_help(message, help))
}

/// How large the values are, if they are numbers; all of them checked.
fn sizes(
    name: &str,
    values: &[String],
    workload: &Workload,
) -> Result<Option<Vec<Option<f64>>>, Failure> {
    if name == "cpus" {
        let cpus = values.iter().map(|value| Ok(Some(cpus_of(value)? as f64)));
        return cpus.collect::<Result<_, _>>().map(Some);
    }
    if OF_MACHINES.contains(&name) {
        return Ok(None);
    }
    if !name.contains('/') {
        for value in values {
            set(&mut Features::default(), name, value)?;
        }
        let numbers = values
            .iter()
            .map(|value| value.parse::<f64>().ok().map(Some));
        return Ok(numbers.collect());
    }
    let paths = group_files::paths(workload);
    let size = |value: &String| {
        let file = GroupFile::read(&setting(name, value))?;
        // None is an error.
        let group = file.find(&paths)?[0];
        let before = workload.cgroups[group].period_ns;
        Ok(match file.write {
            Write::Max {
                quota_ns,
                period_ns,
            } => quota_ns.map(|ns| ns as f64 / period_ns.unwrap_or(before) as f64),
            Write::Burst(ns) => Some(ns as f64 / 1e3),
            Write::Weight(weight) => Some(weight as f64),
            Write::Idle(idle) => Some(f64::from(u8::from(idle))),
            Write::Cpus(cpus) => Some(cpus.len() as f64),
        })
    };
    values.iter().map(size).collect::<Result<_, _>>().map(Some)
}

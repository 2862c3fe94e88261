//! From what the simulator leaves behind to what reports are made of.

use std::collections::BTreeMap;

use fairground::policy::{Decision, Features, decisions};
use fairground_report::{
    AssumedFigure, Better, CpuStat, GroupStat, Halves, IdleState, LIMITED, LineTraffic, MetricInfo,
    OpenRequests, Redo, Run, Setup, Variant, Work, group_metrics,
};
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{IdleUse, Outcome};
use fairground_sim::workload::{self, Cgroup, Workload};
use fairground_trace::simulated::FIRST_TID;

use crate::group_files::max_text;
use crate::limit_events;
use crate::machine_id::machine_id;
use crate::plan::{Case, Plan};
use crate::watched;

/// Of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Most cache lines that a result keeps per run.
const LINES_MAX: usize = 200;

/// What base and patch have in common.
pub fn setup(plan: &Plan, case: &Case, profile: String, command_line: &[String]) -> Setup {
    Setup {
        fairground: VERSION.into(),
        machine: machine_id(&plan.machine),
        profile,
        workload: plan.workload.argv.clone(),
        workload_metrics: metric_info(&case.workload, &case.apart),
        redo: Redo {
            conditions: conditions(plan),
            ..Redo::new(command_line, plan.seeds.clone(), assumed(&plan.machine))
        },
    }
}

/// What decides the results beside what is named elsewhere. Two builds of a changed engine have one
/// version, so the sources' hash is among it.
fn conditions(plan: &Plan) -> BTreeMap<String, String> {
    let mut all = plan.conditions.clone();
    all.insert("sources".into(), env!("FAIRGROUND_SOURCES").into());
    all
}

/// Every decision with its value.
pub fn decisions_of(features: &Features) -> BTreeMap<String, String> {
    let value = |d: &Decision| (d.name.to_string(), (d.get)(features));
    decisions().iter().map(value).collect()
}

/// The decisions that have no part because of others.
pub fn without_part(features: &Features) -> Vec<String> {
    let vain = decisions().iter().filter(|d| d.no_part(features).is_some());
    vain.map(|d| d.name.to_string()).collect()
}

/// The decisions, settings and runs of one side; `told` is what must be known of them.
pub fn variant(case: &Case, outcomes: Vec<Outcome>, told: Vec<String>) -> Variant {
    let mut runs: Vec<Run> = outcomes.into_iter().map(run).collect();
    for run in &mut runs {
        watched::of_single_groups(run, &|group| case.apart.contains(&group.path));
    }
    limit_events::tell(&case.workload, &mut runs);
    Variant {
        decisions: decisions_of(&case.features),
        without_part: without_part(&case.features),
        settings: case.settings.clone(),
        told,
        runs,
        ..Variant::default()
    }
}

/// What a workload measures by itself, and what is counted where a group has a limit; `apart`:
/// groups that are asked for by name.
pub fn metric_info(workload: &Workload, apart: &[String]) -> Vec<MetricInfo> {
    let info = |m: &workload::MetricDef| MetricInfo {
        name: m.name.clone(),
        unit: m.unit.clone(),
        better: match m.better {
            workload::Better::Lower => Some(Better::Lower),
            workload::Better::Higher => Some(Better::Higher),
            workload::Better::Neither => None,
        },
        description: describe(m.from, workload),
    };
    let counted = workload.counted_groups();
    let paths = counted.iter().map(|g| &*workload.cgroups[*g as usize].path);
    let paths: Vec<&str> = paths.collect();
    let limited = if paths.is_empty() { &[][..] } else { LIMITED };
    let own = workload.metrics.iter().map(info);
    own.chain(limited.iter().map(|&m| m.into()))
        .chain(group_metrics(&paths, apart))
        .collect()
}

fn describe(from: workload::From, w: &Workload) -> String {
    use workload::From;
    let mark = |k: u32| w.marks.get(k as usize).map_or("?", String::as_str);
    let request = |k: u32| w.requests.get(k as usize).map_or("?", String::as_str);
    match from {
        From::SpanS { start, end } => {
            format!("Time from `{}` to `{}`.", mark(start), mark(end))
        }
        From::SpanUsPer { start, end, .. } => format!(
            "Time from `{}` to `{}` per operation.",
            mark(start),
            mark(end)
        ),
        From::OpsPerSpanS { start, end, .. } => format!(
            "Operations per second from `{}` to `{}`.",
            mark(start),
            mark(end)
        ),
        From::Count(k) => format!("How often `{}` was passed.", mark(k)),
        From::CountPerS(k) => format!("How often `{}` was passed per second.", mark(k)),
        From::ScaledPerS { mark: k, factor } => {
            format!("`{}` per second, each counted as {factor}.", mark(k))
        }
        From::RequestsPerS(k) => format!("`{}` that ended per second.", request(k)),
        From::Requests(k) => format!("`{}` that ended.", request(k)),
        From::RequestsPerSpanS { request: k, .. } => {
            format!(
                "`{}` that ended, per second of the tool's own time.",
                request(k)
            )
        }
        From::RequestsStddev { .. } => {
            "Standard deviation of the number of requests of the workers.".to_string()
        }
        From::RequestMeanUs(k) => format!("Mean duration of `{}`.", request(k)),
        From::RequestQuantileUs {
            request: k,
            permille,
        }
        | From::LatencyQuantileUs {
            request: k,
            permille,
        } => quantile_words(request(k), permille),
        From::CpuS | From::CpuOfS { .. } => "CPU time of all tasks of the workload.".into(),
        From::CpuShare { .. } => {
            "CPU time of these tasks as a share of the CPU time of all tasks.".into()
        }
        From::Cpus { .. } => "CPUs that these tasks used on average.".into(),
        From::Fairness { .. } => {
            "Jain's index of the tasks' CPU times: 1 is equal shares, 1/n one task that has all."
                .into()
        }
        From::CpuTime(part) => {
            let what = match part {
                workload::CpuTime::User => "user code",
                workload::CpuTime::System => "kernel code",
                workload::CpuTime::Idle => "idle",
            };
            format!("Share of all CPUs' time: {what}.")
        }
        From::FetchPct => {
            "Share of user time in which tasks fetched what their working sets had lost.".into()
        }
        From::ElapsedS => "Measured time, from the end of the warm-up.".into(),
    }
}

fn quantile_words(request: &str, permille: u32) -> String {
    match permille {
        1000 => format!("Longest duration of `{request}`."),
        _ => format!(
            "{} % quantile of the duration of `{request}`.",
            f64::from(permille) / 10.0
        ),
    }
}

/// One run as reports know it.
pub fn run(outcome: Outcome) -> Run {
    run_of(outcome, &|task| FIRST_TID + task)
}

/// The same with the thread id of each task by number.
pub fn run_of(outcome: Outcome, tid: &dyn Fn(u32) -> u32) -> Run {
    let mut run = Run::new(outcome.seed);
    let undecided = outcome.open_requests.iter().flat_map(|o| &o.undecided);
    for (name, value) in outcome.metrics {
        // Of those that were answered it would be too good.
        let known = value.filter(|_| undecided.clone().all(|(metric, _)| *metric != name));
        run.set_metric(name, known.unwrap_or(f64::NAN));
    }
    run.work = outcome.work.map(|w| Work {
        unit: w.unit,
        done: w.done,
    });
    run.samples = outcome.samples.into_iter().collect();
    run.halves = outcome.halves.into_iter().map(halves).collect();
    for (name, self_ns, calls) in outcome.functions {
        if self_ns > 0 || calls > 0 {
            run.add_function(name, self_ns, calls, outcome.busy_ns);
        }
    }
    for (name, misses) in outcome.load_misses.into_iter().chain(outcome.other_misses) {
        run.add_llc_misses(name, misses);
    }
    run.lines = outcome
        .lines
        .into_iter()
        .filter(|l| l.reads + l.writes + l.rmws > 0)
        .map(|l| LineTraffic {
            object: l.object,
            field: l.field,
            reads: l.reads,
            writes: l.writes,
            rmws: l.rmws,
            transfers: l.transfers,
            remote: l.remote,
            upgrades: l.upgrades,
            true_sharing: l.true_sharing,
            false_sharing: l.false_sharing,
            wait_ns: l.wait_ns,
        })
        .collect();
    run.sort_lines();
    run.lines.truncate(LINES_MAX);
    let state = |s: IdleUse| IdleState {
        name: s.name,
        usage: s.usage,
        time_ns: s.time_ns,
        share: Some(s.share).filter(|share| share.is_finite()),
    };
    run.idle_states = outcome.idle_states.into_iter().map(state).collect();
    run.open_requests = outcome.open_requests.into_iter().map(open).collect();
    run.groups = outcome.groups.into_iter().map(group).collect();
    if let Some(watched) = outcome.watched {
        watched::add(watched, &mut run, tid);
    }
    run.output = outcome.words.lines().map(String::from).collect();
    run
}

fn open(o: fairground_sim::open_requests::OpenRequests) -> OpenRequests {
    OpenRequests {
        request: o.request,
        open: o.open,
        ended: o.ended,
        longest_ns: o.longest_ns,
        undecided: o
            .undecided
            .iter()
            .map(|(metric, _)| metric.clone())
            .collect(),
        at_least: o.undecided.into_iter().collect(),
    }
}

fn halves((request, halves): (String, fairground_sim::workload::halves::Halves)) -> Halves {
    Halves {
        request,
        requests: halves.half.map(|half| half.requests),
        mean_us: halves.half.map(|half| half.mean_us()),
        open: Some(halves.open),
        askers: Some(halves.askers),
    }
}

fn group(g: fairground_sim::cpu_stat::GroupStat) -> GroupStat {
    GroupStat {
        path: g.path,
        counted: g.counted,
        max: max_text(g.quota_ns, g.period_ns),
        limits: Vec::new(),
        weights: Vec::new(),
        burst: g.burst_ns / 1000,
        bursts: Vec::new(),
        weight: Cgroup::nearest_weight(g.shares),
        shares: match Cgroup::weight_of_shares(g.shares) {
            Some(_) => None,
            None => Some(g.shares),
        },
        idle: g.idle,
        stat: CpuStat {
            nr_periods: g.stat.nr_periods,
            nr_throttled: g.stat.nr_throttled,
            throttled_usec: g.stat.throttled_ns / 1000,
            nr_bursts: g.stat.nr_bursts,
            burst_usec: g.stat.burst_ns / 1000,
            usage_usec: g.stat.usage_ns / 1000,
        },
        wait: None,
        work: None,
    }
}

/// Figures of a machine that nobody measured.
pub fn assumed(machine: &Machine) -> Vec<AssumedFigure> {
    let figure = |(key, f): (&str, &fairground_sim::machine_file::Figure)| AssumedFigure {
        key: key.into(),
        value: format!("{} {}", f.v, f.unit).trim_end().into(),
    };
    machine.assumed().into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use fairground_sim::machine::Setup as SimSetup;
    use fairground_sim::workload::Env;

    use super::*;

    /// In what is written: rows that have misses and no time must not get lost on the way.
    #[test]
    fn the_functions_of_a_result_have_all_misses_of_the_last_level_cache() {
        let machine = Machine::builtin("genoa-9654-2s").unwrap();
        let machine = machine.shrunk(32).unwrap();
        for line in [
            "hackbench -g 4 -f 5 --threads --pipe -l 20",
            "netperf -t UDP_RR --pairs 8 -l 2ms",
            "schbench -m 1 -t 8 -w 0 -r 5ms",
        ] {
            let argv: Vec<String> = line.split(' ').map(String::from).collect();
            let workload = Workload::from_argv(&argv, &Env { cpus: 32 }).unwrap();
            let setup = SimSetup {
                machine: &machine,
                features: Features::default(),
                workload: &workload,
                seed: 1,
                trace: false,
            };
            let run = run(fairground_sim::outcome::run(&setup).unwrap());
            let misses: u64 = run.functions.values().map(|f| f.llc_misses).sum();
            assert_eq!(run.metric("llc_misses"), Some(misses as f64), "{line}");
            assert!(misses > 0, "{line}");
        }
    }
}

//! `costs.json`: unit costs that the recorder measured without a tracer, beside the same small
//! operations on the simulated machine, with the cost table of every other experiment.

use std::collections::BTreeMap;

use fairground::policy::{Features, PipeTimes};
use serde::Deserialize;

use super::read_case::placed;
use super::row::{Row, Sample};
use super::tolerance::{Tolerance, rule_for};
use crate::machine::{Setup, Sim};
use crate::machine_file::Machine;
use crate::outcome;
use crate::spec::Scenario;
use crate::workload::{Env, Workload};

/// Name of the case in results.
pub const CASE: &str = "costs";

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Must be [`super::case::FORMAT`].
    pub format: String,
    /// What is measured, in words.
    #[serde(default)]
    pub what: BTreeMap<String, String>,
    /// Remarks.
    #[serde(default)]
    pub general: String,
    /// Mean and spread.
    pub summary: BTreeMap<String, Measured>,
    /// Every run.
    #[serde(default)]
    pub runs: serde_json::Value,
}

/// A measured cost.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (n-1).
    pub stdev: f64,
    /// Least.
    pub min: f64,
    /// Most.
    pub max: f64,
    /// Runs.
    pub n: usize,
}

impl Costs {
    /// Reads the file.
    ///
    /// # Errors
    /// A sentence with the path of the key, line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        let costs: Self = serde_path_to_error::deserialize(&mut json).map_err(placed)?;
        json.end().map_err(|e| e.to_string())?;
        if costs.format != super::case::FORMAT {
            return Err(format!(
                "format: '{}' is not '{}'",
                costs.format,
                super::case::FORMAT
            ));
        }
        Ok(costs)
    }
}

/// An operation that the simulated machine can repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `sched_yield` of a thread alone.
    YieldAlone,
    /// `FUTEX_WAKE` with nobody waiting.
    FutexWake,
    /// A thread writes a byte to a pipe and reads it.
    PipeSelf,
    /// The same by one thread of two, which share the table of files.
    PipeOfThreads,
    /// Two threads of one CPU yield: one yield of each.
    Yields,
    /// A byte goes to another thread and one comes back, on these CPUs.
    Pipe(&'static str, &'static str),
    /// As `Pipe`, with futexes.
    Futex(&'static str, &'static str),
    /// From a write to the return of the read on the other CPU, which was idle for 100 us.
    WakeIdle(&'static str, &'static str),
}

use Operation::{Futex, FutexWake, Pipe, PipeOfThreads, PipeSelf, WakeIdle, YieldAlone, Yields};

/// Name of a cost, what it is, and how many groups deep its threads are.
const ROWS: &[(&str, Operation, usize)] = &[
    ("sched_yield_alone_ns", YieldAlone, 0),
    ("futex_wake_none_ns", FutexWake, 0),
    ("pipe_write_read_self_ns", PipeSelf, 0),
    ("yield_two_threads_same_cpu_ns_per_yield_pair", Yields, 0),
    ("pipe_roundtrip_same_cpu_threads_ns", Pipe("1", "1"), 0),
    ("pipe_roundtrip_two_cpus_threads_ns", Pipe("1", "0"), 0),
    ("pipe_roundtrip_unpinned_threads_ns", Pipe("0-1", "0-1"), 0),
    ("futex_roundtrip_same_cpu_ns", Futex("1", "1"), 0),
    ("futex_roundtrip_two_cpus_ns", Futex("1", "0"), 0),
    (
        "wake_latency_idle_cpu_to_other_idle_cpu/p50",
        WakeIdle("1", "0"),
        0,
    ),
    ("wake_latency_same_cpu/p50", WakeIdle("1", "1"), 0),
    ("depth0_pipe_roundtrip_same_cpu_ns", Pipe("1", "1"), 0),
    ("depth2_pipe_roundtrip_same_cpu_ns", Pipe("1", "1"), 2),
    ("depth4_pipe_roundtrip_same_cpu_ns", Pipe("1", "1"), 4),
    ("depth6_pipe_roundtrip_same_cpu_ns", Pipe("1", "1"), 6),
    ("depth0_pipe_roundtrip_two_cpus_ns", Pipe("1", "0"), 0),
    ("depth2_pipe_roundtrip_two_cpus_ns", Pipe("1", "0"), 2),
    ("depth4_pipe_roundtrip_two_cpus_ns", Pipe("1", "0"), 4),
    ("depth6_pipe_roundtrip_two_cpus_ns", Pipe("1", "0"), 6),
    ("depth0_yield_pair_same_cpu_ns", Yields, 0),
    ("depth2_yield_pair_same_cpu_ns", Yields, 2),
    ("depth4_yield_pair_same_cpu_ns", Yields, 4),
    ("depth6_yield_pair_same_cpu_ns", Yields, 6),
];

/// Rows that have set figures of the model (docs/calibration.md), so that their agreement is no
/// test, and which figures.
const INPUTS: &[(&str, &str)] = &[
    ("sched_yield_alone_ns", "__schedule"),
    ("pipe_write_read_self_ns", "pipe_write + pipe_read"),
    (
        "yield_two_threads_same_cpu_ns_per_yield_pair",
        "switch_to_hw",
    ),
    ("depth0_yield_pair_same_cpu_ns", "switch_to_hw"),
    ("depth2_yield_pair_same_cpu_ns", "update_curr, pick_eevdf"),
    ("depth4_yield_pair_same_cpu_ns", "update_curr, pick_eevdf"),
    ("depth6_yield_pair_same_cpu_ns", "update_curr, pick_eevdf"),
    ("level_yield_pair_same_cpu_ns", "update_curr, pick_eevdf"),
    ("pipe_roundtrip_two_cpus_threads_ns", "way out of HLT"),
    ("depth0_pipe_roundtrip_two_cpus_ns", "way out of HLT"),
    ("pipe_roundtrip_same_cpu_threads_ns", SAMPLES),
    ("depth0_pipe_roundtrip_same_cpu_ns", SAMPLES),
    (
        "futex_roundtrip_same_cpu_ns",
        "futex_wait, and by samples as the pipe",
    ),
];

/// What samples of a round trip have set, as shares of it.
const SAMPLES: &str = "by samples: a wake-up, dequeue_task_fair, the return to user space";

/// What a level of groups costs: the difference between two depths by the levels between them.
const LEVELS: &[(&str, &str)] = &[
    (
        "level_pipe_roundtrip_same_cpu_ns",
        "pipe_roundtrip_same_cpu_ns",
    ),
    (
        "level_pipe_roundtrip_two_cpus_ns",
        "pipe_roundtrip_two_cpus_ns",
    ),
    ("level_yield_pair_same_cpu_ns", "yield_pair_same_cpu_ns"),
];
const DEEPEST: usize = 6;

/// Compares every cost that the machine can repeat; the others are skipped.
///
/// # Errors
/// When a machine has too few CPUs.
pub fn check(costs: &Costs, machine: &Machine, seeds: &[u64]) -> Result<Vec<Row>, String> {
    let mut simulated: BTreeMap<String, Sample> = BTreeMap::new();
    let mut rows = Vec::new();
    for (name, operation, depth) in ROWS {
        let Some(measured) = costs.summary.get(*name) else {
            continue;
        };
        let values: Result<Vec<f64>, _> = seeds
            .iter()
            .map(|seed| nanoseconds(*operation, *depth, machine, *seed))
            .collect();
        let sample = Sample::of(&values?);
        simulated.insert((*name).to_string(), sample);
        rows.push(row(name, *measured, sample));
    }
    for (name, of) in LEVELS {
        let key = |depth: usize| format!("depth{depth}_{of}");
        let both = |depth| Some((costs.summary.get(&key(depth))?, simulated.get(&key(depth))?));
        if let (Some((a, sa)), Some((b, sb))) = (both(0), both(DEEPEST)) {
            let levels = DEEPEST as f64;
            let measured = Measured {
                mean: (b.mean - a.mean) / levels,
                stdev: a.stdev.hypot(b.stdev) / levels,
                min: (b.min - a.max) / levels,
                max: (b.max - a.min) / levels,
                n: a.n.min(b.n),
            };
            let mean = (sb.mean - sa.mean) / levels;
            rows.push(row(
                name,
                measured,
                Sample {
                    mean,
                    sd: 0.0,
                    n: sb.n,
                },
            ));
        }
    }
    let others = costs.summary.iter();
    for (name, measured) in others.filter(|(name, _)| !simulated.contains_key(*name)) {
        let reason = "an input of the machine file, or not of the scheduler".into();
        rows.push(Row::skipped(
            CASE,
            name,
            unit(name),
            sample(measured),
            reason,
        ));
    }
    Ok(rows)
}

/// The unit, which is in the name.
fn unit(name: &str) -> &'static str {
    match name {
        _ if name.contains("_us_each") || name.contains("usecs_") => "us",
        _ if name.ends_with("gaps_1s") => "%",
        _ if name.ends_with("_s") => "s",
        _ => "ns",
    }
}

fn sample(measured: &Measured) -> Sample {
    Sample {
        mean: measured.mean,
        sd: measured.stdev,
        n: measured.n,
    }
}

fn row(name: &str, measured: Measured, simulated: Sample) -> Row {
    let recorded = sample(&measured);
    let tolerance = rule_for("cost").map_or(Tolerance::Skipped("no rule"), |r| r.two_cpus);
    let range = [measured.min, measured.max];
    let sets = INPUTS.iter().find(|(input, _)| *input == name);
    Row {
        reason: sets.map(|(_, figures)| format!("input, no test: it has set {figures}")),
        ..Row::judged(CASE, name, "ns", &range, recorded, simulated, tolerance)
    }
}

/// How long an operation takes, ns.
///
/// # Errors
/// When the machine cannot run it.
pub fn nanoseconds(
    operation: Operation,
    depth: usize,
    machine: &Machine,
    seed: u64,
) -> Result<f64, String> {
    turn(operation, depth, machine, super::kernel::profile()?, seed)
}

/// [`nanoseconds`] on another kernel.
fn turn(
    operation: Operation,
    depth: usize,
    machine: &Machine,
    features: Features,
    seed: u64,
) -> Result<f64, String> {
    let text = scenario(operation, depth);
    let cpus = machine.topology.nr_cpus() as u32;
    let workload = Scenario::parse("costs", &text)
        .and_then(|s| s.workload(&Env { cpus }))
        .map_err(|e| e.to_string())?;
    let setup = Setup {
        machine,
        features,
        workload: &workload,
        seed,
        trace: false,
    };
    if matches!(operation, WakeIdle(..)) {
        return latency_p50(&setup, &workload);
    }
    let out = outcome::run(&setup).map_err(|e| e.to_string())?;
    let rate = out.metrics.iter().find(|m| m.0 == "turn.marks_per_s");
    let rate = rate.and_then(|m| m.1).ok_or("no turns were counted")?;
    Ok(1e9 / rate)
}

/// Cycles of this machine's cores for the same kernel code, relative to those of the cost table
/// (`alu.core_cycles`), by what a byte written to a pipe and read back by one thread of several
/// takes, ns. The core and what the kernel was built with are both in it: return thunks and
/// retpolines make the same code take several times as many cycles.
///
/// `pipe_times` are those of the measured kernel. `None` if no pace would take so long, or so
/// short.
///
/// # Errors
/// When the machine cannot run it.
pub fn core_cycles(
    machine: &Machine,
    pipe_write_read_ns: f64,
    pipe_times: PipeTimes,
) -> Result<Option<f64>, String> {
    let mut features = super::kernel::profile()?;
    features.files.pipe_times = pipe_times;
    let at = |pace: f64| {
        let machine = machine.with_figure(CORE_CYCLES, pace);
        let machine = machine.map_err(|e| e.to_string())?;
        turn(PipeOfThreads, 0, &machine, features.clone(), 1)
    };
    // The time is a part that the pace does not change, and one that it multiplies.
    let (one, two) = (at(1.0)?, at(2.0)?);
    let pace = 1.0 + (pipe_write_read_ns - one) / (two - one);
    Ok(PLAUSIBLE_PACE.contains(&pace).then_some(pace))
}

/// Path of the figure that [`core_cycles`] finds; the machine must have one.
pub const CORE_CYCLES: &str = "alu.core_cycles";
const PLAUSIBLE_PACE: std::ops::Range<f64> = 0.3..20.0;

/// Median time from the mark before each write to the one after its read.
fn latency_p50(setup: &Setup<'_>, workload: &Workload) -> Result<f64, String> {
    let mut sim = Sim::new(setup).map_err(|e| e.to_string())?;
    sim.run().map_err(|e| e.to_string())?;
    let at = |name: String| {
        let mark = workload.marks.iter().position(|m| *m == name)?;
        let stat = sim.marks.marks.get(mark)?;
        (stat.seen > 0).then_some(stat.first_ns as f64)
    };
    let taken = |i: usize| Some(at(format!("b{i}"))? - at(format!("a{i}"))?);
    let mut all: Vec<f64> = (COLD..TURNS).filter_map(taken).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2)
        .copied()
        .ok_or_else(|| "no wake-up was seen".to_string())
}

/// Turns of [`WakeIdle`], and how many of them do not count.
const TURNS: usize = 60;
const COLD: usize = 10;

/// The operation as a scenario of two threads of one process.
#[must_use]
pub fn scenario(operation: Operation, depth: usize) -> String {
    let path = |depth: usize| {
        (1..=depth)
            .map(|level| format!("/d{level}"))
            .collect::<String>()
    };
    let group = if depth == 0 { "/".into() } else { path(depth) };
    let mut text = String::from(
        "name = \"costs\"\nduration = \"100ms\"\nwarmup = \"20ms\"\npipes = [\"a\", \"b\"]\n\
         futexes = [\"f\"]\nsemaphores = { s = 0, t = 0 }\n",
    );
    for level in 1..=depth {
        text += &format!("[[cgroup]]\npath = \"{}\"\n", path(level));
    }
    let task = |name: &str, cpus: &str, steps: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nprocess = \"c\"\naffinity = \"{cpus}\"\n\
             cgroup = \"{group}\"\nsteps = [{steps}]\n"
        )
    };
    let turns = |steps: &str| format!("{{ loop = \"forever\", steps = [{steps}] }}");
    let counted = |steps: &str| turns(&format!("{steps}, {{ mark = \"turn\" }}"));
    let alone = |steps: &str| task("one", "1", &counted(steps));
    let pair = |(a, b): (&str, &str), one: &str, two: &str| {
        task("one", a, &counted(one)) + &task("two", b, &turns(two))
    };
    let (write_a, read_a) = (
        "{ write = \"a\", bytes = 1 }",
        "{ read = \"a\", bytes = 1 }",
    );
    let (write_b, read_b) = (
        "{ write = \"b\", bytes = 1 }",
        "{ read = \"b\", bytes = 1 }",
    );
    text + &match operation {
        YieldAlone => alone("\"yield\""),
        FutexWake => alone("{ futex_wake = \"f\", n = 1 }"),
        PipeSelf => alone(&format!("{write_a}, {read_a}")),
        PipeOfThreads => alone(&format!("{write_a}, {read_a}")) + &task("other", "1", read_b),
        Yields => pair(("1", "1"), "\"yield\"", "\"yield\""),
        Pipe(a, b) => {
            let (one, two) = (
                format!("{write_a}, {read_b}"),
                format!("{read_a}, {write_b}"),
            );
            pair((a, b), &one, &two)
        }
        Futex(a, b) => {
            let (one, two) = (
                "{ post = \"s\" }, { wait = \"t\" }",
                "{ wait = \"s\" }, { post = \"t\" }",
            );
            pair((a, b), one, two)
        }
        WakeIdle(a, b) => {
            let each = |turn: &dyn Fn(usize) -> String| {
                let all: Vec<String> = (0..TURNS).map(turn).collect();
                all.join(", ")
            };
            let one = |i: usize| {
                format!("{{ sleep = \"100us\" }}, {{ mark = \"a{i}\" }}, {write_a}, {read_b}")
            };
            let two = |i: usize| format!("{read_a}, {{ mark = \"b{i}\" }}, {write_b}");
            task("one", a, &each(&one)) + &task("two", b, &each(&two))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Verdict;
    use super::*;

    #[test]
    fn inputs_are_rows() {
        let names: Vec<&str> = ROWS
            .iter()
            .map(|r| r.0)
            .chain(LEVELS.iter().map(|l| l.0))
            .collect();
        for (input, _) in INPUTS {
            assert!(names.contains(input), "{input}");
        }
        let measured = Measured {
            mean: 200.0,
            stdev: 1.0,
            min: 199.0,
            max: 201.0,
            n: 5,
        };
        let sample = Sample::of(&[200.0]);
        let reason = |name| row(name, measured, sample).reason;
        assert!(reason("sched_yield_alone_ns").is_some_and(|r| r.contains("__schedule")));
        assert_eq!(reason("futex_wake_none_ns"), None);
    }

    #[test]
    fn every_operation_runs() {
        let machine = Machine::builtin("spr-guest-2cpu").expect("a built-in machine");
        for (name, operation, depth) in ROWS.iter().filter(|r| r.2 == 0) {
            let ns = nanoseconds(*operation, *depth, &machine, 1).expect(name);
            assert!((50.0..50_000.0).contains(&ns), "{name}: {ns}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_and_what_cannot_be_repeated_is_named() {
        let text = r#"{"format": "kernel-truth/1", "summary": {"line_ns":
            {"mean": 1, "stdev": 0, "min": 1, "max": 1, "n": 5}}}"#;
        let costs = Costs::parse(text).expect("a file");
        let machine = Machine::builtin("spr-guest-2cpu").expect("a built-in machine");
        let rows = check(&costs, &machine, &[1]).expect("rows");
        assert_eq!(rows.len(), 1);
        let row = (rows[0].metric.as_str(), rows[0].verdict);
        assert_eq!(row, ("line_ns", Verdict::Skipped));
        let error = Costs::parse(&text.replace("stdev", "sd")).expect_err("unknown key");
        assert!(error.contains("sd") && error.contains("line"), "{error}");
    }
}

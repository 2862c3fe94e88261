//! What a run leaves behind, as plain data for reports.

use std::sync::atomic::Ordering::Relaxed;

use fairground::event::Migration;
use fairground::value::TgId;

use crate::cache::{LineStats, NS};
use crate::cpu_stat::{self, GroupStat};
use crate::host::Places;
use crate::machine::{Setup, SetupError, Sim, Stays, Stuck};
use crate::open_requests::{OpenRequests, open_requests};
use crate::watch::Watched;
use crate::workload::Workload;
use crate::workload::halves::Halves;
use crate::workload::marks::Marks;
use crate::workload::metric::MetricDef;
use crate::workload::work::{WorkDone, work_done};

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Seed of the run.
    pub seed: u64,
    /// Metrics in order: the workload's own, then those that every run has. `None`: the run has
    /// nothing to say about it.
    pub metrics: Vec<(String, Option<f64>)>,
    /// How many events of the window stand behind a metric of the workload that counts some.
    pub counted: Vec<(String, u64)>,
    /// What the run got done, where it ended at a time.
    pub work: Option<WorkDone>,
    /// How many requests or wake-ups stand behind each metric that is a quantile.
    pub samples: Vec<(String, u64)>,
    /// Kinds of request with what each half of the window had of them, if that has halves.
    pub halves: Vec<(String, Halves)>,
    /// Self time (ns) and calls by function, of the whole kernel and user code.
    pub functions: Vec<(&'static str, u64, u64)>,
    /// Loads of the scheduler's data that missed the last-level cache, by function.
    pub load_misses: Vec<(&'static str, u64)>,
    /// The same of all other lines that are simulated. Both together are `llc_misses`.
    pub other_misses: Vec<(&'static str, u64)>,
    /// Time of all CPUs that was not idle, ns.
    pub busy_ns: u64,
    /// The machine's idle states, shallowest first.
    pub idle_states: Vec<IdleUse>,
    /// Traffic by structure and line, most transfers first.
    pub lines: Vec<Traffic>,
    /// Wake-up latencies by value (ns, as the histogram rounds it) and number.
    pub latency: Vec<(u64, u64)>,
    /// `cpu.stat` of the groups with a limit, and of those with a weight of their own.
    pub groups: Vec<GroupStat>,
    /// What the real tool would print.
    pub words: String,
    /// Simulated time, ns.
    pub elapsed_ns: u64,
    /// Events processed.
    pub events: u64,
    /// Context switches.
    pub switches: u64,
    /// Requests to an idle CPU to balance for the others (`kick_ilb`).
    pub ilb_kicks: u64,
    /// Those of them that asked for nothing that was not already asked for.
    pub ilb_redundant: u64,
    /// Placements of woken and new tasks on another CPU than their last: what of `migrations` is
    /// seen by who compares `select_task_rq_fair`'s answer with the previous CPU.
    pub placed_elsewhere: u64,
    /// Time of `kick_ilb` in the atomic update of those flags, ns: in its load, and in its swaps.
    pub ilb_cas_ns: [u64; 2],
    /// Requests that were not answered by the end. What they leave undecided has no value in
    /// `metrics`, or that of those that were.
    pub open_requests: Vec<OpenRequests>,
    /// What came of watching the run, if it was watched.
    pub watched: Option<Watched>,
    /// All tasks that live at the end wait for each other, if they do: who for what.
    pub stuck: Option<Vec<String>>,
    /// Tracepoints, if they were kept.
    pub trace: Vec<crate::host::TraceLine>,
}

/// What CPUs were in an idle state for.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleUse {
    /// Its name.
    pub name: String,
    /// Stays of all CPUs that ended in the measured time or last at its end.
    pub usage: u64,
    /// Their time within it, the way out left aside, ns.
    pub time_ns: u64,
    /// `time_ns` as a part of the time of all CPUs, 0 to 1.
    pub share: f64,
}

/// Traffic of one line of one kind of structure, summed over instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The structure; a group by its path.
    pub object: String,
    /// Fields on the line, comma-separated.
    pub field: String,
    /// Plain loads.
    pub reads: u64,
    /// Plain stores.
    pub writes: u64,
    /// Atomic updates.
    pub rmws: u64,
    /// Times the line came from another core.
    pub transfers: u64,
    /// Transfers that crossed sockets.
    pub remote: u64,
    /// Times other copies were invalidated without data.
    pub upgrades: u64,
    /// Misses because a word that was used had been written elsewhere.
    pub true_sharing: u64,
    /// Misses because only another word of the line had been written elsewhere.
    pub false_sharing: u64,
    /// Time spent queueing for it, ns.
    pub wait_ns: u64,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload does not fit the machine.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run came to a standstill.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// It was still going on when the allowed number of events was used up.
    #[error("the workload was not at its end after {events} events, at {at_ns} ns")]
    Budget {
        /// Events allowed.
        events: u64,
        /// How far it came, ns.
        at_ns: u64,
    },
}

/// Runs `setup` once.
///
/// # Errors
/// When the workload does not fit the machine or deadlocks.
pub fn run(setup: &Setup<'_>) -> Result<Outcome, RunError> {
    let mut sim = Sim::new(setup)?;
    let end = sim.run()?;
    Ok(outcome(&sim, setup, end / NS))
}

/// Runs `setup` once and watches it: the same outcome, and what came of watching.
///
/// # Errors
/// As [`run`].
pub fn run_watched(setup: &Setup<'_>) -> Result<Outcome, RunError> {
    let mut sim = Sim::new(setup)?;
    sim.begin_watch();
    let end = sim.run()?;
    let watched = sim.end_watch();
    let outcome = outcome(&sim, setup, end / NS);
    Ok(Outcome { watched, ..outcome })
}

/// Runs `setup` once, for at most `events` events.
///
/// # Errors
/// As [`run`], and when that is not enough.
pub fn run_within(setup: &Setup<'_>, events: u64) -> Result<Outcome, RunError> {
    let mut sim = Sim::new(setup)?;
    let end = sim.run_within(events)?.ok_or(RunError::Budget {
        events,
        at_ns: sim.now / NS,
    })?;
    Ok(outcome(&sim, setup, end / NS))
}

/// Self time (ns) and calls by function.
fn functions(sim: &Sim<'_>) -> Vec<(&'static str, u64, u64)> {
    let rows = sim.host.profile.rows();
    rows.map(|(name, ps, calls)| (name, ps / NS, calls))
        .collect()
}

pub(crate) fn outcome(sim: &Sim<'_>, setup: &Setup<'_>, end_ns: u64) -> Outcome {
    let counters = &sim.host.counters;
    let elapsed_ns = end_ns.saturating_sub(setup.workload.warmup_ns);
    let capacity = elapsed_ns as f64 * setup.machine.topology.nr_cpus() as f64;
    let busy = (sim.busy_within() / NS) as f64;
    let (lines, transfers) = traffic(sim);
    let (misses, from_memory) = llc_misses(sim, setup);
    let latency = |q: f64| {
        (!counters.latency.is_empty()).then(|| counters.latency.value_at_quantile(q) as f64 / 1e3)
    };
    let total = sim.host.profile.total_ps();
    let sched = sim.host.profile.scheduler_ps();
    let percent = |part: f64, whole: f64| (whole > 0.0).then(|| 100.0 * part / whole);
    let own = |m: &MetricDef| (m.name.clone(), m.value(&sim.marks));
    let mut metrics: Vec<_> = setup.workload.metrics.iter().map(own).collect();
    let groups = sim.group_stats();
    metrics.extend(cpu_stat::metrics(&groups));
    let always: [(&str, Option<f64>); 13] = [
        ("wakeups", Some(counters.wakeups as f64)),
        ("migrations", Some(counters.all_migrations() as f64)),
        ("switches", Some(counters.switches as f64)),
        ("line_transfers", Some(transfers as f64)),
        (
            "lock_wait_ns",
            Some(sim.host.lock_wait() as f64 / NS as f64),
        ),
        ("busy_pct", percent(busy, capacity)),
        ("sched_pct", percent(sched as f64, total as f64)),
        ("wakeup_latency_us.p50", latency(0.5)),
        ("wakeup_latency_us.p99", latency(0.99)),
        ("llc_misses", Some(misses as f64)),
        ("llc_misses_memory", Some(from_memory as f64)),
        ("ipis", Some(counters.ipis as f64)),
        ("sim_time_s", Some(elapsed_ns as f64 / 1e9)),
    ];
    metrics.extend(always.map(|(name, value)| (name.to_string(), value)));
    Outcome {
        seed: setup.seed,
        metrics,
        counted: counted(setup.workload, &sim.marks),
        work: work_done(setup.workload, &sim.marks),
        samples: samples(setup.workload, &sim.marks, counters.latency.len()),
        halves: halves(setup.workload, &sim.marks),
        functions: functions(sim),
        load_misses: sim.host.profile.load_misses().collect(),
        other_misses: sim.host.profile.other_misses().collect(),
        busy_ns: total / NS,
        idle_states: idle_states(sim, end_ns, capacity),
        lines,
        latency: counters
            .latency
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_since_last_iteration()))
            .collect(),
        groups,
        words: setup.workload.words.print(&sim.marks),
        elapsed_ns,
        events: sim.events,
        switches: counters.switches,
        ilb_kicks: sim.sys.nohz.kicks.load(Relaxed),
        placed_elsewhere: counters.migrations[Migration::Placement as usize],
        ilb_redundant: sim.sys.nohz.redundant_kicks.load(Relaxed),
        ilb_cas_ns: sim.host.ilb_cas.map(|ps| ps / NS),
        open_requests: open_requests(sim),
        watched: None,
        stuck: sim.stuck_at_end(),
        trace: counters.trace.clone().unwrap_or_default(),
    }
}

/// What CPUs were in each idle state for; all of them had `capacity` ns.
fn idle_states(sim: &Sim<'_>, end_ns: u64, capacity: f64) -> Vec<IdleUse> {
    let states = sim.idle_stays(end_ns * NS);
    let row = |(name, stays): (String, Stays)| IdleUse {
        name,
        usage: stays.usage,
        time_ns: stays.time / NS,
        share: (stays.time / NS) as f64 / capacity,
    };
    states.into_iter().map(row).collect()
}

/// How many events of the window stand behind each metric that counts some.
fn counted(workload: &Workload, marks: &Marks) -> Vec<(String, u64)> {
    let of = |m: &MetricDef| Some((m.name.clone(), m.events(marks)?));
    workload.metrics.iter().filter_map(of).collect()
}

/// How many requests or wake-ups stand behind each quantile.
fn samples(workload: &Workload, marks: &Marks, wakeups: u64) -> Vec<(String, u64)> {
    let of = |m: &MetricDef| Some((m.name.clone(), m.samples(marks)?));
    let own = workload.metrics.iter().filter_map(of);
    let always = ["wakeup_latency_us.p50", "wakeup_latency_us.p99"];
    own.chain(always.map(|name| (name.to_string(), wakeups)))
        .collect()
}

/// Requests in each half of the window.
fn halves(workload: &Workload, marks: &Marks) -> Vec<(String, Halves)> {
    let kinds = workload
        .requests
        .iter()
        .cloned()
        .zip(marks.halves.iter().copied());
    kinds.filter(|_| marks.has_middle()).collect()
}

/// Load misses of all L3 domains, and how many of them memory answered.
fn llc_misses(sim: &Sim<'_>, setup: &Setup<'_>) -> (u64, u64) {
    let llcs = 0..setup.machine.topology.nr_llcs() as u32;
    let stats = llcs.map(|llc| sim.host.cache.domain_stats(llc));
    stats.fold((0, 0), |(all, memory), s| {
        (all + s.llc_load_misses, memory + s.memory_loads)
    })
}

/// Traffic of all lines by structure and fields, groups by their path; and how often one of the
/// scheduler's structures moved.
fn traffic(sim: &Sim<'_>) -> (Vec<Traffic>, u64) {
    use std::collections::BTreeMap;
    let mut sums: BTreeMap<(String, String), Traffic> = BTreeMap::new();
    let mut transfers = 0;
    let mut add = |object: String, field: String, stats: LineStats| {
        let row = Traffic::none(object.clone(), field.clone());
        sums.entry((object, field)).or_insert(row).add(stats);
    };
    for (object, fields, stats) in sim.host.places.traffic(&sim.host.cache) {
        let name = match object.kind {
            fairground::place::Kind::Tg => format!("task_group {}", sim.group_path(TgId(object.a))),
            kind => kind.name().to_string(),
        };
        transfers += u64::from(stats.transfers);
        add(name, Places::names(object.kind, fields), stats);
    }
    for ((object, field), stats) in sim.host.cache.named_traffic() {
        add(object.into(), field.into(), stats);
    }
    let mut rows: Vec<_> = sums.into_values().collect();
    rows.sort_by_key(|r| std::cmp::Reverse((r.transfers, r.reads + r.writes + r.rmws)));
    (rows, transfers)
}

impl Traffic {
    fn none(object: String, field: String) -> Self {
        Self {
            object,
            field,
            reads: 0,
            writes: 0,
            rmws: 0,
            transfers: 0,
            remote: 0,
            upgrades: 0,
            true_sharing: 0,
            false_sharing: 0,
            wait_ns: 0,
        }
    }

    fn add(&mut self, stats: LineStats) {
        self.reads += u64::from(stats.reads);
        self.writes += u64::from(stats.writes);
        self.rmws += u64::from(stats.rmws);
        self.transfers += u64::from(stats.transfers);
        self.remote += u64::from(stats.remote);
        self.upgrades += u64::from(stats.upgrades);
        self.true_sharing += u64::from(stats.true_sharing);
        self.false_sharing += u64::from(stats.false_sharing);
        self.wait_ns += stats.wait / NS;
    }
}

#[cfg(test)]
mod tests {
    use fairground::policy::Features;

    use super::*;
    use crate::machine_file::Machine;
    use crate::workload::{Env, Workload};

    /// What `f` makes of a workload.
    fn set_up<T>(machine: &Machine, argv: &[&str], f: impl FnOnce(&Setup<'_>) -> T) -> T {
        let argv: Vec<String> = argv.iter().map(|a| (*a).to_string()).collect();
        let cpus = machine.topology.nr_cpus() as u32;
        let workload = Workload::from_argv(&argv, &Env { cpus }).unwrap();
        f(&Setup {
            machine,
            features: Features::default(),
            workload: &workload,
            seed: 1,
            trace: false,
        })
    }

    /// What `f` says of a run at its end.
    fn ended<T>(machine: &Machine, argv: &[&str], f: impl FnOnce(&Sim<'_>) -> T) -> T {
        set_up(machine, argv, |setup| {
            let mut sim = Sim::new(setup).unwrap();
            sim.run().unwrap();
            f(&sim)
        })
    }

    /// Busy time of all CPUs and the sum of the profile, ps, and the run's length, ns.
    fn account(argv: &[&str]) -> (u64, u64, u64) {
        let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
        ended(&machine, argv, |sim| {
            (
                sim.busy(),
                sim.host.profile.total_ps(),
                sim.marks.elapsed_ns,
            )
        })
    }

    /// Messages of 64 KiB are copied in steps that run beyond the end of a window of 100 us.
    #[test]
    fn busy_time_ends_with_the_window() {
        let machine = Machine::from_path_or_id("spr-8480-2s").unwrap();
        let machine = machine.shrunk(32).unwrap();
        let words = "netperf -t TCP_STREAM --pairs 32 -l 100us";
        let argv: Vec<&str> = words.split(' ').collect();
        let (busy, within, elapsed_ns) = ended(&machine, &argv, |sim| {
            (sim.busy(), sim.busy_within(), sim.marks.elapsed_ns)
        });
        let capacity = 32 * elapsed_ns * NS;
        assert!(busy > capacity, "else it shows nothing");
        assert!((capacity * 9 / 10..=capacity).contains(&within), "{within}");
    }

    #[test]
    fn the_profile_has_all_busy_time_and_no_other() {
        let hackbench = ["hackbench", "-g", "1", "-f", "3", "-l", "20"];
        for argv in [&hackbench[..], &["hogs", "-t", "3", "-d", "7ms"]] {
            let (busy, total, _) = account(argv);
            assert_eq!(busy, total, "{argv:?}");
        }
    }

    #[test]
    fn the_stacks_have_what_the_functions_have() {
        let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
        let argv = ["hackbench", "-g", "1", "-f", "2", "-l", "10"];
        let exact = crate::exact::Exact {
            stacks: true,
            ..Default::default()
        };
        let (kept, plain) = set_up(&machine, &argv, |setup| {
            let kept = crate::exact::run(setup, &exact, u64::MAX).unwrap();
            (kept, run(setup).unwrap())
        });
        assert_eq!(kept.outcome.metrics, plain.metrics);
        for (name, self_ns, calls) in plain.functions {
            let ways = kept.stacks.iter();
            let ways = ways.filter(|s| s.functions.last() == Some(&name));
            let (mut ns, mut n, mut number) = (0, 0, 0);
            for way in ways {
                (ns, n, number) = (ns + way.self_ns, n + way.calls, number + 1);
            }
            // Each way is rounded down to a nanosecond.
            assert!(
                ns <= self_ns && self_ns - ns <= number,
                "{name} {ns} {self_ns}"
            );
            assert_eq!(n, calls, "{name}");
        }
        assert!(kept.stacks.iter().any(|s| s.functions.len() > 3));
    }

    /// Of twelve hogs on two CPUs ten have not run by the end of the first turns.
    #[test]
    fn who_has_not_run_by_the_end_is_counted() {
        let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
        let waiting = |duration: &str| {
            let argv = ["hogs", "-t", "12", "-d", duration];
            ended(&machine, &argv, |sim| {
                let counters = &sim.host.counters;
                let found = counters.still_waiting(sim.marks.elapsed_ns);
                assert_eq!(found.wakeups, counters.wakeups);
                found
            })
        };
        let early = waiting("1ms");
        assert_eq!((early.waiting, early.wakeups), (10, 12));
        assert!(
            (500_000..1_000_000).contains(&early.longest_ns),
            "{early:?}"
        );
        let later = waiting("200ms");
        assert_eq!((later.waiting, later.longest_ns), (0, 0));
    }

    #[test]
    fn the_warmup_is_not_in_the_profile() {
        let (busy, total, elapsed_ns) =
            account(&["hogs", "-t", "3", "-d", "50ms", "--warmup", "70ms"]);
        assert_eq!(elapsed_ns, 50_000_000);
        let off = busy.abs_diff(total) as f64 / busy as f64;
        assert!(off < 1e-3, "{busy} {total}");
    }
}

//! A case on the simulated machine: one run, measured as the recorder measures.

use std::collections::BTreeMap;

use fairground::event::Event;
use fairground::policy::Features;
use fairground::value::{TaskId, TgId};

use super::case::Case;
use super::into_workload::{Prepared, prepare};
use super::measure::{Context, measure};
use super::others::Others;
use super::recorded::{KIDS, Run};
use super::spinning::AT_ONCE;
use crate::cache::NS;
use crate::machine::{Setup, Sim};
use crate::machine_file::Machine;

/// The recorded machine.
pub const MACHINE: &str = "spr-guest-2cpu";

/// What recording costs at each event, ns (README of the recordings, "Blind spots").
const TRACER_NS: u64 = 130;
/// What it costs more at a `sched_switch`, before the time is taken (names of tasks are kept):
/// in f1 it comes 339 ns after the `sched_wakeup` before it, 48 more than the kernel and 130 ns.
const TRACER_AT_SWITCH_NS: u64 = 48;

/// From now on the tracer runs.
pub(super) fn record(sim: &mut Sim<'_>) {
    sim.host.tracer = TRACER_NS * NS;
    sim.host.tracer_at_switch = TRACER_AT_SWITCH_NS * NS;
}

/// `cpu.stat` is read for the first time so long before the window.
const STAT_BEFORE_NS: u64 = 3_000_000;

/// A case, ready to be run with any seed.
pub struct Bench {
    prepared: Prepared,
    machine: Machine,
    features: Features,
    /// Group in which each task of the case starts, by name; empty without groups.
    groups: BTreeMap<String, String>,
    edges_us: Vec<f64>,
    /// From and to of each phase, us after T0.
    phases: Vec<(u64, u64)>,
    /// The CPU whose switches from the idle task are not reported.
    blind: Option<u32>,
}

impl Bench {
    /// Prepares `case` on `machine`, beside which `others` take their share.
    ///
    /// # Errors
    /// A sentence that says what in the case cannot be run.
    pub fn new(
        case: &Case,
        others: &Others,
        machine: Machine,
        edges_us: &[f64],
    ) -> Result<Self, String> {
        let features = super::kernel::features(&case.machine, &machine)?;
        let prepared = prepare(case, others, &machine)?;
        let groups = match case.cgroups.is_empty() {
            true => BTreeMap::new(),
            false => groups(case),
        };
        let starts = &case.phase_starts_us;
        let ends = starts.iter().skip(1).copied().chain(case.duration_us);
        let phases: Vec<_> = starts.iter().copied().zip(ends).collect();
        if phases.iter().any(|(from, to)| from >= to) {
            return Err("phase_starts_us: not in order, or beyond the end".into());
        }
        Ok(Self {
            phases,
            blind: others.blind,
            groups,
            prepared,
            machine,
            features,
            edges_us: edges_us.to_vec(),
        })
    }

    /// The machine with the case on it, nothing run yet.
    fn sim(&self, seed: u64) -> Result<Sim<'_>, String> {
        let setup = Setup {
            machine: &self.machine,
            features: self.features.clone(),
            workload: &self.prepared.workload,
            seed,
            trace: true,
        };
        let mut sim = Sim::new(&setup).map_err(|e| e.to_string())?;
        sim.align_ticks(0);
        record(&mut sim);
        for (task, at_ns) in self.prepared.starts_ns.iter().enumerate() {
            sim.start_at(task, *at_ns);
        }
        Ok(sim)
    }

    /// The tracepoints of one run: time since T0 in us, CPU, text with task names.
    ///
    /// # Errors
    /// When the case deadlocks.
    pub fn trace(&self, seed: u64) -> Result<Vec<(f64, u32, String)>, String> {
        let mut sim = self.sim(seed)?;
        sim.run().map_err(|e| e.to_string())?;
        let templates = sim.templates();
        let name = |task: TaskId| {
            let template = templates[task.idx()] as usize;
            self.prepared.workload.templates[template].name.as_str()
        };
        let or_idle = |task: Option<TaskId>| task.map_or("idle", name);
        let text = |event: Event| match event {
            Event::Waking { task, prev_cpu } => {
                format!("waking {} from {}", name(task), prev_cpu.0)
            }
            Event::Wakeup { task, cpu } => format!("wakeup {} on {}", name(task), cpu.0),
            Event::WakeupNew { task, cpu } => format!("wakeup_new {} on {}", name(task), cpu.0),
            Event::Switch {
                prev,
                prev_runnable,
                next,
                ..
            } => {
                let state = if prev_runnable { "R" } else { "S" };
                format!("switch {} {state} ==> {}", or_idle(prev), or_idle(next))
            }
            Event::Migrate {
                task,
                from,
                to,
                why,
            } => {
                format!("migrate {} {} -> {} {why:?}", name(task), from.0, to.0)
            }
            Event::Fork { parent, child } => {
                format!("fork {} by {}", name(child), or_idle(parent))
            }
            Event::Exit { task } => format!("exit {}", name(task)),
            Event::Nice { task, nice } => format!("nice {} {nice}", name(task)),
            Event::Throttle { tg, throttled, .. } => {
                let what = if throttled { "throttle" } else { "unthrottle" };
                format!("{what} {}", sim.group_path(tg))
            }
        };
        let lines = sim.host.counters.trace.as_deref().unwrap_or_default();
        let since_t0 = |at_ns: u64| (at_ns as f64 - self.prepared.t0_ns as f64) / 1e3;
        let line = |l: &crate::host::TraceLine| (since_t0(l.at_ns), l.cpu, text(l.event));
        Ok(lines.iter().map(line).collect())
    }

    /// Runs it once and measures.
    ///
    /// # Errors
    /// When the case deadlocks.
    pub fn run(&self, seed: u64) -> Result<Run, String> {
        let mut sim = self.sim(seed)?;
        sim.run_to(self.prepared.t0_ns - STAT_BEFORE_NS)
            .map_err(|e| e.to_string())?;
        let before = self.stats(&sim);
        let end = sim.run().map_err(|e| e.to_string())?;
        let after = self.stats(&sim);
        let names: Vec<_> = sim
            .templates()
            .iter()
            .map(|t| self.prepared.names[*t as usize].clone())
            .collect();
        let mut all: Vec<String> = self.prepared.turns.keys().cloned().collect();
        if self.prepared.spawns() {
            all.push(KIDS.to_string());
        }
        let groups = self.groups_at_start(&sim, &names);
        let mut cx = Context {
            names: &names,
            all,
            groups: &groups,
            window: (self.prepared.t0_ns, end / NS),
            edges_us: &self.edges_us,
            cpus: self.machine.topology.nr_cpus(),
            blind: self.blind,
        };
        let trace = sim.host.counters.trace.as_deref().unwrap_or_default();
        let mut run = measure(trace, &cx);
        for (phase, (from_us, to_us)) in self.phases.iter().enumerate() {
            let t0 = self.prepared.t0_ns;
            cx.window = (t0 + from_us * 1000, t0 + to_us * 1000);
            let tasks = measure(trace, &cx).tasks.into_iter();
            let shares = tasks.filter_map(|(name, task)| Some((name, task.cpu_share_of_workload?)));
            run.phases.insert(phase as u32, shares.collect());
        }
        for (name, turns) in &self.prepared.turns {
            if let Some(task) = run.tasks.get_mut(name) {
                let count = |mark: u32| sim.marks.marks[mark as usize].count;
                task.iterations = Some(count(turns.one) + AT_ONCE * count(turns.of_pieces));
            }
        }
        for (path, after) in after {
            let before = &before[&path];
            let stat = after.iter().map(|(k, v)| (k.to_string(), v - before[k]));
            run.groups.entry(path).or_default().cpu_stat = stat.collect();
        }
        Ok(run)
    }

    /// The group in which each task starts, by number: what its case says; of a created thread that
    /// of its creator at that moment.
    fn groups_at_start(&self, sim: &Sim<'_>, names: &[Option<String>]) -> Vec<Option<String>> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        let of_kid = |cgroup: u32| self.prepared.workload.cgroups[cgroup as usize].path.clone();
        let named = names.iter().zip(sim.born());
        named
            .map(|(name, born)| match name.as_deref() {
                Some(KIDS) => Some(of_kid(born.cgroup)),
                Some(name) => self.groups.get(name).cloned(),
                None => None,
            })
            .collect()
    }

    /// `cpu.stat` of every group of the case.
    fn stats(&self, sim: &Sim<'_>) -> BTreeMap<String, BTreeMap<&'static str, f64>> {
        let groups = self.prepared.workload.cgroups.iter().enumerate().skip(1);
        groups
            .map(|(i, group)| {
                let stat = sim.sys.tg[TgId(i as u32).idx()].cpu_stat();
                let rows = [
                    ("nr_periods", stat.nr_periods as f64),
                    ("nr_throttled", stat.nr_throttled as f64),
                    ("throttled_time_ns", stat.throttled_ns as f64),
                    ("nr_bursts", stat.nr_bursts as f64),
                    ("burst_time_ns", stat.burst_ns as f64),
                ];
                (group.path.clone(), rows.into())
            })
            .collect()
    }
}

impl Bench {
    /// Writes to groups that the kernel refuses: the number of the event, and why.
    #[must_use]
    pub fn refused(&self) -> &[(usize, String)] {
        &self.prepared.refused
    }
}

impl Prepared {
    /// Whether any task creates threads.
    #[must_use]
    pub fn spawns(&self) -> bool {
        self.names.iter().any(|n| n.as_deref() == Some(KIDS))
    }
}

/// The group in which each task of the case starts.
fn groups(case: &Case) -> BTreeMap<String, String> {
    let named = case.tasks.iter();
    named.map(|t| (t.name.clone(), t.cgroup.clone())).collect()
}

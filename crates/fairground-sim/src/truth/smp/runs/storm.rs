//! `fork/storm.csv`: a parent creates children as fast as it can; on how many CPUs do they begin?

use std::collections::{BTreeMap, BTreeSet};

use fairground::value::CpuMask;
use serde::Deserialize;

use super::measure::placements;
use super::{guest, on, row};
use crate::truth::smp::file::File;
use crate::truth::smp::files::Recording;
use crate::truth::smp::text::cpu_list;
use crate::truth::{Row, TruthError};
use crate::workload::program::{Dur, Ns, Op, Program, TaskTemplate, Until, Workload};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// When the storm begins: hogs beside it have settled.
const START_NS: Ns = 148 * MS;

const CHILDREN_MAX: u32 = 1024;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Storm {
    series: Series,
    topology: String,
    n: u32,
    kind: Kind,
    child_work_us: u64,
    background_hogs: u32,
    background_cpus: String,
    tie_break: Tie,
    #[serde(rename = "rep")]
    _rep: u32,
    #[serde(rename = "parent_cpu")]
    _parent_cpu: u32,
    distinct_cpus: u32,
    #[serde(rename = "median_fork_gap_us")]
    _median_fork_gap_us: f64,
    targets: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Series {
    Light,
    WithState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Thread,
    Process,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tie {
    LowestUtil,
    FirstGroup,
}

/// What repetitions have in common.
type Config = (Series, String, u32, Kind, u64, u32, String, Tie);

/// Rows of the file: one for each configuration.
pub(in crate::truth::smp) fn check(
    recording: &Recording,
    file: &File<'_>,
) -> Result<Vec<Row>, TruthError> {
    let mut configs: BTreeMap<Config, (usize, Storm, Vec<f64>)> = BTreeMap::new();
    for (line, storm) in file.rows::<Storm>()? {
        storm.validate().map_err(|what| file.error(line, what))?;
        let distinct = f64::from(storm.distinct_cpus);
        let (.., all) = configs
            .entry(storm.config())
            .or_insert((line, storm, Vec::new()));
        all.push(distinct);
    }
    let mut rows = Vec::new();
    for (line, storm, recorded) in configs.values() {
        let error = |what: String| file.error(*line, what);
        let guest = recording.guest(&storm.topology);
        let guest = guest.ok_or_else(|| error(format!("no machine '{}'", storm.topology)))??;
        let machine = guest::machine(&storm.topology, &guest).map_err(error)?;
        let cpus = machine.topology.nr_cpus();
        let hogs = storm.background().map_err(error)?;
        if hogs.is_some_and(|hogs| !hogs.is_subset(&CpuMask::first_n(cpus))) {
            let list = &storm.background_cpus;
            return Err(error(format!("background_cpus: '{list}' of {cpus} CPUs")));
        }
        let workload = storm.workload();
        workload.validate().map_err(error)?;
        let tie = match storm.tie_break {
            Tie::LowestUtil => "group-util",
            Tie::FirstGroup => "first-group",
        };
        let features = crate::truth::smp::features(&[("idlest_tie", tie)]);
        let simulated: Result<Vec<f64>, String> = guest::SEEDS
            .map(|seed| {
                let mut sim = guest::sim(&machine, features.clone(), &workload, seed)?;
                if storm.series == Series::WithState {
                    guest::record_forks(&mut sim, &machine);
                }
                sim.start_at(storm.background_hogs as usize, storm.start_ns());
                sim.run().map_err(|e| e.to_string())?;
                let trace = sim.host.counters.trace.take().unwrap_or_default();
                let before = storm.background_hogs;
                let born = placements(&trace).into_iter();
                let children = born.filter(|(_, task, _)| task.0 > before);
                let cpus: BTreeSet<u32> = children.map(|(.., cpu)| cpu).collect();
                Ok(cpus.len() as f64)
            })
            .collect();
        let ours = simulated.map_err(error)?;
        let row = row(file.name, &storm.metric(), recorded, &ours);
        rows.push(on(&storm.topology, row));
    }
    Ok(rows)
}

impl Storm {
    fn validate(&self) -> Result<(), String> {
        if self.n == 0 || self.n > CHILDREN_MAX || self.background_hogs > CHILDREN_MAX {
            return Err(format!("n, background_hogs: expected up to {CHILDREN_MAX}"));
        }
        if self.child_work_us > 10_000_000 {
            return Err("child_work_us: expected up to 10000000".into());
        }
        self.background()?;
        let targets: Result<Vec<u32>, _> =
            self.targets.split_whitespace().map(str::parse).collect();
        let targets = targets.map_err(|e| format!("targets: {e}"))?;
        let distinct: BTreeSet<u32> = targets.iter().copied().collect();
        if distinct.len() as u32 != self.distinct_cpus {
            let n = distinct.len();
            return Err(format!(
                "distinct_cpus: {}, {n} in targets",
                self.distinct_cpus
            ));
        }
        Ok(())
    }

    /// The CPUs of the hogs beside the storm, if not all.
    fn background(&self) -> Result<Option<CpuMask>, String> {
        match self.background_cpus.as_str() {
            "" | "all" => Ok(None),
            list => cpu_list(list)
                .map(Some)
                .map_err(|e| format!("background_cpus: {e}")),
        }
    }

    fn config(&self) -> Config {
        (
            self.series,
            self.topology.clone(),
            self.n,
            self.kind,
            self.child_work_us,
            self.background_hogs,
            self.background_cpus.clone(),
            self.tie_break,
        )
    }

    fn metric(&self) -> String {
        let series = match self.series {
            Series::Light => "light",
            Series::WithState => "with_state",
        };
        let tie = match self.tie_break {
            Tie::LowestUtil => "lowest_util",
            Tie::FirstGroup => "first_group",
        };
        let (topology, n, work) = (&self.topology, self.n, self.child_work_us);
        let hogs = self.background_hogs;
        let kind = match self.kind {
            Kind::Thread => "",
            Kind::Process => " process",
        };
        let cpus = match self.background_cpus.as_str() {
            "" | "all" => String::new(),
            cpus => format!(" on {cpus}"),
        };
        let what = format!("{topology} n={n} work={work}{kind} hogs={hogs}{cpus}");
        format!("distinct_cpus[{series} {what} {tie}]")
    }

    fn start_ns(&self) -> Ns {
        START_NS + guest::storm_phase_ns(&self.topology, self.series == Series::WithState)
    }

    /// Hogs first, then the parent, then its children.
    fn workload(&self) -> Workload {
        let mut w = Workload::new("storm", Vec::new());
        w.n_futexes = 1;
        let mut child = Vec::new();
        if self.child_work_us > 0 {
            child.push(Op::Run(Dur::Const(self.child_work_us * US)));
        }
        child.push(Op::FutexWait(0));
        let mut parent = Vec::new();
        for _ in 0..self.n {
            parent.push(Op::Fork { template: 2 });
        }
        parent.push(Op::FutexWait(0));
        let programs = [("hog", vec![Op::Hog]), ("parent", parent), ("child", child)];
        for (i, (name, ops)) in programs.into_iter().enumerate() {
            w.programs.push(Program {
                name: name.into(),
                ops,
            });
            let mut template = TaskTemplate::new(name, i as u32, 1);
            template.thread = name == "child" && self.kind == Kind::Thread;
            if let ("hog", Ok(Some(cpus))) = (name, self.background()) {
                w.masks = vec![cpus.iter().map(|cpu| cpu.0).collect()];
                template.affinity = Some(0);
            }
            w.templates.push(template);
        }
        w.initial = vec![0; self.background_hogs as usize];
        w.initial.push(1);
        // Every child is born, whatever a fork costs among busy CPUs.
        let each = 2 * MS + self.child_work_us * US;
        w.duration = Until::Time(self.start_ns() + u64::from(self.n) * each);
        w
    }
}

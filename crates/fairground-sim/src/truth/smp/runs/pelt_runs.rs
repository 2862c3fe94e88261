//! `pelt/run_*.json`: the load of a few tasks and groups as it builds up, at several moments.
//!
//! A dump of all queues takes some ms, so what is compared is the sum of a group over its queues.
//! All tasks sleep until one instant, and run from then on as their set says.

use std::collections::BTreeMap;

use fairground::value::{CpuMask, TgId};
use serde::Deserialize;

use super::hogs::{add_mask, group};
use super::recorded::{Set, TICK_NS};
use super::{guest, row};
use crate::machine::Sim;
use crate::truth::smp::files::{File, Recording};
use crate::truth::{Row, TruthError};
use crate::workload::program::{Ns, Program, TaskTemplate, Until, Workload};

const MS: Ns = 1_000_000;
/// When the tasks begin: what their creation left has decayed.
const GO_NS: Ns = 400 * MS;
/// Longest run that is simulated, and most tasks.
const LONGEST_NS: Ns = 10_000 * MS;
const TASKS_MAX: u32 = 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    #[serde(rename = "case")]
    _case: String,
    topology: String,
    /// Sets as `GROUP:SHARES:TASKS:CPUS:NICE:KIND`, joined by `+`; `~` stands for `/` in a path.
    spec: String,
    #[serde(rename = "tasks")]
    _tasks: Vec<serde_json::Value>,
    dumps: Vec<Dump>,
    #[serde(default, rename = "end")]
    _end: serde_json::Value,
    go_ns: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dump {
    /// `at_ms=N t=NS`
    at: String,
    cfs_rqs: Vec<Queue>,
}

/// One queue; of what `sched/debug` prints of it, the rest is not used.
#[derive(Debug, Deserialize)]
struct Queue {
    cpu: u32,
    path: String,
    load_avg: f64,
    util_avg: f64,
}

/// Load and utilisation of each group at each dump.
type Sums = Vec<BTreeMap<String, [f64; 2]>>;

/// A run ready to be simulated.
struct Bench {
    workload: Workload,
    /// CPUs that some task may use.
    used: CpuMask,
    /// Of the dumps, from the instant at which all begin.
    at_ns: Vec<Ns>,
    go_ns: Ns,
}

/// Rows of a file.
pub(in crate::truth::smp) fn check(
    recording: &Recording,
    file: &File<'_>,
) -> Result<Vec<Row>, TruthError> {
    let run: Run = file.json()?;
    let error = |what: String| file.error(1, what);
    let guest = recording.guest(&run.topology);
    let guest = guest.ok_or_else(|| error(format!("no machine '{}'", run.topology)))??;
    let machine = guest::machine(&guest).map_err(error)?;
    let bench = Bench::new(&run, machine.topology.nr_cpus()).map_err(error)?;
    let features = crate::truth::smp::features(&[]);
    let simulate = |seed| {
        let mut sim = guest::sim(&machine, features.clone(), &bench.workload, seed)?;
        sim.host.counters.trace = None;
        bench.sums(&mut sim)
    };
    let ours: Result<Vec<Sums>, String> = guest::SEEDS.map(simulate).collect();
    Ok(bench.rows(file.name, &run, &ours.map_err(error)?))
}

impl Bench {
    fn new(run: &Run, cpus: usize) -> Result<Self, String> {
        let mut w = Workload::new("pelt", Vec::new());
        let mut used = CpuMask::empty();
        for words in run.spec.split('+') {
            let set = set(words)?;
            let place = group(&mut w, &set.cgroup, set.shares)?;
            if set.count == 0 {
                continue;
            }
            let allowed = set.mask(cpus)?;
            used = used.or(&allowed);
            let mask = add_mask(&mut w, allowed.iter().map(|c| c.0).collect());
            let ops = set.ops()?;
            let program = w.programs.len() as u32;
            w.programs.push(Program {
                name: words.into(),
                ops,
            });
            let mut template = TaskTemplate::new(words, program, 1);
            template.thread = true;
            template.nice = set.nice;
            template.affinity = Some(mask);
            template.cgroup = Some(place);
            w.templates.push(template);
            let number = w.templates.len() as u32 - 1;
            w.initial.extend((0..set.count).map(|_| number));
        }
        if w.initial.is_empty() || w.initial.len() > TASKS_MAX as usize {
            return Err(format!(
                "spec: {} tasks, expected 1 to {TASKS_MAX}",
                w.initial.len()
            ));
        }
        let at_ns: Result<Vec<Ns>, String> = run.dumps.iter().map(|d| d.after(run.go_ns)).collect();
        let at_ns = at_ns?;
        let last = at_ns.iter().max().copied().ok_or("no dumps")?;
        if last > LONGEST_NS || at_ns.windows(2).any(|w| w[0] > w[1]) {
            return Err("dumps: not in order, or more than 10 s".into());
        }
        // Where between two ticks all begin is part of the recording.
        let go_ns = GO_NS + run.go_ns % TICK_NS;
        w.duration = Until::Time(go_ns + last + MS);
        w.validate()?;
        Ok(Self {
            workload: w,
            used,
            at_ns,
            go_ns,
        })
    }

    /// Runs to each dump and looks.
    fn sums(&self, sim: &mut Sim<'_>) -> Result<Sums, String> {
        for task in 0..self.workload.initial.len() {
            sim.start_at(task, self.go_ns);
        }
        let mut sums = Sums::new();
        for at in &self.at_ns {
            sim.run_to(self.go_ns + at).map_err(|e| e.to_string())?;
            let mut of = BTreeMap::new();
            for (i, cgroup) in self.workload.cgroups.iter().enumerate() {
                let tg = if i == 0 { TgId::ROOT } else { sim.groups[i] };
                let mut sum = [0.0; 2];
                for rq in sim.rqs.iter().filter(|rq| i > 0 || self.used.has(rq.cpu)) {
                    if let Some(cfs) = rq.cfs_of(tg) {
                        let avg = &rq.cfs[cfs.idx()].avg;
                        sum[0] += avg.load_avg as f64;
                        sum[1] += avg.util_avg as f64;
                    }
                }
                of.insert(cgroup.path.clone(), sum);
            }
            sums.push(of);
        }
        Ok(sums)
    }

    fn rows(&self, case: &str, run: &Run, ours: &[Sums]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (i, dump) in run.dumps.iter().enumerate() {
            for path in self.workload.cgroups.iter().map(|g| g.path.as_str()) {
                let queues = dump.cfs_rqs.iter().filter(|q| {
                    let cpu = fairground::value::Cpu(q.cpu);
                    q.path == path && (path != "/" || self.used.has(cpu))
                });
                let (mut load, mut util) = (0.0, 0.0);
                for queue in queues {
                    load += queue.load_avg;
                    util += queue.util_avg;
                }
                let ms = self.at_ns[i] / MS;
                for (kind, metric, theirs) in [(0, "queue_load", load), (1, "queue_util", util)] {
                    let each: Vec<f64> = ours
                        .iter()
                        .map(|sums| sums[i].get(path).map_or(0.0, |sum| sum[kind]))
                        .collect();
                    let name = format!("{metric}[{path} after {ms} ms]");
                    rows.push(row(case, &name, &[theirs], &each));
                }
            }
        }
        rows
    }
}

impl Dump {
    /// How long after `go_ns` it was.
    fn after(&self, go_ns: u64) -> Result<Ns, String> {
        let time = self
            .at
            .split_once(" t=")
            .and_then(|(_, t)| t.parse::<u64>().ok());
        time.and_then(|t| t.checked_sub(go_ns))
            .ok_or_else(|| format!("at: '{}', expected 'at_ms=N t=NS' after go_ns", self.at))
    }
}

/// A set of the specification.
fn set(words: &str) -> Result<Set, String> {
    let parts: Vec<&str> = words.split(':').collect();
    let [path, shares, count, cpus, nice, kind] = parts[..] else {
        let form = "expected GROUP:SHARES:TASKS:CPUS:NICE:KIND";
        return Err(format!("spec: '{words}', {form}"));
    };
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("spec: '{text}' in '{words}', expected a number"))
    };
    let root = path == "-";
    Ok(Set {
        cgroup: if root {
            String::new()
        } else {
            path.replace('~', "/")
        },
        shares: if root { None } else { Some(number(shares)?) },
        count: number(count)?.min(u64::from(TASKS_MAX) + 1) as u32,
        allowed: if cpus == "-" { "all" } else { cpus }.into(),
        nice: nice
            .parse()
            .ok()
            .filter(|n| (-20..20).contains(n))
            .ok_or_else(|| format!("spec: nice '{nice}', expected -20 to 19"))?,
        kind: kind.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read() {
        let s = set("pla~plb:2048:2:0-3:5:d3000.2000").unwrap();
        assert_eq!(
            (s.cgroup.as_str(), s.shares, s.count),
            ("pla/plb", Some(2048), 2)
        );
        assert_eq!((s.allowed.as_str(), s.nice), ("0-3", 5));
        let s = set("-:0:1:-:0:hog").unwrap();
        assert_eq!(
            (s.cgroup.as_str(), s.shares, s.allowed.as_str()),
            ("", None, "all")
        );
        for wrong in ["pla:1:2:3:4", "pla:x:1:0:0:hog", "pla:1:1:0:40:hog"] {
            assert!(set(wrong).is_err(), "{wrong}");
        }
    }
}

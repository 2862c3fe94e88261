//! `pelt/run_*.json`: the load of a few tasks and groups as it builds up, at several moments.
//!
//! What is compared is the sum of a group over its queues. A dump reads them CPU by CPU, which
//! takes some ms each, the longer the more CPUs are busy, as the emulator lets one run at a time.
//! All tasks sleep until one instant, and run from then on as their set says. Where and when each
//! of them wakes is taken from its first wake-up in `pelt/events_*.csv`, if there is that file;
//! where that file shows one outside its list of CPUs, the lists of the run did not hold, and all
//! are free.

use std::collections::{BTreeMap, BTreeSet};

use fairground::value::{Cpu, CpuMask, TgId};
use serde::Deserialize;

use super::forks::{add_mask, group, shift_loops};
use super::guest::Records;
use super::recorded::{Set, TICK_NS};
use super::{guest, on, row, skipped};
use crate::machine::Sim;
use crate::truth::smp::file::File;
use crate::truth::smp::files::Recording;
use crate::truth::smp::tables::{EventRow, update_kinds};
use crate::truth::{Row, TruthError};
use crate::workload::program::{Ns, Op, Program, TaskTemplate, Until, Workload};

const MS: Ns = 1_000_000;
/// After the last dump, all CPUs are read.
const DUMPED_NS: Ns = 500 * MS;
/// When the tasks begin: what their creation left has decayed.
const GO_NS: Ns = 400 * MS;
/// What follows the first event later than this is no part of the beginning.
const START_NS: Ns = 4 * MS;
/// What the emulator needs to print one CPU, if it does nothing else. The second dump of
/// `shares_2x8#1`, due after 100 ms, begins at 111.98, as the first has begun at 51.27 and is busy
/// with its 16 CPUs until then; on average 7.75 CPUs are busy in that run, besides the dump's.
const DUMP_NS: f64 = (111.976 - 51.275) * 1e6 / 16.0 / (7.75 + 1.0);
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
    tasks: Vec<Thread>,
    dumps: Vec<Dump>,
    #[serde(default, rename = "end")]
    _end: serde_json::Value,
    go_ns: u64,
}

/// A task; of what the set says already, nothing is used.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Thread {
    pid: u32,
    set: usize,
    #[serde(default, rename = "cg")]
    _cg: String,
    #[serde(default, rename = "shares")]
    _shares: u64,
    #[serde(default, rename = "nice")]
    _nice: i8,
    #[serde(default, rename = "cpus")]
    _cpus: serde_json::Value,
    #[serde(default, rename = "kind")]
    _kind: String,
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

/// Why the root is not compared where tasks may use all CPUs.
const OTHERS: &str = "tasks may use all CPUs, the sampler's too, and its load is in the root's";

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
    /// How long after that each task wakes.
    after_ns: Vec<Ns>,
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
    let machine = guest::machine(&run.topology, &guest).map_err(error)?;
    let seen = seen(recording, file.name)?;
    let records = records(recording, file.name)?;
    let bench = Bench::new(&run, machine.topology.nr_cpus(), &seen).map_err(error)?;
    let features = crate::truth::smp::features(&[]);
    let simulate = |seed| {
        let mut sim = guest::sim(&machine, features.clone(), &bench.workload, seed)?;
        sim.host.counters.trace = None;
        bench.sums(&mut sim, records, seen.traced_ns)
    };
    let ours: Result<Vec<Sums>, String> = guest::SEEDS.map(simulate).collect();
    let cpus = machine.topology.nr_cpus();
    let rows = bench.rows(file.name, &run, cpus, &ours.map_err(error)?);
    Ok(rows.into_iter().map(|row| on(&run.topology, row)).collect())
}

/// Where the events show the tasks, by their numbers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// The CPU on which each wakes first, and how long after the first event.
    starts: BTreeMap<u32, (u32, Ns)>,
    /// All CPUs on which each is woken, runs, or to which it moves.
    places: BTreeMap<u32, BTreeSet<u32>>,
    /// How long the trace is; it begins with the tasks.
    traced_ns: Ns,
}

fn seen(recording: &Recording, run: &str) -> Result<Seen, TruthError> {
    let name = run.replace("/run_", "/events_").replace(".json", ".csv");
    let mut seen = Seen::default();
    let Some(file) = recording.file_if_there(&name) else {
        return Ok(seen);
    };
    let rows = file.rows::<EventRow>()?;
    let first = rows.first().map_or(0.0, |(_, event)| event.t);
    for (_, event) in rows {
        let after_ns = ((event.t - first).max(0.0) * 1e9).round() as Ns;
        seen.traced_ns = after_ns.min(LONGEST_NS);
        let (who, place) = match event.event.as_str() {
            "sched_wakeup" => (event.number("pid"), event.number("target_cpu")),
            "sched_migrate_task" => (event.number("pid"), event.number("dest_cpu")),
            "sched_switch" => (event.number("next_pid"), Some(event.cpu)),
            _ => continue,
        };
        let (Some(pid), Some(cpu)) = (who, place) else {
            continue;
        };
        if event.event == "sched_wakeup" {
            let start = (cpu, after_ns.min(START_NS));
            seen.starts.entry(pid).or_insert(start);
        }
        seen.places.entry(pid).or_default().insert(cpu);
    }
    Ok(seen)
}

/// What of load tracking was recorded beside a run: what there is a file of, and lines in it.
fn records(recording: &Recording, run: &str) -> Result<Records, TruthError> {
    let beside = |kind| run.replace("/run_", kind).replace(".json", ".csv");
    let mut records = Records {
        weights: recording.file_if_there(&beside("/group_shares_")).is_some(),
        ..Records::default()
    };
    if let Some(file) = recording.file_if_there(&beside("/updates_")) {
        (records.entities, records.queues) = update_kinds(&file)?;
    }
    Ok(records)
}

impl Run {
    /// Whether an event shows a task where its set's list of CPUs does not let it be: then the
    /// lists did not hold in this run.
    fn strays(&self, sets: &[Set], cpus: usize, seen: &Seen) -> Result<bool, String> {
        for task in &self.tasks {
            let set = sets
                .get(task.set)
                .ok_or_else(|| format!("tasks: no set {}", task.set))?;
            let mask = set.mask(cpus)?;
            let mut places = seen.places.get(&task.pid).into_iter().flatten();
            if places.any(|cpu| !mask.has(Cpu(*cpu))) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Bench {
    fn new(run: &Run, cpus: usize, seen: &Seen) -> Result<Self, String> {
        let mut w = Workload::new("pelt", Vec::new());
        let mut used = CpuMask::empty();
        let mut after_ns = Vec::new();
        let specs: Vec<&str> = run.spec.split('+').collect();
        let sets: Result<Vec<Set>, String> = specs.iter().map(|words| set(words)).collect();
        let sets = sets?;
        let strays = run.strays(&sets, cpus, seen)?;
        for (i, (set, words)) in sets.iter().zip(&specs).enumerate() {
            let place = group(&mut w, &set.cgroup, set.shares)?;
            if set.count == 0 {
                continue;
            }
            let allowed = match strays {
                true => CpuMask::first_n(cpus),
                false => set.mask(cpus)?,
            };
            used = used.or(&allowed);
            let mask = add_mask(&mut w, allowed.iter().map(|c| c.0).collect());
            let mut ops = set.ops()?;
            // Each begins where it slept, and is free from then on.
            ops.insert(0, Op::SetAffinity(mask));
            shift_loops(&mut ops);
            let program = w.programs.len() as u32;
            w.programs.push(Program {
                name: (*words).into(),
                ops,
            });
            let pids = run.tasks.iter().filter(|t| t.set == i).map(|t| t.pid);
            let mut pids = pids.collect::<Vec<_>>().into_iter();
            for _ in 0..set.count.min(TASKS_MAX + 1) {
                let start = pids.next().and_then(|pid| seen.starts.get(&pid));
                after_ns.push(start.map_or(0, |(_, after)| *after));
                let start = start.map(|(cpu, _)| *cpu);
                let start = start.filter(|cpu| allowed.has(Cpu(*cpu)));
                let mut template = TaskTemplate::new(*words, program, 1);
                template.thread = true;
                template.nice = set.nice;
                template.affinity = Some(start.map_or(mask, |cpu| add_mask(&mut w, vec![cpu])));
                template.cgroup = Some(place);
                w.templates.push(template);
                w.initial.push(w.templates.len() as u32 - 1);
            }
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
        w.duration = Until::Time(go_ns + last + DUMPED_NS);
        w.validate()?;
        Ok(Self {
            workload: w,
            used,
            at_ns,
            go_ns,
            after_ns,
        })
    }

    /// Runs to each dump and looks.
    fn sums(&self, sim: &mut Sim<'_>, records: Records, traced_ns: Ns) -> Result<Sums, String> {
        for (task, after_ns) in self.after_ns.iter().enumerate() {
            sim.start_at(task, self.go_ns + after_ns);
        }
        sim.run_to(self.go_ns).map_err(|e| e.to_string())?;
        guest::record_updates(sim, records, true);
        let traced_to = self.go_ns + traced_ns;
        let mut traced = true;
        let mut sums = Sums::new();
        for at in &self.at_ns {
            let mut of: BTreeMap<String, [f64; 2]> = BTreeMap::new();
            let mut now = self.go_ns + at;
            for cpu in 0..sim.rqs.len() {
                let busy = sim.rqs.iter().filter(|rq| rq.nr_running > 0).count();
                now += (DUMP_NS * (busy + 1) as f64) as Ns;
                if traced && now >= traced_to {
                    sim.run_to(traced_to).map_err(|e| e.to_string())?;
                    guest::record_updates(sim, records, false);
                    traced = false;
                }
                sim.run_to(now).map_err(|e| e.to_string())?;
                let rq = &sim.rqs[cpu];
                for (i, cgroup) in self.workload.cgroups.iter().enumerate() {
                    let tg = if i == 0 { TgId::ROOT } else { sim.groups[i] };
                    let sum = of.entry(cgroup.path.clone()).or_default();
                    let compared = i > 0 || self.used.has(rq.cpu);
                    if let Some(cfs) = rq.cfs_of(tg).filter(|_| compared) {
                        let avg = &rq.cfs[cfs.idx()].avg;
                        sum[0] += avg.load_avg as f64;
                        sum[1] += avg.util_avg as f64;
                    }
                }
            }
            sums.push(of);
        }
        Ok(sums)
    }

    fn rows(&self, case: &str, run: &Run, cpus: usize, ours: &[Sums]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (i, dump) in run.dumps.iter().enumerate() {
            for path in self.workload.cgroups.iter().map(|g| g.path.as_str()) {
                let queues = dump.cfs_rqs.iter().filter(|q| {
                    let cpu = Cpu(q.cpu);
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
                    rows.push(match path == "/" && self.used == CpuMask::first_n(cpus) {
                        false => row(case, &name, &[theirs], &each),
                        true => skipped(case, &name, &[theirs], OTHERS),
                    });
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
    fn tasks_start_where_they_woke_first() {
        let events = "t,cpu,event,text\n\
                      1.0,2,sched_waking,comm=a pid=7 prio=120 target_cpu=009\n\
                      1.0,2,sched_wakeup,comm=a pid=7 prio=120 target_cpu=002\n\
                      1.1,0,sched_switch,prev_comm=a prev_pid=7 ==> next_comm=b next_pid=8\n\
                      1.2,3,sched_wakeup,comm=a pid=7 prio=120 target_cpu=003\n\
                      1.2,5,sched_wakeup,comm=b pid=8 prio=120 target_cpu=005\n";
        let name = "pelt/events_x_2x8.csv".to_string();
        let recording = Recording::new([(name, events.to_string())]);
        let found = seen(&recording, "pelt/run_x_2x8.json").unwrap();
        assert_eq!(
            found.starts,
            BTreeMap::from([(7, (2, 0)), (8, (5, 4 * MS))])
        );
        assert_eq!(found.traced_ns, 200 * MS);
        let places = [(7, [2, 3]), (8, [0, 5])].map(|(pid, cpus)| (pid, BTreeSet::from(cpus)));
        assert_eq!(found.places, places.into());
        let none = seen(&recording, "pelt/run_y_2x8.json").unwrap();
        assert_eq!(none, Seen::default());
    }

    #[test]
    fn only_what_was_recorded_takes_time() {
        let head = "t,kind,cpu,what,id,now,in_load,in_runnable,in_running,weight,pre_last_update,\
                    pre_period_contrib,pre_load_sum,pre_runnable_sum,pre_util_sum,post_last_update,\
                    post_period_contrib,post_load_sum,post_runnable_sum,post_util_sum,load_avg,\
                    runnable_avg,util_avg\n";
        let line =
            |kind| format!("1.0,{kind},0,task,7,2048,0,0,0,1024,0,0,0,0,0,0,0,0,0,0,0,0,0\n");
        let of = |text: String| {
            let recording = Recording::new([("pelt/updates_x_2x8.csv".to_string(), text)]);
            records(&recording, "pelt/run_x_2x8.json").unwrap()
        };
        let some = of(format!("{head}{}{}", line("se"), line("blocked_se")));
        assert!(some.entities && !some.queues && !some.weights);
        let both = of(format!("{head}{}{}", line("se"), line("cfs_rq")));
        assert!(both.entities && both.queues);
        assert_eq!(of(head.to_string()), Records::default());
    }

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

//! What has to be simulated: every side of every run with every seed, each different one once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use fairground::policy::{Features, decisions, find_patch, find_profile};
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::{Env, Workload, duration};

use super::experiment::{Experiment, RunSpec};
use super::hash::Hash;
use super::measure;
use crate::failure::Failure;
use crate::plan::set;
use crate::settle::settle;

/// One simulation.
pub struct Job {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The decisions.
    pub features: Features,
    /// The workload.
    pub workload: Arc<Workload>,
    /// The seed.
    pub seed: u64,
    /// Whether tracepoints are kept.
    pub trace: bool,
    /// All that the outcome depends on, the model apart: equal keys, equal outcomes.
    pub key: String,
}

/// Numbers of a run's jobs: base and patch by seed, from 1 on.
#[derive(PartialEq)]
pub struct Sides {
    /// Without the change.
    pub base: Vec<usize>,
    /// With it.
    pub patch: Vec<usize>,
    /// CPUs of the machine.
    pub cpus: usize,
    /// Hash of the machine.
    pub machine: String,
}

/// What sensitivity runs change in a machine.
pub type Vary<'a> = &'a dyn Fn(&Machine, &mut Features) -> Result<Machine, Failure>;

/// The jobs, and in which order they are of most use.
#[derive(Default)]
pub struct Jobs {
    /// By number.
    pub list: Vec<Job>,
    known: BTreeMap<String, usize>,
    ranks: Vec<u64>,
    /// The first seed of both sides of the same run, of further seeds.
    firsts: Vec<Option<[usize; 2]>>,
    workloads: BTreeMap<String, (Arc<Workload>, String)>,
}

impl Jobs {
    /// Adds what a run of `experiment` needs. The job with the lower `rank`, which is given for a
    /// seed, comes first.
    ///
    /// # Errors
    /// A machine, workload or decision that does not exist.
    pub fn sides(
        &mut self,
        experiment: &Experiment,
        run: &RunSpec,
        vary: Vary<'_>,
        rank: &dyn Fn(u64) -> u64,
    ) -> Result<Sides, Failure> {
        let plain = machine(run)?;
        let cpus = plain.topology.nr_cpus();
        let base_words = run.base_workload.as_ref().unwrap_or(&run.workload);
        let trace = run.rows.iter().any(|r| r.measure.needs_trace());
        let settled = experiment.settled.as_ref().or(run.settled.as_ref());
        let (mut base, mut patch, mut hash) = (Vec::new(), Vec::new(), String::new());
        for (patched, words, numbers) in [
            (false, base_words, &mut base),
            (!run.unpatched, &run.workload, &mut patch),
        ] {
            let mut features = features(experiment, run, patched)?;
            let machine = Arc::new(vary(&plain, &mut features)?);
            hash = machine.hash();
            let settled = settled.map(String::as_str);
            let (workload, program) = self.workload(run, words, cpus, settled)?;
            for seed in 1..=run.seeds {
                let mut job = Job {
                    machine: machine.clone(),
                    features: features.clone(),
                    workload: workload.clone(),
                    seed,
                    trace,
                    key: String::new(),
                };
                job.key = key(&job, &program);
                numbers.push(self.number(job, rank(seed)));
            }
        }
        if let (Some(&b), Some(&p)) = (base.first(), patch.first()) {
            for &number in base.iter().chain(&patch).filter(|&&n| n != b && n != p) {
                self.firsts[number].get_or_insert([b, p]);
            }
        }
        Ok(Sides {
            base,
            patch,
            cpus,
            machine: hash,
        })
    }

    /// Numbers in the order in which the jobs are of most use.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(|&number| (self.ranks[number], number));
        order
    }

    /// When this job's turn is, `cost` being what finished ones took: by rank, and further seeds of
    /// what takes least first, so that most rows get an interval.
    pub fn turn(&self, number: usize, cost: impl Fn(usize) -> Option<f64>) -> (u64, f64) {
        let sides = self.firsts[number].iter().flatten();
        let cost: f64 = sides.map(|&n| cost(n).unwrap_or(f64::INFINITY)).sum();
        (self.ranks[number], cost)
    }

    fn number(&mut self, job: Job, rank: u64) -> usize {
        let next = self.list.len();
        let number = *self.known.entry(job.key.clone()).or_insert(next);
        if number == next {
            self.list.push(job);
            self.ranks.push(rank);
            self.firsts.push(None);
        }
        self.ranks[number] = self.ranks[number].min(rank);
        number
    }

    /// The workload, and a hash of all its parts.
    fn workload(
        &mut self,
        run: &RunSpec,
        words: &str,
        cpus: usize,
        settled: Option<&str>,
    ) -> Result<(Arc<Workload>, String), Failure> {
        let place = format!("{words} {cpus} {:?} {:?} {settled:?}", run.from, run.span);
        if let Some(known) = self.workloads.get(&place) {
            return Ok(known.clone());
        }
        let workload = workload(run, words, cpus, settled)?;
        let mut hash = Hash::default();
        // Writing to a hash cannot fail.
        let _ = write!(hash, "{workload:?}");
        let made = (Arc::new(workload), hash.hex());
        self.workloads.insert(place, made.clone());
        Ok(made)
    }
}

fn key(job: &Job, program: &str) -> String {
    let features: Vec<String> = decisions().iter().map(|d| (d.get)(&job.features)).collect();
    format!(
        "{} {} {:?} {program} {} {features:?} {}",
        job.machine.hash(),
        job.machine.topology.nr_cpus(),
        job.workload.argv,
        job.seed,
        job.trace,
    )
}

fn machine(run: &RunSpec) -> Result<Machine, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", run.name));
    let machine = Machine::from_path_or_id(&run.machine).map_err(|e| failed(&e))?;
    let machine = match run.cpus {
        Some(cpus) => machine.shrunk(cpus).map_err(|e| failed(&e))?,
        None => machine,
    };
    let machine = match &run.max_idle {
        Some(state) => machine.with_idle_up_to(state).map_err(|e| failed(&e))?,
        None => machine,
    };
    Ok(match run.line_bytes {
        Some(bytes) => machine.with_line_bytes(bytes),
        None => machine,
    })
}

fn features(e: &Experiment, run: &RunSpec, patched: bool) -> Result<Features, Failure> {
    let profile = find_profile(&e.profile)
        .ok_or_else(|| Failure::new(format!("{}: no profile `{}`", e.change, e.profile)))?;
    let patch = find_patch(&e.change)
        .ok_or_else(|| Failure::new(format!("no patch is called `{}`", e.change)))?;
    let mut features = Features::of_profile(profile);
    match patched && run.patch_set.is_empty() {
        true => patch.apply(&mut features),
        false => patch.undo(&mut features),
    }
    let hz = run.hz.map(|hz| ("hz".to_string(), hz.to_string()));
    let own = if patched { &run.patch_set[..] } else { &[] };
    for (name, value) in hz.iter().chain(&run.set).chain(own) {
        set(&mut features, name, value)?;
    }
    Ok(features)
}

fn workload(
    run: &RunSpec,
    words: &str,
    cpus: usize,
    settled: Option<&str>,
) -> Result<Workload, Failure> {
    let env = Env { cpus: cpus as u32 };
    let failed = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", run.name));
    let mut workload = match words.strip_prefix("scenario ") {
        Some(name) => super::experiment::scenario(name)?
            .workload(&env)
            .map_err(|e| failed(&e))?,
        None => {
            let argv: Vec<String> = words.split_whitespace().map(String::from).collect();
            Workload::from_argv(&argv, &env).map_err(|e| failed(&e))?
        }
    };
    let ns = |text: &str| duration::parse_ns(text).map_err(|e| failed(&e));
    if let (Some(from), Some(span)) = (&run.from, &run.span) {
        measure::window(&mut workload, ns(from)?, ns(span)?);
    }
    if let Some(before) = settled {
        settle(&mut workload, ns(before)?)?;
    }
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_least_comes_first_within_a_rank() {
        let jobs = Jobs {
            ranks: vec![2, 2, 4, 4, 4, 5],
            firsts: vec![None, None, Some([0, 0]), Some([1, 1]), Some([6, 6]), None],
            ..Jobs::default()
        };
        let cost = |n: usize| [3.0, 1.0].get(n).copied();
        let turn = |n: usize| jobs.turn(n, cost);
        assert_eq!([turn(0), turn(1)], [(2, 0.0), (2, 0.0)]);
        assert_eq!([turn(2), turn(3)], [(4, 6.0), (4, 2.0)]);
        // Not known yet: last of its rank.
        assert_eq!(turn(4), (4, f64::INFINITY));
        assert_eq!(turn(5), (5, 0.0));
    }
}

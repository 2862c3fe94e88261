//! `--keep`: outcomes in files, one for each simulation, so that runs can be stopped and continued.
//!
//! The name of a file is a hash of the model and of all that the simulation depends on, so another
//! model, machine, workload or decision has other files, and old ones are not seen.

use std::path::{Path, PathBuf};

use fairground_sim::host::function_names;
use fairground_sim::limited;
use fairground_sim::outcome::{Outcome, Traffic};
use serde::{Deserialize, Serialize};

use super::jobs::Job;
use super::{hash, model};
use crate::failure::Failure;
use crate::output::Place;
use crate::saved::BYTES_MAX;

/// A directory of outcomes, or none.
pub struct Keep(Option<PathBuf>);

/// An outcome and the CPU time that it took, in seconds.
pub struct Done {
    /// What came out.
    pub outcome: Outcome,
    /// CPU time of the simulation.
    pub cpu_s: f64,
}

impl Keep {
    /// Makes the directory if there is none.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(dir: Option<&Path>) -> Result<Self, Failure> {
        if let Some(dir) = dir {
            std::fs::create_dir_all(dir)
                .map_err(|e| Failure::new(format!("cannot make `{}`: {e}", dir.display())))?;
        }
        Ok(Self(dir.map(Path::to_path_buf)))
    }

    /// The job's outcome, if it was kept. Tracepoints are not, so such jobs never are.
    ///
    /// # Errors
    /// A file that cannot be read, or is no outcome.
    pub fn read(&self, job: &Job) -> Result<Option<Done>, Failure> {
        let Some((path, key)) = self.place(job) else {
            return Ok(None);
        };
        let fail = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display()));
        let text = match limited::read_text(&path, BYTES_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(fail(&e)),
        };
        let file: File = serde_json::from_str(&text).map_err(|e| fail(&e))?;
        if file.key != key {
            return Ok(None);
        }
        let outcome = file.outcome.outcome(job.seed).map_err(|e| fail(&e))?;
        let cpu_s = file.cpu_s;
        Ok(Some(Done { outcome, cpu_s }))
    }

    /// Keeps it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, job: &Job, done: &Done) -> Result<(), Failure> {
        let Some((path, key)) = self.place(job) else {
            return Ok(());
        };
        let file = File {
            key,
            cpu_s: done.cpu_s,
            outcome: Kept::of(&done.outcome),
        };
        let text = serde_json::to_string(&file)
            .map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        Place::own(&path)?.write(&(text + "\n"))
    }

    fn place(&self, job: &Job) -> Option<(PathBuf, String)> {
        let dir = self.0.as_deref().filter(|_| !job.trace)?;
        let key = format!("{} {}", model::hash(), job.key);
        Some((dir.join(format!("{}.json", hash::of(&key))), key))
    }
}

#[derive(Serialize, Deserialize)]
struct File {
    key: String,
    cpu_s: f64,
    outcome: Kept,
}

/// An [`Outcome`] without its tracepoints.
#[derive(Serialize, Deserialize)]
struct Kept {
    metrics: Vec<(String, Option<f64>)>,
    counted: Vec<(String, u64)>,
    functions: Vec<(String, u64, u64)>,
    load_misses: Vec<(String, u64)>,
    #[serde(default)]
    other_misses: Vec<(String, u64)>,
    busy_ns: u64,
    lines: Vec<(String, String, [u64; 9])>,
    latency: Vec<(u64, u64)>,
    words: String,
    elapsed_ns: u64,
    events: u64,
    switches: u64,
    ilb_kicks: u64,
    ilb_redundant: u64,
    #[serde(default)]
    placed_elsewhere: u64,
    ilb_cas_ns: [u64; 2],
}

impl Kept {
    fn of(o: &Outcome) -> Self {
        let line = |l: &Traffic| {
            let numbers = [
                l.reads,
                l.writes,
                l.rmws,
                l.transfers,
                l.remote,
                l.upgrades,
                l.true_sharing,
                l.false_sharing,
                l.wait_ns,
            ];
            (l.object.clone(), l.field.clone(), numbers)
        };
        let misses = |(n, m): &(&str, u64)| ((*n).to_string(), *m);
        Self {
            metrics: o.metrics.clone(),
            counted: o.counted.clone(),
            functions: o
                .functions
                .iter()
                .map(|(n, a, b)| (n.to_string(), *a, *b))
                .collect(),
            load_misses: o.load_misses.iter().map(misses).collect(),
            other_misses: o.other_misses.iter().map(misses).collect(),
            busy_ns: o.busy_ns,
            lines: o.lines.iter().map(line).collect(),
            latency: o.latency.clone(),
            words: o.words.clone(),
            elapsed_ns: o.elapsed_ns,
            events: o.events,
            switches: o.switches,
            ilb_kicks: o.ilb_kicks,
            ilb_redundant: o.ilb_redundant,
            placed_elsewhere: o.placed_elsewhere,
            ilb_cas_ns: o.ilb_cas_ns,
        }
    }

    fn outcome(self, seed: u64) -> Result<Outcome, String> {
        let name = |name: String| {
            let known = function_names().find(|n| *n == name);
            known.ok_or_else(|| format!("no function is called `{name}`"))
        };
        let function = |(n, ns, calls)| Ok::<_, String>((name(n)?, ns, calls));
        let named = |rows: Vec<(String, u64)>| -> Result<_, String> {
            let row = |(n, misses)| Ok((name(n)?, misses));
            rows.into_iter().map(row).collect()
        };
        Ok(Outcome {
            seed,
            metrics: self.metrics,
            counted: self.counted,
            // Published tables have rates, and totals of what is said there.
            work: None,
            functions: self
                .functions
                .into_iter()
                .map(function)
                .collect::<Result<_, _>>()?,
            load_misses: named(self.load_misses)?,
            other_misses: named(self.other_misses)?,
            busy_ns: self.busy_ns,
            // No published table has idle states.
            idle_states: Vec::new(),
            lines: self.lines.into_iter().map(traffic).collect(),
            latency: self.latency,
            // No published table is about a limit.
            groups: Vec::new(),
            words: self.words,
            elapsed_ns: self.elapsed_ns,
            events: self.events,
            switches: self.switches,
            ilb_kicks: self.ilb_kicks,
            ilb_redundant: self.ilb_redundant,
            placed_elsewhere: self.placed_elsewhere,
            ilb_cas_ns: self.ilb_cas_ns,
            samples: Vec::new(),
            halves: Vec::new(),
            open_requests: Vec::new(),
            watched: None,
            stuck: None,
            trace: Vec::new(),
        })
    }
}

fn traffic((object, field, numbers): (String, String, [u64; 9])) -> Traffic {
    let [
        reads,
        writes,
        rmws,
        transfers,
        remote,
        upgrades,
        true_sharing,
        false_sharing,
        wait_ns,
    ] = numbers;
    Traffic {
        object,
        field,
        reads,
        writes,
        rmws,
        transfers,
        remote,
        upgrades,
        true_sharing,
        false_sharing,
        wait_ns,
    }
}

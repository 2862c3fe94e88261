//! `--report`: from traced runs and recordings to what the page's plots are made of.

use fairground::place::Func;
use fairground_report::html::{Heat, Samples, Slices, Task};
use fairground_sim::host::Stack;
use fairground_sim::outcome::Outcome;
use fairground_trace::Recording;
use fairground_trace::simulated::{self, FIRST_TID, Throttle, throttled};
use fairground_trace::walk::{Fact, Walk};

use crate::report_periods::{self, periods};
use crate::simulate::{Job, Kept, Simulated};

/// Parts of a run in the heat map.
const BINS: u32 = 240;
/// Most slices of a side: about a megabyte in the file.
const SLICES_MAX: usize = 30_000;

/// A side that is still without names.
pub struct Source<'a> {
    /// `base`, `patch`, ...
    pub variant: &'a str,
    /// What it is of.
    pub about: String,
    /// What happened.
    pub recording: &'a Recording,
    /// From when on it counts, ns.
    pub from_ns: u64,
    /// Times in the page count from here, ns.
    pub origin_ns: u64,
    /// Paths of groups.
    pub groups: Vec<String>,
    /// The number of a thread's group.
    pub group_of: &'a dyn Fn(u32) -> u32,
    /// Throttled queues: when, CPU, group, whether from then on.
    pub throttles: Vec<Throttle>,
    /// Time by stack.
    pub stacks: &'a [Stack],
    /// Latencies of all seeds.
    pub latency: Vec<(u64, u64)>,
}

/// The samples of each variant.
pub fn of_runs(jobs: &[Job<'_>], simulated: &Simulated, names: &[&str]) -> Vec<Samples> {
    let runs = simulated.outcomes.iter().zip(&simulated.kept);
    let sides = names.iter().zip(jobs).zip(runs);
    sides
        .filter_map(|((name, job), (outcomes, kept))| of_run(job, name, outcomes, kept.as_ref()?))
        .collect()
}

fn of_run(job: &Job<'_>, variant: &str, outcomes: &[Outcome], kept: &Kept) -> Option<Samples> {
    let first = outcomes.first()?;
    let cpus = job.machine.topology.nr_cpus() as u32;
    let who = simulated::identities(job.workload, &kept.born);
    let recording = simulated::recording(&first.trace, cpus, &who);
    let group_of = |tid: u32| {
        let task = tid.wrapping_sub(FIRST_TID) as usize;
        kept.born.get(task).map_or(0, |born| born.cgroup)
    };
    let throttles = simulated::throttles(&first.trace);
    let periods = periods(&report_periods::Source {
        waits: first.watched.as_ref().map_or(&[], |w| &w.quota),
        workload: job.workload,
        recording: &recording,
        origin_ns: 0,
        group_of: &group_of,
        throttles: &throttles,
    });
    let samples = samples(&Source {
        variant,
        about: format!("Seed {}", first.seed),
        recording: &recording,
        from_ns: job.workload.warmup_ns,
        origin_ns: 0,
        groups: job
            .workload
            .cgroups
            .iter()
            .map(|g| g.path.clone())
            .collect(),
        group_of: &group_of,
        throttles,
        stacks: &kept.stacks,
        latency: merged(outcomes),
    });
    Some(Samples { periods, ..samples })
}

/// Latencies of all seeds together.
fn merged(outcomes: &[Outcome]) -> Vec<(u64, u64)> {
    let mut sum = std::collections::BTreeMap::new();
    for (ns, count) in outcomes.iter().flat_map(|o| &o.latency) {
        *sum.entry(*ns).or_insert(0) += count;
    }
    sum.into_iter().collect()
}

/// One side.
pub fn samples(source: &Source<'_>) -> Samples {
    let recording = source.recording;
    let to = recording.span().1.max(source.from_ns + 1);
    let span = (source.from_ns, to);
    let mut collect = Collect::new(recording.cpus, source, span);
    Walk::over(
        &recording.events,
        recording.cpus,
        |threads, fact| match fact {
            Fact::In { cpu, at, woken, .. } => collect.switched_in(cpu, at, woken),
            Fact::Ran {
                thread,
                cpu,
                from,
                to,
            } => collect.ran(threads[thread].tid, cpu, from, to),
            _ => {}
        },
    );
    collect.throttles(&source.throttles);
    let task = |tid: &u32| Task {
        tid: recording.names.kernel_id(*tid),
        name: recording.names.get(*tid),
        group: (source.group_of)(*tid),
    };
    let tasks = collect.tids.iter().map(task).collect();
    let origin = source.origin_ns;
    let mut slices = collect.slices();
    slices.window_ns = (slices.window_ns.0 - origin, slices.window_ns.1 - origin);
    for slice in slices.cpu.iter_mut().flatten() {
        slice.0 -= origin;
    }
    let mut samples = Samples {
        variant: source.variant.into(),
        about: source.about.clone(),
        cpus: recording.cpus,
        span_ns: (span.0 - origin, span.1 - origin),
        tasks,
        groups: source.groups.clone(),
        heat: collect.heat.clone(),
        slices,
        latency: source.latency.clone(),
        ..Samples::default()
    };
    stacks(source.stacks, &mut samples);
    samples
}

fn stacks(stacks: &[Stack], to: &mut Samples) {
    for stack in stacks {
        let Some(name) = stack.functions.last() else {
            continue;
        };
        let known = to.functions.iter().position(|f| f == name);
        let number = known.unwrap_or_else(|| {
            to.functions.push((*name).into());
            to.scheduler
                .push(Func::ALL.iter().any(|f| f.name() == *name));
            to.functions.len() - 1
        });
        let depth = stack.functions.len() as u32;
        to.stacks
            .push((depth, number as u32, stack.self_ns, stack.calls));
    }
}

/// A slice: CPU, from, to, thread, one more than its wait.
type Whole = (u32, u64, u64, u32, u64);

struct Collect<'a> {
    span: (u64, u64),
    group_of: &'a dyn Fn(u32) -> u32,
    number: std::collections::BTreeMap<u32, u32>,
    tids: Vec<u32>,
    waited: Vec<u64>,
    all: Vec<Whole>,
    heat: Heat,
}

impl<'a> Collect<'a> {
    fn new(cpus: u32, source: &'a Source<'_>, span: (u64, u64)) -> Self {
        let rows = |n: usize| vec![vec![0; BINS as usize]; n];
        let groups = source.groups.len();
        Self {
            span,
            group_of: source.group_of,
            number: std::collections::BTreeMap::new(),
            tids: Vec::new(),
            waited: vec![0; cpus as usize],
            all: Vec::new(),
            heat: Heat {
                bins: BINS,
                busy: rows(cpus as usize),
                switches: rows(cpus as usize),
                group: rows(groups),
                throttled: rows(groups),
            },
        }
    }

    fn switched_in(&mut self, cpu: u32, at: u64, woken: Option<u64>) {
        self.waited[cpu as usize] = woken.map_or(0, |since| at - since + 1);
        if (self.span.0..self.span.1).contains(&at) {
            let bin = self.bin(at);
            self.heat.switches[cpu as usize][bin] += 1;
        }
    }

    fn ran(&mut self, tid: u32, cpu: u32, from: u64, to: u64) {
        let waited = std::mem::take(&mut self.waited[cpu as usize]);
        let (from, to) = (from.max(self.span.0), to.min(self.span.1));
        if to <= from {
            return;
        }
        let next = self.tids.len() as u32;
        let who = *self.number.entry(tid).or_insert_with(|| {
            self.tids.push(tid);
            next
        });
        self.all.push((cpu, from, to, who, waited));
        let group = (self.group_of)(tid) as usize;
        for (bin, thousandths) in self.parts(from, to) {
            self.heat.busy[cpu as usize][bin] += thousandths;
            if let Some(row) = self.heat.group.get_mut(group) {
                row[bin] += thousandths;
            }
        }
    }

    /// Throttled queues, as CPUs.
    fn throttles(&mut self, changes: &[Throttle]) {
        let end = self.span.1;
        for (group, from, to) in throttled(changes, end) {
            let (from, to) = (from.max(self.span.0), to.min(end));
            for (bin, thousandths) in self.parts(from, to) {
                if let Some(row) = self.heat.throttled.get_mut(group as usize) {
                    row[bin] += thousandths;
                }
            }
        }
    }

    fn bin(&self, at: u64) -> usize {
        let (from, to) = self.span;
        let share = u128::from(at - from) * u128::from(BINS) / u128::from(to - from);
        (share as usize).min(BINS as usize - 1)
    }

    /// The parts of the run that a span falls into, and how much of each it takes, in thousandths.
    fn parts(&self, from: u64, to: u64) -> Vec<(usize, u32)> {
        if to <= from {
            return Vec::new();
        }
        let (start, end) = self.span;
        let border =
            |bin: usize| start + (u128::from(end - start) * bin as u128 / u128::from(BINS)) as u64;
        let part = |bin: usize| {
            let (a, b) = (border(bin), border(bin + 1).max(border(bin) + 1));
            // Borders of thousandths, so that the parts of a busy CPU make 1000.
            let place = |at: u64| (at.clamp(a, b) - a) * 1000 / (b - a);
            (bin, (place(to) - place(from)) as u32)
        };
        (self.bin(from)..=self.bin(to - 1)).map(part).collect()
    }

    /// The slices around the middle of the run, as many as fit.
    fn slices(&mut self) -> Slices {
        self.all.sort_by_key(|s| (s.1, s.0));
        let all = self.all.len();
        let skip = all.saturating_sub(SLICES_MAX) / 2;
        let kept = &self.all[skip..(skip + SLICES_MAX).min(all)];
        let window = if all <= SLICES_MAX {
            self.span
        } else {
            // Within it nothing is missing: slices that began before are cut off.
            (kept[0].1, kept[kept.len() - 1].1)
        };
        let mut cpu = vec![Vec::new(); self.heat.busy.len()];
        let before = self.all[..skip].iter().filter(|s| s.2 > window.0);
        for (on, from, to, who, waited) in before.chain(kept) {
            let waited = if *from < window.0 { 0 } else { *waited };
            let (from, to) = ((*from).max(window.0), (*to).min(window.1));
            if to > from {
                cpu[*on as usize].push((from, to - from, *who, waited));
            }
        }
        Slices {
            window_ns: window,
            all: all as u64,
            cpu,
        }
    }
}

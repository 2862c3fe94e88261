//! A recording, run again: on the machine where it was made, and on others.
//!
//! What a thread computed in the recording has the kernel's own time in it: system calls,
//! wake-ups, switches, the tick. The simulated kernel adds its own. So the recorded machine is
//! simulated a few times first, and what the simulated kernel charged per operation is taken off
//! the programs ([`Trim`]). Nothing else is fitted. Units: nanoseconds.

use fairground::policy::Features;
use fairground_sim::exact::{self, Exact, Traced};
use fairground_sim::host::Stack;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;

use rustc_hash::FxHashSet;

use crate::derive::cause::{Causes, Timer, causes, partners};
use crate::derive::log::Step;
use crate::derive::pins::pins;
use crate::derive::workload::Source;
use crate::derive::{Attributes, Derived, Logs, Trim, derive, tick};
use crate::event::Kind;
use crate::measure::{Measured, measure};
use crate::recording::Recording;
use crate::simulated::{self, Identity, Throttle};
use crate::walk::{ThreadId, Waker};

/// Simulations that find the [`Trim`]: at most, and at least.
const ROUNDS: usize = 7;
const ROUNDS_LEAST: usize = 2;
/// CPU times that are off by this share on average are good enough.
const GOOD: f64 = 0.001;
/// Most events of one simulation, per recorded event, and at least.
const EVENTS_EACH: u64 = 2_000;
const EVENTS_LEAST: u64 = 20_000_000;

/// A machine and a setting.
#[derive(Clone, Debug)]
pub struct Place {
    /// The machine.
    pub machine: Machine,
    /// The scheduler's decisions.
    pub features: Features,
    /// What a recorder costs at each tracepoint there; zero if nobody records.
    pub tracer_ns: u64,
}

/// A recording, made ready to be run.
pub struct Replay<'a> {
    recording: &'a Recording,
    attributes: &'a Attributes,
    logs: Logs,
    causes: Vec<Causes>,
    partners: FxHashSet<(ThreadId, ThreadId)>,
    pins: Vec<Option<u32>>,
    tick_ns: u64,
    /// When ticks fell, modulo the tick, if that shows.
    phase_ns: Option<u64>,
    trim: Trim,
    /// The recording, measured.
    pub recorded: Measured,
}

/// What a run of it is made of.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What runs.
    pub derived: Derived,
    /// What the recording fixes.
    pub exact: Exact,
}

impl Prepared {
    /// The run.
    #[must_use]
    pub fn setup<'a>(&'a self, place: &'a Place, seed: u64) -> Setup<'a> {
        Setup {
            machine: &place.machine,
            features: place.features.clone(),
            workload: &self.derived.workload,
            seed,
            trace: true,
        }
    }
}

/// A run of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What ran.
    pub derived: Derived,
    /// Measured as the recording is.
    pub measured: Measured,
    /// From the recording's start to the end of the last thread's work.
    pub elapsed_ns: u64,
    /// Threads that had not done all their recorded work when the run was ended.
    pub unfinished: usize,
    /// The run, as a recording.
    pub events: Recording,
    /// Queues that were throttled.
    pub throttles: Vec<Throttle>,
    /// Time of the kernel's functions by stack.
    pub stacks: Vec<Stack>,
}

impl<'a> Replay<'a> {
    /// Takes a recording apart and finds out what the kernel of `home`, where it was made, costs.
    ///
    /// # Errors
    /// A sentence: an attribute makes no sense, or the machine is too small.
    pub fn new(
        recording: &'a Recording,
        attributes: &'a Attributes,
        home: &Place,
    ) -> Result<Self, String> {
        let logs = Logs::of(&recording.events, recording.cpus);
        let recorded = measure(&recording.events, recording.cpus, recording.span(), None);
        let tick_ns = home.features.tick_ns();
        let causes = causes(&logs);
        let mut replay = Self {
            recording,
            attributes,
            partners: partners(&logs, &causes),
            causes,
            pins: pins(&logs, &recording.names, &recorded.busy_ns),
            tick_ns,
            phase_ns: tick::phase(&logs.preempted_at, tick_ns),
            trim: Trim {
                per_op_ns: vec![0; logs.logs.len()],
                birth_ns: vec![0; logs.logs.len()],
                ..Trim::default()
            },
            logs,
            recorded,
        };
        let mut best: Option<(f64, Trim)> = None;
        for round in 0..ROUNDS {
            let run = replay.run(home, replay.seed())?;
            let off = replay.off(&run);
            if best.as_ref().is_none_or(|(least, _)| off < *least) {
                best = Some((off, replay.trim.clone()));
            }
            if off < GOOD && round >= ROUNDS_LEAST {
                break;
            }
            // Threads that take turns in more than one way would be chased from one to the other.
            replay.adjust(&run, if round < ROUNDS_LEAST { 1 } else { 2 });
        }
        if let Some((_, trim)) = best {
            replay.trim = trim;
        }
        Ok(replay)
    }

    /// The seed of the run that the recording is of; 1 if it is of a real machine.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.attributes.run.as_ref().map_or(1, |run| run.seed)
    }

    /// Runs it at `place`.
    ///
    /// # Errors
    /// A sentence: the machine is too small, or the run has no end.
    pub fn run(&self, place: &Place, seed: u64) -> Result<Run, String> {
        self.run_with(place, self.attributes, seed)
    }

    /// Runs it at `place` with other attributes than those of the recording.
    ///
    /// # Errors
    /// As [`Replay::run`], and an attribute that makes no sense.
    pub fn run_with(&self, place: &Place, with: &Attributes, seed: u64) -> Result<Run, String> {
        let prepared = self.prepared(place, with)?;
        let setup = prepared.setup(place, seed);
        let budget = (self.recording.events.len() as u64 * EVENTS_EACH).max(EVENTS_LEAST);
        let traced = exact::run(&setup, &prepared.exact, budget).map_err(|e| e.to_string())?;
        let cpus = place.machine.topology.nr_cpus() as u32;
        Ok(self.measured(prepared.derived, &traced, cpus))
    }

    /// What would run at `place`, with what the recording fixes.
    ///
    /// # Errors
    /// A sentence: an attribute makes no sense.
    pub fn prepared(&self, place: &Place, with: &Attributes) -> Result<Prepared, String> {
        let derived = self.derived(with)?;
        let (start, _) = self.logs.span;
        let tick = place.features.tick_ns();
        let phase = self.phase_ns.unwrap_or(0) + derived.lead_ns + tick;
        let phase = (phase + tick - start % tick) % tick;
        let exact = Exact {
            tick_phase_ns: with.run.is_none().then_some(phase),
            tracer_ns: place.tracer_ns,
            starts: derived.starts.clone(),
            stacks: true,
            ..Exact::default()
        };
        Ok(Prepared { derived, exact })
    }

    /// Who the tasks of a run are, from the template of each.
    #[must_use]
    pub fn identities(&self, derived: &Derived, templates: &[u32]) -> Vec<Identity> {
        let identity = |template: &u32| {
            let thread = &self.logs.threads[derived.threads[*template as usize]];
            Identity {
                tid: thread.tid,
                prio: thread.prio,
                comm: self.recording.names.get(thread.tid),
                process: self.recording.names.process(thread.tid),
            }
        };
        templates.iter().map(identity).collect()
    }

    /// The workload, with what the kernel costs at home taken off.
    ///
    /// # Errors
    /// A sentence: an attribute makes no sense.
    pub fn derived(&self, attributes: &Attributes) -> Result<Derived, String> {
        let source = Source {
            logs: &self.logs,
            names: &self.recording.names,
            causes: &self.causes,
            partners: &self.partners,
            pins: &self.pins,
            attributes,
            tick_ns: self.tick_ns,
        };
        derive(source, &self.trim)
    }

    fn measured(&self, derived: Derived, traced: &Traced, cpus: u32) -> Run {
        let who = self.identities(&derived, &traced.templates);
        let mut events = simulated::recording(&traced.outcome.trace, cpus, &who);
        let lead = derived.lead_ns;
        let end = last_work(&events).max(lead + 1);
        let same = cpus == self.recording.cpus;
        let blind = same.then_some(&self.recorded.blind[..]);
        let mut measured = measure(&events.events, cpus, (lead, end), blind);
        let mut unfinished = 0;
        for (thread, log) in self.logs.logs.iter().enumerate() {
            let Some(t) = measured.threads.get_mut(&self.logs.threads[thread].tid) else {
                continue;
            };
            // Its program ends with a sleep that the recording does not have.
            if log.awake_at_end {
                t.voluntary = t.voluntary.saturating_sub(1);
            }
            // It comes to its first operation by a wake-up of the replay's.
            if log.awake_at_start && !t.latency_ns.is_empty() {
                t.latency_ns.remove(0);
            }
            unfinished += usize::from(t.cpu_ns < derived.demand_ns[thread]);
        }
        events.format = "replay";
        Run {
            derived,
            measured,
            elapsed_ns: end - lead,
            unfinished,
            events,
            throttles: simulated::throttles(&traced.outcome.trace),
            stacks: traced.stacks.clone(),
        }
    }

    /// How far the threads' CPU times are off, as a share of all.
    fn off(&self, run: &Run) -> f64 {
        let mut sum = 0;
        for (tid, recorded) in &self.recorded.threads {
            let replayed = run.measured.threads.get(tid).map_or(0, |t| t.cpu_ns);
            sum += replayed.abs_diff(recorded.cpu_ns);
        }
        sum as f64 / self.recorded.cpu_ns().max(1) as f64
    }

    /// Takes off what the simulated kernel has charged beyond the recorded time, or a part of it.
    fn adjust(&mut self, run: &Run, part: i64) {
        for (thread, log) in self.logs.logs.iter().enumerate() {
            let tid = self.logs.threads[thread].tid;
            let Some(t) = run.measured.threads.get(&tid) else {
                continue;
            };
            let ops = run.derived.ops[thread].max(1) as i64;
            let over = (t.cpu_ns as i64 - log.cpu_ns as i64) / ops;
            let per_op = &mut self.trim.per_op_ns[thread];
            *per_op = per_op.saturating_add_signed(over / part);
        }
        let again = Logs::of(&run.events.events, run.events.cpus);
        self.births(&again, run.derived.lead_ns);
        let late = lateness(&self.logs, &again, &self.causes, run.derived.lead_ns);
        self.trim.sleep_ns = self.trim.sleep_ns.saturating_add_signed(late.0 / part);
        self.trim.time_ns = self.trim.time_ns.saturating_add_signed(late.1 / part);
    }
}

impl Replay<'_> {
    /// Threads that nobody creates come into being when an interrupt has been served.
    fn births(&mut self, again: &Logs, lead: u64) {
        let born = |logs: &Logs, from: u64| -> rustc_hash::FxHashMap<u32, i64> {
            let mut born = rustc_hash::FxHashMap::default();
            for (about, log) in logs.threads.iter().zip(&logs.logs) {
                if about.forked && log.parent.is_none() {
                    let at = about.born_ns as i64 - from as i64;
                    born.entry(about.tid).or_insert(at);
                }
            }
            born
        };
        let (recorded, replayed) = (born(&self.logs, self.logs.span.0), born(again, lead));
        for (thread, about) in self.logs.threads.iter().enumerate() {
            if let (Some(a), Some(b)) = (recorded.get(&about.tid), replayed.get(&about.tid)) {
                let late = &mut self.trim.birth_ns[thread];
                *late = late.saturating_add_signed(b - a);
            }
        }
    }
}

/// How much later timed waits end in `again` than in `logs`: medians of those after a sleep, and of
/// those at a time.
fn lateness(logs: &Logs, again: &Logs, causes: &[Causes], lead: u64) -> (i64, i64) {
    let mut by_tid = rustc_hash::FxHashMap::default();
    for (i, thread) in again.threads.iter().enumerate() {
        by_tid.insert(thread.tid, i);
    }
    let (mut sleeps, mut times) = (Vec::new(), Vec::new());
    for (thread, log) in logs.logs.iter().enumerate() {
        let Some(other) = by_tid.get(&logs.threads[thread].tid) else {
            continue;
        };
        let waits = |log: &crate::derive::Log, from: u64| -> Vec<(u64, u64, Waker)> {
            let ended = log.steps.iter().filter_map(|step| match step {
                Step::Block(b) => b.woken.map(|(at, by)| (b.from, at, by)),
                _ => None,
            });
            ended.filter(|(_, at, _)| *at > from).collect()
        };
        let start = logs.span.0;
        let (recorded, replayed) = (waits(log, start), waits(&again.logs[*other], lead));
        for (a, b) in recorded.iter().zip(&replayed) {
            let timed = match a.2 {
                Waker::Thread(_) => false,
                Waker::Perhaps(_) => causes[thread].perhaps_is_timer,
                Waker::Interrupt | Waker::Unseen => true,
            };
            if !timed {
                continue;
            }
            if causes[thread].timer == Timer::AfterSleep && a.0 > start {
                sleeps.push((b.1 - b.0) as i64 - (a.1 - a.0) as i64);
            } else {
                times.push((b.1 as i64 - lead as i64) - (a.1 as i64 - start as i64));
            }
        }
    }
    (median(sleeps), median(times))
}

fn median(mut sample: Vec<i64>) -> i64 {
    if sample.is_empty() {
        return 0;
    }
    sample.sort_unstable();
    sample[(sample.len() - 1) / 2]
}

/// When the last thread left its CPU.
fn last_work(events: &Recording) -> u64 {
    let mut last = events.events.iter().rev();
    last.find(|e| matches!(e.kind, Kind::Switch { prev: 1.., .. }))
        .map_or(0, |e| e.at_ns)
}

/// Ticks a second of the recorded kernel, if the recording shows it.
#[must_use]
pub fn hz_of(recording: &Recording) -> Option<u32> {
    tick::hz(&Logs::of(&recording.events, recording.cpus).preempted_at)
}

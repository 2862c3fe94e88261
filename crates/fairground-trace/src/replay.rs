//! A recording, run again: on the machine where it was made, and on others.
//!
//! What a thread computed in the recording has the kernel's own time in it: system calls,
//! wake-ups, switches, the tick. The simulated kernel adds its own. So the recorded machine is
//! simulated a few times first, and what the simulated kernel charged per operation is taken off
//! the programs ([`Trim`]). What wake-ups of the first half took beyond the model is put in
//! ([`crate::derive::tails`]). Nothing else is fitted. Units: nanoseconds.

mod beyond;
mod done;
mod early;
mod fit;
mod measured;
mod named;
mod names;
mod shown;

use fairground::policy::Features;
use fairground_sim::exact::{self, Exact, Traced};
use fairground_sim::host::Stack;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{Outcome, RunError};
use fairground_sim::workload::program::{Born, Cgroup};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::derive::cause::{Causes, causes, partners};
use crate::derive::cut::ALL_DONE;
use crate::derive::inherited::{Said, said};
use crate::derive::period::Returns;
use crate::derive::pins::{is_stopper, pins, places};
use crate::derive::tails::Prompt;
use crate::derive::tick::Tick;
use crate::derive::workload::Source;
use crate::derive::{Attributes, Derived, Logs, Trim, derive, tick};
use crate::measure::{Measured, ThreadTime, measure};
use crate::recording::Recording;
use crate::simulated::{Identity, Throttle};
use crate::walk::ThreadId;

use early::Course;
pub use early::Early;

/// Simulations that find the [`Trim`]: at most, and at least.
const ROUNDS: usize = 12;
const ROUNDS_LEAST: usize = 2;
/// CPU times that are off by less than this share on average are good enough, and if none is off by
/// more than that one.
const GOOD: f64 = 0.001;
const GOOD_EACH: f64 = 0.003;
/// Most events of one simulation: for each recorded event, for each tick of each CPU while it
/// lasts, at least, and at most (minutes).
const EVENTS_EACH: u64 = 2_000;
const EVENTS_EACH_TICK: u64 = 8;
const EVENTS_LEAST: u64 = 20_000_000;
const EVENTS_MOST: u64 = 1_000_000_000;

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
    places: FxHashMap<u32, u32>,
    /// CPUs of the machine of the recording.
    cpus: u32,
    tick_ns: u64,
    /// When threads came back from preemption.
    returns: Returns,
    /// Wake-ups of the first half that caused a switch.
    prompt: Prompt,
    /// When ticks fell, modulo the tick, if that shows.
    phase_ns: Option<u64>,
    trim: Trim,
    /// System calls cost nothing: what is computed has them in it.
    free_calls: bool,
    /// CPUs whose switches are recorded, if there are others.
    recorded_cpus: Option<Vec<u32>>,
    /// Groups that have a limit, and those with a weight of their own, on any side.
    beside: [Vec<u32>; 2],
    /// When threads computed what, if there are groups.
    course: Course,
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
    /// The same by their ids.
    pub undone: FxHashSet<u32>,
    /// It was ended because it took so long, several times as long as the recording: its length
    /// and what its threads did are lower bounds.
    pub stopped_ns: Option<u64>,
    /// For how long threads that the recording's end had cut off computed on while others waited
    /// with recorded work: in the first half of the recording's length, and in all.
    pub beyond_ns: [u64; 2],
    /// What threads of each group do earlier than in the recording, though they waited there since
    /// before, so that it may not have come by then. Empty of a simulated run, which says what
    /// each thread waits for.
    pub early: Vec<Early>,
    /// What they could do early, were their group given more CPU time.
    pub waited: Vec<Early>,
    /// The run, as a recording.
    pub events: Recording,
    /// Who its tasks are, by number.
    pub who: Vec<Identity>,
    /// Queues that were throttled.
    pub throttles: Vec<Throttle>,
    /// Time of the kernel's functions by stack.
    pub stacks: Vec<Stack>,
    /// What the kernel cost and which lines it touched; without the trace, which `events` are.
    pub outcome: Outcome,
}

impl Run {
    /// The same without its events and what was measured of each of them: of many replays of a
    /// long recording these would fill the memory.
    #[must_use]
    pub fn without_events(self) -> Self {
        Self {
            events: Recording::default(),
            measured: Measured::default(),
            throttles: Vec::new(),
            stacks: Vec::new(),
            ..self
        }
    }
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
        Self::with_calls(recording, attributes, home, true)
    }

    /// The same for a workload that is to run by itself, where each operation is a system call that
    /// costs what it costs on that machine.
    ///
    /// # Errors
    /// As [`Replay::new`].
    pub fn to_save(
        recording: &'a Recording,
        attributes: &'a Attributes,
        home: &Place,
    ) -> Result<Self, String> {
        Self::with_calls(recording, attributes, home, false)
    }

    fn with_calls(
        recording: &'a Recording,
        attributes: &'a Attributes,
        home: &Place,
        free_calls: bool,
    ) -> Result<Self, String> {
        // What threads say is about things of the run that its own words list.
        let plain = match attributes.run {
            Some(_) => None,
            None => recording.without_acts(),
        };
        let logs = Logs::of(&plain.as_ref().unwrap_or(recording).events, recording.cpus);
        let mut recorded = measure(&recording.events, recording.cpus, recording.span(), None);
        for (tid, thread) in &mut recorded.threads {
            // The simulated machine has its own, which no tracepoint names.
            if is_stopper(&recording.names.get(*tid)) {
                *thread = ThreadTime {
                    cpu_ns: thread.cpu_ns,
                    first_half_ns: thread.first_half_ns,
                    ..ThreadTime::default()
                };
            }
        }
        let tick_ns = home.features.tick_ns();
        let prompt = Prompt::of(&recording.events, recording.cpus, recorded.first_half());
        let phase_ns = tick::phase(&logs.preempted_at, tick_ns);
        let tick = phase_ns.map(|phase_ns| Tick {
            every_ns: tick_ns,
            phase_ns,
        });
        let causes = causes(&logs, &recording.names, tick);
        let mut replay = Self {
            recording,
            attributes,
            partners: partners(&logs, &causes),
            causes,
            places: places(&recording.events, recording.cpus),
            pins: pins(&logs, &recording.names, recording.cpus),
            cpus: recording.cpus.max(home.machine.topology.nr_cpus() as u32),
            tick_ns,
            prompt,
            returns: Returns::of(&recording.events, recording.cpus),
            phase_ns,
            trim: Trim {
                per_wake_ns: vec![0; logs.logs.len()],
                per_op_ns: vec![0; logs.logs.len()],
                per_run_ppm: vec![0; logs.logs.len()],
                birth_ns: vec![0; logs.logs.len()],
                ..Trim::default()
            },
            logs,
            free_calls,
            recorded_cpus: recorded.recorded_cpus(),
            beside: Default::default(),
            course: match attributes.cgroups[..] {
                [] => Course::default(),
                _ => Course::of(&recording.events, recording.cpus, recording.span(), None),
            },
            recorded,
        };
        replay.fit(home)?;
        Ok(replay)
    }

    /// Finds the [`Trim`]. All of a simulated run is told, and nothing is left to be found, unless
    /// it is to run with semaphores for what its threads did with others.
    fn fit(&mut self, home: &Place) -> Result<(), String> {
        if self.attributes.run.is_some() && self.logs.is_whole() && self.free_calls {
            return Ok(());
        }
        let mut best: Option<(f64, Trim)> = None;
        for round in 0..ROUNDS {
            let run = self.run(home, self.seed())?;
            let (average, off) = self.off(&run);
            let fitted = round >= ROUNDS_LEAST;
            if fitted && best.as_ref().is_none_or(|(least, _)| off < *least) {
                best = Some((off, self.trim.clone()));
            }
            if (average < GOOD || off < GOOD_EACH) && fitted {
                break;
            }
            if !fitted && self.attributes.run.is_none() {
                self.adjust_tails(&run);
            }
            // Threads that take turns in more than one way would be chased from one to the other.
            self.adjust(&run, if fitted { 2 } else { 1 });
        }
        if let Some((_, trim)) = best {
            self.trim = trim;
        }
        Ok(())
    }

    /// Makes runs comparable with those of other attributes for the same groups: all keep the
    /// counters of the groups that any of them limits, or gives a weight.
    ///
    /// # Errors
    /// A sentence: an attribute makes no sense.
    pub fn side_by_side(&mut self, with: &Attributes) -> Result<(), String> {
        let sides = [self.derived(self.attributes)?, self.derived(with)?];
        let [home, other] = sides.map(|side| [side.workload.limited(), side.workload.weighed()]);
        self.beside = [0, 1].map(|kind| both(home[kind].clone(), &other[kind]));
        Ok(())
    }

    /// Whether the recording shows or says how often the tick comes.
    #[must_use]
    pub fn shows_tick(&self) -> bool {
        let shows = || tick::hz(&self.logs.preempted_at).is_some();
        self.attributes.run.is_some() || shows()
    }

    /// The seed of the run that the recording is of; 1 if it is of a real machine.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.attributes.run.as_ref().map_or(1, |run| run.seed)
    }

    /// Whether the recording is of a simulated run, which it says itself.
    #[must_use]
    pub fn is_of_run(&self) -> bool {
        self.attributes.run.is_some()
    }

    /// Whether it is of a simulated run that was ended by its time, as a replay of it is.
    #[must_use]
    pub fn ends_by_time(&self) -> bool {
        self.logs.is_cut()
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
        let traced = self.traced(&setup, &prepared.exact)?;
        let cpus = place.machine.topology.nr_cpus() as u32;
        Ok(self.measured(prepared.derived, traced, cpus))
    }

    fn traced(&self, setup: &Setup<'_>, exact: &Exact) -> Result<Traced, String> {
        let limit = self.events_max(setup);
        exact::run(setup, exact, limit).map_err(|e| match e {
            RunError::Budget { .. } => format!(
                "{e}, which is the most for a recording of {:.3} s with {} events: replay a part \
                 of it (`perf script --time START,STOP`)",
                (self.logs.span.1 - self.logs.span.0) as f64 / 1e9,
                self.recording.events.len()
            ),
            _ => e.to_string(),
        })
    }

    /// Most events of a simulation.
    fn events_max(&self, setup: &Setup<'_>) -> u64 {
        let cpus = setup.machine.topology.nr_cpus() as u64;
        let ticks = self.logs.longest_ns() / setup.features.tick_ns().max(1);
        let of_ticks = ticks.saturating_mul(cpus * EVENTS_EACH_TICK);
        let of_events = self.recording.events.len() as u64 * EVENTS_EACH;
        let most = of_events.max(EVENTS_MOST);
        of_events.saturating_add(of_ticks).clamp(EVENTS_LEAST, most)
    }

    /// What would run at `place`, with what the recording fixes.
    ///
    /// # Errors
    /// A sentence: an attribute makes no sense.
    pub fn prepared(&self, place: &Place, with: &Attributes) -> Result<Prepared, String> {
        let mut derived = self.derived(with)?;
        let cpus = place.machine.topology.nr_cpus() as u32;
        derived.fit(cpus);
        let [limited, weighed] = &self.beside;
        let workload = &mut derived.workload;
        workload.watched = both(workload.limited(), limited);
        workload.compared = both(workload.weighed(), weighed);
        // CPUs of another machine are others, and a simulated run begins as it began.
        let here = cpus == self.recording.cpus && with.run.is_none();
        let tick_ns = place.features.tick_ns();
        let phase = self.at_place(self.phase_ns.unwrap_or(0), tick_ns, &derived);
        let exact = Exact {
            tick_phase_ns: with.run.is_none().then_some(phase),
            period_phases_ns: self.period_phases(&derived, with),
            tracer_ns: place.tracer_ns,
            starts: derived.starts.clone(),
            places: derived.places.clone(),
            placed_until_ns: if here { derived.placed_until_ns() } else { 0 },
            stacks: true,
            tails: with.run.is_none().then(|| self.trim.tails.clone()),
            thread_events: self.logs.told,
            watched: true,
            free_calls: self.free_calls && !self.logs.told,
            ends_at: (!self.logs.told).then_some((ALL_DONE, derived.threads.len() as u64)),
            ..Exact::default()
        };
        Ok(Prepared { derived, exact })
    }

    /// A phase of the recording, of something with this period, in a run.
    fn at_place(&self, phase_ns: u64, period_ns: u64, derived: &Derived) -> u64 {
        let start = self.logs.span.0 % period_ns;
        (phase_ns + derived.lead_ns + period_ns - start) % period_ns
    }

    /// When the quota periods of each group end in a run, where the recording shows it.
    fn period_phases(&self, derived: &Derived, with: &Attributes) -> Vec<Option<u64>> {
        let ticks = (self.tick_ns, self.phase_ns.unwrap_or(0));
        let said = said(self.attributes, &self.logs, &self.recording.names);
        let of = |group: &Cgroup| {
            let known = self
                .attributes
                .cgroups
                .iter()
                .find(|g| g.path == group.path)?;
            // What is changed has nothing to do with the recording's periods.
            let (quota_ns, period_ns) = known.limit().ok().filter(|l| l.1 == group.period_ns)?;
            quota_ns?;
            let below = format!("{}/", group.path);
            let inside = |said: &Said<'_>| {
                let path = said.path.unwrap_or("/");
                path == group.path || path.starts_with(&below)
            };
            let threads = self.logs.threads.iter().zip(&said);
            let tids = threads.filter(|(_, said)| inside(said)).map(|(t, _)| t.tid);
            let phase = self.returns.phase(tids, period_ns, ticks)?;
            Some(self.at_place(phase, period_ns, derived))
        };
        match with.run {
            Some(_) => Vec::new(),
            None => derived.workload.cgroups.iter().map(of).collect(),
        }
    }

    /// Who the tasks of a run are, from what each began with.
    fn identities(&self, derived: &Derived, born: &[Born]) -> Vec<Identity> {
        born.iter()
            .map(|b| self.identity(derived, b.template))
            .collect()
    }

    pub(super) fn identity(&self, derived: &Derived, template: u32) -> Identity {
        let thread = &self.logs.threads[derived.threads[template as usize]];
        Identity {
            tid: thread.tid,
            prio: thread.prio,
            comm: self.recording.names.get(thread.tid),
            process: self.recording.names.process(thread.tid),
        }
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
            places: &self.places,
            recorded: self.recorded_cpus.as_deref(),
            attributes,
            tick_ns: self.tick_ns,
            tick: self.phase_ns.map(|phase_ns| Tick {
                every_ns: self.tick_ns,
                phase_ns,
            }),
            cpus: self.cpus,
            saved: !self.free_calls,
        };
        derive(source, &self.trim)
    }
}

/// What is in either, in order.
fn both(mut some: Vec<u32>, others: &[u32]) -> Vec<u32> {
    some.extend(others);
    some.sort_unstable();
    some.dedup();
    some
}

/// Ticks a second of the recorded kernel, if the recording shows it.
#[must_use]
pub fn hz_of(recording: &Recording) -> Option<u32> {
    tick::hz(&Logs::of(&recording.events, recording.cpus).preempted_at)
}
